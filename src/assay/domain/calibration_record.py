"""Calibration records: the tier that a judge reached, and the judge identity for which it is
valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from assay.domain.digest import JsonValue


class Tier(StrEnum):
    """Quality tier of a judge; `TOO_FEW` means that the calibration has too little data to assign
    another tier.
    """

    EXCELLENT = "excellent"
    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"
    TOO_FEW = "too_few_samples"

    @property
    def words(self) -> str:
        """Name of the tier for people, such as `too few samples`."""
        return self.value.replace("_", " ")

    def reaches(self, wanted: Tier) -> bool:
        """True if this tier is at least `wanted`."""
        return RANK[self] >= RANK[wanted]


RANK: Final[Mapping[Tier, int]] = {
    Tier.TOO_FEW: 0,
    Tier.POOR: 0,
    Tier.FAIR: 1,
    Tier.GOOD: 2,
    Tier.EXCELLENT: 3,
}

DEMANDABLE: Final = (Tier.FAIR, Tier.GOOD, Tier.EXCELLENT)
"""Tiers that a suite may require of its judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeIdentity:
    """Identity of a judge.

    A calibration is valid only for this identity; any change makes it a different judge.

    `model` is `provider/name`; the other fields are digests of the prompt, the rubric, and the
    parameters without the seed.
    """

    model: str
    prompt: str
    rubric: str
    parameters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRecord:
    """One stored calibration, with all measurements in `document`.

    `version` counts the calibrations of one identity from 1; `number` counts all calibrations in
    the store.
    """

    identity: JudgeIdentity
    tier: Tier
    at: str
    version: int = 0
    document: Mapping[str, JsonValue] = field(default_factory=dict)
    number: int = 0
