"""`assay gate --baseline`: compare a candidate's new runs with its earlier runs, paired by task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.analysis.paired_runs import RunSide, changed_tasks, paired_table, side_of
from assay.app.statistics import results
from assay.app.statistics.basis import Basis, about_runs, basis_from, basis_of
from assay.app.statistics.pooling import refuse_baseline
from assay.app.statistics.run_choice import choose
from assay.app.statistics.vetting import require_vetted
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import folded
from assay.domain.run_choice import RunChoice, RunDifference, in_words
from assay.domain.selection import RunSummary, Selection
from assay.report import wording
from assay.statistics.comparisons import compare
from assay.statistics.warnings import Caution, few_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.store.opening import Store

_LATEST: Final = "latest:"
_BETWEEN_SIDES: Final = frozenset(
    {"mixed_settings", "mixed_rules", "mixed_protocols", "mixed_metrics", "margins_differ"}
)
"""Warnings that compare the baseline with the current runs; other warnings would only state that
both have the same candidate.
"""


def gate_baseline(
    workspace: Workspace,
    selection: Selection,
    candidate: str,
    *,
    baseline: str,
    margin: float | None = None,
    vetted: bool = False,
) -> results.GateResult:
    """Test that a candidate is not worse than in earlier runs by more than the margin.

    Model and prompt of the candidate may differ between the two sides. Only tasks with the same
    content on both sides are compared, and trials count as independent.

    Args:
        selection: the new runs; without `runs`, the newest run that matches. Other filters apply to
            both sides.
        baseline: a run, a batch, or `latest:BATCH` for the batch's newest finished run of the same
            suite.
        margin: 0 to 1; None for the margin that the runs set.
        vetted: refuse grades that no person read on a screen.

    Raises UnknownName for an unknown run, batch or candidate. Raises InputError without a run to
    compare, for a run on both sides, without a margin, or if the sides differ in scorer, rubric,
    judge or tasks and `selection.pool_anyway` is False.
    """
    new = _new_runs(workspace.store, selection, candidate, baseline)
    old = _baseline_runs(workspace.store, baseline, new, candidate)
    if shared := sorted({run.id for run in new} & {run.id for run in old}):
        raise InputError(
            "--baseline",
            f"{shared[0]!r} is compared with itself.",
            remedy="Choose another run, or use --run.",
        )
    old_ids, new_ids = (tuple(run.id for run in runs) for runs in (old, new))
    differing = refuse_baseline(workspace.store, selection, old_ids, new_ids)
    after, new_basis = _side(
        workspace.store, workspace.settings, replace(selection, runs=new_ids), candidate
    )
    candidate = after.mark
    label = f"{candidate} in {few_names([*old_ids], shown=1)}"
    before, old_basis = _side(
        workspace.store, workspace.settings, replace(selection, runs=old_ids), candidate, label
    )
    basis = _basis(
        workspace.store,
        workspace.settings,
        replace(selection, runs=(*old_ids, *new_ids)),
        (old_basis, new_basis),
        (before, after),
        differing,
    )
    if vetted:
        require_vetted(workspace, replace(selection, runs=(*old_ids, *new_ids)))
    margin = basis.margin if margin is None else margin
    if margin is None:
        raise InputError(
            "--margin", "is missing, and the runs set no margin.", remedy="Use --margin 3pts."
        )
    comparison = compare(
        basis.table, candidate, label, None, margin, rng=np.random.default_rng(results.DRAWS_SEED)
    )
    contrast = results.ComparisonResult(
        comparison=comparison,
        verdict=results.verdict_of(workspace.store, comparison, basis.read),
        basis=basis,
        diagnostics=None,
        still_open=basis.still_open,
        anytime=None,
        looks=None,
    )
    return results.gate_result(contrast, margin, old_ids)


def _new_runs(
    store: Store, selection: Selection, candidate: str, baseline: str
) -> Sequence[RunSummary]:
    """Return the runs to test: the named runs, otherwise the candidate's newest run outside the
    baseline.
    """
    wanted = Selection(runs=selection.runs, suites=selection.suites, batch_ids=selection.batch_ids)
    runs = store.archive.runs.matching(wanted)
    if selection.runs:
        return runs
    old = () if baseline.startswith(_LATEST) else {run.id for run in _named(store, baseline)}
    newest = next((run for run in runs if run.id not in old and _has(run, candidate)), None)
    if newest is None:
        known = {name: None for run in runs for name in run.candidates}
        raise UnknownName(
            "candidate", candidate, known, remedy="Choose the run to test with --run RUN."
        )
    return (newest,)


def _baseline_runs(
    store: Store, baseline: str, new: Sequence[RunSummary], candidate: str
) -> Sequence[RunSummary]:
    if not baseline.startswith(_LATEST):
        return _named(store, baseline)
    batch = baseline.removeprefix(_LATEST)
    suites, tested = {run.suite for run in new}, {run.id for run in new}
    for run in store.archive.runs.matching(Selection(batch_ids=(batch,))):
        if (
            run.suite in suites
            and run.id not in tested
            and run.state not in results.GOING_ON
            and _has(run, candidate)
        ):
            return (run,)
    names = few_names([*sorted(suites)], shown=3)
    problem = (
        f"batch {batch!r} has no other finished run of {names} with the candidate {candidate!r}."
    )
    raise InputError(
        "--baseline", problem, remedy=f"Create one with: assay run SUITE --batch-id {batch}"
    )


def _named(store: Store, baseline: str) -> Sequence[RunSummary]:
    try:
        return store.archive.runs.matching(Selection(runs=(baseline,)))
    except UnknownName as error:
        try:
            return store.archive.runs.matching(Selection(batch_ids=(baseline,)))
        except UnknownName as no_batch:
            near = (*error.near, *no_batch.near)
            raise UnknownName(
                "run or batch", baseline, near, remedy="`assay runs` lists them."
            ) from no_batch


def _has(run: RunSummary, candidate: str) -> bool:
    return folded(candidate) in {folded(name) for name in run.candidates}


def _side(
    store: Store, settings: Settings, selection: Selection, candidate: str, mark: str = ""
) -> tuple[RunSide, Basis]:
    columns = store.archive.scores.columns(selection)
    name = results.candidate_named(candidate, store.archive.scores.candidates(selection))
    return side_of(columns, name, mark or name), basis_from(
        store, settings, choose(store, selection), columns
    )


def _basis(
    store: Store,
    settings: Settings,
    both: Selection,
    bases: tuple[Basis, Basis],
    sides: tuple[RunSide, RunSide],
    differing: Sequence[RunDifference],
) -> Basis:
    """Return the comparison's basis: the paired table, and warnings about each side and about
    differences between them.
    """
    together = basis_of(store, settings, both, pooled=False)
    read = replace(together.read, choice=RunChoice.BASELINE, differences=in_words(differing))
    together = replace(together, read=read)
    own = [caution for basis in bases for caution in basis.cautions if caution.code != "same_name"]
    between = [caution for caution in together.cautions if caution.code in _BETWEEN_SIDES]
    if changed := changed_tasks(*sides):
        between.append(Caution(code="task_changed", text=wording.changed_since_baseline(changed)))
    labels = [caution for caution in about_runs(read) if caution.code == "pooled_anyway"]
    cautions = {(caution.code, caution.text): caution for caution in (*labels, *between, *own)}
    before, after = sides
    return replace(
        together,
        table=paired_table(before, after).including((after.mark, before.mark)),
        cautions=tuple(cautions.values()),
    )
