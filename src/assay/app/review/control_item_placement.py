"""Placement of control items (planted checks and repeats) among the real items that a browser tab gets."""

from __future__ import annotations

import secrets
from threading import Lock
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from assay.domain.protocol import chance

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from assay.domain.identifiers import AssessmentKey

USUAL: Final = 5
"""Number of items that a page requests at a time; if any control item is waiting, one is among them."""

_DESKS: Final = 500  # maximum number of desks (browser tabs) whose skips are remembered


class ControlItemPlacement:
    """Choice of a desk's (browser tab's) next control item and its position. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects _skipped
        self._skipped: LRUCache[str, set[int]] = LRUCache(_DESKS)

    def chosen(
        self, waiting: Sequence[AssessmentKey], *, held: Collection[AssessmentKey], desk: str, limit: int, any_left: bool
    ) -> list[AssessmentKey]:
        """Return control items that may come next on this desk, best first, without those it has or just skipped.

        A request for fewer items gets a control item proportionally less often, so that asking for one item reveals nothing.

        Args:
            waiting: pending control items of the reviewer.
            held: items that the desk already has.
            any_left: True if real items are left; if not, skipped control items come again.
        """
        with self._lock:
            skipped = self._skipped.get(desk, set())
        fresh = [key for key in waiting if key not in held]
        unskipped = [key for key in fresh if int(key) not in skipped]
        if not any_left:
            return unskipped or fresh
        return unskipped if secrets.randbelow(USUAL) < limit else []

    def mixed(
        self, keys: Sequence[AssessmentKey], control: AssessmentKey | None, *, limit: int, place: int | None
    ) -> list[AssessmentKey]:
        """Return the next real items with the control item inserted, at most `limit` items.

        `place` is the position of the control item before a reload; without it, the position is derived from the key.
        """
        if control is None:
            return list(keys)
        if place is None:
            place = int(chance(int(control), "place", len(keys)) * min(limit, len(keys) + 1))
        return [*keys[:place], control, *keys[place:]][:limit]

    def put_back(self, key: AssessmentKey, *, desk: str) -> None:
        """Remember that this desk skipped the item."""
        with self._lock:
            self._skipped.setdefault(desk, set()).add(int(key))
