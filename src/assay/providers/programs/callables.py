"""Python callables as candidates: pickled for worker processes, or called in threads if pickling
fails.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from types import CellType
from typing import Any

from assay.domain.calls import ModelRequest, Reply
from assay.domain.digest import text_digest
from assay.domain.programs import Function
from assay.ports import Provider
from assay.providers.programs import host
from assay.providers.programs.call import failed, input_of, reply_of, without_secrets
from assay.providers.programs.functions import Functions

_log = logging.getLogger(__name__)


def open_callable(
    program: Function, given: Callable[..., object], *, folder: Path, environment: Mapping[str, str]
) -> Provider:
    """Return the provider of a callable: worker processes, or threads if the callable cannot be
    pickled.
    """
    import cloudpickle  # also accepts functions from notebooks and closures, which `pickle` refuses

    try:
        pickled = cloudpickle.dumps(given)
    except Exception as error:  # pickling an object may raise any exception
        _log.warning(
            "%s is called in this process, because Assay cannot send it to another process: %s. Assay cannot end a call that "
            "hangs.",
            program.label,
            error,
        )
        return Threads(program, given, environment=environment)
    return Functions(
        program, target=program.target, folder=folder, environment=environment, pickled=pickled
    )


class Threads:
    """A `ports.Provider` for a callable in this process.

    A call over its time limit keeps running, but is ignored.
    """

    def __init__(
        self, program: Function, given: Callable[..., object], *, environment: Mapping[str, str]
    ) -> None:
        self._program = program
        self._given = given
        self._environment = environment

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Call the function in a separate thread; raises `CallFailed` with the function's
        traceback.
        """
        began = perf_counter()
        try:
            async with asyncio.timeout(self._program.timeout_s):
                answer = await self._called(input_of(request))
        except TimeoutError:
            raise failed(
                "timeout", f"The function did not return within {self._program.timeout_s:g} s."
            ) from None
        if "failed" in answer:
            log, detail = (
                without_secrets(str(answer[name]), self._environment) for name in ("log", "detail")
            )
            raise failed(str(answer["failed"]), detail, log=log)
        return reply_of(str(answer["text"]), answer, request, elapsed_s=perf_counter() - began)

    async def close(self) -> None:
        """Do nothing, because each thread ends with its call."""

    async def _called(self, given: dict[str, Any]) -> dict[str, Any]:
        if inspect.iscoroutinefunction(self._given):
            # It runs on this loop, because its clients may belong to the loop.
            return await host.awaited_here(self._given, given, dict(self._program.options))
        return await self._in_a_thread(given)

    def _in_a_thread(self, given: dict[str, Any]) -> asyncio.Future[dict[str, Any]]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()

        def settle(value: dict[str, Any]) -> None:
            if not answer.done():
                answer.set_result(value)

        def call() -> None:
            value = host.called_here(self._given, given, dict(self._program.options))
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, value)

        # A daemon thread outside of any pool, because a call that hangs must not keep the
        # interpreter from exiting.
        threading.Thread(target=call, daemon=True, name=self._program.label).start()
        return answer


def callable_program(given: Callable[..., object], **settings: Any) -> Function:
    """Return a Python callable as a program, identified by its name, its source text and the plain
    values in its closure.
    """
    name = getattr(given, "__qualname__", None) or type(given).__qualname__
    module = getattr(given, "__module__", None) or type(given).__module__
    files = {"source": text_digest(_content(given))}
    return Function(
        target=f"{module}:{name}", from_python=True, given=given, files=files, **settings
    )


def _content(given: Callable[..., object]) -> str:
    try:
        source = inspect.getsource(
            given if inspect.isroutine(given) or inspect.isclass(given) else type(given)
        )
    except (
        OSError,
        TypeError,
    ):  # there is no source for functions typed in interactively or written in C
        source = ""
    code = getattr(given, "__code__", None)
    if code is None:
        return source
    # Two lambdas on the same line have the same source, and two closures of the same function have
    # the same code.
    closed = [
        cell.cell_contents for cell in getattr(given, "__closure__", None) or () if _is_set(cell)
    ]
    plain = [value for value in closed if value is None or isinstance(value, str | int | float)]
    constants = [value for value in code.co_consts if isinstance(value, str | int | float)]
    return f"{source}\n{code.co_code.hex()}\n{constants!r}\n{plain!r}"


def _is_set(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a variable that has no value yet
        return False
