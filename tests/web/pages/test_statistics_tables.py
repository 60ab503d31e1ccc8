"""The tables of the statistics page: scores by trial, each as CSV, and each number's way down to
its trials.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.contract.stores import a_decision, a_plan, a_task, grades, judged, planned, wait

from assay.app.statistics.csv_tables import TABLES
from assay.app.workspace import Workspace
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.selection import Selection
from assay.web.server import create_app

FORMULA = "=1+1"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Three tasks of two trials; ann gets .2 in every first trial and .6 in every second, bob
    always .5; by two judges.
    """
    with Workspace.open(tmp_path_factory.mktemp("tables"), environment={}) as workspace:
        plan = a_plan(
            "20250101-000000-alpha-aaaa",
            suite="alpha",
            candidates=("ann", FORMULA),
            judges=("mild", "strict"),
        )
        workspace.journal.open_run(
            plan, planned(a_task("auth"), a_task("pay", thing=FORMULA), a_task("mail"), trials=2)
        )
        for trial in workspace.journal.claim(plan.id, limit=10):
            ann = 0.2 if trial.k == 1 else 0.6
            whole = grades(
                {
                    "ann": {"integrity": ann, "fitness": ann},
                    FORMULA: {"integrity": 0.5, "fitness": 0.5},
                }
            )
            for judge in ("mild", "strict"):
                last = judge == "strict"
                wait(
                    workspace.journal.record(
                        judged(
                            trial, whole, grader=judge, state=AssessmentState.EXEMPT, finished=last
                        )
                    )
                )
        yield TestClient(
            create_app(workspace), base_url="http://127.0.0.1:8000", follow_redirects=False
        )


def table(client: TestClient, name: str, query: str = "") -> list[dict[str, Any]]:
    answer = client.get(f"/statistics/tables/{name}.csv{query}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_scores_by_trial_tell_the_first_from_the_second(client: TestClient) -> None:
    by_trial = client.get("/statistics.json").json()["stats"]["diagnostics"]["by_trial"]
    assert [one["trial"] for one in by_trial] == [1, 2]
    ann = [
        next(score["mean"] for score in one["scores"] if score["candidate"] == "ann")
        for one in by_trial
    ]
    assert ann == pytest.approx([0.2, 0.6])
    rows = [row for row in table(client, "trials") if row["candidate"] == "ann"]
    assert [(row["trial"], round(float(row["mean"]), 6), row["trials"]) for row in rows] == [
        ("1", 0.2, "3"),
        ("2", 0.6, "3"),
    ]


def test_a_number_by_trial_leads_to_exactly_its_trials(client: TestClient) -> None:
    page = client.get("/statistics/behind", headers={"accept": "text/html"}).text
    assert "/statistics/trials?candidate=ann&amp;trial=2" in page
    result = client.get("/statistics/trials.json?candidate=ann&trial=2").json()["trials"]
    assert [(row["task"], row["k"], row["scores"]["ann"]) for row in result] == [
        (task, 2, pytest.approx(0.6)) for task in ("auth", "pay", "mail")
    ]
    assert (
        "Trial 2 of each task"
        in client.get("/statistics/trials?trial=2", headers={"accept": "text/html"}).text
    )


@pytest.mark.parametrize("name", TABLES)
def test_each_table_has_a_csv_without_formulas(client: TestClient, name: str) -> None:
    path = "/results" if name == "tasks" else "/statistics/behind"
    page = html.unescape(client.get(path, headers={"accept": "text/html"}).text)
    if name != "attempts":  # stands there only where something was rejected or judged again
        assert re.search(rf'href="/statistics/tables/{name}\.csv[?"]', page)
    rows = table(client, name)
    assert {row["candidate"] for row in rows} == {"ann", f"'{FORMULA}"}
    assert not any(cell.startswith("=") for row in rows for cell in row.values() if cell)


def test_pages_with_their_own_address_have_a_json_twin(client: TestClient) -> None:
    page = client.get("/statistics/behind?task=pay", headers={"accept": "text/html"}).text
    assert 'href="/statistics/behind.json?task=pay"' in page
    behind, first = (
        client.get(f"{path}.json?task=pay").json() for path in ("/statistics/behind", "/statistics")
    )
    assert behind["stats"] == first["stats"]
    assert behind["stats"]["diagnostics"]["by_trial"]
    wrong = client.get("/statistics/behind.json?tusk=pay")
    assert wrong.json()["error"]["remedy"].startswith("Known: a, all_runs, b, batch_id")
    assert (
        client.get("/index.json", follow_redirects=True).json() == client.get("/runs.json").json()
    )


def test_a_table_follows_the_filters_and_an_unknown_one_is_said(client: TestClient) -> None:
    assert {row["task"] for row in table(client, "tasks", "?task=pay")} == {"pay"}
    (judge,) = {row["judge"] for row in table(client, "judges", "?judge=mild")}
    assert judge == "mild"
    answer = client.get("/statistics/tables/task.csv")
    assert answer.status_code == 404
    assert "Did you mean 'tasks'?" in answer.json()["error"]["problem"]


def test_one_trial_a_task_has_no_table_by_trial(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Workspace.open(tmp_path_factory.mktemp("once"), environment={}) as workspace:
        plan = a_plan("20250101-000000-alpha-aaaa", suite="alpha", candidates=("ann",))
        workspace.journal.open_run(plan, planned(a_task("auth")))
        (trial,) = workspace.journal.claim(plan.id, limit=1)
        whole = grades({"ann": {"integrity": 0.2, "fitness": 0.2}})
        wait(workspace.journal.record(judged(trial, whole, state=AssessmentState.EXEMPT)))
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        assert client.get("/statistics.json").json()["stats"]["diagnostics"]["by_trial"] == []
        assert table(client, "trials") == []


def test_tasks_of_several_suites_link_to_their_own_trials(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        for suite in ("alpha", "beta"):
            plan = a_plan(f"20250101-000000-{suite}-aaaa", suite=suite, candidates=("ann",))
            workspace.journal.open_run(plan, planned(a_task("1")))
            (trial,) = workspace.journal.claim(plan.id, limit=1)
            whole = grades({"ann": {"integrity": 0.2, "fitness": 0.2}})
            wait(workspace.journal.record(judged(trial, whole, state=AssessmentState.EXEMPT)))
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")

        def heads(path: str) -> list[str]:
            return re.findall(
                r'<th scope="row">(.*?)</th>',
                client.get(path, headers={"accept": "text/html"}).text,
            )

        matrix = heads("/results?suite=alpha&suite=beta")[-2:]
        assert "<small>alpha</small>" in matrix[0]
        assert "<small>beta</small>" in matrix[1]
        link = html.unescape(re.findall(r'href="(.*?)"', matrix[1])[0])
        assert [
            row["suite"]
            for row in client.get(link.replace("trials", "trials.json")).json()["trials"]
        ] == ["beta"]
        assert all(
            suite in head
            for suite, head in zip(
                ("alpha", "beta"), heads("/statistics/trials?suite=alpha&suite=beta"), strict=True
            )
        )
        drawn = client.get("/statistics/charts/scores.csv?suite=alpha&suite=beta").text
        assert "alpha/1" in drawn
        assert "beta/1" in drawn
        assert not any("<small>" in head for head in heads("/results?suite=alpha")[-1:])
        assert "<small>" not in heads("/statistics/trials?suite=alpha")[0]


def test_versions_of_a_changed_task_can_be_told_apart(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        for place, prompt in enumerate(("First.", "Second.")):
            plan = a_plan(f"20250101-00000{place}-alpha-aaaa", suite="alpha", candidates=("ann",))
            workspace.journal.open_run(plan, planned(a_task("1", prompt=prompt)))
            (trial,) = workspace.journal.claim(plan.id, limit=1)
            whole = grades({"ann": {"integrity": 0.2, "fitness": 0.2}})
            wait(workspace.journal.record(judged(trial, whole, state=AssessmentState.EXEMPT)))
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        page = client.get("/results?all_runs=1&pool_anyway=1", headers={"accept": "text/html"}).text
        assert len(set(re.findall(r"<small>version (\w+)</small>", page))) == 2


@pytest.fixture(scope="module")
def lacking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Six trials whose candidates were graded apart; all of bob's pass, of ann's all but those on
    the first task.
    """
    with Workspace.open(tmp_path_factory.mktemp("lacking"), environment={}) as workspace:
        plan = a_plan(
            "20250101-000000-alpha-bbbb", suite="alpha", candidates=("ann", "bob"), judges=("mild",)
        )
        workspace.journal.open_run(
            plan, planned(a_task("auth"), a_task("pay"), a_task("mail"), trials=2)
        )
        for trial in workspace.journal.claim(plan.id, limit=10):
            for name in ("ann", "bob"):
                own = grades({name: {"integrity": 0.4, "fitness": 0.5}})
                wait(
                    workspace.journal.record(
                        judged(trial, own, grader="mild", candidate=name, finished=name == "bob")
                    )
                )
        workspace.decisions.decide(
            [
                a_decision(
                    Verb.REJECT if (row.task, row.candidate) == ("auth", "ann") else Verb.APPROVE,
                    row.key,
                )
                for row in workspace.archive.assessments.matching(Selection())
            ]
        )
        yield TestClient(
            create_app(workspace), base_url="http://127.0.0.1:8000", follow_redirects=False
        )


def test_trials_rejected_for_one_candidate_only_are_marked(lacking: TestClient) -> None:
    page = lacking.get("/results", headers={"accept": "text/html"}).text
    head = page.partition("<main")[2].partition("</ul>")[0]
    assert "6 trials count (" in head
    assert "up to 2 of them incomplete for a candidate" in head
    assert page.count("2 of its 6 trials have no score that counts") == 1
    assert lacking.get("/statistics.json").json()["incomplete"] == {"ann": 2, "bob": 0}
    assert lacking.get("/statistics.json").json()["stats"]["excluded"]["rejected"] == 0


def test_whole_trials_are_not_called_incomplete(client: TestClient, lacking: TestClient) -> None:
    assert client.get("/statistics.json").json()["incomplete"] == {}
    assert lacking.get("/statistics.json?task=pay").json()["incomplete"] == {}
    for page in (client.get("/results"), lacking.get("/results?task=pay")):
        assert "incomplete" not in page.text.partition("<main")[2].partition("</main>")[0]


@pytest.mark.parametrize(
    ("ending", "begins"),
    [("html", b"<!doctype html"), ("md", b"# "), ("csv", b"task,candidate,"), ("parquet", b"PAR1")],
)
def test_results_are_downloaded_as_a_report_and_as_scores(
    client: TestClient, ending: str, begins: bytes
) -> None:
    page = client.get("/results").text
    (address,) = re.findall(rf'href="(/results/report\.{ending}[^"]*)" download', page)
    answer = client.get(html.unescape(address))
    assert answer.status_code == 200, answer.text
    assert answer.content.lower().startswith(begins.lower()), answer.content[:200]
    assert answer.headers["content-disposition"] == f'attachment; filename="assay-results.{ending}"'


def test_downloaded_scores_follow_the_filters(client: TestClient) -> None:
    whole, some = (client.get(f"/results/report.csv{query}").text for query in ("", "?task=auth"))
    assert len(list(csv.DictReader(io.StringIO(whole)))) == 3 * len(
        list(csv.DictReader(io.StringIO(some)))
    )
    assert client.get("/results/report.exe").status_code == 404
