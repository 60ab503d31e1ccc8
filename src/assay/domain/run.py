"""Runs, their trials, and the records that one trial commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from assay.domain.errors import InputError
from assay.domain.lifecycle import AssessmentState, Policy
from assay.domain.model import Parameters

if TYPE_CHECKING:
    from assay.domain.assessment import Assessment, Response
    from assay.domain.calls import ModelRequest, Reply
    from assay.domain.conversation import SimulatedUser
    from assay.domain.digest import JsonValue
    from assay.domain.failure import Failure
    from assay.domain.identifiers import RunId, TaskKey, TrialKey
    from assay.domain.review import Decision
    from assay.domain.review_sample import ReviewRule
    from assay.domain.suite import CandidateSpec, JudgeSpec, Rubric, SuiteCopy, Task

# Without these bounds a number such as 99,999,999,999, typed into the form, was planned until memory ran out.
MOST_TRIALS: Final = 10_000
"""Maximum trials of one task in a run."""

MOST_PLANNED: Final = 2_000_000
"""Maximum trials of all tasks in a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Everything needed to execute a suite once and to repeat that run; fixed before the first call.

    Attributes:
        seed: run seed, 0 <= seed < 2**31.
        started: ISO 8601 time in UTC.
        environment: versions and machine facts, by name.
        protocol: the review protocol, versioned.
        budget_usd: hard cap on what all calls of the run may cost together; None for none.
        regrade_of: the run whose stored responses this one grades; candidates are then never asked.
        user: the model that plays the user in tasks with a persona.
        prompt_version: the suite author's name for this version of its prompts; empty if not set.
    """

    id: RunId
    suite: str
    copy: SuiteCopy
    candidates: tuple[CandidateSpec, ...]
    judges: tuple[JudgeSpec, ...]
    rubric: Rubric
    policy: Policy
    parameters: Parameters
    system_prompt: str
    seed: int
    started: str
    concurrency: int = 5
    batch_id: str | None = None
    benchmark: bool = False
    margin: float | None = None
    budget_usd: float | None = None
    environment: Mapping[str, JsonValue] = field(default_factory=dict)
    protocol: Mapping[str, JsonValue] = field(default_factory=dict)
    regrade_of: RunId | None = None
    prompt_version: str = ""
    user: SimulatedUser | None = None

    @property
    def imported(self) -> bool:
        """True if the run was executed elsewhere and read from a file, so that it cannot be extended here."""
        # Resuming such a run once asked no model, yet overwrote its failures and its end.
        return self.regrade_of is None and "imported" in self.environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One assessment a trial needs: a judge or scorer, and the candidate it grades (None: all of them together).

    Reruns and reviews concern one slot; each slot has its own attempts.
    """

    grader: str
    candidate: str | None
    by_model: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedTrial:
    """A trial claimed by this process, with everything that is already stored for it, so that no request is sent twice.

    Attributes:
        k: 1-based repetition of the task within the run; `of` is N.
        responses: by candidate, snippets included.
        done: slots whose current assessment is stored.
        attempts: the latest attempt of each slot that has one.
        graded: candidates graded by the current assessment of each slot in `done`.
        tries: number of earlier tries of this trial.
        rounds: number of answers of each candidate in this trial; the next request uses another seed.
        spoken: by candidate, the replies of a conversation that has begun and has no response yet, those of a simulated user
            included, each with True if the token limit cut it off.
    """

    key: TrialKey
    run_id: RunId
    task_key: TaskKey
    task: Task
    k: int
    of: int
    responses: Mapping[str, Response]
    done: frozenset[tuple[str, str | None]]
    attempts: Mapping[tuple[str, str | None], int] = field(default_factory=dict)
    graded: Mapping[tuple[str, str | None], frozenset[str]] = field(default_factory=dict)
    tries: int = 0
    rounds: Mapping[str, int] = field(default_factory=dict)
    spoken: Mapping[str, tuple[tuple[str, bool], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One stored call: the request and its outcome.

    Exactly one of `reply` and `failure` is set, except that a reply that could not be read has both. `log` is what a
    program printed beside its answer, and its traceback.
    """

    request: ModelRequest
    reply: Reply | None
    failure: Failure | None
    number: int
    started: str
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAssessment:
    """An assessment that is not stored yet, in the state that the suite's policy gives it.

    With `attempt` above 1 it replaces the slot's current assessment, which becomes `superseded` in the same commit.
    """

    slot: Slot
    attempt: int
    assessment: Assessment
    state: AssessmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One commit of a trial's progress.

    Attributes:
        calls: calls made, in order.
        responses: new responses, with the index into `calls` of the call each came from (None: no call).
        assessments: new assessments, with the index into `calls` of the call each came from (None: no call).
        finished: True if the process releases the trial; the store then sets its state, from `failure` if given,
            else from the states of its current assessments.
        failure: why the trial failed; only with `finished`.
        rerun: the decision that asked for these assessments; stored for each assessment that they replace.
        spare: assessment numbers left free after these, so that planted checks get numbers without a visible gap.
    """

    trial: TrialKey
    calls: tuple[CallRecord, ...] = ()
    responses: tuple[tuple[Response, int | None], ...] = ()
    assessments: tuple[tuple[NewAssessment, int | None], ...] = ()
    finished: bool = False
    failure: Failure | None = None
    rerun: Decision | None = None
    spare: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """A task with its position in a run, and its new trials by number k (from 1)."""

    task: Task
    position: int
    trials: range


def check_number_of_trials(where: str, wanted: int | None, *, least: int = 1) -> None:
    """Raise `InputError` for a number of trials that no task can have; None is "as the suite says"."""
    if wanted is not None and wanted < least:
        raise InputError(where, f"is {wanted}, and must be at least 1.")
    if wanted is not None and wanted > MOST_TRIALS:
        raise InputError(where, f"is {wanted:,}, and must be at most {MOST_TRIALS:,}.")


def within_bounds(planned: Iterable[PlannedTask], where: str) -> Iterator[PlannedTask]:
    """Yield the tasks while their trials fit into one run; raises `InputError` at the first task beyond the limits."""
    # Tasks are counted one by one, so a task file of any length is refused at the first task too many, before the rest is read.
    total = 0
    for place, planned_task in enumerate(planned, 1):
        of = planned_task.trials.stop - 1
        total += of
        if planned_task.trials and of > MOST_TRIALS:
            raise InputError(
                where,
                f"would give task {planned_task.task.id!r} {of:,} trials, but the limit is {MOST_TRIALS:,}.",
                remedy="Request fewer.",
            )
        if planned_task.trials and total > MOST_PLANNED:
            raise InputError(
                where,
                f"would make {total:,} trials of the first {place:,} tasks alone, but a run holds "
                f"{MOST_PLANNED:,} at most.",
                remedy="Request fewer trials per task, or fewer tasks.",
            )
        yield planned_task


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of the user that override the suite; None means "as the suite says".

    Attributes:
        trials: N for every task.
        candidates: only these candidates, in the suite's order; empty for all.
        judges: judges that replace the suite's.
        limit: number of tasks to run, from the first; None for all.
        review: the grades that wait for a person.
    """

    trials: int | None = None
    candidates: tuple[CandidateSpec, ...] = ()
    judges: tuple[JudgeSpec, ...] | None = None
    concurrency: int = 5
    benchmark: bool = False
    batch_id: str | None = None
    budget_usd: float | None = None
    limit: int | None = None
    margin: float | None = None
    review: ReviewRule | None = None
    environment: Mapping[str, JsonValue] = field(default_factory=dict)
