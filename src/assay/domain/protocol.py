"""Review protocol: a run's shares of blind items, planted checks, repeats and second opinions.

By default every share is 0. Each run has a separate protocol. A switch to another protocol creates
a new version, and every result of the run reports it. Random draws depend only on the run's seed
and the item's key, so they are the same after a reload and on other servers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assay.domain.digest import JsonValue

SHARES: Final = ("blind", "plants", "rereview", "second")
"""Protocol settings that are fractions between 0 and 1."""

GAPS: Final = ("gap_items", "gap_hours")
"""Settings for the minimum distance between a decision and its repeat: in decisions of the same
reviewer, and in hours.
"""

NUMBERS: Final = (*SHARES, *GAPS)
"""Names of all protocol settings that a user chooses."""

MOST: Final = {
    "blind": 1.0,
    "plants": 0.5,
    "rereview": 0.5,
    "second": 1.0,
    "gap_items": 10_000.0,
    "gap_hours": 8_760.0,
}
"""Highest value of each setting: with more planted checks and repeats than real items, a reviewer
would see mostly those.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Shares of special items in a review, between 0 and 1, and the minimum distance between a
    decision and its repeat.

    Attributes:
        blind: share of items whose grades stay hidden until the reviewer has given their own
            verdict.
        plants: planted checks per decided item; half contain an error and half are known to be
            good.
        rereview: repeats of the reviewer's own earlier decisions per decided item. Repeats are
            blind if the protocol has blind items.
        second: share of items that two people decide independently.
        gap_items: minimum number of the reviewer's own decisions between a decision and its repeat.
        gap_hours: minimum number of hours between a decision and its repeat.
        version: counts from 1; every switch increases it.
    """

    blind: float = 0.0
    plants: float = 0.0
    rereview: float = 0.0
    second: float = 0.0
    gap_items: float = 50.0
    gap_hours: float = 24.0
    version: int = 1

    @property
    def mode(self) -> str:
        """Return `plain` if every share is 0, `blind_first` if every item is blind, otherwise
        `mixed`.
        """
        if not any(getattr(self, name) for name in SHARES):
            return "plain"
        return "blind_first" if self.blind == 1 else "mixed"

    @property
    def control_share(self) -> float:
        """Return the number of planted checks and repeats per real item."""
        return self.plants + self.rereview

    def as_json(self) -> dict[str, JsonValue]:
        """Return the settings by name; shares are included only if any is above 0."""
        shares: dict[str, JsonValue] = {name: getattr(self, name) for name in SHARES}
        if self.rereview:
            shares |= {name: getattr(self, name) for name in GAPS}
        return {
            "version": self.version,
            "mode": self.mode,
            **({} if self.mode == "plain" else shares),
        }

    def leaves_free(self, *, seed: int, key: int) -> bool:
        """True if the store leaves the next key free for a control item; it leaves twice as many
        free as needed.
        """
        # Otherwise reviewers could recognise a control item, because its key would follow those of
        # all real assessments.
        return chance(seed, "spare", key) < 2 * (self.plants + self.rereview)

    def draws(self, share: str, *, seed: int, key: int) -> bool:
        """True if the item with this key is drawn for a share; repeated calls agree."""
        return chance(seed, share, key) < float(getattr(self, share))


PLAIN: Final = Protocol()

# A fifth of the items is blind, because people who see the judge's score first agree with it too
# often to measure agreement.
SUGGESTED: Final = Protocol(blind=0.2, plants=0.05, rereview=0.03)
"""Protocol suggested for a single reviewer, without second opinions: useful checks at moderate
effort.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Expected effort of a review without corrections: all reviewers' decisions and key presses.

    `blind`, `plants`, `rereview`, `second`: decisions due to each share; blind decisions overlap
    with the other shares.
    """

    items: int
    decisions: int
    keys: int
    blind: int
    plants: int
    rereview: int
    second: int


def effort(protocol: Protocol, *, items: int, scores: float) -> Effort:
    """Return the expected effort to review `items` assessments with `scores` scores each.

    An approval takes one key press; a blind item takes one per score, one to submit the verdict,
    and one to approve.
    """
    seen = items * (1 + protocol.second + protocol.plants)
    again = items * protocol.rereview
    blind = protocol.blind * (seen + again)
    return Effort(
        items=items,
        decisions=round(seen + again),
        keys=round(seen + again + blind * (scores + 1)),
        blind=round(blind),
        plants=round(items * protocol.plants),
        rereview=round(again),
        second=round(items * protocol.second),
    )


def protocol_of(record: Mapping[str, JsonValue]) -> Protocol:
    """Return the protocol stored with a run; missing or invalid shares become 0."""
    version = record.get("version")
    return Protocol(
        blind=_share(record, "blind"),
        plants=_share(record, "plants"),
        rereview=_share(record, "rereview"),
        second=_share(record, "second"),
        gap_items=_share(record, "gap_items", PLAIN.gap_items),
        gap_hours=_share(record, "gap_hours", PLAIN.gap_hours),
        version=version if isinstance(version, int) and version > 0 else 1,
    )


def chance(seed: int, what: str, key: int) -> float:
    """Return a pseudo-random number in [0, 1), determined by the seed, the purpose and the key."""
    drawn = hashlib.sha256(f"{seed}\x1f{what}\x1f{key}".encode()).digest()[:7]
    return int.from_bytes(drawn, "big") / 2**56


def _share(protocol: Mapping[str, JsonValue], name: str, default: float = 0.0) -> float:
    share = protocol.get(name)
    # Python treats True as an int, so it would mean a share of 100%.
    if isinstance(share, bool) or not isinstance(share, int | float) or not math.isfinite(share):
        return default
    return min(max(float(share), 0.0), MOST[name])
