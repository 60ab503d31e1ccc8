"""Differences between pooled runs that make a verdict meaningless, and the refusal that names
them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assay.domain.identifiers import RunId, folded
from assay.domain.run_choice import (
    Measured,
    RunDifference,
    baseline_refusal,
    grader_differences,
    plan_differences,
    refusal,
    task_differences,
)
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assay.analysis.columns import PooledRuns
    from assay.domain.run import RunPlan
    from assay.store.opening import Store


def differences(store: Store, selection: Selection) -> tuple[RunDifference, ...]:
    """Return the differences between the selected runs in scorer, rubric, judge, prompt and tasks;
    empty for a single run.

    Runs of different suites are not compared, and neither are runs without a counted score.
    """
    if len(selection.runs) == 1:
        return ()
    return _differences(store, selection, store.archive.scores.pooled(selection))


def _differences(
    store: Store, selection: Selection, pooled: PooledRuns, *, prompts_apart: bool = False
) -> tuple[RunDifference, ...]:
    every: list[RunDifference] = []
    for suite, runs in pooled.suites.items():
        plans = [store.journal.plan_of(RunId(run)) for run in runs]
        apart = prompts_apart or suite in pooled.apart
        every += plan_differences(
            plans, judges=selection.judges, criteria=selection.criteria, prompts_apart=apart
        )
        mixed, _ = mixed_metrics(plans, frozenset(map(folded, selection.criteria)))
        every += _metric_differences(mixed, runs)
        of_suite = {run: names for run, names in pooled.graders.items() if run in runs}
        every += () if mixed else grader_differences(of_suite)
        every += task_differences(pooled.changed.get(suite, ()), pooled.missing.get(suite, ()))
    every += (RunDifference(what=Measured.SCORER, ways=mixed.rules) for mixed in pooled.mixed_rules)
    return tuple(_merged(every))


def _merged(every: Sequence[RunDifference]) -> Iterator[RunDifference]:
    """Yield each difference once; those in the scorer are one, because its ways are found task by
    task.
    """
    scorers = [difference for difference in every if difference.what is Measured.SCORER]
    ways: dict[str, dict[str, None]] = {}
    for difference in scorers:
        for words, runs in difference.ways:
            ways.setdefault(words, {}).update(dict.fromkeys(runs))
    for difference in dict.fromkeys(every):
        if difference.what is not Measured.SCORER:
            yield difference
        elif difference == scorers[0]:
            yield replace(
                difference, ways=tuple((words, tuple(runs)) for words, runs in ways.items())
            )


def refuse_different(
    store: Store, selection: Selection, runs: Sequence[str]
) -> tuple[RunDifference, ...]:
    """Return the differences if `selection.pool_anyway` allows a verdict on such runs; otherwise
    raise `InputError`.
    """
    if len(runs) < 2:
        return ()
    differing = differences(store, selection)
    if differing and not selection.pool_anyway:
        raise refusal(differing, runs[-1])
    return differing


def refuse_baseline(
    store: Store, selection: Selection, baseline: Sequence[RunId], tested: Sequence[RunId]
) -> tuple[RunDifference, ...]:
    """Return the differences between a baseline and the tested runs if the user allows them;
    otherwise raise `InputError`.

    A changed candidate or system prompt is what a gate compares, and new tasks harm nothing,
    because only tasks of both sides are compared. Tasks that the tested runs lack are a difference,
    because removing the tasks that fail would pass the gate.
    """
    both = replace(selection, runs=(*baseline, *tested))
    pooled = store.archive.scores.pooled(both, with_replaced=True)
    removed = {} if _by_task(selection) else _removed(store, baseline, tested)
    pooled = replace(pooled, missing={suite: removed.get(suite, ()) for suite in pooled.suites})
    differing = _differences(store, both, pooled, prompts_apart=True)
    if differing and not selection.pool_anyway:
        raise baseline_refusal(differing, baseline, tested)
    return differing


def task_by_task_differences(
    store: Store,
    runs_by_task: Mapping[tuple[str, str], Sequence[RunId]],
    *,
    criteria: Sequence[str] = (),
) -> tuple[RunDifference, ...]:
    """Return the differences between runs that have the same task, for tables that set results side
    by side task by task.

    Tasks that only some of the runs have are no difference here, and runs without a common task are
    not compared: the runs of a batch often carry out one scenario each.

    Args:
        runs_by_task: runs by (suite, task).
        criteria: criteria that the scores are made of, if these are not all criteria of the runs;
            empty for all.
    """
    groups: dict[tuple[RunId, ...], list[str]] = {}
    for (_, task), runs in runs_by_task.items():
        if len(runs) > 1:
            groups.setdefault(tuple(runs), []).append(task)
    every: list[RunDifference] = []
    for together, tasks in groups.items():
        selection = Selection(runs=together, tasks=tasks)
        pooled = replace(store.archive.scores.pooled(selection), missing={})
        every += _differences(store, replace(selection, criteria=tuple(criteria)), pooled)
    return tuple(dict.fromkeys(every))


def measured_differently(store: Store, before: RunId, after: RunId) -> tuple[RunDifference, ...]:
    """Return the differences between two runs in scorer, rubric, judge and the judge's prompt;
    tasks are compared elsewhere.
    """
    both = Selection(runs=(before, after))
    pooled = store.archive.scores.pooled(both, with_replaced=True)
    return _differences(store, both, replace(pooled, changed={}, missing={}), prompts_apart=True)


def changed_between(
    store: Store, before: RunId, after: RunId, tasks: Sequence[RunDifference]
) -> tuple[RunDifference, ...]:
    """Return the differences between two runs that keep them from being pooled, for runs that are
    set side by side.

    `tasks`: the differences in tasks, which the caller knows. A system prompt counts even if it
    makes two candidates of one name.
    """
    both = Selection(runs=(before, after))
    pooled = store.archive.scores.pooled(both, with_replaced=True)
    pooled = replace(pooled, changed={}, missing={}, apart=frozenset())
    return (*_differences(store, both, pooled), *tasks)


def _by_task(selection: Selection) -> bool:
    """True if the user chose tasks, which then are the ones to compare."""
    return bool(selection.tasks or selection.tags or selection.languages)


def _removed(
    store: Store, baseline: Sequence[RunId], tested: Sequence[RunId]
) -> dict[str, tuple[str, ...]]:
    """Return the tasks of the baseline that no tested run of the suite has, by suite."""
    old, new = (_tasks_by_suite(store, runs) for runs in (baseline, tested))
    return {
        suite: tuple(task for task in tasks if task not in new[suite])
        for suite, tasks in old.items()
        if suite in new
    }


def _tasks_by_suite(store: Store, runs: Sequence[RunId]) -> dict[str, dict[str, None]]:
    by_suite: dict[str, dict[str, None]] = {}
    for run in runs:
        tasks = by_suite.setdefault(store.journal.plan_of(run).suite, {})
        tasks.update((planned.task.id, None) for planned, _ in store.journal.tasks_of(run))
    return by_suite


def mixed_metrics(
    plans: Sequence[RunPlan], selected: frozenset[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Return (imported metrics that only some runs of a suite count, with these runs; metrics that
    all runs count).
    """
    by_suite: dict[str, list[RunPlan]] = {}
    for plan in plans:
        if plan.imported and plan.rubric.criteria:
            by_suite.setdefault(plan.suite, []).append(plan)
    mixed: dict[str, list[str]] = {}
    shared: dict[str, None] = {}
    for of_suite in by_suite.values():
        counting: dict[str, list[str]] = {}
        for plan in of_suite:
            for criterion in plan.rubric.criteria:
                if criterion.weight > 0 and (not selected or folded(criterion.name) in selected):
                    counting.setdefault(criterion.name, []).append(str(plan.id))
        for name, runs in counting.items():
            if len(runs) < len(of_suite):
                mixed.setdefault(name, []).extend(runs)
            else:
                shared[name] = None
    return mixed, [name for name in shared if name not in mixed]


def _metric_differences(
    mixed: Mapping[str, Sequence[str]], runs: Sequence[str]
) -> Iterator[RunDifference]:
    if mixed:
        yield RunDifference(
            what=Measured.RUBRIC,
            ways=tuple((f"metric {name}", tuple(of)) for name, of in mixed.items()),
        )
