"""Rubrics: their runs, changes between versions, and statistics of each criterion.

A rubric is identified by its digest. A suite's rubrics, in the order of first use, are its
versions. Statistics of a criterion need every grade of the rubric's runs, so they are cached and
recomputed after a new decision or grade. If that takes long, it happens at most every `PATIENCE`
times that duration. Only counted or decided grades are read, so that pending items stay hidden.
Agreement is measured only on verdicts given blind; all other decisions measure acceptance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np
from cachetools import FIFOCache

from assay.analysis.criteria import CriterionReport, analyse_criterion
from assay.app.text_diff import Part, marked
from assay.domain.criteria import CriterionFacts, RubricUse
from assay.domain.errors import UnknownName
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import COUNTS, AssessmentState
from assay.domain.selection import Selection
from assay.domain.suite import Criterion, Rubric, scale_in_words

if TYPE_CHECKING:
    from assay.store.opening import Store

AT_ONCE_S: Final = 0.25
PATIENCE: Final = 20
RUBRICS_KEPT: Final = 12
LEAST_OF_A_DIGEST: Final = 6
# Fixed, so that the same grades always give the same intervals.
_DRAWS_SEED: Final = 20240607
_NOTHING: Final = CriterionFacts(
    counted=(), decided=(), corrected=(), blind=(), blind_assessments=frozenset(), graded={}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricVersion:
    """One version of a suite's rubric; `number` counts from 1 in the order of first use."""

    suite: str
    number: int
    digest: str
    first: str
    last: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricInUse:
    """A rubric with its runs (newest first) and its version number in each suite."""

    digest: str
    rubric: Rubric
    runs: tuple[RubricUse, ...]
    versions: tuple[RubricVersion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One criterion in two rubrics; `how` is `same`, `changed`, `added` or `removed`.

    `before` and `after` are the criterion's guidance with differences marked. `facts` lists changes
    as (`weight` or `scale`, before, after).
    """

    name: str
    how: str
    before: tuple[Part, ...] = ()
    after: tuple[Part, ...] = ()
    facts: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A counted grade with the judge's reason. `score` is on the criterion's scale."""

    assessment: AssessmentKey
    thing: str
    suite: str
    k: int
    of: int
    score: float
    reason: str
    corrected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionInFull:
    """A criterion with statistics, its highest counted grade and its lowest."""

    criterion: Criterion
    report: CriterionReport
    highest: Example | None
    lowest: Example | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricInFull:
    """A rubric with statistics over all its runs; `since` counts decisions made after `read_at`."""

    use: RubricInUse
    criteria: tuple[CriterionInFull, ...]
    siblings: tuple[RubricVersion, ...]
    read_at: str
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    version: object
    event: int
    criteria: tuple[CriterionInFull, ...]
    took: float
    ended: float
    at: str


class Criteria:
    """Rubrics by digest, with cached statistics. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()  # protects the records of use
        self._reading = Lock()  # held while statistics are read
        self._newest = self._aside = 0
        self._uses: dict[int, RubricUse] = {}
        self._digests: dict[int, str] = {}
        # First in, first out: unlike an LRU cache, it may be read without a lock.
        self._read: FIFOCache[str, _Read] = FIFOCache(RUBRICS_KEPT)

    def all(self) -> tuple[RubricInUse, ...]:
        """Return all rubrics, most recently used first."""
        return tuple(sorted(self._by_digest().values(), key=lambda rubric: -rubric.runs[0].run_key))

    def one(self, name: str) -> RubricInUse:
        """Return a rubric by digest, unique digest prefix, or `SUITE@VERSION`; raises
        `UnknownName`.
        """
        known = self._by_digest()
        if name in known:
            return known[name]
        suite, at, number = name.rpartition("@")
        if at and number.isdigit():
            for rubric in known.values():
                if any(v.suite == suite and v.number == int(number) for v in rubric.versions):
                    return rubric
        matching = [
            rubric
            for digest, rubric in known.items()
            if len(name) >= LEAST_OF_A_DIGEST and digest.startswith(name)
        ]
        if len(matching) == 1:
            return matching[0]
        raise UnknownName(
            "rubric",
            name,
            tuple(known),
            remedy="/criteria lists the rubrics; SUITE@2 is the second version for a suite.",
        )

    def in_full(self, name: str) -> RubricInFull:
        """Return a rubric with statistics of its criteria; raises `UnknownName`."""
        use = self.one(name)
        read = self._fares(use)
        _, since = self._store.archive.trials.decided_since(read.event or None)
        criteria = (
            tuple(self._still_counting(criterion) for criterion in read.criteria)
            if since
            else read.criteria
        )
        others = {version.suite for version in use.versions}
        siblings = [
            v for rubric in self._by_digest().values() for v in rubric.versions if v.suite in others
        ]
        return RubricInFull(
            use=use,
            criteria=criteria,
            siblings=tuple(sorted(siblings, key=lambda v: (v.suite, v.number))),
            read_at=read.at,
            since=len(since),
        )

    # --- internal

    def _by_digest(self) -> dict[str, RubricInUse]:
        with self._lock:
            numbers = self._store.archive.runs.numbers()
            aside = self._store.archive.runs.newest_run_event()
            if aside != self._aside or any(
                numbers.get(key) != use.run_id for key, use in self._uses.items()
            ):
                self._aside = aside
                self._newest, self._uses, self._digests = 0, {}, {}
            self._newest, fresh = self._store.archive.rubrics.uses(self._newest)
            for use in fresh:
                self._uses[use.run_key] = use
                self._digests[use.run_key] = use.rubric.digest
            uses, digests = dict(self._uses), dict(self._digests)
        runs: dict[str, list[RubricUse]] = defaultdict(list)
        suites: dict[str, dict[str, list[RubricUse]]] = defaultdict(dict)
        for key in sorted(uses):
            runs[digests[key]].append(uses[key])
            suites[uses[key].suite].setdefault(digests[key], []).append(uses[key])
        versions: dict[str, list[RubricVersion]] = defaultdict(list)
        for suite, in_suite in suites.items():
            for number, (digest, own) in enumerate(in_suite.items(), start=1):
                versions[digest].append(
                    RubricVersion(
                        suite=suite,
                        number=number,
                        digest=digest,
                        first=own[0].started,
                        last=own[-1].started,
                        runs=len(own),
                    )
                )
        return {
            digest: RubricInUse(
                digest=digest,
                rubric=own[-1].rubric,
                runs=tuple(reversed(own)),
                versions=tuple(versions[digest]),
            )
            for digest, own in runs.items()
        }

    def _fares(self, use: RubricInUse) -> _Read:
        """Return a rubric's statistics, from the cache if computing them again now would take too
        long.
        """
        archive, clock = self._store.archive, self._store.clock
        ids = {run.run_id for run in use.runs}
        event = archive.trials.decided_since(None)[0]
        summaries = archive.runs.matching(Selection(runs=tuple(sorted(ids)))) if ids else ()
        version = (event, tuple((run.id, _tally(run.assessments)) for run in summaries))
        known = self._read.get(use.digest)
        # While another request reads, an older result is better than reading the same data twice.
        if known is not None and (self._is_good(known, version) or self._reading.locked()):
            return known
        with self._reading:
            known = self._read.get(use.digest)
            if known is not None and self._is_good(known, version):
                return known
            began = clock.monotonic()
            facts = (
                archive.rubrics.criterion_facts(Selection(runs=tuple(sorted(ids))))
                if ids
                else _NOTHING
            )
            rng = np.random.default_rng(_DRAWS_SEED)
            reports = tuple(
                self._with_examples(criterion, analyse_criterion(criterion, facts, rng=rng))
                for criterion in use.rubric.criteria
            )
            ended = clock.monotonic()
            read = _Read(
                version=version,
                event=event,
                criteria=reports,
                took=ended - began,
                ended=ended,
                at=clock.now(),
            )
            self._read[use.digest] = read
            return read

    def _is_good(self, known: _Read, version: object) -> bool:
        if known.version == version:
            return True
        return (
            known.took > AT_ONCE_S
            and self._store.clock.monotonic() - known.ended < PATIENCE * known.took
        )

    def _with_examples(
        self, criterion: Criterion, criterion_report: CriterionReport
    ) -> CriterionInFull:
        lowest = criterion_report.lowest if criterion_report.n > 1 else None
        return CriterionInFull(
            criterion=criterion,
            report=criterion_report,
            highest=self._example(criterion, criterion_report.highest),
            lowest=self._example(criterion, lowest),
        )

    def _still_counting(self, criterion_in_full: CriterionInFull) -> CriterionInFull:
        """Remove examples whose decision was undone, because they no longer count."""
        detail = self._store.archive.assessments.detail
        kept = [
            example if example and detail(example.assessment).row.state in COUNTS else None
            for example in (criterion_in_full.highest, criterion_in_full.lowest)
        ]
        return replace(criterion_in_full, highest=kept[0], lowest=kept[1])

    def _example(self, criterion: Criterion, place: tuple[int, float] | None) -> Example | None:
        """Return the grade at (assessment, score) with its reason; of several candidates, the grade
        closest to the score.
        """
        if place is None:
            return None
        row = self._store.archive.assessments.detail(AssessmentKey(place[0])).row
        grades = [
            candidate_grade
            for candidate_grade in row.assessment.grades
            if candidate_grade.criterion == criterion.name and candidate_grade.score is not None
        ]
        if not grades:
            return None
        grade = min(
            grades, key=lambda candidate_grade: abs((candidate_grade.score or 0.0) - place[1])
        )
        return Example(
            assessment=row.key,
            thing=row.thing,
            suite=row.suite,
            k=row.k,
            of=row.of,
            score=criterion.low + (grade.score or 0.0) * (criterion.high - criterion.low),
            reason=grade.reason,
            corrected=row.state is AssessmentState.CORRECTED,
        )


def changes(before: Rubric, after: Rubric) -> tuple[Change, ...]:
    """Return the changes by criterion: the newer rubric's criteria in order, then the removed
    criteria.
    """
    old = {criterion.name: criterion for criterion in before.criteria}
    new = {criterion.name: criterion for criterion in after.criteria}
    changed = [_change(old.get(name), each) for name, each in new.items()]
    gone = [
        Change(name=name, how="removed", before=(Part(text=each.guidance, changed=True),))
        for name, each in old.items()
        if name not in new
    ]
    return (*changed, *gone)


def _change(before: Criterion | None, after: Criterion) -> Change:
    if before is None:
        return Change(
            name=after.name, how="added", after=(Part(text=after.guidance, changed=True),)
        )
    facts = []
    if before.weight != after.weight:
        facts.append(("weight", f"{before.weight:g}", f"{after.weight:g}"))
    if scale_of(before) != scale_of(after):
        facts.append(("scale", scale_of(before), scale_of(after)))
    if not facts and before.guidance == after.guidance:
        return Change(name=after.name, how="same", after=(Part(text=after.guidance),))
    return Change(
        name=after.name,
        how="changed",
        before=marked(before.guidance, after.guidance),
        after=marked(after.guidance, before.guidance),
        facts=tuple(facts),
    )


def scale_of(criterion: Criterion) -> str:
    """Return a scale's range and labels as text, such as `0 to 2: bad = 0, good = 2`."""
    ends = scale_in_words(criterion.low, criterion.high)
    if not criterion.labels:
        return ends
    return f"{ends}: " + ", ".join(f"{label} = {value:g}" for label, value in criterion.labels)


def _tally(states: Mapping[AssessmentState, int]) -> Sequence[tuple[str, int]]:
    return tuple(sorted((state.value, n) for state, n in states.items()))
