"""The result of a deterministic scorer: a score, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from assay.domain.failure import Fault


class Score(NamedTuple):
    """A response's score, between 0 and 1.

    `note` names the deciding rule; `confidence` (0 to 1) rates the rule's reliability.

    This is a tuple and not a dataclass, because every response creates one and a frozen dataclass
    takes three times as long to create.
    """

    value: float
    note: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Unscored:
    """The scorer could not decide if the response is right or wrong. `kind` is a short code."""

    kind: str
    detail: str
    fault: Fault = Fault.HARNESS


Outcome: TypeAlias = Score | Unscored
