"""Queries for a run's grades: look up names in the store and read rows in chunks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.analysis import grade_rows
from assay.analysis.grade_rows import MAX_PANES, GradeRows
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import AssessmentKey, RunId, TrialKey, folded
from assay.domain.observations import BlindVerdict, GradesShown, Observation, ObservationKind
from assay.domain.opinions import standing_by_item
from assay.domain.selection import Selection
from assay.domain.suite import PERSON

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assay.analysis.columns import ReviewColumns
    from assay.domain.decisions import Place
    from assay.domain.graded_trials import GradedRun, PlacedTrial
    from assay.store.opening import Store

APART: Final = 0.05
"""Default for the largest difference between two scores that agree."""

BLIND: Final = ", blind first"
OPINION: Final = ", one of two"
"""Name suffixes of panes with a reviewer's own scores."""

PERSONS: Final = "person"
"""Name of the pane with the scores that people approved or entered."""


class CompareBy(StrEnum):
    """The graders that a comparison shows in its columns."""

    JUDGES = "judges"
    ATTEMPTS = "attempts"
    PEOPLE = "people"


class GradeFilter(StrEnum):
    """The rows to show.

    `ERROR` selects rows without a score from a grader, and rows that a person rejected.
    """

    ALL = "all"
    AGREE = "agree"
    DIFFER = "differ"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeQuery:
    """A query for a run's grades.

    Attributes:
        run: run with the grades.
        beside: second run for `JUDGES`: a regrade of the same responses, or another run of the same
            tasks.
        judge: judge for `ATTEMPTS` and `PEOPLE`; if empty, the first judge with such grades.
        task, candidate: show only this task or candidate; if empty, all.
        criterion: show scores on this criterion; if empty, the weighted score over all criteria.
        apart: largest difference up to which two scores agree, 0 to 1.
        by_gap: True to sort by the widest gap, False to keep the order of the run.
    """

    run: str
    by: CompareBy = CompareBy.JUDGES
    beside: str = ""
    judge: str = ""
    task: str = ""
    candidate: str = ""
    criterion: str = ""
    apart: float = APART
    only: GradeFilter = GradeFilter.ALL
    by_gap: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnScores:
    """One reviewer's own scores for an assessment, by candidate and by (candidate, criterion)."""

    whole: Mapping[str, float | None]
    scores: Mapping[Place, float]
    reason: str = ""

    def of(self, candidate: str, criterion: str) -> float | None:
        """Return a candidate's overall score, or its score on `criterion`; None if the reviewer
        gave no such score.
        """
        if not criterion:
            return self.whole.get(candidate)
        return self.scores.get((candidate, criterion))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradeChunk:
    """Rows of some trials in the order of the run, with the names for the codes in the rows.

    `own` contains reviewers' own scores by (pane, assessment); each pane is the column of one
    grader.
    """

    columns: ReviewColumns
    rows: GradeRows
    own: Mapping[tuple[str, int], OwnScores]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolvedGradeQuery:
    """A query after its names were looked up in the store.

    Attributes:
        run, other: runs with the grades; `other` is used only for `CompareBy.JUDGES`.
        judge: judge for `ATTEMPTS` and `PEOPLE`; empty for `JUDGES`.
        panes: names of the graders' columns from left to right, without those of single reviewers.
        observed: True if at least one reviewer gave own scores in this run.
    """

    store: Store
    wanted: GradeQuery
    run: GradedRun
    other: GradedRun | None
    judge: str = ""
    panes: tuple[str, ...] = ()
    observed: bool = False

    def trials(self, *, after: tuple[int, int] | None, limit: int) -> tuple[PlacedTrial, ...]:
        return self.store.archive.trials.graded(
            self.run.run,
            task=self.wanted.task,
            again=self.wanted.by is CompareBy.ATTEMPTS,
            after=after,
            limit=limit,
        )

    def chunk(self, trials: Sequence[TrialKey], own: Sequence[str]) -> GradeChunk:
        """Return the rows of some trials; `own` lists extra panes for single reviewers."""
        archive, wanted = self.store.archive, self.wanted
        criteria = (wanted.criterion,) if wanted.criterion else ()
        # Each run is read separately, because in one selection a regrade replaces the grades it is
        # compared with.
        columns = archive.scores.review_columns(
            Selection(runs=(self.run.run,), criteria=criteria), trials=trials
        )
        if self.other is not None:
            paired = archive.trials.paired(self.other.run, trials)
            other_columns = archive.scores.review_columns(
                Selection(runs=(self.other.run,), criteria=criteria), trials=list(paired)
            )
            columns = grade_rows.together(
                columns,
                other_columns,
                trials={int(key): int(mine) for key, mine in paired.items()},
                ends=_ends(self),
            )
        given: Mapping[tuple[str, int], OwnScores] = {}
        if wanted.by is CompareBy.JUDGES:
            rows = grade_rows.of_judges(columns, self.panes)
            if self.other is not None:
                rows = rows.only((rows.assessment >= 0).sum(axis=1) > 1)
        elif wanted.by is CompareBy.ATTEMPTS:
            rows = grade_rows.of_attempts(columns, self.judge, most=len(self.panes))
        else:
            rows = grade_rows.of_people(columns, self.judge)
            if self.observed:
                given = own_scores(
                    self.store, assessments=[int(key) for key in rows.assessment[:, 0]]
                )
                rows = self._with_own(columns, rows, given, own)
        if wanted.candidate:
            rows = rows.only(rows.candidate == columns.candidates.index(wanted.candidate))
        place = {int(key): at for at, key in enumerate(trials)}
        order = np.lexsort(
            (rows.candidate, np.array([place[int(key)] for key in rows.trial], np.int64))
        )
        return GradeChunk(columns=columns, rows=rows.only(order), own=given)

    def _with_own(
        self,
        columns: ReviewColumns,
        rows: GradeRows,
        given: Mapping[tuple[str, int], OwnScores],
        panes: Sequence[str],
    ) -> GradeRows:
        for pane in panes:
            score = np.full((len(rows.task), 1), np.nan)
            keys = np.full((len(rows.task), 1), -1, np.int64)
            for place, key in enumerate(rows.assessment[:, 0].tolist()):
                if (scores := given.get((pane, key))) is not None:
                    value = scores.of(
                        self.written(columns.candidates[rows.candidate[place]]),
                        self.wanted.criterion,
                    )
                    keys[place], score[place] = key, np.nan if value is None else value
            rows = replace(
                rows,
                panes=(*rows.panes, pane),
                score=np.hstack([rows.score, score]),
                assessment=np.hstack([rows.assessment, keys]),
            )
        return rows

    def written(self, candidate: str) -> str:
        return self.run.written.get(candidate, candidate)


def resolve_query(store: Store, wanted: GradeQuery) -> ResolvedGradeQuery:
    """Look up the names in a query; raises `UnknownName` for an unknown run, judge, task, candidate
    or criterion.
    """
    archive = store.archive
    run, other = archive.runs.graded(_run(store, wanted.run)), None
    if wanted.beside and wanted.by is CompareBy.JUDGES:
        other = archive.runs.graded(_run(store, wanted.beside))
        if other.run == run.run:
            raise InputError("beside", "is the same run.", remedy="Choose another run, or none.")
    judges = tuple(name for name in run.judges if name != PERSON)
    if wanted.by is not CompareBy.JUDGES and not judges:
        raise InputError(
            f"run {run.run}",
            "has no grades by a judge.",
            remedy="Choose a run that a model graded.",
        )
    wanted = replace(
        wanted,
        judge=_known("judge", wanted.judge, judges),
        candidate=_known("candidate", wanted.candidate, run.candidates),
        criterion=_known("criterion", wanted.criterion, run.criteria),
    )
    run = replace(run, judges=judges)
    resolved = ResolvedGradeQuery(store=store, wanted=wanted, run=run, other=other)
    if wanted.task:
        resolved.trials(after=None, limit=1)  # raises UnknownName for an unknown task
    if wanted.by is CompareBy.JUDGES:
        return replace(resolved, panes=_judges_panes(resolved))
    if wanted.by is CompareBy.ATTEMPTS:
        judge = wanted.judge or next((name for name in judges if name in run.attempts), judges[0])
        most = min(MAX_PANES, run.attempts.get(judge, 0) + 1)
        return replace(resolved, judge=judge, panes=tuple(f"attempt {n + 1}" for n in range(most)))
    judge = wanted.judge or judges[0]
    some = store.observations.read(
        kinds=(ObservationKind.VERDICT, ObservationKind.OPINION), run=run.run, newest=1
    )
    return replace(resolved, judge=judge, panes=(judge, PERSONS), observed=bool(some))


def _run(store: Store, text: str) -> RunId:
    (summary,) = store.archive.runs.matching(Selection(runs=(text,)))
    return summary.id


def own_panes(resolved: ResolvedGradeQuery) -> tuple[str, ...]:
    """Return the panes for single reviewers.

    Reviewers with the most own scores come first; the number is limited.
    """
    if not resolved.observed:
        return ()
    seen = resolved.store.observations.read(
        kinds=(ObservationKind.VERDICT, ObservationKind.OPINION), run=resolved.run.run
    )
    keys = list(dict.fromkeys(int(observation.assessment) for observation in seen))
    counts: Counter[str] = Counter()
    for start in range(0, len(keys), 500):
        counts.update(
            pane for pane, _ in own_scores(resolved.store, assessments=keys[start : start + 500])
        )
    return tuple(pane for pane, _ in counts.most_common(MAX_PANES - len(resolved.panes)))


def own_scores(store: Store, *, assessments: Iterable[int]) -> dict[tuple[str, int], OwnScores]:
    """Return reviewers' own scores by (pane, assessment), from blind verdicts and double
    reviews.
    """
    by_pane: dict[tuple[str, int], OwnScores] = {}
    shown: set[tuple[str, int]] = set()
    opinions: list[Observation] = []
    keys = [AssessmentKey(key) for key in assessments if key >= 0]
    if not keys:
        return by_pane
    kinds = (ObservationKind.SHOWN, ObservationKind.VERDICT, ObservationKind.OPINION)
    for observation in store.observations.read(kinds=kinds, assessments=keys):
        mark, body = (observation.reviewer, int(observation.assessment)), observation.body
        if isinstance(body, GradesShown):
            shown.add(mark)
        elif isinstance(body, BlindVerdict):
            # A verdict given after the judge's grades were shown measures acceptance, not
            # agreement.
            if mark not in shown:
                by_pane[f"{observation.reviewer}{BLIND}", mark[1]] = OwnScores(
                    whole=body.overall, scores=body.scores
                )
        else:
            opinions.append(observation)
    for key, standing in standing_by_item(opinions).items():
        for name, opinion in standing.items():
            given = opinion.given
            words = " ".join(part for part in (given.reason, given.note) if part)
            by_pane[f"{name}{OPINION}", int(key)] = OwnScores(
                whole=given.result, scores=given.corrections, reason=words
            )
    return by_pane


def _judges_panes(resolved: ResolvedGradeQuery) -> tuple[str, ...]:
    if resolved.other is None:
        return resolved.run.judges[:MAX_PANES]
    other_judges = tuple(name for name in resolved.other.judges if name != PERSON)
    mine = resolved.run.judges[: max(MAX_PANES // 2, MAX_PANES - len(other_judges))]
    own_end, other = _ends(resolved)
    return (
        *(name + own_end for name in mine),
        *(name + other for name in other_judges[: MAX_PANES - len(mine)]),
    )


def _ends(resolved: ResolvedGradeQuery) -> tuple[str, str]:
    """Return suffixes that distinguish judges with the same name in two runs."""
    other = RunId("") if resolved.other is None else resolved.other.run
    return f" · {resolved.run.run}", f" · {other}"


def _known(kind: str, name: str, known: Sequence[str]) -> str:
    """Return a name as stored, ignoring case; an empty name stays empty."""
    if not name:
        return name
    match = next((candidate for candidate in known if folded(candidate) == folded(name)), None)
    if match is None:
        listed = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
        raise UnknownName(
            kind, name, known, remedy=f"This run has: {listed}." if known else "This run has none."
        )
    return match
