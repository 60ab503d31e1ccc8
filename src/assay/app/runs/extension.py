"""Add trials or candidates to a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.app.review.lottery import stored_lottery
from assay.app.runs.budget import with_budget
from assay.app.runs.cost_estimate import Tally
from assay.app.runs.execution import RunResult, carry_out, result_of, run_named
from assay.app.runs.preflight import (
    _check_context,
    _NothingAsked,
    _requests,
    _trials_alike,
    check_providers,
)
from assay.domain.errors import InputError, Refused
from assay.domain.events import Listener, nobody
from assay.domain.identifiers import AssessmentKey, RunId, folded
from assay.domain.lifecycle import COUNTS, UNDOABLE, AssessmentState
from assay.domain.prompts import all_columns, columns_of
from assay.domain.review_sample import ReviewSample, parsed_rule, sample_of
from assay.domain.run import PlannedTask, RunPlan, check_number_of_trials, within_bounds
from assay.domain.selection import Selection
from assay.engine.estimate import CostEstimate

if TYPE_CHECKING:
    from assay.app.runs.run_request import ExtendRequest
    from assay.app.workspace import Workspace
    from assay.domain.suite import CandidateSpec
    from assay.providers.directory import Directory
    from assay.store.opening import Store


def extend(
    workspace: Workspace,
    run_id: str,
    request: ExtendRequest,
    *,
    discard_reviews: bool = False,
    announce: Callable[[CostEstimate], None] | None = None,
    listener: Listener = nobody,
) -> RunResult:
    """Add trials or candidates to a run. Candidates are not called again for stored responses.

    `discard_reviews`: True to accept that a new candidate discards the reviews of joint grades.
    Raises Refused if the extension would discard reviews and `discard_reviews` is False.
    """
    if (
        request.candidates
        and not discard_reviews
        and (replaced := decisions_replaced(workspace.store, run_id))
    ):
        remedy = "Pass discard_reviews=True to accept this; on the command line, add --yes."
        raise Refused(run_id, discarding(replaced), remedy=remedy)
    plan = add_to(workspace, run_id, request, announce=announce)
    return carry_out(workspace, plan, retry_failed=False, listener=listener)


def add_to(
    workspace: Workspace,
    run_id: str,
    request: ExtendRequest,
    *,
    announce: Callable[[CostEstimate], None] | None = None,
    only_look: bool = False,
) -> RunPlan:
    """Store the trials that `extend` adds without executing them.

    `announce` is called with the cost estimate before any model call. With `only_look`, only
    estimate the cost.
    """
    plan = workspace.journal.plan_of(run_named(workspace.store, run_id))
    if plan.regrade_of is not None:
        remedy = f"Extend that run, and regrade it again: assay regrade {plan.regrade_of}"
        raise Refused(
            plan.id,
            f"only regrades run {plan.regrade_of}, so its candidates are not called.",
            remedy=remedy,
        )
    if plan.imported:
        raise Refused(
            plan.id,
            "was imported, so no more trials of it can be run.",
            remedy="Import a file that has more.",
        )
    present = {folded(candidate.name) for candidate in plan.candidates}
    for candidate in request.candidates:
        if folded(candidate.name) in present:
            raise InputError(
                "--candidate", f"{candidate.name!r} already takes part in run {plan.id}."
            )
        _check_columns(workspace.store, plan, candidate)
    check_number_of_trials("--trials", request.more_trials, least=0)
    check_number_of_trials("--until-approved", request.until_approved)
    if not (request.more_trials or request.until_approved or request.candidates or request.review):
        remedy = "Give --trials N, --until-approved N, --candidate NAME or --review sample:0.4."
        raise InputError("", "nothing to add was given.", remedy=remedy)
    plan = replace(plan, candidates=(*plan.candidates, *request.candidates))
    drawn: tuple[AssessmentKey, ...] = ()
    if request.review is not None:
        sample = _grown(workspace.store, plan, request.review)
        plan = replace(plan, protocol={**plan.protocol, "sample": sample.as_json()})
        drawn = _drawn(workspace.store, plan)
    check_providers(workspace.settings, workspace.directory, plan)
    if request.budget_usd is not None:
        summary = result_of(workspace.store, plan.id).summary
        plan = with_budget(workspace.directory, plan, summary, request.budget_usd)
    hopeful = _hopeful_trials(workspace.store, plan.id) if request.until_approved else {}

    def added() -> Iterator[PlannedTask]:
        for planned, count in workspace.journal.tasks_of(plan.id):
            lacking = max(0, (request.until_approved or 0) - hopeful.get(planned.task.id, 0))
            more = max(request.more_trials, lacking)
            yield replace(planned, trials=range(count + 1, count + 1 + more))

    option = "--until-approved" if request.until_approved else "--trials"
    # The tasks are generated twice, for the estimate and for the store, so that they never fill
    # memory as one list.
    checked = within_bounds(added(), option)
    estimate = _estimate_of_more(
        workspace.directory,
        plan,
        checked,
        joining={candidate.name for candidate in request.candidates},
    )
    if announce is not None:
        announce(estimate)
    if not only_look:
        workspace.journal.extend_run(plan, added(), drawn=drawn)
    return plan


def _grown(store: Store, plan: RunPlan, review: str) -> ReviewSample:
    wanted, present = parsed_rule(review, where="--review").sample, sample_of(plan.protocol)
    if wanted is None or present is None:
        problem = f"has the review policy `{plan.policy}`, but only a sample policy can be extended, to a larger sample."
        raise Refused(
            plan.id, problem, remedy="Start a new run with --review sample:0.2, and then extend it."
        )
    if store.journal.is_carried_out(plan.id):
        problem = "is being executed, so its review sample cannot grow now."
        raise Refused(plan.id, problem, remedy="Wait until it is done, or pause it.")
    return present.grown(wanted.share, where="--review")


def _drawn(store: Store, plan: RunPlan) -> tuple[AssessmentKey, ...]:
    lottery, left_out = stored_lottery(store, plan), frozenset({AssessmentState.LEFT_OUT})
    rows = store.archive.assessments.matching(Selection(runs=(plan.id,)), states=left_out)
    return tuple(row.key for row in rows if lottery is not None and lottery.holds(row.task, row.k))


def _check_columns(store: Store, plan: RunPlan, candidate: CandidateSpec) -> None:
    """Raise `InputError` if a new candidate's template uses a column that a task of the run does
    not have.
    """
    wanted = all_columns(candidate)
    for planned, _ in store.journal.tasks_of(plan.id) if wanted else ():
        lacking = [name for name in wanted if name not in columns_of(planned.task)]
        if lacking:
            problem = f"uses the column {lacking[0]!r}, which task {planned.task.id} of run {plan.id} does not have."
            remedy = "The tasks of a run have only the columns that its first candidates use. Start a new run for this candidate."
            raise InputError(f"candidate {candidate.name}", problem, remedy=remedy)


def discarding(reviews: int) -> str:
    return f"would lose {reviews} review{'s' * (reviews != 1)}, because a joint judge must regrade every trial."


def decisions_replaced(store: Store, run_id: str) -> int:
    """Count the decisions that a new candidate discards because a joint judge must regrade the
    trials.
    """
    run = run_named(store, run_id)
    return sum(
        row.current and row.candidate is None and row.state in UNDOABLE
        for row in store.archive.assessments.matching(Selection(runs=(run,)))
    )


def _estimate_of_more(
    directory: Directory, plan: RunPlan, added: Iterable[PlannedTask], *, joining: set[str]
) -> CostEstimate:
    """Estimate the calls for new trials and candidates; a new candidate also answers existing
    trials, which are regraded.
    """
    tally = Tally(directory)
    nothing_asked = _NothingAsked(
        candidate for candidate in plan.candidates if candidate.name in joining
    )
    for planned in added:
        nothing_asked.note(planned.task)
        for alike in _trials_alike(plan, range(1, planned.trials.stop)):
            new = sum(k >= planned.trials.start for k in alike)
            for request in _requests(plan, planned, k=alike[0]):
                asked_before = bool(joining) and request.purpose.candidate in {None, *joining}
                tally.add(request, times=new + (len(alike) - new if asked_before else 0))
                _check_context(directory, request)
    nothing_asked.check()
    return tally.estimate()


def _hopeful_trials(store: Store, run: RunId) -> dict[str, int]:
    hopeful = frozenset({*COUNTS, AssessmentState.PENDING})
    trials: dict[str, set[int]] = {}
    for row in store.archive.assessments.matching(Selection(runs=(run,)), states=hopeful):
        trials.setdefault(row.task, set()).add(row.k)
    return {task: len(ks) for task, ks in trials.items()}
