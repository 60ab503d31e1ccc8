"""A person's decision on one assessment, as an event that is never edited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState, Verb


class Via(StrEnum):
    """Interface through which a decision was made; only `PAGE`, and `TERMINAL` if it showed the item, count as displayed."""

    PAGE = "page"
    TERMINAL = "terminal"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's decision on one assessment or control item, depending on `purpose`.

    Attributes:
        corrections: new scores between 0 and 1, keyed by (candidate, criterion); if the criterion is None, the score overrides
            the candidate's overall score.
        displayed: True if the whole item was shown before the decision.
        key: idempotency key; a second decision with the same key on the same assessment changes nothing.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewEvent:
    """A stored decision. `id` counts from 1, separately for real assessments and control items; `at` is ISO 8601, UTC."""

    id: int
    decision: Decision
    before: AssessmentState
    after: AssessmentState
    at: str
