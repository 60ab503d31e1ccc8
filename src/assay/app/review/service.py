"""Review service behind the page: shows items, stores blind verdicts and makes decisions.

A browser gets items only from `item`, so that a single function withholds grades. The same
functions handle control items (planted checks and repeats) and real items. Observations record how
a review was done; they affect no result. In the browser, the reviewer's name decides what they may
see. The command line is the operator's and shows everything.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from assay.app.calibration_status import CalibrationStatus
from assay.app.review import arena_disclosures, decisions
from assay.app.review.control_items import ControlItems
from assay.app.review.double_review import SecondOpinions
from assay.app.review.item import Item, Pane, withheld
from assay.app.review.item_view import Showcase, named
from assay.app.review.observations import note, observation_on
from assay.app.review.protocol import RunProtocols
from assay.app.review.submitted_decision import (
    SubmittedDecision,
    by_pane,
    candidate_scores,
    decision_taken,
    resolve,
)
from assay.domain import decisions as rules
from assay.domain.blind_first import (
    ItemSeen,
    asks_for_verdict,
    is_blind,
    needs_verdict,
    verdict_first,
)
from assay.domain.errors import InputError, Refused, SettingsError, UnknownName
from assay.domain.identifiers import AssessmentKey, RunId, shown_assessment
from assay.domain.lifecycle import UNDOABLE, AssessmentPurpose, AssessmentState, Verb
from assay.domain.observations import (
    SCRIPTED_MARK,
    Arm,
    BlindVerdict,
    DecisionTaken,
    GradesShown,
    ObservationKind,
    SecondRequested,
    with_body,
)
from assay.domain.opinions import differ, opinion_of_person, standing_by_item
from assay.domain.protocol import Protocol
from assay.domain.review import Decision, Via

if TYPE_CHECKING:
    from assay.app.review.concealment import Concealment
    from assay.app.workspace import Workspace
    from assay.domain.selection import AssessmentDetail

NOT_BLIND: Final = "Not blind: the arena has shown you who wrote this."
"""Note above the grades of an item if the reviewer already knows the authors."""

_SHORT_NAME: Final = 3  # letters of a model's name that also begin other words
_REMEMBERED: Final = 20_000  # maximum number of remembered (reviewer, item) pairs


class _Remembered:
    """The newest (reviewer, item) pairs of some kind."""

    def __init__(self) -> None:
        self._pairs: OrderedDict[tuple[str, int], None] = OrderedDict()

    def __contains__(self, pair: tuple[str, int]) -> bool:
        return pair in self._pairs

    def add(self, pair: tuple[str, int]) -> None:
        self._pairs[pair] = None
        while len(self._pairs) > _REMEMBERED:
            self._pairs.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Data that is read once for all items of a request."""

    calibration_status: CalibrationStatus
    protocols: dict[RunId, Protocol]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """A reviewer's history with an item; `saw` is True if the reviewer received grades of any
    attempt at the item.
    """

    reviewer: str
    saw: bool = False
    disclosed: bool = False
    verdict: BlindVerdict | None = None
    second: bool = False


class ReviewService:
    """Review service behind the page. Thread-safe; its cache only avoids duplicate writes."""

    def __init__(self, workspace: Workspace, showcase: Showcase, concealment: Concealment) -> None:
        self._workspace = workspace
        self._showcase = showcase
        self._concealment = concealment
        self._plans = RunProtocols(workspace.store)
        self._noted = _Remembered()
        self._served = _Remembered()
        self.opinions = SecondOpinions(workspace.store, self._plans)
        self.control_items = ControlItems(workspace.store, concealment, self._plans, self.opinions)

    # --- show

    def check_run(self, key: AssessmentKey, run: str | None) -> None:
        """Raise `Refused` if an item is not in the given run, or `UnknownName` if it does not
        exist.
        """
        if run is not None:
            _check_run(self.control_items.detail(key), run)

    def item(self, key: AssessmentKey, *, reviewer: str, whole: bool = False) -> Item:
        """Return an item as this reviewer may see it now; raises `UnknownName`."""
        return self.items([key], reviewer=reviewer, whole=whole)[0]

    def items(
        self, keys: Sequence[AssessmentKey], *, reviewer: str, whole: bool = False
    ) -> list[Item]:
        """Return items as this reviewer may see them now, and record that grades were sent; raises
        `UnknownName`.
        """
        details = self.control_items.details(keys)
        past = self._past(keys, reviewer, list(details.values()))
        shared = _Shared(CalibrationStatus(self._workspace.store, plans=self._plans.known), {})
        opinions = self._workspace.observations.read(
            kinds=(ObservationKind.OPINION,), assessments=keys
        )
        standing = standing_by_item(opinions)
        own_work = self._workspace.archive.assessments.own_work(keys, reviewer)
        items, revealing = [], []
        for key in keys:
            detail = details.get(key) or self.control_items.detail(key)
            item = self._as_seen(detail, past[key], shared, whole)
            if item.state == AssessmentState.PENDING:
                given = standing.get(key, {})
                closed = (
                    "disputed"
                    if differ(given)
                    else "given"
                    if opinion_of_person(reviewer, given)
                    else ""
                )
                closed = "own_work" if key in own_work else closed
                item = replace(item, closed=closed)
            if item.closed == "disputed":
                item = replace(item, rerunnable=False, no_rerun="disputed")
            items.append(item)
            self.note_served([key], reviewer=reviewer)
            if (
                detail.row.by_model
                and not item.blind
                and self._reveals(item, detail, past[key], shared)
            ):
                revealing.append(detail)
        self._note_shown(revealing, reviewer)
        return items

    def _reveals(self, item: Item, detail: AssessmentDetail, past: _Past, shared: _Shared) -> bool:
        """True if this item shows judge grades to a reviewer who is blind to it now, or would be
        after an undo.
        """
        if item.state == AssessmentState.PENDING:
            return True
        protocol = self._shared_protocol(detail.row.run_id, shared)
        return past.verdict is None and self._is_blind(detail, protocol, saw=past.saw)

    def _shared_protocol(self, run: RunId, shared: _Shared) -> Protocol:
        if run not in shared.protocols:
            shared.protocols[run] = self._plans.protocol(run)
        return shared.protocols[run]

    def _as_seen(self, detail: AssessmentDetail, past: _Past, shared: _Shared, whole: bool) -> Item:
        """Return an item without the grades that this reviewer may not see yet; their earlier
        verdict is included.
        """
        row = detail.row
        earlier = None
        if row.purpose is AssessmentPurpose.CONTROL:
            others = [key for key in detail.attempts if key != row.key]
            # No query without keys: even an empty one takes time, which would reveal a control
            # item.
            attempts = self.control_items.details(others) if others else {}
            earlier = [attempts[key] for key in others]
        stamp = shared.calibration_status.words_of(row.run_id, row.grader)
        item = self._showcase.item(detail, stamp=stamp, whole=whole, earlier=earlier)
        item = self._alone(item, detail)
        if (
            item.state == AssessmentState.SUPERSEDED
            and row.by_model
            and self._next_is_blind(detail, past, shared)
        ):
            return withheld(item)
        if item.state != AssessmentState.PENDING or not row.by_model:
            return item
        protocol = self._shared_protocol(row.run_id, shared)
        second = past.second or self.opinions.drawn(row.key, protocol, row.run_id)
        item = replace(item, second=second)
        if past.disclosed:
            item = replace(item, told=True, stamp=f"{item.stamp}. {NOT_BLIND}")
        if past.verdict is not None:
            return replace(item, own=by_pane(past.verdict, detail))
        if not item.person and self._is_blind(detail, protocol, saw=past.saw):
            return withheld(item)
        return item

    def _next_is_blind(self, detail: AssessmentDetail, past: _Past, shared: _Shared) -> bool:
        """True if a newer attempt at this item awaits this reviewer's verdict, because both
        attempts grade the same responses.
        """
        current = self.control_items.detail(detail.attempts[-1])
        if current.row.state is not AssessmentState.PENDING or past.saw or past.verdict is not None:
            return False
        protocol = self._shared_protocol(current.row.run_id, shared)
        no_verdict = self._verdict(current.row.key, past.reviewer) is None
        return no_verdict and self._is_blind(current, protocol, saw=False)

    def _alone(self, item: Item, detail: AssessmentDetail) -> Item:
        """Return the item without the task's other trials if the run has control items, which trial
        states would reveal.
        """
        control = detail.row.purpose is AssessmentPurpose.CONTROL
        if not control and not self._concealment.covers(detail.row.run_id):
            return item
        own = (
            replace(trial, id=item.id, state=item.state)
            for trial in item.trials
            if trial.k == item.k
        )
        return replace(item, trials=tuple(own))

    def _past(
        self, keys: Sequence[AssessmentKey], reviewer: str, details: Sequence[AssessmentDetail]
    ) -> dict[AssessmentKey, _Past]:
        observations = self._workspace.observations
        disclosed = arena_disclosures.disclosed(
            self._workspace.store, [detail.row for detail in details], reviewer=reviewer
        )
        past = {
            key: _Past(reviewer=reviewer, disclosed=key in disclosed, saw=key in disclosed)
            for key in keys
        }
        # A reviewer who saw the grades of an earlier attempt is not blind to the next one.
        later = {
            earlier: detail.row.key
            for detail in details
            if detail.row.key in past
            for earlier in detail.attempts
            if earlier not in past
        }
        kinds = (ObservationKind.SHOWN, ObservationKind.VERDICT)
        for observation in observations.read(
            kinds=kinds, assessments=(*keys, *later), reviewer=reviewer
        ):
            key = observation.assessment
            if isinstance(observation.body, GradesShown):
                key = later.get(key, key)
                past[key] = replace(past[key], saw=True)
            elif isinstance(observation.body, BlindVerdict) and key in past:
                past[key] = replace(past[key], verdict=observation.body)
        for key in self.opinions.requested(keys):
            past[key] = replace(past[key], second=True)
        return past

    def pane(self, key: AssessmentKey, place: int, *, reviewer: str) -> Pane:
        """Return a complete response of an item that this reviewer may see; raises
        `UnknownName`.
        """
        panes = self.item(key, reviewer=reviewer, whole=True).panes
        if place >= len(panes):
            remedy = f"{shown_assessment(key)} has {len(panes)} panes, numbered from 0."
            raise UnknownName("response", str(place), remedy=remedy)
        return panes[place]

    def verdict(
        self, key: AssessmentKey, scores: Sequence[tuple[int, str | None, float]], *, reviewer: str
    ) -> Item:
        """Store a reviewer's own scores for a blind item, and return the item with the judge's
        scores.

        Raises Refused unless the item is pending, and InputError if an overall score is missing or
        a score is not in 0 to 1.
        """
        detail = self.control_items.detail(key)
        where = shown_assessment(key)
        if detail.row.state is not AssessmentState.PENDING:
            raise Refused(
                where, f"is {detail.row.state}, not pending.", remedy="Undo the decision first."
            )
        if self._verdict(key, reviewer) is None:
            if self._arm(detail, reviewer, self._plans.protocol(detail.row.run_id)) is not None:
                raise Refused(
                    where,
                    "is not blind: you have seen its grades.",
                    remedy="Approve, correct or reject it.",
                )
            given = named(detail.row, scores)
            overall = candidate_scores(detail, given)
            missing = [name for name in detail.row.candidates if overall.get(name) is None]
            if missing:
                problem = f"your verdict has no score for {len(missing)} of {len(detail.row.candidates)} candidates."
                raise InputError(
                    where,
                    problem,
                    remedy="Score each criterion, or give the candidate an overall score.",
                )
            verdict = BlindVerdict(scores=given, overall=overall)
            note(self._workspace.store, detail, reviewer, f"verdict:{key}:{reviewer}", verdict)
        return self.item(key, reviewer=reviewer)

    def note_served(self, keys: Iterable[AssessmentKey], *, reviewer: str) -> None:
        """Remember that these items are sent to this reviewer."""
        for key in keys:
            self._served.add((reviewer, int(key)))

    def was_served(self, key: AssessmentKey, *, reviewer: str) -> bool:
        """True if this service sent the item to this reviewer, or the store knows that one did
        before a restart.

        The page cannot claim it: a decision counts as read on screen only if the server itself sent
        the item.
        """
        if (reviewer, int(key)) in self._served:
            return True
        kinds = (ObservationKind.SHOWN, ObservationKind.VERDICT)
        stored = self._workspace.observations.read(
            kinds=kinds, assessments=(key,), reviewer=reviewer
        )
        # A scripted decision ends blindness too, but nothing was on the screen.
        return any(
            not observation.idempotency_key.startswith(SCRIPTED_MARK) for observation in stored
        )

    # --- rerun

    def judges_of(self, run: RunId) -> tuple[str, ...]:
        """Return the names of the models that judge a run."""
        return tuple(judge.model.ref for judge in self._plans.plan(run).judges)

    def judge_problem(self, run: RunId) -> SettingsError | None:
        """Return why this process may not call the run's judges; None if it may."""
        judges = [judge.model for judge in self._plans.plan(run).judges]
        return next(iter(self._workspace.directory.problems((), judges=judges)), None)

    def without_judges(self, run: RunId, text: str) -> str:
        """Return a text with "the judge" in place of each judge's name, because an item may hide
        it.
        """
        models = [judge.model for judge in self._plans.plan(run).judges]
        names = sorted(
            {name for model in models for name in (model.ref, model.name) if name}, key=len
        )
        # A provider adds a date or a size to a name; a name of a few letters begins other words.
        listed = "|".join(
            re.escape(name) + (r"\w*(?:[.-]\w+)*" if len(name) > _SHORT_NAME else r"(?![\w-])")
            for name in reversed(names)
        )
        return re.sub(rf"(?i)(?<![\w-])(?:{listed})", "the judge", text) if names else text

    # --- decide

    def decide(self, key: AssessmentKey, submitted: SubmittedDecision) -> AssessmentState:
        """Apply one decision from the page to a real item or a control item, and return the item's
        new state.

        Raises Refused if the reviewer must give a verdict first, the state does not allow the
        decision, or the idempotency key was used for another item. Raises InputError or UnknownName
        for an invalid decision.
        """
        detail = self.control_items.detail(key)
        _check_run(detail, submitted.run)
        self.check_key(key, idempotency_key=submitted.idempotency_key)
        if self._is_repeated_opinion(detail, submitted):
            return detail.row.state
        protocol = self._plans.protocol(detail.row.run_id)
        arm = self._arm(detail, submitted.reviewer, protocol)
        if arm is None and asks_for_verdict(submitted.verb, submitted.via):
            # The store applies the rule. Refused before its scores are looked at, because their
            # errors would tell of the grades.
            raise verdict_first(key)
        displayed = submitted.via is not Via.SCRIPT and self.was_served(
            key, reviewer=submitted.reviewer
        )
        resolved = resolve(
            detail, submitted, labels=self._showcase.labels(detail.row), displayed=displayed
        )
        disclosed = arena_disclosures.disclosed(
            self._workspace.store, [detail.row], reviewer=submitted.reviewer
        )
        if submitted.verb is Verb.UNDO:
            _check_own(detail, submitted)
        # A program's decision is never called blind, although no grades were sent to it.
        arm = arm or (Arm.ASSISTED if submitted.via is Via.SCRIPT else Arm.BLIND)
        taken = decision_taken(
            detail, submitted, resolved, arm=arm, protocol=protocol, disclosed=bool(disclosed)
        )
        try:
            (event,) = decisions.decide(self._workspace, [resolved.decision])
        except Refused as error:
            raise self._in_words_of_a_page(error, key, submitted) from None
        # After the decision instead of before it, so that a crash in between loses a measurement
        # but never a decision.
        decision = note(
            self._workspace.store,
            detail,
            submitted.reviewer,
            f"decision:{submitted.idempotency_key}",
            taken,
        )
        if detail.row.purpose is AssessmentPurpose.CONTROL:
            self.control_items.note_result(detail, resolved)
        elif (
            submitted.verb is not Verb.UNDO
            and detail.row.by_model
            and not self._showcase.by_person(detail.row)
        ):
            self.control_items.put_after(detail, decision, protocol)
        return event.after

    def check_key(self, key: AssessmentKey, *, idempotency_key: str) -> None:
        """Raise `Refused` if the idempotency key was used for another item."""
        keys = [f"{kind}:{idempotency_key}" for kind in ("decision", "opinion", "rerun")]
        observations = self._workspace.observations.read(idempotency_keys=keys)
        for observation in observations:
            rules.check_key(key, of=observation.assessment)
        decided = self._workspace.decisions.decided_by_key(idempotency_key)
        if decided is not None:
            rules.check_key(key, of=decided)

    def _in_words_of_a_page(
        self, error: Refused, key: AssessmentKey, submitted: SubmittedDecision
    ) -> Refused:
        """Return the error in the words of the page: with the name of the person who decided, but
        without plain item numbers.
        """
        detail = self.control_items.detail(key)
        row = detail.row
        if submitted.verb is not Verb.UNDO and row.state in UNDOABLE and detail.events:
            who = detail.events[-1].decision.reviewer
            remedy = (
                "Undo the decision first."
                if who == submitted.reviewer
                else "Ask the other reviewer to undo it."
            )
            return Refused(
                error.where, f"is {row.state}, not pending: {who} decided it.", remedy=remedy
            )
        names_number = shown_assessment(key) in error.remedy
        return Refused(
            error.where, error.problem, remedy="Look at it again." if names_number else error.remedy
        )

    def _is_repeated_opinion(self, detail: AssessmentDetail, submitted: SubmittedDecision) -> bool:
        """True if this opinion, or its withdrawal, is a repeated request that changes nothing."""
        opinions = self._workspace.observations.read(
            kinds=(ObservationKind.OPINION,),
            assessments=(detail.row.key,),
            reviewer=submitted.reviewer,
        )
        known = any(
            opinion.idempotency_key == f"opinion:{submitted.idempotency_key}"
            for opinion in opinions
        )
        return known and (
            submitted.verb is Verb.UNDO or detail.row.state is not AssessmentState.PENDING
        )

    def ask_second(
        self, key: AssessmentKey, *, reviewer: str, idempotency_key: str, withdrawn: bool = False
    ) -> None:
        """Request two decisions on an item, or withdraw this request; raises `Refused` if that is
        no longer possible.
        """
        detail = self.control_items.detail(key)
        if detail.row.state is not AssessmentState.PENDING:
            raise Refused(shown_assessment(key), f"is {detail.row.state}, not pending.")
        if withdrawn and self.opinions.of(key):
            raise Refused(
                shown_assessment(key), "already has one opinion, so it needs a second one."
            )
        own = f"second:{shown_assessment(key)}:{idempotency_key}"
        note(self._workspace.store, detail, reviewer, own, SecondRequested(withdrawn=withdrawn))

    def note_rerun(self, key: AssessmentKey, *, reviewer: str, idempotency_key: str) -> None:
        detail = decisions.assessment(self._workspace.store, key)
        note(
            self._workspace.store,
            detail,
            reviewer,
            f"rerun:{idempotency_key}",
            self._rerun_taken(detail, reviewer),
        )

    def rerun_control(self, decision: Decision) -> AssessmentKey:
        """Make a further attempt at a control item; the decision is the request."""
        detail = self.control_items.detail(decision.assessment)
        return self.control_items.rerun(
            detail, decision, taken=self._rerun_taken(detail, decision.reviewer)
        )

    def is_taken(self, key: AssessmentKey, *, idempotency_key: str) -> bool:
        """True if a decision with this idempotency key was made on this item."""
        taken = self._workspace.observations.read(
            kinds=(ObservationKind.DECISION,), assessments=(key,)
        )
        return any(
            decision.idempotency_key == f"decision:{idempotency_key}" for decision in taken
        ) or any(
            event.decision.key == idempotency_key for event in self.control_items.detail(key).events
        )

    # --- inside

    def _is_blind(self, detail: AssessmentDetail, protocol: Protocol, *, saw: bool) -> bool:
        """True if the item is drawn for blind review and its grades were never sent to this
        reviewer.
        """
        return is_blind(
            detail.row.key,
            protocol=protocol,
            seed=self._plans.plan(detail.row.run_id).seed,
            saw=saw,
        )

    def _arm(self, detail: AssessmentDetail, reviewer: str, protocol: Protocol) -> Arm | None:
        """Return the protocol arm for this reviewer's decision; None if the reviewer must give a
        verdict first.
        """
        past = self._past([detail.row.key], reviewer, [detail])[detail.row.key]
        if past.verdict is not None:
            return Arm.BLIND
        model_grades = detail.row.by_model and not self._showcase.by_person(detail.row)
        seen = ItemSeen(saw=past.saw, has_verdict=False, model_grades=model_grades)
        seed = self._plans.plan(detail.row.run_id).seed
        waits = detail.row.state is AssessmentState.PENDING
        return (
            None
            if waits and needs_verdict(detail.row.key, protocol=protocol, seed=seed, seen=seen)
            else Arm.ASSISTED
        )

    def _rerun_taken(self, detail: AssessmentDetail, reviewer: str) -> DecisionTaken:
        """Return the observation of a rerun.

        Its arm is blind if this reviewer gave a verdict or received no grade.
        """
        past = self._past([detail.row.key], reviewer, [detail])[detail.row.key]
        unseen = self._is_blind(detail, self._plans.protocol(detail.row.run_id), saw=past.saw)
        return DecisionTaken(
            verb=Verb.RERUN, arm=Arm.BLIND if past.verdict is not None or unseen else Arm.ASSISTED
        )

    def _verdict(self, key: AssessmentKey, reviewer: str) -> BlindVerdict | None:
        kinds = (ObservationKind.VERDICT,)
        observations = self._workspace.observations.read(
            kinds=kinds, assessments=(key,), reviewer=reviewer
        )
        verdicts = with_body(observations, BlindVerdict)
        return verdicts[-1][1] if verdicts else None

    def _note_shown(self, details: Iterable[AssessmentDetail], reviewer: str) -> None:
        """Record that the server sends a judge's grades of pending items, once per reviewer and
        item.
        """
        marks = {(reviewer, int(detail.row.key)): detail for detail in details}
        new = {mark: detail for mark, detail in marks.items() if mark not in self._noted}
        self._workspace.observations.note(
            [
                observation_on(
                    self._workspace.clock,
                    detail,
                    reviewer,
                    f"shown:{detail.row.key}:{reviewer}",
                    GradesShown(),
                )
                for detail in new.values()
            ]
        )
        for mark in new:
            self._noted.add(mark)


def _check_own(detail: AssessmentDetail, submitted: SubmittedDecision) -> None:
    """Raise `Refused` if another reviewer made the last decision; on a page, people can undo only
    their own decisions.
    """
    if not detail.events or any(
        event.decision.key == submitted.idempotency_key for event in detail.events
    ):
        return
    last = detail.events[-1].decision
    if last.verb is not Verb.UNDO and last.reviewer != submitted.reviewer:
        where = shown_assessment(detail.row.key)
        raise Refused(where, f"was decided by {last.reviewer}.", remedy="Ask them to undo it.")


def _check_run(detail: AssessmentDetail, run: str | None) -> None:
    if run not in {None, detail.row.run_id}:
        problem = (
            f"the item belongs to run {detail.row.run_id}, but was decided as an item of run {run}."
        )
        raise Refused(
            "run",
            problem,
            remedy="The request seems to be meant for another store; nothing was changed here.",
        )
