"""Runs, their trials, and the records that a trial writes in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from assay.domain.assessment import Assessment, Response
from assay.domain.calls import ModelRequest, Reply
from assay.domain.conversation import SimulatedUser
from assay.domain.digest import JsonValue
from assay.domain.errors import InputError
from assay.domain.failure import Failure
from assay.domain.identifiers import RunId, TaskKey, TrialKey
from assay.domain.jobs import JobAnswer, JobRequest
from assay.domain.lifecycle import AssessmentState, Policy
from assay.domain.margins import Margin
from assay.domain.model import ModelSpec, Parameters
from assay.domain.review import Decision
from assay.domain.review_sample import ReviewRule
from assay.domain.suite import CandidateSpec, JudgeSpec, Rubric, SuiteCopy, Task

# Without these limits, a number such as 99,999,999,999 in the form made the planner use up all
# memory.
MAX_TRIALS: Final = 10_000
"""Maximum trials of one task in a run."""

MAX_PLANNED: Final = 2_000_000
"""Maximum trials of all tasks in a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Complete, fixed plan of a run: everything needed to execute it and to repeat it.

    Attributes:
        seed: run seed, 0 <= seed < 2**31.
        started: ISO 8601 time in UTC.
        environment: software versions and facts about the machine, by name.
        protocol: the review protocol, versioned.
        budget_usd: hard cap on the total cost of all calls of the run; None if there is no cap.
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
    def models(self) -> tuple[ModelSpec, ...]:
        candidates = [
            candidate.model
            for candidate in self.candidates
            if candidate.model and self.regrade_of is None
        ]
        structuring = [] if self.rubric.structuring is None else [self.rubric.structuring.model]
        users = [] if self.user is None else [self.user.model]
        return (*candidates, *users, *structuring, *(judge.model for judge in self.judges))

    @property
    def imported(self) -> bool:
        """True if the run was executed elsewhere and imported from a file, so it cannot be extended
        here.
        """
        # Before this check, resuming such a run asked no model, yet overwrote its failures and its
        # end time.
        return self.regrade_of is None and "imported" in self.environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A required assessment of a trial: the grader, and its candidate (None: all candidates
    together).

    Reruns and reviews concern one slot; each slot has its own attempts.
    """

    grader: str
    candidate: str | None
    by_model: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedTrial:
    """A trial claimed by this process, with its stored responses and assessments, so that no
    request is repeated.

    Attributes:
        k: number of the trial among the `of` trials of its task, counted from 1.
        responses: keyed by candidate; snippets are included.
        done: slots whose current assessment is stored.
        attempts: number of the latest attempt, for each slot that has one.
        graded: for each slot in `done`, the candidates that the current assessment grades.
        tries: number of earlier tries of this trial.
        rounds: number of answers so far by candidate, which varies the seed of the next request.
        spoken: replies so far of unfinished conversations, by candidate, including those of a
            simulated user.
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
    spoken: Mapping[str, tuple[Reply, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One stored call: the request and its outcome.

    Exactly one of `reply` and `failure` is set; both are set if a reply could not be parsed. `log`:
    additional output of a program, and its traceback. `job`: the batch request that this call
    answers.
    """

    request: ModelRequest
    reply: Reply | None
    failure: Failure | None
    number: int
    started: str
    log: str = ""
    job: JobAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAssessment:
    """A new assessment before it is stored, with its initial state under the review policy.

    If `attempt` is above 1, it replaces the slot's current assessment, which becomes `superseded`
    in the same commit.
    """

    slot: Slot
    attempt: int
    assessment: Assessment
    state: AssessmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A trial's progress, written to the store in one commit.

    Attributes:
        calls: calls made, in order.
        responses: new responses, each with the index in `calls` of the call that returned it (None:
            no call).
        assessments: new assessments, each with the index in `calls` of the call that returned it
            (None: no call).
        finished: True if the process releases the trial. The store then sets the trial's state from
            `failure`, or from its current assessments if `failure` is None.
        failure: why the trial failed; only with `finished`.
        rerun: the decision that requested these assessments; stored for each assessment that they
            replace.
        spare: how many assessment numbers to leave free after these, so that later planted checks
            are inconspicuous.
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

    def trial(
        self, run_id: RunId, k: int, *, responses: Mapping[str, Response] | None = None
    ) -> ClaimedTrial:
        """Return the k-th trial in its state before it is stored."""
        return ClaimedTrial(
            key=TrialKey(0),
            run_id=run_id,
            task_key=TaskKey(0),
            task=self.task,
            k=k,
            of=len(self.trials),
            responses={} if responses is None else responses,
            done=frozenset(),
        )


FirstRequests: TypeAlias = "Callable[[PlannedTask, int, TrialKey], Sequence[JobRequest]]"
"""Returns the requests in planned jobs that the k-th trial of a task waits for when it starts."""


def check_number_of_trials(where: str, wanted: int | None, *, least: int = 1) -> None:
    """Raise `InputError` if a requested number of trials is out of range; None is valid."""
    if wanted is not None and wanted < least:
        raise InputError(where, f"is {wanted}, and must be at least 1.")
    if wanted is not None and wanted > MAX_TRIALS:
        raise InputError(where, f"is {wanted:,}, and must be at most {MAX_TRIALS:,}.")


def within_bounds(planned: Iterable[PlannedTask], where: str) -> Iterator[PlannedTask]:
    """Yield the tasks and check the limits of a run; raises `InputError` at the first task beyond
    them.
    """
    # Tasks are counted one by one, so a task file that is too long is refused before the rest of it
    # is read.
    total = 0
    for place, planned_task in enumerate(planned, 1):
        of = planned_task.trials.stop - 1
        total += of
        if planned_task.trials and of > MAX_TRIALS:
            raise InputError(
                where,
                f"would give task {planned_task.task.id!r} {of:,} trials, but the limit is {MAX_TRIALS:,}.",
                remedy="Request fewer trials.",
            )
        if planned_task.trials and total > MAX_PLANNED:
            raise InputError(
                where,
                f"would create {total:,} trials for the first {place:,} tasks, but a run may have at most {MAX_PLANNED:,}.",
                remedy="Request fewer trials per task, or fewer tasks.",
            )
        yield planned_task


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """User options that override the suite; None keeps the suite's value.

    Attributes:
        trials: N for every task.
        candidates: only these candidates, in the suite's order; empty for all.
        judges: judges to use instead of the suite's.
        limit: run only this number of tasks from the start of the suite; None for all.
        review: the rule for which grades a person must review.
    """

    trials: int | None = None
    candidates: tuple[CandidateSpec, ...] = ()
    judges: tuple[JudgeSpec, ...] | None = None
    concurrency: int = 5
    benchmark: bool = False
    batch_id: str | None = None
    budget_usd: float | None = None
    limit: int | None = None
    margin: Margin | None = None
    review: ReviewRule | None = None
    environment: Mapping[str, JsonValue] = field(default_factory=dict)
