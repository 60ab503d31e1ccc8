"""Numbers that say how far a review followed its protocol, as opposed to what the protocol
plans.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from assay.domain.digest import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class AchievedReview:
    """Decisions that hold now, and how they came about.

    Undone decisions and superseded attempts are not included.

    Attributes:
        decisions: items that are approved, corrected or rejected by people.
        blind: decisions for which everybody who decided gave their own verdict before they saw the
            judge's grades.
        by_two: decisions that rest on the opinions of two different people.
        in_order: decisions on items that the review queue handed out, for runs with a random order;
            None for other runs.
        waiting_for_second: pending items with an opinion that needs another one, or with two that
            differ.
    """

    decisions: int = 0
    blind: int = 0
    by_two: int = 0
    in_order: int | None = None
    waiting_for_second: int = 0

    @classmethod
    def total(cls, parts: Iterable[AchievedReview]) -> Self:
        """Return the sum over several runs."""
        parts = tuple(parts)
        ordered = [part.in_order for part in parts if part.in_order is not None]
        return cls(
            decisions=sum(part.decisions for part in parts),
            blind=sum(part.blind for part in parts),
            by_two=sum(part.by_two for part in parts),
            in_order=sum(ordered) if ordered else None,
            waiting_for_second=sum(part.waiting_for_second for part in parts),
        )

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "decisions": self.decisions,
            "blind": self.blind,
            "by_two": self.by_two,
            "in_order": self.in_order,
            "waiting_for_second": self.waiting_for_second,
        }
