"""The review protocol of a run: which shares of its items are reviewed with more care than one look at the judge's grades.

A lone reviewer starts plain: every share is 0. A protocol belongs to its run, is switched by an event that makes a new
version, and stands beside every number that rests on the run. Who draws what is decided by the run's seed and the item's
key alone, so that neither a reload nor a second server draws again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from assay.domain.digest import JsonValue

SHARES: Final = ("blind", "plants", "rereview", "second")
"""The shares of a protocol, each from 0 to 1."""

MOST: Final = {"blind": 1.0, "plants": 0.5, "rereview": 0.5, "second": 1.0}
"""Planted checks and repeats beside more than as many real items would be all a reviewer sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Shares on 0 to 1.

    Attributes:
        blind: of items whose grades are not sent before the person's own verdict.
        plants: planted bad assessments, for each item decided.
        rereview: own earlier decisions put before the reviewer again, blind, for each item decided.
        second: of items that two people decide independently.
        version: counts from 1; every switch makes the next.
    """

    blind: float = 0.0
    plants: float = 0.0
    rereview: float = 0.0
    second: float = 0.0
    version: int = 1

    @property
    def mode(self) -> str:
        """`plain`, `blind_first` where every item is blind, else `mixed`."""
        if not any(getattr(self, name) for name in SHARES):
            return "plain"
        return "blind_first" if self.blind == 1 else "mixed"

    def as_json(self) -> dict[str, JsonValue]:
        """By name; the shares only where any is switched on."""
        shares: dict[str, JsonValue] = {name: getattr(self, name) for name in SHARES}
        return {"version": self.version, "mode": self.mode, **({} if self.mode == "plain" else shares)}

    def draws(self, share: str, *, seed: int, key: int) -> bool:
        """Whether the item with this key is among a share; the same answer always."""
        return chance(seed, share, key) < float(getattr(self, share))


PLAIN: Final = Protocol()


def protocol_of(said: Mapping[str, JsonValue]) -> Protocol:
    """The protocol in a run's record; what an older run does not know is 0, and so is what makes no sense."""
    version = said.get("version")
    return Protocol(
        blind=_share(said, "blind"),
        plants=_share(said, "plants"),
        rereview=_share(said, "rereview"),
        second=_share(said, "second"),
        version=version if isinstance(version, int) and version > 0 else 1,
    )


def chance(seed: int, what: str, key: int) -> float:
    """A number in [0, 1) that only the seed, the purpose and the key decide."""
    drawn = hashlib.sha256(f"{seed}\x1f{what}\x1f{key}".encode()).digest()[:7]
    return int.from_bytes(drawn, "big") / 2**56


def _share(protocol: Mapping[str, JsonValue], name: str) -> float:
    said = protocol.get(name)
    if isinstance(said, bool) or not isinstance(said, int | float) or not math.isfinite(said):
        return 0.0
    return min(max(float(said), 0.0), MOST[name])
