"""Records for a table of answers, with one row per task and one column per candidate and trial."""

from __future__ import annotations

from dataclasses import dataclass

from assay.domain.failure import Failure
from assay.domain.identifiers import RunId, TrialKey
from assay.domain.suite import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumn:
    """One column in a table of answers: a candidate's answers in trial `k` of a run."""

    run: RunId
    candidate: str
    k: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateAnswer:
    """One answer, or the reason why it is missing; `text` and `failure` are both None if neither is
    known.

    Attributes:
        score: mean of the counted grades, between 0 and 1; None if no grade counts.
        waits: True if a grade of the answer awaits review.
        trial: the trial that the answer belongs to; None if the run has no such trial.
        input_tokens, output_tokens, latency_s, cost_usd: sums over the turns of a conversation;
            None if unknown.
    """

    text: str | None = None
    truncated: bool = False
    failure: Failure | None = None
    trial: TrialKey | None = None
    score: float | None = None
    waits: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency_s: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """The answers to one task, in the order of the columns.

    Attributes:
        place: position of the row; the next page starts after the last row's position.
        digests: digest of the task's content in each column's run; None for a run without the task.
    """

    place: tuple[int, int]
    task: Task
    digests: tuple[str | None, ...]
    answers: tuple[CandidateAnswer, ...]
