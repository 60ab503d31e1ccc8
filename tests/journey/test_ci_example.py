"""The example workflow of the documentation: its commands are run as a pipeline would run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journey.test_gate_baseline import write_suite

WORKFLOW = Path(__file__).parents[2] / "docs" / "examples" / "github-actions.yml"
ASSAYS = 'exec "$PYTHON" -m assay "$@"'


def steps(event: str) -> dict[str, str]:
    """The named steps with commands that run on an event, without the one that needs GitHub."""
    workflow: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    (job,) = workflow["jobs"].values()
    return {
        step["name"]: step["run"]
        for step in job["steps"]
        if "name" in step
        and step["name"] != "Comment"
        and not ("event_name ==" in step.get("if", "") and event not in step["if"])
    }


@pytest.fixture
def pipeline(project: Path) -> Any:
    """Run the steps of an event in order, as GitHub does; returns the exit codes by step."""
    bin_folder = project / "bin"
    bin_folder.mkdir()
    for name, text in {"assay": ASSAYS, "python": 'exec "$PYTHON" "$@"'}.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{text}\n", "utf-8")
        (bin_folder / name).chmod(0o755)

    def run(event: str, batch: str) -> dict[str, int]:
        exported = project / "exported"
        exported.write_text("", "utf-8")
        codes: dict[str, int] = {}
        for name, script in steps(event).items():
            variables = dict(
                line.split("=", 1) for line in exported.read_text("utf-8").splitlines()
            )
            environment = {
                **os.environ,
                **variables,
                "BATCH": batch,
                "PYTHON": sys.executable,
                "GITHUB_ENV": str(exported),
                "GITHUB_STEP_SUMMARY": str(project / "summary.md"),
                "PATH": f"{bin_folder}:{os.environ['PATH']}",
            }
            ended = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
                env=environment,
                timeout=120,
                check=False,
            )
            codes[name] = ended.returncode
        return codes

    return run


@pytest.mark.slow
def test_workflow_gates_a_worse_pull_request(pipeline: Any, project: Path) -> None:
    (project / "suites").mkdir()
    suite = project / "suites" / "bot.yaml"
    write_suite(project, "suites/bot.yaml", right=set(range(8)))
    assert pipeline("push", "main") == {"Run": 0, "Report": 0}
    assert pipeline("pull_request", "pull-1") == {"Run": 0, "Gate": 0, "Report": 0}
    write_suite(project, str(suite.relative_to(project)), right={1})
    assert pipeline("pull_request", "pull-2") == {"Run": 0, "Gate": 3, "Report": 0}
    comment = (project / "comment.md").read_text("utf-8")
    assert "\nGate failed: bot is shown to be worse than bot in " in comment
    assert "# " in comment
    assert 'name="as a whole"' in (project / "junit.xml").read_text("utf-8")
    assert comment in (project / "summary.md").read_text("utf-8")
