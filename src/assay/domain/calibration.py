"""How far a judge can be trusted: the tiers, what a record is tied to, and the record itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from assay.domain.digest import JsonValue


class Tier(StrEnum):
    """What a calibration shows; `TOO_FEW` when it shows neither that a judge is fair nor that it is poor."""

    EXCELLENT = "excellent"
    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"
    TOO_FEW = "too_few_samples"

    @property
    def words(self) -> str:
        """The tier as people read it."""
        return self.value.replace("_", " ")

    def reaches(self, wanted: Tier) -> bool:
        """Whether this tier is at least the wanted one."""
        return RANK[self] >= RANK[wanted]


RANK: Final[Mapping[Tier, int]] = {Tier.TOO_FEW: 0, Tier.POOR: 0, Tier.FAIR: 1, Tier.GOOD: 2, Tier.EXCELLENT: 3}

DEMANDABLE: Final = (Tier.FAIR, Tier.GOOD, Tier.EXCELLENT)
"""What a suite may demand of its judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeIdentity:
    """What a calibration holds for: change any of it, and the judge is another one.

    `model` is `provider/name`; the others are digests of the words it is asked with, of the rubric, and of the
    parameters without the seed.
    """

    model: str
    prompt: str
    rubric: str
    parameters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRecord:
    """One calibration as stored.

    `version` counts those of one identity from 1, `number` all of a store; `document` is all that was measured.
    """

    identity: JudgeIdentity
    tier: Tier
    at: str
    version: int = 0
    document: Mapping[str, JsonValue] = field(default_factory=dict)
    number: int = 0
