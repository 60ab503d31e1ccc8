"""Review log records: filters, entries, and the result of a hash chain check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.domain.digest import JsonValue
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import Verb
from assay.domain.review import ReviewEvent, Via


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Filter for review log entries; None matches all.

    `run`: a run's id or unique prefix. `day`: `YYYY-MM-DD`, in UTC.
    """

    run: str | None = None
    reviewer: str | None = None
    verb: Verb | None = None
    via: Via | None = None
    item: AssessmentKey | None = None
    day: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRun:
    """A run with pending assessments; runs with only pending control items are not listed.

    `has_control_items`: True if planted checks or repeats were ever mixed into the run's items.
    """

    id: RunId
    has_control_items: bool
    protocol: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEvent:
    """A review event with its item; `active_ms` is the time that the reviewer viewed the item, None
    if not measured.
    """

    event: ReviewEvent
    run_id: RunId
    suite: str
    task: str
    thing: str
    k: int
    of: int
    active_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLook:
    """Result of verifying a part of the event hash chain.

    Attributes:
        checked: number of events that were checked.
        up_to: number of the last event whose hash is correct; 0 if there is none.
        broken: number of the first event whose hash is wrong; None if all are correct.
        ended: True if the check reached the newest event or a wrong hash.
    """

    checked: int
    up_to: int
    broken: int | None
    ended: bool
