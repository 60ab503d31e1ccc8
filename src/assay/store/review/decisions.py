"""Apply reviewers' decisions. All decisions of a submission share one transaction and succeed or fail together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select, update

from assay.domain import decisions as rules
from assay.domain.errors import Refused, UnknownName
from assay.domain.identifiers import AssessmentKey, shown_assessment
from assay.domain.lifecycle import SET_ASIDE, AssessmentPurpose, AssessmentState, Verb
from assay.domain.review import Decision, ReviewEvent
from assay.domain.run_removal import brings_back
from assay.ports import Clock
from assay.store.database import schema
from assay.store.database.connections import Database
from assay.store.database.counters import ASSESSMENT, CounterChanges, settle
from assay.store.database.name_keys import candidate_names
from assay.store.event_chain import append_event, as_stored, event_of_key
from assay.store.execution.writer_thread import Writer
from assay.store.review.control_items import control_event_of_key, decide_control


class StoreDecisions:
    """Applies decisions to assessments and control items; may be used from any thread and by several processes at once."""

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._clock = clock

    def decide(self, decisions: Sequence[Decision], /) -> tuple[ReviewEvent, ...]:
        """Apply all decisions in order, or none of them, and return their events.

        A decision whose idempotency key was already used on its assessment changes nothing and returns the stored event.

        Raises UnknownName if an assessment, candidate or criterion does not exist, and InputError for an invalid correction.
        Raises Refused if the state or a missing score forbids a decision, or if another decision used the key.
        """
        if not decisions:
            return ()

        return self._writer.call(lambda connection: self.apply(connection, decisions, self._clock.now()))

    def apply(self, connection: Connection, decisions: Sequence[Decision], at: str) -> tuple[ReviewEvent, ...]:
        """Apply decisions like `decide`, in the caller's write transaction."""
        tally = CounterChanges()
        trials: set[int] = set()
        events = [self._apply(connection, decision, at, tally, trials) for decision in decisions]
        if trials:
            settle(connection, sorted(trials), tally)
        tally.write(connection)
        return tuple(events)

    def decided_by_key(self, idempotency_key: str, /) -> AssessmentKey | None:
        """Return the assessment or control item whose decision has this idempotency key; None if the key is new."""

        with self._database.reading() as connection:
            event = event_of_key(connection, idempotency_key) or control_event_of_key(connection, idempotency_key)
        return None if event is None else event.decision.assessment

    def _apply(
        self, connection: Connection, decision: Decision, at: str, tally: CounterChanges, trials: set[int]
    ) -> ReviewEvent:
        known = _known_event(connection, decision)
        if known is not None:
            rules.check_same(as_stored(decision), stored=known.decision)
            return known
        # The caller states the kind, so that the command line cannot decide a control item by accident.
        if decision.purpose is AssessmentPurpose.CONTROL:
            return decide_control(connection, decision, at=at)
        row = _assessment(connection, decision)
        where = shown_assessment(row.key)
        before = AssessmentState(row.state)
        after = rules.after(decision.verb, before, where=where)
        if decision.verb is Verb.APPROVE:
            rules.check_approval(_Numbers(connection, row).judged, where=where)
        elif decision.verb is Verb.CORRECT:
            numbers = _Numbers(connection, row)
            numbers.write(rules.corrected(numbers.judged, decision.corrections, where=where))
        elif before is AssessmentState.CORRECTED:
            _restore(connection, row)
        table, scores = schema.assessment, schema.score
        connection.execute(update(table).where(table.c.key == row.key).values(state=after.value))
        of_item = (scores.c.run_key == row.run_key, scores.c.assessment_key == row.key)
        connection.execute(update(scores).where(*of_item).values(state=after.value))
        tally.move(row.run_key, ASSESSMENT, before.value, after.value)
        trials.add(row.trial_key)
        return append_event(connection, decision, run_key=row.run_key, before=before, after=after, at=at)


class _Numbers:
    """The scores and grades of one assessment, by the run's names."""

    def __init__(self, connection: Connection, row: Any) -> None:
        self._connection = connection
        score, grade, criterion = schema.score, schema.grade, schema.criterion
        self._scores = (score.c.run_key == row.run_key, score.c.assessment_key == row.key)
        self._grades = (grade.c.run_key == row.run_key, grade.c.assessment_key == row.key)
        names = candidate_names(connection, row.run_key)
        self._candidates: dict[str, int] = {}
        self._criteria: dict[str, int] = {}
        scores: dict[str, float | None] = {}
        grades: dict[tuple[str, str], float | None] = {}
        weights: dict[str, float] = {}
        for key, value in connection.execute(select(score.c.candidate_key, score.c.judged_value).where(*self._scores)):
            self._candidates[names[key]] = key
            scores[names[key]] = value
        for candidate, key, name, weight, value in connection.execute(
            select(grade.c.candidate_key, grade.c.criterion_key, criterion.c.name, grade.c.weight, grade.c.judged_value)
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
    """Return the event with the decision's idempotency key; raises `Refused` if the event decided another item."""
    if decision.key is None:
        return None
    known = event_of_key(connection, decision.key) or control_event_of_key(connection, decision.key)
    if known is not None:
        rules.check_key(decision.assessment, of=known.decision.assessment)
    return known


def _assessment(connection: Connection, decision: Decision) -> Any:
    table = schema.assessment
    run = schema.run
    columns = (table.c.key, table.c.run_key, table.c.trial_key, table.c.state)
    row = connection.execute(
        select(*columns, run.c.id.label("run_id"), run.c.state.label("run_state"))
        .join(run, run.c.key == table.c.run_key)
        .where(table.c.key == decision.assessment)
    ).first()
    if row is None:
        raise UnknownName(
            "assessment", shown_assessment(decision.assessment), remedy=("`assay review list` lists all assessments.")
        )
    if row.run_state in SET_ASIDE:
        problem = f"belongs to run {row.run_id}, which was {row.run_state}."
        remedy = f"Run `{brings_back(row.run_id, row.run_state)}` to restore the run."
        raise Refused(shown_assessment(decision.assessment), problem, remedy=remedy)
    return row


def _restore(connection: Connection, row: Any) -> None:
    for table in (schema.score, schema.grade):
        of_item = (table.c.run_key == row.run_key, table.c.assessment_key == row.key)
        connection.execute(update(table).where(*of_item).values(value=table.c.judged_value))
