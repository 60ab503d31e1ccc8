"""Records that every importer yields: runs, each with its tasks, responses and assessments.

An importer is a generator. For each run, it yields one `FoundRun`, then the run's records, then
`FoundAtEnd` if needed. Yield a task before its responses, and a response before its assessments; a
record with an unknown task creates a task without text. `Skipped`, `Noted` and `Held` may come
anywhere. An importer keeps at most one row in memory if the format permits it, and never guesses: a
value that the file lacks is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from assay.domain.digest import JsonValue
from assay.domain.failure import Failure
from assay.domain.suite import Criterion, Message


class GradedBy(StrEnum):
    """Kind of grader; it decides whether a grade must be reviewed by a person."""

    MODEL = "model"
    RULE = "rule"
    PERSON = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A row or file that was not imported: `where` is `file:line`, `file` or `file#member`, and
    `why` is one sentence.
    """

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A remark about imported rows: `where` is as in `Skipped`, and `what` is one sentence."""

    where: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Rows that are not imported again, because their grades are already stored in `run`."""

    where: str
    run: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCandidate:
    """A candidate; `model` is its reference or the version that answered; `metadata` may have any
    keys (size, hf_id, …).
    """

    name: str
    model: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """A run as described by its file.

    Attributes:
        id: becomes the run's id unless another run already has this id.
        started, finished: ISO 8601 times in UTC with `Z`; None if unknown.
        complete: False if the harness cancelled the run or left it unfinished.
        provenance: other facts about the run: parameters, versions, command, throughput.
        identity: kind and id of the evaluation (`inspect task PvfWN…`), equal in all files with any
            version of the evaluation, in any format; None if the file has no such id.
        version: orders the versions of one evaluation: the greater text is newer. Use the time of
            the last change, ISO 8601 in UTC with `Z`.
    """

    suite: str
    format: str
    id: str | None = None
    batch_id: str | None = None
    candidates: tuple[FoundCandidate, ...] = ()
    rubric: tuple[Criterion, ...] = ()
    started: str | None = None
    finished: str | None = None
    complete: bool = True
    provenance: Mapping[str, JsonValue] = field(default_factory=dict)
    identity: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAtEnd:
    """Run metadata that a file has only at its end; None or empty values leave those of `FoundRun`
    unchanged.
    """

    started: str | None = None
    finished: str | None = None
    complete: bool | None = None
    provenance: Mapping[str, JsonValue] = field(default_factory=dict)
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTask:
    """One task.

    An empty prompt means that the file lacks the task's text; `family` is the source shared with
    other tasks.
    """

    id: str
    thing: str | None = None
    context: str = ""
    prompt: tuple[Message, ...] = ()
    expected: tuple[str, ...] = ()
    ideal: str | None = None
    final_answer: str | None = None
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    language: str = ""
    family: str = ""
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(
    slots=True, kw_only=True
)  # not frozen, because freezing would make an import a tenth slower
class FoundResponse:
    """One candidate's response in trial k (from 1), or its failure: exactly one of `content` and
    `failure`.

    `identity`: the id that the harness or provider gave this response (an Inspect sample uuid, a
    batch's custom_id with its response id), equal in every file with the response; None if the file
    has none. It identifies rows that were imported before, even from another file.
    """

    task: str
    candidate: str
    trial: int
    where: str
    content: str | None = None
    failure: Failure | None = None
    model_answered: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    started: str | None = None
    identity: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGrade:
    """One candidate's score: `score` is between 0 and 1, or None if unscored; `criterion` is empty
    for an overall score.

    A higher `score` is always better. If lower values of the metric are better (such as an error
    rate), `score` is reversed, `raw_score` is the value in the file, and `min_score` (worth 0) is
    greater than `max_score` (worth 1).
    """

    candidate: str
    score: float | None
    criterion: str = ""
    raw_score: float | None = None
    min_score: float | None = None
    max_score: float | None = None
    reason: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAssessment:
    """Grades by one judge, rule or person in one trial; `joint` is True if several candidates were
    graded in one call.

    `state`: the state in an imported score table (approved, rejected, …). If it is None, `by`
    decides: only a model's grades need review. Tokens, cost and seconds are those of the judge's
    calls; None if unknown.
    """

    task: str
    trial: int
    judge: str
    by: GradedBy
    where: str
    grades: tuple[FoundGrade, ...]
    joint: bool = False
    state: str | None = None
    reply: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundScores:
    """Overall scores by one judge or scorer; each row (task, candidate, trial, score from 0 to 1)
    becomes an assessment.

    A table of a million rows is imported four times as fast as with `FoundAssessment`, which
    documents `state` and `by`.
    """

    judge: str
    by: GradedBy
    rows: Sequence[tuple[str, str, int, float | None]]
    state: str | None = None


Found: TypeAlias = (
    FoundRun
    | FoundAtEnd
    | Noted
    | FoundTask
    | FoundResponse
    | FoundAssessment
    | FoundScores
    | Skipped
    | Held
)
