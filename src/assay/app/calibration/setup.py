"""Settings and result of a calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.analysis.judge_errors import JudgedReference, Trust
from assay.app.runs import preflight
from assay.domain.calibration_record import CalibrationRecord
from assay.domain.errors import InputError
from assay.domain.failure import Failure
from assay.domain.lifecycle import AssessmentState
from assay.domain.run import RunOptions, RunPlan
from assay.domain.suite import PERSON, JudgeMode, JudgeSpec, Rubric, Suite
from assay.engine.planning import planned_run
from assay.scoring.arena import PageCodeJudge
from assay.scoring.judge import EachJudge, JointJudge
from assay.scoring.rubrics import QUALITY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.app.settings import Settings
    from assay.domain.calls import ModelRequest
    from assay.engine.estimate import CostEstimate
    from assay.scoring.evaluator import GradingAttempt
    from assay.scoring.reference_samples import ReferenceSample
    from assay.store.opening import Store


MAX_REPEATS = 50


MAX_OF_A_TEXT = 4_000
"""Maximum number of characters stored for each reference text: prompt, answer and expected answer.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSetting:
    """A judge to calibrate and its rubric; `source` is the suite or run that both come from."""

    judge: JudgeSpec
    rubric: Rubric
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A finished calibration.

    `calls` counts all paid answers, including `taken_over` answers from an interrupted attempt.
    """

    setting: JudgeSetting
    trust: Trust
    judged: tuple[JudgedReference, ...]
    record: CalibrationRecord
    failures: tuple[tuple[str, Failure], ...]
    calls: int
    approved: int
    taken_over: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """A planned calibration.

    `estimate` covers all calls, and `taken_over` is the number of answers that are already paid
    for. `cap_usd` is its maximum cost.
    """

    setting: JudgeSetting
    references: tuple[ReferenceSample, ...]
    estimate: CostEstimate
    cap_usd: float | None
    taken_over: int = 0


def setting_of(
    store: Store, settings: Settings, model: str, *, suite: Path | None = None
) -> JudgeSetting:
    """Return the judge with settings from the suite, its newest run or Assay's defaults; raises
    `InputError` if invalid.
    """
    from assay.app.suites import model_candidate

    spec = model_candidate(settings, model).model
    if spec is None:
        raise InputError("MODEL", f"{model!r} is not a model.", remedy="Write provider/name.")
    if spec.provider == PERSON:
        raise InputError(
            "MODEL",
            f"{model!r} is a person; only models can be calibrated.",
            remedy="Write provider/name.",
        )
    if suite is not None:
        loaded = _loaded(settings, suite, model, spec.ref)
        plan = planned_run(loaded, RunOptions(), started=store.clock.now(), seed=0, nonce="")
        judge = next((j for j in plan.judges if j.model.ref == spec.ref), plan.judges[0])
        return JudgeSetting(judge=judge, rubric=plan.rubric, source=f"suite {loaded.name}")
    for plan in _plans(store):
        for judge in plan.judges:
            if judge.model.ref == spec.ref:
                # A budget cannot be enforced without a price, which an older run may lack.
                used = replace(judge.model, price=judge.model.price or spec.price)
                return JudgeSetting(
                    judge=replace(judge, model=used), rubric=plan.rubric, source=f"run {plan.id}"
                )
    return JudgeSetting(
        judge=JudgeSpec(name=spec.ref, model=spec, mode=JudgeMode.EACH),
        rubric=QUALITY,
        source="the defaults",
    )


def _question(setting: JudgeSetting, grading: GradingAttempt) -> ModelRequest:
    (request,) = _evaluator(setting, grading).ask(grading)
    return request


def _evaluator(setting: JudgeSetting, grading: GradingAttempt) -> EachJudge | JointJudge:
    alone = PageCodeJudge if setting.judge.pages else EachJudge
    return (alone if len(grading.responses) == 1 else JointJudge)(setting.judge, setting.rubric)


def _plans(store: Store, *, having: AssessmentState | None = None) -> Iterator[RunPlan]:
    """Yield the plans of runs with judges, newest first; `having` keeps only runs with an
    assessment in this state.
    """
    for summary in store.archive.runs.newest_first():
        if summary.judges and (having is None or summary.assessments.get(having)):
            yield store.journal.plan_of(summary.id)


def _loaded(settings: Settings, suite: Path, model: str, ref: str) -> Suite:
    try:
        loaded = preflight.load(settings, suite)
    except InputError:  # a missing judge is fine here; other problems are raised below
        loaded = None
    if loaded is not None and any(judge.model.ref == ref for judge in loaded.judges):
        return loaded
    return preflight.load(settings, suite, judge=model)
