"""The records that a review page shows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.domain.structure import StructuredAnswer
    from assay.domain.verdicts import Verdict
    from assay.report.markdown import Node


ResponseForm: TypeAlias = Literal["code", "json", "prose", "turns"]

Lines: TypeAlias = "tuple[int, int]"
"""First and last line of a passage, 1-based, both inclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A quotation; `at` gives its lines in the candidate's response, and is None if the response does not contain it."""

    text: str
    at: Lines | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalAnswerCheck:
    """A scorer's check of a candidate's final answer; `verified` is None if the scorer could not tell."""

    verified: bool | None
    message: str
    scorer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """One candidate's response, as one pane of the review page; scores are between 0 and 1. `name` is None while names are hidden.

    `chars` and `lines` count the whole response. `cut` is True if `text` is only its beginning. `sent` has the messages that the
    candidate got, as (role, text); empty for a snippet, and while names are hidden, because prompts tell candidates apart. `form`
    is `code`, `json`, `prose` (read as Markdown) or `turns` (a conversation). `structured` is the response as the judge saw
    it, if a model took it apart. `verdict` and `check` follow from the rules of the rubric and the verification of final answers.
    """

    label: str
    name: str | None
    text: str
    cut: bool
    chars: int
    lines: int
    truncated: bool
    score: float | None
    judged: float | None
    form: ResponseForm
    sent: tuple[tuple[str, str], ...] = ()
    structured: StructuredAnswer | None = None
    verdict: Verdict | None = None
    check: FinalAnswerCheck | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One grade of the rubric table.

    `score` is the counted score between 0 and 1, `raw` is on the criterion's scale, and `judged` is the judge's own raw score.
    """

    score: float | None
    raw: float | None
    judged: float | None
    reason: tuple[str | Quote, ...]
    evidence: tuple[Quote, ...]
    confidence: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricRow:
    """One criterion with a cell for each pane (one candidate's response); a cell is None if the judge gave no grade.

    `scale` is the criterion's range in words. `labels` are names of raw scores, in the order of the digit keys that select them.
    """

    name: str
    weight: float
    low: float
    high: float
    guidance: str
    scale: str
    labels: tuple[tuple[str, float], ...]
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFlag:
    """A flag as text; `pane` and `criterion` locate the problem and are None if it has no location."""

    kind: str
    detail: str
    pane: int | None
    criterion: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Another attempt at judging the same trial; `raw` has a row for each criterion, with a score for each pane of the item."""

    id: str
    attempt: int
    state: str
    scores: tuple[float | None, ...]
    raw: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """Another trial of the same task; `id` is the id of its assessment, None if it has none."""

    k: int
    state: str
    id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDecision:
    """One past decision as the page shows it."""

    verb: str
    reviewer: str
    at: str
    reason: str
    note: str
    via: str
    displayed: bool
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One assessment with everything that a review page shows.

    Attributes:
        hidden: True if names are hidden.
        judge: the grader; None while names are hidden.
        stamp: the basis of the grades in words: a calibrated judge, an uncalibrated judge, or a rule.
        images: (data address, caption) of each picture in the prompt; None if there are pictures and the item is not whole.
        told_cut: True if the context, the prompt or the expected answer is cut to its beginning.
        missing: scores to enter before the assessment can be approved, as (pane, criterion or None).
        ranking: panes, best first.
        rerunnable: True if one more attempt is allowed without `--force`. If not, `no_rerun` is the reason: `by_rule`,
            `by_person`, `superseded`, or `limit` if the attempts are used up.
        blind: True if the grader's scores and words are withheld until the reviewer has given a verdict.
        own: the reviewer's earlier verdict, as (pane, criterion or None, score); None if there is none.
        second: True if two people decide the item independently.
        person: True if only people grade the item, so that it has no scores to show.
        closed: the reason why this reviewer may not decide a pending item: `given` if their opinion awaits a second one,
            `disputed` if two reviewers disagree; empty if they may decide.
        told: True if the arena has shown this reviewer who wrote the responses, so that the item is not blind.
    """

    id: str
    run_id: str
    suite: str
    task: str
    thing: str
    k: int
    of: int
    attempt: int
    state: str
    current: bool
    hidden: bool
    joint: bool
    judge: str | None
    stamp: str
    by_model: bool
    rerunnable: bool
    language: str
    context: str
    prompt: tuple[tuple[str, str], ...]
    expected: str | None
    ideal: str | None
    final_answer: str | None
    images: tuple[tuple[str, str], ...] | None
    told_cut: bool
    panes: tuple[Pane, ...]
    criteria: tuple[RubricRow, ...]
    report: list[Node]
    ranking: tuple[int, ...]
    flags: tuple[ShownFlag, ...]
    missing: tuple[tuple[int, str | None], ...]
    attempts: tuple[Attempt, ...]
    trials: tuple[Sibling, ...]
    events: tuple[PastDecision, ...]
    call: Mapping[str, Any] = field(default_factory=dict)
    blind: bool = False
    own: tuple[tuple[int, str | None, float], ...] | None = None
    second: bool = False
    person: bool = False
    no_rerun: str = ""
    closed: str = ""
    told: bool = False


def withheld(item: Item) -> Item:
    """Return the item without the grader's scores, verdicts, texts, flags, ranking and attempts, and without past decisions."""
    return replace(
        item,
        blind=True,
        panes=tuple(replace(pane, score=None, judged=None, verdict=None, check=None) for pane in item.panes),
        criteria=tuple(replace(row, cells=(None,) * len(row.cells)) for row in item.criteria),
        report=[],
        ranking=(),
        flags=(),
        missing=tuple((pane, row.name) for pane in range(len(item.panes)) for row in item.criteria if row.weight > 0),
        attempts=(),
        events=(),
        call={},
    )
