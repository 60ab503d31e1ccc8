"""Laws of decisions: of the pure rules, and of the store against a model that knows nothing of
databases.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.contract.rows import all_rows, assert_derived_agrees
from tests.contract.stores import (
    WEIGHTS,
    StandingClock,
    a_decision,
    a_plan,
    a_task,
    grades,
    judged,
    planned,
    wait,
)
from tests.support.examples import examples

from assay.domain.assessment import weighted_score
from assay.domain.decisions import Grading, after, check_approval, corrected
from assay.domain.errors import InputError, Refused
from assay.domain.lifecycle import COUNTS, AssessmentState, TrialState, Verb, trial_state
from assay.domain.selection import Selection
from assay.store.opening import open_store

NAMES = ("alice", "bob")
SCORE = st.floats(0, 1)
GRADES = st.fixed_dictionaries({(n, c): SCORE | st.none() for n in NAMES for c in WEIGHTS})
PLACES = st.sampled_from([(n, c) for n in NAMES for c in (*WEIGHTS, None)])
CORRECTIONS = st.dictionaries(PLACES, SCORE, min_size=1)


def grading(given_grades: dict[tuple[str, str], float | None]) -> Grading:
    scores = {
        name: weighted_score({c: given_grades[name, c] for c in WEIGHTS}, WEIGHTS) for name in NAMES
    }
    return Grading(scores=scores, grades=given_grades, weights=WEIGHTS)


@given(st.sampled_from(AssessmentState), st.sampled_from(Verb))
def test_a_decision_is_taken_once_and_undone_to_pending(
    before: AssessmentState, verb: Verb
) -> None:
    try:
        state = after(verb, before, where="a1")
    except Refused:
        return
    if verb is Verb.UNDO:
        assert state is AssessmentState.PENDING
    else:
        assert before is AssessmentState.PENDING
        assert after(Verb.UNDO, state, where="a1") is AssessmentState.PENDING


@given(GRADES, CORRECTIONS)
def test_correction_changes_named_grades_and_derived_scores(
    given_grades: dict[tuple[str, str], float | None],
    corrections: dict[tuple[str, str | None], float],
) -> None:
    judged_ = grading(given_grades)
    named = {name for name, _ in corrections}
    both = any(
        (name, None) in corrections and len([1 for n, _ in corrections if n == name]) > 1
        for name in named
    )
    try:
        counts = corrected(judged_, corrections, where="a1")
    except Refused:
        assert not both
        left: dict[tuple[str, str | None], float | None] = dict(given_grades.items())
        left.update((place, value) for place, value in corrections.items() if place[1] is not None)
        assert any(
            (name, None) not in corrections and any(left[name, c] is None for c in WEIGHTS)
            for name in NAMES
        )
        return
    except InputError:
        assert both
        return
    assert not counts.unscored
    for name in NAMES:
        if name not in named:
            assert counts.scores[name] == judged_.scores[name]
        elif (name, None) in corrections:
            assert counts.scores[name] == corrections[name, None]
        else:
            assert counts.scores[name] == weighted_score(
                {c: counts.grades[name, c] for c in WEIGHTS}, WEIGHTS
            )
        for criterion in WEIGHTS:
            assert counts.grades[name, criterion] == corrections.get(
                (name, criterion), given_grades[name, criterion]
            )


@given(GRADES)
def test_approvable_assessment_has_every_score(
    given_grades: dict[tuple[str, str], float | None],
) -> None:
    judged_ = grading(given_grades)
    if any(score is None for score in judged_.scores.values()):
        with pytest.raises(Refused):
            check_approval(judged_, where="a1")
    else:
        check_approval(judged_, where="a1")


class Review(RuleBasedStateMachine):
    """Four trials, decided, undone and rerun in any order; a plain model says what must be true of
    them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name) / 'assay.db'}"
        self.store = open_store(self.url, clock=StandingClock())
        self.run = a_plan().id
        self.store.journal.open_run(a_plan(), planned(a_task(), trials=4))
        self.given: dict[int, dict[str, float]] = {}
        self.counting: dict[int, dict[str, float]] = {}
        self.states: dict[int, AssessmentState] = {}
        self.trials: dict[int, int] = {}
        self.pristine: dict[int, list[Any]] = {}
        for number, trial in enumerate(self.store.journal.claim(self.run, limit=4)):
            self._judge(trial, value=number / 8, attempt=1)

    def _judge(self, trial: Any, *, value: float, attempt: int) -> None:
        by_name = {"alice": value, "bob": 1 - value}
        assessment = grades(
            {name: dict.fromkeys(WEIGHTS, score) for name, score in by_name.items()}
        )
        wait(self.store.journal.record(judged(trial, assessment, attempt=attempt)))
        key = max(row.key for row in self.store.archive.assessments.matching(Selection()))
        for other, of_trial in self.trials.items():
            if of_trial == trial.key:
                self.states[other] = AssessmentState.SUPERSEDED
        self.states[key] = AssessmentState.PENDING
        self.given[key] = {name: float(score or 0.0) for name, score in assessment.scores.items()}
        self.trials[key] = trial.key
        self.pristine[key] = self._rows_of(key)

    def _rows_of(self, key: int) -> list[Any]:
        rows = all_rows(self.url)
        return [
            *(row for row in rows["assessment"] if row[0] == key),
            *(row for row in rows["score"] if row[1] == key),
            *(row for row in rows["grade"] if row[1] == key),
        ]

    @rule(
        data=st.data(),
        verb=st.sampled_from([Verb.APPROVE, Verb.REJECT, Verb.CORRECT, Verb.UNDO]),
        score=SCORE,
    )
    def decide(self, data: st.DataObject, verb: Verb, score: float) -> None:
        key = data.draw(st.sampled_from(sorted(self.states)))
        corrections = (
            {("alice", None): score, ("bob", "integrity"): score} if verb is Verb.CORRECT else {}
        )
        before = self.states[key]
        allowed = (
            before in {"approved", "corrected", "rejected"}
            if verb is Verb.UNDO
            else before == "pending"
        )
        decision = a_decision(verb, key, corrections=corrections)
        if not allowed:
            with pytest.raises(Refused):
                self.store.decisions.decide([decision])
            return
        self.store.decisions.decide([decision])
        after_ = {
            Verb.APPROVE: "approved",
            Verb.REJECT: "rejected",
            Verb.CORRECT: "corrected",
            Verb.UNDO: "pending",
        }
        self.states[key] = AssessmentState(after_[verb])
        self.counting[key] = dict(self.given[key])
        if verb is Verb.CORRECT:
            total = sum(WEIGHTS.values())
            bob = (
                WEIGHTS["integrity"] * score + WEIGHTS["fitness"] * self.given[key]["bob"]
            ) / total
            self.counting[key] = {"alice": score, "bob": bob}
        if verb is Verb.UNDO:
            assert self._rows_of(key) == self.pristine[key]

    @precondition(lambda self: len(self.states) < 9)
    @rule(number=st.integers(0, 3), value=SCORE)
    def rerun(self, number: int, value: float) -> None:
        trial = sorted(set(self.trials.values()))[number]
        attempts = [key for key, of_trial in self.trials.items() if of_trial == trial]
        self._judge(self.store.journal.claim_trial(trial), value=value, attempt=len(attempts) + 1)  # type: ignore[arg-type]

    @invariant()
    def statistics_see_exactly_what_counts(self) -> None:
        columns = self.store.archive.scores.columns(Selection())
        items = sorted(
            (int(trial), columns.candidates[name], round(float(score), 9))
            for trial, name, score in zip(
                columns.trial, columns.candidate, columns.score, strict=True
            )
        )
        expected = sorted(
            (self.trials[key], name, round(score, 9))
            for key, state in self.states.items()
            if state in COUNTS
            for name, score in self.counting[key].items()
        )
        assert items == expected

    @invariant()
    def every_trial_stands_once(self) -> None:
        excluded = self.store.archive.scores.excluded(Selection())
        counted = len(set(self.store.archive.scores.columns(Selection()).trial.tolist()))
        assert counted + excluded.pending + excluded.rejected + excluded.failed == 4
        assert excluded.superseded == sum(state == "superseded" for state in self.states.values())
        rows = {row.key: row.state for row in self.store.archive.trials.matching(Selection())}
        for trial, state in rows.items():
            result = {self.states[key] for key, of in self.trials.items() if of == trial} - {
                AssessmentState.SUPERSEDED
            }
            assert state is trial_state(frozenset(result))
        assert TrialState.FAILED not in rows.values()

    def teardown(self) -> None:
        assert_derived_agrees(self.url)
        assert self.store.event_log.first_broken() is None
        self.store.close()
        self.folder.cleanup()


Review.TestCase.settings = settings(
    max_examples=examples(8), stateful_step_count=12, suppress_health_check=list(HealthCheck)
)
TestReview = Review.TestCase
