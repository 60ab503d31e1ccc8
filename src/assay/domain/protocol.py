"""The review protocol of a run: the shares of blind items, planted checks, repeats and second opinions in its review.

By default every share is 0. A protocol belongs to its run. Switching it makes a new version, which is reported with every
result of the run. A draw depends only on the run's seed and the item's key, so that neither a reload nor a second
server changes it.
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

GAPS: Final = ("gap_items", "gap_hours")
"""Distances between a decision and its repeat: in own decisions, and in hours."""

NUMBERS: Final = (*SHARES, *GAPS)
"""Names of all settings of a protocol that a user chooses."""

MOST: Final = {"blind": 1.0, "plants": 0.5, "rereview": 0.5, "second": 1.0, "gap_items": 10_000.0, "gap_hours": 8_760.0}
"""Highest value of each setting: with more planted checks and repeats than real items, a reviewer would see mostly those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The shares of one protocol, on 0 to 1, with the least distance between a decision and its repeat.

    Attributes:
        blind: share of items whose grades are not sent before the person's own verdict.
        plants: planted checks for each decided item; half have an error and half are known to be good.
        rereview: repeats of the reviewer's own earlier decisions for each decided item; blind if the protocol has blind items.
        second: share of items that two people decide independently.
        gap_items: smallest number of own decisions between a decision and its repeat.
        gap_hours: smallest number of hours between them.
        version: counts from 1; every switch makes the next.
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
        """Return `plain` if every share is 0, `blind_first` if every item is blind, else `mixed`."""
        if not any(getattr(self, name) for name in SHARES):
            return "plain"
        return "blind_first" if self.blind == 1 else "mixed"

    @property
    def control_share(self) -> float:
        """Return the number of planted checks and repeats for each real item."""
        return self.plants + self.rereview

    def as_json(self) -> dict[str, JsonValue]:
        """Return the settings by name; the shares only if any is above 0."""
        shares: dict[str, JsonValue] = {name: getattr(self, name) for name in SHARES}
        if self.rereview:
            shares |= {name: getattr(self, name) for name in GAPS}
        return {"version": self.version, "mode": self.mode, **({} if self.mode == "plain" else shares)}

    def leaves_free(self, *, seed: int, key: int) -> bool:
        """True if the store skips a key after an assessment of this trial; it skips twice as many keys as control items need."""
        # Reviewers could recognise a control item whose key followed those of all real assessments.
        return chance(seed, "spare", key) < 2 * (self.plants + self.rereview)

    def draws(self, share: str, *, seed: int, key: int) -> bool:
        """True if the item with this key belongs to a share; always the same answer."""
        return chance(seed, share, key) < float(getattr(self, share))


PLAIN: Final = Protocol()

# A fifth is blind, because people who see the judge's score first agree with it too often to measure agreement.
SUGGESTED: Final = Protocol(blind=0.2, plants=0.05, rereview=0.03)
"""Protocol suggested for a single reviewer, without second opinions: useful checks at moderate effort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The expected work of a review without corrections: decisions of all reviewers, and keys pressed.

    Attributes:
        items: real assessments.
        blind, plants, rereview, second: how many decisions each share brings; blind ones are among the others.
    """

    items: int
    decisions: int
    keys: int
    blind: int
    plants: int
    rereview: int
    second: int


def effort(protocol: Protocol, *, items: int, scores: float) -> Effort:
    """Return the expected work of reviewing `items` assessments of `scores` scores each.

    An approval is one key press. A blind item takes one for each score, one to keep the verdict, and the approval.
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
    """Return the protocol in a run's record; settings that are absent (in older runs) or invalid are 0."""
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
    """Return a number in [0, 1) that depends only on the seed, the purpose and the key."""
    drawn = hashlib.sha256(f"{seed}\x1f{what}\x1f{key}".encode()).digest()[:7]
    return int.from_bytes(drawn, "big") / 2**56


def _share(protocol: Mapping[str, JsonValue], name: str, default: float = 0.0) -> float:
    share = protocol.get(name)
    # True is an int to Python, and would be a share of 100%.
    if isinstance(share, bool) or not isinstance(share, int | float) or not math.isfinite(share):
        return default
    return min(max(float(share), 0.0), MOST[name])
