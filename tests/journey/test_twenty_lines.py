"""From fifty rows of CSV and two prompts to a reviewed verdict: as a script, in a notebook kernel,
and under pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.journey.conftest import Command
from tests.journey.test_pytest_plugin import run_pytest
from tests.support.model_server import ModelServer

SCRIPT = (Path(__file__).parents[2] / "docs" / "examples" / "two_prompts.py").read_text("utf-8")
ROWS = 50

FUNCTIONS = """
import assay

def length(response):
    return min(1.0, len(response) / LONGEST)

LONGEST = 8
CITY = "Lima"

def terse(prompt):
    return CITY

def long(prompt):
    return f"It is {CITY}"

tasks = [{"id": "a", "prompt": "?"}]
run = await assay.arun(assay.Suite(name="lengths", tasks=tasks, candidates=[terse, long], score=length))
"""
IN_PYTEST = """
import csv
import assay

def test_prompts(assay_run):
    rows = list(csv.DictReader(open("rows.csv")))
    prompts = {"terse": "In one word: {{question}}", "long": "Think. {{question}}"}
    columns = {"prompt": "question", "expected": "answer"}
    candidates = [{"name": name, "model": "openai/small", "prompt": prompt} for name, prompt in prompts.items()]
    run = assay_run(
        {"name": "sums", "tasks": rows, "map": columns, "score": "regex", "candidates": candidates},
        at_least={"terse": 0.9},
    )
    assert run.compare("terse", "long").comparison.decision == "better"
"""


@pytest.fixture
def rows(project: Path, server: ModelServer) -> Path:
    """A CSV file of sums, whose right answer is the one that a brief prompt gets."""
    lines = [f'"What is {i} and {i}?",{2 * i}' for i in range(ROWS)]
    (project / "rows.csv").write_text("\n".join(["question,answer", *lines]), "utf-8")
    return project


def code_lines(text: str) -> list[str]:
    return [line for line in text.partition('"""\n\n')[2].splitlines() if line.strip()]


@pytest.mark.slow
def test_script_of_twenty_lines_leaves_its_grades_to_a_person(assay: Command, rows: Path) -> None:
    assert len(code_lines(SCRIPT)) <= 20
    (rows / "two_prompts.py").write_text(SCRIPT, "utf-8")
    ended = subprocess.run(
        [sys.executable, "two_prompts.py"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ},
    )
    assert ended.returncode == 0, ended.stderr
    (run,) = assay("runs", "--json").document["runs"]
    assert f"assay review --run {run['run_id']}" in ended.stdout
    waiting = assay("review", "list", "--json").document["assessments"]
    assert [row["state"] for row in waiting] == ["pending"] * ROWS
    compared = assay("compare", "terse", "long", "--json").document
    assert compared["excluded"]["pending"] == ROWS
    assert compared["approvals"] == {"shown": 0, "scripted": 0, "imported": 0}


@pytest.mark.slow
def test_prompts_of_a_csv_file_are_tested_by_pytest(
    assay: Command, rows: Path, server: ModelServer
) -> None:
    answers = {f"What is {i} and {i}?": str(2 * i) for i in range(ROWS)}
    server.answer = lambda call: (
        answers[call.prompt.partition(": ")[2]] if ": " in call.prompt else "many words"
    )
    (rows / "test_prompts.py").write_text(IN_PYTEST, "utf-8")
    ended = run_pytest(rows)
    assert ended.returncode == 0, ended.stdout
    (run,) = assay("runs", "--json").document["runs"]
    assert run["trials"]["total"] == ROWS


def cells(*sources: str) -> Any:
    import nbformat

    v4: Any = nbformat.v4
    return v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])


@pytest.mark.slow
def test_script_works_in_a_notebook_kernel(assay: Command, rows: Path) -> None:
    from nbclient import NotebookClient

    decide = 'assay.review.approve([row.id for row in run.pending()])\nrun.compare("terse", "long")'
    notebook = cells(f"{SCRIPT}\n{decide}", "run", FUNCTIONS, "run.to_frame()", "run")
    NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(rows)}}
    ).execute()
    shown = [[output.get("data", {}) for output in cell.outputs] for cell in notebook.cells]
    assert f"{ROWS} of {ROWS} trials" in shown[0][0]["text/html"]
    compared = shown[0][-1]
    verdict = assay("compare", "terse", "long", "--suite", "two prompts", "--json").document[
        "verdict"
    ]
    plain = compared["text/plain"]
    assert plain.startswith(f"ComparisonResult({verdict} Run 2")
    assert plain.endswith(f"{ROWS} trials count ({ROWS} approved: {ROWS} by script))")
    assert "<svg" in compared["text/html"]
    assert verdict.split(" (")[0] in compared["text/html"]
    assert f"{ROWS} of {ROWS} trials done" in shown[1][-1]["text/plain"]
    assert "0.5" in shown[3][-1]["text/plain"]
    assert "lengths: 1 of 1 trials done" in shown[4][-1]["text/html"]
