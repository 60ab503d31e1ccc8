"""Settings of a run as its records state them: with the parameters that were sent, and the criteria
that grades are about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from assay.app.wire import Json, to_json
from assay.domain.lifecycle import RunState
from assay.domain.model import Parameters
from assay.domain.prompts import prompts_of
from assay.domain.suite import Rubric
from assay.providers.wires import sent_parameters
from assay.scoring.reference_samples import identity_of, parameters_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.domain.digest import JsonValue
    from assay.domain.model import ModelSpec
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary

_ENDED: Final = frozenset({RunState.FINISHED, RunState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSettings:
    """The settings of a run that determine questions and grading."""

    regrade_of: str | None
    system_prompt: str
    prompt_version: str | None
    seeds: Mapping[str, Json]
    asked_with: Mapping[str, Json]
    judged_with: Mapping[str, Json]
    rubric_digest: str
    suite_digest: str


def record_document(plan: RunPlan) -> dict[str, JsonValue]:
    return _json(recorded_settings(plan))


def recorded_settings(plan: RunPlan) -> RecordedSettings:
    """Return the settings, with the parameters that requests contain."""
    return _settings(
        plan, sent_parameters if plan.regrade_of is None else _nothing_sent, sent_parameters
    )


def planned_settings(plan: RunPlan) -> dict[str, JsonValue]:
    """Return the same settings with all planned parameters, also those that are not sent; digests
    of settings are built on it.
    """
    # Not `record_document`: equal settings must keep the digest that they had in earlier versions.
    return _json(_settings(plan, _all_planned, _all_planned))


def _json(settings: RecordedSettings) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", to_json(settings))


def run_parameters(plan: RunPlan) -> Parameters:
    """Return the run's own parameters, reduced to those that its requests to candidates contain.

    They are empty if the run asked no candidate. An imported run keeps the parameters that its file
    states.
    """
    if plan.imported:
        return plan.parameters
    asked = (
        []
        if plan.regrade_of is not None
        else [c.model for c in plan.candidates if c.model is not None]
    )
    sent: set[str] = set()
    for model in asked:
        sent |= sent_parameters(model, model.parameters.over(plan.parameters)).as_json().keys()
    unsent = (
        Parameters.__slots__
        if not sent
        else [name for name in Parameters.__slots__ if name not in sent]
    )
    return replace(plan.parameters, **dict.fromkeys(unsent))


def graded_rubric(plan: RunPlan, summary: RunSummary) -> Rubric:
    """Return the criteria that a run's grades are about; none if only scorers graded, or if the run
    ended without a grade.
    """
    nothing = Rubric(criteria=())
    graded = any(summary.assessments.values())
    if graded:
        # A plan always has a rubric, but scorers do not use it. A scenario's rubric is that of its
        # rules, which have grades.
        used = (
            plan.judges
            or plan.imported
            or any(criterion.name in summary.criteria for criterion in plan.rubric.criteria)
        )
        return plan.rubric if used else nothing
    return plan.rubric if plan.judges and summary.state not in _ENDED else nothing


def _settings(
    plan: RunPlan,
    of_candidate: Callable[[ModelSpec, Parameters], Parameters],
    of_judge: Callable[[ModelSpec, Parameters], Parameters],
) -> RecordedSettings:
    return RecordedSettings(
        regrade_of=plan.regrade_of,
        system_prompt=plan.system_prompt,
        prompt_version=plan.prompt_version or None,
        seeds={"run": plan.seed, "sent": "derived from run seed, task, trial and attempt"},
        asked_with={
            candidate.name: {
                "model": candidate.model.ref,
                "base_url": _bare(candidate.model.base_url),
                "parameters": _without_seed(
                    of_candidate(candidate.model, candidate.model.parameters.over(plan.parameters))
                ),
                **prompts_of(candidate),
            }
            for candidate in plan.candidates
            if candidate.model is not None
        },
        judged_with={
            judge.name: {
                "model": judge.model.ref,
                "base_url": _bare(judge.model.base_url),
                "mode": judge.mode.value,
                "turn": None
                if judge.turn is None
                else {"place": judge.turn[0] + 1, "of": judge.turn[1]},
                "parameters": _without_seed(of_judge(judge.model, parameters_of(judge))),
                "persona": judge.persona,
                "prompt_path": judge.prompt_path,
                "prompt_digest": identity_of(judge, plan.rubric).prompt,
                "require_calibration": judge.require_calibration,
            }
            for judge in plan.judges
        },
        rubric_digest=plan.rubric.digest,
        suite_digest=plan.copy.digest,
    )


def _all_planned(model: ModelSpec, parameters: Parameters) -> Parameters:
    return parameters


def _nothing_sent(model: ModelSpec, parameters: Parameters) -> Parameters:
    return Parameters()


def _without_seed(parameters: Parameters) -> dict[str, JsonValue]:
    """Return the parameters without the seed, because each trial gets its own seed."""
    return {name: value for name, value in parameters.as_json().items() if name != "seed"}


def _bare(address: str | None) -> str | None:
    """Return an address without its login and query, because both may contain keys."""
    if address is None:
        return None
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
