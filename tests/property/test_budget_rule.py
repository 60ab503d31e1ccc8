"""Calls under a budget, by the rule alone: whatever each costs, the budget is passed by less than
one call.
"""

from __future__ import annotations

from hypothesis import given, strategies as st

from assay.domain.budget import Grant, Reservation, decide

AMOUNTS = st.floats(0.001, 1.0)
CALLS = st.tuples(
    AMOUNTS, st.floats(1.0, 100.0), st.floats(0.0, 1.0), st.booleans(), st.integers(0, 30)
)


@given(budget=st.floats(0.01, 30.0), calls=st.lists(CALLS, min_size=1, max_size=120))
def test_the_budget_is_passed_by_less_than_one_call(
    budget: float, calls: list[tuple[float, float, float, bool, int]]
) -> None:
    """Each call costs up to its most; now and then one costs 1,000 times as much, but no two of
    those are in flight together.
    """
    spent, dearest, in_flight = 0.0, 0.0, list[tuple[Reservation, float, bool]]()

    def settle(which: int) -> None:
        nonlocal spent, dearest
        _, cost, _ = in_flight.pop(which % len(in_flight))
        spent, dearest = spent + cost, max(dearest, cost)

    for usd, times, share, wild, which in calls:
        reservation = Reservation(usd, usd * times)
        most = sum(held.most_usd for held, _, _ in in_flight)
        grant = decide(reservation, budget_usd=budget, spent_usd=spent, in_flight_usd=most)
        assert grant is not Grant.WAIT or in_flight
        if grant is Grant.GRANTED:
            wild = wild and not any(others for _, _, others in in_flight)
            in_flight.append((reservation, reservation.most_usd * (1_000 if wild else share), wild))
        if in_flight and (grant is not Grant.GRANTED or which < 10):
            settle(which)
    while in_flight:
        settle(0)
    assert spent <= budget + dearest + 1e-6
