"""Figures of the statistics page: an overview that follows every decision, details, and single
trials.

Scores, comparisons, ranks and the task matrix come from cells (`cell_cache`), which are read again
after a decision. Diagnostics and single trials need every row.
If reading all rows takes long, the page shows cached details with the number of decisions made
since. Only one thread at a time uses a selection's cells. Every record contains the number of the
last event that it includes.
"""

from __future__ import annotations

import pickle
import zlib
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from cachetools import LRUCache

from assay.analysis.anytime import Anytime, Looks, anytime_over_tasks
from assay.app.calibration_status import uncalibrated_judges
from assay.app.review.attention import attention_of
from assay.app.review.protocol import with_achieved
from assay.app.statistics import basis as basis_, charts, results
from assay.app.statistics.cell_cache import KeptCells
from assay.app.statistics.pooling import refuse_different
from assay.app.statistics.run_choice import choose
from assay.app.statistics.verdicts import rates_of
from assay.domain.attention import Attention
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import RunId, TrialKey, shown_trial
from assay.domain.run_choice import runs_read
from assay.domain.selection import Excluded, Selection, TrialRow
from assay.report import wording
from assay.report.charts.scores import scores as chart_scores
from assay.statistics.comparisons import compare as compared
from assay.statistics.factorize import places
from assay.statistics.scopes import TASKS_LIKE_THESE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.analysis.columns import TaskLabel
    from assay.analysis.verdict_rates import VerdictRates
    from assay.app.settings import Settings
    from assay.domain.digest import JsonValue
    from assay.domain.review import Approvals
    from assay.domain.run_choice import ChosenRuns, RunDifference, RunsRead
    from assay.report.charts.chart import Chart
    from assay.statistics.arrays import Ints
    from assay.statistics.comparisons import Comparison
    from assay.statistics.reports import Report
    from assay.statistics.warnings import Caution
    from assay.store.opening import Store

SCORES_KEPT: Final = 1_000_000
"""Maximum number of scores in all cached selections; a million scores take about 40 MB."""

LEAST_SIZE: Final = 25_000
"""Size of a small selection in the cache, in scores; at most `SCORES_KEPT / LEAST_SIZE` selections
stay in memory.

With a limit on their number alone, six pages about single tasks displaced the cells of whole
suites, which take seconds to read.
"""

OVERVIEWS_KEPT: Final = 6
"""Maximum number of cached overviews of a selection, one for each pair of candidates, scope and
margin.
"""

DETAILS_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of all cached details together, whatever selections they belong to.

Details hold each task's moments for every criterion, judge and language: 20 MB for 25,000 trials
with three candidates. Cached as they were, a server's memory rose from 144 to 838 MB. Compressed
they take 0.4 MB, and 40 ms to use again.
"""

AT_ONCE_S: Final = 0.25
"""Details that take at most this many seconds to compute are computed again after every decision.
"""

PAIRS_KEPT: Final = 3
"""Maximum number of cached pairs in a selection; a pair needs its cells if the two candidates are
in different runs.
"""

PATIENCE: Final = 20
"""Details that took `t` > `AT_ONCE_S` seconds to compute are reused for up to `PATIENCE * t`
seconds.
"""

_SEED: Final = 20240607


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsOverview:
    """First part of the statistics page, computed from cached cells.

    Attributes:
        contrast: the requested comparison, or that of the two highest-ranked candidates; None with
            fewer than two candidates.
        anytime: evidence for the scope `tasks_like_these`, valid while trials are added; the
            details have the other scope.
        margin: the requested margin, otherwise the margin of the runs.
        tasks: label of each task by name, in the order of the matrix.
        approvals: number of counted grades that people approved, by how each decision came about.
        incomplete: number of trials without a counted score (rejected, failed or pending), by
            candidate. Empty if every trial has a score or the runs have different candidates.
        newest: last review event that the figures include.
        rates: rates of each candidate's verdicts; None if the runs give no verdicts.
        attention: signs of careless reviewing among decisions on these runs; on long reviews, at
            most seconds old.
        read: the runs as the page states them.
    """

    selection: Selection
    runs: tuple[str, ...]
    read: RunsRead
    report: Report
    contrast: Comparison | None
    verdict: str | None
    anytime: Anytime | None
    looks: Looks | None
    unfinished: str | None
    excluded: Excluded
    n_trials: int
    incomplete: Mapping[str, int]
    cautions: tuple[Caution, ...]
    margin: float | None
    approvals: Approvals
    running: bool
    tasks: Mapping[str, TaskLabel]
    protocols: tuple[Mapping[str, JsonValue], ...]
    newest: int
    rates: VerdictRates | None
    attention: Attention


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsDetails:
    """Second part of the statistics page, computed from every row: complete `stats`, `compare` and
    `rank`, and single trials.

    `since` is the number of decisions made after the rows were read.
    """

    standing: results.CandidateScores
    contrast: results.ComparisonResult | None
    ranks: results.RankingResult
    scores: Chart
    newest: int
    read_at: str
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonChoice:
    """The pair to compare, with `scope` and `margin` as in `results.compare`.

    The highest-ranked other candidate stands for a missing name.
    """

    a: str | None = None
    b: str | None = None
    scope: str | None = None
    margin: float | None = None


LEADING_PAIR: Final = ComparisonChoice()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTrial:
    """A trial with its counted scores by candidate; without scores if the trial does not count."""

    row: TrialRow
    scores: Mapping[str, float]


class LiveReports:
    """Caches statistics pages by selection of runs. Thread-safe."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._lock = Lock()  # protects the dictionary, not its values
        self._kept: LRUCache[Selection, _Kept] = LRUCache(maxsize=SCORES_KEPT, getsizeof=_scores_of)
        self._details = _Details()

    def of(
        self, selection: Selection | ChosenRuns, pair: ComparisonChoice = LEADING_PAIR
    ) -> StatisticsOverview:
        """Return the overview of a selection.

        Raises `UnknownName` for an unknown run or candidate, and `InputError` for a candidate
        against itself, an invalid margin or runs that may not be pooled.
        """
        chosen = choose(self._store, selection, pair.a, pair.b)
        kept = self._at(chosen.selection)
        with kept.lock:
            overview = kept.overview(chosen, pair)
        self._keep(chosen.selection, kept)
        return overview

    def behind(
        self, selection: Selection | ChosenRuns, pair: ComparisonChoice = LEADING_PAIR
    ) -> StatisticsDetails:
        """Return a selection's details; reads them again if that is quick or the cached details are
        old.
        """
        chosen = choose(self._store, selection, pair.a, pair.b)
        return self._at(chosen.selection).behind(chosen, pair)

    def _at(self, selection: Selection) -> _Kept:
        with self._lock:
            page = self._kept.get(selection)
            if page is None:
                page = self._kept[selection] = _Kept(
                    self._store, self._settings, selection, self._details
                )
            return page

    def _keep(self, selection: Selection, page: _Kept) -> None:
        """Keep a page by the size that it has now, which is not known before its cells are read."""
        with self._lock:
            self._kept[selection] = page


def _scores_of(page: _Kept) -> int:
    # The newest page is always kept, even if it is larger than the cache.
    return min(max(page.n_scores, LEAST_SIZE), SCORES_KEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Compressed details: their last event, the state of cells and calibrations, and the duration
    and end of reading.
    """

    packed: bytes
    newest: int
    state: tuple[int, int]
    took: float
    at: float

    def details(self) -> StatisticsDetails:
        # this process packed them
        unpacked: StatisticsDetails = pickle.loads(zlib.decompress(self.packed))
        return unpacked


def _packed(details: StatisticsDetails) -> bytes:
    return zlib.compress(pickle.dumps(details, pickle.HIGHEST_PROTOCOL), level=1)


class _KeptAttention:
    """Signs of careless reviewing in some runs; reading 100,000 decisions again takes a second, so
    they are cached.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._signs = Attention()
        self._runs: tuple[str, ...] | None = None
        self._newest = 0
        self._took = self._at = 0.0

    def now(self, runs: tuple[str, ...]) -> Attention:
        """Return the signs, read again if there are new observations, unless reading them took long
        and was not long ago.
        """
        clock = self._store.clock
        newest = self._store.observations.newest_id()
        is_same = runs == self._runs and newest == self._newest
        is_recent = self._took > AT_ONCE_S and clock.monotonic() - self._at < PATIENCE * self._took
        if is_same or (runs == self._runs and is_recent):
            return self._signs
        began = clock.monotonic()
        self._signs = attention_of(self._store, [RunId(run) for run in runs])
        self._runs, self._newest, self._at = runs, newest, clock.monotonic()
        self._took = self._at - began
        return self._signs


class _Details:
    """Details of all selections, bounded by their size. Thread-safe.

    `turn` is held while details are read, so that only one selection's rows are in memory at a
    time.
    """

    def __init__(self) -> None:
        self.turn = Lock()
        self._lock = Lock()
        self._reads: LRUCache[tuple[object, ...], _Read] = LRUCache(DETAILS_BYTES, getsizeof=_size)

    def get(self, key: tuple[object, ...]) -> _Read | None:
        with self._lock:
            return self._reads.get(key)

    def put(self, key: tuple[object, ...], read: _Read) -> None:
        with self._lock:
            self._reads[key] = read


def _size(read: _Read) -> int:
    # The newest details are always kept, even if they are larger than the cache.
    return min(len(read.packed), DETAILS_BYTES)


class _Kept:
    """The cached statistics page of one selection."""

    _numbers: ClassVar = count()

    def __init__(
        self, store: Store, settings: Settings, selection: Selection, details: _Details
    ) -> None:
        self.lock = Lock()  # protects the cells, never held for long
        self._details = details
        # a page that is made anew does not use details of the page before it
        self._number = next(self._numbers)
        self._store = store
        self._settings = settings
        self._selection = selection
        self._cells: KeptCells | None = None
        self._rules: (
            tuple[
                tuple[int, int],
                basis_.SharedSettings,
                tuple[Caution, ...],
                tuple[RunDifference, ...],
            ]
            | None
        ) = None
        self._attention = _KeptAttention(store)
        self._of_pair: LRUCache[tuple[str, str], tuple[int, bool, _Kept | None]] = LRUCache(
            maxsize=PAIRS_KEPT
        )
        self._overviews: LRUCache[tuple[object, ...], StatisticsOverview] = LRUCache(
            maxsize=OVERVIEWS_KEPT
        )

    @property
    def n_scores(self) -> int:
        """Number of counted scores in the cells; 0 before they are read."""
        return (
            0 if self._cells is None else self._cells.n_trials * len(self._cells.cells.candidates)
        )

    def overview(self, chosen: ChosenRuns, pair: ComparisonChoice) -> StatisticsOverview:
        cells, rules, cautions, differing = self._now()
        read = runs_read(chosen, cells.runs, cells.n_trials, differences=differing)
        excluded = self._store.archive.scores.excluded(self._selection)
        approvals = basis_.approvals_of(self._store, self._settings, self._selection)
        running = self._store.archive.runs.totals(self._selection).going_on
        # With 50 candidates and 1,000 tasks, ranking and comparison take 35 ms, and most visits
        # follow no decision.
        key = (
            pair,
            cells.newest,
            cells.arrivals,
            self._measured(),
            excluded,
            approvals,
            running,
            read,
        )
        known = self._overviews.get(key)
        if known is None:
            known = self._overviews[key] = self._overview(
                cells, rules, cautions, excluded, approvals, chosen, read, pair, running=running
            )
        # An opinion is no decision, so that no cached figure shows that it changed what the review
        # achieved.
        signs = self._attention.now(cells.runs)
        return replace(
            known, protocols=with_achieved(self._store.decisions, known.protocols), attention=signs
        )

    def _overview(
        self,
        cells: KeptCells,
        rules: basis_.SharedSettings,
        cautions: tuple[Caution, ...],
        excluded: Excluded,
        approvals: Approvals,
        chosen: ChosenRuns,
        read: RunsRead,
        pair: ComparisonChoice,
        *,
        running: bool,
    ) -> StatisticsOverview:
        margin = rules.margin if pair.margin is None else pair.margin
        report = cells.report(scope=pair.scope, margin=margin)
        a, b = self._pair(report, pair.a, pair.b)
        still_open = basis_.StillOpen(
            running=running, waiting=excluded.awaiting_review + excluded.partly
        )
        contrast, own, met = None, None, True
        if a is not None and b is not None:
            met, kept = (True, None) if rules.same_candidates else self._runs_of_pair(cells, a, b)
            own = (
                None
                if kept is None
                else kept.overview(kept.as_part_of(chosen), replace(pair, a=a, b=b))
            )
            rng = np.random.default_rng(_SEED)
            contrast = (
                own.contrast if own else compared(cells.cells, a, b, pair.scope, margin, rng=rng)
            )
        shows_open = still_open.any and met
        unfinished = looks = anytime = None
        if shows_open:
            p_value = contrast is not None and contrast.p_value is not None
            ranges = any(estimate.ci95 is not None for estimate in report.estimates)
            unfinished = wording.unfinished(
                running=running, pending=still_open.waiting, p_value=p_value, ranges=ranges
            )
            looks = basis_.looks_now(rules.looks, cells.n_trials, excluded)
            if contrast is not None and contrast.scope == TASKS_LIKE_THESE:
                anytime = anytime_over_tasks(contrast)
        warnings = (
            *basis_.about_runs(read),
            *cells.cautions,
            *basis_.regraded(self._store, self._selection),
            *cautions,
            *report.ranking.warnings,
            *(contrast.warnings if contrast else ()),
        )
        verdict = None if contrast is None else results.verdict_of(self._store, contrast, read)
        return StatisticsOverview(
            selection=self._selection,
            runs=cells.runs,
            read=read,
            report=report,
            contrast=contrast,
            verdict=own.verdict if own else verdict,
            anytime=own.anytime if own else anytime,
            looks=own.looks if own else looks,
            unfinished=own.unfinished if own else unfinished,
            excluded=excluded,
            n_trials=cells.n_trials,
            incomplete=self._incomplete(report, cells.n_trials, rules)
            if rules.same_candidates
            else {},
            cautions=tuple(
                {(caution.code, caution.text): caution for caution in warnings}.values()
            ),
            margin=margin,
            approvals=approvals,
            running=running,
            tasks=cells.tasks,
            protocols=rules.protocols,
            newest=cells.newest,
            rates=rates_of(self._store, self._selection),
            attention=Attention(),
        )

    def _runs_of_pair(self, cells: KeptCells, a: str, b: str) -> tuple[bool, _Kept | None]:
        """Return (True if two candidates share a suite, a page for the pair if they share only some
        of the runs).
        """
        known = self._of_pair.get((a, b))
        if known is None or known[0] != cells.arrivals:
            of_both = replace(self._selection, compared=(a, b))
            n = self._store.archive.runs.totals(of_both).runs
            apart = 0 < n < len(cells.runs)
            known = self._of_pair[a, b] = (
                cells.arrivals,
                n > 0,
                _Kept(self._store, self._settings, of_both, self._details) if apart else None,
            )
        return known[1:]

    def _incomplete(
        self, report: Report, n_trials: int, rules: basis_.SharedSettings
    ) -> dict[str, int]:
        """Count each candidate's trials without a counted score; empty if every trial has one."""
        counted = {
            str(candidate.candidate): candidate.estimate.n_trials
            for candidate in report.ranking.candidates
        }
        if all(n == n_trials for n in counted.values()):
            return {}
        whole = dict.fromkeys(counted, n_trials)
        # Without this, trials in which a candidate took no part counted as rejected, failed or
        # pending.
        took_part = (
            whole if rules.all_asked else self._store.archive.scores.took_part(self._selection)
        )
        lacking = {name: max(0, took_part.get(name, 0) - n) for name, n in counted.items()}
        return lacking if any(lacking.values()) else {}

    def as_part_of(self, chosen: ChosenRuns) -> ChosenRuns:
        """Return the choice of runs, narrowed to the runs of this page's pair."""
        return replace(chosen, selection=self._selection)

    def behind(self, chosen: ChosenRuns, pair: ComparisonChoice) -> StatisticsDetails:
        """Return the details, or the cached ones while another thread reads new details."""
        with self.lock:
            cells, rules, _, _ = self._now()
            a, b = self._pair(cells.report(scope=pair.scope), pair.a, pair.b)
            newest, state = cells.newest, (cells.arrivals, self._measured())
            apart = (
                a is not None and b is not None and self._runs_of_pair(cells, a, b) != (True, None)
            )
        margin = rules.margin if pair.margin is None else pair.margin
        key = (self._number, a, b, pair.scope, margin)
        known = self._details.get(key)
        if known is not None and (
            self._is_good(known, newest, state) or self._details.turn.locked()
        ):
            return self._as_of_now(known.details())
        # Outside the lock of the cells, so that reading every row does not hold up the first part
        # of the page.
        with self._details.turn:
            known = self._details.get(key)
            if known is not None and self._is_good(known, newest, state):
                return self._as_of_now(known.details())
            began = self._store.clock.monotonic()
            details = self._read(chosen, replace(pair, a=a, b=b), newest, apart=apart)
            ended = self._store.clock.monotonic()
            read = _Read(
                packed=_packed(details),
                newest=details.newest,
                state=state,
                took=ended - began,
                at=ended,
            )
            self._details.put(key, read)
            return details

    def _is_good(self, known: _Read, newest: int, state: tuple[int, int]) -> bool:
        """True if the cached details are up to date, or if reading them again now would take too
        long.
        """
        if newest <= known.newest and state == known.state:
            return True
        return (
            known.took > AT_ONCE_S
            and self._store.clock.monotonic() - known.at < PATIENCE * known.took
        )

    def _as_of_now(self, details: StatisticsDetails) -> StatisticsDetails:
        _, trials = self._store.archive.trials.decided_since(details.newest)
        return replace(details, since=len(trials))

    def _read(
        self, chosen: ChosenRuns, pair: ComparisonChoice, newest: int, *, apart: bool
    ) -> StatisticsDetails:
        selection = self._selection
        columns = self._store.archive.scores.columns(selection)
        basis = basis_.basis_from(self._store, self._settings, chosen, columns)
        reviews = self._store.archive.scores.review_columns(selection)
        contrast = None
        if pair.a is not None and pair.b is not None:
            contrast = results.compare(
                self._store,
                self._settings,
                chosen,
                pair.a,
                pair.b,
                scope=pair.scope,
                margin=pair.margin,
                basis=None if apart else basis,
                reviews=None if apart else reviews,
            )
        codes, n_codes = places(columns.trial)
        names = np.zeros(n_codes, dtype=np.int64)
        names[codes] = columns.trial
        return StatisticsDetails(
            standing=results.stats(
                self._store, self._settings, chosen, basis=basis, reviews=reviews
            ),
            contrast=contrast,
            ranks=results.rank(
                self._store,
                self._settings,
                chosen,
                scope=pair.scope,
                margin=pair.margin,
                basis=basis,
                reviews=reviews,
            ),
            scores=charts.labelled(
                chart_scores(basis.table, trials=partial(_trial_name, names)), basis.read
            ),
            newest=newest,
            read_at=self._store.clock.now(),
            since=0,
        )

    def _now(
        self,
    ) -> tuple[KeptCells, basis_.SharedSettings, tuple[Caution, ...], tuple[RunDifference, ...]]:
        if self._cells is None:
            self._cells = KeptCells(self._store.archive, self._selection)
        else:
            self._cells.refresh()
        cells = self._cells
        # The key includes calibrations: without them, a warning about an uncalibrated judge was
        # still shown after its calibration.
        state = (cells.arrivals, self._measured())
        if self._rules is None or self._rules[0] != state:
            rules = basis_.shared_settings(self._store, cells.runs, self._selection.criteria)
            stamped = uncalibrated_judges(self._store, cells.runs, cells.graded_by)
            differing = refuse_different(self._store, self._selection, cells.runs)
            self._rules = (state, rules, (*rules.cautions, *stamped), differing)
        return cells, *self._rules[1:]

    def _measured(self) -> int:
        """Return the newest calibration's number; it tells whether warnings about calibration may
        have changed.
        """
        return max(self._store.calibrations.newest_numbers().values(), default=0)

    def _pair(self, report: Report, a: str | None, b: str | None) -> tuple[str | None, str | None]:
        """Return the names of the two candidates to compare; the highest-ranked other candidate
        replaces a missing name.
        """
        ranked = [str(candidate.candidate) for candidate in report.ranking.candidates]
        by_name = {name.lower(): name for name in ranked}
        for name in (a, b):
            if name is not None and name.lower() not in by_name:
                known = f"The selected runs have: {', '.join(ranked) or 'none'}."
                raise UnknownName("candidate", name, tuple(ranked), remedy=known)
        others = (name for name in ranked if name.lower() != (b or "").lower())
        first = next(others, None) if a is None else by_name[a.lower()]
        second = (
            by_name[b.lower()]
            if b is not None
            else next((name for name in ranked if name != first), None)
        )
        if first is not None and first == second:
            raise InputError(
                "a, b", f"{first!r} is compared with itself.", remedy="Name two candidates."
            )
        return first, second


def _trial_name(keys: Ints, code: int) -> str:
    return shown_trial(int(keys[code]))


def trials_behind(
    store: Store,
    selection: Selection,
    *,
    candidate: str | None = None,
    number: int | None = None,
    start: int = 0,
    limit: int = 100,
) -> tuple[tuple[CountedTrial, ...], bool]:
    """Return a page of trials with counted scores, filtered by candidate and trial number; True if
    more trials follow.
    """
    trials = store.archive.trials.matching(selection, candidate=candidate, number=number)
    rows = list(islice(trials, start, start + limit + 1))
    shown = rows[:limit]
    keys: tuple[TrialKey, ...] = tuple(row.key for row in shown)
    counted = store.archive.scores.of_trials(selection, keys) if keys else ()
    scores = {trial.trial: trial.scores for trial in counted}
    # If a candidate shares its name with others, its scores are stored under that name.
    shared = (
        None if candidate is None else store.archive.scores.candidates(selection).get(candidate)
    )
    if candidate is not None and shared not in (None, candidate):
        scores = {key: {candidate: own[shared]} for key, own in scores.items() if shared in own}
    return tuple(CountedTrial(row=row, scores=scores.get(int(row.key), {})) for row in shown), len(
        rows
    ) > limit
