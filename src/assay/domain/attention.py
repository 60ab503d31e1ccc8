"""Signs of careless reviewing by absolute thresholds: too little time for the text, long runs of
approvals, missed errors.

Figures about reviewers that compare them with each other (`analysis.reviewers`) see nothing if
everybody is careless. The thresholds here do not depend on other reviewers, and each is generous,
because a false accusation costs more than a missed one. Only decisions on items that were on the
reviewer's screen are judged; a script reads nothing, and results state its decisions separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from assay.domain.identifiers import folded
from assay.domain.lifecycle import Verb

TOO_QUICK_S: Final = 1.0
"""Seconds below which a decision counts as too quick, however short its text: a person needs about
this long to react to it.
"""

FASTEST_WPM: Final = 600
"""Words per minute above which nobody reads with understanding.

Adults read 175 to 300 words per minute silently (Brysbaert 2019, Journal of Memory and Language
109:104047); faster than 400 to 600, people skim and miss content (Rayner et al. 2016, Psychological
Science in the Public Interest 17:4-34).
"""

CHARS_PER_WORD: Final = 6
"""Characters that count as one word: five letters and a space."""

LONG_RUN: Final = 50
"""Approvals in a row, of one reviewer, that count as a long run.

A careful reviewer of a judge that is right in 95% of the cases approves 50 items in a row with a
probability of 8%.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedDecision:
    """A decision that holds, on an item that was on the reviewer's screen.

    Attributes:
        verb: approve, correct or reject.
        active_ms: how long the reviewer looked at the item; None if not measured.
        size: length of the item's answers in characters; 0 if unknown.
    """

    reviewer: str
    verb: Verb
    active_ms: int | None
    size: int

    @property
    def too_quick(self) -> bool:
        """True if the decision took less than `TOO_QUICK_S`."""
        return self.active_ms is not None and self.active_ms < 1000 * TOO_QUICK_S

    @property
    def unread(self) -> bool:
        """True if the decision was faster than the answers can be read at `FASTEST_WPM`."""
        return self.active_ms is not None and self.active_ms < 1000 * reading_s(self.size)


def reading_s(characters: int) -> float:
    """Return the seconds that a text of this length takes at `FASTEST_WPM`; all other text on the
    screen is not included.
    """
    return 60 * characters / CHARS_PER_WORD / FASTEST_WPM


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Signs of careless reviewing among the decisions that hold, of one reviewer or of several.

    Attributes:
        decisions: decisions on items that were on the reviewer's screen.
        timed: decisions with a measured time. Only these can be too quick or unread.
        too_quick: decisions that took less than `TOO_QUICK_S`.
        unread: decisions that were faster than the answers can be read at `FASTEST_WPM`; they may
            be too quick as well.
        longest_run: highest number of consecutive approvals of one reviewer.
        in_long_runs: approvals in runs of at least `LONG_RUN`.
        planted: answered checks with a planted error, in sessions that have ended.
        missed: planted errors that the reviewer did not find.
    """

    decisions: int = 0
    timed: int = 0
    too_quick: int = 0
    unread: int = 0
    longest_run: int = 0
    in_long_runs: int = 0
    planted: int = 0
    missed: int = 0

    @property
    def not_timed(self) -> int:
        """Number of decisions without a measured time."""
        return self.decisions - self.timed

    @classmethod
    def total(cls, parts: Iterable[Attention]) -> Self:
        """Return the sum over several reviewers; the longest run is that of one of them."""
        parts = tuple(parts)
        return cls(
            decisions=sum(part.decisions for part in parts),
            timed=sum(part.timed for part in parts),
            too_quick=sum(part.too_quick for part in parts),
            unread=sum(part.unread for part in parts),
            longest_run=max((part.longest_run for part in parts), default=0),
            in_long_runs=sum(part.in_long_runs for part in parts),
            planted=sum(part.planted for part in parts),
            missed=sum(part.missed for part in parts),
        )


def attention_by_reviewer(
    decisions: Iterable[TimedDecision], planted: Iterable[tuple[str, bool]] = ()
) -> Mapping[str, Attention]:
    """Return the signs of each reviewer, by the spelling of the name that came first.

    Args:
        decisions: decisions in the order in which they were made.
        planted: for each answered check with a planted error, the reviewer, and True if they found
            the error.
    """
    names: dict[str, str] = {}
    taken: dict[str, list[TimedDecision]] = {}
    for decision in decisions:
        name = names.setdefault(folded(decision.reviewer), decision.reviewer)
        taken.setdefault(name, []).append(decision)
    by_check: dict[str, list[bool]] = {}
    for reviewer, was_found in planted:
        by_check.setdefault(names.setdefault(folded(reviewer), reviewer), []).append(was_found)
    return {
        name: _signs(taken.get(name, []), by_check.get(name, [])) for name in {**taken, **by_check}
    }


def _signs(taken: list[TimedDecision], found: list[bool]) -> Attention:
    runs = _runs_of_approvals(taken)
    return Attention(
        decisions=len(taken),
        timed=sum(decision.active_ms is not None for decision in taken),
        too_quick=sum(decision.too_quick for decision in taken),
        unread=sum(decision.unread for decision in taken),
        longest_run=max(runs, default=0),
        in_long_runs=sum(run for run in runs if run >= LONG_RUN),
        planted=len(found),
        missed=found.count(False),
    )


def _runs_of_approvals(taken: Iterable[TimedDecision]) -> list[int]:
    """Return the lengths of the unbroken runs of approvals."""
    lengths = [0]
    for decision in taken:
        if decision.verb is Verb.APPROVE:
            lengths[-1] += 1
        else:
            lengths.append(0)
    return [length for length in lengths if length]
