"""Nothing a function does in a child reaches its parent but a value or the reason why there is
none.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

import pytest

from assay.domain.digest import JsonValue
from assay.domain.isolation import IsolatedAnswer, IsolatedRequest, Returned, StopKind, Stopped
from assay.sandbox.workers import MAX_INPUT, WorkerPool

HOSTILE = "tests.unit.sandbox.hostile"
FUNCTIONS = {
    name: f"{HOSTILE}:{name}"
    for name in (
        "double",
        "forever",
        "asleep",
        "hoard",
        "bad_value",
        "exits",
        "leaves",
        "segfault",
        "deep",
        "raises",
        "writes",
        "sees",
        "length",
        "process",
    )
}


def request(function: str, *, limit: float = 5.0, **arguments: JsonValue) -> IsolatedRequest:
    return IsolatedRequest(function=function, arguments=arguments, time_limit_s=limit)


def with_pool(steps: Callable[[WorkerPool], Awaitable[None]], **settings: int) -> None:
    async def all_steps() -> None:
        pool = WorkerPool(functions=FUNCTIONS, memory=2**28, **settings)
        try:
            await steps(pool)
        finally:
            await pool.close()

    asyncio.run(all_steps())


def answers(*requests: IsolatedRequest, size: int = 1) -> list[IsolatedAnswer]:
    items: list[IsolatedAnswer] = []

    async def steps(pool: WorkerPool) -> None:
        items.extend([await pool.call(asked) for asked in requests])

    with_pool(steps, size=size)
    return items


def test_worker_calls_a_function_and_drops_its_output() -> None:
    assert answers(request("double", number=21), request("double", number=4)) == [
        Returned(42),
        Returned(8),
    ]


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("forever", StopKind.TIMEOUT),
        ("asleep", StopKind.TIMEOUT),
        ("hoard", StopKind.MEMORY),
        ("deep", StopKind.MEMORY),
        ("bad_value", StopKind.CRASHED),
        ("exits", StopKind.CRASHED),
        ("leaves", StopKind.CRASHED),
        ("segfault", StopKind.CRASHED),
        ("raises", StopKind.CRASHED),
        ("writes", StopKind.CRASHED),
        ("no_such_function", StopKind.CRASHED),
    ],
)
def test_whatever_it_does_is_an_answer_and_the_next_call_works(
    function: str, kind: StopKind
) -> None:
    limit = 0.3 if kind is StopKind.TIMEOUT else 30.0
    first, second = answers(request(function, limit=limit), request("double", number=1))
    assert isinstance(first, Stopped)
    assert first.kind is kind, first
    assert second == Returned(2)


def test_a_call_ends_at_its_deadline() -> None:
    async def steps(pool: WorkerPool) -> None:
        await pool.call(request("double", number=1))
        began = time.monotonic()
        await pool.call(request("forever", limit=0.5))
        assert time.monotonic() - began < 30, "the function itself never ends"

    with_pool(steps, size=1)


def test_a_child_has_no_variable_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-seen")
    (answer,) = answers(request("sees"))
    assert isinstance(answer, Returned)
    assert "PYTHONPATH" in str(answer.value)
    assert "OPENAI" not in str(answer.value)


def test_worker_refuses_too_long_input() -> None:
    too_long, fits = answers(
        request("length", text="x" * (MAX_INPUT + 1)),
        request("length", text="é" * (MAX_INPUT // 2)),
    )
    assert isinstance(too_long, Stopped)
    assert too_long.kind is StopKind.TOO_LONG
    assert fits == Returned(MAX_INPUT // 2)


def test_children_are_kept_and_as_many_run_at_once_as_were_asked_for() -> None:
    async def steps(pool: WorkerPool) -> None:
        seen = await asyncio.gather(*(pool.call(request("process")) for _ in range(12)))
        assert len({answer.value for answer in seen if isinstance(answer, Returned)}) <= 2
        await pool.close()
        again = await pool.call(request("process"))
        assert isinstance(again, Returned)
        assert again not in seen

    with_pool(steps, size=2)


def test_a_cancelled_call_takes_its_child_along() -> None:
    async def steps(pool: WorkerPool) -> None:
        running = await pool.call(request("process"))
        assert isinstance(running, Returned)
        task = asyncio.create_task(pool.call(request("forever", limit=30)))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ProcessLookupError):
            os.kill(int(str(running.value)), 0)
        assert await pool.call(request("double", number=3)) == Returned(6)

    with_pool(steps, size=1)
