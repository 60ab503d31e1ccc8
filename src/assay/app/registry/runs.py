"""List runs and describe a single run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.analysis.columns import STATES
from assay.app.calibration_status import CalibrationStatus, words
from assay.app.provenance import Provenance, provenance
from assay.app.review.attention import attention_of
from assay.app.review.protocol import in_use
from assay.app.runs.budget import enough_usd
from assay.app.runs.causes import Cause, Pause, causes_of, pause_of
from assay.app.runs.remaining_cost import remaining_cost
from assay.app.statistics.run_choice import named_run
from assay.domain.lifecycle import COUNTS, HIDDEN, AssessmentState, RunState
from assay.domain.remaining_cost import RemainingCost
from assay.domain.run_list import RunFilter
from assay.domain.selection import RunSummary, Selection, TrialRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from assay.domain.attention import Attention
    from assay.domain.digest import JsonValue
    from assay.domain.identifiers import RunId, TrialKey
    from assay.domain.jobs import BatchJob
    from assay.domain.run import RunPlan
    from assay.providers.directory import Directory
    from assay.store.opening import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInFull:
    """A run with its plan and trials.

    `stamps` lists its judges' calibration labels in the order of the plan. `causes`, `pause`,
    `enough_usd` and `remaining` are those of `app.runs.execution.RunResult`. `protocol`: the review
    protocol now, with what the review `achieved`. `attention`: signs of careless reviewing.
    """

    summary: RunSummary
    plan: RunPlan
    provenance: Provenance
    trials: tuple[TrialRow, ...]
    calibration_status: tuple[str, ...]
    jobs: tuple[BatchJob, ...]
    causes: tuple[Cause, ...]
    pause: Pause | None
    enough_usd: float | None
    remaining: RemainingCost | None
    protocol: Mapping[str, JsonValue]
    attention: Attention


def runs(
    store: Store, selection: Selection | None = None, *, limit: int | None = None
) -> tuple[RunSummary, ...]:
    """Return up to `limit` matching runs, newest first."""
    return store.archive.runs.matching(selection or Selection(), limit=limit)


def runs_in_state(
    store: Store, selection: Selection, state: RunState | None, *, limit: int
) -> tuple[RunSummary, ...]:
    """Return up to `limit` matching runs in one state, newest first."""
    if state is None:
        return runs(store, selection, limit=limit)
    if state in HIDDEN:
        return ()
    if selection == Selection():
        page, _ = store.register.page(RunFilter(state=str(state)), limit=limit)
        return page
    return tuple(run for run in runs(store, selection) if run.state is state)[:limit]


def newest_first(store: Store) -> Iterator[RunSummary]:
    return store.archive.runs.newest_first()


def stamp_of(store: Store, run: RunId, judge: str) -> str:
    return words(CalibrationStatus(store).of(run, judge))


def run_in_full(store: Store, directory: Directory, run_id: str) -> RunInFull:
    """Return a run by its id or a unique prefix, or the newest one by `latest`; raises
    `UnknownName`.
    """
    (summary,) = store.archive.runs.matching(Selection(runs=(named_run(store, run_id),)))
    origin = provenance(store, summary)
    plan = origin.plan
    calibration_status = CalibrationStatus(store)
    return RunInFull(
        summary=summary,
        plan=plan,
        provenance=origin,
        calibration_status=tuple(
            words(calibration_status.of(summary.id, judge.name)) for judge in plan.judges
        ),
        trials=tuple(store.archive.trials.matching(Selection(runs=(summary.id,)))),
        jobs=store.jobs.of_runs([summary.id]),
        causes=causes_of(store, summary),
        pause=pause_of(store, summary),
        enough_usd=enough_usd(store, directory, plan, summary),
        remaining=remaining_cost(store, directory, plan, summary),
        protocol=in_use(store, [plan])[0],
        attention=attention_of(store, (plan.id,)),
    )


def passed_unseen(
    store: Store, summary: RunSummary, trials: Collection[TrialKey]
) -> dict[TrialKey, AssessmentState]:
    """Return the state of each trial that counts without review: `exempt` if any grade is exempt,
    else `not_required`.
    """
    unseen = {AssessmentState.NOT_REQUIRED, AssessmentState.EXEMPT}
    if not trials or not any(summary.assessments.get(state) for state in unseen):
        return {}
    columns = store.archive.scores.review_columns(Selection(runs=(summary.id,)), trials=trials)
    counting: dict[int, set[AssessmentState]] = {}
    for trial, state in zip(columns.trial.tolist(), columns.state.tolist(), strict=True):
        counting.setdefault(trial, set()).update({STATES[state]} & COUNTS)
    return {
        key: AssessmentState.EXEMPT
        if AssessmentState.EXEMPT in states
        else AssessmentState.NOT_REQUIRED
        for key in trials
        if (states := counting.get(int(key))) and states <= unseen
    }
