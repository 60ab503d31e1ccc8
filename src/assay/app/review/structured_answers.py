"""Read structured answers as they were when the trial was judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.calls import Reply
from assay.scoring.evaluator import GradingAttempt
from assay.scoring.structuring import read_structure, structuring_request

if TYPE_CHECKING:
    from assay.domain.structure import StructuredAnswer, Structuring
    from assay.domain.suite import Task
    from assay.store.execution.journal import StoreJournal


def structured_answer(
    journal: StoreJournal, structuring: Structuring, task: Task, text: str, *, candidate: str | None
) -> StructuredAnswer | None:
    """Return the stored structure of a response, or of the model solution if `candidate` is None;
    None if not stored.
    """
    kept = journal.structured(
        structuring_request(
            structuring, GradingAttempt(task=task, responses=()), text, candidate=candidate
        )
    )
    return None if kept is None else read_structure(Reply(text=kept))
