"""Control items: planted checks and repeats that are mixed into a reviewer's queue but never
count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from assay.domain.assessment import Assessment
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import AssessmentState


class ControlKind(StrEnum):
    """Kinds of control items.

    `CHECK`: a copy of a decided assessment, with or without an error. `REPEAT`: one of the
    reviewer's own earlier decisions, shown again. `ATTEMPT`: a control item graded again because
    the reviewer requested a rerun; measures nothing.
    """

    CHECK = "check"
    # Repeats are shown in the same mode as real items: if they were always blind, a reviewer could
    # recognise them.
    REPEAT = "repeat"
    # A rerun of a control item must look like a rerun of a real item, so it produces another
    # attempt to show.
    ATTEMPT = "attempt"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOrigin:
    """Origin of a planted check: its error, and the grades that were altered.

    Attributes:
        how: the kind of error (`swapped_scores`, ...), or `known_good` if nothing was altered.
        places: the (candidate, criterion) pairs that were altered.
        vouched_by: kind of decision that confirmed the original: `blind`, `other` or `own`; empty
            if the original was corrected.
    """

    how: str
    places: tuple[tuple[str, str], ...] = ()
    vouched_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatOrigin:
    """Origin of a repeat: the earlier decision to compare with, and the earliest time to show the
    item again.

    Attributes:
        scores: the candidates' scores after the earlier decision.
        since: id of the earlier decision's observation.
        after_items: number of decisions that the reviewer must make between the earlier decision
            and the repeat.
        due: the earliest time at which the repeat may be shown, in ISO 8601.
    """

    scores: Mapping[str, float | None]
    since: int
    after_items: float
    due: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOrigin:
    first: AssessmentKey


ControlOrigin: TypeAlias = CheckOrigin | RepeatOrigin | AttemptOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlItem:
    """One control item for one reviewer, with the same states and decision rules as an assessment.

    Attributes:
        key: 0 until the item is stored; then a number from the same sequence as the run's
            assessments.
        source: the real assessment that the item was made from.
        judged: the grades shown to the reviewer as the judge's.
        attempt: number of the attempt, counted from 1.
    """

    key: AssessmentKey
    run_id: RunId
    source: AssessmentKey
    reviewer: str
    made: str
    judged: Assessment
    origin: ControlOrigin
    attempt: int = 1
    state: AssessmentState = AssessmentState.PENDING

    @property
    def kind(self) -> ControlKind:
        """Return the kind of this control item, which follows from its origin."""
        match self.origin:
            case CheckOrigin():
                return ControlKind.CHECK
            case RepeatOrigin():
                return ControlKind.REPEAT
            case AttemptOrigin():
                return ControlKind.ATTEMPT

    @property
    def first(self) -> AssessmentKey:
        """Return the key of the first attempt; this item's own key if it is the first."""
        return self.origin.first if isinstance(self.origin, AttemptOrigin) else self.key
