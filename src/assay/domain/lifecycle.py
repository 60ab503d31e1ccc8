"""The states of trials, assessments and runs, the states that count, and the transitions of decisions, as tables.

The store builds its SQL from these tables, so that the states that count are defined once, here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class RunState(StrEnum):
    """The state of a run. `PAUSED` and `CANCELLED` are requests that the executing process obeys before its next claim.

    A run that is `IMPORTING` is half written, and its rows are removed if its importer dies. A run that is `DELETED` or
    `ARCHIVED` by a person, or `REPLACED` by a later version of the same imported log, keeps its rows and can be brought back.
    """

    PLANNED = "planned"
    RUNNING = "running"
    PAUSED = "paused"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    FINISHED = "finished"
    IMPORTING = "importing"
    DELETED = "deleted"
    REPLACED = "replaced"
    ARCHIVED = "archived"


SET_ASIDE: Final = frozenset({RunState.DELETED, RunState.REPLACED, RunState.ARCHIVED})
"""States of runs that were taken out of use; their rows, decisions and events stay in the store."""

HIDDEN: Final = SET_ASIDE | {RunState.IMPORTING}
"""States of runs that no list, statistic, queue or export includes."""

UNREADABLE: Final = HIDDEN - {RunState.ARCHIVED}
"""States of runs that cannot be read by their id either."""


class TrialState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    NEEDS_REVIEW = "needs_review"
    APPROVED = "approved"
    REJECTED = "rejected"
    FAILED = "failed"
    LEFT_OUT = "left_out"


class AssessmentState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    CORRECTED = "corrected"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"
    NOT_REQUIRED = "not_required"
    EXEMPT = "exempt"
    LEFT_OUT = "left_out"


class AssessmentPurpose(StrEnum):
    """The purpose of an assessment: `WORK` may count once decided; a `CONTROL` item measures its reviewer and never counts."""

    WORK = "work"
    CONTROL = "control"


class Policy(StrEnum):
    """Review policy: the LLM assessments that a person must review."""

    EVERY = "every"
    FLAGGED = "flagged"
    SAMPLE = "sample"
    NONE = "none"


class Verb(StrEnum):
    """The decisions a person can take on one assessment."""

    APPROVE = "approve"
    CORRECT = "correct"
    REJECT = "reject"
    RERUN = "rerun"
    UNDO = "undo"


COUNTS: Final = frozenset(
    {
        AssessmentState.APPROVED,
        AssessmentState.CORRECTED,
        AssessmentState.NOT_REQUIRED,
        AssessmentState.EXEMPT,
    }
)
"""States that count: only assessments in these states reach a statistic, an export or a snapshot.

Control items have the same states, so the store keeps them in tables of their own, which no such query reads.
"""

# Rerun is missing, because it replaces an assessment and decides on none of its scores.
DECIDED: Final = {
    Verb.APPROVE: AssessmentState.APPROVED,
    Verb.CORRECT: AssessmentState.CORRECTED,
    Verb.REJECT: AssessmentState.REJECTED,
}
"""The state each decision leads to; each is taken from `PENDING` only, and undo leads back to `PENDING`."""

UNDOABLE: Final = frozenset(DECIDED.values())

MAX_ATTEMPTS: Final = 3
"""Maximum attempts at judging one trial; more need `--force` with a reason."""


def first_state(*, by_model: bool, policy: Policy, flagged: bool, sampled: bool = True) -> AssessmentState:
    """Return the first state of an assessment: pending only if an LLM graded and the suite's policy requires review.

    Args:
        sampled: True if the trial is in the review sample; read only with the policy `sample`.
    """
    if not by_model:
        return AssessmentState.NOT_REQUIRED
    if policy is Policy.SAMPLE:
        return AssessmentState.PENDING if sampled else AssessmentState.LEFT_OUT
    waits = policy is Policy.EVERY or (policy is Policy.FLAGGED and flagged)
    return AssessmentState.PENDING if waits else AssessmentState.EXEMPT


def trial_state(states: frozenset[AssessmentState]) -> TrialState:
    """Return the state of a trial whose responses and assessments are all stored, from its current assessments' states."""
    if AssessmentState.PENDING in states:
        return TrialState.NEEDS_REVIEW
    if states & COUNTS:
        return TrialState.APPROVED
    return TrialState.LEFT_OUT if AssessmentState.LEFT_OUT in states else TrialState.REJECTED


class Standing(StrEnum):
    """Class of a trial in the count of trials: counted + pending + rejected + failed + left out = total."""

    COUNTED = "counted"
    PENDING = "pending"
    REJECTED = "rejected"
    FAILED = "failed"
    LEFT_OUT = "left_out"


def standing(state: TrialState, states: frozenset[AssessmentState]) -> Standing:
    """Return a trial's class in the count, from its own state and its current assessments' states."""
    # A trial counts as soon as any of its assessments does. This is tested first, so that the numbers sum to the total.
    if states & COUNTS:
        return Standing.COUNTED
    if AssessmentState.PENDING in states or state in (TrialState.PENDING, TrialState.RUNNING, TrialState.NEEDS_REVIEW):
        return Standing.PENDING
    if state is TrialState.FAILED:
        return Standing.FAILED
    return Standing.LEFT_OUT if AssessmentState.LEFT_OUT in states else Standing.REJECTED
