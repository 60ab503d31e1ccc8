"""Python callables as candidates: in worker processes if they can be pickled, else in this
process.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.programs import request_to

from assay.domain.errors import SettingsError
from assay.domain.failure import CallFailed
from assay.domain.programs import program_from_json
from assay.providers.directory import Directory
from assay.providers.programs.callables import callable_program
from assay.store.database.codec import bytes_json, json_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.domain.calls import Reply
    from assay.domain.programs import Function


def ask(
    program: Function, folder: Path, prompt: str = "hello", *, local_only: bool = False
) -> Reply:
    async def asked() -> Reply:
        directory = Directory(os.environ, base_folder=folder, local_only=local_only)
        request = request_to(program, prompt)
        try:
            return await directory.provider(request.model).complete(request)
        finally:
            await directory.close()

    return asyncio.run(asked())


def closure() -> Callable[[str], str]:
    word = "closed over"
    return lambda prompt: f"{word} {prompt} {os.getpid() == os.getppid()} {os.getpid()}"


def with_word(word: str) -> Callable[[str], str]:
    return lambda prompt: f"{word} {prompt}"


def unpicklable(do: Callable[[str], Any]) -> Callable[[str], Any]:
    lock = threading.Lock()

    def answer(prompt: str) -> Any:
        with lock:
            return do(prompt)

    return answer


def test_a_closure_is_called_in_another_process(tmp_path: Path) -> None:
    words = ask(callable_program(closure()), tmp_path).text.split()
    assert words[:3] == ["closed", "over", "hello"]
    assert int(words[-1]) != os.getpid()


def test_a_hang_of_a_closure_is_killed(tmp_path: Path) -> None:
    with pytest.raises(CallFailed) as raised:
        ask(callable_program(lambda prompt: time.sleep(600), timeout_s=0.5), tmp_path)
    assert raised.value.kind == "timeout"


def test_an_object_that_cannot_be_sent_is_called_here(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reply = ask(callable_program(unpicklable(lambda prompt: f"{prompt} {os.getpid()}")), tmp_path)
    assert reply.text == f"hello {os.getpid()}"
    assert "cannot end a call" in caplog.text


def test_a_coroutine_function_that_cannot_be_sent_runs_on_the_loop(tmp_path: Path) -> None:
    lock = threading.Lock()

    async def answer(prompt: str) -> str:
        with lock:
            await asyncio.sleep(0)
        return f"{prompt} {threading.current_thread() is threading.main_thread()}"

    assert ask(callable_program(answer), tmp_path).text == "hello True"


@pytest.mark.parametrize(
    ("do", "kind"),
    [
        (lambda _: 1 / 0, "exception"),
        (lambda _: None, "no_answer"),
        (lambda _: time.sleep(2), "timeout"),
    ],
)
def test_failures_in_this_process_have_the_same_names(
    tmp_path: Path, do: Callable[[str], Any], kind: str
) -> None:
    with pytest.raises(CallFailed) as raised:
        ask(
            callable_program(unpicklable(do), timeout_s=0.3 if kind == "timeout" else 30.0),
            tmp_path,
        )
    assert raised.value.kind == kind
    assert ("ZeroDivisionError" in raised.value.log) == (kind == "exception")


def test_a_stored_callable_is_refused_by_its_name(tmp_path: Path) -> None:
    program = callable_program(closure(), options={"a": 1})
    stored = program_from_json(bytes_json(json_bytes(program)))
    assert stored.digest == program.digest
    with pytest.raises(SettingsError, match="was a Python object"):
        ask(stored, tmp_path)  # type: ignore[arg-type] # a Function


def test_the_source_of_a_callable_is_in_its_digest() -> None:
    first, second = (
        callable_program(lambda prompt: prompt),
        callable_program(lambda prompt: prompt * 2),
    )
    assert first.target == second.target
    assert first.digest != second.digest
    same, other = (callable_program(with_word(word)) for word in ("a", "b"))
    assert same.digest != other.digest
    assert same.digest == callable_program(with_word("a")).digest
