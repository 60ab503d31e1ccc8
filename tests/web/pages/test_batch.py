"""A batch's page: its matrix of tasks against trials and candidates; paged, down to the
assessment.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from tests.contract.stores import a_plan, a_task, grades, judged, planned, wait
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, Watch

from assay.app.registry import batch_matrix
from assay.app.workspace import Workspace
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState
from assay.domain.run import Entry
from assay.web.server import create_app

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

OLD, NEW = "20250101-000000-alpha-aaaa", "20250201-000000-alpha-bbbb"
HOSTILE = "<img src=x onerror=alert(1)></script>\u202e"


def fill(folder: Path) -> Workspace:
    """A batch of two runs of a suite: the older counts but for a failed trial, of the newer the
    second task waits.
    """
    workspace = Workspace.open(folder, environment={})
    tasks = [a_task("auth", thing=HOSTILE), a_task("pay"), a_task("mail")]
    workspace.journal.open_run(
        a_plan(OLD, suite="alpha", batch_id="b/1", candidates=("ann", "bob")),
        planned(*tasks, trials=2),
    )
    for number, trial in enumerate(workspace.journal.claim(RunId(OLD), limit=10)):
        if number == 5:
            failure = Failure(kind="timeout", fault=Fault.PROVIDER, detail="too slow", tries=1)
            wait(workspace.journal.record(Entry(trial=trial.key, failure=failure, finished=True)))
            continue
        whole = {
            "ann": {"integrity": 0.8, "fitness": 0.8},
            "bob": {"integrity": 0.2, "fitness": 0.2 + 0.1 * number},
        }
        wait(workspace.journal.record(judged(trial, grades(whole), state=AssessmentState.EXEMPT)))
    newer = a_plan(
        NEW, suite="alpha", batch_id="b/1", candidates=("zoe",), started="2025-02-01T00:00:00.000Z"
    )
    workspace.journal.open_run(newer, planned(tasks[1]))
    (trial,) = workspace.journal.claim(RunId(NEW), limit=1)
    wait(
        workspace.journal.record(judged(trial, grades({"zoe": {"integrity": 0.9, "fitness": 0.9}})))
    )
    return workspace


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with fill(tmp_path) as workspace:
        yield TestClient(
            create_app(workspace), base_url="http://127.0.0.1:8000", follow_redirects=False
        )


def tasks_of(answer: Any) -> dict[str, list[Any]]:
    """By task, its trials as (run, number, state, score)."""
    return {
        one["task"]: [
            (trial["run_id"], trial["trial"], trial["state"], trial["score"])
            for trial in one["trials"]
        ]
        for one in answer["matrix"]["tasks"]
    }


def test_batch_shows_each_task_s_trials_with_state_and_score(client: TestClient) -> None:
    result = tasks_of(client.get("/batches/b%2F1.json").json())
    assert list(result) == ["pay", "auth", "mail"], "the newest run's tasks first, each once"
    assert result["auth"] == [
        (OLD, 1, "approved", pytest.approx(0.5)),
        (OLD, 2, "approved", pytest.approx(0.525, abs=0.03)),
    ]
    assert [row[2] for row in result["mail"]] == ["approved", "failed"]
    assert result["mail"][1][3] is None, "what failed has no score, and none is 0"
    page = client.get("/batches/b%2F1", headers={"accept": "text/html"}).text
    assert f'href="/runs/{OLD}/trials/t' in page
    assert f'href="/runs/{OLD}#t' in page
    alone = tasks_of(client.get("/batches/b%2F1.json?candidate=ann").json())
    assert alone["auth"][0][3] == pytest.approx(0.8)


def test_batch_names_candidates_but_no_score_while_trials_wait(client: TestClient) -> None:
    document = client.get("/batches/b%2F1.json").json()
    assert tasks_of(document)["pay"][0] == (NEW, 1, "needs_review", None)
    page = client.get("/batches/b%2F1?across=candidates", headers={"accept": "text/html"}).text
    assert "zoe" in page
    assert "0.9" not in page.partition("matrix-title")[2]
    assert (
        client.get("/batches/b%2F1?candidate=zoe", headers={"accept": "text/html"}).status_code
        == 200
    )
    assert client.get("/batches/b%2F1?suite=alfa").status_code == 404


def test_candidates_stand_across_with_their_means_and_how_many_count(client: TestClient) -> None:
    (pay, auth, mail) = client.get("/batches/b%2F1.json").json()["matrix"]["tasks"]
    assert auth["candidates"]["ann"] == {"mean": pytest.approx(0.8), "n_trials": 2}
    assert mail["candidates"]["ann"]["n_trials"] == 1
    assert set(pay["candidates"]) == {"ann", "bob"}
    page = client.get("/batches/b%2F1?across=candidates", headers={"accept": "text/html"}).text
    assert "/statistics/trials?batch_id=b%2F1&amp;task=auth&amp;candidate=ann" in page


def test_a_long_batch_comes_in_pages_of_tasks_and_runs(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_matrix, "TASKS", 2)
    first = client.get("/batches/b%2F1.json").json()
    second = client.get(first["matrix"]["next"]).json()
    assert [*tasks_of(first), *tasks_of(second)] == ["pay", "auth", "mail"]
    assert second["matrix"]["next"] is None
    monkeypatch.setattr(batch_matrix, "RUNS", 1)
    monkeypatch.setattr(batch_matrix, "TRIALS", 1)
    page = client.get("/batches/b%2F1", headers={"accept": "text/html"}).text
    assert "runs=1" in page
    older = client.get("/batches/b%2F1.json?runs=1").json()
    assert [one["run_id"] for one in older["matrix"]["runs"]] == [OLD]
    assert {len(entry) for entry in tasks_of(older).values()} == {1}, (
        "the first trials of a task stand here"
    )
    assert (
        "first 20 trials"
        in client.get("/batches/b%2F1?runs=1", headers={"accept": "text/html"}).text
    )
    assert client.get("/batches/b%2F1?runs=9").status_code == 404


def test_ten_thousand_tasks_are_never_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        plan = a_plan(OLD, suite="alpha", batch_id="long")
        workspace.journal.open_run(
            plan, planned(*(a_task(f"task-{n}") for n in range(300)), trials=1)
        )
        summaries, rows = workspace.archive.runs.matching(), []
        read: Any = type(workspace.archive.trials).matrix

        def counted(*args: Any, **more: Any) -> Any:
            records = read(*args, **more)
            rows.append(len(records))
            return records

        monkeypatch.setattr(type(workspace.archive.trials), "matrix", counted)
        seen, after = [], None
        while True:
            records = batch_matrix.matrix(workspace.store, summaries, after=after)
            seen += [line.task for line in records.lines]
            if records.after is None:
                break
            after = records.after
        assert seen == [f"task-{n}" for n in range(300)]
        assert max(rows) == batch_matrix.TASKS + 1


@pytest.mark.slow
def test_it_is_accessible_whole_and_scrolls_in_its_own_box(
    chromium: Browser, served: Served, watch: Watch
) -> None:
    with ThreadPoolExecutor() as pool:  # the browser has a loop of its own in this thread
        pool.submit(fill, served.folder).result().close()
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    watch.on(page, served)
    for across in ("trials", "candidates"):
        page.goto(f"{served.url}/batches/b%2F1?across={across}")
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            wide = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wide <= 0, (across, width)
        expect(page.locator("table.laid"), "shown as it stands").to_contain_text(
            "onerror", use_inner_text=True
        )
        assert serious(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{served.url}/batches/b%2F1")
    page.locator("table.laid a.box.approved").first.click()
    page.wait_for_url("**/assessments/a*")
    context.close()
