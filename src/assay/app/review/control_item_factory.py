"""Create planted checks and repeats after decisions, and select those that are due.

A check is a copy of a decided assessment, so that it influences no real decision. Half of the
checks are altered. Reviewers overlook problems if fewer than one item in ten has one (the low
prevalence effect), so the share of altered checks is then raised until one item in ten is a real
problem or an altered check. A repeat shows a decided item again, with the candidates in another
order. It is created at once but shown only after enough decisions and hours.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from assay.app.review import decisions
from assay.domain.control_items import CheckOrigin, ControlItem, ControlOrigin, RepeatOrigin
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState, Verb
from assay.domain.observations import Arm, DecisionTaken, Observation, ObservationKind, with_body
from assay.domain.own_work import is_own_work
from assay.domain.protocol import MOST, Protocol, chance
from assay.scoring.planted_errors import DecidedAssessment, planted, reordered, unaltered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from assay.domain.assessment import Assessment
    from assay.domain.selection import AssessmentDetail
    from assay.store.opening import Store

RECENT: Final = 5
"""This many of a reviewer's latest items never become control items, because the reviewer would
recognise them.
"""

RARE: Final = 0.1
"""If a smaller fraction of items has problems, reviewers start to overlook problems."""

_ENOUGH: Final = 20  # decisions needed before the share of problems is estimated
_LOOKED_AT: Final = 200  # number of the reviewer's newest decisions that the estimate uses
_SOURCES: Final = 1_000  # number of a run's newest decisions from which checks are made
_TRIES: Final = 12  # number of sources tried before no check is made
_COUNTED: Final = (AssessmentState.APPROVED, AssessmentState.CORRECTED)


class ControlItemFactory:
    """Creates planted checks and repeats, and selects those that are due."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def after(
        self, detail: AssessmentDetail, decision: Observation, *, protocol: Protocol, seed: int
    ) -> None:
        key, run = int(detail.row.key), detail.row.run_id
        altered = unaltered_share = protocol.plants / 2
        if protocol.plants:
            altered = self._altered_share(run, decision.reviewer, share=altered)
        if chance(seed, "plant_bad", key) < altered:
            self._put_check(detail, decision.reviewer, seed=seed, good=False)
        if chance(seed, "plant_good", key) < unaltered_share:
            self._put_check(detail, decision.reviewer, seed=seed, good=True)
        if protocol.draws("rereview", seed=seed, key=key):
            self._put_repeat(detail, decision, protocol, seed=seed)

    def due(self, items: Iterable[ControlItem], *, reviewer: str) -> list[ControlItem]:
        """Return the control items that may be shown now.

        A repeat is due only after enough decisions and hours.
        """
        now = _moment(self._store.clock.now())
        return [item for item in items if self._is_due(item, reviewer, now)]

    def _is_due(self, item: ControlItem, reviewer: str, now: datetime) -> bool:
        origin = item.origin
        if not isinstance(origin, RepeatOrigin):
            return True
        if now < _moment(origin.due):
            return False
        if (
            self._store.observations.decided_since(origin.since, reviewer=reviewer)
            < origin.after_items
        ):
            return False
        # If the decision was undone or changed since, a repeat has nothing to be compared with.
        row = decisions.assessment(self._store, item.source).row
        return row.state in _COUNTED and dict(row.assessment.scores) == origin.scores

    def _put_repeat(
        self, detail: AssessmentDetail, decision: Observation, protocol: Protocol, *, seed: int
    ) -> None:
        row = decisions.assessment(self._store, detail.row.key).row
        if row.state not in _COUNTED:
            return
        pending = {AssessmentState.PENDING}
        waiting = self._store.control_items.read(
            reviewer=decision.reviewer, source=row.key, states=pending
        )
        if any(isinstance(item.origin, RepeatOrigin) for item in waiting):
            return
        origin = RepeatOrigin(
            scores=dict(row.assessment.scores),
            since=decision.id,
            after_items=protocol.gap_items,
            due=(_moment(decision.at) + timedelta(hours=protocol.gap_hours)).isoformat(),
        )
        judged = reordered(detail.judged, seed=seed, key=int(row.key))
        self._put(detail, decision.reviewer, judged, origin)

    def _altered_share(self, run: RunId, reviewer: str, *, share: float) -> float:
        """Return the share of altered checks; it is raised if the reviewer meets too few problems
        to stay attentive.
        """
        newest = self._taken(run, reviewer=reviewer, newest=_LOOKED_AT)
        verbs = [taken.verb for _, taken in newest if taken.verb is not Verb.UNDO]
        if len(verbs) < _ENOUGH:
            return share
        problems = sum(verb is not Verb.APPROVE for verb in verbs) / len(verbs)
        return min(max(share, RARE - problems), MOST["plants"] / 2)

    def _taken(
        self, run: RunId, *, reviewer: str | None = None, newest: int
    ) -> list[tuple[Observation, DecisionTaken]]:
        observations = self._store.observations.read(
            kinds=(ObservationKind.DECISION,),
            purpose=AssessmentPurpose.WORK,
            run=run,
            reviewer=reviewer,
            newest=newest,
        )
        return with_body(observations, DecisionTaken)

    def _put_check(self, detail: AssessmentDetail, reviewer: str, *, seed: int, good: bool) -> None:
        run = detail.row.run_id
        vouched = self._vouched(run, reviewer)
        made = {item.source for item in self._store.control_items.read(reviewer=reviewer, run=run)}
        fit = [key for key in vouched if key not in made and (not good or vouched[key])]
        # An unaltered check is only as good as its source, so sources decided blind or by another
        # reviewer come first.
        fit.sort(key=lambda key: (good and vouched[key] == "own", chance(seed, "source", int(key))))
        for key in fit[:_TRIES]:
            real = decisions.assessment(self._store, key)
            if is_own_work(reviewer, real.row.candidates):
                continue  # the reviewer could not decide the check
            if real.row.trial == detail.row.trial or not real.row.current or not real.row.by_model:
                continue
            if real.row.state not in (_COUNTED[:1] if good else _COUNTED) or (
                good and real.judged.flags
            ):
                continue
            source = DecidedAssessment(
                assessment=real.judged,
                responses={response.candidate: response.text for response in real.responses},
                other=None if good else self._of_another_task(real, fit),
            )
            plant = unaltered(source) if good else planted(source, seed=seed, key=int(key))
            if plant is not None:
                origin = CheckOrigin(how=plant.how, places=plant.places, vouched_by=vouched[key])
                self._put(real, reviewer, plant.assessment, origin)
                return

    def _vouched(self, run: RunId, reviewer: str) -> dict[AssessmentKey, str]:
        """Return decided items that checks can copy, with the kind of decision that confirmed each
        (see `CheckOrigin`).
        """
        taken = self._taken(run, newest=_SOURCES)
        recent = [
            observation.assessment
            for observation, _ in reversed(taken)
            if observation.reviewer == reviewer
        ]
        left_out = set([*dict.fromkeys(recent)][:RECENT])
        last = {observation.assessment: (observation, decision) for observation, decision in taken}
        vouched: dict[AssessmentKey, str] = {}
        for key, (observation, decision) in last.items():
            if key in left_out or decision.verb not in (Verb.APPROVE, Verb.CORRECT):
                continue
            by = "own" if observation.reviewer == reviewer else "other"
            by = "blind" if decision.arm is Arm.BLIND else by
            vouched[key] = by if decision.verb is Verb.APPROVE else ""
        return vouched

    def _of_another_task(
        self, real: AssessmentDetail, keys: Sequence[AssessmentKey]
    ) -> Assessment | None:
        row = real.row
        for key in keys[:_TRIES]:
            if key == row.key:
                continue
            other = decisions.assessment(self._store, key)
            alike = (other.row.grader, other.row.candidates) == (row.grader, row.candidates)
            if alike and other.row.task != row.task:
                return other.judged
        return None

    def _put(
        self, source: AssessmentDetail, reviewer: str, judged: Assessment, origin: ControlOrigin
    ) -> None:
        self._store.control_items.put(
            ControlItem(
                key=AssessmentKey(0),
                run_id=source.row.run_id,
                source=source.row.key,
                reviewer=reviewer,
                made=self._store.clock.now(),
                judged=judged,
                origin=origin,
            )
        )


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at)
