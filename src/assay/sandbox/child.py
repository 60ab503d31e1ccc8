"""The child process of a worker: reads requests, calls functions and writes their return values
until its parent ends.

Each message is JSON after a length of four bytes, on the original stdin and stdout. A called
function reads an empty stdin, and its stdout goes to the null device.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, BinaryIO

from assay.domain.isolation import StopKind
from assay.scoring.isolated import ISOLATED

with contextlib.suppress(ImportError):  # not on Windows
    import resource

MAX_DETAIL = 500


def serve(memory_bytes: int, functions: dict[str, str] | None = None) -> None:
    """Answer requests until stdin ends."""
    asked, answers = _private_pipes()
    logging.disable(logging.CRITICAL)  # nobody reads a log of the child
    _limit_for_good(memory_bytes)
    table = {**ISOLATED, **(functions or {})}
    while (message := _read(asked)) is not None:
        _limit_processor_time(message.get("time_limit_s"))
        _write(answers, _answer(message, table))


def _answer(message: Mapping[str, Any], table: Mapping[str, str]) -> Mapping[str, object]:
    try:
        module, _, name = table[message["function"]].partition(":")
        imported = import_module(module)
        if message.get("warm_up"):
            getattr(imported, "warm_up", _nothing)()
            return {"value": None}
        return {"value": getattr(imported, name)(**message["arguments"])}
    except MemoryError:
        return {"stopped": StopKind.MEMORY, "detail": "The function exceeded its memory limit."}
    except RecursionError:
        return {"stopped": StopKind.MEMORY, "detail": "The value is nested too deeply."}
    except BaseException as error:
        # This includes SystemExit: a suite's own scorer may call `exit()`, and the child must
        # continue with the next call.
        return {
            "stopped": StopKind.CRASHED,
            "detail": f"{type(error).__name__}: {error}"[:MAX_DETAIL],
        }


def _nothing() -> None:
    """Do nothing: the warm-up for a module without its own warm-up function."""


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Move the parent's pipes to new file descriptors, so that a function's input and output cannot
    reach the pipes.
    """
    asked = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return asked, answers


def _limit_for_good(memory_bytes: int) -> None:
    if "resource" not in sys.modules:
        return
    wanted = {resource.RLIMIT_AS: memory_bytes, resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0}
    for limit, most in wanted.items():
        with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS
            resource.setrlimit(limit, (most, most))


def _limit_processor_time(seconds: float | None) -> None:
    """Limit processor time to slightly more than the call's time limit, to stop an endless loop
    after the parent has ended.
    """
    if "resource" not in sys.modules or seconds is None:
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    # The system counts from the start of the process, and a warm child has already used some time.
    soft = math.ceil(usage.ru_utime + usage.ru_stime + seconds) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _read(pipe: BinaryIO) -> Mapping[str, Any] | None:
    head = pipe.read(4)
    if len(head) < 4:
        return None
    body = pipe.read(int.from_bytes(head, "big"))
    message: Mapping[str, Any] = json.loads(body)
    return message


def _write(pipe: BinaryIO, answer: Mapping[str, object]) -> None:
    try:
        # Otherwise Python would write NaN, which is not valid JSON, but which the parent would read
        # as a number.
        body = json.dumps(answer, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        detail = f"The function's value cannot be written as JSON: {error}"[:MAX_DETAIL]
        stopped = {"stopped": StopKind.CRASHED, "detail": detail}
        body = json.dumps(stopped).encode()
    pipe.write(len(body).to_bytes(4, "big") + body)
    pipe.flush()


if __name__ == "__main__":
    serve(int(sys.argv[1]), json.loads(sys.argv[2]))
