"""Request to measure a judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRequest:
    """A request to measure a judge against references.

    Attributes:
        samples: a file of references, or an imported run with grades by people. It replaces the
            built-in references unless `with_built_in` is True.
        suite: suite file whose rubric, prompt and parameters the judge uses.
        repeat: number of times to judge each reference; above 1, the spread between repeats is
            measured.
        budget_usd: maximum cost in US dollars, including an interrupted attempt; None for the
            budget in the settings. References beyond the budget are left out.
    """

    samples: Path | None = None
    with_built_in: bool = False
    suite: Path | None = None
    repeat: int = 1
    budget_usd: float | None = None
