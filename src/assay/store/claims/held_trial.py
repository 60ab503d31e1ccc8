"""The data of a trial that this process holds, so that most entries are written without a lookup."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from assay.domain.lifecycle import AssessmentState

Slot: TypeAlias = tuple[int, int | None]
"""Keys of a grader and a candidate; the candidate's key is None for a joint assessment."""

_UNTOUCHABLE: Final = frozenset({AssessmentState.NOT_REQUIRED, AssessmentState.EXEMPT, AssessmentState.LEFT_OUT})


@dataclass(slots=True)
class Holding:
    """A trial held by this process.

    Attributes:
        rest: the state to which the trial returns if it is released unfinished.
        standing: the trial's standing; reliable as long as `certain`.
        rounds: the latest stored round of each candidate's responses.
        slots: state of each slot's current assessment when last seen.
    """

    run_key: int
    task_key: int
    rest: str
    standing: str
    rounds: dict[int, int] = field(default_factory=dict)
    slots: dict[Slot, AssessmentState] = field(default_factory=dict)

    @property
    def certain(self) -> bool:
        """True if only this process can change the trial's assessments, because no reviewer can decide or has decided them."""
        return _UNTOUCHABLE.issuperset(self.slots.values())
