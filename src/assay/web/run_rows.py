"""Documents about runs, for the pages and the API."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

from assay.app.review import decisions
from assay.app.review.review_documents import ApprovalsDocument, approvals_document
from assay.app.runs import control
from assay.app.runs.counts import trial_counts
from assay.app.runs.push import finished_runs
from assay.app.runs.run_documents import TokensDocument, tokens_document
from assay.app.runs.scenario_runs import outcomes
from assay.app.statistics.results import wording
from assay.app.wire import ABSENT, Absent, Json, document, inlined, optional
from assay.domain.identifiers import RunId, shown_assessment, shown_trial
from assay.domain.lifecycle import COUNTS, AssessmentState, RunState, TrialState
from assay.domain.selection import AssessmentRow, RunSummary, Selection, TrialRow
from assay.domain.specialists import specialist_of
from assay.domain.suite import PERSON
from assay.scoring.workspace_grader import EVALUATORS
from assay.web.safe_text import visible
from assay.web.texts import WORDS

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.digest import JsonValue
    from assay.domain.errors import AssayError
    from assay.domain.review import Approvals
    from assay.web.jobs.runs import Runner

DRAWN: Final = ("approved", "corrected", "not_required", "exempt", "rejected", "failed", "pending")
"""States that the bar of a run shows; the rest of the bar is empty."""

SUCCESS: Final = 0.7
"""Minimum weighted score at which an agent's run counts as successful, if its harness did not
report success or failure.
"""

_CORRECTED_ARE: Final = {"graded": "graded", "either": "corrected_or_graded"}

DECIDED: Final = (AssessmentState.APPROVED, AssessmentState.CORRECTED, AssessmentState.REJECTED)


@document
class TrialUnderWayDocument:
    """The trial that a run is executing now."""

    task: str
    thing: str
    k: int
    of: int


@document
class RunRowDocument:
    """A run in a list.

    `approvals` counts its grades that people approved or corrected. `shares` are the lengths of its
    bar's parts, in percent of all planned assessments.
    """

    id: str
    suite: str
    state: str
    started: str
    finished: str | None
    batch_id: str | None
    trials: dict[str, int]
    assessments: dict[str, int]
    approvals: ApprovalsDocument
    judged: int
    waiting: int
    decided: int
    corrected_are: str
    failed: int
    shares: tuple[tuple[str, float], ...]
    cost_usd: float | None
    unpriced_calls: int
    tokens: TokensDocument
    under_way: TrialUnderWayDocument | None
    left_s: float | None
    moves: tuple[str, ...]
    imported: bool
    model: str | None
    not_graded: int
    error: str | None
    started_from: str | None


@document
class ListedRunDocument:
    """A run in the API's list."""

    row: RunRowDocument = inlined()
    run_id: str


@document
class RunListDocument:
    """Runs, newest first."""

    runs: tuple[ListedRunDocument, ...]


@document
class AtProviderDocument:
    """Trials that wait for a batch: their number, the provider's host, and the start in UTC and id
    of the oldest batch.
    """

    n: int
    place: str
    since: str
    job: str


@document
class LiveRunDocument(RunRowDocument):
    """A run as the list of runs and its own page show it.

    `ending` is true while calls of a cancelled run are in progress. `tally` counts assessments by
    state, and trials without assessments, in drawing order; `tally_words` has the texts to show.
    `verdict` is null until it is computed. `action` is the next step: `review`, `retry`, `resume`,
    `results` or `open`.
    """

    candidates: tuple[str, ...]
    ending: bool
    at_provider: AtProviderDocument | None
    tally: tuple[tuple[str, int], ...]
    tally_words: tuple[tuple[str, str], ...]
    verdict: str | None
    action: str


@document
class AgentRunDocument:
    """A run that also has the field names of agent harnesses.

    For an agent's run, `totalScore` is Σ(score · weight) over its evaluators, and `weightedScore`
    the score of the trial in the statistics. Both are null until every grade is decided, and so is
    `isSuccessful`.
    """

    row: RunRowDocument = inlined()
    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    runId: str
    batchId: str | None
    status: str
    startedAt: str
    completedAt: str | None
    scenario: Json | Absent = optional()
    tier: Json | Absent = optional()
    agent: Json | Absent = optional()
    specialistEnabled: Json | Absent = optional()
    specialistName: Json | Absent = optional()
    specialistVersion: Json | Absent = optional()
    metadata: Json | Absent = optional()
    totalScore: float | None | Absent = optional()
    weightedScore: float | None | Absent = optional()
    isSuccessful: bool | None | Absent = optional()


@document
class ListedAssessmentDocument:
    """One assessment of a run; judge and scores are null while it is pending."""

    id: str
    trial_id: str
    task: str
    thing: str
    trial: int
    trials: int
    attempt: int
    state: str
    judge: str | None
    scores: Mapping[str, float | None] | None
    flags: int | None
    evaluatorName: str | None
    score: float | None
    maxScore: float
    weight: float | None


@document
class TelemetryDocument:
    """Total usage of some runs; fields that were not measured are null."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    unpriced_calls: int
    tokensIn: int
    tokensOut: int
    costUsd: float | None
    durationMs: float | None
    toolCalls: int | None


@document
class RunWithEvaluationsDocument:
    """A run with its evaluations and telemetry; `agentRuns` has each graded trial of an agent as
    `POST /api/runs` receives it.
    """

    run: AgentRunDocument
    evaluations: tuple[ListedAssessmentDocument, ...]
    telemetry: TelemetryDocument
    agentRuns: tuple[Json, ...]
    next: str | None


@document
class MatrixCellDocument:
    """One trial of a task; `score` is the mean of its scores that count, or null if none counts."""

    id: str
    k: int
    state: str
    score: float | None


@document
class MatrixRowDocument:
    """One task with its trials."""

    task: str
    thing: str
    of: int
    cells: tuple[MatrixCellDocument, ...]


def run_row(
    summary: RunSummary,
    given: Approvals,
    *,
    now: str | None = None,
    under_way: TrialRow | None = None,
    failed: TrialRow | None = None,
    trouble: AssayError | None = None,
) -> RunRowDocument:
    """Return the row of a run in a list.

    `given`: number of its approvals. `now`: current time for estimating the time left; None omits
    the estimate. `trouble`: the error that ended the run.
    """
    trials = trial_counts(summary)
    counts = {str(state): summary.assessments.get(state, 0) for state in AssessmentState}
    # Imports of one suite look alike in a list, so their model is named.
    named = summary.imported and len(summary.candidates) == 1
    return RunRowDocument(
        id=summary.id,
        suite=summary.suite,
        state=summary.state,
        started=summary.started,
        finished=summary.finished,
        batch_id=summary.batch_id,
        trials=trials,
        assessments=counts,
        approvals=approvals_document(given),
        judged=trials["done"],
        waiting=counts["pending"],
        decided=sum(counts[state] for state in DECIDED),
        corrected_are=_corrected_are(summary.judges),
        failed=trials["failed"],
        shares=tuple(_shares(_tally(summary, trials))),
        cost_usd=summary.cost_usd,
        unpriced_calls=summary.unpriced_calls,
        tokens=tokens_document(summary),
        under_way=None
        if under_way is None
        else TrialUnderWayDocument(
            task=under_way.task, thing=under_way.thing, k=under_way.k, of=under_way.of
        ),
        left_s=_left_s(summary, trials, now),
        moves=tuple(control.moves(summary)),
        imported=summary.imported,
        model=visible(summary.candidates[0]) if named else None,
        not_graded=summary.not_graded,
        error=_error(failed, trouble),
        started_from=summary.started_from,
    )


def approvals_of_runs(
    workspace: Workspace, summaries: Iterable[RunSummary]
) -> dict[RunId, Approvals]:
    """Count the approvals of runs, for all rows of a list at once."""
    return workspace.archive.scores.approvals_by_run([summary.id for summary in summaries])


def _corrected_are(judges: Collection[str]) -> str:
    """Return the meaning of `corrected` in a run: `graded` if only people grade, `either` if judges
    and people grade.
    """
    if PERSON not in judges:
        return "corrected"
    return "graded" if set(judges) == {PERSON} else "either"


def looked_at(
    workspace: Workspace,
    summary: RunSummary,
    given: Approvals,
    runner: Runner | None = None,
    *,
    verdict: str | None = None,
) -> LiveRunDocument:
    """Return the row of a run with its current trial; the cost does not depend on the size of the
    run.
    """
    under_way = failed = None
    if summary.state is RunState.RUNNING or summary.trials.get(TrialState.FAILED):
        under_way, failed = workspace.archive.trials.under_way(summary.id)
    row = run_row(
        summary,
        given,
        now=workspace.clock.now(),
        under_way=under_way if summary.state is RunState.RUNNING else None,
        failed=failed,
        trouble=None if runner is None else runner.trouble(summary.id),
    )
    # A cancelled run is not ended while calls are still in progress.
    at_work = summary.state is RunState.CANCELLED and summary.trials.get(TrialState.RUNNING)
    ending = bool(at_work) and workspace.journal.is_carried_out(summary.id)
    return LiveRunDocument(
        id=row.id,
        suite=row.suite,
        state=row.state,
        started=row.started,
        batch_id=row.batch_id,
        trials=row.trials,
        assessments=row.assessments,
        approvals=row.approvals,
        judged=row.judged,
        waiting=row.waiting,
        decided=row.decided,
        corrected_are=row.corrected_are,
        failed=row.failed,
        shares=row.shares,
        cost_usd=row.cost_usd,
        unpriced_calls=row.unpriced_calls,
        tokens=row.tokens,
        under_way=row.under_way,
        left_s=row.left_s,
        moves=row.moves,
        imported=row.imported,
        model=row.model,
        not_graded=row.not_graded,
        error=row.error,
        started_from=row.started_from,
        candidates=summary.candidates,
        ending=ending,
        at_provider=_at_provider(workspace, summary),
        finished=None if ending else row.finished,
        tally=tuple(_tally(summary, row.trials)),
        tally_words=tuple(_tally_words(_tally(summary, row.trials), given, row.corrected_are)),
        verdict=None if verdict is None else visible(verdict),
        action=_action(summary, row),
    )


def _at_provider(workspace: Workspace, summary: RunSummary) -> AtProviderDocument | None:
    n = summary.trials.get(TrialState.SUBMITTED, 0)
    jobs = workspace.jobs.of_runs([summary.id], only_open=True) if n else ()
    if not jobs:
        return None
    job = jobs[0]
    since = (job.sent or job.created)[:16].replace("T", " ") + " UTC"
    return AtProviderDocument(n=n, place=job.place, since=since, job=job.remote_id or job.token)


def _action(summary: RunSummary, row: RunRowDocument) -> str:
    if row.waiting:
        return "review"
    if control.RESUME in row.moves and summary.state is not RunState.CANCELLED:
        return "retry" if summary.state is RunState.FINISHED else "resume"
    return "results" if any(summary.assessments.get(state) for state in COUNTS) else "open"


def _error(failed: TrialRow | None, trouble: AssayError | None) -> str | None:
    """Return the error that stopped the run, otherwise the failure of a trial, as one short line;
    None if there is neither.
    """
    if trouble is not None:
        return shortened(f"{trouble.problem} {trouble.remedy}".strip())
    if failed is not None and failed.failure is not None:
        return shortened(f"{failed.failure.kind}: {failed.failure.detail}")
    return None


def shortened(text: str, most: int = 160) -> str:
    """Return the text on one line, cut to `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def run_document(
    workspace: Workspace, summary: RunSummary, *, limit: int, after: str | None
) -> RunWithEvaluationsDocument:
    """Return a run for other programs.

    A pending assessment has no scores, so that no program can count them.
    """
    start = decisions.assessment_key(after) if after else None
    rows = list(
        decisions.assessments(
            workspace.store, Selection(runs=(summary.id,)), after=start, limit=limit
        )
    )
    plan = workspace.journal.plan_of(summary.id)
    stored = plan.environment.get("agent_run")
    agent_run: Mapping[str, JsonValue] = stored if isinstance(stored, dict) else {}
    return RunWithEvaluationsDocument(
        run=_agent_run(workspace, summary, rows, agent_run),
        evaluations=tuple(entry for row in rows for entry in _evaluations(row)),
        telemetry=telemetry([summary], agent_run.get("telemetry")),
        agentRuns=tuple(agent_runs(workspace, summary)[:limit]),
        next=f"/api/runs/{summary.id}?after=a{rows[-1].key}" if len(rows) == limit else None,
    )


def agent_runs(workspace: Workspace, summary: RunSummary) -> list[dict[str, Any]]:
    """Return the graded trials of a run on scenarios as `POST /api/runs` receives them; empty for
    any other run.
    """
    return finished_runs(
        summary, () if summary.imported else outcomes(workspace.store, RunId(summary.id))
    )


def telemetry(summaries: Sequence[RunSummary], stated: object = None) -> TelemetryDocument:
    """Sum the usage of runs.

    `stated` contains the harness's own figures, for values that Assay did not measure.
    """
    costs = [summary.cost_usd for summary in summaries if summary.cost_usd is not None]
    # If one cost is unknown, the total is unknown: a partial sum would be too low.
    cost = sum(costs) if len(costs) == len(summaries) else None
    input_tokens = sum(summary.input_tokens for summary in summaries)
    output_tokens = sum(summary.output_tokens for summary in summaries)
    own: Mapping[str, Any] = stated if isinstance(stated, dict) else {}
    seconds = [spent for summary in summaries if (spent := _seconds(summary)) is not None]
    measured_ms = round(1000 * sum(seconds)) if len(seconds) == len(summaries) else None
    return TelemetryDocument(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_usd=cost,
        unpriced_calls=sum(summary.unpriced_calls for summary in summaries),
        tokensIn=input_tokens,
        tokensOut=output_tokens,
        costUsd=cost,
        durationMs=own.get("durationMs", own.get("duration_ms")) or measured_ms,
        toolCalls=own.get("toolCalls", own.get("tool_calls")),
    )


def _seconds(summary: RunSummary) -> float | None:
    """Return the seconds from a run's start to its end; None while it has not ended."""
    if summary.finished is None:
        return None
    return (
        datetime.fromisoformat(summary.finished) - datetime.fromisoformat(summary.started)
    ).total_seconds()


def _agent_run(
    workspace: Workspace,
    summary: RunSummary,
    rows: Sequence[AssessmentRow],
    agent_run: Mapping[str, JsonValue],
) -> AgentRunDocument:
    """Return a run with the field names of agent harnesses; `agent_run` is the harness's own data,
    empty for any other run.
    """
    row = run_row(summary, approvals_of_runs(workspace, [summary])[summary.id])
    known = bool(agent_run)
    specialist = (
        specialist_of(workspace.journal.plan_of(summary.id).candidates[0]) if known else None
    )
    totals = _totals(summary, rows, agent_run)
    model = agent_run.get("model")
    if known:
        row = replace(row, model=model if isinstance(model, str) else None)
    return AgentRunDocument(
        row=row,
        candidates=summary.candidates,
        judges=summary.judges,
        runId=summary.id,
        batchId=summary.batch_id,
        status=summary.state,
        startedAt=summary.started,
        completedAt=summary.finished,
        scenario=agent_run.get("scenario") if known else ABSENT,
        tier=agent_run.get("tier") if known else ABSENT,
        agent=agent_run.get("agent") if known else ABSENT,
        specialistEnabled=specialist is not None if known else ABSENT,
        specialistName=specialist and specialist.name if known else ABSENT,
        specialistVersion=specialist and specialist.version if known else ABSENT,
        metadata=agent_run.get("metadata") if known else ABSENT,
        totalScore=totals.total if known else ABSENT,
        weightedScore=totals.weighted if known else ABSENT,
        isSuccessful=totals.is_successful if known else ABSENT,
    )


@dataclass(frozen=True, slots=True)
class _Totals:
    """Totals of an agent's run; None while a grade of it is pending, or if none counts."""

    total: float | None = None
    weighted: float | None = None
    is_successful: bool | None = None


def _totals(
    summary: RunSummary, rows: Sequence[AssessmentRow], agent_run: Mapping[str, JsonValue]
) -> _Totals:
    counted = [row.assessment for row in rows if row.state in COUNTS]
    scores = [score for part in counted for score in part.scores.values()]
    if not scores or None in scores or summary.assessments.get(AssessmentState.PENDING):
        return _Totals()
    weighted = mean(score or 0.0 for score in scores)
    stated = agent_run.get("isSuccessful", agent_run.get("is_successful"))
    return _Totals(
        total=sum(
            part.weights.get(grade.criterion, 1.0) * (grade.score or 0.0)
            for part in counted
            for grade in part.grades
        ),
        weighted=weighted,
        is_successful=stated if isinstance(stated, bool) else weighted >= SUCCESS,
    )


def _evaluations(row: AssessmentRow) -> list[ListedAssessmentDocument]:
    """Return an assessment as entries: one per criterion for an agent's evaluators, otherwise a
    single entry.
    """
    assessment = (
        None
        if row.state in {AssessmentState.PENDING, AssessmentState.SUPERSEDED}
        else row.assessment
    )
    scores = {} if assessment is None else assessment.scores
    whole = ListedAssessmentDocument(
        id=shown_assessment(row.key),
        trial_id=shown_trial(row.trial),
        task=row.task,
        thing=row.thing,
        trial=row.k,
        trials=row.of,
        attempt=row.attempt,
        state=row.state,
        judge=row.grader,
        scores=None if assessment is None else scores,
        flags=None if assessment is None else len(assessment.flags),
        evaluatorName=row.grader,
        score=next(iter(scores.values())) if len(scores) == 1 else None,
        maxScore=1.0,
        weight=None,
    )
    if assessment is None or row.grader != EVALUATORS:
        return [whole]
    return [
        replace(
            whole,
            evaluatorName=grade.criterion,
            score=grade.score,
            weight=assessment.weights.get(grade.criterion),
        )
        for grade in assessment.grades
    ]


def matrix(
    trials: Iterable[TrialRow], *, not_graded: bool = False
) -> tuple[MatrixRowDocument, ...]:
    """Arrange trials in plan order as one row per task; `not_graded`: the answers have no grades,
    so no trial awaits review.
    """
    first: dict[str, TrialRow] = {}
    cells: dict[str, list[MatrixCellDocument]] = {}
    for trial in trials:
        state = str(trial.state)
        if not_graded and trial.state is TrialState.NEEDS_REVIEW:
            state = "not_graded"
        first.setdefault(trial.task, trial)
        cell = MatrixCellDocument(id=shown_trial(trial.key), k=trial.k, state=state, score=None)
        cells.setdefault(trial.task, []).append(cell)
    return tuple(
        MatrixRowDocument(task=trial.task, thing=trial.thing, of=trial.of, cells=tuple(cells[task]))
        for task, trial in first.items()
    )


def _tally(summary: RunSummary, trials: dict[str, int]) -> list[tuple[str, int]]:
    """Count a run's current assessments by state, and its trials without assessments: failed, not
    graded or planned.
    """
    counts = {str(state): summary.assessments.get(state, 0) for state in AssessmentState}
    counts["failed"], counts["not_graded"] = trials["failed"], summary.not_graded
    counts["planned"] = trials["total"] - trials["done"] - trials["failed"]
    order = (
        "approved",
        "corrected",
        "not_required",
        "exempt",
        "rejected",
        "failed",
        "pending",
        "left_out",
    )
    return [
        (state, counts[state]) for state in (*order, "not_graded", "planned") if counts.get(state)
    ]


def _tally_words(
    tally: list[tuple[str, int]], given: Approvals, corrected_are: str
) -> Iterator[tuple[str, str]]:
    """Yield the texts of a tally.

    People's grades are stated together, by how their decisions came about.
    """
    if given.total:
        yield "approved", wording.approvals(given)
    numbers = dict(tally)
    # Grades that people gave before an import have the state of a rule's grades.
    imported_grades = given.total - numbers.pop("approved", 0) - numbers.get("corrected", 0)
    numbers["not_required"] = numbers.get("not_required", 0) - imported_grades
    for state, n in numbers.items():
        name = _CORRECTED_ARE.get(corrected_are, state) if state == "corrected" else state
        if n > 0:
            yield state, WORDS["tally"][name].format(n=f"{n:,}")


def _shares(tally: list[tuple[str, int]]) -> list[tuple[str, float]]:
    """Return the length of each state's segment of the bar, in percent and in drawing order."""
    total = sum(n for _, n in tally)
    return [(state, round(100 * n / total, 2)) for state, n in tally if state in DRAWN]


def _left_s(summary: RunSummary, trials: dict[str, int], now: str | None) -> float | None:
    """Estimate the seconds until a running run ends, from its pace since its last start; None if
    unknown.
    """
    left = trials["total"] - trials["done"] - trials["failed"]
    # The time while the run was stopped must not count.
    done = trials["total"] - left - summary.done_before
    if (
        now is None
        or summary.since is None
        or summary.state is not RunState.RUNNING
        or done < 3
        or left <= 0
    ):
        return None
    spent = (datetime.fromisoformat(now) - datetime.fromisoformat(summary.since)).total_seconds()
    return round(spent / done * left, 1) if spent > 0 else None
