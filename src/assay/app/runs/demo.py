"""The demo: a real set of Things with recorded judge replies and a recorded review; needs no API
key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.app.review import decisions, rerun as rerun_
from assay.app.runs import execution, preflight
from assay.app.suites import read_suite
from assay.domain.errors import Refused
from assay.domain.events import Listener, nobody
from assay.domain.review import Via
from assay.domain.run import RunOptions, RunPlan
from assay.domain.selection import AssessmentRow, Selection

if TYPE_CHECKING:
    from assay.app.runs.execution import RunResult
    from assay.app.workspace import Workspace
    from assay.domain.identifiers import RunId

JUDGE = "replay/@demo"
REVIEWER = "demo"
SEED_NOTE = "judge and review are recordings made for this demo; no model was called"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """Number of approvals, corrections, rejections and reruns in the recorded review."""

    approved: int
    corrected: int
    rejected: int
    rerun: int


def run_demo(workspace: Workspace, *, listener: Listener = nobody) -> RunResult:
    """Run the demo's set: 7 Things, 3 candidates, 5 trials each, graded by recorded judge
    replies.
    """
    suite = read_suite(workspace.settings, content("architects.json"), judge=JUDGE)
    return execution.run(workspace, suite, RunOptions(), listener=listener)


def write_down_demo(workspace: Workspace) -> RunPlan:
    """Store the demo run without executing the run; raises `Refused` if the store already has
    runs.
    """
    if workspace.archive.runs.newest(limit=1):
        raise Refused(
            "the demo",
            "is for a store without runs.",
            remedy="`assay demo` creates a separate store.",
        )
    suite = read_suite(workspace.settings, content("architects.json"), judge=JUDGE)
    options = RunOptions()
    return execution.write_down(
        workspace.store, suite, options, preflight.look_ahead(workspace, suite, options)
    )


def review_demo(workspace: Workspace, run: RunId) -> Reviewed:
    """Apply the recorded review, which approves, corrects, rejects and reruns assessments; its
    decisions count as imported.
    """
    taken = {"approve": 0, "correct": 0, "reject": 0, "rerun": 0}
    for decision in json.loads(content("review.json").read_text("utf-8")):
        # Read again for each decision, because a rerun replaces the assessment.
        current = {
            (row.task, row.k): row
            for row in decisions.assessments(workspace.store, Selection(runs=(run,)))
            if row.current
        }
        _apply(workspace, current[decision["task"], decision["trial"]], decision)
        taken[decision["decision"]] += 1
    return Reviewed(
        approved=taken["approve"],
        corrected=taken["correct"],
        rejected=taken["reject"],
        rerun=taken["rerun"],
    )


def content(name: str) -> Path:
    return Path(str(resources.files("assay") / "demo" / name))


def _apply(workspace: Workspace, row: AssessmentRow, decision: dict[str, Any]) -> None:
    reason = decision.get("reason", "")
    match decision["decision"]:
        case "approve":
            decisions.approve(workspace, [row.key], reviewer=REVIEWER, via=Via.IMPORT)
        case "correct":
            corrections = decisions.parsed_corrections(
                (f"{name}={value}" for name, value in decision["corrections"].items()), row
            )
            decisions.correct(
                workspace, row.key, corrections, reason=reason, reviewer=REVIEWER, via=Via.IMPORT
            )
        case "reject":
            decisions.reject(workspace, [row.key], reason=reason, reviewer=REVIEWER, via=Via.IMPORT)
        case "rerun":
            rerun_.rerun_now(
                workspace, row.key, reason=reason, note=decision["note"], reviewer=REVIEWER
            )
        case other:
            raise ValueError(f"the recorded review says {other!r}")
