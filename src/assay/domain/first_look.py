"""A first look at a finished run: one answer per candidate, and signs that its scores may not mean
what they seem to.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTotals:
    """Totals of one candidate in a run.

    `scores`: scores that count, with the `lowest` and `highest` (None without any). `answers`:
    stored answers of a model, of which `cut_off` were ended by a token limit.
    """

    candidate: str
    scores: int
    lowest: float | None
    highest: float | None
    answers: int
    cut_off: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAnswer:
    """One answer of a candidate, shortened; `score` is None if no score of it counts yet."""

    candidate: str
    task: str
    trial: int
    text: str
    expected: str | None
    score: float | None


class SignKind(StrEnum):
    """Signs that the scores of a run deserve a look before its verdict is believed."""

    ALL_ZERO = "all_zero"
    ALL_FULL = "all_full"
    REFERENCE_IN_ZERO = "reference_in_zero"
    CUT_OFF = "cut_off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One sign, as one or two sentences; `candidate` is None if it concerns all.

    `command` applies the remedy, if one does.
    """

    code: SignKind
    candidate: str | None
    text: str
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLook:
    """One answer per candidate, and the signs."""

    answers: tuple[SampleAnswer, ...] = ()
    signs: tuple[Sign, ...] = ()


NO_LOOK: Final = FirstLook()
"""The look at a run that was not executed in this process."""
