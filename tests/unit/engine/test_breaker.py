"""A run pauses itself on a fatal failure, once the calls in flight have shown that it is
everybody's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from assay.domain.failure import BUDGET, Failure, Fault
from assay.engine.breaker import FEW, Breaker

MODEL = "openai/m"
REFUSED_KEY = Failure(kind="http_401", fault=Fault.PROVIDER, detail="the key is refused.")
NOT_KNOWN = Failure(kind="http_404", fault=Fault.PROVIDER, detail="unknown model.")
SERVER_ERROR = Failure(kind="http_500", fault=Fault.PROVIDER, detail="broken.")

T = TypeVar("T")


def run(steps: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(steps)


async def fails(breaker: Breaker, failure: Failure, *, fatal: bool = True) -> bool:
    assert await breaker.admit(MODEL)
    return await breaker.failed(MODEL, failure, fatal=fatal)


async def succeeds(breaker: Breaker) -> None:
    assert await breaker.admit(MODEL)
    breaker.answered(MODEL)


def test_the_only_call_to_a_model_that_never_answered_pauses_the_run() -> None:
    async def steps() -> None:
        breaker = Breaker()
        assert await fails(breaker, REFUSED_KEY)
        assert breaker.halt is not None
        assert (breaker.halt.model, breaker.halt.failure, breaker.halt.times) == (
            MODEL,
            REFUSED_KEY,
            1,
        )
        assert not await breaker.admit(MODEL)
        assert not await breaker.admit("openai/other")

    run(steps())


def test_a_model_that_has_answered_pauses_the_run_after_a_few_in_a_row() -> None:
    async def steps() -> None:
        breaker = Breaker()
        await succeeds(breaker)
        paused = [await fails(breaker, REFUSED_KEY) for _ in range(FEW)]
        assert paused == [False] * (FEW - 1) + [True]

    run(steps())


def test_an_answer_another_kind_or_a_passing_failure_ends_a_streak() -> None:
    async def steps() -> None:
        breaker = Breaker()
        await succeeds(breaker)
        for _ in range(3):
            for _ in range(FEW - 1):
                assert not await fails(breaker, REFUSED_KEY)
            await succeeds(breaker)
            for _ in range(FEW - 1):
                assert not await fails(breaker, REFUSED_KEY)
            assert not await fails(breaker, NOT_KNOWN)
            for _ in range(FEW - 1):
                assert not await fails(breaker, REFUSED_KEY)
            assert not await fails(breaker, SERVER_ERROR, fatal=False)
        assert breaker.halt is None

    run(steps())


def test_a_first_failure_waits_for_the_calls_in_flight() -> None:
    async def steps() -> None:
        breaker = Breaker()
        assert await breaker.admit(MODEL)
        failing = asyncio.create_task(fails(breaker, REFUSED_KEY))
        await asyncio.sleep(0)
        held_back = asyncio.create_task(breaker.admit(MODEL))
        await asyncio.sleep(0)
        assert not failing.done()
        assert not held_back.done()
        breaker.answered(MODEL)
        assert not await failing
        assert await held_back
        assert breaker.halt is None

    run(steps())


def test_calls_that_all_fail_in_flight_pause_the_run_and_none_is_to_blame() -> None:
    async def steps() -> None:
        breaker = Breaker()
        for _ in range(3):
            assert await breaker.admit(MODEL)
        ends = await asyncio.gather(
            *(breaker.failed(MODEL, REFUSED_KEY, fatal=True) for _ in range(3))
        )
        assert ends == [True, True, True]
        assert breaker.halt is not None
        assert breaker.halt.times == 3

    run(steps())


def test_a_cancelled_call_lets_a_waiting_failure_decide() -> None:
    async def steps() -> None:
        breaker = Breaker()
        assert await breaker.admit(MODEL)
        failing = asyncio.create_task(fails(breaker, REFUSED_KEY))
        await asyncio.sleep(0)
        breaker.left(MODEL)
        assert not await asyncio.wait_for(failing, 5)
        assert await asyncio.wait_for(breaker.admit(MODEL), 5)

    run(steps())


def test_a_spent_budget_pauses_at_once_and_wakes_every_waiting_call() -> None:
    async def steps() -> None:
        breaker = Breaker()
        assert await breaker.admit(MODEL)
        failing = asyncio.create_task(fails(breaker, REFUSED_KEY))
        await asyncio.sleep(0)
        spent = Failure(kind=BUDGET, fault=Fault.BUDGET, detail="the budget is spent.")
        assert await breaker.admit("openai/judge")
        breaker.stop("openai/judge", spent)
        assert await asyncio.wait_for(failing, 5)
        assert breaker.halt is not None
        assert breaker.halt.failure == spent

    run(steps())
