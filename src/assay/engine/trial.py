"""Carry out one trial: request missing responses, grade them and commit each step.

A slot of the concurrency limit is held from before a call until its result is committed. A kill
therefore repeats no more calls than may run at once, and never a call whose result is stored. A
failure ends only its trial, and the stored responses and assessments are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Any

from assay.domain.assessment import Assessment, Response
from assay.domain.calls import ModelRequest, Reply, Role
from assay.domain.digest import derived_seed
from assay.domain.failure import CallFailed, Failure, Fault
from assay.domain.isolation import IsolatedRequest
from assay.domain.lifecycle import AssessmentState, Policy, first_state
from assay.domain.pages import PageRequest
from assay.domain.protocol import protocol_of
from assay.domain.run import CallRecord, ClaimedTrial, Entry, NewAssessment, RunPlan, Slot
from assay.domain.sandbox import CommandRequest
from assay.domain.suite import PERSON, CandidateSpec
from assay.engine.asking import GaveUp, NotYet, ReadAnswer
from assay.engine.conversation import Conversation
from assay.engine.run_context import RunContext
from assay.engine.structuring import structured, verified
from assay.engine.workspace import work
from assay.scoring.blinding import labels_in, shown_order
from assay.scoring.evaluator import Answer, Evaluator, GradingAttempt, MoreRequests, Unscorable
from assay.scoring.evaluators import evaluators_for, rubric_of
from assay.scoring.human_judge import empty_form
from assay.scoring.workspace_judge import WorkspaceJudge


@dataclass(slots=True, kw_only=True)
class _Progress:
    """Responses and failures so far in this attempt at the trial.

    `unread`: grading forms for replies that could not be parsed. `waits`: True if an answer waits
    at a provider.
    """

    responses: dict[str, Response]
    failures: list[Failure] = field(default_factory=list)
    unread: list[tuple[NewAssessment, None]] = field(default_factory=list)
    waits: bool = False


async def carry_out(context: RunContext, claimed: ClaimedTrial) -> Failure | None:
    """Carry out a trial's remaining steps and release it; return the failure that ended it, or
    None.

    The commit of the last call also releases the trial, so most trials need only one commit. Raises
    `NotYet` if answers wait at a provider; the trial's results so far are then stored.
    """
    progress = _Progress(responses=dict(claimed.responses))
    evaluators = evaluators_for(claimed.task, context.plan.judges, context.plan.rubric, k=claimed.k)
    missing = [
        c
        for c in context.plan.candidates
        if c.model is not None and c.name not in progress.responses
    ]
    if missing and context.plan.regrade_of is not None:
        progress.failures.append(
            _never_answered(context, claimed, [candidate.name for candidate in missing])
        )
        missing = []
    elif (
        context.plan.regrade_of is not None
        and (failed := _lost_elsewhere(context, claimed, progress)) is not None
    ):
        progress.failures.append(failed)
    if len(missing) == 1 and not any(evaluator.by_model for evaluator in evaluators):
        await _respond(context, claimed, missing[0], progress, last=evaluators)
        _go_on(progress)
        return _worst(progress.failures)
    await _together([_respond(context, claimed, candidate, progress) for candidate in missing])
    _go_on(progress)
    plain = await _graded_plainly(context, claimed, evaluators, progress)
    judged = [
        (e, slot) for e, slot in _open_slots(context, claimed, evaluators, progress) if e.by_model
    ]
    if len(judged) == 1 and not plain and not progress.failures and not context.only_structure:
        await _grade(
            context,
            claimed,
            *judged[0],
            progress,
            attempt=_next_attempt(claimed, judged[0][1]),
            finishing=True,
        )
        _go_on(progress)
        return _worst(progress.failures)
    if plain and judged:
        await context.journal.record(
            Entry(trial=claimed.key, assessments=plain, rerun=context.rerun)
        )
        plain = ()
    await _together(
        [
            _grade(context, claimed, e, slot, progress, attempt=_next_attempt(claimed, slot))
            for e, slot in judged
        ]
    )
    _go_on(progress)
    failure = _worst(progress.failures)
    if context.only_structure and failure is None:
        return None  # the trial stays claimed until the run releases it
    graded = (*plain, *progress.unread)
    await context.journal.record(
        Entry(
            trial=claimed.key,
            assessments=graded,
            finished=True,
            failure=failure,
            rerun=context.rerun,
        )
    )
    return failure


def _go_on(progress: _Progress) -> None:
    if progress.waits:
        raise NotYet


def _never_answered(context: RunContext, claimed: ClaimedTrial, names: list[str]) -> Failure:
    """Return the original run's failure for a regraded trial without a response, because a regrade
    asks no candidates.
    """
    before = context.inherited.get((claimed.task.id, claimed.k))
    # A failure of the judge belongs to the old grading and does not explain why the response is
    # missing.
    if before is not None and before.fault is not Fault.JUDGE:
        return before
    detail = (
        f"run {context.plan.regrade_of} holds no response of {', '.join(names)} for this trial."
    )
    return Failure(kind="no_response", fault=Fault.HARNESS, detail=detail)


def _lost_elsewhere(
    context: RunContext, claimed: ClaimedTrial, progress: _Progress
) -> Failure | None:
    """Return the failure in an imported trial's file, or None.

    A regrade leaves such a trial failed.
    """
    if all(candidate.name in progress.responses for candidate in context.plan.candidates):
        return None
    return context.inherited.get((claimed.task.id, claimed.k))


async def grade_again(context: RunContext, claimed: ClaimedTrial, slot: Slot) -> Failure | None:
    """Rerun one slot: judge its stored responses again.

    The old assessment stays current unless the rerun succeeds.
    """
    evaluator = next(
        e
        for e in evaluators_for(claimed.task, context.plan.judges, context.plan.rubric)
        if e.grader == slot.grader
    )
    progress = _Progress(responses=dict(claimed.responses))
    await _grade(context, claimed, evaluator, slot, progress, attempt=_next_attempt(claimed, slot))
    return _worst(progress.failures)


async def _respond(
    context: RunContext,
    claimed: ClaimedTrial,
    candidate: CandidateSpec,
    progress: _Progress,
    *,
    last: tuple[Evaluator, ...] | None = None,
) -> None:
    """Request one candidate's response.

    If it is the trial's last missing step, pass the evaluators that grade it as `last`.
    """
    if candidate.model is None:
        return
    if (
        claimed.task.scenario is not None
        and candidate.model.program is None
        and context.workspaces is not None
    ):
        try:
            response, calls = await work(
                context,
                context.workspaces,
                claimed.task.scenario,
                claimed,
                candidate,
                candidate.model,
            )
        except NotYet:
            progress.waits = True
        except GaveUp as gave_up:
            await _give_up(context, claimed, gave_up.failure, progress, last)
        except CallFailed as error:
            failure = Failure(
                kind=error.kind, fault=error.fault or Fault.HARNESS, detail=error.detail
            )
            await _give_up(context, claimed, failure, progress, last)
        else:
            await _keep(context, claimed, response, calls, progress, last)
        return
    conversation = Conversation(context.plan, claimed, candidate, candidate.model)
    while (request := conversation.request) is not None:
        async with context.slots:
            try:
                answer = await context.asker.answer(request, _as_it_is, trial=claimed.key)
            except NotYet:
                progress.waits = True
                return
            except GaveUp as gave_up:
                await _give_up(context, claimed, gave_up.failure, progress, last)
                return
            conversation.hear(answer.reply)
            if conversation.request is not None:
                # Stored before the next turn, so that a killed process repeats one call and not the
                # whole conversation.
                await context.journal.record(Entry(trial=claimed.key, calls=answer.calls))
                continue
            await _keep(context, claimed, conversation.response, answer.calls, progress, last)
            return
    # The process was killed after all replies were stored; only the response is missing.
    await _keep(context, claimed, conversation.response, (), progress, last)


async def _give_up(
    context: RunContext,
    claimed: ClaimedTrial,
    failure: Failure,
    progress: _Progress,
    last: tuple[Evaluator, ...] | None,
) -> None:
    """Record the failure of a candidate; if `last` is given, commit it as the end of the trial."""
    progress.failures.append(failure)
    if last is not None:
        plain = await _graded_plainly(context, claimed, last, progress)
        await context.journal.record(
            Entry(
                trial=claimed.key,
                assessments=plain,
                finished=True,
                failure=failure,
                rerun=context.rerun,
            )
        )


async def _keep(
    context: RunContext,
    claimed: ClaimedTrial,
    response: Response,
    calls: tuple[CallRecord, ...],
    progress: _Progress,
    last: tuple[Evaluator, ...] | None,
) -> None:
    """Commit a response with its last call and, if `last` is given, its grades and the end of the
    trial.
    """
    progress.responses[response.candidate] = response
    plain = () if last is None else await _graded_plainly(context, claimed, last, progress)
    by_candidate = bool(calls) and calls[0].request.purpose.role is Role.CANDIDATE
    await context.journal.record(
        Entry(
            trial=claimed.key,
            calls=calls,
            responses=((response, 0 if by_candidate else None),),
            assessments=plain,
            finished=last is not None,
            failure=None if last is None else _worst(progress.failures),
            rerun=context.rerun,
        )
    )


def _open_slots(
    context: RunContext,
    claimed: ClaimedTrial,
    evaluators: tuple[Evaluator, ...],
    progress: _Progress,
) -> list[tuple[Evaluator, Slot]]:
    names = tuple(
        c.name
        for c in context.plan.candidates
        if c.model is not None or c.name in progress.responses
    )
    return [
        (evaluator, slot)
        for evaluator in evaluators
        for slot in evaluator.slots(names)
        if not _graded_already(claimed, slot, names) and _gradable(slot, names, progress)
    ]


def _graded_already(claimed: ClaimedTrial, slot: Slot, names: tuple[str, ...]) -> bool:
    """True if the slot's current assessment covers all candidates, including those added later."""
    graded = claimed.graded.get((slot.grader, slot.candidate))
    return graded is not None and (slot.candidate is not None or graded.issuperset(names))


def _next_attempt(claimed: ClaimedTrial, slot: Slot) -> int:
    return claimed.attempts.get((slot.grader, slot.candidate), 0) + 1


async def _graded_plainly(
    context: RunContext,
    claimed: ClaimedTrial,
    evaluators: tuple[Evaluator, ...],
    progress: _Progress,
) -> tuple[tuple[NewAssessment, int | None], ...]:
    """Return the assessments of the deterministic scorers; a scorer that cannot grade adds a
    failure to `progress`.
    """
    graded: list[tuple[NewAssessment, int | None]] = []
    for evaluator, slot in _open_slots(context, claimed, evaluators, progress):
        if evaluator.by_model:
            continue
        attempt = _next_attempt(claimed, slot)
        grading = grading_attempt(
            context.plan, claimed, slot, progress.responses, attempt=attempt, note=""
        )
        try:
            assessment, _ = await _assess(context, claimed, evaluator, grading)
        except Unscorable as error:
            # The answer was paid for, so it is kept, although the trial fails for the scorer's
            # reason.
            progress.failures.append(_undecided(error))
        else:
            graded.append((_new(context, claimed, slot, assessment, attempt=attempt), None))
    return tuple(graded)


async def _grade(
    context: RunContext,
    claimed: ClaimedTrial,
    evaluator: Evaluator,
    slot: Slot,
    progress: _Progress,
    *,
    attempt: int,
    finishing: bool = False,
) -> None:
    """Grade one slot.

    If `finishing` is True, the trial is complete and is released in the same commit.
    """
    note = "" if context.rerun is None else context.rerun.note
    grading = grading_attempt(
        context.plan, claimed, slot, progress.responses, attempt=attempt, note=note
    )

    async def assess(scorer: Evaluator, alone: GradingAttempt) -> Assessment:
        return (await _assess(context, claimed, scorer, alone))[0]

    finals: dict[str, str] = {}
    async with context.slots:
        try:
            shown, finals = await structured(context, claimed, grading)
            if context.only_structure:
                return
            assessment, calls = await _assess(context, claimed, evaluator, shown)
            assessment = await verified(context, grading, finals, assessment, assess)
        except NotYet:
            progress.waits = True
            return
        except (GaveUp, Unscorable) as error:
            failure = error.failure if isinstance(error, GaveUp) else _undecided(error)
            progress.failures.append(failure)
            unread = (
                _unread(context, evaluator, grading, slot, error) if context.rerun is None else ()
            )
            if unread and finals:  # the check of final answers needs no judge
                ((new, call),) = unread
                unread = (
                    (
                        replace(
                            new,
                            assessment=await verified(
                                context, grading, finals, new.assessment, assess
                            ),
                        ),
                        call,
                    ),
                )
            if finishing:
                await context.journal.record(
                    Entry(trial=claimed.key, assessments=unread, finished=True, failure=failure)
                )
            else:
                # stored at the end: a stored form would make the next request another attempt
                progress.unread += unread
            return
        new = _new(context, claimed, slot, assessment, attempt=attempt)
        graded = ((new, len(calls) - 1 if calls else None),)
        # Control items use numbers that were left free among those of real items. A number after
        # all the others would reveal them.
        spare = int(
            protocol_of(context.plan.protocol).leaves_free(
                seed=context.plan.seed, key=int(claimed.key)
            )
        )
        await context.journal.record(
            Entry(
                trial=claimed.key,
                calls=calls,
                assessments=graded,
                finished=finishing,
                rerun=context.rerun,
                spare=spare,
            )
        )


def _unread(
    context: RunContext,
    evaluator: Evaluator,
    grading: GradingAttempt,
    slot: Slot,
    error: GaveUp | Unscorable,
) -> tuple[tuple[NewAssessment, None], ...]:
    """Return an empty grading form with the judge's unreadable reply, so that a person can read the
    reply and grade.
    """
    rubric = rubric_of(evaluator)
    if not isinstance(error, GaveUp) or error.failure.kind != "unparsable" or rubric is None:
        return ()
    if rubric.rules is not None and not rubric.rules.parse_error:
        return ()
    form_of = (
        evaluator.form if isinstance(evaluator, WorkspaceJudge) else partial(empty_form, rubric)
    )
    form = form_of(grading, reply=error.unread, problem=error.failure.detail)
    return (
        (
            NewAssessment(
                slot=slot, attempt=grading.attempt, assessment=form, state=AssessmentState.PENDING
            ),
            None,
        ),
    )


async def _assess(
    context: RunContext, claimed: ClaimedTrial, evaluator: Evaluator, grading: GradingAttempt
) -> tuple[Assessment, tuple[CallRecord, ...]]:
    """Send an evaluator's requests in rounds until it returns an assessment.

    Returns the assessment and the last round's calls, which are not stored yet. The last reply of a
    round is parsed while a retry is still possible.
    """
    answers: tuple[Answer, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    requests = evaluator.ask(grading)
    while True:
        outcome: Assessment | MoreRequests | None = (
            None if requests else evaluator.read(grading, answers)
        )
        waits = False
        for place, request in enumerate(requests):
            last = place == len(requests) - 1
            if not isinstance(request, ModelRequest):
                answers = (*answers, await _worked_out(context, request))
                outcome = evaluator.read(grading, answers) if last else None
                continue
            read: Callable[[Reply], Any] = (
                _reading(evaluator, grading, answers) if last else _as_it_is
            )
            if last and waits:  # its reading needs the others
                read = _as_it_is
            try:
                answer: ReadAnswer[Any] = await context.asker.answer(
                    request, read, trial=claimed.key
                )
            except NotYet:
                waits = True
                continue
            except GaveUp:
                if calls:  # they were paid for, so they are kept
                    await context.journal.record(Entry(trial=claimed.key, calls=calls))
                raise
            answers, calls = (*answers, answer.reply), (*calls, *answer.calls)
            outcome = answer.read if last else None
        if waits:
            if calls:
                await context.journal.record(Entry(trial=claimed.key, calls=calls))
            raise NotYet
        if isinstance(outcome, Assessment):
            return outcome, calls
        if not isinstance(outcome, MoreRequests):
            raise TypeError(f"{evaluator.grader} returned neither an assessment nor requests")
        # A pairwise judge asks in many rounds. Calls that were paid for are stored before the next
        # round begins.
        requests = outcome.requests
        if calls:
            await context.journal.record(Entry(trial=claimed.key, calls=calls))
            calls = ()


async def _worked_out(
    context: RunContext, request: IsolatedRequest | CommandRequest | PageRequest
) -> Answer:
    """Carry out a request on this machine, with limited concurrency because a batch has hundreds of
    such requests.
    """
    async with context.work:
        match request:
            case IsolatedRequest():
                return await context.workers.call(request)
            case CommandRequest():
                return await context.commands.run(request)
            case PageRequest():
                return await context.pages.shoot(request)


def _reading(
    evaluator: Evaluator, grading: GradingAttempt, before: tuple[Answer, ...]
) -> Callable[[Reply], Assessment | MoreRequests]:
    return lambda reply: evaluator.read(grading, (*before, reply))


def _as_it_is(reply: Reply) -> None:
    """Accept any reply without parsing it."""


def _undecided(error: Unscorable) -> Failure:
    return Failure(kind=error.kind, fault=error.fault, detail=error.detail)


def _new(
    context: RunContext, claimed: ClaimedTrial, slot: Slot, assessment: Assessment, *, attempt: int
) -> NewAssessment:
    # an empty form must never count
    policy = Policy.EVERY if slot.grader == PERSON else context.plan.policy
    sampled = context.lottery is None or context.lottery.holds(claimed.task.id, claimed.k)
    state = first_state(
        by_model=slot.by_model, policy=policy, flagged=bool(assessment.flags), sampled=sampled
    )
    return NewAssessment(slot=slot, attempt=attempt, assessment=assessment, state=state)


def _gradable(slot: Slot, names: tuple[str, ...], progress: _Progress) -> bool:
    needed = names if slot.candidate is None else (slot.candidate,)
    return all(name in progress.responses for name in needed)


def grading_attempt(
    plan: RunPlan,
    claimed: ClaimedTrial,
    slot: Slot,
    responses: Mapping[str, Response],
    *,
    attempt: int = 1,
    note: str = "",
) -> GradingAttempt:
    """Return an attempt at grading one slot of a trial, with its responses in randomly drawn
    order.
    """
    known = (candidate.name for candidate in plan.candidates)
    names = (
        [name for name in known if name in responses]
        if slot.candidate is None
        else [slot.candidate]
    )
    turn = next(
        (judge.turns_before(claimed.k) for judge in plan.judges if judge.name == slot.grader),
        claimed.k - 1,
    )
    # A resumed run repeats the order; a rerun, or a regrade with the same seed, draws a new one.
    drawn_for = (
        f"order:{slot.grader}" if plan.regrade_of is None else f"regraded order:{slot.grader}"
    )
    order = tuple(names)
    if len(names) > 1:
        order = shown_order(
            names, seed=derived_seed(plan.seed, claimed.task.id, 0, attempt, drawn_for), turn=turn
        )
    labels = labels_in(order, others=(candidate.name for candidate in plan.candidates))
    return GradingAttempt(
        task=claimed.task,
        responses=tuple(responses[name] for name in order),
        labels={name: labels[name] for name in names},
        k=claimed.k,
        attempt=attempt,
        seed=derived_seed(
            plan.seed, claimed.task.id, claimed.k, attempt, _seed_purpose(plan, slot.grader)
        ),
        note=note,
    )


def _seed_purpose(plan: RunPlan, grader: str) -> str:
    """Return the purpose of a judge's seed: its own for a judge whose model an earlier judge of the
    panel has.

    A provider that honours seeds would otherwise repeat the earlier judge's grading word by word.
    """
    own = next((judge for judge in plan.judges if judge.name == grader), None)
    earlier = (
        judge.model.ref for judge in takewhile(lambda judge: judge.name != grader, plan.judges)
    )
    return "judge" if own is None or own.model.ref not in earlier else f"judge:{grader}"


async def _together(steps: list[Any]) -> None:
    if len(steps) == 1:
        await steps[0]
    elif steps:
        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(step)


_GRAVITY = (
    Fault.HARNESS,
    Fault.BUDGET,
    Fault.PROVIDER,
    Fault.JUDGE,
    Fault.REFUSAL,
    Fault.CANDIDATE,
)


def _worst(failures: list[Failure]) -> Failure | None:
    """Return the failure to record for a trial: the one that counts least against the
    candidates.
    """
    return min(failures, key=lambda failure: _GRAVITY.index(failure.fault)) if failures else None
