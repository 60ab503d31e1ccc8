"""Contract of timed decisions: only decisions that hold and that were made on a screen are judged,
on both databases.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.stores import a_decision, a_plan
from tests.contract.test_protocol_rules import rows_under

from assay.domain.attention import TimedDecision
from assay.domain.lifecycle import Verb
from assay.domain.observations import Arm, DecisionTaken, Observation
from assay.domain.review import Via
from assay.domain.selection import AssessmentRow
from assay.store.opening import Store

RUN = a_plan().id


def decide(
    store: Store,
    row: AssessmentRow,
    verb: Verb = Verb.APPROVE,
    *,
    by: str = "ann",
    via: Via = Via.PAGE,
    active_ms: int | None = 400,
    once: str,
) -> None:
    """Decide like the review page, which stores how a decision was made after the decision
    itself.
    """
    decision = a_decision(verb, row.key, reviewer=by, reason="why", idempotency=once)
    store.decisions.decide([replace(decision, via=via, displayed=via in (Via.PAGE, Via.TERMINAL))])
    taken = DecisionTaken(verb=verb, arm=Arm.ASSISTED, active_ms=active_ms, size=120)
    store.observations.note(
        [
            Observation(
                run_id=RUN,
                assessment=row.key,
                reviewer=by,
                at="2026-01-01T00:00:00Z",
                idempotency_key=f"decision:{once}",
                body=taken,
            )
        ]
    )


def timed(reviewer: str, verb: Verb = Verb.APPROVE, active_ms: int | None = 400) -> TimedDecision:
    return TimedDecision(reviewer=reviewer, verb=verb, active_ms=active_ms, size=120)


@pytest.mark.quick_postgresql
def test_only_decisions_on_a_screen_are_timed(store: Store) -> None:
    first, second, third, fourth = rows_under(store, trials=4)
    decide(store, first, once="k1")
    decide(store, second, Verb.REJECT, via=Via.TERMINAL, active_ms=None, once="k2")
    decide(store, third, via=Via.SCRIPT, once="k3")
    store.decisions.decide([a_decision(Verb.APPROVE, fourth.key, reviewer="ann")])
    assert store.decisions.timed([RUN]) == (timed("ann"), timed("ann", Verb.REJECT, None))
    assert store.decisions.timed([]) == ()


@pytest.mark.quick_postgresql
def test_an_undone_decision_is_not_timed(store: Store) -> None:
    first, second = rows_under(store)
    decide(store, first, once="k1")
    decide(store, first, Verb.UNDO, once="k2")
    decide(store, first, active_ms=9_000, once="k3")
    decide(store, second, once="k4")
    store.decisions.decide([a_decision(Verb.UNDO, second.key, reviewer="bea")])
    assert store.decisions.timed([RUN]) == (timed("ann", active_ms=9_000),)


@pytest.mark.quick_postgresql
def test_a_first_opinion_is_timed_until_it_is_withdrawn(store: Store) -> None:
    first, second = rows_under(store, second=1.0)
    decide(store, first, once="k1")
    decide(store, second, once="k2")
    decide(store, second, by="cleo", via=Via.SCRIPT, once="k3")
    assert store.decisions.timed([RUN]) == (timed("ann"), timed("ann"))
    decide(store, first, Verb.UNDO, once="k4")
    decide(store, second, Verb.UNDO, by="dora", once="k5")
    assert store.decisions.timed([RUN]) == ()
