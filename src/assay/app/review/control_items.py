"""Read, create and rerun control items: planted checks and repeats among a reviewer's real
assessments.

A control item behaves like a real item when a reviewer opens, decides, undoes or reruns it, and has
the same rules and responses. Only `row.purpose` shows that it does not count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assay.app.review import decisions
from assay.app.review.control_item_factory import ControlItemFactory
from assay.app.review.observations import note
from assay.app.review.rerun import check_rerun
from assay.domain import decisions as rules
from assay.domain.control_items import AttemptOrigin, CheckOrigin, ControlItem, ControlKind
from assay.domain.identifiers import AssessmentKey, folded
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState, Verb
from assay.domain.observations import CheckAnswered, DecisionTaken, Observation
from assay.domain.protocol import PLAIN, Protocol
from assay.domain.review import Decision, ReviewEvent
from assay.domain.selection import AssessmentDetail, Selection
from assay.scoring.planted_errors import GOOD, reordered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.review.concealment import Concealment
    from assay.app.review.double_review import SecondOpinions
    from assay.app.review.protocol import RunProtocols
    from assay.app.review.submitted_decision import ResolvedDecision
    from assay.domain.decisions import Place
    from assay.store.opening import Store

_WAITING = frozenset({AssessmentState.PENDING})


class ControlItems:
    """Reads real assessments and control items by key, and creates control items."""

    def __init__(
        self, store: Store, concealment: Concealment, plans: RunProtocols, opinions: SecondOpinions
    ) -> None:
        self._store = store
        self._concealment = concealment
        self._plans = plans
        self._opinions = opinions
        self._factory = ControlItemFactory(store)

    def detail(self, key: AssessmentKey) -> AssessmentDetail:
        """Return the assessment or control item with this key; raises `UnknownName`."""
        # raises `UnknownName`
        return self.details([key]).get(key) or decisions.assessment(self._store, key)

    def details(self, keys: Sequence[AssessmentKey]) -> dict[AssessmentKey, AssessmentDetail]:
        """Return assessments and control items by key, without unknown keys.

        The same queries read both, so that the response time does not show which item is a control
        item.
        """
        control = {item.key: item for item in self._store.control_items.read(keys=keys)}
        sources = dict.fromkeys(control[key].source if key in control else key for key in keys)
        real = {
            detail.row.key: detail for detail in self._store.archive.assessments.details([*sources])
        }
        events = self._store.control_items.events(list(control))
        details: dict[AssessmentKey, AssessmentDetail] = {}
        for key in keys:
            item = control.get(key)
            if item is not None:
                details[key] = self._as_detail(item, real[item.source], events[key])
            elif key in real:
                details[key] = real[key]
        return details

    def disputable(self, key: AssessmentKey) -> AssessmentDetail | None:
        """Return an item that two reviewers may dispute; None for a control item of a run that no
        longer hides control items.
        """
        detail = self.detail(key)
        real = detail.row.purpose is AssessmentPurpose.WORK
        return detail if real or self._concealment.covers(detail.row.run_id) else None

    def put_after(
        self, detail: AssessmentDetail, decision: Observation, protocol: Protocol
    ) -> None:
        """Create the control items that the protocol draws after a decision on a real item."""
        if protocol.mode != PLAIN.mode:
            seed = self._plans.plan(detail.row.run_id).seed
            self._factory.after(detail, decision, protocol=protocol, seed=seed)

    def waiting(self, selection: Selection, *, reviewer: str) -> tuple[AssessmentKey, ...]:
        """Return the keys of a reviewer's pending control items, new attempts first; only for runs
        with pending real items.
        """
        items = [
            item
            for item in self._store.control_items.read(reviewer=reviewer, states=_WAITING)
            if self._concealment.covers(item.run_id)
            and (not selection.runs or item.run_id in selection.runs)
        ]
        if items and selection.suites:
            suites = {folded(name) for name in selection.suites}
            summaries = self._store.archive.runs.matching(
                Selection(runs=tuple({item.run_id for item in items}))
            )
            runs = {run.id for run in summaries if folded(run.suite) in suites}
            items = [item for item in items if item.run_id in runs]
        if items and (selection.tasks or selection.judges):
            sources = self._store.archive.assessments.details([*{item.source for item in items}])
            rows = {detail.row.key: detail.row for detail in sources}
            items = [
                item
                for item in items
                if (not selection.tasks or rows[item.source].task in selection.tasks)
                and (not selection.judges or rows[item.source].grader in selection.judges)
            ]
        due = self._factory.due(items, reviewer=reviewer)
        # After an opinion the item is still pending, but its reviewer must not get it a second
        # time, as with a real item.
        closed = (
            self._opinions.not_decidable_by([item.key for item in due], reviewer=reviewer)
            if due
            else ()
        )
        due.sort(key=lambda item: item.kind is not ControlKind.ATTEMPT)
        return tuple(item.key for item in due if item.key not in closed)

    def rerun(
        self, detail: AssessmentDetail, decision: Decision, *, taken: DecisionTaken
    ) -> AssessmentKey:
        """Make a further attempt at a control item from its original grades, with the candidates in
        another order.

        This calls no model and costs nothing. Requesting it for a planted check counts as finding
        the problem. Raises `Refused` if a real item in the same state could not be judged again.
        """
        reviewer, idempotency_key = decision.reviewer, decision.key
        if any(event.decision.key == idempotency_key for event in detail.events):
            return detail.attempts[-1]
        check_rerun(detail.row)
        (item,) = self._store.control_items.read(keys=[detail.row.key])
        (source,) = self._store.archive.assessments.details([item.source])
        attempt = len(detail.attempts) + 1
        seed = self._plans.plan(item.run_id).seed
        new = ControlItem(
            key=AssessmentKey(0),
            run_id=item.run_id,
            source=item.source,
            reviewer=item.reviewer,
            made=self._store.clock.now(),
            # The attempt has the unaltered grades, because a second look at a planted error would
            # measure nothing.
            judged=reordered(source.judged, seed=seed, key=int(item.source) + attempt),
            origin=AttemptOrigin(first=item.first),
            attempt=attempt,
        )
        key = self._store.control_items.supersede(decision, new)
        note(self._store, detail, reviewer, f"decision:{idempotency_key}", taken)
        answered = item.state is not AssessmentState.PENDING or reviewer in self._opinions.of(
            item.key
        )
        if isinstance(item.origin, CheckOrigin) and not answered and self._measures(item, reviewer):
            result = CheckAnswered(caught=True, verb=Verb.REJECT, how=item.origin.how)
            note(self._store, detail, reviewer, f"check:{idempotency_key}", result)
        return key

    def note_result(self, detail: AssessmentDetail, resolved: ResolvedDecision) -> None:
        decision = resolved.decision
        (item,) = self._store.control_items.read(keys=[detail.row.key])
        if not isinstance(item.origin, CheckOrigin) or not self._measures(item, decision.reviewer):
            return
        altered = item.origin.how != GOOD
        caught = decision.verb is Verb.REJECT or any(
            not altered or _touches(place, item.origin.places) for place in decision.corrections
        )
        result = CheckAnswered(caught=caught, verb=decision.verb, how=item.origin.how)
        note(self._store, detail, decision.reviewer, f"check:{decision.key}", result)

    def _measures(self, item: ControlItem, reviewer: str) -> bool:
        """True if a response measures this reviewer: the control item was made for them and was
        shown while pending.
        """
        return item.reviewer == reviewer and self._concealment.covers(item.run_id)

    def _as_detail(
        self, item: ControlItem, source: AssessmentDetail, events: tuple[ReviewEvent, ...]
    ) -> AssessmentDetail:
        """Return a control item as an assessment detail, with its state, its history and the scores
        that would count.
        """
        attempts = self._attempts(item)
        counted = item.judged
        if item.state is AssessmentState.CORRECTED:
            counted = rules.with_corrections(item.judged, events[-1].decision.corrections)
        row = replace(
            source.row,
            key=item.key,
            purpose=AssessmentPurpose.CONTROL,
            state=item.state,
            current=item.state is not AssessmentState.SUPERSEDED,
            attempt=item.attempt,
            assessment=counted,
        )
        return replace(source, row=row, judged=item.judged, attempts=attempts, events=events)

    def _attempts(self, item: ControlItem) -> tuple[AssessmentKey, ...]:
        """Return the keys of all attempts at a control item, oldest first."""
        alike = self._store.control_items.read(source=item.source, reviewer=item.reviewer)
        attempts = [other for other in alike if other.first == item.first]
        return tuple(other.key for other in sorted(attempts, key=lambda other: other.attempt))


def _touches(place: Place, altered: Sequence[tuple[str, str]]) -> bool:
    candidate, criterion = place
    return any(
        candidate == name and criterion in (None, altered_criterion)
        for name, altered_criterion in altered
    )
