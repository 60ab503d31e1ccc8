"""Scenarios: tasks that an agent solves in a workspace, the checks of that workspace, and the
report of one trial.

The report is a trial's response. It is a JSON text, so that it is stored, exported, regraded and
compared like any other response.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final, Self

from assay.domain.agent_limits import AgentLimits
from assay.domain.digest import JsonValue, digest

REPORT: Final = "assay.workspace-report/1"
THRESHOLD: Final = 0.7

JUDGE: Final = "llm_judge"
"""Evaluator in which an LLM grades the diff and the validation output; a grade that includes it
awaits review.
"""


class CommandKind(StrEnum):
    """Kinds of validation commands, in the order in which they run."""

    INSTALL = "install"
    BUILD = "build"
    TYPECHECK = "typecheck"
    LINT = "lint"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCommand:
    """A validation command. A trial is a success only if all required commands succeed."""

    kind: str
    command: str
    required: bool = False
    seconds: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorSpec:
    """An evaluator with its weight in the trial's score, at least 0, and its options."""

    name: str
    weight: float = 1.0
    options: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The repository in which an agent works, and the checks of its result.

    Attributes:
        folder: the scenario's folder, as given in the suite; the fixture is `folder/fixture`.
        fixture: name of the fixture's folder.
        files: digest of each file of the fixture, by its path.
        baseline: commands that prepare a copy of the fixture before the agent starts.
        commands: validation commands.
        evaluators: the criteria of the grade.
        answers: answers to the agent's questions, by question or key word.
        keep: paths whose content the report includes, because evaluators read them.
        search: texts for which the report lists the files that contain them.
        protected: patterns of files that the agent must neither change nor add; the validation runs
            with those of the fixture.
        allowed: patterns of files that the agent may change or add although a rule of
            `domain.integrity` protects them.
        network: True if the agent's commands may use the network.
        setup_network: True if the baseline and validation commands may use it.
        minutes: the agent's time limit; `limits` contains the agent's other limits.
        threshold: lowest weighted score with which a trial is a success.
    """

    folder: str
    fixture: str
    files: Mapping[str, str]
    baseline: tuple[str, ...] = ()
    commands: tuple[CheckCommand, ...] = ()
    evaluators: tuple[EvaluatorSpec, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    network: bool = False
    setup_network: bool = False
    minutes: float = 60.0
    limits: AgentLimits = field(default_factory=AgentLimits)
    threshold: float = THRESHOLD

    @property
    def judge(self) -> EvaluatorSpec | None:
        """The evaluator that is an LLM; None if only rules grade."""
        return next((spec for spec in self.evaluators if spec.name == JUDGE), None)

    @property
    def protected_files(self) -> list[str]:
        """Fixture files that the agent must not change."""
        return [
            path
            for path in self.files
            if _fits(path, self.protected) and not _fits(path, self.allowed)
        ]

    @property
    def digest(self) -> str:
        """Digest of everything that affects a trial.

        The folder's path is left out, because a project may be moved.

        `allowed` is left out if it is empty, so that scenarios from before it existed keep their
        digest.
        """
        left_out = {"folder"} if self.allowed else {"folder", "allowed"}
        return digest({name: value for name, value in asdict(self).items() if name not in left_out})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a scenario from its stored form."""
        values = dict(data)
        values["limits"] = AgentLimits(**values.get("limits", {}))
        values["commands"] = tuple(CheckCommand(**each) for each in values.get("commands", ()))
        values["evaluators"] = tuple(EvaluatorSpec(**each) for each in values.get("evaluators", ()))
        for name in ("baseline", "keep", "search", "protected", "allowed"):
            values[name] = tuple(values.get(name, ()))
        return cls(**values)


def _fits(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """The result of one validation command; `exit_code` is None if it was stopped."""

    kind: str
    command: str
    exit_code: int | None
    end: str
    seconds: float
    output: str = ""

    @property
    def ended(self) -> str:
        """The command's exit code, or the limit that ended it, and its duration, in words."""
        ended = (
            self.end.replace("_", " ") if self.exit_code is None else f"exit code {self.exit_code}"
        )
        return f"{ended} after {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of an agent: a message, or a tool call with its result."""

    kind: str
    text: str
    tool: str = ""
    result: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceReport:
    """The result of one trial of an agent.

    Attributes:
        answer: the agent's last message.
        end: `done`, or the limit or failure that ended the agent.
        diff: unified diff from the prepared fixture to the workspace, without the changes of
            validation commands.
        paths: paths of all files in the workspace after the agent ended.
        files: contents of the files that evaluators read; None for a file that does not exist.
        base: contents of these files before the agent started.
        matches: for each text that the scenario searches and each heuristic pattern, the paths of
            the files that contain it.
        outcomes: results of the validation commands, in order.
        violations: the agent's changes that the validation ran without, each with its reason as a
            sentence.
        steps: the agent's trajectory.
        cut: names of the attributes above that were truncated to their limits.
        seconds: the agent's wall time.
        turns: replies of the agent's model; None if they are unknown.
    """

    answer: str = ""
    end: str = "done"
    turns: int | None = None
    diff: str = ""
    paths: tuple[str, ...] = ()
    files: Mapping[str, str | None] = field(default_factory=dict)
    base: Mapping[str, str | None] = field(default_factory=dict)
    matches: Mapping[str, list[str]] = field(default_factory=dict)
    outcomes: tuple[CheckOutcome, ...] = ()
    violations: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    cut: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_text(self) -> str:
        return json.dumps(
            {"format": REPORT, **asdict(self)}, ensure_ascii=False, separators=(",", ":")
        )

    def to_markdown(self, *, only_work: bool = False) -> str:
        """Return the report for readers: results, changes, validation output and, unless
        `only_work`, the agent's own words.
        """
        lines = [f"* {each.kind}: {each.ended}" for each in self.outcomes]
        turns = "" if self.turns is None else f", {self.turns} turn{'s' * (self.turns != 1)}"
        steps = f"{len(self.steps)} step{'s' * (len(self.steps) != 1)}"
        lines += (
            []
            if only_work
            else [f"* agent: {self.end} after {self.seconds:.1f} s{turns} and {steps}"]
        )
        lines += [f"* not validated: {each}" for each in self.violations]
        lines += [f"* too long and cut: {', '.join(self.cut)}"] if self.cut else []
        parts = ["## Results", "\n".join(lines)] if lines else []
        parts += [
            "## Changes",
            _fenced(self.diff, "diff") if self.diff else "The agent changed no file.",
        ]
        parts += ["## Validation"] if self.outcomes else []
        for each in self.outcomes:
            parts += [f"{each.kind}, {each.ended}", _fenced(f"$ {each.command}\n{each.output}", "")]
        if only_work:
            return "\n\n".join(parts)
        parts += ["## Answer", _fenced(self.answer, "")] if self.answer else []
        parts += ["## Steps"] if self.steps else []
        for number, step in enumerate(self.steps, 1):
            took = f", {step.seconds:.1f} s" if step.seconds else ""
            parts += [f"### {number}. {step.tool or step.kind}{took}", _fenced(step.text, "")]
            parts += [_fenced(step.result, "")] if step.result else []
        return "\n\n".join(parts)

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Return the report in a response; None if the response is another text."""
        if not text.startswith('{"format":"' + REPORT):
            return None
        try:
            data = json.loads(text)
            del data["format"]
            data["outcomes"] = tuple(CheckOutcome(**each) for each in data["outcomes"])
            data["steps"] = tuple(Step(**each) for each in data["steps"])
            data["paths"], data["cut"] = tuple(data["paths"]), tuple(data["cut"])
            # reports from before they existed have none
            data["violations"] = tuple(data.get("violations", ()))
            return cls(**data)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


def readable(text: str) -> str:
    """Return a response as people and judges read it: a workspace report as Markdown, any other
    text unchanged.
    """
    report = WorkspaceReport.from_text(text)
    return text if report is None else report.to_markdown()


def _fenced(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
