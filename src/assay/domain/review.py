"""A person's decision on one assessment, as an event that is never edited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from assay.domain.identifiers import AssessmentKey, folded
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState, Verb


class Via(StrEnum):
    """Interface through which a decision was made; `IMPORT` is a table or record that states a
    person's decision.
    """

    PAGE = "page"
    TERMINAL = "terminal"
    SCRIPT = "script"
    IMPORT = "import"


class Road(StrEnum):
    """How a decision came about.

    `SHOWN`: the item was on the reviewer's screen, in the browser or the terminal. `SCRIPTED`: a
    command without a terminal, Python, or a program over HTTP. `IMPORTED`: a table or record states
    the decision.
    """

    SHOWN = "shown"
    SCRIPTED = "scripted"
    IMPORTED = "imported"


def road_of(via: Via, *, displayed: bool) -> Road:
    """Return how a decision came about. This is the only place that derives it."""
    if via is Via.IMPORT:
        return Road.IMPORTED
    on_screen = via in (Via.PAGE, Via.TERMINAL) and displayed
    return Road.SHOWN if on_screen else Road.SCRIPTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """Number of counted assessments that rest on a person's decision, by the road of that decision.

    `scripted_allowed`: True if the project's setting `count_scripted` accepts scripted ones as
    vetted.
    """

    shown: int = 0
    scripted: int = 0
    imported: int = 0
    scripted_allowed: bool = False

    @property
    def total(self) -> int:
        return self.shown + self.scripted + self.imported

    @classmethod
    def sum(cls, parts: Iterable[Approvals]) -> Self:
        """Return the total over several runs."""
        parts = tuple(parts)
        return cls(
            shown=sum(part.shown for part in parts),
            scripted=sum(part.scripted for part in parts),
            imported=sum(part.imported for part in parts),
        )

    @classmethod
    def by_road(cls, numbers: Mapping[Road, int]) -> Self:
        """Return the numbers as a record; a road that is missing has none."""
        return cls(
            shown=numbers.get(Road.SHOWN, 0),
            scripted=numbers.get(Road.SCRIPTED, 0),
            imported=numbers.get(Road.IMPORTED, 0),
        )


def stated_by(reviewer: str, *, signed_in: str, via: Via, displayed: bool) -> str:
    """Return who stated the reviewer's name; empty if the name speaks for itself.

    A name speaks for itself in three cases: it is the signed-in person's, a page showed the item
    under that name, or a record states it. The signed-in person states every other name, so two of
    them are one person, and give one opinion.

    Args:
        signed_in: the person whose invitation, token or login sent the decision.
        displayed: True if the item was shown to the reviewer. A request with a browser's headers
            proves nothing by itself.
    """
    by_itself = via is Via.IMPORT or (via is Via.PAGE and displayed)
    return "" if by_itself or folded(reviewer) == folded(signed_in) else signed_in


def reviewer_words(reviewer: str, stater: str) -> str:
    """Return a reviewer's name for display: `Mia`, or `Mia, stated by root` if somebody else gave
    the name.
    """
    return f"{reviewer}, stated by {stater}" if stater else reviewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's decision on one assessment or control item, depending on `purpose`.

    On an item that needs two people, it is an opinion: the store applies it once another person has
    given the same one.

    Attributes:
        reviewer: the name under which the person decides, as typed.
        via: interface that sent the decision; with `displayed`, it determines `road`.
        reason: why the grades are rejected or corrected, or the trial is judged again; required for
            these verbs.
        note: further words of the reviewer; the judge of a rerun reads them.
        corrections: new scores between 0 and 1, keyed by (candidate, criterion); if the criterion
            is None, the score overrides the candidate's overall score.
        displayed: True if the whole item was shown to the reviewer before the decision; False for
            an undo.
        key: idempotency key; a second decision with the same key on the same assessment changes
            nothing. None for a decision that nobody sends twice.
        purpose: kind of the item, so that a command cannot decide a control item by accident.
        stated_by: the person who gave the reviewer's name, by the rule of the function `stated_by`;
            empty if the name speaks for itself. Neither may be the author of graded work, and
            together they give one of two opinions.
        login: the person whose login, invitation or token sent the decision, whatever name it
            gives; kept with an opinion. Empty if it is unknown.
    """

    assessment: AssessmentKey
    verb: Verb
    reviewer: str
    via: Via
    displayed: bool
    reason: str = ""
    note: str = ""
    corrections: Mapping[tuple[str, str | None], float] = field(default_factory=dict)
    key: str | None = None
    purpose: AssessmentPurpose = AssessmentPurpose.WORK
    stated_by: str = ""
    login: str = ""

    @property
    def road(self) -> Road:
        """How this decision came about."""
        return road_of(self.via, displayed=self.displayed)

    @property
    def reviewer_words(self) -> str:
        """The reviewer's name for display, with the person who stated it."""
        return reviewer_words(self.reviewer, self.stated_by)


class Outcome(StrEnum):
    """Effect of a decision.

    `DECIDED`: the item has a new state. `FIRST_OPINION`: the item needs a second, independent
    opinion and stays pending. `DISPUTED`: the second opinion differs from the first, so the item
    stays pending until a third person settles it. `WITHDRAWN`: an undo took back an opinion on an
    item that was still pending.
    """

    DECIDED = "decided"
    FIRST_OPINION = "first_opinion"
    DISPUTED = "disputed"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewEvent:
    """A decision and its effect.

    `id` counts from 1, separately for real assessments and control items. It is 0 for an opinion
    that changed no state: the store keeps opinions apart from the events of decided items. `at` is
    ISO 8601, UTC.
    """

    id: int
    decision: Decision
    before: AssessmentState
    after: AssessmentState
    at: str
    outcome: Outcome = Outcome.DECIDED
