"""Apply reviewers' decisions.

All decisions of a submission share one transaction and succeed or fail together.
"""

from __future__ import annotations

from collections.abc import Collection, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cachetools import LRUCache
from sqlalchemy import Connection, select, update

from assay.domain import decisions as rules
from assay.domain.achieved_review import AchievedReview
from assay.domain.attention import TimedDecision
from assay.domain.blind_first import asks_for_verdict
from assay.domain.errors import Refused, UnknownName
from assay.domain.identifiers import AssessmentKey, RunId, folded, shown_assessment
from assay.domain.lifecycle import SET_ASIDE, AssessmentPurpose, AssessmentState, Verb
from assay.domain.observations import (
    SCRIPTED_MARK,
    GradesShown,
    Observation,
    ObservationBody,
    OpinionGiven,
    OpinionWithdrawn,
)
from assay.domain.opinions import (
    OpinionGiver,
    StandingOpinion,
    check_settles,
    differ,
    opinion_of,
    outcome_of_opinion,
    withdrawn_by_undo,
)
from assay.domain.own_work import own_work
from assay.domain.review import Decision, Outcome, ReviewEvent, Road
from assay.domain.run_removal import brings_back
from assay.ports import Clock
from assay.store.database import schema
from assay.store.database.connections import Database
from assay.store.database.counters import ASSESSMENT, CounterChanges, settle
from assay.store.database.name_keys import candidate_names
from assay.store.event_chain import append_event, as_stored, event_of_key
from assay.store.execution.writer_thread import Writer
from assay.store.review.achieved import achieved_review
from assay.store.review.attention import timed_decisions
from assay.store.review.control_items import (
    append_control_event,
    attempts_at,
    control_event_of_key,
    control_item,
)
from assay.store.review.observations import note_in, read_in, run_key_of
from assay.store.review.run_rules import ItemOpinions, PlannedProtocol, RunRules, planned_protocol

_RUNS_KEPT: Final = 1_000


class StoreDecisions:
    """Applies decisions to assessments and control items; may be used from any thread and by
    several processes at once.

    Every road ends here, so the run's protocol and the rules of `domain` bind the page, the
    terminal, commands, Python and HTTP.
    """

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._clock = clock
        self._planned: LRUCache[int, PlannedProtocol] = LRUCache(_RUNS_KEPT)

    def decide(self, decisions: Sequence[Decision], /) -> tuple[ReviewEvent, ...]:
        """Apply all decisions in order, or none of them, and return their events.

        A decision on an item that needs two opinions becomes an opinion until a second person
        agrees; `ReviewEvent.outcome` tells. A decision whose idempotency key was already used on
        its assessment changes nothing and returns the stored event.

        Raises UnknownName if an assessment, candidate or criterion does not exist, and InputError
        for an invalid correction. Raises Refused if the state, a missing score or the review
        protocol forbids a decision, if the item grades the reviewer's own work, or if another
        decision used the key.
        """
        if not decisions:
            return ()

        return self._writer.call(
            lambda connection: self.apply(connection, decisions, self._clock.now())
        )

    def settle(self, decision: Decision, /, *, together: bool) -> ReviewEvent:
        """Decide an item on which two reviewers disagree; `together` is True if the two settle the
        dispute themselves.

        Raises Refused if the item is not disputed or this person may not settle the dispute, and
        the errors of `decide`.
        """

        def settle(connection: Connection) -> ReviewEvent:
            transaction = _Transaction(connection, self._clock.now(), self._planned)
            event = transaction.settle(decision, together=together)
            transaction.write_counters()
            return event

        return self._writer.call(settle)

    def apply(
        self, connection: Connection, decisions: Sequence[Decision], at: str
    ) -> tuple[ReviewEvent, ...]:
        """Apply decisions like `decide`, in the caller's write transaction."""
        transaction = _Transaction(connection, at, self._planned)
        events = [transaction.decide(decision) for decision in decisions]
        transaction.write_counters()
        return tuple(events)

    def achieved(
        self, runs: Collection[RunId], /, *, ordered: Collection[RunId] = ()
    ) -> dict[RunId, AchievedReview]:
        """Return what the review of each run achieved so far; `ordered` contains the runs that plan
        a random order.
        """
        with self._database.reading() as connection:
            return achieved_review(connection, runs, ordered)

    def timed(self, runs: Collection[RunId], /) -> tuple[TimedDecision, ...]:
        """Return the decisions that hold on items of these runs and that were made on a screen,
        oldest first.
        """
        with self._database.reading() as connection:
            return tuple(timed_decisions(connection, runs))

    def decided_by_key(self, idempotency_key: str, /) -> AssessmentKey | None:
        """Return the assessment or control item whose decision has this idempotency key; None if
        the key is new.
        """

        with self._database.reading() as connection:
            event = event_of_key(connection, idempotency_key) or control_event_of_key(
                connection, idempotency_key
            )
        return None if event is None else event.decision.assessment


class _Transaction:
    """Decisions that are written together, with the counters that they change and the rules of
    their runs.
    """

    def __init__(
        self, connection: Connection, at: str, planned: MutableMapping[int, PlannedProtocol]
    ) -> None:
        self._connection = connection
        self._at = at
        self._planned = planned
        self._rules: dict[int, RunRules] = {}
        self._tally = CounterChanges()
        self._trials: set[int] = set()

    def write_counters(self) -> None:
        """Write the counters of all decisions of this transaction."""
        if self._trials:
            settle(self._connection, sorted(self._trials), self._tally)
        self._tally.write(self._connection)

    def decide(self, decision: Decision) -> ReviewEvent:
        """Apply one decision, or store it as an opinion if the item needs two."""
        decision = as_stored(decision)
        if (repeated := self._repeated(decision)) is not None:
            return repeated
        item = self._item(decision)
        opinions = item.of_run.opinions(item.key)
        if decision.verb is Verb.UNDO:
            return self._undo(decision, item, opinions)
        after = rules.after(decision.verb, item.state, where=item.where)
        self._check_own_work(decision, item)
        if item.by_model and asks_for_verdict(decision.verb, decision.via):
            item.of_run.check_verdict_first(
                decision.reviewer, item.key, graded=item.graded, attempts=item.attempts
            )
        counts = item.counted(decision)
        given = _opinion(decision, counts)
        outcome = outcome_of_opinion(
            given,
            key=item.key,
            reviewer=decision.reviewer,
            two=opinions.two,
            standing=opinions.standing,
        )
        if opinions.two:
            self._note_opinion(decision, item, given, opinions)
        if decision.road is not Road.SHOWN and item.by_model and item.of_run.protocol.blind:
            self._note(
                item,
                decision.reviewer,
                f"{SCRIPTED_MARK}{item.key}:{decision.reviewer}",
                GradesShown(),
            )
        if outcome is Outcome.DECIDED:
            return self._carry_out(decision, item, after, counts)
        return self._without_event(decision, item, outcome)

    def settle(self, decision: Decision, *, together: bool) -> ReviewEvent:
        decision = as_stored(decision)
        if (repeated := self._repeated(decision)) is not None:
            return repeated
        item = self._item(decision)
        after = rules.after(decision.verb, item.state, where=item.where)
        standing = item.of_run.opinions(item.key).standing
        check_settles(item.key, settler=_person(decision), together=together, standing=standing)
        self._check_own_work(decision, item)
        counts = item.counted(decision)
        return self._carry_out(decision, item, after, counts)

    def _repeated(self, decision: Decision) -> ReviewEvent | None:
        """Return the effect of a decision that was already stored under this idempotency key, as an
        event or as an opinion.
        """
        if decision.key is None:
            return None
        known = _known_event(self._connection, decision)
        if known is not None:
            rules.check_same(decision, stored=known.decision)
            return known
        same_key = schema.observation.c.idempotency_key == _opinion_key(decision.key)
        opinion = next(iter(read_in(self._connection, same_key)), None)
        if opinion is None:
            return None
        rules.check_key(decision.assessment, of=opinion.assessment)
        item = self._item(decision)
        undone = isinstance(opinion.body, OpinionWithdrawn)
        body: OpinionWithdrawn | OpinionGiven = OpinionWithdrawn()
        if decision.verb is not Verb.UNDO:
            body = _opinion(decision, item.counted(decision))
            if isinstance(opinion.body, OpinionGiven):
                # A store of an earlier version knows no login.
                body = replace(body, login=opinion.body.login)
        # Raises `Refused` if the key was used for another opinion.
        self._note(item, decision.reviewer, _opinion_key(decision.key), body)
        outcome = Outcome.FIRST_OPINION
        if undone:
            outcome = Outcome.WITHDRAWN
        elif item.state is not AssessmentState.PENDING:
            outcome = Outcome.DECIDED
        elif differ(item.of_run.opinions(item.key).standing):
            outcome = Outcome.DISPUTED
        return self._without_event(decision, item, outcome)

    def _undo(self, decision: Decision, item: _Item, opinions: ItemOpinions) -> ReviewEvent:
        own = opinion_of(decision.reviewer, opinions.standing)
        if item.state is AssessmentState.PENDING and own is not None:
            # An opinion that awaits a second one has changed no state, so only the opinion is
            # withdrawn.
            self._withdraw(decision, item, own, len(opinions.stored))
            return self._without_event(decision, item, Outcome.WITHDRAWN)
        if item.state is AssessmentState.PENDING and opinions.standing:
            problem = "has only another reviewer's opinion, and no decision to undo."
            raise Refused(
                item.where,
                problem,
                remedy="The reviewer who gave the opinion can withdraw it with undo.",
            )
        after = rules.after(decision.verb, item.state, where=item.where)
        if self._last_reviewer(item) != decision.reviewer:
            self._check_own_work(decision, item)
        event = self._carry_out(decision, item, after, None)
        for number, opinion in enumerate(
            withdrawn_by_undo(decision.reviewer, opinions.standing), len(opinions.stored)
        ):
            self._withdraw(decision, item, opinion, number)
        return event

    def _check_own_work(self, decision: Decision, item: _Item) -> None:
        # A person who states another reviewer's name decides in that name, so neither may be the
        # author.
        for person in filter(None, (decision.reviewer, decision.stated_by)):
            if item.of_run.grades_work_of(person, item.graded):
                raise own_work(person, where=item.where)

    def _carry_out(
        self, decision: Decision, item: _Item, after: AssessmentState, counts: rules.Grading | None
    ) -> ReviewEvent:
        if item.numbers is None:
            return append_control_event(
                self._connection, decision, before=item.state, after=after, at=self._at
            )
        if decision.verb is Verb.CORRECT and counts is not None:
            item.numbers.write(counts)
        elif item.state is AssessmentState.CORRECTED:
            _restore(self._connection, run_key=item.run_key, assessment_key=int(item.key))
        table, scores = schema.assessment, schema.score
        self._connection.execute(
            update(table).where(table.c.key == int(item.key)).values(state=after.value)
        )
        of_scores = (scores.c.run_key == item.run_key, scores.c.assessment_key == int(item.key))
        self._connection.execute(update(scores).where(*of_scores).values(state=after.value))
        self._tally.move(item.run_key, ASSESSMENT, item.state.value, after.value)
        self._trials.add(item.trial_key)
        return append_event(
            self._connection,
            decision,
            run_key=item.run_key,
            before=item.state,
            after=after,
            at=self._at,
        )

    def _without_event(self, decision: Decision, item: _Item, outcome: Outcome) -> ReviewEvent:
        return ReviewEvent(
            id=0,
            decision=decision,
            before=item.state,
            after=item.state,
            at=self._at,
            outcome=outcome,
        )

    def _note_opinion(
        self, decision: Decision, item: _Item, given: OpinionGiven, opinions: ItemOpinions
    ) -> None:
        key = _opinion_key(decision.key or f"script:{item.key}:{len(opinions.stored)}")
        self._note(item, decision.reviewer, key, given)
        item.of_run.note_opinion()

    def _withdraw(
        self, decision: Decision, item: _Item, opinion: StandingOpinion, number: int
    ) -> None:
        own = folded(opinion.reviewer) == folded(decision.reviewer)
        key = decision.key if own and decision.key else f"withdrawn:{item.key}:{number}"
        self._note(item, opinion.reviewer, _opinion_key(key), OpinionWithdrawn())

    def _note(
        self, item: _Item, reviewer: str, idempotency_key: str, body: ObservationBody
    ) -> None:
        observation = Observation(
            run_id=item.of_run.run_id,
            assessment=item.key,
            purpose=item.purpose,
            reviewer=reviewer,
            at=self._at,
            idempotency_key=idempotency_key,
            body=body,
        )
        note_in(self._connection, observation)

    def _last_reviewer(self, item: _Item) -> str | None:
        table = (
            schema.review_event if item.purpose is AssessmentPurpose.WORK else schema.control_event
        )
        of_item = table.c.assessment_key == int(item.key)
        last = select(table.c.reviewer).where(of_item).order_by(table.c.id.desc()).limit(1)
        return self._connection.execute(last).scalar_one_or_none()

    def _item(self, decision: Decision) -> _Item:
        # The caller states the kind, so that the command line cannot decide a control item by
        # accident.
        if decision.purpose is AssessmentPurpose.CONTROL:
            control = control_item(self._connection, decision.assessment)
            run_key = run_key_of(self._connection, control.run_id)
            return _Item(
                key=control.key,
                purpose=decision.purpose,
                state=control.state,
                by_model=True,
                graded=control.source,
                attempts=attempts_at(self._connection, control),
                judged=rules.grading_of(control.judged),
                of_run=self._rules_of(run_key),
                run_key=run_key,
            )
        row = _assessment(self._connection, decision)
        numbers = _Numbers(self._connection, row.run_key, row.key)
        return _Item(
            key=decision.assessment,
            purpose=decision.purpose,
            state=AssessmentState(row.state),
            by_model=bool(row.by_model),
            graded=decision.assessment,
            judged=numbers.judged,
            of_run=self._rules_of(row.run_key),
            run_key=row.run_key,
            trial_key=row.trial_key,
            numbers=numbers,
        )

    def _rules_of(self, run_key: int) -> RunRules:
        if run_key not in self._rules:
            if run_key not in self._planned:
                self._planned[run_key] = planned_protocol(self._connection, run_key)
            self._rules[run_key] = RunRules(self._connection, run_key, self._planned[run_key])
        return self._rules[run_key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """An assessment or control item about to be decided.

    Attributes:
        graded: the real assessment that grades the same responses; for a control item, its source.
        attempts: all attempts at a control item; None for a real assessment.
        judged: scores and grades without corrections.
        numbers: writes corrected scores of a real assessment; None for a control item, whose scores
            never count.
    """

    key: AssessmentKey
    purpose: AssessmentPurpose
    state: AssessmentState
    by_model: bool
    graded: AssessmentKey
    judged: rules.Grading
    of_run: RunRules
    run_key: int
    trial_key: int = 0
    attempts: tuple[AssessmentKey, ...] | None = None
    numbers: _Numbers | None = None

    @property
    def where(self) -> str:
        return shown_assessment(self.key)

    def counted(self, decision: Decision) -> rules.Grading | None:
        return rules.counted(decision.verb, self.judged, decision.corrections, where=self.where)


class _Numbers:
    """The scores and grades of one assessment, by the run's names."""

    def __init__(self, connection: Connection, run_key: int, key: int) -> None:
        self._connection = connection
        score, grade, criterion = schema.score, schema.grade, schema.criterion
        self._scores = (score.c.run_key == run_key, score.c.assessment_key == key)
        self._grades = (grade.c.run_key == run_key, grade.c.assessment_key == key)
        names = candidate_names(connection, run_key)
        self._candidates: dict[str, int] = {}
        self._criteria: dict[str, int] = {}
        scores: dict[str, float | None] = {}
        grades: dict[tuple[str, str], float | None] = {}
        weights: dict[str, float] = {}
        for key, value in connection.execute(
            select(score.c.candidate_key, score.c.judged_value).where(*self._scores)
        ):
            self._candidates[names[key]] = key
            scores[names[key]] = value
        for candidate, key, name, weight, value in connection.execute(
            select(
                grade.c.candidate_key,
                grade.c.criterion_key,
                criterion.c.name,
                grade.c.weight,
                grade.c.judged_value,
            )
            .join(criterion, criterion.c.key == grade.c.criterion_key)
            .where(*self._grades)
        ):
            self._criteria[name] = key
            weights[name] = weight
            grades[names[candidate], name] = value
        self.judged = rules.Grading(scores=scores, grades=grades, weights=weights)

    def write(self, counts: rules.Grading) -> None:
        score, grade = schema.score, schema.grade
        for name, value in counts.scores.items():
            if value != self.judged.scores[name]:
                of_candidate = (*self._scores, score.c.candidate_key == self._candidates[name])
                self._connection.execute(update(score).where(*of_candidate).values(value=value))
        for (name, criterion), value in counts.grades.items():
            if value != self.judged.grades.get((name, criterion)):
                place = (
                    *self._grades,
                    grade.c.candidate_key == self._candidates[name],
                    grade.c.criterion_key == self._criteria[criterion],
                )
                self._connection.execute(update(grade).where(*place).values(value=value))


def _known_event(connection: Connection, decision: Decision) -> ReviewEvent | None:
    """Return the event with the decision's idempotency key; raises `Refused` if the event decided
    another item.
    """
    if decision.key is None:
        return None
    known = event_of_key(connection, decision.key) or control_event_of_key(connection, decision.key)
    if known is not None:
        rules.check_key(decision.assessment, of=known.decision.assessment)
    return known


def _assessment(connection: Connection, decision: Decision) -> Any:
    table = schema.assessment
    run = schema.run
    columns = (table.c.key, table.c.run_key, table.c.trial_key, table.c.by_model, table.c.state)
    row = connection.execute(
        select(*columns, run.c.id.label("run_id"), run.c.state.label("run_state"))
        .join(run, run.c.key == table.c.run_key)
        .where(table.c.key == decision.assessment)
    ).first()
    if row is None:
        raise UnknownName(
            "assessment",
            shown_assessment(decision.assessment),
            remedy=("`assay review list` lists all assessments."),
        )
    if row.run_state in SET_ASIDE:
        problem = f"belongs to run {row.run_id}, which was {row.run_state}."
        remedy = f"Run `{brings_back(row.run_id, row.run_state)}` to restore the run."
        raise Refused(shown_assessment(decision.assessment), problem, remedy=remedy)
    return row


def _opinion(decision: Decision, counts: rules.Grading | None) -> OpinionGiven:
    scores = {} if counts is None else counts.scores
    return OpinionGiven(
        verb=decision.verb,
        reason=decision.reason,
        note=decision.note,
        result={name: score for name, score in scores.items() if score is not None},
        corrections=decision.corrections,
        scripted=decision.road is not Road.SHOWN,
        stated_by=decision.stated_by,
        login=decision.login,
    )


def _person(decision: Decision) -> OpinionGiver:
    return OpinionGiver(
        reviewer=decision.reviewer,
        stated_by=decision.stated_by,
        login=decision.login,
        scripted=decision.road is not Road.SHOWN,
    )


def _opinion_key(idempotency_key: str) -> str:
    return f"opinion:{idempotency_key}"


def _restore(connection: Connection, *, run_key: int, assessment_key: int) -> None:
    for table in (schema.score, schema.grade):
        of_item = (table.c.run_key == run_key, table.c.assessment_key == assessment_key)
        connection.execute(update(table).where(*of_item).values(value=table.c.judged_value))
