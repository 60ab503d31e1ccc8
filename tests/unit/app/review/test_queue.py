"""The review queue over a fake archive that only knows which keys wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st
from tests.support.fakes import FakeClock

from assay.app.review.queue import LEASE_S, ReviewQueue
from assay.domain.identifiers import AssessmentKey
from assay.domain.selection import Selection

ALL = Selection()


@dataclass
class Waiting:
    """The keys that wait and the leases; counts how many keys were read."""

    keys: list[int]
    read: int = 0
    leases: dict[int, tuple[str, float]] = field(default_factory=dict)

    def seeker(self, selection: Selection, /) -> Callable[[int], int | None]:
        def first(after: int, /) -> int | None:
            self.read += 1
            return min((key for key in self.keys if key > after), default=None)

        return first

    def lease(
        self, keys: Collection[int], /, *, desk: str, now: float, until: float
    ) -> frozenset[int]:
        free = {
            key
            for key in keys
            if self.leases.get(key, (desk, 0))[0] == desk or self.leases[key][1] < now
        }
        self.leases.update(dict.fromkeys(free, (desk, until)))
        return frozenset(free)

    def free(self, *, key: int | None = None, desk: str | None = None) -> None:
        for lying, (where, _) in [*self.leases.items()]:
            if key in (None, lying) and desk in (None, where):
                del self.leases[lying]

    def on_desk(self, desk: str, /, *, now: float) -> tuple[int, ...]:
        return tuple(
            sorted(
                key for key, (where, until) in self.leases.items() if where == desk and until >= now
            )
        )

    def on_other_desks(self, desk: str, /, *, now: float) -> int:
        return sum(1 for where, until in self.leases.values() if where != desk and until >= now)

    def matching(
        self,
        selection: Selection,
        /,
        *,
        states: Any = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Any]:
        for key in sorted(key for key in self.keys if key > (after or 0))[:limit]:
            self.read += 1
            yield SimpleNamespace(key=key)


def queue_of(keys: list[int], clock: FakeClock | None = None) -> tuple[ReviewQueue, Waiting]:
    waiting = Waiting(keys)
    return over(waiting, clock), waiting


def over(
    waiting: Waiting,
    clock: FakeClock | None = None,
    seed_of: Callable[[Selection], int | None] = lambda selection: None,
) -> ReviewQueue:
    return ReviewQueue(cast("Any", waiting), cast("Any", waiting), clock or FakeClock(), seed_of)


def _always(seed: int, selection: Selection) -> int:
    return seed


def drained(queue: ReviewQueue, desk: str = "desk", limit: int = 5) -> list[int]:
    held: list[int] = []
    while given_ := queue.take(ALL, desk=desk, holding=held, limit=limit):
        held += given_
    return held


@given(keys=st.sets(st.integers(1, 2000), max_size=60), limit=st.integers(1, 7))
def test_everything_that_waits_is_given_once(keys: set[int], limit: int) -> None:
    queue, _ = queue_of(sorted(keys))
    assert sorted(drained(queue, limit=limit)) == sorted(keys)


def test_the_first_tenth_is_spread_over_all_that_waits() -> None:
    queue, _ = queue_of(list(range(1, 1001)))
    held: list[int] = []
    while len(held) < 100:
        held += queue.take(ALL, desk="d", holding=held, limit=5)
    tenths = [sum(1 for key in held if (key - 1) // 100 == tenth) for tenth in range(10)]
    assert max(tenths) - min(tenths) <= 3, (
        "golden steps fill evenly; draws by chance would differ by about 10"
    )


def test_queue_finds_the_next_item_without_a_scan() -> None:
    queue, waiting = queue_of(list(range(1, 5001)))
    queue.take(ALL, desk="d", limit=5)
    before = waiting.read
    queue.take(ALL, desk="e", limit=5)
    assert waiting.read - before <= 12


def test_two_desks_share_nothing() -> None:
    queue, _ = queue_of(list(range(1, 21)))
    one, two = queue.take(ALL, desk="one", limit=5), queue.take(ALL, desk="two", limit=5)
    assert not set(one) & set(two)


def test_after_a_reload_a_desk_gets_its_own_back_first() -> None:
    queue, _ = queue_of(list(range(1, 21)))
    before = queue.take(ALL, desk="one", limit=5)
    assert queue.take(ALL, desk="one", limit=5) == before


def test_a_lease_ends_by_time_and_by_leaving() -> None:
    clock = FakeClock()
    queue, _ = queue_of([1, 2], clock)
    assert set(queue.take(ALL, desk="one", limit=5)) == {1, 2}
    assert queue.take(ALL, desk="two", limit=5) == ()
    clock.seconds += LEASE_S + 1
    assert set(queue.take(ALL, desk="two", limit=5)) == {1, 2}
    queue.leave("two")
    assert set(queue.take(ALL, desk="three", limit=5)) == {1, 2}


def test_skipped_item_comes_back_last_and_is_free_for_others() -> None:
    queue, waiting = queue_of([1, 2, 3])
    (first,) = queue.take(ALL, desk="one", limit=1)
    queue.put_back(first, desk="one")
    others = queue.take(ALL, desk="one", limit=5)
    assert set(others) == {1, 2, 3} - {first}
    for key in others:
        waiting.keys.remove(key)
        queue.done_with(key)
    assert queue.take(ALL, desk="one", limit=5) == (first,)


def test_new_attempt_comes_before_unleased_items() -> None:
    queue, waiting = queue_of(list(range(1, 101)))
    held = queue.take(ALL, desk="one", limit=5)
    waiting.keys.append(500)
    queue.soon(AssessmentKey(500))
    assert queue.take(ALL, desk="one", holding=held, limit=5)[0] == 500


def test_two_processes_at_one_store_share_nothing_and_leave_nothing() -> None:
    waiting = Waiting(list(range(1, 41)))
    one, two = over(waiting), over(waiting)
    first, second = [*one.take(ALL, desk="one", limit=5)], [*two.take(ALL, desk="two", limit=5)]
    for _ in range(3):
        first += one.take(ALL, desk="one", holding=first[:], limit=5)
        second += two.take(ALL, desk="two", holding=second[:], limit=5)
    assert not set(first) & set(second)
    assert sorted(first + second) == list(range(1, 41))
    assert over(waiting).take(ALL, desk="three", limit=5) == ()
    assert over(waiting).on_desks(but="three") == 40


def test_after_a_restart_a_desk_gets_its_own_back() -> None:
    waiting = Waiting(list(range(1, 21)))
    before = over(waiting).take(ALL, desk="one", limit=5)
    assert sorted(over(waiting).take(ALL, desk="one", limit=5)) == sorted(before)


def test_a_lease_of_another_process_ends_by_time() -> None:
    waiting, clock = Waiting([1, 2]), FakeClock()
    over(waiting, clock).take(ALL, desk="one", limit=5)
    later = over(waiting, clock)
    assert later.take(ALL, desk="two", limit=5) == ()
    clock.seconds += LEASE_S + 1
    assert set(later.take(ALL, desk="two", limit=5)) == {1, 2}


@pytest.mark.parametrize("late", [range(101, 150), range(5000, 5003)])
def test_queue_finds_items_added_by_a_running_run(late: range) -> None:
    clock = FakeClock()
    queue, waiting = queue_of(list(range(1, 11)), clock)
    held = drained(queue)
    waiting.keys += late
    clock.seconds += 3
    items: list[int] = []
    while more := queue.take(ALL, desk="desk", holding=[*held, *items], limit=5):
        items += more
    assert set(items) == set(late)


@given(
    keys=st.sets(st.integers(1, 2000), max_size=60),
    limit=st.integers(1, 7),
    seed=st.integers(0, 2**64 - 1),
)
def test_a_drawn_order_gives_everything_that_waits_once(
    keys: set[int], limit: int, seed: int
) -> None:
    queue = over(Waiting(sorted(keys)), FakeClock(), lambda selection: seed)
    assert sorted(drained(queue, limit=limit)) == sorted(keys)


def test_random_order_depends_on_the_seed_and_survives_a_restart() -> None:
    first, again, other = (
        drained(over(Waiting(list(range(1, 301))), FakeClock(), partial(_always, seed)))
        for seed in (7, 7, 8)
    )
    assert first == again
    assert first != other


def test_every_item_is_as_likely_as_any_other_to_be_among_the_first() -> None:
    """Each of 40 keys, some side by side and some alone, is first in its turn: chi-square of 4,000
    seeds, 39 df.
    """
    keys = [*range(1, 21), *range(101, 121)]
    firsts = dict.fromkeys(keys, 0)
    for seed in range(4000):
        queue = over(Waiting(keys), FakeClock(), partial(_always, seed))
        firsts[queue.take(ALL, desk="d", limit=1)[0]] += 1
    expected = 4000 / len(keys)
    # passed by chance once in a thousand
    assert sum((n - expected) ** 2 / expected for n in firsts.values()) < 72.1


def test_skipped_items_of_a_random_order_come_last() -> None:
    queue = over(Waiting([1, 2, 3]), FakeClock(), lambda selection: 5)
    (first,) = queue.take(ALL, desk="d", limit=1)
    queue.put_back(first, desk="d")
    rest = queue.take(ALL, desk="d", limit=5)
    assert set(rest) == {1, 2, 3} - {first}
    for key in rest:
        queue.done_with(key)
