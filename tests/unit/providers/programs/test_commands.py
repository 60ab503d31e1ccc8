"""Commands: how the prompt reaches them, what their output means, and every way in which they
fail.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.programs import request_to

from assay.domain.failure import CallFailed, Fault
from assay.domain.model import Price
from assay.domain.programs import Command
from assay.providers.programs import commands
from assay.providers.programs.call import reply_in
from assay.providers.programs.commands import Commands

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from assay.domain.calls import Reply

ENVIRONMENT = {**os.environ, "MY_API_KEY": "very-secret-value"}


def run(folder: Path, program: Command, prompt: str = "hello", **about: Mapping[str, str]) -> Reply:
    provider = Commands(program, folder=folder, environment=ENVIRONMENT)
    return asyncio.run(provider.complete(request_to(program, prompt, **about)))  # type: ignore[arg-type] # of the helper


def fails(folder: Path, program: Command, prompt: str = "hello") -> CallFailed:
    with pytest.raises(CallFailed) as raised:
        run(folder, program, prompt)
    return raised.value


def shell(script: str, **settings: object) -> Command:
    return Command(words=("sh", "-c", script), **settings)  # type: ignore[arg-type] # the fields of Command


def test_a_prompt_is_one_argument_and_no_shell_reads_it(tmp_path: Path) -> None:
    prompt = "$(touch hacked); `touch hacked` 'quoted' {{id}}"
    program = Command(words=("printf", "%s|%s", "{{prompt}}", "{{id}} {{trial}}"), stdin="none")
    assert run(tmp_path, program, prompt).text == f"{prompt}|t1 2"
    assert not list(tmp_path.iterdir())


def test_a_prompt_comes_on_standard_input_with_its_context(tmp_path: Path) -> None:
    program = request_to(Command(words=("cat",)), "hello", context="Be kind.")
    provider = Commands(Command(words=("cat",)), folder=tmp_path, environment=ENVIRONMENT)
    assert asyncio.run(provider.complete(program)).text == "Be kind.\n\nhello"


def test_a_json_document_has_the_task_but_not_the_answer(tmp_path: Path) -> None:
    document = json.loads(run(tmp_path, Command(words=("cat",), stdin="json")).text)
    assert set(document) == {"task", "prompt", "messages", "system_prompt", "trial", "seed"}
    assert document["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "the right answer" not in json.dumps(document)


def test_columns_are_filled_in(tmp_path: Path) -> None:
    program = Command(words=("printf", "%s", "{{question}}"), stdin="none")
    assert run(tmp_path, program, columns={"question": "why?"}).text == "why?"


def test_an_answer_and_its_usage_are_read_from_json(tmp_path: Path) -> None:
    output = json.dumps({"out": [{"text": "yes"}], "usage": {"in": 3, "out": 4}, "cost": 0.5})
    program = Command(
        words=("echo", output),
        stdin="none",
        response="$.out[0].text",
        usage={"input_tokens": "$.usage.in", "output_tokens": "$.usage.out", "cost_usd": "$.cost"},
    )
    reply = run(tmp_path, program)
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens, reply.cost_usd) == (
        "yes",
        3,
        4,
        0.5,
    )


@pytest.mark.parametrize("count", ["-5", "9223372036854775808", "1e30", "true", "null", '"5"'])
def test_a_priced_program_without_readable_usage_has_no_known_cost(count: str) -> None:
    program = Command(
        words=("x",), response="$.out", usage={"input_tokens": "$.n", "output_tokens": "$.n"}
    )
    request = request_to(program)
    priced = replace(
        request, model=replace(request.model, price=Price(input_usd=10, output_usd=10))
    )
    reply = reply_in(json.loads(f'{{"out": "yes", "n": {count}}}'), program, priced, elapsed_s=0.0)
    assert reply.cost_usd is None
    stating = replace(program, usage={"cost_usd": "$.n"})
    reply = reply_in({"out": "yes", "n": -5.0}, stating, request, elapsed_s=0.0)
    assert reply.cost_usd is None, "a cost that cannot be read is unknown, not 0"


def test_standard_error_is_kept_beside_the_answer(tmp_path: Path) -> None:
    reply = run(tmp_path, shell('echo fine; echo "note $MY_API_KEY" >&2'))
    assert (reply.text, reply.log, reply.cost_usd) == ("fine", "note [MY_API_KEY]\n", 0.0)


def test_an_exit_code_is_a_failure_with_the_last_words(tmp_path: Path) -> None:
    failure = fails(tmp_path, shell("echo part; echo first >&2; echo last >&2; exit 4"))
    assert (failure.kind, failure.detail) == ("exit_4", "The command ended with exit code 4: last.")
    assert failure.log == "first\nlast\n\nStandard output:\npart\n"
    assert (failure.fault, failure.transient) == (Fault.CANDIDATE, False)


def test_a_signal_is_a_crash_with_its_name(tmp_path: Path) -> None:
    failure = fails(tmp_path, shell("kill -SEGV $$"))
    assert (failure.kind, failure.detail) == ("crashed", "The command was ended by SIGSEGV.")


def test_a_hanging_command_ends_with_all_that_it_started(tmp_path: Path) -> None:
    failure = fails(
        tmp_path, shell("sleep 600 & echo $! > child; echo before >&2; wait", timeout_s=0.5)
    )
    assert (failure.kind, failure.detail, failure.log) == (
        "timeout",
        "The command did not end within 0.5 s.",
        "before\n",
    )
    assert ended(int((tmp_path / "child").read_text("ascii")))


def test_a_process_left_behind_does_not_hold_the_answer(tmp_path: Path) -> None:
    assert (
        run(tmp_path, shell("sleep 600 & echo $! > child; echo done", timeout_s=60)).text == "done"
    )
    assert ended(int((tmp_path / "child").read_text("ascii")))


def test_a_flood_of_output_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "LONGEST_ANSWER", 1 << 20)
    failure = fails(tmp_path, Command(words=("yes",)))
    assert (failure.kind, failure.detail) == (
        "too_long",
        "The command wrote more than 1 MB to standard output.",
    )


@pytest.mark.parametrize(
    ("program", "prompt", "kind", "detail"),
    [
        (Command(words=("cat",)), " ", "empty", "The answer is empty."),
        (
            Command(words=("no-such-program",)),
            "x",
            "cannot_start",
            "The program 'no-such-program' does not exist",
        ),
        (Command(words=("./plain",)), "x", "cannot_start", "'./plain' is not executable"),
        (
            Command(words=("echo", "{{prompt}}")),
            "a\0b",
            "bad_input",
            "An argument would contain a NUL character",
        ),
        (
            Command(words=("echo", "{{prompt}}")),
            "x" * 3_000_000,
            "cannot_start",
            "The prompt is too long",
        ),
        (
            Command(words=("cat",), response="$.a"),
            "no json",
            "bad_answer",
            "The command's output is not JSON",
        ),
        (
            Command(words=("cat",), response="$.a.b"),
            '{"a": {"c": 1}}',
            "bad_answer",
            "Its JSON has no $.a.b: $.a is an",
        ),
        (
            Command(words=("cat",), response="$.a"),
            '{"a": [1]}',
            "bad_answer",
            "$.a of the program's JSON is a list",
        ),
    ],
)
def test_each_way_to_fail_has_a_name(
    tmp_path: Path, program: Command, prompt: str, kind: str, detail: str
) -> None:
    (tmp_path / "plain").write_text("no program", "utf-8")
    failure = fails(tmp_path, program, prompt)
    assert failure.kind == kind
    assert failure.detail.startswith(detail)


def ended(pid: int) -> bool:
    """True once a process is gone, or waits only for its parent to look."""
    for _ in range(500):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False
