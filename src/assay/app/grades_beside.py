"""The verb behind grades side by side: judges, attempts, and judge and person, row by row, with what they add up to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from assay.analysis import grade_rows
from assay.analysis.columns import TaskLabel
from assay.analysis.grade_rows import MOST_PANES, GradeRows
from assay.app import registry
from assay.app.opinions import standing_opinions
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.observing import Seen
from assay.domain.selection import Selection
from assay.domain.suite import PERSON
from assay.statistics.agreement import Alpha, krippendorff_alpha
from assay.statistics.intervals import wilson_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from assay.analysis.columns import ReviewColumns
    from assay.app.wiring import Workspace
    from assay.domain.assessment import Grade
    from assay.domain.observing import Observation
    from assay.domain.selection import AssessmentDetail

PORTION: Final = 20
APART: Final = 0.05
"""Two scores at most this far apart agree, where nothing else is said."""

BLIND: Final = ", blind first"
OPINION: Final = ", one of two"
"""Ends of the names of panes that hold a reviewer's own scores."""

_SEED: Final = 20_250_101
_RESAMPLES: Final = 199


class By(StrEnum):
    """Whose grades stand beside each other."""

    JUDGES = "judges"
    ATTEMPTS = "attempts"
    PEOPLE = "people"


class Only(StrEnum):
    """Which rows are shown. `ERROR`: somebody who graded gave no score, or a person rejected it."""

    ALL = "all"
    AGREE = "agree"
    DIFFER = "differ"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for.

    Attributes:
        run: whose grades.
        beside: a run that graded the same responses (`assay regrade`), or the same tasks, for `JUDGES`.
        judge: whose attempts, or whose grades against people; the first that has any where empty.
        task, candidate: only these; empty is all.
        apart: scores at most this far apart agree, on 0 to 1.
        by_gap: widest gap first; else in the order of the run.
    """

    run: str
    by: By = By.JUDGES
    beside: str = ""
    judge: str = ""
    task: str = ""
    candidate: str = ""
    apart: float = APART
    only: Only = Only.ALL
    by_gap: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One pane of one row: the grades of one who graded, as given. `who` and `said` only where a person decided."""

    assessment: AssessmentKey
    state: AssessmentState
    score: float | None
    grades: tuple[Grade, ...]
    report: str
    who: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """A candidate in a trial. `gap` is None where fewer than two panes have a score."""

    task: TaskLabel
    k: int
    candidate: str
    gap: float | None
    sheets: tuple[Sheet | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What all rows that were asked for add up to, over the first two panes.

    Attributes:
        n: rows in which both have a score.
        alike, alike_ci95: share of them at most `apart` apart, with its Wilson interval.
        gap, distance: mean of second minus first, and of its size, on 0 to 1.
        alpha: agreement beyond chance; None where it would be called agreement without being so (see `blind`).
        blind: own verdicts given before the judge's scores were seen, against these; only they tell of agreement
            with people.
        accepted: approved without a change, of those decided; None but for `By.PEOPLE`.
    """

    n: int
    alike: float | None
    alike_ci95: tuple[float, float] | None
    gap: float | None
    distance: float | None
    alpha: Alpha | None
    blind: Alpha | None
    n_blind: int
    accepted: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of rows, and what was to be had.

    Attributes:
        panes: names, left to right.
        judges, tasks, candidates: what may be chosen.
        of: rows that were asked for; `waiting`: rows left out because a person has still to decide them.
        more: whether rows follow.
    """

    panes: tuple[str, ...]
    judges: tuple[str, ...]
    tasks: tuple[str, ...]
    candidates: tuple[str, ...]
    rows: tuple[ShownRow, ...]
    summary: Summary
    of: int
    waiting: int
    more: bool


def page(workspace: Workspace, wanted: Wanted, *, start: int = 0, limit: int = PORTION) -> Page:
    """A page of grades beside each other; raises `UnknownName` for a run, judge, task or candidate that is not there."""
    (summary,) = registry.runs(workspace, Selection(runs=(wanted.run,)))
    run = RunId(summary.id)
    runs: tuple[RunId, ...] = (run,)
    if wanted.beside and wanted.by is By.JUDGES:
        (other,) = registry.runs(workspace, Selection(runs=(wanted.beside,)))
        if other.id == run:
            raise InputError("beside", "is the same run.", remedy="Name another, or none.")
        runs = (run, RunId(other.id))
    columns = workspace.archive.review_columns(Selection(runs=runs))
    rows, judges = _rows(workspace, columns, wanted, runs)
    rows = rows.only(_asked(columns, rows, wanted))
    states = grade_rows.state_of(columns, rows)
    found = rows.only(_order(rows, states, wanted))
    shown = found.only(np.arange(start, min(start + limit, len(found.task))))
    return Page(
        panes=rows.panes,
        judges=judges,
        tasks=tuple(dict.fromkeys(label.task for label in columns.tasks)),
        candidates=columns.candidates,
        rows=_shown(workspace, columns, shown, run),
        summary=_summary(workspace, columns, rows, wanted, run, states),
        of=len(found.task),
        waiting=rows.waiting,
        more=start + limit < len(found.task),
    )


def _rows(
    workspace: Workspace, columns: ReviewColumns, wanted: Wanted, runs: tuple[RunId, ...]
) -> tuple[GradeRows, tuple[str, ...]]:
    """The rows, and the judges among whom one may choose."""
    models = tuple(name for code, name in enumerate(columns.judges) if _grades(columns, code))
    if wanted.judge and wanted.judge not in models:
        raise UnknownName("judge", wanted.judge, models)
    if wanted.by is By.JUDGES:
        return _of_judges(workspace, columns, models, runs), models
    if not models:
        raise InputError(f"run {wanted.run}", "has no grades of a judge.", remedy="Choose a run that a model graded.")
    chosen = wanted.judge or next((name for name in models if _has_attempts(columns, name)), models[0])
    if wanted.by is By.ATTEMPTS:
        return grade_rows.of_attempts(columns, chosen), models
    rows = grade_rows.of_people(columns, wanted.judge or models[0])
    return _with_verdicts(columns, rows, _verdicts(workspace, runs[0])), models


_Verdicts = dict[tuple[str, int], "Mapping[str, Any]"]


def _verdicts(workspace: Workspace, run: RunId) -> _Verdicts:
    """Reviewers' own scores by (pane, assessment): given before the judge's were sent to them, or one of two opinions."""
    found: _Verdicts = {}
    shown: set[tuple[str, int]] = set()
    opinions: dict[int, list[Observation]] = {}
    for one in workspace.witness.observations(kinds=(Seen.SHOWN, Seen.VERDICT, Seen.OPINION), run=run):
        key = int(one.assessment)
        if one.kind is Seen.SHOWN:
            shown.add((one.reviewer, key))
        elif one.kind is Seen.OPINION:
            opinions.setdefault(key, []).append(one)
        elif (one.reviewer, key) not in shown:
            found[f"{one.reviewer}{BLIND}", key] = {"whole": one.body["whole"], "scores": one.body["scores"]}
    for key, given in opinions.items():
        for name, one in standing_opinions(given).items():
            words = " ".join(part for part in (one.body["reason"], one.body["note"]) if part)
            found[f"{name}{OPINION}", key] = {
                "whole": one.body["result"], "scores": one.body["corrections"], "said": words,
            }  # fmt: skip
    return found


def _with_verdicts(columns: ReviewColumns, rows: GradeRows, verdicts: _Verdicts) -> GradeRows:
    """The rows with a pane for each reviewer whose own scores are known, as many as fit; those with most come first."""
    there = {int(key) for key in rows.assessment[:, 0]}
    counts = Counter(pane for pane, key in verdicts if key in there)
    for pane, _ in counts.most_common(MOST_PANES - len(rows.panes)):
        score = np.full((len(rows.task), 1), np.nan)
        keys = np.full((len(rows.task), 1), -1, np.int64)
        for place, key in enumerate(rows.assessment[:, 0].tolist()):
            if (body := verdicts.get((pane, key))) is not None:
                value = body["whole"].get(columns.candidates[rows.candidate[place]])
                keys[place], score[place] = key, np.nan if value is None else value
        rows = replace(rows, panes=(*rows.panes, pane), score=np.hstack([rows.score, score]),
                       assessment=np.hstack([rows.assessment, keys]))  # fmt: skip
    return rows


def _of_judges(
    workspace: Workspace, columns: ReviewColumns, models: tuple[str, ...], runs: tuple[RunId, ...]
) -> GradeRows:
    """The judges of a run, or of two: a trial of one is that trial of the other, by its task and number."""
    if len(runs) == 1:
        names = models[:MOST_PANES]
        place = np.array([names.index(name) if name in names else -1 for name in columns.judges], np.int64)
        return grade_rows.of_judges(columns, names, place[columns.judge] if len(place) else columns.judge)
    units: dict[tuple[str, int], int] = {}
    unit: dict[int, int] = {}
    run_of: dict[int, int] = {}
    for number, one in enumerate(runs):
        for trial in workspace.archive.trials(Selection(runs=(one,))):
            unit[int(trial.key)] = units.setdefault((trial.task, trial.k), len(units))
            run_of[int(trial.key)] = number
    number_of = np.array([run_of[int(key)] for key in columns.trial], np.int64)
    pairs = sorted(
        {(int(r), int(j)) for r, j in zip(number_of, columns.judge, strict=True) if columns.judges[j] in models}
    )
    pairs = pairs[:MOST_PANES]
    by_pair = {pair: place for place, pair in enumerate(pairs)}
    pane = np.array(
        [by_pair.get((int(r), int(j)), -1) for r, j in zip(number_of, columns.judge, strict=True)], np.int64
    )
    names = tuple(f"{columns.judges[judge]} · {runs[number]}" for number, judge in pairs)
    rows = grade_rows.of_judges(columns, names, pane, unit=unit)
    return rows.only((rows.assessment >= 0).sum(axis=1) > 1)


def _grades(columns: ReviewColumns, judge: int) -> bool:
    return bool((columns.by_model & (columns.judge == judge)).any()) and columns.judges[judge] != PERSON


def _has_attempts(columns: ReviewColumns, judge: str) -> bool:
    mine = columns.judge == columns.judges.index(judge)
    return bool((columns.attempt[mine] > 1).any())


def _asked(columns: ReviewColumns, rows: GradeRows, wanted: Wanted) -> NDArray[np.bool_]:
    """Rows of the task and candidate that were asked for."""
    keep = np.ones(len(rows.task), np.bool_)
    if wanted.task:
        named = [code for code, label in enumerate(columns.tasks) if wanted.task in (label.task, label.thing)]
        if not named:
            raise UnknownName("task", wanted.task, [label.task for label in columns.tasks])
        keep &= np.isin(rows.task, named)
    if wanted.candidate:
        if wanted.candidate not in columns.candidates:
            raise UnknownName("candidate", wanted.candidate, columns.candidates)
        keep &= rows.candidate == columns.candidates.index(wanted.candidate)
    return keep


def _order(rows: GradeRows, states: Mapping[int, AssessmentState], wanted: Wanted) -> NDArray[np.int64]:
    """Places of the rows that are shown, in the order in which they are."""
    gap = rows.gap
    graded = rows.assessment >= 0
    lacking = (graded & np.isnan(rows.score)).any(axis=1)
    keep = {
        Only.ALL: np.ones(len(gap), np.bool_),
        Only.AGREE: gap <= wanted.apart + 1e-9,
        Only.DIFFER: gap > wanted.apart + 1e-9,
        Only.ERROR: lacking,
    }[wanted.only]
    at = np.flatnonzero(keep)
    if not wanted.by_gap:
        return at
    return at[np.argsort(-np.nan_to_num(gap[at], nan=-1.0), kind="stable")]


def _shown(workspace: Workspace, columns: ReviewColumns, rows: GradeRows, run: RunId) -> tuple[ShownRow, ...]:
    """The rows with their grades and words."""
    keys = sorted({int(key) for key in rows.assessment.ravel() if key >= 0})
    details = {detail.row.key: detail for detail in workspace.archive.in_full([AssessmentKey(key) for key in keys])}
    gaps = rows.gap
    found = []
    own = any(pane.endswith((BLIND, OPINION)) for pane in rows.panes[2:])
    verdicts = _verdicts(workspace, run) if own and rows.panes[1] == "person" else {}
    for place in range(len(rows.task)):
        candidate = columns.candidates[rows.candidate[place]]
        its = [details.get(AssessmentKey(int(key))) for key in rows.assessment[place]]
        sheets = tuple(
            None
            if detail is None
            else _own_sheet(detail, candidate, rows.panes[pane], verdicts[rows.panes[pane], int(detail.row.key)])
            if (rows.panes[pane], int(detail.row.key)) in verdicts
            else _sheet(detail, candidate, final=rows.panes[pane] == "person")
            for pane, detail in enumerate(its)
        )
        first = next(detail for detail in its if detail is not None)
        found.append(
            ShownRow(
                task=columns.tasks[rows.task[place]],
                k=first.row.k,
                candidate=candidate,
                gap=None if np.isnan(gaps[place]) else float(gaps[place]),
                sheets=sheets,
            )
        )
    return tuple(found)


def _sheet(detail: AssessmentDetail, candidate: str, *, final: bool) -> Sheet:
    """A judge's own grades, or with `final` what a person made of them."""
    shown = detail.row.assessment if final else detail.judged
    rejected = final and detail.row.state is AssessmentState.REJECTED
    last = next((event.decision for event in reversed(detail.events) if event.decision.verb is not Verb.UNDO), None)
    grades = () if rejected else tuple(grade for grade in shown.grades if grade.candidate == candidate)
    if final:  # the words are the judge's, and stand beside
        grades = tuple(replace(grade, reason="", evidence=()) for grade in grades)
    return Sheet(
        assessment=detail.row.key,
        state=detail.row.state,
        score=None if rejected else shown.scores.get(candidate),
        grades=grades,
        report="" if final else shown.report,
        who=last.reviewer if final and last else "",
        said=" ".join(part for part in (last.reason, last.note) if part) if final and last else "",
    )


def _own_sheet(detail: AssessmentDetail, candidate: str, pane: str, body: Mapping[str, Any]) -> Sheet:
    """A reviewer's own scores, criterion by criterion where they gave them."""
    given = {criterion: float(score) for name, criterion, score in body["scores"] if name == candidate and criterion}
    grades = tuple(
        replace(grade, score=given[grade.criterion], reason="", evidence=())
        for grade in detail.judged.grades
        if grade.candidate == candidate and grade.criterion in given
    )
    return Sheet(
        assessment=detail.row.key, state=detail.row.state, score=body["whole"].get(candidate), grades=grades, report="",
        who=pane.removesuffix(BLIND).removesuffix(OPINION), said=str(body.get("said", "")),
    )  # fmt: skip


def _summary(
    workspace: Workspace,
    columns: ReviewColumns,
    rows: GradeRows,
    wanted: Wanted,
    run: RunId,
    states: Mapping[int, AssessmentState],
) -> Summary:
    if rows.score.shape[1] < 2:
        rows = GradeRows(
            panes=rows.panes, task=rows.task, candidate=rows.candidate, trial=rows.trial, waiting=rows.waiting,
            score=np.hstack([rows.score, np.full((len(rows.task), 1), np.nan)]), assessment=rows.assessment,
        )  # fmt: skip
    first, second = rows.score[:, 0], rows.score[:, 1]
    both = ~np.isnan(first) & ~np.isnan(second)
    n = int(both.sum())
    apart = second[both] - first[both]
    alike = float((np.abs(apart) <= wanted.apart + 1e-9).mean()) if n else None
    low, high = wilson_bounds(alike, n) if alike is not None else (None, None)
    people = wanted.by is By.PEOPLE
    blind, n_blind = _blind(workspace, columns, rows, run) if people else (None, 0)
    decided = [states[int(key)] for key in np.unique(rows.assessment[:, 0]) if key >= 0] if people else []
    return Summary(
        n=n,
        alike=alike,
        alike_ci95=None if low is None or high is None else (float(low), float(high)),
        gap=float(apart.mean()) if n else None,
        distance=float(np.abs(apart).mean()) if n else None,
        alpha=None if people or not n else _alpha(np.stack([first[both], second[both]], axis=1)),
        blind=blind,
        n_blind=n_blind,
        accepted=(sum(state is AssessmentState.APPROVED for state in decided), len(decided)) if people else None,
    )


def _blind(workspace: Workspace, columns: ReviewColumns, rows: GradeRows, run: RunId) -> tuple[Alpha | None, int]:
    """Own verdicts that were given before the judge's scores were seen, against those scores."""
    names = np.array(columns.candidates, dtype=object)
    judged = {
        (int(key), str(names[code])): float(score)
        for key, code, score in zip(rows.assessment[:, 0], rows.candidate, rows.score[:, 0], strict=True)
        if not np.isnan(score)
    }
    pairs = [
        (judged[key, name], float(score))
        for (pane, key), body in _verdicts(workspace, run).items()
        if pane.endswith(BLIND)
        for name, score in dict(body["whole"]).items()
        if score is not None and (key, name) in judged
    ]
    return (_alpha(np.array(pairs)) if pairs else None), len(pairs)


def _alpha(pairs: NDArray[np.float64]) -> Alpha:
    """Krippendorff's alpha of two scores of each row."""
    units: Sequence[int] = np.repeat(np.arange(len(pairs)), 2).tolist()
    return krippendorff_alpha(
        units, pairs.ravel(), tolerance=APART, rng=np.random.default_rng(_SEED), resamples=_RESAMPLES
    )
