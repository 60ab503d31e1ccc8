"""Filters for results, and the rows that queries return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.domain.assessment import Assessment, Response
from assay.domain.calls import Role
from assay.domain.digest import JsonValue
from assay.domain.failure import BUDGET, Failure, Fault, is_fatal
from assay.domain.identifiers import AssessmentKey, RunId, TrialKey, shown_assessment
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState, RunState, TrialState
from assay.domain.one_or_many import OneOrMany, identifiers
from assay.domain.review import Approvals, ReviewEvent
from assay.domain.suite import Task


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Selection:
    """Filters for results; a row must match at least one value of each filter that is not empty.

    Each filter takes one name or an iterable of names: `Selection(runs="r1", tags=["easy",
    "short"])`.

    `family_by` is not a filter: it derives the families of tasks from tags or metadata
    (`domain.family_rule`). `compared` is for internal use: it keeps only runs of these candidates,
    in suites that all of them have run.

    A result reads the newest run that matches, unless `runs` or `batch_ids` name others or
    `all_runs` pools every matching run (`app.statistics.run_choice`). `pool_anyway` allows a
    labelled verdict on runs that differ in their scorer, rubric, judge, prompt or tasks. The
    queries of the store read every matching run and ignore both.
    """

    runs: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    batch_ids: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    family_by: str = ""
    all_runs: bool = False
    pool_anyway: bool = False

    def __init__(
        self,
        *,
        runs: OneOrMany = (),
        suites: OneOrMany = (),
        batch_ids: OneOrMany = (),
        tasks: OneOrMany = (),
        tags: OneOrMany = (),
        languages: OneOrMany = (),
        criteria: OneOrMany = (),
        judges: OneOrMany = (),
        compared: OneOrMany = (),
        family_by: str = "",
        all_runs: bool = False,
        pool_anyway: bool = False,
    ) -> None:
        # A frozen record assigns its fields this way. A tuple of characters was once the filter of
        # `Selection(runs="r1")`.
        assign = object.__setattr__
        assign(self, "runs", identifiers(runs, argument="runs"))
        assign(self, "suites", identifiers(suites, argument="suites"))
        assign(self, "batch_ids", identifiers(batch_ids, argument="batch_ids"))
        assign(self, "tasks", identifiers(tasks, argument="tasks"))
        assign(self, "tags", identifiers(tags, argument="tags"))
        assign(self, "languages", identifiers(languages, argument="languages"))
        assign(self, "criteria", identifiers(criteria, argument="criteria"))
        assign(self, "judges", identifiers(judges, argument="judges"))
        assign(self, "compared", identifiers(compared, argument="compared"))
        assign(self, "family_by", family_by)
        assign(self, "all_runs", all_runs)
        assign(self, "pool_anyway", pool_anyway)

    def filters(self) -> dict[str, tuple[str, ...]]:
        """Return the filters that are not empty, by name."""
        named = {
            "runs": self.runs,
            "suites": self.suites,
            "batch_ids": self.batch_ids,
            "tasks": self.tasks,
            "tags": self.tags,
            "languages": self.languages,
            "criteria": self.criteria,
            "judges": self.judges,
            "family_by": (self.family_by,) if self.family_by else (),
        }
        return {name: values for name, values in named.items() if values}


class StartedFrom(StrEnum):
    """Source of an imported run's start time: stated in the file, or the date of the file
    itself.
    """

    FILE = "file"
    FILE_DATE = "file_mtime"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run in a list, with its trials and current assessments counted by state.

    Attributes:
        imported: True if it was executed elsewhere and imported from a file.
        since: for a running run, when it last started or resumed. `done_before`: trials done or
            failed by then.
        booked_usd: amount that counts toward `budget_usd`, including the worst case for calls of
            unknown cost.
        started_from: source of `started` for an imported run; None if Assay's own clock measured
            it.
        criteria: names of the criteria that grades are about, or that a judge of the run will
            grade.
    """

    id: RunId
    suite: str
    state: RunState
    started: str
    finished: str | None
    batch_id: str | None
    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    trials: Mapping[TrialState, int]
    assessments: Mapping[AssessmentState, int]
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    unpriced_calls: int
    since: str | None = None
    done_before: int = 0
    imported: bool = False
    budget_usd: float | None = None
    booked_usd: float = 0.0
    started_from: StartedFrom | None = None
    criteria: frozenset[str] = frozenset()

    @property
    def not_graded(self) -> int:
        """Number of trials with answers that were never graded, such as imported answers."""
        # Ungraded answers have the same state as trials in review; without this, lists counted them
        # as awaiting review.
        waits = self.assessments.get(AssessmentState.PENDING)
        return 0 if waits else self.trials.get(TrialState.NEEDS_REVIEW, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCount:
    """Number of a run's trials that met one failure.

    `model`: whose call failed; empty if the trial failed.

    A trial that failed has ended. A trial whose call failed is still pending, because the run
    paused itself.
    """

    kind: str
    fault: Fault
    detail: str
    trials: int
    model: str = ""

    @property
    def pauses(self) -> bool:
        """True if a run pauses itself because of this failure.

        A server that only asks for patience has the fault `provider`.
        """
        no_quota = self.kind == "http_429" and self.fault is Fault.HARNESS
        return self.kind == BUDGET or is_fatal(self.kind) or no_quota


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """Totals of the selected runs by state.

    `going_on`: True if a run is unfinished, so that the totals may still grow.
    """

    runs: int
    trials: int
    assessments: Mapping[AssessmentState, int]
    going_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnOrder:
    """A run whose items are reviewed in random order, with the seed for that order."""

    run: RunId
    suite: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessmentRow:
    """One stored assessment with its run, task and trial. Scores and grades include corrections."""

    key: AssessmentKey
    trial: TrialKey
    run_id: RunId
    suite: str
    task: str
    thing: str
    k: int
    of: int
    attempt: int
    state: AssessmentState
    grader: str
    by_model: bool
    candidate: str | None
    candidates: tuple[str, ...]
    assessment: Assessment
    current: bool
    purpose: AssessmentPurpose = AssessmentPurpose.WORK

    @property
    def id(self) -> str:
        """Id for commands and `assay.review`, such as `a17`."""
        return shown_assessment(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessmentDetail:
    """An assessment for review: the row, the judge's own grades, responses, other attempts and past
    decisions.
    """

    row: AssessmentRow
    judged: Assessment
    task: Task
    responses: tuple[Response, ...]
    attempts: tuple[AssessmentKey, ...]
    events: tuple[ReviewEvent, ...]
    call: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialMark:
    """One trial of a task, with one grader's current assessment of it."""

    k: int
    state: TrialState
    assessment: AssessmentKey | None
    assessment_state: AssessmentState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A trial in a list; `failure` is set only if it failed."""

    key: TrialKey
    run_id: RunId
    suite: str
    task: str
    thing: str
    k: int
    of: int
    state: TrialState
    failure: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """Numbers of trials without a counted grade, by reason; `superseded` counts attempts instead of
    trials.

    Attributes:
        not_graded: trials with answers that nobody graded or was asked to grade; not included in
            `pending`.
        partly: trials with both counted and pending grades; not included in any other number.
        left_out: trials that were not drawn for the review sample, so nobody is asked to review
            them.
        not_started: trials that no process works on yet; included in `pending`.
        under_way: trials that are being carried out or wait at a provider; included in `pending`.
    """

    pending: int
    rejected: int
    failed: int
    superseded: int
    not_graded: int = 0
    partly: int = 0
    left_out: int = 0
    not_started: int = 0
    under_way: int = 0

    @property
    def awaiting_review(self) -> int:
        """Number of trials that a person can review now."""
        return self.pending - self.not_started - self.under_way


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedGrades:
    """A run's trials whose grades are replaced by those of newer runs.

    `newer`: the newer runs. `approvals` counts the replaced grades that people had approved.
    `references`: True if one of the newer runs contains people's reference grades from the imported
    data.
    """

    run: RunId
    newer: tuple[RunId, ...]
    trials: int
    approvals: Approvals = field(default_factory=Approvals)
    references: bool = False


class NotCounted(StrEnum):
    """Reasons in exports why a score does not count."""

    PENDING = "waits for a person"
    REJECTED = "rejected"
    SUPERSEDED = "a rerun took its place"
    NO_SCORE = "no score"
    GRADED_ANEW = "graded again in a newer run"
    LEFT_OUT = "left out of the review sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One candidate's score in one assessment, as a row of a table.

    Attributes:
        task: a name that is unique among the tasks: the id, followed by the suite or digest if two
            tasks share the id.
        k: repetition of the task within its run.
        trial: like `k`, but numbered across runs that share the task, so equal (task, trial) means
            the same trial.
        score: between 0 and 1; None only if it does not count.
        criterion: the requested criterion; empty for the overall score.
        not_counted: why the score does not count; None if it counts.
    """

    assessment: AssessmentKey
    run_id: RunId
    suite: str
    task: str
    task_id: str
    thing: str
    weight: float
    candidate: str
    k: int
    trial: int
    attempt: int
    score: float | None
    criterion: str
    judge: str
    by_model: bool
    state: AssessmentState
    joint: bool
    family: str
    not_counted: NotCounted | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsOfTrial:
    """Calls of one trial in one role.

    `candidate` and `grader` are None for calls that concern more than one; an amount is None if one
    of the calls lacks it.
    """

    trial: TrialKey
    role: Role
    candidate: str | None
    grader: str | None
    calls: int
    seconds: float
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotals:
    """Totals of a run's calls to one candidate's or judge's model.

    Attributes:
        role: `candidate` or `judge`.
        model_version: as the endpoint reported it; None if it reported none or did not answer.
        failed: number of calls without a usable answer; each retry counts as a call.
        cost_usd: None if no call has a price.
        latency_s: sum over all calls; None if no call was timed.
        first, last: start times of the first and the last call.
    """

    role: str
    name: str
    model: str
    model_version: str | None
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    latency_s: float | None
    first: str
    last: str
