"""Where planted checks and repeats come among the real items of a desk."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

from assay.domain.protocol import chance

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from assay.domain.identifiers import AssessmentKey

_DESKS: Final = 500  # desks whose skips are remembered


class Asides:
    """Mixes what is put before a reviewer into what comes next. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects _skipped
        self._skipped: OrderedDict[str, set[int]] = OrderedDict()

    def mixed(
        self,
        keys: Sequence[AssessmentKey],
        beside: Sequence[AssessmentKey],
        *,
        held: Collection[AssessmentKey],
        desk: str,
        limit: int,
    ) -> list[AssessmentKey]:
        """At most one aside among the next items, at a place that its key decides; never the one that was just skipped.

        There are never more than `limit`, so that their number tells nothing: a real item that finds no room lies on this
        desk and comes next.

        Args:
            keys: the next real items.
            beside: asides that wait for the reviewer.
            held: what the desk has already.
        """
        with self._lock:
            skipped = self._skipped.get(desk, set())
        fresh = [key for key in beside if key not in held and int(key) not in skipped]
        if not fresh and not keys:  # nothing else waits: what was skipped comes again
            fresh = [key for key in beside if key not in held]
        if not fresh:
            return list(keys)
        place = int(chance(int(fresh[0]), "place", len(keys)) * min(limit, len(keys) + 1))
        return [*keys[:place], fresh[0], *keys[place:]][:limit]

    def put_back(self, key: AssessmentKey, *, desk: str) -> None:
        """A skip."""
        with self._lock:
            self._skipped.setdefault(desk, set()).add(int(key))
            self._skipped.move_to_end(desk)
            while len(self._skipped) > _DESKS:
                self._skipped.popitem(last=False)
