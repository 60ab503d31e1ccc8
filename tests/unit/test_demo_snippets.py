"""Each snippet of the demo runs, does what its candidate meant, and has just the faults that were
planted.
"""

import importlib.util
import io
import itertools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "tools" / "demo" / "sources"
NAMES = ("ada", "bruno", "chen")


class Clock:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def now(self) -> float:
        return self.now_s


def snippet(task: str, name: str) -> ModuleType:
    module_name = f"demo_{task}_{name}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(module_name, SOURCES / task / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Slotted dataclasses look their module up by name while it is being executed.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module_name, module)
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["ada", "chen"])
def test_rate_limiter_slides(name: str) -> None:
    clock = Clock()
    limiter = snippet("rate-limiter", name).RateLimiter(2, 10.0, clock)
    clock.now_s = 1009.0
    assert [limiter.allow("k") for _ in range(3)] == [True, True, False]
    clock.now_s = 1011.0
    assert not limiter.allow("k")
    clock.now_s = 1019.0
    assert limiter.allow("k")


def test_rate_limiter_ada_forgets_quiet_keys_and_chen_does_not() -> None:
    clock = Clock()
    good = snippet("rate-limiter", "ada").RateLimiter(2, 10.0, clock)
    leaky = snippet("rate-limiter", "chen").RateLimiter(2, 10.0, clock)
    for limiter in (good, leaky):
        for key in range(50):
            limiter.allow(str(key))
    clock.now_s += 100
    good.allow("new")
    leaky.allow("new")
    assert good.tracked_keys() == 1
    assert len(leaky._backend._rows) == 51


def test_rate_limiter_bruno_allows_a_double_burst() -> None:
    module = snippet("rate-limiter", "bruno")
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.time, "time", clock)
        limiter = module.RateLimiter(2, 10)
        clock.now_s = 1009.0
        before = [limiter.allow("k") for _ in range(3)]
        clock.now_s = 1010.0
        after = [limiter.allow("k") for _ in range(3)]
        assert before == after == [True, True, False]
        assert not module.RateLimiter(2, 10).allow("k")


@pytest.mark.parametrize(
    ("name", "alive_at_deadline"), [("ada", False), ("bruno", False), ("chen", True)]
)
def test_token_store_expires(name: str, alive_at_deadline: bool) -> None:
    clock = Clock()
    store = snippet("token-store", name).TokenStore(clock)
    token = store.issue("u", 30)
    assert store.resolve(token) == "u"
    clock.now_s += 30
    assert (store.resolve(token) == "u") is alive_at_deadline
    clock.now_s += 1
    assert store.resolve(token) is None
    assert store.resolve("unknown") is None


@pytest.mark.parametrize("name", ["ada", "bruno"])
def test_token_store_revokes_all_tokens_of_a_user(name: str) -> None:
    store = snippet("token-store", name).TokenStore(Clock())
    tokens = [store.issue("u", 30), store.issue("u", 30), store.issue("other", 30)]
    store.revoke("u")
    assert [store.resolve(token) for token in tokens] == [None, None, "other"]


def test_token_store_chen_breaks_in_revoke() -> None:
    store = snippet("token-store", "chen").TokenStore(Clock())
    store.issue("u", 30)
    with pytest.raises(RuntimeError, match="changed size"):
        store.revoke("u")


def test_token_store_ada_keeps_no_token_in_memory_and_bruno_does() -> None:
    clock = Clock()
    good = snippet("token-store", "ada").TokenStore(clock)
    plain = snippet("token-store", "bruno").TokenStore(clock)
    assert good.issue("u", 30) not in good._sessions
    assert plain.issue("u", 30) in plain.tokens
    clock.now_s += 31
    good.issue("v", 30)
    plain.issue("v", 30)
    assert (len(good._sessions), len(plain)) == (1, 2)


def failing_queue(name: str) -> tuple[Any, int]:
    """The queue after one job has failed for good, and how often it ran."""
    clock = Clock()
    queue = snippet("retry-queue", name).RetryQueue(clock, lambda: 0.0)
    calls = []

    def job() -> None:
        calls.append(1)
        raise OSError("no route")

    queue.push(job)
    for _ in range(10):
        queue.run_due()
        clock.now_s += 1000
    return queue, len(calls)


@pytest.mark.parametrize(("name", "runs"), [("ada", 5), ("bruno", 6), ("chen", 5)])
def test_retry_queue_gives_up_after_so_many_runs(name: str, runs: int) -> None:
    queue, calls = failing_queue(name)
    assert (calls, len(queue), len(queue.dead)) == (runs, 0, 1)


def test_retry_queue_keeps_the_error_except_for_bruno() -> None:
    assert str(failing_queue("ada")[0].dead[0].error) == "no route"
    assert failing_queue("chen")[0].dead[0][1] == "no route"
    assert callable(failing_queue("bruno")[0].dead[0])


def test_retry_queue_ties_are_fine_except_for_chen() -> None:
    for name in ("ada", "bruno"):
        queue = snippet("retry-queue", name).RetryQueue(Clock(), lambda: 0.0)
        queue.push(lambda: 1)
        queue.push(lambda: 2)
        assert queue.run_due() == 2
    queue = snippet("retry-queue", "chen").RetryQueue(Clock(), lambda: 0.0)
    queue.push(lambda: 1)
    with pytest.raises(TypeError):
        queue.push(lambda: 2)


@pytest.mark.parametrize(("name", "swallows"), [("ada", False), ("bruno", True), ("chen", False)])
def test_retry_queue_lets_ctrl_c_through_except_for_bruno(name: str, swallows: bool) -> None:
    queue = snippet("retry-queue", name).RetryQueue(Clock(), lambda: 0.0)

    def job() -> None:
        raise KeyboardInterrupt

    queue.push(job)
    if swallows:
        assert queue.run_due() == 0
    else:
        with pytest.raises(KeyboardInterrupt):
            queue.run_due()


GOOD_CSV = 'amount,id,email\n"1.10",1,"a, b@x"\n2,2,"c\n@x"\nbad,3,d@x\n4,2,e@x\n'


def test_csv_importer_ada_reports_lines_of_the_file() -> None:
    result = snippet("csv-importer", "ada").import_payments(io.StringIO("\ufeff" + GOOD_CSV))
    assert [(payment.id, str(payment.amount)) for payment in result.payments] == [
        ("1", "1.10"),
        ("2", "2"),
    ]
    assert [error.line for error in result.errors] == [5, 6]
    with pytest.raises(ValueError, match="header lacks email"):
        snippet("csv-importer", "ada").import_payments(["id,amount\n"])
    assert (
        not snippet("csv-importer", "ada")
        .import_payments(["id,email,amount", "1,a@x,NaN"])
        .payments
    )


def test_csv_importer_chen_accepts_nan_and_refuses_a_byte_order_mark() -> None:
    run = snippet("csv-importer", "chen").import_payments
    records, errors = run(io.StringIO(GOOD_CSV))
    assert [record["id"] for record in records] == ["1", "2"]
    assert [number for number, _ in errors] == [4, 5]
    assert run(["id,email,amount", "1,a@x,NaN"])[0][0]["amount"].is_nan()
    with pytest.raises(ValueError, match="missing columns"):
        run(io.StringIO("\ufeff" + GOOD_CSV))


def test_csv_importer_bruno_loses_rows_in_silence_and_uses_floats() -> None:
    run = snippet("csv-importer", "bruno").import_payments
    assert run(["id,email,amount", "1,a@x,1.10"]) == (
        [{"id": "1", "email": "a@x", "amount": 1.1}],
        [],
    )
    assert run(["id,email,amount", '1,"a, b@x",5', "2,c@x,oops"]) == ([], [])
    assert run(["id,amount", "1,5"]) == ([], [])


@pytest.mark.parametrize("name", NAMES)
def test_lru_cache_evicts_the_least_recently_used(name: str) -> None:
    cache = snippet("lru-cache", name).LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]
    assert (len(cache), cache.hits, cache.misses) == (2, 3, 1)


@pytest.mark.parametrize(
    ("name", "hit", "kept"), [("ada", True, 1), ("bruno", True, 1), ("chen", False, None)]
)
def test_lru_cache_stores_none_and_updates_evict_nothing(
    name: str, hit: bool, kept: int | None
) -> None:
    cache = snippet("lru-cache", name).LRUCache(2)
    cache.put("a", 1)
    cache.put("b", None)
    assert (cache.get("b", "missing") is None) is hit
    cache.put("b", 3)
    assert cache.get("a") == kept


def test_lru_cache_bruno_takes_a_capacity_of_zero() -> None:
    for name in ("ada", "chen"):
        with pytest.raises(ValueError, match="capacity"):
            snippet("lru-cache", name).LRUCache(0)
    assert len(snippet("lru-cache", "bruno").LRUCache(0)) == 0


@pytest.mark.parametrize("name", ["ada", "bruno"])
def test_lru_cache_stays_whole_under_threads(name: str) -> None:
    cache = snippet("lru-cache", name).LRUCache(8)

    def work(seed: int) -> None:
        for step in range(500):
            cache.put((seed * step) % 17, step)
            cache.get(step % 17)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 8
    assert cache.hits + cache.misses == 2000


@pytest.mark.parametrize("name", NAMES)
def test_event_bus_isolates_failures_and_keeps_order(name: str) -> None:
    bus = snippet("event-bus", name).EventBus()
    seen: list[object] = []

    def broken(event: object) -> None:
        raise LookupError(str(event))

    bus.subscribe("t", seen.append)
    bus.subscribe("t", broken)
    leave = bus.subscribe("t", lambda event: seen.append(("last", event)))
    assert [str(error) for error in bus.publish("t", "e")] == ["e"]
    assert seen == ["e", ("last", "e")]
    leave()
    leave()
    bus.publish("t", "f")
    assert seen[2:] == ["f"]


@pytest.mark.parametrize(("name", "skips"), [("ada", False), ("bruno", True), ("chen", False)])
def test_event_bus_may_change_while_publishing_except_for_bruno(name: str, skips: bool) -> None:
    bus = snippet("event-bus", name).EventBus()
    seen: list[str] = []
    leave: list[Callable[[], None]] = []

    def once(event: object) -> None:
        seen.append("once")
        leave[0]()

    leave.append(bus.subscribe("t", once))
    bus.subscribe("t", lambda event: seen.append("next"))
    bus.publish("t", None)
    assert seen == (["once"] if skips else ["once", "next"])


@pytest.mark.parametrize(("name", "shared"), [("ada", False), ("bruno", True), ("chen", False)])
def test_event_buses_are_separate_except_for_bruno(name: str, shared: bool) -> None:
    module = snippet("event-bus", name)
    seen: list[object] = []
    module.EventBus().subscribe("t", seen.append)
    module.EventBus().publish("t", 1)
    assert bool(seen) is shared


def test_event_bus_ada_reads_topics_as_patterns_and_takes_priorities() -> None:
    bus = snippet("event-bus", "ada").EventBus()
    seen: list[str] = []
    bus.subscribe("a*", lambda event: seen.append("late"))
    bus.subscribe("abc", lambda event: seen.append("early"), priority=1)
    bus.use(lambda topic, event: event)
    bus.publish("abc", None)
    assert seen == ["early", "late"]


def test_money_splitter_ada_is_exact_fair_and_symmetrical() -> None:
    split = snippet("money-splitter", "ada").split
    assert split(100, [1, 1, 1]) == [34, 33, 33]
    for amount, weights in itertools.product(
        (-101, -1, 0, 7, 100, 9999), ([1] * 7, [3, 0, 1], [5, 2, 9, 4])
    ):
        shares = split(amount, weights)
        assert sum(shares) == amount
        assert split(-amount, weights) == [-share for share in shares]
        assert all(
            abs(share * sum(weights) - amount * weight) < sum(weights)
            for share, weight in zip(shares, weights, strict=True)
        )


def test_money_splitter_bruno_keeps_the_sum_and_wrongs_the_last() -> None:
    split = snippet("money-splitter", "bruno").split
    assert split(100, [1, 1, 1]) == [33, 33, 34]
    assert split(100, [1] * 7) == [14] * 6 + [16]
    assert split(2, [1] * 4) == [1, 1, 1, -1]


def test_money_splitter_chen_loses_a_cent_or_raises() -> None:
    split = snippet("money-splitter", "chen").split
    assert split(90, [1, 2]) == [30, 60]
    assert sum(split(10, [1, 1, 1])) == 9
    assert sum(split(100, [1, 1, 1])) == 99
    with pytest.raises(ArithmeticError):
        split(100, [1] * 7)


@pytest.mark.parametrize("name", NAMES)
def test_money_splitter_refuses_weights_without_meaning(name: str) -> None:
    split = snippet("money-splitter", name).split
    for weights in ([], [0, 0], [1, -1]):
        with pytest.raises(ValueError, match="weight"):
            split(10, weights)
