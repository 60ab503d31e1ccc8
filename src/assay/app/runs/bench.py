"""Run agents on scenarios: the suite of the chosen scenarios, tiers and agents, and the outcome of each trial."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.agents.opening import COMMAND
from assay.app.review import decisions
from assay.app.suites import model_candidate
from assay.app.wire import document
from assay.domain.digest import digest
from assay.domain.errors import InputError
from assay.domain.model import of_program
from assay.domain.names import name_problem
from assay.domain.programs import Agent
from assay.domain.scenarios import WorkspaceReport
from assay.domain.selection import Selection
from assay.domain.suite import CandidateSpec, Suite
from assay.scoring.workspace_grader import EVALUATORS, succeeded
from assay.suites.scenarios import load_scenario, scenario_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.workspace import Workspace
    from assay.domain.identifiers import RunId


@document
class AgentTrialDocument:
    """The outcome of an agent's trial; score and success are null for a trial without a grade that counts."""

    id: str
    scenario: str
    tier: str
    agent: str
    trial: int
    score: float | None
    success: bool | None
    ended: str
    seconds: float
    evaluators: dict[str, float | None]


def scenario_suite(
    workspace: Workspace,
    suite: str,
    scenarios: Sequence[str],
    *,
    agents: Sequence[str],
    tiers: Sequence[str] = (),
    skip_warmup: bool = False,
) -> Suite:
    """Build a suite from scenarios below `suites/SUITE/scenarios`, with agents as its candidates.

    Args:
        agents: each as `AGENT` or `NAME=AGENT`, such as `echo`, `openai/gpt-5` or `mine=cmd: ./agent.sh`.
        tiers: all tiers of each scenario by default.
        skip_warmup: True to leave the baseline commands out; such trials are not pooled with others.

    Raises:
        InputError: a scenario, tier or agent is unknown, or a scenario's files have problems.
    """
    base = workspace.folder
    loaded = [
        load_scenario(scenario_folder(base, suite, name), base=base, tiers=tuple(tiers)) for name in dict.fromkeys(scenarios)
    ]
    copies = [each.copy for each in loaded]
    whole = (
        copies[0]
        if len(copies) == 1
        else replace(
            copies[0],
            path=str(Path("suites") / suite / "scenarios"),
            text="\n---\n".join(copy.text for copy in copies),
            digest=digest([copy.digest for copy in copies]),
        )
    )
    candidates = tuple(_candidate(workspace, agent) for agent in dict.fromkeys(agents))
    tasks = [task for each in loaded for task in each.tasks]
    if skip_warmup:
        tasks = [replace(task, scenario=task.scenario and replace(task.scenario, baseline=())) for task in tasks]
    return Suite(name=suite, candidates=candidates, tasks=tuple(tasks), copy=whole)


def _candidate(workspace: Workspace, agent: str) -> CandidateSpec:
    name, equals, target = agent.partition("=")
    if not equals or name_problem(name) or ":" in name:
        name, target = agent, agent
    target = target.strip()
    if problem := name_problem(name):
        raise InputError("--agent", f"is {agent!r}, {problem}", remedy="Name it: --agent 'NAME=cmd: …'")
    if "/" in target and not target.startswith(COMMAND):
        return replace(model_candidate(workspace, target), name=name)
    return CandidateSpec(name=name, model=of_program(Agent(target=target)))


def outcomes(workspace: Workspace, run: RunId) -> tuple[AgentTrialDocument, ...]:
    """Return the outcome of each graded trial of a run, in the order of its assessments."""
    trials = []
    keys = [row.key for row in decisions.assessments(workspace, Selection(runs=(run,))) if row.grader == EVALUATORS]
    for detail in workspace.archive.assessments.as_stored(keys):
        row = detail.row
        (response,) = detail.responses
        report = WorkspaceReport.from_text(response.text)
        scenario = detail.task.scenario
        if report is None or scenario is None:
            continue
        score = row.assessment.scores.get(response.candidate)
        name, _, tier = row.task.rpartition("/")
        trials.append(
            AgentTrialDocument(
                id=f"t{row.trial}",
                scenario=name,
                tier=tier,
                agent=response.candidate,
                trial=row.k,
                score=score,
                success=succeeded(scenario, report, score),
                ended=report.end,
                seconds=report.seconds,
                evaluators={grade.criterion: grade.score for grade in row.assessment.grades},
            )
        )
    return tuple(trials)
