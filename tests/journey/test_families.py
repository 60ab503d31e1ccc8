"""Tasks in families: the field arrives from suites, sets, tables, mappings and logs, and reaches
the statistics.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assay.analysis.columns import TaskLabel
from assay.app.workspace import Workspace
from assay.domain.selection import Selection
from assay.domain.suite import Scoring, Task
from assay.exchange.readers.agent_runs import agent_run
from assay.web.api.evaluations import SubmissionBody
from assay.web.api.received_runs import FinishedRun
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.support.model_server import ModelServer
from tests.support.read_files import read_files
from tests.support.sets import write_set


def labels(project: Path) -> dict[str, str]:
    """Family by task, as statistics see it."""
    with Workspace.open(options={"store": f"sqlite:///{project}/.assay/assay.db"}) as workspace:
        tasks: tuple[TaskLabel, ...] = workspace.archive.scores.columns(Selection()).tasks
    return {label.task: label.family for label in tasks}


def write_scores(path: Path, rows: list[dict[str, Any]]) -> Path:
    names = list(rows[0])
    lines = [",".join(names), *(",".join(str(row[name]) for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


SUITE = """
name: reading
tasks:
  - {id: q1, expected: "4", score: exact, family: passage-1, snippets: {ann: "4", bob: "5"}}
  - {id: q2, expected: "4", score: exact, family: 7, snippets: {ann: "4", bob: "5"}}
  - {id: q3, expected: "4", score: exact, snippets: {ann: "4", bob: "5"}}
"""


def test_family_enters_the_digest_only_where_given() -> None:
    plain = Task(id="a", thing="a", prompt=(), scoring=Scoring(method="exact"))
    # Computed before tasks had families; the field must not change the digests of tasks without
    # one.
    assert plain.digest == "4753b4a422f0226e50def1dc223a3dcb"
    grouped = Task(
        id="a", thing="a", prompt=(), scoring=Scoring(method="exact"), family="passage-1"
    )
    assert grouped.digest != plain.digest


def test_suite_tasks_carry_their_family(assay: Command, project: Path) -> None:
    (project / "reading.yaml").write_text(SUITE, encoding="utf-8")
    assert assay("run", "reading.yaml").code == 0
    assert labels(project) == {"q1": "passage-1", "q2": "7", "q3": ""}
    exported = assay("export", "hf_jsonl")
    rows = [json.loads(line) for line in exported.out.splitlines()]
    assert {row["task"]: row["family"] for row in rows} == {
        "q1": "passage-1",
        "q2": "7",
        "q3": None,
    }
    assert assay("export", "inspect", "--output", "logs").code == 0
    assert {task.id: task.family for task in read_files(project / "logs").tasks} == labels(project)


def test_things_of_a_set_carry_their_family(
    assay: Command, server: ModelServer, project: Path
) -> None:
    path = write_set(project, things=2, candidates=2, trials=1)
    first, second = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps([first | {"family": "limits"}, second]), "utf-8")
    assert assay("run", path, "--judge", "openai/judge").code == 0
    assert sorted(labels(project).values()) == ["", "limits"]
    assert [task.family for task in read_files(path).tasks] == ["limits", ""]


def test_task_file_rows_carry_their_family(assay: Command, project: Path) -> None:
    (project / "tasks.csv").write_text("name,answer,source\nq1,4,p1\nq2,4,p1\n", encoding="utf-8")
    suite = {
        "name": "mapped",
        "candidates": ["echo"],
        "tasks": {
            "file": "tasks.csv",
            "map": {"id": "name", "prompt": "answer", "expected": "answer", "family": "source"},
            "score": "exact",
        },
    }
    (project / "mapped.json").write_text(json.dumps(suite), encoding="utf-8")
    assert assay("run", "mapped.json").code == 0
    assert labels(project) == {"q1": "p1", "q2": "p1"}


@pytest.mark.parametrize("as_map", [False, True])
def test_imported_tables_carry_families(assay: Command, project: Path, as_map: bool) -> None:
    column = "passage" if as_map else "family"
    rows = [
        {"task": f"t{i}", "candidate": name, "trial": 1, "score": 0.5, column: f"p{i // 2}"}
        for i in range(4)
        for name in ("ann", "bob")
    ]
    path = write_scores(project / "scores.csv", rows)
    given: list[object] = []
    if as_map:
        mapping = {"task": "task", "candidate": "candidate", "score": "score", "family": "passage"}
        (project / "map.json").write_text(json.dumps(mapping), encoding="utf-8")
        given = ["--map", "map.json"]
    assert assay("import", path, *given).code == 0
    expected = {"t0": "p0", "t1": "p0", "t2": "p1", "t3": "p1"}
    assert labels(project) == expected
    # What is exported carries the families into another store.
    assert assay("export", "csv", "--output", "out.csv").code == 0
    assert assay("import", "out.csv", "--store", ".assay/assay.db").code == 0
    assert labels(project) == expected


def test_a_later_table_with_another_family_has_another_task(assay: Command, project: Path) -> None:
    row = {"task": "t", "candidate": "ann", "trial": 1, "score": 0.5}
    assert assay("import", write_scores(project / "scores.csv", [row | {"family": "p0"}])).code == 0
    other = row | {"candidate": "bob", "family": "p1"}
    assert (
        assay("import", write_scores(project / "later.csv", [other]), "--dataset", "scores").code
        == 0
    )
    with Workspace.open(project) as workspace:
        tasks = workspace.archive.scores.columns(Selection()).tasks
    assert sorted(label.family for label in tasks) == ["p0", "p1"]


def test_two_families_of_one_task_are_refused(assay: Command, project: Path) -> None:
    rows = [
        {"task": "t", "candidate": "ann", "trial": 1, "score": 0.5, "family": "p0"},
        {"task": "t", "candidate": "bob", "trial": 1, "score": 0.5, "family": "p1"},
    ]
    answer = assay("import", write_scores(project / "scores.csv", rows), "--json")
    assert answer.code == 1
    (skipped,) = answer.document["skipped"]
    assert "'p1'" in skipped["why"]
    assert "'p0'" in skipped["why"]


PASSAGES, QUESTIONS = 8, 6


def reading_scores(project: Path, *, passages: int = PASSAGES, **column: str) -> Path:
    """Scores of two equal candidates on questions about passages; a passage moves all of its
    questions.
    """
    draw = random.Random(20261122)
    rows = []
    for passage in range(passages):
        shift = {name: draw.gauss(0, 0.12) for name in ("ann", "bob")}
        for question in range(QUESTIONS):
            for name, moved in shift.items():
                for trial in (1, 2):
                    score = min(max(0.5 + moved + draw.gauss(0, 0.05), 0.0), 1.0)
                    row = {
                        "task": f"p{passage}q{question}",
                        "candidate": name,
                        "trial": trial,
                        "score": f"{score:.3f}",
                    }
                    rows.append(row | {key: value.format(passage) for key, value in column.items()})
    return write_scores(project / "reading.csv", rows)


def test_families_reach_every_answer(assay: Command, project: Path) -> None:
    assert assay("import", reading_scores(project, family="passage-{}")).code == 0
    document = assay("compare", "ann", "bob", "--json").document
    assert (document["n_tasks"], document["n_families"], document["method"]) == (
        48,
        8,
        "cr2_families_paired_t",
    )
    assert document["df"] == pytest.approx(7.0)
    (line,) = [warning["text"] for warning in document["warnings"] if warning["code"] == "families"]
    assert line.startswith("48 tasks in 8 families, an effective sample of 8.0")
    (mean, _) = assay("stats", "--json").document["candidates"]
    assert (mean["n_families"], mean["n_eff"], mean["method"]) == (
        8,
        pytest.approx(8.0),
        "cr2_families_logit_t",
    )
    (pair,) = assay("plan", "--detect", "0.05", "--json").document["pairs"]
    assert pair["tasks_needed"] == QUESTIONS * pair["families_needed"]
    for command in (["stats"], ["compare", "ann", "bob"], ["rank"], ["plan", "--detect", "5pts"]):
        assert "48 tasks in 8 families" in assay(*command).out
    assert (
        f"{pair['tasks_needed']} tasks like these from {pair['families_needed']} families"
        in pair["words"]
    )
    assert assay("export", "markdown", "--output", "report.md").code == 0
    assert assay("export", "html", "--output", "report.html").code == 0
    for name in ("report.md", "report.html"):
        assert "48 tasks in 8 families" in (project / name).read_text(encoding="utf-8")


def test_three_families_are_refused_in_words(assay: Command, project: Path) -> None:
    assert assay("import", reading_scores(project, passages=3, family="passage-{}")).code == 0
    answer = assay("compare", "ann", "bob")
    assert "needs at least 4 families of tasks, but there are 3" in answer.out
    assert (
        "about tasks like these: Fewer than four families of tasks say nothing about other tasks"
        in answer.out
    )
    asked = assay("compare", "ann", "bob", "--scope", "tasks-like-these", "--json").document
    assert (asked["ci95"], asked["p_value"], asked["reason"]) == (
        None,
        None,
        "need_at_least_4_families",
    )
    (pair,) = assay("rank", "--scope", "tasks-like-these", "--json").document["pairs"]
    assert (pair["p_value"], pair["decision"]) == (None, "not_decided")


def tagged(assay: Command, project: Path) -> None:
    tasks = [
        f"  - {{id: q{i}, expected: '4', score: exact, tags: [easy, 'source:p{i // 2}'], category: c{i // 3}, "
        f"snippets: {{ann: '{4 if i % 3 else 5}', bob: '{4 if i % 4 else 5}'}}}}"
        for i in range(12)
    ]
    (project / "tagged.yaml").write_text(
        "\n".join(["name: tagged", "tasks:", *tasks]), encoding="utf-8"
    )
    assert assay("run", "tagged.yaml").code == 0


@pytest.mark.parametrize(("rule", "n_families"), [("tag:source", 6), ("metadata:category", 4)])
def test_families_come_from_tags_or_metadata(
    assay: Command, project: Path, rule: str, n_families: int
) -> None:
    tagged(assay, project)
    assert assay("compare", "ann", "bob", "--json").document["n_families"] is None
    for command in (
        ["compare", "ann", "bob"],
        ["gate", "ann", "--against", "bob", "--margin", "0.1"],
    ):
        assert assay(*command, "--family-by", rule, "--json").document["n_families"] == n_families
    assert f"12 tasks in {n_families} families" in assay("rank", "--family-by", rule).out
    assert assay("export", "csv", "--output", "out.csv", "--family-by", rule).code == 0
    families = {
        line.split(",")[9]
        for line in (project / "out.csv").read_text(encoding="utf-8").splitlines()[1:]
    }
    assert len(families) == n_families


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("source", "'source' is not a rule for families"),
        (
            "tag:passage",
            "no selected task has a tag that begins with 'passage:'. Their tags: easy, source:p0",
        ),
        ("tag", "gives task 'q0' several families: easy, source:p0"),
        ("metadata:passage", "no selected task has metadata 'passage'. Their metadata: category"),
    ],
)
def test_rules_that_fit_no_task_are_refused(
    assay: Command, project: Path, rule: str, words: str
) -> None:
    tagged(assay, project)
    answer = assay("stats", "--family-by", rule)
    assert answer.code == 2
    assert words in answer.err


def test_statistics_page_names_families(assay: Command, project: Path) -> None:
    tagged(assay, project)
    with (
        Workspace.open(options={"store": f"sqlite:///{project}/.assay/assay.db"}) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client,
    ):
        page = client.get("/results", params={"family_by": "tag:source"})
        assert "12 tasks in 6 families, an effective sample of 6.0" in page.text
        document = client.get("/statistics.json", params={"family_by": "tag:source"})
        assert "12 tasks in 6 families" in document.text
        assert "12 tasks in" not in client.get("/statistics.json").text
        refused = client.get("/statistics.json", params={"family_by": "tag:nothing"})
        assert refused.status_code == 422
        assert "nothing:" in refused.text


def test_family_comes_with_a_submission_and_a_finished_run() -> None:
    body = SubmissionBody.model_validate(
        {"thingName": "Limiter", "snippets": {"ann": "def a()"}, "family": "limits"}
    )
    assert body.submission().family == "limits"
    finished = {
        "suite": "deps",
        "scenario": "pnpm",
        "agent": "a",
        "family": "monorepo",
        "status": "success",
    }
    assert FinishedRun.model_validate(finished).model_dump()["family"] == "monorepo"
    assert agent_run(finished).task.family == "monorepo"


def test_a_task_entered_ten_times_counts_once(assay: Command, project: Path) -> None:
    copies = [
        f"  - {{id: q{i}, prompt: 'What is 2 + 2?', expected: '4', score: exact, snippets: {{ann: '4', bob: '5'}}}}"
        for i in range(10)
    ]
    others = [
        f"  - {{id: r{i}, prompt: 'What is {i} + 1?', expected: '{i + 1}', score: exact, snippets: {{ann: '{i + 1}', bob: '0'}}}}"
        for i in range(4)
    ]
    (project / "copies.yaml").write_text(
        "\n".join(["name: copies", "tasks:", *copies, *others]), encoding="utf-8"
    )
    assert assay("run", "copies.yaml").code == 0
    document = assay("compare", "ann", "bob", "--json").document
    assert (document["n_tasks"], document["n_families"], document["decision"]) == (
        14,
        5,
        "not_decided",
    )
    assert document["reason"] in ("zero_variance", "need_at_least_2_effective_tasks")
    for command in (["stats"], ["compare", "ann", "bob"], ["rank"]):
        assert "10 of 14 tasks are copies of one task" in assay(*command).out


def test_a_single_task_under_ten_ids_decides_nothing(assay: Command, project: Path) -> None:
    tasks = [
        f"  - {{id: q{i}, prompt: 'What is 2 + 2?', expected: '4', score: exact, snippets: {{ann: '4', bob: '5'}}}}"
        for i in range(10)
    ]
    (project / "one.yaml").write_text("\n".join(["name: one", "tasks:", *tasks]), encoding="utf-8")
    assert assay("run", "one.yaml").code == 0
    document = assay("compare", "ann", "bob", "--json").document
    assert (document["n_families"], document["decision"], document["ci95"]) == (
        1,
        "not_decided",
        None,
    )
    (pair,) = assay("rank", "--json").document["pairs"]
    assert pair["decision"] == "not_decided"
