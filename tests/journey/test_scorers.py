"""Suites scored by mathematical meaning and by their own functions, from file to result."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.journey.conftest import Command


@pytest.mark.slow
def test_a_hostile_answer_is_a_failed_trial_and_the_run_goes_on(
    assay: Command, project: Path
) -> None:
    pytest.importorskip("math_verify", reason="the extra `math` is not installed")
    (project / "sums.yaml").write_text(
        """
name: sums
score: math
tasks:
  - {id: half, expected: "1/2", snippets: {ada: 'so \\boxed{\\frac{1}{2}}', bob: "0.25"}}
  - {id: square, expected: "x^2+2x+1", snippets: {ada: "(x+1)^2", bob: "(x-1)^2"}}
  - {id: hostile, expected: "387420489", snippets: {ada: "9^{9^9}", bob: "387420489"}}
""",
        encoding="utf-8",
    )
    output = assay("run", "sums.yaml", "--json")
    assert output.code == 1
    assert [output.document["trials"][state] for state in ("total", "done", "failed")] == [3, 2, 1]
    (failure,) = output.document["failures"]
    assert (failure["task"], failure["kind"], failure["fault"]) == (
        "hostile",
        "answer_timeout",
        "candidate",
    )
    tasks = {
        candidate["candidate"]: {task["task"]: task["mean"] for task in candidate["by_task"]}
        for candidate in assay("stats", "--json").document["candidates"]
    }
    assert tasks["ada"]["half"] == tasks["ada"]["square"] == 1
    assert tasks["bob"]["half"] == tasks["bob"]["square"] == 0


def test_math_without_its_extra_is_said_before_the_run(
    assay: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "assay.app.suites.find_spec",
        lambda name: None if name == "math_verify" else find_spec(name),
    )
    (project / "s.yaml").write_text(
        "tasks: [{id: a, expected: 1, score: math, snippets: {p: x}}]", encoding="utf-8"
    )
    output = assay("run", "s.yaml")
    assert output.code == 2
    assert "pip install 'assay-bench[math]'" in output.err


def test_a_suites_own_scorer(assay: Command, project: Path) -> None:
    (project / "scorers.py").write_text(
        "def share(response, reference, options):\n    return len(response) / options['most']\n",
        encoding="utf-8",
    )
    suite = project / "own.yaml"
    suite.write_text(
        'name: own\ntasks: [{id: a, score: {"scorers.py:share": {most: 4}}, snippets: {ada: "ab", bob: "abcd"}}]\n',
        encoding="utf-8",
    )
    assert assay("run", "own.yaml", "--json").code == 0
    means = {c["candidate"]: c["mean"] for c in assay("stats", "--json").document["candidates"]}
    assert means == {"ada": 0.5, "bob": 1.0}
    suite.write_text(
        'tasks: [{id: a, score: "scorers.py:shar", snippets: {ada: "ab"}}]\n', encoding="utf-8"
    )
    output = assay("validate", "own.yaml")
    assert output.code == 2
    assert "Did you mean 'share'" in output.err + output.out
