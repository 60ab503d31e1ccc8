"""Choose the runs of a result: one run unless the user asks for more.

Every statistic, report and page takes its runs from here.

Without a run, a result reads the newest run that the other filters match, and says which. The
newest run is the first in `assay runs`; a regrade is newer than the run that it regrades, whatever
the clock said. Three cases read more than one run, because the newest run is only a part of what
the user means:

* Several named suites: the newest run of each.
* Two candidates that no run has together: the newest run of each, in the newest suite that both
  have run.
* Imported runs, which other harnesses write one per model: the newest run and, for each other
  candidate of the suite, its newest imported run, if no candidate is in two of the runs and they
  agree in scorer, rubric, judge, prompt and tasks.

A batch, several run ids and `all_runs` ask for pooling. Whatever the user asked for, runs of one
suite that differ in these points are not pooled into a verdict (`differences`), unless
`pool_anyway` allows it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from assay.app.statistics.pooling import differences
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import RunId, folded
from assay.domain.lifecycle import COUNTS
from assay.domain.run_choice import LATEST, ChosenRuns, RunChoice, has_candidate
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.selection import RunSummary
    from assay.store.opening import Store

_LOOKED_AT: Final = 200
"""Maximum number of runs of a suite in which the newest run of a candidate is sought."""

_MAX_PARTS: Final = 50
"""Maximum number of imported runs that are read together."""


def choose(store: Store, selection: Selection | ChosenRuns, *candidates: str | None) -> ChosenRuns:
    """Choose the runs of a result.

    `candidates` are the compared ones; None for a candidate that is not named.

    Raises UnknownName for an unknown name, and InputError for a run together with `all_runs`.
    """
    if isinstance(selection, ChosenRuns):
        return selection
    if selection.all_runs and selection.runs:
        raise InputError("--all-runs", "is given together with --run.", remedy="Use one of them.")
    named = tuple(candidate for candidate in candidates if candidate is not None)
    if selection.runs:
        return _named(store, selection)
    if selection.all_runs or selection.batch_ids:
        choice = RunChoice.ALL if selection.all_runs else RunChoice.BATCH
        only = replace(selection, compared=named) if len(named) == 2 else selection
        return ChosenRuns(
            selection=selection,
            choice=choice,
            runs=store.archive.runs.matching(only, limit=_LOOKED_AT),
        )
    if len(selection.suites) > 1:
        return _newest_of_suites(store, selection, named)
    return _newest(store, selection, named)


def resolved(store: Store, selection: Selection) -> Selection:
    """Return the selection with its runs filled in, for exports that read rows and state no
    verdict.
    """
    return choose(store, selection).selection


def named_run(store: Store, run: str) -> str:
    """Return a run's name as it was given, or the id of the newest run for `latest`; raises
    `UnknownName` without any run.
    """
    if folded(run) != LATEST:
        return run
    chosen = choose(store, Selection(runs=(LATEST,)))
    if not chosen.runs:
        raise UnknownName(
            "run", run, remedy="No runs are stored yet: `assay run SUITE` creates one."
        )
    return chosen.runs[0].id


def _named(store: Store, selection: Selection) -> ChosenRuns:
    archive = store.archive.runs
    ids = tuple(run for run in selection.runs if folded(run) != LATEST)
    runs = archive.matching(replace(selection, runs=ids)) if ids else ()
    if len(ids) < len(selection.runs):
        newest = _newest(store, replace(selection, runs=()), ())
        if not ids:
            return newest
        runs = tuple({run.id: run for run in (*newest.runs, *runs)}.values())
    return ChosenRuns(
        selection=replace(selection, runs=tuple(run.id for run in runs) or ids),
        choice=RunChoice.NAMED,
        runs=runs,
    )


def _newest_of_suites(store: Store, selection: Selection, named: Sequence[str]) -> ChosenRuns:
    each = [
        _newest(store, replace(selection, suites=(suite,)), named)
        for suite in dict.fromkeys(selection.suites)
    ]
    runs = tuple({run.id: run for chosen in each for run in chosen.runs}.values())
    ids = tuple(run.id for run in runs)
    return ChosenRuns(selection=replace(selection, runs=ids), choice=RunChoice.SUITES, runs=runs)


def _newest(store: Store, selection: Selection, named: Sequence[str]) -> ChosenRuns:
    archive = store.archive.runs
    newer: RunSummary | None = None
    if len(named) == 2:
        choice, runs, newer = _with_both(store, selection, named)
    else:
        choice, runs = (
            RunChoice.NEWEST,
            archive.matching(replace(selection, compared=tuple(named)), limit=1),
        )
    if not runs:
        runs = archive.matching(selection, limit=1)
    if not runs:
        return ChosenRuns(selection=selection, choice=RunChoice.NEWEST)
    if len(runs) == 1:
        runs = (_newest_grading(store, selection, runs[0]),)
        origin = archive.with_references(runs[0].id)
        if origin is not None:
            choice, runs = (
                RunChoice.REFERENCES,
                (*runs, *archive.matching(Selection(runs=(origin,)))),
            )
    of_suite = replace(selection, suites=tuple(dict.fromkeys(run.suite for run in runs)))
    others = archive.matching(of_suite, limit=_LOOKED_AT) if len(runs) == 1 else ()
    if choice is RunChoice.NEWEST and runs[0].imported and not named:
        runs = _imported_parts(store, runs[0], others)
        choice = RunChoice.PARTS if len(runs) > 1 else choice
    ids = tuple(run.id for run in runs)
    return ChosenRuns(
        selection=replace(selection, runs=ids),
        choice=choice,
        runs=runs,
        of=archive.totals(of_suite).runs,
        other_suites=()
        if selection.suites
        else tuple(name for name in archive.suites() if name != runs[0].suite),
        newer=newer,
        counted_before=None
        if any(map(_counts, runs))
        else next((run for run in others if _counts(run)), None),
        without=() if named else _without(runs, others),
        larger=_larger(runs[0], others) if len(runs) == 1 else None,
    )


def _with_both(
    store: Store, selection: Selection, named: Sequence[str]
) -> tuple[RunChoice, tuple[RunSummary, ...], RunSummary | None]:
    """Return the newest run with both candidates, or the newest run of each; and a newer run that
    lacks one of them.
    """
    archive = store.archive.runs
    a, b = named
    several = archive.matching(replace(selection, compared=(a, b)), limit=_LOOKED_AT)
    if len(several) == _LOOKED_AT and not any(
        has_candidate(run, a) and has_candidate(run, b) for run in several
    ):
        several = archive.matching(replace(selection, compared=(a, b)))
    if not several:  # no suite has both
        newest = (archive.matching(replace(selection, compared=(name,)), limit=1) for name in named)
        runs = tuple({run.id: run for of_one in newest for run in of_one}.values())
        return RunChoice.EACH, runs, None
    of_a, of_b = (_runs_of(store, selection, name, several) for name in named)
    both = next((run for run in several if run.id in of_a and run.id in of_b), None)
    if both is not None:
        return (
            RunChoice.NEWEST,
            (both,),
            None if both is several[0] or several[0].suite != both.suite else several[0],
        )
    suite = several[0].suite
    each = [
        next(run for run in several if run.id in ids and run.suite == suite) for ids in (of_a, of_b)
    ]
    return RunChoice.EACH, tuple(sorted(each, key=several.index)), None


def _runs_of(
    store: Store, selection: Selection, name: str, runs: Sequence[RunSummary]
) -> frozenset[RunId]:
    """Return the runs with a candidate; a label such as `bot (openai/small)` means one of several
    candidates named `bot`.
    """
    ids = frozenset(run.id for run in runs if has_candidate(run, name))
    if ids:
        return ids
    return frozenset(
        run.id for run in store.archive.runs.matching(replace(selection, compared=(name,)))
    )


def _newest_grading(store: Store, selection: Selection, run: RunSummary) -> RunSummary:
    """Return the newest regrade of a run, even if the clock was set back in between; the run itself
    if it has none.
    """
    while again := store.archive.runs.regrades(run.id):
        try:
            matching = store.archive.runs.matching(replace(selection, runs=(again[-1],)))
        except UnknownName:  # pragma: no cover # deleted in between
            return run
        if not matching:
            return run
        (run,) = matching
    return run


def _imported_parts(
    store: Store, newest: RunSummary, others: Sequence[RunSummary]
) -> tuple[RunSummary, ...]:
    """Return the newest imported run together with the newest ones of other candidates, if these
    runs measure the same thing.
    """
    parts = [newest]
    names = set(map(folded, newest.candidates))
    for run in others:
        own = set(map(folded, run.candidates))
        if (
            not run.imported
            or run.id == newest.id
            or not own
            or own & names
            or len(parts) == _MAX_PARTS
        ):
            continue
        if not differences(store, Selection(runs=(newest.id, run.id))):
            parts.append(run)
            names |= own
    return tuple(parts)


def _without(
    runs: Sequence[RunSummary], others: Sequence[RunSummary]
) -> tuple[tuple[str, RunId], ...]:
    names = {folded(name) for run in runs for name in run.candidates}
    lacking: dict[str, tuple[str, RunId]] = {}
    for run in others:
        for name in run.candidates:
            if folded(name) not in names:
                lacking.setdefault(folded(name), (name, run.id))
    return tuple(lacking.values())


def _larger(newest: RunSummary, others: Sequence[RunSummary]) -> tuple[RunId, int] | None:
    """Return the run with most trials in any state, and how many more than the newest it has; None
    if none has more.
    """
    most = max(others, key=_size, default=newest)
    more = _size(most) - _size(newest)
    return (most.id, more) if more > 0 else None


def _size(run: RunSummary) -> int:
    return sum(run.trials.values())


def _counts(run: RunSummary) -> bool:
    return any(n for state, n in run.assessments.items() if state in COUNTS)
