"""Python functions in worker processes: their arguments, their answers, and every way in which they
fail.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.programs import request_to

from assay.domain.failure import CallFailed, Fault
from assay.domain.programs import Function
from assay.providers.programs import functions
from assay.providers.programs.call import LONGEST_LOG
from assay.providers.programs.functions import Functions

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.domain.calls import Reply
    from assay.domain.digest import JsonValue

APP = """
import asyncio, ctypes, json, os, random, sys, time
print("printed by the import")

def upper(prompt): return prompt.upper()
def by_any_name(question, style="plain"): return f"{style} {question}"
def by_place(question, /): return question
def whole(task): return json.dumps([task.id, task["prompt"], task.context, task.system_prompt, "expected" in task])
def seeded(prompt, seed, trial): return f"{seed} {trial}"
def roles(messages): return " ".join(message["role"] for message in messages)
async def later(prompt):
    await asyncio.sleep(0)
    return prompt + " later"
def usage(prompt): return {"text": "yes", "input_tokens": 5, "output_tokens": 2, "cost_usd": 0.25}
def loud(prompt):
    print("beside the answer")
    os.system("echo from a child")
    return "quiet"
def only_prints(prompt): print("Paris")
def a_list(prompt): return [prompt]
def empty(prompt): return " "
def raises(prompt): raise ValueError(f"no {prompt}, key " + os.environ["MY_API_KEY"])
def leaves(prompt): sys.exit(4)
def dies(prompt): os._exit(3)
def segfaults(prompt): ctypes.string_at(0)
def hangs(prompt):
    print("before")
    time.sleep(600)
def floods(prompt):
    while True: print("x" * 65536)
def spins(prompt):
    while True: pass
def needs(prompt, database): return prompt
def pid(prompt): return str(os.getpid())
def drawn(prompt):
    time.sleep(0.05)
    return str(random.random())

class Bot:
    def __init__(self, style="kind"): self.style, self.calls = style, 0
    async def setup(self): self.ready = True
    def __call__(self, prompt):
        self.calls += 1
        return f"{self.style} {self.ready} {self.calls}"

class Broken:
    def setup(self): raise RuntimeError("no database")
    def __call__(self, prompt): return ""

ANSWER = 42
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP, "utf-8")
    return tmp_path


@pytest.fixture
def ask(folder: Path) -> Callable[..., list[Reply | CallFailed]]:
    """Ask a function of the file several times, one after another, and end its processes."""

    def asked(
        name: str,
        *prompts: str,
        options: dict[str, JsonValue] | None = None,
        timeout_s: float = 30.0,
        context: str = "",
        at_once: bool = False,
    ) -> list[Reply | CallFailed]:
        program = Function(target=f"app.py:{name}", options=options or {}, timeout_s=timeout_s)
        environment = {**os.environ, "MY_API_KEY": "very-secret-value", "MARK": str(folder)}
        provider = Functions(program, target=program.target, folder=folder, environment=environment)

        async def one(prompt: str) -> Reply | CallFailed:
            try:
                return await provider.complete(request_to(program, prompt, context=context))
            except CallFailed as failure:
                return failure

        async def everything() -> list[Reply | CallFailed]:
            try:
                if at_once:
                    return list(await asyncio.gather(*map(one, prompts)))
                return [await one(prompt) for prompt in prompts]
            finally:
                await provider.close()

        return asyncio.run(everything())

    return asked


def text_of(answer: Reply | CallFailed) -> str:
    assert not isinstance(answer, CallFailed), f"{answer}\n{answer.log}"
    return answer.text


def failure_of(answer: Reply | CallFailed) -> CallFailed:
    assert isinstance(answer, CallFailed)
    return answer


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("upper", "HELLO"),
        ("by_any_name", "plain hello"),
        ("by_place", "hello"),
        ("seeded", "7 2"),
        ("roles", "system user"),
        ("later", "hello later"),
    ],
)
def test_a_function_gets_what_its_parameters_name(
    ask: Callable[..., list[Reply]], name: str, text: str
) -> None:
    assert text_of(ask(name, "hello")[0]) == text


def test_a_task_comes_without_its_expected_answer(ask: Callable[..., list[Reply]]) -> None:
    (answer,) = ask("whole", "hello", context="All greetings.")
    assert (
        text_of(answer)
        == '["t1", "All greetings.\\n\\nhello", "All greetings.", "Be brief.", false]'
    )


def test_usage_and_cost_are_what_the_function_reports(ask: Callable[..., list[Reply]]) -> None:
    (answer,) = ask("usage", "hello")
    assert (answer.text, answer.usage.input_tokens, answer.usage.output_tokens) == ("yes", 5, 2)
    assert answer.cost_usd == 0.25
    assert ask("upper", "hello")[0].cost_usd == 0.0


def test_a_class_is_set_up_once_in_a_worker(ask: Callable[..., list[Reply]]) -> None:
    answers = ask("Bot", "a", "b", options={"style": "terse"})
    assert [answer.text for answer in answers] == ["terse True 1", "terse True 2"]


def test_what_is_printed_is_kept_beside_the_answer(ask: Callable[..., list[Reply]]) -> None:
    (answer,) = ask("loud", "hello")
    assert answer.text == "quiet"
    assert answer.log == "beside the answer\nfrom a child\n"


@pytest.mark.parametrize(
    ("name", "kind", "detail"),
    [
        ("raises", "exception", "ValueError: no hello, key [MY_API_KEY] (app.py:"),
        ("leaves", "exception", "SystemExit: 4"),
        (
            "only_prints",
            "no_answer",
            "The function printed 'Paris' and returned None; return the answer as text.",
        ),
        ("a_list", "bad_answer", "The function returned a list; return the answer as text."),
        ("empty", "empty", "The answer is empty."),
        ("dies", "crashed", "The function's process ended with exit code 3."),
        ("segfaults", "crashed", "The function's process was ended by SIGSEGV."),
        (
            "needs",
            "cannot_start",
            "app.py:needs: TypeError: the function requires 'database', which Assay does not offer",
        ),
        ("ANSWER", "cannot_start", "app.py:ANSWER: TypeError: app.py:ANSWER is a int"),
        ("Broken", "cannot_start", "app.py:Broken: RuntimeError: no database (app.py:"),
    ],
)
def test_each_way_to_fail_has_a_name(
    ask: Callable[..., list[CallFailed]], name: str, kind: str, detail: str
) -> None:
    failure = failure_of(ask(name, "hello")[0])
    assert (failure.kind, failure.fault, failure.transient) == (kind, Fault.CANDIDATE, False)
    assert failure.detail.startswith(detail)


def test_a_traceback_is_kept_without_keys_and_own_frames(
    ask: Callable[..., list[CallFailed]],
) -> None:
    log = failure_of(ask("raises", "hello")[0]).log
    assert log.startswith('Traceback (most recent call last):\n  File "')
    assert log.endswith("ValueError: no hello, key [MY_API_KEY]\n")
    assert "very-secret-value" not in log
    assert "host.py" not in log


@pytest.mark.parametrize("name", ["hangs", "spins"])
def test_a_hanging_function_is_killed_at_its_limit(
    ask: Callable[..., list[CallFailed]], name: str
) -> None:
    failure = failure_of(ask(name, "hello", timeout_s=0.5)[0])
    assert (failure.kind, failure.detail) == (
        "timeout",
        "The function did not return within 0.5 s.",
    )
    assert failure.log == ("before\n" if name == "hangs" else "")


def test_a_flood_of_output_ends_the_call(
    ask: Callable[..., list[CallFailed]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "LONGEST_PRINTED", 1 << 20)
    failure = failure_of(ask("floods", "hello")[0])
    assert (failure.kind, failure.detail) == ("too_long", "The function printed more than 1 MB.")
    assert len(failure.log) <= LONGEST_LOG


def test_an_exception_keeps_the_worker_and_a_crash_replaces_it(
    folder: Path, ask: Callable[..., list[Reply | CallFailed]]
) -> None:
    (folder / "app.py").write_text(
        "import os\n"
        "def mixed(prompt):\n"
        "    if prompt == 'raise': raise KeyError(prompt)\n"
        "    if prompt == 'die': os._exit(1)\n"
        "    return str(os.getpid())\n",
        "utf-8",
    )
    first, _, same, _, other = ask("mixed", "a", "raise", "b", "die", "c")
    assert text_of(first) == text_of(same) != text_of(other)


def test_calls_at_once_have_workers_with_randomness_of_their_own(
    ask: Callable[..., list[Reply]],
) -> None:
    drawn = [text_of(answer) for answer in ask("drawn", *"abcdefgh", at_once=True)]
    assert len(set(drawn)) == 8


def test_a_module_that_cannot_be_imported_is_imported_once(
    folder: Path, ask: Callable[..., list[CallFailed]]
) -> None:
    (folder / "app.py").write_text(
        "open('imports', 'a').write('x')\nimport nothing_like_this\ndef upper(prompt): return prompt\n",
        "utf-8",
    )
    failures = ask("upper", "a", "b", "c", at_once=True)
    assert {failure_of(failure).kind for failure in failures} == {"cannot_start"}
    assert "No module named 'nothing_like_this' (app.py:2)" in failures[0].detail
    assert (folder / "imports").read_text("utf-8") == "x"


def test_a_module_that_starts_threads_is_imported_by_each_worker(
    folder: Path, ask: Callable[..., list[Reply]]
) -> None:
    (folder / "app.py").write_text(
        "import os, threading\n"
        "IMPORTED_BY = os.getpid()\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "def same(prompt): return str(IMPORTED_BY == os.getpid())\n",
        "utf-8",
    )
    assert text_of(ask("same", "a")[0]) == "True"


def test_files_beside_the_function_can_be_imported(
    folder: Path, ask: Callable[..., list[Reply]]
) -> None:
    (folder / "helpers.py").write_text("WORD = 'helped'\n", "utf-8")
    (folder / "app.py").write_text(
        "import helpers\ndef answer(prompt): return helpers.WORD\n", "utf-8"
    )
    assert text_of(ask("answer", "a")[0]) == "helped"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_no_process_is_left_after_close(
    folder: Path, ask: Callable[..., list[Reply | CallFailed]]
) -> None:
    ask("pid", *"abcd", at_once=True)
    ask("hangs", "a", timeout_s=0.2)
    assert not processes_with(f"MARK={folder}")


def processes_with(variable: str) -> list[str]:
    """Return the processes whose environment has a variable of this value."""
    having = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and variable.encode() in (
                entry / "environ"
            ).read_bytes().split(b"\0"):
                having.append(entry.name)
        except OSError:  # it has ended, or belongs to someone else
            continue
    return having


def test_workers_that_start_at_once_have_numbers_of_their_own(folder: Path) -> None:
    program = Function(target="app.py:upper")
    provider = Functions(program, target=program.target, folder=folder, environment={**os.environ})

    async def started() -> list[int]:
        try:
            return [
                worker.number
                for worker in await asyncio.gather(*(provider._start() for _ in range(6)))
            ]
        finally:
            await provider.close()

    # A worker under the number of another one was ended when that one reached its time limit.
    assert sorted(asyncio.run(started())) == [1, 2, 3, 4, 5, 6]
