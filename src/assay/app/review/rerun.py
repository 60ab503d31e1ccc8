"""Judge or execute one trial again."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.app.review.decisions import refuse_disputed, require_reason
from assay.app.review.lottery import stored_lottery
from assay.domain import review
from assay.domain.errors import Refused, StoreError
from assay.domain.events import nobody
from assay.domain.identifiers import AssessmentKey, TrialKey, shown_assessment
from assay.domain.lifecycle import MAX_ATTEMPTS, Verb
from assay.domain.review import Decision, Via
from assay.domain.run import ClaimedTrial, Slot
from assay.domain.selection import AssessmentRow, Selection
from assay.domain.suite import PERSON
from assay.engine.execution import Engine
from assay.engine.trial import carry_out, grade_again

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from assay.app.workspace import Workspace
    from assay.domain.failure import Failure
    from assay.engine.run_context import RunContext
    from assay.store.opening import Store


async def rerun(
    workspace: Workspace,
    key: AssessmentKey,
    *,
    reason: str,
    note: str = "",
    force: bool = False,
    reviewer: str | None = None,
    stated_by: str | None = None,
    via: Via = Via.SCRIPT,
    displayed: bool = False,
    idempotency_key: str | None = None,
) -> tuple[AssessmentKey | None, Failure | None]:
    """Judge the stored responses of one trial again; return the key of the new attempt, or the
    failure.

    The rest of the run is unchanged. If the judge fails, the old attempt stays current. A repeated
    idempotency key calls no model and returns the attempt of the earlier request. Reruns may run in
    parallel, because each has separate providers. `stated_by`: the person who gave the reviewer's
    name; None for this workspace's reviewer.

    Raises Refused if all attempts are used and `force` is False, or if the assessment is not the
    current attempt.
    """
    require_reason(reason or note, "a rerun")
    row, known = _checked(workspace.store, key, force=force, idempotency_key=idempotency_key)
    if known is not None:
        return known, None
    decision = Decision(
        assessment=key,
        verb=Verb.RERUN,
        reviewer=reviewer or workspace.reviewer,
        stated_by=_stater(workspace, reviewer, via, displayed=displayed)
        if stated_by is None
        else stated_by,
        via=via,
        displayed=displayed,
        reason=reason or note,
        note=note,
        key=idempotency_key,
    )
    claimed = workspace.journal.claim_trial(row.trial)
    judged = False
    try:
        async with _context(workspace, claimed, decision) as context:
            # Checked again once claimed, because another process may meanwhile have judged the
            # trial or handled this same request.
            row, known = _checked(
                workspace.store, key, force=force, idempotency_key=idempotency_key
            )
            if known is not None:
                return known, None
            judged = True
            slot = Slot(grader=row.grader, candidate=row.candidate, by_model=row.by_model)
            failure = await grade_again(context, claimed, slot)
        return (
            (None, failure)
            if failure
            else (workspace.archive.assessments.detail(key).attempts[-1], None)
        )
    except StoreError:
        # A PostgreSQL session may end after the commit but before its reply.
        detail = workspace.archive.assessments.detail(key)
        asked = [event.decision for event in detail.events if event.decision.verb is Verb.RERUN]
        if not judged or (decision.reviewer, decision.reason) not in [
            (each.reviewer, each.reason) for each in asked
        ]:
            raise
        return detail.attempts[-1], None


def _stater(workspace: Workspace, reviewer: str | None, via: Via, *, displayed: bool) -> str:
    return review.stated_by(
        reviewer or workspace.reviewer, signed_in=workspace.login, via=via, displayed=displayed
    )


def _checked(
    store: Store, key: AssessmentKey, *, force: bool, idempotency_key: str | None
) -> tuple[AssessmentRow, AssessmentKey | None]:
    """Return the assessment to judge again, and the resulting attempt if this request was already
    carried out.
    """
    detail = store.archive.assessments.detail(key)
    if idempotency_key is not None and any(
        event.decision.key == idempotency_key for event in detail.events
    ):
        return detail.row, detail.attempts[-1]
    check_rerun(detail.row, force=force)
    refuse_disputed(store, (key,))
    return detail.row, None


@asynccontextmanager
async def _context(
    workspace: Workspace, claimed: ClaimedTrial, decision: Decision
) -> AsyncIterator[RunContext]:
    """Yield a `Bench` with separate providers, which stores the decision with each assessment;
    release the trial at the end.
    """
    beside = workspace.beside()
    plan = workspace.journal.plan_of(claimed.run_id)
    engine = Engine(
        journal=workspace.journal,
        directory=beside.directory,
        workers=beside.workers,
        pages=beside.pages,
        commands=beside.commands,
        clock=workspace.clock,
        listener=nobody,
        lottery=stored_lottery(workspace.store, plan),
    )
    try:
        yield engine.context(plan, rerun=decision)
    finally:
        workspace.journal.release((claimed.key,))
        workspace.results.touch(claimed.run_id, claimed.key)
        await beside.workers.close()
        await beside.directory.close()


async def rerun_trial(
    workspace: Workspace,
    trial: TrialKey,
    *,
    note: str = "",
    reason: str = "",
    responses: bool = False,
    reviewer: str | None = None,
    via: Via = Via.SCRIPT,
) -> Failure | None:
    """Execute a trial's missing calls and grades again; return the new failure, or None.

    With `responses` (for faults of the harness), the candidates also answer again as a new round,
    and the whole trial is graded again as a new attempt. Each replaced grade has an event that
    records who requested the rerun, and why.
    """
    current = [
        row
        for row in workspace.archive.assessments.matching(Selection(), trial=trial)
        if row.current
    ]
    refuse_disputed(workspace.store, [row.key for row in current])
    claimed = workspace.journal.claim_trial(trial)
    decision = Decision(
        assessment=AssessmentKey(0),  # the store fills in each assessment that is replaced
        verb=Verb.RERUN,
        reviewer=reviewer or workspace.reviewer,
        stated_by=_stater(workspace, reviewer, via, displayed=False),
        via=via,
        displayed=False,
        reason=reason
        or note
        or ("the candidates were asked again" if responses else "the trial was tried again"),
        note=note,
    )
    async with _context(workspace, claimed, decision) as context:
        if responses:
            asked = {
                candidate.name
                for candidate in context.plan.candidates
                if candidate.model is not None
            }
            kept = {
                name: response for name, response in claimed.responses.items() if name not in asked
            }
            claimed = replace(claimed, responses=kept, done=frozenset(), graded={})
        return await carry_out(context, claimed)


def rerun_now(
    workspace: Workspace,
    key: AssessmentKey,
    *,
    reason: str,
    note: str = "",
    force: bool = False,
    reviewer: str | None = None,
) -> tuple[AssessmentKey | None, Failure | None]:
    """Run `rerun` for callers without an event loop."""
    return asyncio.run(
        rerun(workspace, key, reason=reason, note=note, force=force, reviewer=reviewer)
    )


def check_rerun(row: AssessmentRow, *, force: bool = False) -> None:
    """Raise `Refused` if this assessment may not be judged again."""
    shown = shown_assessment(row.key)
    if not row.current:
        raise Refused(shown, "is superseded by a later attempt.", remedy="Rerun the current one.")
    if not row.by_model:
        raise Refused(shown, "is a deterministic score, so a rerun would give the same result.")
    if row.grader == PERSON:
        raise Refused(
            shown,
            "is graded by people, so there is no judge to rerun.",
            remedy="Undo the decision to grade it again.",
        )
    if row.attempt >= MAX_ATTEMPTS and not force:
        problem = f"is attempt {row.attempt} of at most {MAX_ATTEMPTS}."
        raise Refused(shown, problem, remedy="Reject or correct it, or add --force with a reason.")
