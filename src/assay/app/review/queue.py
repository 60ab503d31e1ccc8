"""The review queue, which hands out pending assessments and leases each to one desk (browser tab).

Theory. A half-reviewed queue should give the same results as a finished one, and a reviewer who
becomes more lenient during the day should do so for all candidates equally. Items are therefore not
handed out in stored order. A walk with golden ratio steps visits the range of keys, from a start
derived from the selection. Every prefix of the walk is spread evenly over the keys, and so over
tasks, trials, judges and candidates, because related items have neighbouring keys. One index seek
at the walk's next point finds the next item, so a million pending items cost as much as ten. If a
run's protocol has `order: random`, chance determines the order (`app.random_order`), because only
then do the reviewed items represent the others.

House rules. A lease reserves an item for one desk. It ends after a decision, a skip, the close of
the tab, or a timeout. Leases are stored, so that two processes never show the same item; this
process caches them to avoid useless requests. A desk is one browser tab, so that two tabs of one
reviewer do not show the same item.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from cachetools import LRUCache

from assay.app.random_order import Shuffle
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from assay.ports import Clock
    from assay.store.queries.assessments import AssessmentQueries

LEASE_S: Final = 300.0
"""Seconds for which an item stays leased to a desk that sends no request."""

_GOLDEN: Final = 0.6180339887498949
_PENDING: Final = frozenset({AssessmentState.PENDING})
_MISSES: Final = 6  # consecutive walk points without a new item before the rest is read in order
_SCAN: Final = 500  # maximum rows read in order, if nearly all pending items are on desks
# seconds between reads of a growing run's newest key and of other desks' items
_LOOK_S: Final = 2.0
# number of lost races for a lease after which a desk gets only the items that it has
_ROUNDS: Final = 20
_WALKS: Final = 64  # maximum number of selections whose walk is remembered
# keys in a row of a random order that are not pending before the pending ones are sorted
_TRIES: Final = 200
_FEW: Final = 20_000  # maximum pending rows that are read and sorted
_SOON: Final = 100  # maximum number of new attempts remembered; the walk finds older ones


class Leases(Protocol):
    """Methods of `StoreLeases` that the queue needs, so that tests can run it without a store."""

    def seeker(self, selection: Selection, /) -> Callable[[int], int | None]: ...

    def lease(
        self, keys: Collection[int], /, *, desk: str, now: float, until: float
    ) -> frozenset[int]: ...

    def free(self, *, key: int | None = None, desk: str | None = None) -> None: ...

    def on_desk(self, desk: str, /, *, now: float) -> tuple[int, ...]: ...

    def on_other_desks(self, desk: str, /, *, now: float) -> int: ...


@dataclass(slots=True)
class _Walk:
    """Position of a selection's walk through the keys from `low` to `high`."""

    start: float
    first: Callable[[int], int | None]
    low: int = 0
    high: int = 0
    steps: int = 0
    looked: float = float("-inf")
    shuffle: Shuffle | None = None

    def point(self) -> int:
        place = (self.start + self.steps * _GOLDEN) % 1.0
        self.steps += 1
        return self.low + int(place * (self.high - self.low + 1)) - 1

    def jump(self) -> None:
        """Continue at a random point, because another process takes the items on the same walk."""
        self.start, self.steps = secrets.randbits(48) / 2**48, 0


@dataclass(slots=True)
class _Desk:
    """The leased and skipped items of one browser tab."""

    leases: dict[int, float] = field(default_factory=dict)
    skipped: dict[int, None] = field(default_factory=dict)


class ReviewQueue:
    """Hands out pending assessments a few at a time. Thread-safe.

    Args:
        assessments: store of assessments; the last few pending ones are read in order.
        leases: finds the next assessment and stores the leases of each desk.
        clock: measures the age of leases.
        seed_of: returns the seed of a selection's random order; None if the order is not random.
    """

    def __init__(
        self,
        assessments: AssessmentQueries,
        leases: Leases,
        clock: Clock,
        seed_of: Callable[[Selection], int | None] = lambda selection: None,
    ) -> None:
        self._seed_of = seed_of
        self._leases = leases
        self._assessments = assessments
        self._clock = clock
        self._lock = Lock()  # protects everything below
        self._walks: LRUCache[Selection, _Walk] = LRUCache(_WALKS)
        self._desks: dict[str, _Desk] = {}
        self._elsewhere: dict[int, float] = {}
        self._soon: deque[int] = deque(maxlen=_SOON)

    def take(
        self, selection: Selection, *, desk: str, holding: Collection[int] = (), limit: int = 5
    ) -> tuple[AssessmentKey, ...]:
        """Return up to `limit` pending items that no other desk has, in the order in which to show
        them.

        Args:
            selection: the runs under review.
            desk: the requesting tab. Items that are leased to it but no longer shown come first.
            holding: items that the tab still shows; their leases are renewed.
        """
        with self._lock:
            now, wall = self._clock.monotonic(), self._wall()
            self._drop_stale(now)
            mine = self._desk(desk, now, wall)
            walk = self._walk(selection, now)
            self._lease(holding, desk, mine, now, wall)
            given: list[int] = []
            for round_ in range(_ROUNDS):
                before = len(given)
                if round_ == 0:
                    self._reread(walk, mine, holding, given, limit)
                self._take_soon(walk, given, limit)
                self._take_walking(selection, walk, mine, given, limit)
                new = given[before:]
                given[before:] = self._lease(new, desk, mine, now, wall)
                if not new or len(given) >= limit:
                    break
                walk.jump()
            return tuple(AssessmentKey(key) for key in given)

    def put_back(self, key: AssessmentKey, *, desk: str) -> None:
        """Return a skipped item to the queue.

        This desk gets it again only after all other items.
        """
        with self._lock:
            mine = self._desks.setdefault(desk, _Desk())
            mine.leases.pop(key, None)
            mine.skipped[key] = None
            self._leases.free(key=key, desk=desk)

    def done_with(self, key: AssessmentKey) -> None:
        with self._lock:
            for desk in self._desks.values():
                desk.leases.pop(key, None)
                desk.skipped.pop(key, None)
            if key in self._soon:
                self._soon.remove(key)
            self._leases.free(key=key)

    def keep(self, key: AssessmentKey, *, desk: str) -> None:
        """Lease an item to a desk after an undo, or because somebody opened it by its address."""
        with self._lock:
            now, wall = self._clock.monotonic(), self._wall()
            self._lease([key], desk, self._desk(desk, now, wall), now, wall)

    def claim(self, key: AssessmentKey, *, desk: str) -> bool:
        """Lease a control item to a desk unless another desk has it; True if the desk has it
        now.
        """
        with self._lock:
            now, wall = self._clock.monotonic(), self._wall()
            return bool(self._lease([key], desk, self._desk(desk, now, wall), now, wall))

    def lies_on(self, desk: str) -> tuple[int, ...]:
        """Return the keys of the items on a desk, in the order in which they were handed out."""
        with self._lock:
            return tuple(self._desk(desk, self._clock.monotonic(), self._wall()).leases)

    def arrange(self, keys: Sequence[int], *, desk: str) -> None:
        """Store the order of a desk's items, so that a reload shows the same order."""
        with self._lock:
            leases = self._desks.setdefault(desk, _Desk()).leases
            for key in keys:
                if key in leases:
                    leases[key] = leases.pop(key)

    def leave(self, desk: str) -> None:
        with self._lock:
            self._desks.pop(desk, None)
            self._leases.free(desk=desk)

    def soon(self, key: AssessmentKey) -> None:
        """Put a new attempt first in the queue; the next desk that requests items gets it."""
        with self._lock:
            self._soon.append(key)

    def on_desks(self, *, but: str) -> int:
        return self._leases.on_other_desks(but, now=self._wall())

    def _wall(self) -> float:
        return datetime.fromisoformat(self._clock.now()).timestamp()

    def _desk(self, desk: str, now: float, wall: float) -> _Desk:
        mine = self._desks.get(desk)
        if mine is None:
            lying = self._leases.on_desk(desk, now=wall)
            mine = self._desks[desk] = _Desk(leases=dict.fromkeys(lying, now + LEASE_S))
        return mine

    def _lease(
        self, keys: Collection[int], desk: str, mine: _Desk, now: float, wall: float
    ) -> list[int]:
        """Lease keys and return the leased ones in order; keys that another desk has are skipped
        for a short time.
        """
        got = self._leases.lease(keys, desk=desk, now=wall, until=wall + LEASE_S)
        for key in keys:
            if key in got:
                mine.leases[key] = now + LEASE_S
            else:
                mine.leases.pop(key, None)
                self._elsewhere[key] = now + _LOOK_S
        return [key for key in keys if key in got]

    def _drop_stale(self, now: float) -> None:
        for name in [*self._desks]:
            desk = self._desks[name]
            for key in [key for key, until in desk.leases.items() if until < now]:
                del desk.leases[key]
            if not desk.leases and not desk.skipped:
                del self._desks[name]
        for key in [key for key, until in self._elsewhere.items() if until < now]:
            del self._elsewhere[key]

    def _reread(
        self, walk: _Walk, mine: _Desk, holding: Collection[int], given: list[int], limit: int
    ) -> None:
        """Add a desk's items to `given` again after a reload, in the same order."""
        for key in [key for key in mine.leases if key not in holding][:limit]:
            if walk.first(key - 1) == key:
                given.append(key)
            else:
                del mine.leases[key]

    def _take_soon(self, walk: _Walk, given: list[int], limit: int) -> None:
        for key in [*self._soon]:
            if len(given) == limit:
                return
            if not self._is_held(key) and walk.first(key - 1) == key:
                self._soon.remove(key)
                given.append(key)

    def _take_walking(
        self, selection: Selection, walk: _Walk, mine: _Desk, given: list[int], limit: int
    ) -> None:
        if walk.shuffle is not None:
            self._take_drawn(selection, walk, walk.shuffle, mine, given, limit)
            return
        misses = 0
        while len(given) < limit and misses < _MISSES and walk.high:
            point = walk.point()
            key = walk.first(point)
            key = walk.first(walk.low - 1) if key is None else key
            if key is None:
                return
            if key in given or key in mine.skipped or self._is_held(key):
                misses += 1
            else:
                misses = 0
                given.append(key)
        if len(given) < limit:
            self._read_through(selection, mine, given, limit)

    def _take_drawn(
        self,
        selection: Selection,
        walk: _Walk,
        shuffle: Shuffle,
        mine: _Desk,
        given: list[int],
        limit: int,
    ) -> None:
        """Add the next pending keys in random order to `given`; the last few keys are sorted into
        this order.
        """
        misses = 0
        while len(given) < limit and misses < _TRIES and walk.high:
            key = walk.low + shuffle.next(walk.high - walk.low + 1)
            if (
                key in given
                or key in mine.skipped
                or self._is_held(key)
                or walk.first(key - 1) != key
            ):
                misses += 1
            else:
                misses = 0
                given.append(key)
        if len(given) == limit:
            return
        waiting = (
            int(row.key)
            for row in self._assessments.matching(selection, states=_PENDING, limit=_FEW)
        )
        drawn = sorted(
            (key for key in waiting if key not in given and not self._is_held(key)),
            key=shuffle.rank,
        )
        given += [key for key in drawn if key not in mine.skipped][: limit - len(given)]
        if not given:
            for key in drawn[:limit]:
                mine.skipped.pop(key)
                given.append(key)

    def _read_through(
        self, selection: Selection, mine: _Desk, given: list[int], limit: int
    ) -> None:
        """Add pending items in the order of the queue to `given`; used if few items are pending and
        desks have most of them.
        """
        last_resort: list[int] = []
        for row in self._assessments.matching(selection, states=_PENDING, limit=_SCAN):
            if row.key in given or self._is_held(row.key):
                continue
            (last_resort if row.key in mine.skipped else given).append(row.key)
            if len(given) == limit:
                return
        if not given:
            for key in last_resort[:limit]:
                mine.skipped.pop(key)
                given.append(key)

    def _walk(self, selection: Selection, now: float) -> _Walk:
        walk = self._walks.get(selection)
        if walk is None:
            drawn = hashlib.sha256(repr(selection).encode()).digest()[:6]
            walk = self._walks[selection] = _Walk(
                start=int.from_bytes(drawn, "big") / 2**48, first=self._leases.seeker(selection)
            )
        if now - walk.looked >= _LOOK_S:
            if walk.looked > float("-inf"):
                walk.first = self._leases.seeker(selection)
            walk.looked = now
            if walk.shuffle is None and (seed := self._seed_of(selection)) is not None:
                walk.shuffle = Shuffle(seed)
            walk.low = walk.low or walk.first(0) or 0
            walk.high = _last(walk.first, from_=walk.high or walk.low)
        return walk

    def _is_held(self, key: int) -> bool:
        return key in self._elsewhere or any(key in desk.leases for desk in self._desks.values())


def _last(first: Callable[[int], int | None], *, from_: int) -> int:
    """Return the greatest pending key, found by exponential search; `from_` if no greater key is
    pending.
    """
    if not from_:
        return 0
    reached, stride = from_, 1
    while (key := first(reached + stride - 1)) is not None:
        reached, stride = key, stride * 2
    while stride > 1:
        stride //= 2
        key = first(reached + stride - 1)
        if key is not None:
            reached = key
    return reached
