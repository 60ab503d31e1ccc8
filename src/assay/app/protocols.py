"""The review protocol that holds for a run, and switching it for what is still to come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.domain.digest import canonical
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState
from assay.domain.observing import Observation, Seen
from assay.domain.protocol import MOST, PLAIN, SHARES, Protocol, protocol_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.app.wiring import Workspace
    from assay.domain.identifiers import RunId
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary

OF_THE_RUN = AssessmentKey(0)
"""Stands where an observation concerns no single assessment."""


def holding(workspace: Workspace, plan: RunPlan) -> Protocol:
    """The newest version of a run's protocol."""
    switched = workspace.witness.observations(kinds=(Seen.PROTOCOL,), run=plan.id, assessments=(OF_THE_RUN,))
    return protocol_of(switched[-1].body if switched else plan.protocol)


def withholds(workspace: Workspace, summary: RunSummary) -> bool:
    """Whether a page must not say who wrote what in a run: items wait, and its protocol is more than plain."""
    if not summary.assessments.get(AssessmentState.PENDING):
        return False
    return holding(workspace, workspace.journal.plan_of(summary.id)).mode != PLAIN.mode


def switch(workspace: Workspace, run: RunId, shares: Mapping[str, float], *, reviewer: str | None = None) -> Protocol:
    """Make these shares hold for what is still to be reviewed of a run; the protocol as it is now.

    Raises:
        InputError: a share that is not there, or a number outside its range.
        UnknownName: there is no such run.
    """
    for name, value in shares.items():
        if name not in SHARES:
            raise UnknownName("share", name, SHARES, remedy=f"A protocol has: {', '.join(SHARES)}.")
        if not 0 <= value <= MOST[name]:
            raise InputError(name, f"is {value!r}, and must be from 0 to {MOST[name]:g}.")
    plan = workspace.journal.plan_of(run)
    before = holding(workspace, plan)
    after = replace(before, **shares)  # type: ignore[arg-type]  # every share is a field of that name
    if after == before:
        return before
    after = replace(after, version=before.version + 1)
    who = reviewer or workspace.reviewer
    (kept,) = workspace.witness.note(
        [
            Observation(
                kind=Seen.PROTOCOL, run_id=plan.id, assessment=OF_THE_RUN, reviewer=who, at=workspace.clock.now(),
                once=f"protocol:{plan.id}:{after.version}", body=after.as_json(),
            )
        ]
    )  # fmt: skip
    return protocol_of(kept.body)


def in_use(workspace: Workspace, plans: Iterable[RunPlan]) -> tuple[dict[str, Any], ...]:
    """How these runs are reviewed, each protocol once, with the `runs` it holds for."""
    switched = {one.run_id: one.body for one in workspace.witness.observations(kinds=(Seen.PROTOCOL,))}
    found: dict[str, dict[str, Any]] = {}
    for plan in plans:
        said = {name: value for name, value in plan.protocol.items() if name not in SHARES}
        one = {**said, "policy": str(plan.policy), **protocol_of(switched.get(plan.id, plan.protocol)).as_json()}
        found.setdefault(canonical(one), {**one, "runs": []})["runs"].append(str(plan.id))
    return tuple(found.values())
