"""Build the rows of one commit from its entries, without lookups, with keys from blocks reserved at
the start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

from sqlalchemy import Connection

from assay.domain.assessment import Assessment, Response
from assay.domain.calls import Role
from assay.domain.lifecycle import AssessmentState
from assay.domain.run import CallRecord, Entry, NewAssessment
from assay.store.claims.held_trial import Holding, Slot
from assay.store.database.codec import (
    assessment_bytes,
    json_text,
    plain,
    request_digest,
    text_bytes,
)
from assay.store.database.connections import take_keys
from assay.store.database.counters import ASSESSMENT, CounterChanges
from assay.store.database.name_keys import NameKeys

Row: TypeAlias = tuple[object, ...]


class CommitRows:
    """One commit's rows by table, and the values to remember after the commit.

    `slots`: state of the assessment added to each slot, by trial. `rounds`: latest round of the
    added responses, by trial and candidate. `graders`, `criteria`: pairs of a run and its grader or
    criterion. `sums`: amounts to add to each run's columns, by parameter name of the UPDATE
    statement.
    """

    def __init__(
        self, connection: Connection, names: NameKeys, entries: Iterable[Entry], *, now: str
    ) -> None:
        calls = responses = assessments = 0
        # Control items take these keys later; see `control_items._free_key`.
        left_free: set[int] = set()  # positions among the assessments' keys
        for entry in entries:
            calls += len(entry.calls)
            responses += len(entry.responses)
            assessments += len(entry.assessments)
            place = assessments + len(left_free)
            left_free.update(range(place, place + entry.spare))
        keys = take_keys(
            connection,
            body=calls + responses + assessments,
            call=calls,
            response=responses,
            assessment=assessments + len(left_free),
        )
        self._connection = connection
        self._names = names
        self._now = now
        self._body_keys = iter(keys["body"])
        self._call_keys = iter(keys["call"])
        self._assessment_keys = (
            key for place, key in enumerate(keys["assessment"]) if place not in left_free
        )
        self._next_response = keys["response"].start
        self.bodies: list[Row] = []
        self.calls: list[Row] = []
        self.responses: list[Row] = []
        self.assessments: list[Row] = []
        self.scores: list[Row] = []
        self.grades: list[Row] = []
        self.counters = CounterChanges()
        self.slots: defaultdict[int, dict[Slot, AssessmentState]] = defaultdict(dict)
        self.rounds: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self.graders: set[tuple[int, int]] = set()
        self.criteria: set[tuple[int, int]] = set()
        self.sums: defaultdict[int, dict[str, float]] = defaultdict(
            lambda: {
                "more_calls": 0,
                "more_unpriced": 0,
                "more_input": 0,
                "more_output": 0,
                "more_usd": 0.0,
            }
        )

    def slot(self, new: NewAssessment) -> Slot:
        name = new.slot.candidate
        candidate = None if name is None else self._names.candidate(self._connection, name)
        return self._names.grader(self._connection, new.slot.grader), candidate

    def add_call(self, call: CallRecord, *, trial: int, holding: Holding, led: bool) -> int:
        """Add a call and return its key; `led` is True if the call produced a response or
        assessment of the entry.
        """
        purpose, reply, failure = call.request.purpose, call.reply, call.failure
        kept = None
        answered: Row = (None,) * 7
        if reply is not None:
            usage = reply.usage
            answered = (
                None if reply.model_version is None else plain(reply.model_version),
                plain(reply.finish_reason),
                usage.input_tokens,
                usage.output_tokens,
                reply.latency_s,
                reply.first_token_s,
                reply.cost_usd,
            )
            sums = self.sums[holding.run_key]
            sums["more_calls"] += 1
            sums["more_unpriced"] += reply.cost_usd is None
            sums["more_input"] += usage.input_tokens or 0
            sums["more_output"] += usage.output_tokens or 0
            sums["more_usd"] += reply.cost_usd or 0.0
            # A turn of a conversation has no separate response, and a resumed conversation needs
            # its text. A judge that was asked in a job may be asked again, and then reads its
            # earlier replies.
            turn = not led and (purpose.role is not Role.JUDGE or call.job is not None)
            if (failure is not None or turn) and reply.text:
                kept = self._body(text_bytes(reply.text))
        failed: Row = (None, None, None)
        if kept is None and call.log:
            kept = self._body(text_bytes(call.log))
        if failure is not None:
            failed = (plain(failure.kind), failure.fault.value, plain(failure.detail))
        key = next(self._call_keys)
        self.calls.append(
            (
                key,
                holding.run_key,
                trial,
                purpose.role.value,
                None
                if purpose.candidate is None
                else self._names.candidate(self._connection, purpose.candidate),
                None
                if purpose.judge is None
                else self._names.grader(self._connection, purpose.judge),
                purpose.attempt,
                call.number,
                plain(call.request.model.ref),
                *answered,
                call.started,
                *failed,
                request_digest(call.request) if call.job is None else call.job.digest,
                kept,
                json_text(reply.tool_calls) if reply is not None and reply.tool_calls else None,
            )
        )
        return key

    def add_response(
        self, response: Response, *, trial: int, call: int | None, holding: Holding
    ) -> None:
        candidate = self._names.candidate(self._connection, response.candidate)
        rounds = self.rounds[trial]
        number = rounds.get(candidate, holding.rounds.get(candidate, 0)) + 1
        rounds[candidate] = number
        key = self._next_response
        self._next_response += 1
        body = self._body(text_bytes(response.text))
        self.responses.append((key, trial, candidate, number, response.truncated, call, body))

    def add_assessment(
        self, new: NewAssessment, *, trial: int, call: int | None, holding: Holding
    ) -> None:
        grader, candidate = slot = self.slot(new)
        key = next(self._assessment_keys)
        run_key, assessment, state = holding.run_key, new.assessment, new.state.value
        self.assessments.append(
            (
                key,
                run_key,
                holding.task_key,
                trial,
                grader,
                candidate,
                new.slot.by_model,
                new.attempt,
                state,
                None,
                len(assessment.flags),
                self._next_response,
                call,
                self._body(assessment_bytes(assessment)),
                self._now,
            )
        )
        self.counters.add(run_key, ASSESSMENT, state)
        self.slots[trial][slot] = new.state
        self.graders.add((run_key, grader))
        keys = {name: self._names.candidate(self._connection, name) for name in assessment.scores}
        place = (holding.task_key, trial, grader)
        joint = candidate is None
        places = {name: number for number, name in enumerate(assessment.shown, 1)}
        for name, value in assessment.scores.items():
            self.scores.append(
                (run_key, key, keys[name], *place, value, value, joint, state, places.get(name))
            )
        self._add_grades(assessment, keys, run_key=run_key, key=key)

    def _add_grades(
        self, assessment: Assessment, keys: dict[str, int], *, run_key: int, key: int
    ) -> None:
        left = {(name, criterion) for name in keys for criterion in assessment.weights}
        for grade in assessment.grades:
            if grade.candidate not in keys:
                continue  # not a candidate of the run; the grade stays readable in the body
            left.discard((grade.candidate, grade.criterion))
            criterion = self._names.criterion(self._connection, grade.criterion)
            self.criteria.add((run_key, criterion))
            weight = assessment.weights.get(grade.criterion, 0.0 if assessment.weights else 1.0)
            numbers = (
                grade.score,
                grade.score,
                grade.raw_score,
                grade.min_score,
                grade.max_score,
                grade.confidence,
            )
            self.grades.append((run_key, key, keys[grade.candidate], criterion, weight, *numbers))
        for name, missing in sorted(left):
            # Grades that the grader left out get a row too, so that a correction only updates rows
            # and an undo restores them.
            criterion = self._names.criterion(self._connection, missing)
            self.criteria.add((run_key, criterion))
            weight = assessment.weights[missing]
            self.grades.append(
                (run_key, key, keys[name], criterion, weight, None, None, None, None, None, None)
            )

    def _body(self, content: bytes) -> int:
        key = next(self._body_keys)
        self.bodies.append((key, content))
        return key
