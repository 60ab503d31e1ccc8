"""Run agents on scenarios: builds a suite of scenarios, tiers and agents, and returns each trial's
outcome.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.agents.opening import is_workspace_agent
from assay.app.review import decisions
from assay.app.suites import model_candidate
from assay.app.wire import document
from assay.domain.calls import Role
from assay.domain.digest import digest
from assay.domain.errors import InputError
from assay.domain.lifecycle import COUNTS, AssessmentState
from assay.domain.model import of_program
from assay.domain.names import name_problem
from assay.domain.programs import Agent
from assay.domain.scenarios import Scenario, WorkspaceReport
from assay.domain.selection import Selection
from assay.domain.specialists import Specialist, specialist_of
from assay.domain.suite import PERSON, CandidateSpec, JudgeMode, JudgeSpec, Rubric, Suite, Task
from assay.scoring.workspace_grader import EVALUATORS, judge_parameters, scenario_rubric, succeeded
from assay.suites.scenarios import load_scenario, scenario_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.settings import Settings
    from assay.domain.digest import JsonValue
    from assay.domain.identifiers import RunId, TrialKey
    from assay.domain.selection import AssessmentDetail, CallsOfTrial, RunSummary
    from assay.store.opening import Store

_AT_ONCE: Final = 20
"""Number of workspace reports in memory at a time; each takes up to a megabyte."""


@document
class AgentTrialDocument:
    """The outcome of an agent's trial; score and success are null for a trial without a grade that
    counts.

    `specialist` has the name, version and digest of the template that the agent used; null for a
    baseline.
    """

    id: str
    scenario: str
    tier: str
    agent: str
    trial: int
    score: float | None
    success: bool | None
    ended: str
    seconds: float | None
    tool_calls: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    reviewed: bool
    evaluators: dict[str, float | None]
    weights: dict[str, float]
    specialist: dict[str, str | None] | None = None


def scenario_suite(
    settings: Settings,
    suite: str,
    scenarios: Sequence[str],
    *,
    agents: Sequence[str],
    tiers: Sequence[str] = (),
    skip_warmup: bool = False,
) -> Suite:
    """Build a suite from scenarios below `suites/SUITE/scenarios`, with agents as its candidates.

    Args:
        agents: each as `AGENT` or `NAME=AGENT`, such as `echo`, `openai/gpt-5` or `mine=cmd:
            ./agent.sh`.
        tiers: tiers to use; by default, all tiers of each scenario.
        skip_warmup: True to skip the baseline commands; such trials are not pooled with others.

    Raises InputError if a scenario, tier or agent is unknown, or if a scenario's files have
    problems.
    """
    base = settings.working_folder
    loaded = [
        load_scenario(scenario_folder(base, suite, name), base=base, tiers=tuple(tiers))
        for name in dict.fromkeys(scenarios)
    ]
    copies = [each.copy for each in loaded]
    whole = copies[0]
    if len(copies) > 1:
        text, path = (
            "\n---\n".join(copy.text for copy in copies),
            str(Path("suites") / suite / "scenarios"),
        )
        whole = replace(
            whole, path=path, text=text, digest=digest([copy.digest for copy in copies])
        )
    candidates = tuple(_candidate(settings, agent) for agent in dict.fromkeys(agents))
    tasks = [task for each in loaded for task in each.tasks]
    if skip_warmup:
        tasks = [
            replace(task, scenario=task.scenario and replace(task.scenario, baseline=()))
            for task in tasks
        ]
    named = {
        each.name: each
        for task in tasks
        if task.scenario
        for each in scenario_rubric(task.scenario).criteria
    }
    rubric = Rubric(criteria=tuple(named.values()))
    return Suite(
        name=suite,
        candidates=candidates,
        judges=_judges(settings, tasks),
        rubric=rubric,
        tasks=tuple(tasks),
        copy=whole,
    )


def _judges(settings: Settings, tasks: Sequence[Task]) -> tuple[JudgeSpec, ...]:
    """Return the judge that the scenarios share, with the model from the setting `judge` if they
    set no model.
    """
    judges: list[tuple[str, JudgeSpec]] = []
    for task in tasks:
        if task.scenario is None or task.scenario.judge is None:
            continue
        options = task.scenario.judge.options
        ref = options.get("model") or next(iter(settings.judge_refs), None)
        if not isinstance(ref, str):
            remedy = "Write `model: provider/name` under `llm_judge`, or set `judge` in assay.yaml."
            raise InputError(
                task.id, "is graded by `llm_judge`, which has no model.", remedy=remedy
            )
        model = model_candidate(settings, ref).model
        if model is None:
            continue
        name = PERSON if model.provider == PERSON else EVALUATORS
        parameters = judge_parameters(options)
        judge = JudgeSpec(
            name=name, model=model, mode=JudgeMode.EACH, parameters=parameters, persona="code"
        )
        if any(judge != other for _, other in judges):
            problem = f"and {judges[0][0]} have judges with different models or parameters, but a run can have only one judge."
            raise InputError(
                task.id, problem, remedy="Bench each scenario separately, with the same --batch-id."
            )
        judges.append((task.id, judge))
    return tuple(judge for _, judge in judges[:1])


def _candidate(settings: Settings, agent: str) -> CandidateSpec:
    name, equals, target = agent.partition("=")
    if not equals or name_problem(name) or is_workspace_agent(agent):
        name, target = agent, agent
    target = target.strip()
    if problem := name_problem(name):
        raise InputError(
            "--agent", f"is {agent!r}, {problem}", remedy="Give it a name: --agent 'NAME=cmd: …'"
        )
    if "/" in target and not is_workspace_agent(target):
        return replace(model_candidate(settings, target), name=name)
    return CandidateSpec(name=name, model=of_program(Agent(target=target)))


def count_runs(store: Store, summaries: Sequence[RunSummary]) -> int:
    """Count runs as agent harnesses do: each trial of an agent on a scenario counts as a run, and
    so does any other run.
    """
    return sum(
        sum(run.trials.values()) * len(run.candidates)
        if not run.imported and _is_on_scenarios(store, run.id)
        else 1
        for run in summaries
    )


def _is_on_scenarios(store: Store, run: RunId) -> bool:
    planned, _ = next(store.journal.tasks_of(run), (None, 0))
    return planned is not None and planned.task.scenario is not None


def outcomes(store: Store, run: RunId) -> tuple[AgentTrialDocument, ...]:
    """Return the outcome of each graded trial of a run, local or received, in the order of its
    assessments.
    """
    trials: list[AgentTrialDocument | None] = []
    plan = store.journal.plan_of(run)
    received = plan.environment.get("agent_run")
    specialists = {candidate.name: specialist_of(candidate) for candidate in plan.candidates}
    received = received if isinstance(received, dict) else None
    if received is None and not _is_on_scenarios(store, run):
        return ()
    keys = [row.key for row in decisions.assessments(store, Selection(runs=(run,)))]
    by_trial = store.archive.calls.by_trial(run)
    calls = {
        (calls.trial, calls.candidate): calls for calls in by_trial if calls.role is Role.CANDIDATE
    }
    for at in range(0, len(keys), _AT_ONCE):
        trials += [
            _outcome(detail, calls, received, specialists)
            for detail in store.archive.assessments.as_stored(keys[at : at + _AT_ONCE])
        ]
    return tuple(trial for trial in trials if trial is not None)


def _outcome(
    detail: AssessmentDetail,
    calls: Mapping[tuple[TrialKey, str | None], CallsOfTrial],
    received: Mapping[str, JsonValue] | None,
    specialists: Mapping[str, Specialist | None],
) -> AgentTrialDocument | None:
    row = detail.row
    response = detail.responses[0]
    report = WorkspaceReport.from_text(response.text)
    scenario = detail.task.scenario
    if received is not None and row.grader == EVALUATORS:
        report, scenario = (
            WorkspaceReport(end=str(received.get("status", "completed"))),
            Scenario(folder="", fixture="", files={}),
        )
    if report is None or scenario is None:
        return None
    stated = (received or {}).get("isSuccessful", (received or {}).get("is_successful"))
    counts = row.state in COUNTS
    score = row.assessment.scores.get(response.candidate) if counts else None
    name, _, tier = row.task.rpartition("/")
    own = calls.get((row.trial, response.candidate))
    specialist = specialists.get(response.candidate)
    return AgentTrialDocument(
        id=f"t{row.trial}",
        scenario=name,
        tier=tier,
        agent=response.candidate,
        trial=row.k,
        score=score,
        success=stated
        if isinstance(stated, bool) and counts
        else succeeded(scenario, report, score),
        ended=report.end,
        seconds=None if received is not None else report.seconds,
        tool_calls=None
        if received is not None
        else sum(step.kind == "tool" for step in report.steps),
        input_tokens=None if own is None else own.input_tokens,
        output_tokens=None if own is None else own.output_tokens,
        cost_usd=None if own is None else own.cost_usd,
        reviewed=row.state in (AssessmentState.APPROVED, AssessmentState.CORRECTED),
        weights={
            criterion.name: criterion.weight for criterion in scenario_rubric(scenario).criteria
        },
        evaluators={
            grade.criterion: grade.score if counts else None for grade in row.assessment.grades
        },
        specialist=None if specialist is None else asdict(specialist),
    )
