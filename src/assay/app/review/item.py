"""Records for the review page."""

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
"""First and last line of a passage, counted from 1, both inclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A quotation; `at` is its line range in the candidate's response, None if the response does
    not contain it.
    """

    text: str
    at: Lines | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalAnswerCheck:
    """A scorer's check of a candidate's final answer; `verified` is None if the scorer could not
    decide.
    """

    verified: bool | None
    message: str
    scorer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """One candidate's response on the review page. Scores range from 0 to 1.

    Attributes:
        name: the candidate; None while names are hidden.
        chars, lines: size of the whole response; `cut` is True if `text` is only its beginning.
        sent: messages that the candidate received, as (role, text). Empty for a snippet and while
            names are hidden.
        form: `code`, `json`, `prose` (Markdown) or `turns` (a conversation).
        structured: the structured response that the judge saw, if a model structured it.
        verdict, check: results of the rubric's verdict rules and of the final answer check.
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
    """One grade in the rubric table.

    `score` is the counted score from 0 to 1, `raw` is the same score on the criterion's scale, and
    `judged` is the judge's raw score.
    """

    score: float | None
    raw: float | None
    judged: float | None
    reason: tuple[str | Quote, ...]
    evidence: tuple[Quote, ...]
    confidence: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricRow:
    """One criterion with a cell for each candidate's response; a cell is None if the judge gave no
    grade.

    `scale` is the criterion's range as text. `labels` are names of raw scores, in the order of the
    digit keys that select them.
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
    """Text of a flag.

    `pane` and `criterion` locate the problem; None if it concerns the whole item.
    """

    kind: str
    detail: str
    pane: int | None
    criterion: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Another attempt at judging the trial; `raw` has a row of scores per criterion, one for each
    pane.
    """

    id: str
    attempt: int
    state: str
    scores: tuple[float | None, ...]
    raw: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """Another trial of the task; `id` is the id of its assessment, None without an assessment."""

    k: int
    state: str
    id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDecision:
    """One past decision, for display."""

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
        stamp: label of the grader: a calibrated judge, an uncalibrated judge, or a rule.
        images: (data address, caption) of each picture in the prompt; None if the item is shortened
            and has pictures.
        told_cut: True if the context, prompt or expected answer is shortened.
        missing: scores that approval requires, as (pane, criterion or None).
        ranking: panes, best first.
        rerunnable: True if another attempt is allowed without `--force`. Otherwise `no_rerun` is
            the reason: `by_rule`, `by_person`, `superseded`, or `limit` (all attempts used).
        rerun_problem: why this process may not call the judge, for the owner only; empty if it
            may.
        blind: True if the grader's scores and texts are hidden until the reviewer gives a verdict.
        own: the reviewer's earlier verdict, as (pane, criterion or None, score); None without a
            verdict.
        second: True if two people decide the item independently.
        person: True if only people grade the item, so that there are no scores to show.
        closed: why this reviewer may not decide a pending item: `given` (their opinion awaits a
            second one), `disputed` (two reviewers disagree) or `own_work` (it grades the reviewer's
            work). Empty if they may decide.
        told: True if the arena showed this reviewer the authors of the responses, so that the item
            is not blind.
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
    rerun_problem: str = ""
    closed: str = ""
    told: bool = False


def withheld(item: Item) -> Item:
    """Return the item without past decisions and without the grader's scores, verdicts, texts,
    flags, ranking and attempts.
    """
    return replace(
        item,
        blind=True,
        panes=tuple(
            replace(pane, score=None, judged=None, verdict=None, check=None) for pane in item.panes
        ),
        criteria=tuple(replace(row, cells=(None,) * len(row.cells)) for row in item.criteria),
        report=[],
        ranking=(),
        flags=(),
        missing=tuple(
            (pane, row.name)
            for pane in range(len(item.panes))
            for row in item.criteria
            if row.weight > 0
        ),
        attempts=(),
        events=(),
        call={},
    )
