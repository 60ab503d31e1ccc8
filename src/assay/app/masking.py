"""Names that would give away who wrote a response or who graded it, hidden inside texts: for the review and the arena alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from assay.scoring.authorship import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.domain.run import RunPlan

HIDDEN_NAME: Final = "▒▒▒"
"""What stands in a text where a candidate's name would give away who wrote it."""

_SHORT: Final = 3  # shorter names are words of their own too often to be hidden inside texts


def mask_of(plan: RunPlan) -> re.Pattern[str] | None:
    """Finds a run's names standing alone, in any case; None where it has none that are long enough."""
    long = sorted({name for name in _identities(plan) if len(name) >= _SHORT}, key=len, reverse=True)
    if not long:
        return None
    either = "|".join(re.escape(name) for name in long)
    return re.compile(rf"(?<![^\W_])(?:{either})(?![^\W_])", re.IGNORECASE)


def masked(text: str, mask: re.Pattern[str] | None) -> str:
    """The text with `HIDDEN_NAME` for each name."""
    return mask.sub(HIDDEN_NAME, text) if mask else text


def _identities(plan: RunPlan) -> Iterable[str]:
    """Every name that would give it away; of a candidate's model also what it calls itself, as far as its name says that."""
    for candidate in plan.candidates:
        yield candidate.name
        if candidate.model is not None:
            yield candidate.model.ref
            yield candidate.model.name
            called = candidate.model.name.rpartition("/")[2]
            yield called
            yield from (word for word in MODELS if word in called.casefold())
    for judge in plan.judges:
        yield judge.name
        yield judge.model.ref
