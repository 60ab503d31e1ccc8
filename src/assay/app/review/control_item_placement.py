"""Place control items (planted checks and repeats) among the real items of a browser tab."""

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
"""Number of items per page request; at most one of them is a control item."""

_DESKS: Final = 500  # maximum number of desks (browser tabs) whose skips are remembered


class ControlItemPlacement:
    """Chooses the next control item of a desk (browser tab) and its position. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects _skipped
        self._skipped: LRUCache[str, set[int]] = LRUCache(_DESKS)

    def chosen(
        self,
        waiting: Sequence[AssessmentKey],
        *,
        held: Collection[AssessmentKey],
        desk: str,
        limit: int,
        any_left: bool,
    ) -> list[AssessmentKey]:
        """Return control items that may come next on this desk, best first, without those on the
        desk or just skipped.

        A request for fewer items gets a control item less often, so that a request for a single
        item reveals nothing.

        Args:
            waiting: the reviewer's pending control items.
            held: items on the desk.
            any_left: True if real items are left; otherwise skipped control items come again.
        """
        with self._lock:
            skipped = self._skipped.get(desk, set())
        fresh = [key for key in waiting if key not in held]
        unskipped = [key for key in fresh if int(key) not in skipped]
        if not any_left:
            return unskipped or fresh
        return unskipped if secrets.randbelow(USUAL) < limit else []

    def mixed(
        self,
        keys: Sequence[AssessmentKey],
        control: AssessmentKey | None,
        *,
        limit: int,
        place: int | None,
    ) -> list[AssessmentKey]:
        """Return the next real items with the control item inserted, at most `limit` items.

        `place` is the control item's position before a reload. Without it, the position is derived
        from the item's key.
        """
        if control is None:
            return list(keys)
        if place is None:
            place = int(chance(int(control), "place", len(keys)) * min(limit, len(keys) + 1))
        return [*keys[:place], control, *keys[place:]][:limit]

    def put_back(self, key: AssessmentKey, *, desk: str) -> None:
        with self._lock:
            self._skipped.setdefault(desk, set()).add(int(key))
