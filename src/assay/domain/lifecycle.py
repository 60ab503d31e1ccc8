"""States of runs, trials and assessments, the states that count, and the transitions between them.

The store builds its SQL from these tables, so the states that count are defined only here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class RunState(StrEnum):
    """State of a run.

    `PAUSED`, `CANCELLED`: requests that the executing process obeys before its next claim.
    `SUBMITTED`: waits for jobs at a provider; the process that collects the jobs also submits the
    run's pending trials. `IMPORTING`: only partly written; the rows are removed if the importer
    dies. `DELETED` or `ARCHIVED` by a person, `REPLACED` by a later version of the same imported
    log: the rows remain and the run can be restored.
    """

    PLANNED = "planned"
    RUNNING = "running"
    SUBMITTED = "submitted"
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
"""States of runs that cannot be read even by their id."""


class TrialState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUBMITTED = "submitted"
    NEEDS_REVIEW = "needs_review"
    APPROVED = "approved"
    REJECTED = "rejected"
    FAILED = "failed"
    LEFT_OUT = "left_out"


TO_COME: Final = (TrialState.PENDING, TrialState.RUNNING, TrialState.SUBMITTED)
"""States of trials that are not carried out yet; a `SUBMITTED` trial waits for a job at a provider,
and nobody can claim it.
"""


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
    """Purpose of an assessment: `WORK` may count after a decision; `CONTROL` items measure
    reviewers and never count.
    """

    WORK = "work"
    CONTROL = "control"


class Policy(StrEnum):
    """Review policy: which LLM assessments a person must review."""

    EVERY = "every"
    FLAGGED = "flagged"
    SAMPLE = "sample"
    NONE = "none"


class Verb(StrEnum):
    """The decisions that a person can make on one assessment."""

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

Control items use these states too. The store keeps them in separate tables, so queries for results
do not read them.
"""

# Rerun is not listed, because it replaces an assessment and makes no decision on its scores.
DECIDED: Final = {
    Verb.APPROVE: AssessmentState.APPROVED,
    Verb.CORRECT: AssessmentState.CORRECTED,
    Verb.REJECT: AssessmentState.REJECTED,
}
"""The state that each decision leads to.

Decisions start from `PENDING`, and undo leads back to it.
"""

UNDOABLE: Final = frozenset(DECIDED.values())

MAX_ATTEMPTS: Final = 3
"""Maximum attempts at judging one trial; more need `--force` with a reason."""


def first_state(
    *, by_model: bool, policy: Policy, flagged: bool, sampled: bool = True
) -> AssessmentState:
    """Return a new assessment's state; it is pending only if an LLM graded it and the policy
    requires review.

    `sampled`: True if the trial is in the review sample; used only with the policy `sample`.
    """
    if not by_model:
        return AssessmentState.NOT_REQUIRED
    if policy is Policy.SAMPLE:
        return AssessmentState.PENDING if sampled else AssessmentState.LEFT_OUT
    waits = policy is Policy.EVERY or (policy is Policy.FLAGGED and flagged)
    return AssessmentState.PENDING if waits else AssessmentState.EXEMPT


def trial_state(states: frozenset[AssessmentState]) -> TrialState:
    """Return a complete trial's state, derived from the states of its current assessments."""
    if AssessmentState.PENDING in states:
        return TrialState.NEEDS_REVIEW
    if states & COUNTS:
        return TrialState.APPROVED
    return TrialState.LEFT_OUT if AssessmentState.LEFT_OUT in states else TrialState.REJECTED


class Standing(StrEnum):
    """Category of a trial in progress figures; the counts of all categories add up to the total."""

    COUNTED = "counted"
    PENDING = "pending"
    REJECTED = "rejected"
    FAILED = "failed"
    LEFT_OUT = "left_out"


def standing(state: TrialState, states: frozenset[AssessmentState]) -> Standing:
    """Return a trial's category, given its state and its current assessments' states."""
    # A trial counts as soon as any of its assessments counts. This is tested first, so that the
    # numbers add up to the total.
    if states & COUNTS:
        return Standing.COUNTED
    if AssessmentState.PENDING in states or state in (*TO_COME, TrialState.NEEDS_REVIEW):
        return Standing.PENDING
    if state is TrialState.FAILED:
        return Standing.FAILED
    return Standing.LEFT_OUT if AssessmentState.LEFT_OUT in states else Standing.REJECTED
