"""Basis of a result: the counted scores, the settings that the runs share, and warnings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.analysis.anytime import Looks, looks_reached
from assay.analysis.tables import cautions, score_table
from assay.app.calibration_status import uncalibrated
from assay.app.review import protocol
from assay.app.review.attention import attention_of
from assay.app.statistics.pooling import mixed_metrics, refuse_different
from assay.app.statistics.run_choice import choose
from assay.domain.candidate_identity import identity_of
from assay.domain.identifiers import RunId, folded
from assay.domain.protocol import protocol_of
from assay.domain.run_choice import RunsRead, runs_read
from assay.report import wording as wording  # re-exported, because surfaces may not import `report`
from assay.statistics.warnings import Caution

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.analysis.columns import ScoreColumns
    from assay.app.settings import Settings
    from assay.domain.attention import Attention
    from assay.domain.review import Approvals
    from assay.domain.run import RunPlan
    from assay.domain.run_choice import ChosenRuns
    from assay.domain.selection import Excluded, Selection
    from assay.statistics.table import ScoreTable
    from assay.store.opening import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Input of a statistical result: the counted scores, and the settings that the selected runs
    share.

    Attributes:
        margin: smallest difference that matters, if all selected runs set the same one; otherwise
            None, with the warning `margins_differ` if margins differ.
        running: True if a selected run is not finished.
        looks: number of planned looks (interim tests), if all selected runs plan the same number.
        protocols: distinct review protocols as JSON, each with its `runs`.
        approvals: number of counted grades that people approved, by how each decision came about.
        attention: signs of careless reviewing among decisions on these runs.
        chosen: the choice of runs; its `selection` reads the same runs again.
        read: the runs as an answer states them.
    """

    table: ScoreTable
    runs: tuple[str, ...]
    excluded: Excluded
    cautions: tuple[Caution, ...]
    margin: float | None
    running: bool
    looks: int | None
    protocols: tuple[dict[str, Any], ...] = ()
    approvals: Approvals
    attention: Attention
    chosen: ChosenRuns
    read: RunsRead

    @property
    def n_trials(self) -> int:
        return len(np.unique(self.table.trial_codes))

    @property
    def unfinished(self) -> bool:
        """True if more trials may come, so that tests for a fixed sample size are not valid yet."""
        return self.still_open.any

    @property
    def still_open(self) -> StillOpen:
        return StillOpen(
            running=self.running, waiting=self.excluded.awaiting_review + self.excluded.partly
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StillOpen:
    """Work that may still change a result: the number of `running` runs, and the number of trials
    `waiting` for review.
    """

    running: bool
    waiting: int

    @property
    def any(self) -> bool:
        return self.running or self.waiting > 0


def basis_of(
    store: Store, settings: Settings, selection: Selection | ChosenRuns, *, pooled: bool = True
) -> Basis:
    """Read the counted scores of the chosen runs. Raises `InputError` if they may not be pooled.

    `pooled` is False if the caller contrasts the runs, so that they may differ.
    """
    chosen = choose(store, selection)
    return basis_from(
        store, settings, chosen, store.archive.scores.columns(chosen.selection), pooled=pooled
    )


def basis_from(
    store: Store,
    settings: Settings,
    chosen: ChosenRuns,
    columns: ScoreColumns,
    *,
    pooled: bool = True,
) -> Basis:
    selection = chosen.selection
    differing = refuse_different(store, selection, columns.runs) if pooled else ()
    rules = shared_settings(store, columns.runs, selection.criteria)
    by_run = store.archive.scores.counted_by_run(selection) if len(columns.runs) > 1 else None
    read = runs_read(
        chosen, columns.runs, len(np.unique(columns.trial)), by_run=by_run, differences=differing
    )
    warnings = (*about_runs(read), *cautions(columns), *regraded(store, selection))
    return Basis(
        chosen=chosen,
        read=read,
        table=score_table(columns),
        runs=columns.runs,
        excluded=store.archive.scores.excluded(selection),
        cautions=(*warnings, *rules.cautions, *uncalibrated(store, columns)),
        margin=rules.margin,
        running=store.archive.runs.totals(selection).going_on,
        looks=rules.looks,
        approvals=approvals_of(store, settings, selection),
        attention=attention_of(store, [RunId(run) for run in columns.runs]),
        protocols=rules.protocols,
    )


def approvals_of(store: Store, settings: Settings, selection: Selection) -> Approvals:
    """Count the selection's approved grades by how each decision came about, with the project's
    rule for scripts.
    """
    allowed = bool(settings.values["count_scripted"])
    return replace(store.archive.scores.approvals(selection), scripted_allowed=allowed)


def about_runs(read: RunsRead) -> tuple[Caution, ...]:
    """Return the warnings about the choice of runs."""
    texts = {
        "pooled_anyway": wording.pooled_anyway(read) if read.differences else "",
        "newest_not_counted": wording.newest_not_counted(read),
        "newer_run": wording.newer_run(read),
    }
    return tuple(Caution(code=code, text=text) for code, text in texts.items() if text)


def regraded(store: Store, selection: Selection) -> tuple[Caution, ...]:
    """Return a warning for each selected run whose grades are replaced by a selected regrade."""
    runs = store.archive.scores.replaced(selection)
    return tuple(Caution(code="regraded", text=wording.regraded(replaced)) for replaced in runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSettings:
    """Settings that all selected runs share, with warnings about differences; fields as in `Basis`.

    `same_candidates` is True if all runs have the same candidates. `all_asked` is True if each
    trial called every candidate of its run; imported files may lack answers.
    """

    margin: float | None
    looks: int | None
    cautions: tuple[Caution, ...]
    protocols: tuple[dict[str, Any], ...]
    same_candidates: bool
    all_asked: bool


def shared_settings(store: Store, runs: Sequence[str], criteria: Sequence[str]) -> SharedSettings:
    """Return the settings that the runs share.

    `criteria` contains the selected criteria; empty for overall scores.
    """
    plans = [store.journal.plan_of(RunId(run)) for run in runs]
    margins = {plan.margin for plan in plans}
    looks = {_planned_looks(plan) for plan in plans}
    in_use = protocol.in_use(store, plans)
    warnings = (_margins_differ(margins),) if len(margins) > 1 else ()
    if len({protocol_of(protocol_json) for protocol_json in in_use}) > 1:
        warnings = (*warnings, Caution(code="mixed_protocols", text=wording.MIXED_PROTOCOLS))
    late = [protocol_json for protocol_json in in_use if protocol_json.get("switched")]
    if late:
        n = sum(protocol_json["switched"][-1]["decided_before"] for protocol_json in late)
        runs_switched = ", ".join(run for protocol_json in late for run in protocol_json["runs"])
        warnings = (
            *warnings,
            Caution(code="switched_protocol", text=wording.switched_protocol(runs_switched, n)),
        )
    if lower := dict.fromkeys(name for plan in plans for name in _lower_is_better(plan)):
        warnings = (
            *warnings,
            Caution(code="lower_is_better", text=wording.lower_is_better(tuple(lower))),
        )
    mixed, shared = mixed_metrics(plans, frozenset(map(folded, criteria)))
    if mixed:
        warnings = (
            *warnings,
            Caution(code="mixed_metrics", text=wording.mixed_metrics(mixed, shared)),
        )
    identities = {
        frozenset((c.name, identity_of(plan, c)) for c in plan.candidates) for plan in plans
    }
    return SharedSettings(
        cautions=warnings,
        margin=margins.pop() if len(margins) == 1 else None,
        looks=looks.pop() if len(looks) == 1 else None,
        protocols=in_use,
        same_candidates=len(identities) <= 1,
        all_asked=not any(plan.imported or plan.regrade_of is not None for plan in plans),
    )


def _lower_is_better(plan: RunPlan) -> Iterator[str]:
    """Yield the metrics for which a lower value is better.

    For an imported run this includes metrics without a criterion.
    """
    yield from (
        criterion.name for criterion in plan.rubric.criteria if criterion.low > criterion.high
    )
    named = plan.environment.get("lower_is_better")
    yield from (str(name) for name in (named if isinstance(named, list) else ()))


def _planned_looks(plan: RunPlan) -> int | None:
    planned = plan.protocol.get("looks")
    return planned if isinstance(planned, int) and 1 <= planned <= 20 else None


def _margins_differ(margins: set[float | None]) -> Caution:
    known = ", ".join(
        f"{wording.number(margin)} points"
        for margin in sorted(margin for margin in margins if margin is not None)
    )
    without = " or none" if None in margins else ""
    return Caution(
        code="margins_differ",
        text=f"The selected runs set different margins ({known}{without}), so no margin is used. Choose one with --margin D.",
    )


def looks_now(planned: int | None, n_trials: int, excluded: Excluded) -> Looks | None:
    """Return the planned look reached by the fraction of decided trials; None without planned
    looks.
    """
    if planned is None:
        return None
    decided = n_trials + excluded.rejected + excluded.failed
    return looks_reached(planned, decided=decided, total=decided + excluded.pending)
