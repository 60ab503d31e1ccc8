"""Cached state of a claimed trial, which saves a lookup for most writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from assay.domain.lifecycle import AssessmentState

Slot: TypeAlias = tuple[int, int | None]
"""Keys of a grader and a candidate; the candidate's key is None in a joint assessment."""

_UNTOUCHABLE: Final = frozenset(
    {AssessmentState.NOT_REQUIRED, AssessmentState.EXEMPT, AssessmentState.LEFT_OUT}
)


@dataclass(slots=True)
class Holding:
    """Cached state of a trial that this process holds.

    `rest`: state after a release before the trial is finished. `standing`: valid while `certain` is
    True. `rounds`: latest stored response round by candidate. `slots`: last known state of each
    slot's current assessment.
    """

    run_key: int
    task_key: int
    rest: str
    standing: str
    rounds: dict[int, int] = field(default_factory=dict)
    slots: dict[Slot, AssessmentState] = field(default_factory=dict)

    @property
    def certain(self) -> bool:
        """True if only this process can change the trial's assessments, because none has been open
        to review.
        """
        return _UNTOUCHABLE.issuperset(self.slots.values())
