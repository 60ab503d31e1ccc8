"""Random order of the positions in a range, computed from a seed and never stored.

A partial review can calibrate a judge only if the reviewed items were chosen at random. A keyed
permutation (a Feistel network with four rounds over a power of four, repeated until the result is
inside the range) provides such an order. Every prefix of the order is a random sample without
replacement. The order is the same on every machine and after every restart.
"""

from __future__ import annotations

from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Final

from assay.domain.identifiers import folded

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.domain.selection import DrawnOrder, Selection
    from assay.store.opening import Store

# Four rounds make a strong pseudorandom permutation (Luby and Rackoff, 1988, SIAM J. Comput.
# 17:373-386).
_ROUNDS: Final = 4


class Shuffle:
    """Random order of the positions 0 to `size` - 1.

    The order restarts if `size` exceeds its current power of four.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed.to_bytes(8, "big", signed=False)
        self._half = 0
        self._step = 0

    def next(self, size: int) -> int:
        """Return the next random position below `size`.

        After all positions were returned, the order starts again.
        """
        half = max(1, ((size - 1).bit_length() + 1) // 2)
        if half != self._half:
            self._half, self._step = half, 0
        # The permuted domain is at most four times the range, so a position in the range takes four
        # steps on average.
        while True:
            place = self._permuted(self._step)
            self._step = (self._step + 1) % (1 << 2 * half)
            if place < size:
                return place

    def rank(self, key: int) -> bytes:
        """Return a random sort key that depends only on the seed and `key`.

        Use it for lists short enough to be sorted.
        """
        return blake2b(
            key.to_bytes(8, "big"), key=self._seed, digest_size=8, person=b"rank"
        ).digest()

    def _permuted(self, place: int) -> int:
        mask = (1 << self._half) - 1
        left, right = place >> self._half, place & mask
        for number in range(_ROUNDS):
            mixed = blake2b(
                bytes([number, self._half]) + right.to_bytes(8, "big"),
                key=self._seed,
                digest_size=8,
            )
            left, right = right, left ^ (int.from_bytes(mixed.digest(), "big") & mask)
        return left << self._half | right


def order_seeds(store: Store) -> Callable[[Selection], int | None]:
    """Return a function that maps a selection to the seed of its review order; None if no selected
    run uses random order.
    """
    lock = Lock()
    known: list[
        DrawnOrder
    ] = []  # a run's order is fixed when it is planned, so each run is read once
    seen = 0

    def seed_of(selection: Selection) -> int | None:
        nonlocal seen
        with lock:
            seen, more = store.archive.runs.drawn_orders(seen)
            known.extend(more)
        suites = {folded(name) for name in selection.suites}
        drawn = sorted(
            f"{summary.run}:{summary.seed}"
            for summary in known
            if (not selection.runs or summary.run.startswith(tuple(selection.runs)))
            and (not suites or folded(summary.suite) in suites)
        )
        return (
            int.from_bytes(blake2b("\n".join(drawn).encode(), digest_size=8).digest(), "big")
            if drawn
            else None
        )

    return seed_of
