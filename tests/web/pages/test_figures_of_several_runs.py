"""Figures of several runs: waiting, ungraded and compared trials are right for each run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient
from tests.contract.stores import WEIGHTS, a_decision, a_plan, a_task, grades, judged, planned, wait
from tests.support.commands import printed

from assay.app.statistics import results
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.domain.lifecycle import AssessmentState, RunState, Verb
from assay.domain.run import Entry
from assay.domain.selection import Selection
from assay.web.formatting import with_time_elements
from assay.web.server import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TASKS = tuple(f"task{n}" for n in range(6))


def page(client: TestClient, address: str) -> str:
    """Return the part of a page between its head and its foot."""
    answer = client.get(address, headers={"accept": "text/html"})
    assert answer.status_code == 200
    return answer.text.partition("<main")[2].partition("</main")[0]


def grade_all(
    workspace: Workspace, suite: str, names: Sequence[str], state: AssessmentState | None
) -> None:
    """A run in which each trial is graded alike; with no state nobody grades it."""
    plan = a_plan(f"20250101-000000-{suite}-aaaa", suite=suite, candidates=names)
    workspace.journal.open_run(plan, planned(*(a_task(task) for task in TASKS)))
    for number, trial in enumerate(workspace.journal.claim(plan.id, limit=100)):
        values = {
            name: 0.1 + 0.05 * place + 0.005 * number * place for place, name in enumerate(names)
        }
        whole = grades({name: dict.fromkeys(WEIGHTS, value) for name, value in values.items()})
        entry = (
            Entry(trial=trial.key, finished=True)
            if state is None
            else judged(trial, whole, state=state)
        )
        wait(workspace.journal.record(entry))
    workspace.journal.set_state(plan.id, RunState.FINISHED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[Workspace]:
    """Three that are graded, a run of two others that waits, and answers that nobody graded."""
    with Workspace.open(folder, environment={}) as workspace:
        grade_all(workspace, "alpha", ("ann", "bob", "cas"), AssessmentState.EXEMPT)
        grade_all(workspace, "beta", ("dan", "eve"), AssessmentState.PENDING)
        grade_all(workspace, "gamma", ("ann", "bob"), None)
        yield workspace


@pytest.fixture(scope="module")
def client(store: Workspace) -> TestClient:
    return TestClient(create_app(store), base_url="http://127.0.0.1:8000", follow_redirects=False)


def test_answers_nobody_graded_are_told_apart_from_those_that_wait(
    client: TestClient, folder: Path
) -> None:
    result = page(client, "/results?a=bob&b=ann&all_runs=1")
    assert "6 awaiting review" in result
    assert "6 answers not graded" in result
    excluded = client.get("/statistics.json?all_runs=1").json()["stats"]["excluded"]
    assert (excluded["pending"], excluded["not_graded"], excluded["partly"]) == (6, 6, 0)
    alone = page(client, "/results?suite=alpha&suite=gamma")
    assert "6 answers not graded" in alone
    assert "awaiting review" not in alone
    lines = printed(folder, "stats", "--suite", "alpha", "--suite", "gamma").splitlines()
    assert lines[0].startswith("The newest run of each suite, 20")
    assert lines[1] == "6 trials count; 6 not graded"


def test_a_caveat_stands_only_where_something_of_the_two_waits(
    store: Workspace, client: TestClient, folder: Path
) -> None:
    assert "overstate certainty" not in page(client, "/results?a=bob&b=ann&all_runs=1")
    assert (
        client.get("/statistics.json?a=bob&b=ann&all_runs=1").json()["compare"]["anytime"] is None
    )
    assert (
        results.compare(store.store, store.settings, Selection(all_runs=True), "bob", "ann").anytime
        is None
    )
    assert "overstate certainty" not in printed(folder, "compare", "bob", "ann", "--all-runs")
    assert "6 trials await review" in page(client, "/results?a=dan&b=eve&all_runs=1")
    assert "6 trials await review" in printed(folder, "compare", "dan", "eve")


def test_no_trial_is_missing_to_a_candidate_it_was_never_put_to(tmp_path: Path) -> None:
    header = "task,candidate,trial,score\n"
    pairs = ("ann,bob", "bob,cas", "cas,ann", "ann,bob")
    rows = [f"t{n},{name},1,0.{n}\n" for n, pair in enumerate(pairs) for name in pair.split(",")]
    (tmp_path / "pairs.csv").write_text(header + "".join(rows), "utf-8")
    printed(tmp_path, "import", "pairs.csv")
    with Workspace.open(tmp_path, environment={}) as workspace:
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        assert "no score that counts" not in page(client, "/results")
        assert client.get("/statistics.json").json()["incomplete"] == {}


def test_grades_that_wait_in_trials_that_count_are_told(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        names, judges = ("ann", "bob"), ("first", "second")
        plan = a_plan("20250101-000000-alpha-aaaa", suite="alpha", candidates=names, judges=judges)
        workspace.journal.open_run(plan, planned(*(a_task(task) for task in TASKS)))
        for number, trial in enumerate(workspace.journal.claim(plan.id, limit=100)):
            whole = grades(
                {"ann": dict.fromkeys(WEIGHTS, 0.1 * number), "bob": dict.fromkeys(WEIGHTS, 0.5)}
            )
            first = judged(
                trial, whole, grader="first", state=AssessmentState.EXEMPT, finished=False
            )
            wait(workspace.journal.record(first))
            wait(workspace.journal.record(judged(trial, whole, grader="second")))
        workspace.journal.set_state(plan.id, RunState.FINISHED)
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        result = page(client, "/results")
        assert "6 of them with more grades awaiting review" in result
        assert "6 trials await review" in result
        assert client.get("/statistics.json").json()["stats"]["excluded"]["partly"] == 6
        assert "6 trials count, 6 of them with more grades awaiting review" in printed(
            tmp_path, "stats"
        )


def test_comparison_counts_only_shared_tasks(
    client: TestClient, folder: Path, tmp_path: Path
) -> None:
    made, apart = (
        "3 comparisons were made",
        "7 pairs have no counted tasks in common and are not compared.",
    )
    result = page(client, "/results?suite=alpha&suite=beta&suite=gamma")
    table = result.partition('id="stats-pairs"')[2].partition("</section>")[0]
    assert made in table
    assert apart in table
    assert table.count("<tr>") == 1 + 3
    ranks = client.get("/statistics.json?all_runs=1").json()["rank"]
    assert ranks["comparisons"] == 3 == sum(one["n_tasks"] > 0 for one in ranks["pairs"])
    lines = printed(folder, "rank", "--all-runs")
    assert made in lines
    assert apart in lines
    assert "dan − eve" not in lines
    report = tmp_path / "report.html"
    printed(folder, "export", "html", "--all-runs", "--output", str(report))
    assert made in report.read_text("utf-8")
    assert made in client.get("/statistics/charts/pairs.json?all_runs=1").text


def test_comparison_counts_no_run_in_which_the_two_never_met(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        grade_all(workspace, "alpha", ("ann", "bob"), AssessmentState.EXEMPT)
        grade_all(workspace, "beta", ("ann", "cas"), AssessmentState.EXEMPT)
        grade_all(workspace, "gamma", ("dan", "eve"), AssessmentState.PENDING)
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        document = client.get("/statistics.json?a=bob&b=ann").json()["compare"]
        assert document["runs"] == ["20250101-000000-alpha-aaaa"]
        assert document["excluded"]["pending"] == 0
        told = printed(tmp_path, "compare", "bob", "ann")
        assert told.startswith("Run 20250101-000000-alpha-aaaa of alpha, ")
        assert "\n6 trials count\n" in told
        apart = printed(tmp_path, "compare", "bob", "dan")
        assert "They share no task on which trials of both count" in apart
        assert apart.startswith("No run matches\n")
        assert "\nNo trials count yet\n" in apart
        assert "At least one of the two has no trials that count" in page(
            client, "/results?a=bob&b=dan"
        )


def test_pooled_settings_are_named_by_judge_and_run(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        for number, (judges, temperature) in enumerate(
            ((("judge",), 0.1), (("judge",), 0.5), ((), 0.1), (("idle",), 0.1))
        ):
            plan = a_plan(
                f"2025010{number + 1}-000000-alpha-aaaa",
                judges=judges,
                judge_temperature=temperature,
            )
            workspace.journal.open_run(plan, planned(a_task("auth")))
            state = AssessmentState.PENDING if judges == ("idle",) else AssessmentState.NOT_REQUIRED
            wait(
                workspace.journal.record(
                    judged(workspace.journal.claim(plan.id, limit=1)[0], state=state)
                )
            )
        with pytest.raises(
            InputError, match=r"differ in the judge \(.*no judge in 20250103-000000-alpha-aaaa\)"
        ):
            results.stats(workspace.store, workspace.settings, Selection(all_runs=True))
        pooled = results.stats(
            workspace.store, workspace.settings, Selection(all_runs=True, pool_anyway=True)
        )
        (mixed,) = (each.text for each in pooled.basis.cautions if each.code == "mixed_settings")
    assert mixed == (
        "3 different judges, rubrics, prompts or parameters are pooled: judge judge in 20250101-000000-alpha-aaaa; "
        "judge judge in 20250102-000000-alpha-aaaa; no judge in 20250103-000000-alpha-aaaa. Select one judge or one run."
    )


def test_unseen_trials_are_not_called_approved_in_any_report(
    folder: Path, tmp_path: Path, store: Workspace
) -> None:
    for kind, more in (
        ("html", ()),
        ("markdown", ()),
        ("latex", ()),
        ("junit", ("--threshold", "0.99")),
    ):
        report = tmp_path / kind
        command = ("export", kind, "--suite", "alpha", *more, "--output", str(report))
        printed(folder, *command)
        text = report.read_text("utf-8").partition("<footer>")[0]
        assert "6 trials" in text
        assert "approved" not in text.replace("none approved by a person", "")


def test_pairs_beyond_the_first_twenty_are_counted(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        grade_all(workspace, "many", [f"c{n}" for n in range(12)], AssessmentState.EXEMPT)
        result = page(
            TestClient(create_app(workspace), base_url="http://127.0.0.1:8000"), "/results"
        )
        pairs = result.partition('id="stats-pairs"')[2].partition("</section>")[0]
        assert pairs.count("<tr>") == 1 + 20
        assert "46 more pairs" in pairs


def test_one_trial_of_each_task_asks_for_a_second_and_not_for_an_approval(
    client: TestClient, folder: Path, tmp_path: Path
) -> None:
    lacks = "A range for exactly these tasks needs a second trial of each."
    how = "assay extend 20250101-000000-alpha-aaaa --trials 1"
    result = page(client, "/results?suite=alpha&scope=these-tasks&a=bob&b=ann")
    assert lacks in result
    assert how in result
    assert (
        how
        in client.get("/statistics.json?suite=alpha&scope=these-tasks&a=bob&b=ann").json()[
            "compare"
        ]["verdict"]
    )
    told = printed(folder, "compare", "bob", "ann", "--suite", "alpha", "--scope", "these-tasks")
    assert lacks in told
    assert how in told
    assert "Approve at least one" not in result + told
    rows = [
        f"t{n},{name},1,0.{n + place}\n"
        for n in range(6)
        for place, name in enumerate(("ann", "bob"))
    ]
    (tmp_path / "once.csv").write_text("task,candidate,trial,score\n" + "".join(rows), "utf-8")
    printed(tmp_path, "import", "once.csv")
    imported = printed(tmp_path, "compare", "bob", "ann", "--scope", "these-tasks")
    assert lacks in imported
    assert "extend" not in imported


def test_a_cell_of_a_run_says_whether_anybody_approved_it(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        plan = a_plan("20250101-000000-alpha-aaaa", suite="alpha")
        workspace.journal.open_run(plan, planned(*(a_task(task) for task in TASKS)))
        states = (
            AssessmentState.NOT_REQUIRED,
            AssessmentState.NOT_REQUIRED,
            AssessmentState.EXEMPT,
            AssessmentState.PENDING,
        )
        for trial, state in zip(workspace.journal.claim(plan.id, limit=4), states, strict=True):
            wait(workspace.journal.record(judged(trial, state=state)))
        waiting = [
            row.key
            for row in workspace.archive.assessments.matching(Selection())
            if row.state is AssessmentState.PENDING
        ]
        workspace.decisions.decide([a_decision(Verb.APPROVE, key) for key in waiting])
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        words = ["scored by rule", "scored by rule", "not reviewed", "approved"]
        result = page(client, f"/runs/{plan.id}")
        assert re.findall('aria-label="[^"]*Trial 1: ([^",]*)[^"]*"', result) == words
        assert re.findall('class="word">([^<]*)<', result) == ["planned", "planned"]
        tallies = re.sub("<[^>]*>", "", result.partition('class="tally"')[2].partition("</p>")[0])
        assert "2 scored by rule" in tallies
        assert "1 not reviewed" in tallies
        cells = [
            cell["state"]
            for task in client.get(f"/runs/{plan.id}.json").json()["tasks"]
            for cell in task["cells"]
        ]
        assert cells == ["not_required", "not_required", "exempt", "approved", "pending", "pending"]


def test_two_times_in_one_minute_are_one_element() -> None:
    times = ("2026-11-24T23:56:36Z", "2026-11-24T23:56:38Z")
    html = str(with_time_elements("2 runs pooled, 2026-11-24 23:56 UTC", times))
    assert html.count("<time ") == html.count("</time>") == 1
    assert re.sub(r"<[^<>]*>", "", html) == "2 runs pooled, 2026-11-24 23:56 UTC"
