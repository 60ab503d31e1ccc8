"""Grade the stored responses of a run again in a new run. Unchanged grades keep their review."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

from assay.analysis.references import judges_against_references
from assay.analysis.tables import score_table
from assay.app.calibration_status import check_demands
from assay.app.environment import surroundings
from assay.app.review.carry_over import Graders, gradings, keep_reviews, places
from assay.app.runs import execution, preflight
from assay.app.runs.cost_estimate import check_cap, over_budget
from assay.app.suites import default_rubric
from assay.domain.answer_rows import AnswerColumn
from assay.domain.assessment import Response
from assay.domain.errors import InputError, Refused
from assay.domain.events import nobody
from assay.domain.lifecycle import TO_COME
from assay.domain.protocol import PLAIN
from assay.domain.run import PlannedTask, RunOptions, check_number_of_trials
from assay.domain.run_removal import check_in_use
from assay.domain.selection import Selection
from assay.domain.suite import PERSON, JudgeMode, JudgeSpec, Scoring
from assay.engine.planning import planned_run, run_id, with_review
from assay.report import wording
from assay.scoring.rubrics import QUALITY
from assay.scoring.scorers import JUDGED, MATH, SCORERS, option_problems, reference_problems
from assay.statistics.comparisons import compare

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from assay.analysis.references import JudgeAgainstReferences
    from assay.app.results_folder import ProjectingDecisions
    from assay.app.runs.run_request import RegradeRequest
    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.domain.events import Listener
    from assay.domain.identifiers import AssessmentKey, RunId
    from assay.domain.lifecycle import AssessmentState
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary
    from assay.domain.suite import Rubric, Suite, Task
    from assay.engine.estimate import CostEstimate
    from assay.statistics.comparisons import Comparison
    from assay.store.opening import Store


MAX_GRADINGS: Final = 20
"""Maximum number of times that a judge grades an answer."""

_PORTION: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeChange:
    """One candidate's score in one trial, in the old and the new run; None if the run has no such
    score.
    """

    assessment: AssessmentKey
    task: str
    thing: str
    k: int
    candidate: str
    grader_before: str
    grader_after: str
    before: float | None
    after: float | None
    state: AssessmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Comparison of two candidates, once in the old and once in the new run, over each run's
    counted trials.
    """

    before: Comparison
    after: Comparison

    @property
    def changed(self) -> bool:
        """True if the decision or the leading candidate changed."""
        return (self.before.decision, _ahead(self.before)) != (
            self.after.decision,
            _ahead(self.after),
        )

    @property
    def verdicts(self) -> tuple[str, str]:
        return wording.verdict(self.before), wording.verdict(self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regraded:
    """Result of a regrade.

    Attributes:
        changed: changed scores, in the order of the new run's assessments.
        unchanged: number of scores that stayed the same.
        kept_reviews: number of assessments that kept their review.
        conclusions: comparison of each pair of candidates.
        agreement: each judge's agreement with imported human grades, which `changed` does not
            include.
        notes: a sentence for each reason why tasks were left out.
    """

    result: execution.RunResult
    origin: RunId
    changed: tuple[GradeChange, ...]
    unchanged: int
    kept_reviews: int
    conclusions: tuple[Conclusion, ...]
    agreement: tuple[JudgeAgainstReferences, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegradePlan:
    """A planned regrade: the new run, its tasks, and the estimated cost of judging."""

    plan: RunPlan
    tasks: tuple[PlannedTask, ...]
    notes: tuple[str, ...]
    estimate: CostEstimate


def planned(
    workspace: Workspace,
    run: str,
    request: RegradeRequest,
    *,
    rubric: Rubric | None = None,
    budget_usd: float | None = None,
) -> RegradePlan:
    """Plan a regrade, without calling a model or storing anything.

    Args:
        run: id or unique prefix of the run to regrade.
        rubric: rubric that replaces the run's rubric.
        budget_usd: maximum cost of judging, in US dollars; None for the settings' budget.

    Raises UnknownName for an unknown run, and Refused if the run has unfinished trials. Raises
    InputError for a judge if rules score every task, for a task whose prompt changed, or for a run
    without responses to grade.
    """
    cap = workspace.settings.cap_usd(budget_usd)
    (summary,) = workspace.archive.runs.matching(Selection(runs=(run,)))
    check_in_use(summary.id, summary.state)
    unfinished = sum(summary.trials.get(state, 0) for state in TO_COME)
    if unfinished:
        raise Refused(
            summary.id, f"has {unfinished} unfinished trials.", remedy=f"assay resume {summary.id}"
        )
    old = workspace.journal.plan_of(summary.id)
    notes: list[str] = []
    if request.suite is None:
        tasks = tuple(planned_task for planned_task, _ in workspace.journal.tasks_of(old.id))
        plan = replace(
            old, judges=_judges(workspace.settings, old, tasks, request.judge), margin=old.margin
        )
        if old.imported or not old.judges:
            plan = _first_graded(plan, tasks, notes, default_rubric(workspace.settings) or QUALITY)
    else:
        loaded = preflight.load(workspace.settings, request.suite, judge=request.judge)
        tasks = tuple(_matched(workspace.store, old, loaded, notes))
        plan = _by_suite(old, loaded)
    plan = plan if rubric is None else replace(plan, rubric=rubric)
    plan = replace(plan, judges=_repeated(plan.judges, request.gradings))
    tasks = tasks if request.score is None else tuple(_scored_by(request.score, tasks, notes))
    review = request.review
    if review is None and request.suite is None:
        review = plan.rubric.review
    if review is not None:
        plan = replace(plan, policy=review.policy, protocol=with_review(plan.protocol, review))
    if not tasks:
        raise InputError(
            summary.id, "no task is left to grade.", remedy="Tasks are matched by their id."
        )
    started = workspace.clock.now()
    plan = replace(
        plan,
        id=run_id(old.suite, started, workspace.nonce()),
        started=started,
        seed=workspace.seed() if old.parameters.seed is None else old.parameters.seed,
        budget_usd=cap,
        regrade_of=old.id,
    )
    preflight.check_providers(workspace.settings, workspace.directory, plan)
    check_demands(workspace.store, plan)
    plan = replace(plan, environment=surroundings(workspace, plan))
    held = _held(workspace.store, summary, plan, tasks) if old.imported else None
    estimate = preflight.estimate_of_judging(workspace.directory, plan, tasks, held=held)
    check_cap(estimate, cap)
    notes.extend(over_budget(estimate, cap))
    return RegradePlan(plan=plan, tasks=tasks, notes=tuple(notes), estimate=estimate)


def _scored_by(
    method: str, tasks: Sequence[PlannedTask], notes: list[str]
) -> Iterator[PlannedTask]:
    """Yield the tasks with this method in place of their rule; a task whose reference does not fit
    is left out with a note.
    """
    problems = option_problems(method, {})
    if problems or method in JUDGED or method not in (*SCORERS, MATH):
        problem = (
            problems[0]
            if problems
            else f"{method!r} is not a rule that compares answers with references."
        )
        raise InputError("--score", problem, remedy="For example: --score contains")
    left_out: list[str] = []
    for planned_task in tasks:
        task = planned_task.task
        if task.judged or task.scenario is not None:
            yield planned_task
        elif reference_problems(method, task.reference):
            left_out.append(task.id)
        else:
            yield replace(planned_task, task=replace(task, scoring=Scoring(method=method)))
    if left_out:
        notes.append(
            f"left out, because their references do not fit `{method}`: {', '.join(left_out[:20])}"
        )


def regrade(
    workspace: Workspace,
    ahead: RegradePlan,
    *,
    only_structure: bool = False,
    listener: Listener = nobody,
) -> Regraded:
    """Grade a run's stored responses again in a new run, as planned."""
    workspace.journal.open_run(ahead.plan, ahead.tasks)
    result = execution.carry_out(
        workspace, ahead.plan, retry_failed=False, only_structure=only_structure, listener=listener
    )
    return outcome(workspace.store, workspace.decisions, ahead.plan, result, notes=ahead.notes)


def outcome(
    store: Store,
    decisions: ProjectingDecisions,
    plan: RunPlan,
    result: execution.RunResult,
    *,
    notes: tuple[str, ...] = (),
) -> Regraded:
    origin = plan.regrade_of
    if origin is None:
        raise InputError(plan.id, "does not regrade the responses of another run.")
    kept = keep_reviews(store, decisions, plan)
    people = store.archive.scores.reference_graders(origin)
    before = {
        place: (row, judged)
        for row, judged in gradings(store, origin)
        if row.grader not in people
        for place in places(row)
    }
    pairs_with_people = store.archive.scores.reference_pairs(Selection(runs=(origin, plan.id)))
    changed: list[GradeChange] = []
    unchanged = 0
    pairs = Graders(before)
    for row, judged in gradings(store, plan.id):
        for place in places(row):
            was = before.get(pairs.place_before(place))
            if was is None:
                continue
            score_before, score_after = was[1].scores.get(place[2]), judged.scores.get(place[2])
            if score_before == score_after:
                unchanged += 1
                continue
            changed.append(
                GradeChange(
                    assessment=row.key,
                    task=row.task,
                    thing=row.thing,
                    k=row.k,
                    state=row.state,
                    candidate=place[2],
                    grader_before=was[0].grader,
                    grader_after=row.grader,
                    before=score_before,
                    after=score_after,
                )
            )
    return Regraded(
        result=replace(execution.result_of(store, plan.id), seconds=result.seconds),
        origin=origin,
        changed=tuple(changed),
        unchanged=unchanged,
        kept_reviews=kept,
        conclusions=_conclusions(store, origin, plan),
        agreement=judges_against_references(pairs_with_people),
        notes=notes,
    )


def _ahead(comparison: Comparison) -> int | None:
    """Return 1 if A's mean is higher, -1 if B's mean is higher, 0 for a tie, and None without a
    comparison.
    """
    difference = comparison.difference
    return None if difference is None else (difference > 0) - (difference < 0)


def _conclusions(store: Store, origin: RunId, plan: RunPlan) -> tuple[Conclusion, ...]:
    tables = [
        score_table(store.archive.scores.columns(Selection(runs=(run,))))
        for run in (origin, plan.id)
    ]
    margins = (store.journal.plan_of(origin).margin, plan.margin)
    names = [candidate.name for candidate in plan.candidates]
    conclusions = []
    for a, b in combinations(names, 2):
        before, after = (
            compare(table, a, b, None, margin)
            for table, margin in zip(tables, margins, strict=True)
        )
        conclusions.append(Conclusion(before=before, after=after))
    return tuple(conclusions)


def _judges(
    settings: Settings, old: RunPlan, tasks: Iterable[PlannedTask], judge: str | None
) -> tuple[JudgeSpec, ...]:
    if judge is None and not old.judges and any(task.task.judged for task in tasks):
        problem = f"is missing: run {old.id} has no judge."
        raise InputError(
            "--judge", problem, remedy="Give a model as PROVIDER/MODEL, or `human` for people."
        )
    if judge is None:
        return old.judges
    if not any(task.task.judged for task in tasks):
        problem = f"rules score every task of run {old.id}, so a judge has no task to grade."
        raise InputError(
            "--judge", problem, remedy="Use --suite FILE to set how its tasks are scored."
        )
    from assay.app.suites import model_candidate

    spec = model_candidate(settings, judge)
    if spec.model is None:
        raise InputError("--judge", f"{judge!r} is not a model.")
    first = (
        old.judges[0]
        if old.judges
        else JudgeSpec(name=spec.name, model=spec.model, mode=JudgeMode.EACH)
    )
    return (replace(first, name=spec.name, model=spec.model, turn=None),)


def _repeated(judges: tuple[JudgeSpec, ...], times: int) -> tuple[JudgeSpec, ...]:
    """Return each judge `times` times, under names that tell its gradings apart."""
    check_number_of_trials("--trials", times)
    if times > MAX_GRADINGS:
        raise InputError(
            "--trials", f"is {times:,}, and a judge grades an answer at most {MAX_GRADINGS} times."
        )
    if times > 1 and any(judge.model.provider == PERSON for judge in judges):
        problem = "repeats the gradings of a judge that is a model, but people grade here."
        raise InputError(
            "--trials",
            problem,
            remedy="Ask for second opinions in the review protocol, or name a model with --judge.",
        )
    return tuple(
        judge if number == 1 else replace(judge, name=f"{judge.name} (grading {number})")
        for judge in judges
        for number in range(1, times + 1)
    )


def _first_graded(
    plan: RunPlan, tasks: Sequence[PlannedTask], notes: list[str], default: Rubric
) -> RunPlan:
    blank = sum(not (task.task.prompt or task.task.context) for task in tasks)
    if blank:
        which = (
            f"{blank:,} of {len(tasks):,} tasks have no prompt, so only the answers can be graded"
        )
        notes.append(
            f"{which}; import the file of requests together with the answers to grade both."
        )
    rubric = plan.rubric if plan.rubric.criteria else default
    return replace(plan, rubric=rubric, protocol={**PLAIN.as_json(), "policy": str(plan.policy)})


def _held(
    store: Store, summary: RunSummary, plan: RunPlan, tasks: Sequence[PlannedTask]
) -> Iterator[tuple[PlannedTask, int, Mapping[str, Response]]]:
    by_id = {task.task.id: task for task in tasks}
    names = [candidate.name for candidate in plan.candidates]
    for k in range(1, max((task.trials.stop for task in tasks), default=1)):
        columns = tuple(
            AnswerColumn(run=summary.id, candidate=name, k=k) for name in summary.candidates
        )
        place = None
        while rows := store.archive.trials.answer_rows(columns, after=place, limit=_PORTION):
            for row in rows:
                planned_task = by_id.get(row.task.id)
                if planned_task is not None and k in planned_task.trials:
                    yield (
                        planned_task,
                        k,
                        {
                            name: Response(candidate=name, text=answer.text)
                            for name, answer in zip(names, row.answers, strict=True)
                            if answer.text is not None
                        },
                    )
            place = rows[-1].place


def _by_suite(old: RunPlan, suite: Suite) -> RunPlan:
    asked = replace(suite, name=old.suite, candidates=old.candidates)
    new = planned_run(
        asked,
        RunOptions(concurrency=old.concurrency, batch_id=old.batch_id),
        started=old.started,
        seed=old.seed,
        nonce="",
    )
    return replace(
        new,
        parameters=old.parameters,
        system_prompt=old.system_prompt,
        benchmark=old.benchmark,
        candidates=old.candidates,
        user=old.user,
    )


def _matched(store: Store, old: RunPlan, suite: Suite, notes: list[str]) -> Iterator[PlannedTask]:
    scored = {task.id: task for task in suite.tasks}
    asked = any(candidate.model is not None for candidate in old.candidates)
    left_out = []
    for stored, _ in store.journal.tasks_of(old.id):
        now = scored.get(stored.task.id)
        if now is None or now.weight == 0:
            left_out.append(stored.task.id)
            continue
        yield replace(stored, task=_scored_anew(stored.task, now, old, asked=asked))
    if left_out:
        notes.append(
            f"left out because the suite lacks these tasks or gives them weight 0: {', '.join(left_out)}."
        )


def _scored_anew(task: Task, now: Task, old: RunPlan, *, asked: bool) -> Task:
    told = (
        "prompt"
        if task.prompt != now.prompt
        else "context"
        if task.context != now.context
        else None
    )
    if [turn.content for turn in task.turns] != [turn.content for turn in now.turns]:
        told = "conversation"
    if (task.tools, task.tool_turns) != (now.tools, now.tool_turns):
        told = "set of tools"
    if asked and told is not None:
        raise InputError(
            f"task {task.id}",
            f"its {told} differs from the one in run {old.id}, so the answers of that run cannot be graded with it.",
            remedy=f"Restore the earlier {told}, or run the suite again.",
        )
    return replace(
        now,
        prompt=task.prompt if asked else now.prompt,
        snippets=task.snippets,
        language=task.language,
        trials=task.trials,
        parameters=task.parameters,
        system_prompt=task.system_prompt,
        columns=task.columns,
        persona=task.persona,
    )
