"""Read the runs of a batch for a snapshot, and state what they show."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict
from datetime import datetime, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from assay.app.calibration_status import CalibrationStatus
from assay.app.runs.scenario_runs import outcomes
from assay.app.statistics.pooling import task_by_task_differences
from assay.app.statistics.results import GOING_ON
from assay.domain.digest import digest
from assay.domain.lifecycle import AssessmentState, TrialState
from assay.domain.programs import Agent
from assay.domain.selection import Selection
from assay.domain.specialists import specialist_of
from assay.report import wording
from assay.report.wording.numbers import capitalise, count
from assay.scoring.reference_samples import identity_of
from assay.scoring.workspace_grader import scenario_rubric
from assay.specialists.comparison import BASELINE, SPECIALIST, Section, compare_runs, side_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assay.app.runs.scenario_runs import AgentTrialDocument
    from assay.domain.identifiers import RunId
    from assay.domain.run import RunPlan
    from assay.domain.run_choice import RunDifference
    from assay.domain.selection import RunSummary
    from assay.domain.specialists import SpecialistTemplate
    from assay.domain.suite import CandidateSpec
    from assay.store.opening import Store

OVERRIDE: Final = "overall"
"""Name of the grade that stands for all evaluators if a person gave a run on a server another
overall score.
"""

VALID_DAYS: Final = 180
"""Days for which a snapshot is valid, because providers change or retire the models behind a name.
"""


def waiting_in(summaries: Iterable[RunSummary]) -> int:
    """Count the grades that await review, and the runs that have not ended."""
    return sum(
        run.assessments.get(AssessmentState.PENDING, 0) + (run.state in GOING_ON)
        for run in summaries
    )


def runs_that_count(store: Store, selection: Selection) -> list[Section]:
    """Return runs as a snapshot lists them: one for each graded trial of an agent whose grade
    counts.
    """
    columns = store.archive.scores.columns(selection)
    own = {shown: name for name, shown in columns.kept_apart}
    names = [
        own.get(columns.candidates[code], columns.candidates[code])
        for code in columns.candidate.tolist()
    ]
    counted = dict(
        zip(zip(columns.trial.tolist(), names, strict=True), columns.unseen.tolist(), strict=True)
    )
    runs = []
    for summary in reversed(store.archive.runs.matching(selection)):
        plan = store.journal.plan_of(summary.id)
        specs = {spec.name: spec for spec in plan.candidates}
        for trial in outcomes(store, summary.id):
            # Trials of a run that another one graded again have a score, but do not count.
            if (
                trial.score is not None
                and (unseen := counted.get((int(trial.id[1:]), trial.agent))) is not None
            ):
                review = "unseen" if unseen else "person" if trial.reviewed else "rule"
                runs.append(_run(summary, plan, specs[trial.agent], trial) | {"review": review})
    return runs


def differences_in(store: Store, batch_id: str) -> tuple[RunDifference, ...]:
    """Return the differences between the runs of a batch that worked on the same scenario and tier.

    A snapshot compares scenario by scenario, so runs of different scenarios may have different
    judges. A run with a person's overall score in place of its evaluators' scores may be compared
    with any run, as in the project where the person decided.
    """
    by_task: dict[tuple[str, str], list[RunId]] = {}
    criteria: dict[str, None] = {}
    for summary in store.archive.runs.matching(Selection(batch_ids=(batch_id,))):
        rubric = store.journal.plan_of(summary.id).rubric
        if [criterion.name for criterion in rubric.criteria] == [OVERRIDE]:
            continue
        for planned, _ in store.journal.tasks_of(summary.id):
            by_task.setdefault((summary.suite, planned.task.id), []).append(summary.id)
            if planned.task.scenario is not None:
                criteria.update(
                    (criterion.name, None)
                    for criterion in scenario_rubric(planned.task.scenario).criteria
                )
    return task_by_task_differences(store, by_task, criteria=tuple(criteria))


def _run(
    summary: RunSummary, plan: RunPlan, spec: CandidateSpec, trial: AgentTrialDocument
) -> Section:
    received = plan.environment.get("agent_run")
    agent, model = _agent(spec)
    if isinstance(received, dict):
        agent, model = (
            str(received.get("agent") or agent),
            str(received["model"]) if received.get("model") else model,
        )
    specialist = specialist_of(spec)
    known = [trial.input_tokens, trial.output_tokens]
    total = None if None in known else sum(n or 0 for n in known)
    return {
        "run_id": summary.id
        if isinstance(received, dict)
        else f"{summary.id}-{trial.id}-{digest(trial.agent)[:8]}",
        "run_date": summary.started,
        "suite": summary.suite,
        "scenario": trial.scenario or trial.tier,
        "tier": trial.tier if trial.scenario else None,
        "agent": agent,
        "model": model,
        "trial": trial.trial,
        "overall_score": trial.score,
        "is_successful": trial.success,
        "specialist_enabled": specialist is not None,
        **(
            {f"specialist_{part}": value for part, value in asdict(specialist).items()}
            if specialist
            else {}
        ),
        "evaluations": {
            name: {
                "score": score,
                "passed": None if score is None else score >= 1,
                "weight": trial.weights.get(name, 1.0),
            }
            for name, score in trial.evaluators.items()
        },
        "telemetry": {
            "duration_ms": None if trial.seconds is None else round(1000 * trial.seconds),
            "token_usage": dict(
                zip(
                    ("prompt_tokens", "completion_tokens", "total_tokens"),
                    (*known, total),
                    strict=True,
                )
            ),
            "tool_calls": trial.tool_calls,
            "cost_usd": trial.cost_usd,
        },
    }


def _agent(spec: CandidateSpec) -> tuple[str, str | None]:
    """Return a candidate's agent and model without its specialist, which has a field of its own."""
    if spec.model is None:
        model = spec.metadata.get("model")
        return spec.name, model if isinstance(model, str) else None
    if isinstance(spec.model.program, Agent):
        return spec.model.program.target, None
    return spec.model.provider, spec.model.name or None


def benchmarks_of(
    runs: Sequence[Mapping[str, Any]], name: str, version: str
) -> tuple[Section, str]:
    """Return the section `benchmarks` of a snapshot, and the verdict on the comparison as a
    sentence.
    """
    section, comparison = compare_runs(runs, name, version)
    suites = dict.fromkeys((run["suite"], run["scenario"]) for run in runs)
    always = json.loads((files("assay.specialists") / "snapshot_constants.json").read_text("utf-8"))
    return {
        "test_suites": [
            {"name": name, "path": f"{suite}/{name}", **always["test_suite"]}
            for suite, name in suites
        ],
        "scoring": always["scoring"],
        "runs": list(runs),
        "comparison": section,
    }, capitalise(_sentences(wording.verdict(comparison)))


def _sentences(verdict: str) -> str:
    """Return a verdict with articles, because its candidates are not names: `The specialist is
    better than the baseline`.
    """
    verdict = re.sub(r"(?<!the )\b(specialist|baseline)\b", r"the \1", verdict)
    return re.sub(r"(^|\. )t", lambda start: start[0].upper(), verdict)


def evidence_of(
    benchmarks: Mapping[str, Any],
    verdict: str,
    template: SpecialistTemplate,
    summaries: Sequence[RunSummary],
    judges: Any,
) -> Section:
    """Return what a snapshot shows and what it does not show, in sentences."""
    runs, test = benchmarks["runs"], benchmarks["comparison"]["test"]
    sides = Counter(side_of(run, template.name, template.version) for run in runs)
    decided = test["decision"] != "not_decided"
    used = f"The test uses {test['n_baseline']} and {test['n_specialist']} of them, on {count(test['n_scenarios'], 'scenario')}."
    shows = [
        f"{count(sides[BASELINE], 'run')} of the baseline and {sides[SPECIALIST]} of the specialist count. {used}"
    ]
    gaps = [] if decided else ["That the specialist is better or worse than the baseline."]
    if test["n_scenarios"] == 1:
        gaps.append("Anything about other scenarios, because both worked on one scenario only.")
    gaps += [
        f"Any improvement: no run of the {side} counts."
        for side in (BASELINE, SPECIALIST)
        if not sides[side]
    ]
    if others := sides[None]:
        gaps.append(
            f"Anything about {count(others, 'run')} with another specialist or version; no average includes them."
        )
    if any(run.get("specialist_digest") not in (None, template.digest) for run in runs):
        gaps.append(
            "Exactly this template: some runs used one with the same version but other content."
        )
    states = Counter(run["review"] for run in runs)
    shows += [wording.runs_approved(states["person"])] if states["person"] else []
    shows += (
        [f"Rules without a model graded {count(states['rule'], 'run')}."] if states["rule"] else []
    )
    if unseen := states["unseen"]:
        gaps.append(
            f"That the grades of {count(unseen, 'run')} are right: a model gave them, and no person has seen them."
        )
    excluded = Counter[str]()
    for summary in summaries:
        excluded["failed"] += summary.trials.get(TrialState.FAILED, 0)
        excluded["rejected"] += summary.assessments.get(AssessmentState.REJECTED, 0)
        excluded["left out of the review sample"] += summary.assessments.get(
            AssessmentState.LEFT_OUT, 0
        )
    gaps += [
        f"Anything about {count(n, 'run')} that {'was' if n == 1 else 'were'} {why}."
        for why, n in excluded.items()
        if n
    ]
    unmeasured = [judge["name"] for judge in judges if judge["calibration"] is None]
    gaps += [
        f"How well {name} grades: no calibration matches its rubric, prompt and parameters."
        for name in unmeasured
    ]
    return {"decided": decided, "statement": verdict, "shows": shows, "does_not_show": gaps}


def validity_of(
    store: Store,
    runs: Sequence[Section],
    template: SpecialistTemplate,
    ids: Sequence[RunSummary],
    *,
    now: str,
) -> Section:
    """Return for which template, suites, models and judges a snapshot is valid, and until when."""
    calibration_status, suites, judges = CalibrationStatus(store), {}, {}
    for summary in ids:
        plan = store.journal.plan_of(summary.id)
        suites[plan.suite, plan.copy.digest] = {"name": plan.suite, "digest": plan.copy.digest}
        calibrations = calibration_status.judges_of(summary.id)
        for judge in plan.judges:
            identity, record = identity_of(judge, plan.rubric), calibrations.get(judge.name)
            measured = record and {
                "tier": record.tier.value,
                "at": record.at,
                "version": record.version,
            }
            judges[judge.name, identity] = {
                "name": judge.name,
                **asdict(identity),
                "calibration": measured,
            }
    until = datetime.fromisoformat(now) + timedelta(days=VALID_DAYS)
    return {
        "valid_for": {
            "template": {
                "name": template.name,
                "version": template.version,
                "digest": template.digest,
            },
            "suites": list(suites.values()),
            "models": sorted({run["model"] or run["agent"] for run in runs}),
            "judges": list(judges.values()),
        },
        "valid_until": until.isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
