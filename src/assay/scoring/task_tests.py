"""Scoring by a task's own tests, which run against the response in a sandboxed workspace.

The response passes if all tests pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from assay.domain.assessment import Assessment
from assay.domain.digest import JsonValue
from assay.domain.sandbox import CommandEnd, CommandRequest, CommandResult, GuardedChecks
from assay.scoring.evaluator import Answer, GradingAttempt, Request, Unscorable
from assay.scoring.extraction import extracted
from assay.scoring.function_evaluator import FunctionEvaluator, assessment_by, plain_grade

TESTS: Final = "tests"
OPTIONS: Final = ("file", "files", "command", "answer", "seconds")
COMMAND: Final = "python -m unittest -v"
SECONDS: Final = 60.0
_LONGEST_S: Final = 3600.0
_SHOWN_CHARS: Final = 2000
_ENDINGS: Final = {
    "": "py",
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "ruby": "rb",
    "go": "go",
    "bash": "sh",
    "rust": "rs",
}
_NAME: Final = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}){0,8}"
)
_RAN_NONE: Final = re.compile(r"^Ran 0 tests in ", re.MULTILINE)
_ENDED_EARLY: Final = "the process of the tests ended before they were done"
_NOT_STARTED: Final = (126, 127)
_NO_TESTS: Final = 5  # exit code of pytest, and of unittest since Python 3.12
_STOPPED: Final[Mapping[CommandEnd, str]] = MappingProxyType(
    {
        CommandEnd.OUT_OF_MEMORY: "exceeded their memory limit",
        CommandEnd.DISK_FULL: "exceeded their disk limit",
    }
)


def test_problems(options: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the problems with the options of `score: tests`, one sentence each.

    `files` maps file names to their texts.
    """
    unknown = [name for name in options if name not in OPTIONS]
    problems = [
        f"`tests` has no option {name!r}. It has {', '.join(f'`{known}`' for known in OPTIONS)}."
        for name in unknown
    ]
    if not options.get("files"):
        problems.append("`tests` needs the test files, for example {tests: {file: test_slug.py}}.")
    command = options.get("command", COMMAND)
    if not isinstance(command, str) or not command.strip():
        problems.append(
            f"`command` is {command!r}; it must be a command line, such as `python -m pytest -q`."
        )
    answer = options.get("answer", "answer.py")
    if not isinstance(answer, str) or _NAME.fullmatch(answer) is None:
        problems.append(
            f"`answer` is {answer!r}; it must be the name of a file in the workspace, such as slug.py."
        )
    seconds = options.get("seconds", SECONDS)
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= _LONGEST_S
    ):
        problems.append(
            f"`seconds` is {seconds!r}; it must be a number above 0, and at most {_LONGEST_S:,.0f}."
        )
    return tuple(problems)


@dataclass(frozen=True, slots=True)
class TestsEvaluator(FunctionEvaluator):
    """Runs the tests of a task against each response; the score is 1 if they pass, else 0."""

    __test__ = False  # not a test itself

    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        """Return one command for each response, to run in a workspace with the tests and the
        response.
        """
        options = self.scoring.options
        tests = options.get("files")
        files = {name: str(text) for name, text in tests.items()} if isinstance(tests, dict) else {}
        answer = str(
            options.get("answer") or f"answer.{_ENDINGS.get(grading.task.language.lower(), 'txt')}"
        )
        seconds = options.get("seconds", SECONDS)
        return tuple(
            CommandRequest(
                files={answer: extracted(response.text, "fenced") or response.text, **files},
                command=str(options.get("command", COMMAND)),
                seconds=float(seconds) if isinstance(seconds, int | float) else SECONDS,
                checks=GuardedChecks.of(files, (answer, *files)),
            )
            for response in grading.responses
        )

    def read(self, grading: GradingAttempt, answers: tuple[Answer, ...], /) -> Assessment:
        """Return one grade for each response.

        Raises Unscorable if no test ran for a reason other than the response.
        """
        grades = []
        for response, result in zip(grading.responses, answers, strict=True):
            assert isinstance(result, CommandResult)
            passed, reason = self._verdict(result)
            grades.append(plain_grade(response.candidate, TESTS, 1.0 if passed else 0.0, reason))
        return assessment_by(TESTS, grades)

    def _verdict(self, result: CommandResult) -> tuple[bool, str]:
        shown = (
            result.output
            if len(result.output) <= _SHOWN_CHARS
            else f"…{result.output[-_SHOWN_CHARS:]}"
        )
        if result.end is CommandEnd.SHELL_LOST:
            raise Unscorable(
                "tests_not_run",
                f"The sandbox stopped unexpectedly during the tests. {shown}".strip(),
            )
        if result.end is CommandEnd.TIMED_OUT:
            return False, f"The tests were stopped after {result.seconds:.0f} s.\n{shown}"
        if result.end in _STOPPED:
            return False, f"The tests {_STOPPED[result.end]}.\n{shown}"
        if result.exit_code in _NOT_STARTED:
            raise Unscorable(
                "tests_not_run", f"The command of the tests could not be started: {shown}"
            )
        if result.exit_code == _NO_TESTS or _RAN_NONE.search(result.output):
            raise Unscorable("tests_not_run", f"The command found no tests: {shown}")
        if not result.succeeded and _ENDED_EARLY in result.output:
            return False, f"The response ended the process before the tests were done.\n{shown}"
        verdict = (
            "The tests pass."
            if result.succeeded
            else f"The tests fail (exit code {result.exit_code})."
        )
        return result.succeeded, f"{verdict}\n{shown}"
