"""Evaluators of workspaces from installed packages: functions that score one criterion of an
agent's work from the report of its trial.

A scenario selects an evaluator by its name, with a weight, like one of Assay's. It runs in a child
process with a time limit and without access to API keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from assay.domain.digest import JsonValue
from assay.domain.isolation import IsolatedRequest, Returned, Stopped
from assay.domain.scenarios import EvaluatorSpec, WorkspaceReport
from assay.plugin_registry import Registry
from assay.scoring.custom_scorers import TIME_LIMIT_S
from assay.scoring.evaluator import Answer, Unscorable


class WorkspaceEvaluator(Protocol):
    """Scores one criterion of an agent's work.

    It must return the same score for the same arguments within 10 seconds. `report.files` has the
    files that the option `files` names, and those that other evaluators of the scenario read.
    """

    def __call__(
        self, report: WorkspaceReport, options: Mapping[str, JsonValue], /
    ) -> tuple[float, str]:
        """Return a score between 0 and 1 and the reason for it."""
        ...


EVALUATOR_PLUGINS: Final[Registry[WorkspaceEvaluator]] = Registry(
    kind="evaluator", group="assay.evaluators", own={}, members=("__call__",)
)


def request_for(spec: EvaluatorSpec, report: str) -> IsolatedRequest:
    """Return the call of a package's evaluator on a report, given as text."""
    return IsolatedRequest(
        function="plugin_evaluator",
        arguments={"name": spec.name, "report": report, "options": dict(spec.options)},
        time_limit_s=TIME_LIMIT_S,
    )


def plugin_evaluator(
    *, name: str, report: str, options: Mapping[str, JsonValue]
) -> list[JsonValue]:
    """Call the evaluator that an installed package offers under this name; runs in a child
    process.
    """
    parsed = WorkspaceReport.from_text(report)
    if parsed is None:
        raise ValueError("the response is not a workspace report")
    score, reason = EVALUATOR_PLUGINS.load(name)(parsed, options)
    return [float(score), str(reason)]


def finding_in(name: str, answer: Answer) -> tuple[float, str]:
    """Return the score and the reason that an evaluator gave; raises `Unscorable` if it failed or
    its score is not between 0 and 1.
    """
    if isinstance(answer, Stopped):
        raise Unscorable(f"evaluator_{answer.kind}", f"The evaluator {name}: {answer.detail}")
    match answer:
        case Returned(value=[float(score), str(reason)]) if 0 <= score <= 1:
            return score, reason
    raise Unscorable(
        "evaluator_bad_value",
        f"The evaluator {name} did not return a score between 0 and 1 with a reason.",
    )
