"""Suites: tasks, candidates, judges, rubric, and how the answers are scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.domain.conversation import SimulatedUser, Turn
from assay.domain.digest import JsonValue, digest
from assay.domain.model import ModelSpec, Parameters
from assay.domain.protocol import PLAIN, Protocol
from assay.domain.review_sample import EVERY_GRADE, ReviewRule
from assay.domain.scenarios import Scenario
from assay.domain.structure import Structuring
from assay.domain.tools import CannedTool, ToolCall, ToolResult
from assay.domain.verdicts import VerdictRules


class ReviewOrder(StrEnum):
    """Order of assessments in the review queue: spread evenly over the run, or random."""

    SPREAD = "spread"
    RANDOM = "random"


PERSON = "human"
"""Name of the human judge: no model is asked, and a reviewer enters the grades."""

MAX_LOOKS = 20
"""Maximum number of planned looks of a sequential test; with more, the early looks could not decide
anything.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image in a message, in base64, with the caption that precedes it."""

    media_type: str
    data: str
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a prompt; `role` is `system`, `user` or `assistant`.

    `images` follow the text.
    """

    role: str
    content: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage(Message):
    """A message with the tool calls of an `assistant`, or with their results; `role` is then
    `tool`, and `content` is empty.
    """

    # Not fields of `Message`, so that requests without tools keep their digests and stored tasks
    # their JSON.
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of a snippet; `path` is empty for text that came without a file."""

    path: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A fixed response from the suite, used in every trial."""

    candidate: str
    files: tuple[SourceFile, ...]

    @property
    def text(self) -> str:
        """Return the snippet's files as one text, with a header line before each if there are
        several.
        """
        if len(self.files) == 1:
            return self.files[0].content
        return "\n".join(f"=== {file.path} ===\n{file.content}" for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One criterion of a rubric; `labels` maps words to raw scores if the judge answers in words.

    `low`: the raw score that is worth 0. `high`: the raw score that is worth 1. If `low` is above
    `high`, lower is better, as with an error rate.
    """

    name: str
    weight: float = 1.0
    low: float = 0.0
    high: float = 10.0
    guidance: str = ""
    labels: tuple[tuple[str, float], ...] = ()

    def normalised(self, raw: float) -> float | None:
        """Convert a raw score to a score between 0 and 1; None if it lies outside the scale."""
        # Scores are not clipped: 85 on a scale up to 10 may mean 85 out of 100, and Assay does not
        # guess (decisions/0003-judging.md).
        return (raw - self.low) / (self.high - self.low) if self.holds(raw) else None

    def holds(self, raw: float) -> bool:
        """True if a raw score lies on the scale."""
        return min(self.low, self.high) <= raw <= max(self.low, self.high)


def scale_in_words(worst: float, best: float) -> str:
    """Return a scale as text, such as `0 to 10` or `0 to 1, lower is better`."""
    low, high = sorted((worst, best))
    return f"{low:.10g} to {high:.10g}" + (", lower is better" if worst > best else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """The criteria by which a judge grades.

    `rules`: turn grades into a verdict on each response; None if responses only get scores.
    `verify`: a scorer that checks final answers in addition to the judge. `structuring`: a model
    that splits answers into parts for the judge. `review`: which grades by it a person must review;
    None leaves that to the suite. A run keeps the rule in its protocol.
    """

    criteria: tuple[Criterion, ...]
    rules: VerdictRules | None = None
    verify: Scoring | None = None
    structuring: Structuring | None = None
    review: ReviewRule | None = None

    @property
    def digest(self) -> str:
        """Digest of the rubric's content; rubrics with equal digests grade in the same way."""
        rows: list[JsonValue] = [
            {
                "name": c.name,
                "weight": c.weight,
                "low": c.low,
                "high": c.high,
                "guidance": c.guidance,
                "labels": [[label, value] for label, value in c.labels],
            }
            for c in self.criteria
        ]
        if (structuring := self.structuring) is not None:
            rows.append({"structuring": [structuring.model.ref, structuring.prompt]})
        return digest(rows)


class JudgeMode(StrEnum):
    """A judge's calls per task: one in total (`JOINT`), one per candidate (`EACH`) or two per pair
    (`PAIRWISE`).
    """

    JOINT = "joint"
    EACH = "each"
    PAIRWISE = "pairwise"

    @property
    def compares(self) -> bool:
        """True if the judge sees several candidates together, so that at least two are needed."""
        return self is not JudgeMode.EACH


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """An LLM that grades.

    Attributes:
        prompt: text of a template that replaces Assay's own; `prompt_path` is its file.
        persona: start of the system prompt: `neutral`, `code`, or a text from the suite. None lets
            the run's plan choose `code` or `neutral`, depending on what is graded.
        require_calibration: tier (`fair`, `good`, `excellent`) that a calibration must reach before
            the judge may grade.
        pages: True if the judge grades rendered pages (`code_arena`), for which it gets a special
            prompt.
        turn: (index, number of judges) if judges take turns: this judge grades every trial k with
            (k - 1) % number == index.
    """

    name: str
    model: ModelSpec
    mode: JudgeMode = JudgeMode.JOINT
    parameters: Parameters = field(default_factory=lambda: Parameters(temperature=0.1))
    prompt: str | None = None
    prompt_path: str | None = None
    max_code_chars: int | None = None
    require_calibration: str | None = None
    turn: tuple[int, int] | None = None
    pages: bool = False
    persona: str | None = None

    def grades_trial(self, k: int) -> bool:
        """True if this judge grades the k-th trial (from 1)."""
        # Turns are computed, not drawn at random, so that resume, extend and regrade agree on the
        # judge of each trial.
        return self.turn is None or (k - 1) % self.turn[1] == self.turn[0]

    def turns_before(self, k: int) -> int:
        """Count the trials before the k-th (from 1) that this judge grades, given that it also
        grades the k-th.
        """
        return k - 1 if self.turn is None else (k - 1) // self.turn[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Scoring method of a task: `judge`, or a deterministic scorer with its options.

    Attributes:
        source: text of the suite's own Python file if `method` names a function in it
            (`scorers.py:close`).
        plugin: True if `method` is the name of a scorer from an installed package.
        verify: a scorer whose result is shown next to the judge's score but never changes it.
        partial_credit: True for `exact` in old runs, in which it gave credit for near misses, as
            `similarity` does now.
        strict: False for `numeric` in old runs, in which it gave credit for near misses, as
            `closeness` does now.
    """

    method: str
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    source: str = ""
    plugin: bool = False
    partial_credit: bool = False
    strict: bool = True
    verify: Scoring | None = None

    @property
    def rule(self) -> str:
        """Name of the method that computes the score."""
        if self.method == "numeric" and (not self.strict or "curve" in self.options):
            # `curve` only shapes credit for near misses, so a suite that sets it keeps the rule it
            # was written for.
            return "closeness"
        return "similarity" if self.partial_credit else self.method

    @property
    def near_misses(self) -> bool:
        """True if an old run gave credit for near misses under a name that now means 0 or 1."""
        return self.partial_credit or not self.strict

    @property
    def judged(self) -> bool:
        """True if an LLM grades."""
        return self.method in ("judge", "code_arena")


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSpec:
    """A candidate: a model, or (if `model` is None) a name for snippets in the tasks.

    `system_prompt`, `prompt`, `messages`: templates (`domain.prompts`); if None or (), the
    candidate uses the suite's and the task's. `prompt_path`: the file that contains `prompt`.
    """

    name: str
    model: ModelSpec | None = None
    system_prompt: str | None = None
    prompt: str | None = None
    prompt_path: str | None = None
    messages: tuple[Message, ...] = ()
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task (a "Thing" to users), identified by (suite name, id, digest); results of different
    digests are never pooled.

    Attributes:
        family: the source that the task shares with other tasks; empty if it shares none.
        parameters, system_prompt: replace the suite's for this task; None means that the suite's
            apply.
        expected: the answer that scorers compare with. `ideal`: a complete model solution.
            `final_answer`: its final result.
        columns: additional values that candidates' prompts may use.
        turns: all messages of the user, including the first; a task with turns is a conversation.
        persona: persona of the plan's simulated user, who continues after `turns`.
        by_turn: True if each reply is graded separately.
        tools: tools that a candidate may call, which also makes the task a conversation; at most
            `tool_turns` requests per message of the user.
        scenario: set if an agent solves the task in a workspace; the response is then the
            workspace's report.
    """

    id: str
    thing: str
    context: str = ""
    prompt: tuple[Message, ...] = ()
    expected: str | None = None
    ideal: str | None = None
    final_answer: str | None = None
    scoring: Scoring
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    language: str = ""
    family: str = ""
    trials: int | None = None
    snippets: tuple[Snippet, ...] = ()
    parameters: Parameters = field(default_factory=Parameters)
    system_prompt: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    persona: str = ""
    by_turn: bool = False
    tools: tuple[CannedTool, ...] = ()
    tool_turns: int = 10
    extra: Mapping[str, JsonValue] = field(default_factory=dict)
    scenario: Scenario | None = None

    @property
    def digest(self) -> str:
        """Digest of the task's prompt, columns and grading; name, weight, tags and snippets are
        left out.
        """
        # Only keys that are set enter the digest, so a task without them keeps the digest that it
        # had before these fields existed.
        own: dict[str, JsonValue] = (
            {} if self.system_prompt is None else {"system_prompt": self.system_prompt}
        )
        if parameters := self.parameters.as_json():
            own["parameters"] = parameters
        if self.family:
            own["family"] = self.family
        if self.ideal is not None:
            own["ideal"] = self.ideal
        if self.final_answer is not None:
            own["final_answer"] = self.final_answer
        if self.scenario is not None:
            own["scenario"] = self.scenario.digest
        if self.turns:
            own["turns"] = [[turn.content, turn.expected] for turn in self.turns]
            own |= {"persona": self.persona} if self.persona else {}
            own |= {"by_turn": True} if self.by_turn else {}
        if self.tools:
            own["tools"] = [*map(_tool_identity, self.tools), self.tool_turns]
        if self.columns:
            # A column that only repeats the prompt does not change the digest, so a candidate with
            # a template may join later.
            told = {self.context, *(message.content for message in self.prompt)}
            columns: list[JsonValue] = [
                [name, text] for name, text in sorted(self.columns.items()) if text not in told
            ]
            own |= {"columns": columns} if columns else {}
        return digest(
            {
                **own,
                "context": self.context,
                "prompt": [message_identity(m) for m in self.prompt],
                "expected": self.expected,
                "language": self.language,
            }
        )

    @property
    def reference(self) -> str | None:
        """The text that scorers compare a response with: the expected answer or, if there is none,
        the final answer.
        """
        return self.final_answer if self.expected is None else self.expected

    @property
    def judged(self) -> bool:
        """True if an LLM grades the task, with or without rules."""
        return self.scoring.judged or (
            self.scenario is not None and self.scenario.judge is not None
        )

    def snippet_of(self, candidate: str) -> Snippet | None:
        return next((s for s in self.snippets if s.candidate == candidate), None)


def _tool_identity(canned: CannedTool) -> JsonValue:
    answers: list[JsonValue] = [
        [dict(answer.arguments), answer.text, answer.is_error] for answer in canned.answers
    ]
    return [canned.tool.name, canned.tool.description, dict(canned.tool.parameters), answers]


def message_identity(message: Message) -> JsonValue:
    """Return the content of a message that digests cover."""
    identity: list[JsonValue] = [message.role, message.content]
    return (
        [*identity, [[image.media_type, image.data] for image in message.images]]
        if message.images
        else identity
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCopy:
    """Copy of the suite that a run used: the path, the exact text, and a digest of the text and the
    files it refers to.
    """

    path: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A named collection of tasks, and how their answers are scored.

    `tasks` can be iterated several times; a suite with a large task file reads the file again each
    time.
    """

    name: str
    description: str = ""
    system_prompt: str = ""
    prompt_version: str = ""
    trials: int | None = None
    review: ReviewRule = EVERY_GRADE
    order: ReviewOrder = ReviewOrder.SPREAD
    looks: int | None = None
    protocol: Protocol = PLAIN
    parameters: Parameters = field(default_factory=Parameters)
    candidates: tuple[CandidateSpec, ...] = ()
    judges: tuple[JudgeSpec, ...] = ()
    margin: float | None = None
    rubric: Rubric | None = None
    user: SimulatedUser | None = None
    tasks: Iterable[Task]
    copy: SuiteCopy
