"""Law of the review protocol: whatever people send by whatever road, nothing counts that two
different people did not share.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st
from tests.contract.stores import (
    StandingClock,
    a_decision,
    a_plan,
    a_task,
    judged,
    plain_grades,
    planned,
    wait,
)
from tests.support.examples import examples

from assay.domain.errors import InputError, Refused
from assay.domain.identifiers import AssessmentKey, folded
from assay.domain.lifecycle import COUNTS, UNDOABLE, Verb
from assay.domain.observations import ObservationKind
from assay.domain.opinions import standing_by_item
from assay.domain.review import Via
from assay.domain.selection import Selection
from assay.store.opening import Store, open_store

# `alice` and `bob` are candidates of every item.
PEOPLE = st.sampled_from(["ann", "Ann", "bea", "cleo", "alice", "BOB"])
STEPS = st.tuples(
    st.sampled_from([Verb.APPROVE, Verb.REJECT, Verb.CORRECT, Verb.UNDO]),
    PEOPLE,
    st.sampled_from([Via.PAGE, Via.TERMINAL, Via.SCRIPT, Via.IMPORT]),
    st.integers(0, 1),
    st.booleans(),
)


def sent(store: Store, step: Any, keys: list[AssessmentKey]) -> None:
    """Send one decision; a refusal changes nothing."""
    verb, person, via, item, settles = step
    corrections = {("alice", None): 0.9} if verb is Verb.CORRECT else {}
    decision = replace(
        a_decision(verb, keys[item], reviewer=person, reason="why", corrections=corrections),
        via=via,
        displayed=via in (Via.PAGE, Via.TERMINAL),
    )
    try:
        if settles and verb is not Verb.UNDO:
            store.decisions.settle(decision, together=False)
        else:
            store.decisions.decide([decision])
    except (Refused, InputError):
        return


@given(st.lists(STEPS, max_size=12), st.sampled_from([0.0, 1.0]))
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_counts_without_two_people_and_nobodys_own_work_does(
    steps: list[Any], second: float
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'assay.db'}", clock=StandingClock())
        try:
            plan = replace(a_plan(), protocol={"version": 1, "second": second})
            store.journal.open_run(plan, planned(a_task(), trials=2))
            for trial in store.journal.claim(plan.id, limit=2):
                wait(store.journal.record(judged(trial, plain_grades(0.5))))
            keys = [row.key for row in store.archive.assessments.matching(Selection())]
            for step in steps:
                sent(store, step, keys)
                check(store, keys, two=bool(second))
        finally:
            store.close()


def check(store: Store, keys: list[AssessmentKey], *, two: bool) -> None:
    observations = store.observations.read(kinds=(ObservationKind.OPINION,))
    opinions = standing_by_item(observations)
    decided = [
        detail
        for detail in map(store.archive.assessments.detail, keys)
        if detail.row.state in UNDOABLE
    ]
    for detail in decided:
        people = {folded(name) for name in opinions.get(detail.row.key, {})}
        assert len(people) >= 2 if two else not people
        assert not (people | {folded(detail.events[-1].decision.reviewer)}) & {"alice", "bob"}
    counting = {int(detail.row.trial) for detail in decided if detail.row.state in COUNTS}
    assert set(store.archive.scores.columns(Selection()).trial.tolist()) == counting
    (achieved,) = store.decisions.achieved([decided[0].row.run_id]).values() if decided else (None,)
    if achieved is not None:
        assert (achieved.decisions, achieved.blind) == (len(decided), 0)
        assert achieved.by_two == (len(decided) if two else 0)
