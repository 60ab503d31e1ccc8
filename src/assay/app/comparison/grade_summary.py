"""Cached summary of a run's grades and its rows with the widest gaps, both read in chunks.

A page reads only the rows that it shows, but agreement and the widest gaps need every grade of the
run. A separate thread reads all grades once, in chunks, so that memory does not grow with the run.
It keeps only sums, the `WIDEST` rows of each filter, and a sample of at most `SAMPLE` pairs for
alpha. The result is cached until a decision or a grade arrives. For a large run the result may be
older and then states the number of later decisions. Only one run is read at a time. Pages read
their rows again, so that rows that became pending again are not shown.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from cachetools import LRUCache

from assay.analysis import grade_rows
from assay.app.comparison.grade_rows import APART, BLIND, CompareBy, GradeFilter, own_panes
from assay.domain.identifiers import TrialKey
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.statistics.agreement import Alpha, krippendorff_alpha
from assay.statistics.intervals import wilson_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from assay.analysis.grade_rows import GradeRows
    from assay.app.comparison.grade_rows import GradeChunk, ResolvedGradeQuery
    from assay.store.opening import Store

WIDEST: Final = 1_000
"""Maximum number of rows that are sorted by the difference between grades; later rows stay in run
order.
"""

SAMPLE: Final = 20_000
"""Maximum number of score pairs for computing alpha; larger sets are sampled."""

KEPT: Final = 32
AT_ONCE_S: Final = 0.25
PATIENCE: Final = 20
"""Figures that took `t` > `AT_ONCE_S` seconds to compute are reused for `PATIENCE * t` seconds."""

SMALL: Final = 5_000
"""Runs with at most this many assessments count as small, and the page waits longer for their
figures.
"""

_WAIT_SMALL_S: Final = 5.0
_WAIT_LARGE_S: Final = 0.03
_PORTION: Final = 1_000
_SEED: Final = 20_250_101
_RESAMPLES: Final = 199


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeSummary:
    """Summary of all rows of a query over its first two panes (columns of graders).

    Attributes:
        n: number of rows with a score in both panes.
        alike, alike_ci95: fraction of these rows with scores at most `apart` from each other, and
            its 95% Wilson interval.
        gap, distance: mean of (second score - first score), and of its absolute value; scores range
            from 0 to 1.
        alpha: agreement beyond chance; None for `PEOPLE`, because approving a visible score is not
            agreement (see `blind`).
        sampled: number of rows used for alpha; None if all rows were used.
        blind: agreement of blind verdicts with the judge; only blind verdicts measure agreement
            with people.
        accepted: (number approved without a change, number decided); only for `PEOPLE`, otherwise
            None.
    """

    n: int
    alike: float | None
    alike_ci95: tuple[float, float] | None
    gap: float | None
    distance: float | None
    alpha: Alpha | None
    sampled: int | None
    blind: Alpha | None
    n_blind: int
    accepted: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeFigures:
    """Figures about all grades of a run.

    Attributes:
        of: number of matching rows, by filter.
        widest: up to `WIDEST` rows with the widest gaps, by filter, as (trial, candidate).
        waiting: number of rows left out because they await review.
        own: panes of single reviewers.
        newest: last review event that the figures include; `since` is the number of later
            decisions.
    """

    summary: GradeSummary
    of: Mapping[GradeFilter, int]
    widest: Mapping[GradeFilter, tuple[tuple[TrialKey, str], ...]]
    waiting: int
    own: tuple[str, ...]
    newest: int
    since: int = 0


def matching_rows(rows: GradeRows, only: GradeFilter, apart: float) -> NDArray[np.bool_]:
    gap = rows.gap
    match only:
        # As a float, 0.4 - 0.35 is slightly above 0.05, but it still means agreement.
        case GradeFilter.AGREE:
            return np.asarray(gap <= apart + 1e-9)
        case GradeFilter.DIFFER:
            return np.asarray(gap > apart + 1e-9)
        case GradeFilter.ERROR:
            return np.asarray(((rows.assessment >= 0) & np.isnan(rows.score)).any(axis=1))
        case _:
            return np.ones(len(gap), np.bool_)


@dataclass(slots=True)
class _Reading:
    done: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    figures: GradeFigures
    stamp: object
    took: float
    at: float


class GradeFiguresCache:
    """Cache of figures by query. Thread-safe; `close` stops a thread that is reading."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()  # protects the two dictionaries
        self._pass = threading.Lock()  # held while a run is read
        self._kept: LRUCache[object, _Kept] = LRUCache(maxsize=KEPT)
        self._readings: dict[object, _Reading] = {}
        self._closed = threading.Event()

    def of(self, resolved: ResolvedGradeQuery) -> GradeFigures | None:
        """Return recent figures from the cache, or read them; None while a large run is read for
        the first time.
        """
        key = _key_of(resolved)
        newest, tally = self._now(resolved)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and (kept.stamp == (newest, tally) or self._is_young(kept)):
                return self._as_of(kept.figures, newest)
            reading = self._readings.get(key)
            if reading is None and not self._closed.is_set():
                reading = self._readings[key] = _Reading()
                threading.Thread(
                    target=self._read, args=(key, resolved, reading), name="grades", daemon=True
                ).start()
        if reading is not None:
            reading.done.wait(_WAIT_SMALL_S if sum(n for _, n in tally) <= SMALL else _WAIT_LARGE_S)
            if reading.error is not None:
                raise reading.error
        with self._lock:
            kept = self._kept.get(key)
        return None if kept is None else self._as_of(kept.figures, newest)

    def close(self) -> None:
        """Stop a thread that is reading, and wait until it has ended."""
        self._closed.set()
        with self._lock:
            readings = list(self._readings.values())
        for reading in readings:
            reading.done.wait(10)

    def _is_young(self, kept: _Kept) -> bool:
        age = self._store.clock.monotonic() - kept.at
        return kept.took > AT_ONCE_S and age < PATIENCE * kept.took

    def _as_of(self, figures: GradeFigures, newest: int) -> GradeFigures:
        if newest == figures.newest:
            return figures
        return replace(
            figures, since=len(self._store.archive.trials.decided_since(figures.newest)[1])
        )

    def _now(self, resolved: ResolvedGradeQuery) -> tuple[int, tuple[tuple[str, int], ...]]:
        archive = self._store.archive
        runs = tuple(run.run for run in (resolved.run, resolved.other) if run is not None)
        tally = tuple(
            sorted(
                (str(state), n)
                for state, n in archive.assessments.tally(Selection(runs=runs)).items()
            )
        )
        return archive.trials.decided_since(None)[0], tally

    def _read(self, key: object, resolved: ResolvedGradeQuery, reading: _Reading) -> None:
        try:
            with self._pass:
                stamp, began = self._now(resolved), self._store.clock.monotonic()
                figures = self._whole(resolved, stamp[0])
                ended = self._store.clock.monotonic()
            if figures is not None:
                with self._lock:
                    self._kept[key] = _Kept(
                        figures=figures, stamp=stamp, took=ended - began, at=ended
                    )
        except Exception as error:  # raised in the waiting request, which must not wait forever
            reading.error = error
        finally:
            with self._lock:
                self._readings.pop(key, None)
            reading.done.set()

    def _whole(self, resolved: ResolvedGradeQuery, newest: int) -> GradeFigures | None:
        own = own_panes(resolved)
        sums, place = _Sums(resolved), None
        while not self._closed.is_set():
            trials = resolved.trials(after=place, limit=_PORTION)
            if not trials:
                return replace(sums.figures(), own=own, newest=newest)
            sums.add(resolved.chunk([trial.key for trial in trials], own))
            place = trials[-1].place
        return None


def _key_of(resolved: ResolvedGradeQuery) -> object:
    wanted = replace(
        resolved.wanted,
        run=resolved.run.run,
        beside="" if resolved.other is None else resolved.other.run,
        judge=resolved.judge,
        only=GradeFilter.ALL,
        by_gap=True,
    )
    return wanted, resolved.run.judges


class _Sums:
    def __init__(self, resolved: ResolvedGradeQuery) -> None:
        self._resolved = resolved
        self._n = self._alike = self._waiting = 0
        self._gap = self._distance = 0.0
        self._accepted = self._decided = 0
        self._of = dict.fromkeys(GradeFilter, 0)
        self._widest = {only: _Widest() for only in GradeFilter}
        self._pairs, self._blind = _Sample(), _Sample()

    def add(self, chunk: GradeChunk) -> None:
        rows, wanted = chunk.rows, self._resolved.wanted
        self._waiting += rows.waiting
        for only in GradeFilter:
            through = np.flatnonzero(matching_rows(rows, only, wanted.apart))
            self._of[only] += len(through)
            self._widest[only].add(rows.only(through), chunk.columns.candidates)
        if rows.score.shape[1] > 1:
            first, second = rows.score[:, 0], rows.score[:, 1]
            both = ~np.isnan(first) & ~np.isnan(second)
            apart = second[both] - first[both]
            self._n += len(apart)
            self._alike += int((np.abs(apart) <= wanted.apart + 1e-9).sum())
            self._gap += float(apart.sum())
            self._distance += float(np.abs(apart).sum())
            self._pairs.add(np.stack([first[both], second[both]], axis=1))
        if wanted.by is CompareBy.PEOPLE:
            states = grade_rows.state_of(chunk.columns, rows)
            decided = [states[int(key)] for key in np.unique(rows.assessment[:, 0]) if key >= 0]
            self._decided += len(decided)
            self._accepted += sum(state is AssessmentState.APPROVED for state in decided)
            self._blind.add(self._verdicts(chunk))

    def _verdicts(self, chunk: GradeChunk) -> NDArray[np.float64]:
        """Return (judge score, blind verdict) pairs of a chunk as an array of shape (pairs, 2)."""
        rows, names = chunk.rows, chunk.columns.candidates
        judged = {
            (int(key), names[code]): float(score)
            for key, code, score in zip(
                rows.assessment[:, 0], rows.candidate, rows.score[:, 0], strict=True
            )
            if not np.isnan(score)
        }
        by_key: dict[int, list[str]] = {}
        for key, name in judged:
            by_key.setdefault(key, []).append(name)
        pairs = [
            (judged[key, name], value)
            for (pane, key), scores in chunk.own.items()
            if pane.endswith(BLIND)
            for name in by_key.get(key, ())
            if (value := scores.of(self._resolved.written(name), self._resolved.wanted.criterion))
            is not None
        ]
        return np.array(pairs, np.float64).reshape(-1, 2)

    def figures(self) -> GradeFigures:
        n, people = self._n, self._resolved.wanted.by is CompareBy.PEOPLE
        alike = self._alike / n if n else None
        low, high = wilson_bounds(alike, n) if alike is not None else (None, None)
        return GradeFigures(
            summary=GradeSummary(
                n=n,
                alike=alike,
                alike_ci95=None if low is None or high is None else (float(low), float(high)),
                gap=self._gap / n if n else None,
                distance=self._distance / n if n else None,
                alpha=None if people or not n else self._pairs.alpha(),
                sampled=SAMPLE if not people and n > SAMPLE else None,
                blind=self._blind.alpha() if self._blind.seen else None,
                n_blind=self._blind.seen,
                accepted=(self._accepted, self._decided) if people else None,
            ),
            of=self._of,
            widest={only: widest.listed() for only, widest in self._widest.items()},
            waiting=self._waiting,
            own=(),
            newest=0,
        )


class _Widest:
    """The rows with the widest gaps.

    Equal gaps keep the order of the run; rows without a gap come last.
    """

    def __init__(self) -> None:
        self._gap = np.empty(0)
        self._trial = np.empty(0, np.int64)
        self._candidate = np.empty(0, np.int64)
        self._names: tuple[str, ...] = ()

    def add(self, rows: GradeRows, names: tuple[str, ...]) -> None:
        """Add rows.

        `names` maps codes in the rows to names, and is the same for every chunk of a run.
        """
        # Gaps are at least 0, so rows without one come last.
        gap = np.concatenate([self._gap, np.nan_to_num(rows.gap, nan=-1.0)])
        best = np.argsort(-gap, kind="stable")[:WIDEST]
        self._gap, self._names = gap[best], names
        self._trial = np.concatenate([self._trial, rows.trial])[best]
        self._candidate = np.concatenate([self._candidate, rows.candidate])[best]

    def listed(self) -> tuple[tuple[TrialKey, str], ...]:
        return tuple(
            (TrialKey(int(key)), self._names[code])
            for key, code in zip(self._trial, self._candidate, strict=True)
        )


class _Sample:
    """Uniform random sample of at most `SAMPLE` pairs of scores."""

    def __init__(self) -> None:
        self.seen = 0
        self._rng = np.random.default_rng(_SEED)
        self._pairs = np.empty((0, 2))
        self._lot = np.empty(0)

    def add(self, pairs: NDArray[np.float64]) -> None:
        self.seen += len(pairs)
        self._pairs = np.concatenate([self._pairs, pairs])
        # Every pair gets a random number and the smallest are kept: a uniform sample in one pass
        # and constant memory.
        self._lot = np.concatenate([self._lot, self._rng.random(len(pairs))])
        if len(self._lot) > SAMPLE:
            drawn = np.sort(np.argpartition(self._lot, SAMPLE)[:SAMPLE])
            self._pairs, self._lot = self._pairs[drawn], self._lot[drawn]

    def alpha(self) -> Alpha:
        units = np.repeat(np.arange(len(self._pairs)), 2)
        rng = np.random.default_rng(_SEED)
        return krippendorff_alpha(
            units, self._pairs.ravel(), tolerance=APART, rng=rng, resamples=_RESAMPLES
        )
