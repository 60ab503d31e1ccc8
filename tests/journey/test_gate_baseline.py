"""A branch against main: the same candidate in two runs, as a pipeline asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.statistics import ScoreTable, compare
from tests.journey.conftest import Command

TASKS = 8


def write_suite(
    project: Path, name: str, *, right: set[int], prompts: dict[int, str] | None = None, **more: Any
) -> str:
    """Write a suite of eight sums; `bot` is right on these, and wrong on the others."""
    tasks = [
        {
            "id": f"sum-{i}",
            "prompt": (prompts or {}).get(i, f"What is {i} + {i}?"),
            "expected": f"^{2 * i}$",
            "score": "regex",
            "snippets": {"bot": str(2 * i) if i in right else f"{2 * i}?", "other": str(2 * i)},
        }
        for i in range(TASKS)
    ]
    (project / name).write_text(
        json.dumps({"name": "sums", "trials": 2, "tasks": tasks, **more}), "utf-8"
    )
    return name


def run(assay: Command, suite: str, *options: str) -> str:
    return str(assay("run", suite, *options, "--json").document["run_id"])


@pytest.fixture
def main_run(assay: Command, project: Path) -> str:
    return run(
        assay, write_suite(project, "main.json", right=set(range(TASKS))), "--batch-id", "main"
    )


def test_gate_passes_against_an_equal_baseline(
    assay: Command, project: Path, main_run: str
) -> None:
    same = run(assay, "main.json")
    answer = assay("gate", "bot", "--baseline", main_run, "--margin", "35pts", "--json")
    assert answer.code == 0
    document = answer.document
    assert (document["passed"], document["n_tasks"], document["difference"]) == (True, TASKS, 0.0)
    assert (document["a"], document["b"]) == ("bot", f"bot in {main_run}")
    assert document["baseline"] == [main_run]
    assert set(document["runs"]) == {main_run, same}
    first, verdict, *_ = assay(
        "gate", "BOT", "--baseline", main_run, "--margin", "35pts"
    ).out.splitlines()
    assert first.startswith("2 runs compared, 20")
    assert f"{same} (16), {main_run} (16)" in first
    assert verdict.startswith(
        f"Gate passed: bot is not worse than bot in {main_run} by more than 35 points."
    )


def test_too_few_ties_for_the_margin_are_undecided(
    assay: Command, project: Path, main_run: str
) -> None:
    run(assay, "main.json")
    gate = ("gate", "bot", "--baseline", main_run, "--margin", "3pts")
    answer = assay(*gate, "--json")
    assert answer.code == 0
    document = answer.document
    assert (document["passed"], document["outcome"]) == (False, "undecided")
    # binomtest(0, 8, alternative="less").proportion_ci("exact").high of SciPy
    assert document["smallest_margin"] == pytest.approx(0.3123440, abs=1e-6)
    assert document["tasks_needed"] == 99
    assert assay(*gate, "--on-undecided", "fail").code == 4
    note = assay(*gate).out
    assert "The smallest margin that this data could pass is 31.2 points." in note
    assert "99 tasks in all would pass if all are ties, as these are." in note


def test_gate_fails_when_the_branch_is_worse(assay: Command, project: Path, main_run: str) -> None:
    branch = run(assay, write_suite(project, "branch.json", right={0, 3}))
    failed = assay(
        "gate", "bot", "--baseline", "latest:main", "--run", branch, "--margin", "3pts", "--json"
    )
    assert failed.code == 3
    assert failed.document["outcome"] == "worse"
    table = ScoreTable.from_columns(
        task=[i for i in range(TASKS) for _ in range(4)],
        candidate=["new", "new", "old", "old"] * TASKS,
        trial=["n1", "n2", "o1", "o2"] * TASKS,
        score=[
            value for i in range(TASKS) for value in ([1.0 if i in {0, 3} else 0.0] * 2 + [1.0] * 2)
        ],
    )
    wanted = compare(table, "new", "old", None, 0.03)
    document = failed.document
    assert document["difference"] == pytest.approx(wanted.difference)
    assert document["ci95"] == pytest.approx(list(wanted.ci95 or ()))
    assert document["p_value"] == pytest.approx(wanted.p_value)
    assert (
        assay("gate", "other", "--baseline", "main", "--run", branch, "--margin", "3pts").code == 0
    )


def test_gate_takes_batch_and_margin_from_the_runs(assay: Command, project: Path) -> None:
    run(
        assay,
        write_suite(project, "main.json", right=set(range(TASKS)), margin=0.35),
        "--batch-id",
        "main",
    )
    run(assay, "main.json", "--batch-id", "main")
    branch = run(assay, "main.json")
    document = assay("gate", "bot", "--baseline", "main", "--json").document
    assert (document["passed"], document["margin"]) == (True, 0.35)
    assert len(document["baseline"]) == 2
    assert branch in document["runs"]
    assert document["n_trials_b"] == 2 * document["n_trials_a"]


def test_gate_refuses_changed_tasks(assay: Command, project: Path, main_run: str) -> None:
    run(
        assay,
        write_suite(
            project, "branch.json", right=set(range(TASKS)), prompts={5: "What is five and five?"}
        ),
    )
    gate = ("gate", "bot", "--baseline", "latest:main", "--margin", "3pts")
    refused = assay(*gate)
    assert refused.code == 2
    assert "differ in the tasks (changed: sum-5)" in refused.err
    document = assay(*gate, "--pool-anyway", "--json").document
    assert document["n_tasks"] == TASKS - 1
    texts = [
        warning["text"] for warning in document["warnings"] if warning["code"] == "task_changed"
    ]
    assert texts == [
        "sum-5: the text of the task has changed since the baseline, so it is not compared."
    ]
    assert document["warnings"][0]["code"] == "pooled_anyway"
    verdicts = assay(*gate, "--pool-anyway").out.splitlines()[1:3]
    assert all(
        line.startswith("Mixed runs, which differ in the tasks (changed: sum-5): ")
        for line in verdicts
    )


def test_gate_refuses_a_run_without_some_tasks_of_its_baseline(
    assay: Command, project: Path, main_run: str
) -> None:
    part = run(assay, "main.json", "--limit", "6")
    gate = ("gate", "bot", "--baseline", main_run, "--run", part, "--margin", "3pts")
    refused = assay(*gate)
    assert refused.code == 2
    assert "differ in the tasks (only in some of the runs: sum-6, sum-7)" in refused.err
    assert "--pool-anyway" in refused.err
    assert assay(*gate, "--task", "sum-1").code == 0
    # New tasks are not compared, and hide no loss.
    assert assay("gate", "bot", "--baseline", part, "--run", main_run, "--margin", "3pts").code == 0


def test_gate_refuses_another_scorer_and_allows_another_prompt(
    assay: Command, project: Path, main_run: str
) -> None:
    path = project / write_suite(
        project, "branch.json", right=set(range(TASKS)), system_prompt="Answer with a number."
    )
    assert (
        assay(
            "gate",
            "bot",
            "--baseline",
            main_run,
            "--run",
            run(assay, "branch.json"),
            "--margin",
            "3pts",
        ).code
        == 0
    )
    path.write_text(
        path.read_text("utf-8").replace('"score": "regex"', '"score": "contains"'), "utf-8"
    )
    new = run(assay, "branch.json")
    gate = ("gate", "bot", "--baseline", main_run, "--run", new, "--margin", "3pts")
    refused = assay(*gate)
    assert refused.code == 2
    assert f"differ in the scorer (regex in {main_run}; contains in {new})" in refused.err
    labelled = assay(*gate, "--pool-anyway", "--json").document
    assert labelled["verdict"].startswith("Mixed runs, which differ in the scorer")
    assert labelled["read"]["differences"].startswith("the scorer (regex in ")


def test_gate_counts_only_approved_trials_of_both_runs(assay: Command, project: Path) -> None:
    grade = {"score": 9, "reason": "fits"}
    reply = {
        "candidates": {"{{label:bot}}": {"good": grade}, "{{label:other}}": {"good": grade}},
        "report": "Both fit.",
    }
    recorded = json.dumps({"match": {"role": "judge"}, "reply": {"text": reply}}) + "\n"
    (project / "judge.jsonl").write_text(recorded, "utf-8")
    tasks = [
        {"id": f"t{i}", "context": f"c{i}", "snippets": {"bot": "a", "other": "b"}}
        for i in range(2)
    ]
    suite = {
        "name": "judged",
        "trials": 2,
        "judge": "replay/judge.jsonl",
        "rubric": ["good"],
        "tasks": tasks,
    }
    (project / "judged.json").write_text(json.dumps(suite), "utf-8")
    first, second = run(assay, "judged.json"), run(assay, "judged.json")
    waiting = assay("review", "list", "--run", first, "--json").document["assessments"]
    assay("review", "approve", *(row["id"] for row in waiting))
    refused = assay("gate", "bot", "--baseline", first, "--margin", "3pts", "--json")
    assert (refused.code, refused.document["reason"]) == (0, "no_approved_trials")
    assert refused.document["outcome"] == "undecided"
    assert (
        assay("gate", "bot", "--baseline", first, "--margin", "3pts", "--on-undecided", "fail").code
        == 4
    )
    assert refused.document["excluded"]["pending"] == 4
    waiting = assay("review", "list", "--run", second, "--json").document["assessments"]
    assay("review", "approve", *(row["id"] for row in waiting[:2]))
    counted = assay("gate", "bot", "--baseline", first, "--margin", "3pts", "--json").document
    assert (counted["n_trials_a"], counted["excluded"]["pending"]) == (2, 2)


def test_gate_names_what_is_wrong_with_its_baseline(
    assay: Command, project: Path, main_run: str
) -> None:
    def complaint(*options: str) -> str:
        answer = assay("gate", "bot", *options)
        assert answer.code == 2, answer
        return answer.err

    assert "either --against B or --baseline RUN" in complaint("--margin", "3pts")
    assert "either" in complaint("--margin", "3pts", "--against", "other", "--baseline", main_run)
    assert "there is no run or batch 'mian'. Did you mean 'main'?" in complaint(
        "--baseline", "mian", "--run", main_run
    )
    assert "compared with itself" in complaint(
        "--baseline", main_run, "--run", main_run, "--margin", "3pts"
    )
    no_other = complaint("--baseline", "latest:main", "--margin", "3pts")
    assert "batch 'main' has no other finished run of sums" in no_other
    run(assay, "main.json")
    assert "--margin: is missing" in complaint("--baseline", main_run)
    assert "--margin: is missing" in complaint("--against", "other")


def test_diff_calls_no_candidate_worse_if_the_scorer_changed(
    assay: Command, project: Path, main_run: str
) -> None:
    path = project / write_suite(project, "branch.json", right=set())
    path.write_text(
        path.read_text("utf-8").replace('"score": "regex"', '"score": "exact"'), "utf-8"
    )
    worse = run(assay, "branch.json")
    refused = assay("diff", main_run, worse, "--exit-code")
    assert refused.code == 2
    assert f"the runs differ in the scorer (regex in {main_run}; exact in {worse})" in refused.err
    shown = assay("diff", main_run, worse)
    assert (
        shown.code,
        f"The runs differ in the scorer (regex in {main_run}; exact in {worse}), so a change"
        in shown.out,
    ) == (0, True)
    assert "shared tasks), measured differently\n" in shown.out
    assert "shared tasks), worse" not in shown.out


def test_diff_exit_code_reports_a_shown_loss(assay: Command, project: Path, main_run: str) -> None:
    worse = run(assay, write_suite(project, "branch.json", right=set()))
    assert assay("diff", main_run, worse, "--exit-code").code == 3
    assert assay("diff", main_run, worse).code == 0
    assert assay("diff", worse, main_run, "--exit-code").code == 0
