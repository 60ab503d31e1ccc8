"""The list of runs, in JSON and in a browser, and the pages of batches and candidates."""

from __future__ import annotations

import json
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from tests.support import forked
from tests.web.accessibility import WIDTHS
from tests.web.conftest import NAMES, Served, serving, write_set

from assay.app import people
from assay.app.workspace import Workspace
from assay.web.server import create_app
from assay.web.templating import folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


HOSTILE = "<img src=x onerror=alert(1)></script>"
TURNED = "ll\u202eama"
BATCH = "night/1 <b>&"


def assay(folder: Path, *words: str) -> str:
    """One command of Assay in a folder; what it said."""
    done = forked.run(*words, folder=folder)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def suite(folder: Path, name: str, *, answer: str, trials: int, candidate: str = "echo-b") -> Path:
    path = folder / f"{name}.json"
    document = {
        "name": "sums",
        "trials": trials,
        "candidates": [{"name": "echo-a", "model": "echo"}, {"name": candidate, "model": "echo"}],
        "tasks": [
            {"id": "one", "thing": "One", "prompt": "4", "expected": "4", "score": "exact"},
            {"id": "two", "thing": "Two", "prompt": answer, "expected": "5", "score": "exact"},
        ],
    }
    path.write_text(json.dumps(document), "utf-8")
    return path


@pytest.fixture(scope="session")
def filled_template(
    template: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str]]:
    """Beside the run that waits: two runs of one suite in one batch, one with a hostile name, and
    an import.
    """
    folder = shutil.copytree(template, tmp_path_factory.mktemp("filled") / "store")
    runs = {"waits": json.loads(assay(folder, "runs", "--json"))["runs"][0]["run_id"]}
    for name, answer, trials, candidate in (
        ("before", "6", 2, "echo-b"),
        ("after", "5", 3, HOSTILE),
    ):
        path = suite(folder, name, answer=answer, trials=trials, candidate=candidate)
        runs[name] = json.loads(assay(folder, "run", path.name, "--batch-id", BATCH, "--json"))[
            "run_id"
        ]
    (folder / "scores.csv").write_text(
        f"task,candidate,trial,score\na,gpt,1,0.5\na,{TURNED},1,0.75\n", "utf-8"
    )
    runs["imported"] = json.loads(assay(folder, "import", "scores.csv", "--json"))["run_ids"][0]
    return folder, runs


@pytest.fixture
def served(filled_template: tuple[Path, dict[str, str]], tmp_path: Path) -> Iterator[Served]:
    """A server over a fresh copy of the filled store."""
    with serving(shutil.copytree(filled_template[0], tmp_path / "store")) as server:
        yield server


@pytest.fixture
def filled(filled_template: tuple[Path, dict[str, str]]) -> dict[str, str]:
    """Return the ids of the runs in the filled store."""
    return filled_template[1]


def text_of(served: Served, path: str) -> str:
    with urllib.request.urlopen(served.url + path, timeout=30) as answer:
        return str(answer.read().decode())


def status_of(served: Served, path: str) -> int:
    try:
        with urllib.request.urlopen(served.url + path, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def listed(served: Served, query: str = "") -> list[str]:
    row: list[dict[str, Any]] = served.get(f"/runs.json{query}")["runs"]
    return [one["id"] for one in row]


def test_rows_state_tally_verdict_and_next_step(served: Served, filled: dict[str, str]) -> None:
    rows = {one["id"]: one for one in served.get("/runs.json")["runs"]}
    assert list(rows) == [filled["imported"], filled["after"], filled["before"], filled["waits"]]
    before, waits = rows[filled["before"]], rows[filled["waits"]]
    assert before["tally"] == [["not_required", 8]]
    assert before["verdict"].endswith("score the same.")
    assert before["action"] == "results"
    assert waits["tally"] == [["pending", 10]]
    assert waits["shares"] == [["pending", 100.0]]
    assert (waits["verdict"], waits["action"]) == ("Nothing reviewed yet.", "review")


def test_equal_set_ups_have_equal_digests(served: Served, filled: dict[str, str]) -> None:
    again = json.loads(assay(served.folder, "run", "before.json", "--json"))["run_id"]
    before, same, after = (
        served.get(f"/runs/{run}/record.json")["config_digest"]
        for run in (filled["before"], again, filled["after"])
    )
    assert before == same != after


def test_filters_keep_the_matching_rows(served: Served, filled: dict[str, str]) -> None:
    both = [filled["after"], filled["before"]]
    assert listed(served, "?suite=sums") == both
    assert listed(served, "?q=NIGHT/1") == both
    assert listed(served, "?suite=sums&q=before") == []
    assert listed(served, "?candidate=echo-b") == [filled["before"]]
    assert listed(served, "?candidate=ECHO-B") == [filled["before"]]
    assert listed(served, "?q=echo-") == both
    assert listed(served, "?state=waits") == [filled["waits"]]
    assert listed(served, "?state=interrupted") == []
    assert listed(served, f"?before={filled['after']}") == [filled["before"], filled["waits"]]
    assert listed(served, "?sort=oldest") == [
        filled[name] for name in ("waits", "before", "after", "imported")
    ]
    assert listed(served, "?sort=waiting")[0] == filled["waits"]
    assert listed(served, f"?sort=name&suite=sums&before={filled['after']}") == [filled["before"]]
    assert status_of(served, "/runs?state=asleep") == 422
    assert status_of(served, "/runs?sort=beauty") == 422
    assert status_of(served, "/runs?before=none") == 404


def test_former_addresses_lead_to_the_list(served: Served, filled: dict[str, str]) -> None:
    for path in ("/registry.json?suite=sums", "/queue.json?suite=sums", "/index.json?suite=sums"):
        assert [one["id"] for one in served.get(path)["runs"]] == [
            filled["after"],
            filled["before"],
        ]
    assert "<h1>Runs</h1>" in text_of(served, "/registry?state=waits")
    assert "sums over time" in text_of(served, "/registry/trend?suite=sums")
    assert served.get("/registry/task.json?suite=sums&task=one") == served.get(
        "/results/task.json?suite=sums&task=one"
    )


def test_two_ticked_runs_are_compared_older_first(served: Served, filled: dict[str, str]) -> None:
    before, after = filled["before"], filled["after"]
    with urllib.request.urlopen(
        f"{served.url}/runs/compare?run={after}&run={before}", timeout=30
    ) as answer:
        assert answer.url.endswith(f"?a={before}&b={after}")
    assert status_of(served, f"/runs/compare?run={after}") == 422


def test_a_viewer_is_offered_nothing_they_may_not_do(
    served: Served, filled: dict[str, str]
) -> None:
    with Workspace.open(served.folder, environment={}) as workspace:
        invitation = people.invite(workspace.store, "Vic", role="viewer", base=served.url)
        app = create_app(workspace, token="a-s3cret-of-any-length")
        with TestClient(app, base_url="http://127.0.0.1") as client:
            client.post("/api/signin", json={"token": invitation.token})
            headers = {"accept": "text/html"}
            pages = [
                client.get(path, headers=headers).text
                for path in ("/runs", f"/runs/{filled['waits']}")
            ]
    assert all("<h1>" in page for page in pages)
    for offer in ("/review", "data-steer", "New run", 'id="delete-run"', 'id="archive-run"'):
        assert all(offer not in page for page in pages), offer


def test_owner_sees_every_name_while_items_wait(served: Served, filled: dict[str, str]) -> None:
    for path in ("/candidates", "/candidates.json", f"/runs/{filled['waits']}"):
        result = text_of(served, path)
        assert all(name in result for name in NAMES), path
    assert listed(served, f"?candidate={NAMES[0]}") == [filled["waits"]]
    assert listed(served, f"?q={NAMES[0]}") == [filled["waits"]]
    assert status_of(served, f"/candidates/{NAMES[0]}") == 200
    assert status_of(served, "/runs.json?candidate=nobody") == 404


def test_batch_and_candidate_pages_gather_their_runs(
    served: Served, filled: dict[str, str]
) -> None:
    batch = served.get("/batches/night%2F1%20%3Cb%3E%26.json")
    assert [one["id"] for one in batch["runs"]] == [filled["after"], filled["before"]]
    assert batch["together"]["trials"] == batch["together"]["approved"] == 10
    assert status_of(served, "/batches/none") == 404
    response = served.get("/candidates/echo-a.json")
    assert [one["run_id"] for one in response["runs"]] == [filled["after"], filled["before"]]
    (mean,) = response["means"]
    stats = json.loads(assay(served.folder, "stats", "--suite", "sums", "--json"))["candidates"]
    assert mean["mean"] == next(one["mean"] for one in stats if one["candidate"] == "echo-a")
    assay(served.folder, "candidates", "rename", "echo-b", "echo-c")
    renamed = served.get("/candidates/echo-c.json")
    assert (renamed["candidate"], renamed["runs"][0]["named"]) == ("echo-c", "echo-b")
    assert served.get("/candidates/echo-b.json")["candidate"] == "echo-c"
    assert "echo-b renamed to echo-c" in text_of(served, "/candidates")


def test_search_and_filters_are_in_the_address(
    page: Page, served: Served, filled: dict[str, str]
) -> None:
    page.goto(f"{served.url}/runs")
    rows = page.locator(".run-list tbody tr")
    expect(rows).to_have_count(4)
    page.get_by_label("Suite", exact=True).select_option("sums")
    page.wait_for_url("**/runs?suite=sums")
    expect(rows).to_have_count(2)
    expect(page.locator("body")).not_to_contain_text("\u202e", use_inner_text=True)
    page.get_by_label("Suite", exact=True).select_option("")
    page.wait_for_url(re.compile(r"/runs\??$"))
    page.get_by_role("searchbox").fill("scores")
    page.get_by_role("searchbox").press("Enter")
    page.wait_for_url("**/runs?q=scores")
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="Waiting for me 10").click()
    page.wait_for_url("**/runs?q=scores&state=waits")
    expect(rows).to_have_count(0)


def test_two_ticks_allow_a_comparison(page: Page, served: Served, filled: dict[str, str]) -> None:
    page.goto(f"{served.url}/runs")
    compare = page.get_by_role("button", name="Compare selected")
    expect(compare).to_be_disabled()
    boxes = page.locator(".pick input")
    for place in (0, 1, 2):
        boxes.nth(place).check()
    expect(boxes.nth(0)).not_to_be_checked()
    compare.click()
    page.wait_for_url(f"**?a={filled['before']}&b={filled['after']}")


def test_a_deleted_run_comes_back_by_undo(
    page: Page, served: Served, filled: dict[str, str]
) -> None:
    page.goto(f"{served.url}/runs/{filled['before']}")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#removed")).to_contain_text("sums has been deleted.")
    expect(page.locator(".run-list tbody tr")).to_have_count(3)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".run-list tbody tr")).to_have_count(4)
    page.goto(f"{served.url}/runs/{filled['before']}")
    page.get_by_role("button", name="Archive").click()
    expect(page.locator("#removed")).to_contain_text("sums has been archived.")
    expect(page.locator("#live")).to_have_attribute("data-now", "queue.live")
    page.goto(f"{served.url}/runs?state=archived")
    page.get_by_role("link", name="sums", exact=True).click()
    page.get_by_role("button", name="Bring back").click()
    expect(page.get_by_role("button", name="Archive")).to_be_visible()
    assert len(listed(served)) == 4


def test_times_are_local_and_name_their_zone(chromium: Browser, served: Served) -> None:
    context = chromium.new_context(timezone_id="Asia/Kathmandu")
    page = context.new_page()
    page.goto(f"{served.url}/runs")
    expect(page.locator("[data-zone]")).to_have_text(re.compile("Kat(h)?mandu"))
    expect(page.locator("tbody time").first).to_have_attribute(
        "title", re.compile(r"GMT\+5:45 \(Asia/Kat")
    )
    page.goto(f"{served.url}/runs/{served.run_id}")
    expect(page.locator(".facts time").first).to_have_text(re.compile(r"GMT\+5:45$"))
    context.close()


def test_a_question_is_asked_in_the_page_and_can_be_declined(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/runs")
    script = str(page.locator('script[src$="runs.js"]').get_attribute("src")).replace(
        "runs/runs", "frame/ask"
    )
    page.evaluate(
        """async script => {
             const { ask } = await import(script);
             ask({ title: "Sure?", text: "Really?", act: "Do it", keep: "Keep it" }).then(sure => (window.sure = sure));
           }""",
        script,
    )
    page.get_by_role("dialog", name="Sure?").get_by_role("button", name="Keep it").click()
    page.wait_for_function("window.sure === false")
    expect(page.get_by_role("dialog")).to_have_count(0)
    scripts = folder("static").rglob("*.js")
    assert [
        one.name
        for one in scripts
        if re.search(r"(?<![\w.])(confirm|alert|prompt)\(t\(", one.read_text("utf-8"))
    ] == []


@pytest.mark.slow
def test_nothing_is_clipped(page: Page, served: Served, filled: dict[str, str]) -> None:
    paths = ("/runs", "/batches/night%2F1%20%3Cb%3E%26", "/candidates", "/candidates/echo-a")
    for path in paths:
        page.goto(served.url + path)
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"


def test_a_run_whose_judge_gave_nothing_asks_for_a_retry(tmp_path: Path) -> None:
    write_set(tmp_path, things=2, trials=2)
    silent = {"match": {"role": "judge", "task": "none"}, "reply": {"text": "{}"}}
    (tmp_path / "judge.jsonl").write_text(json.dumps(silent) + "\n", "utf-8")
    run = json.loads(
        assay(tmp_path, "run", "gates.json", "--judge", "replay/judge.jsonl", "--json")
    )["run_id"]
    with (
        Workspace.open(tmp_path, environment={}) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1") as client,
    ):
        (row,) = client.get("/runs.json?state=failed").json()["runs"]
        page = client.get(f"/runs/{run}", headers={"accept": "text/html"}).text
        (kind,) = client.get(f"/runs/{run}.json").json()["failure_kinds"]
    assert (row["action"], row["verdict"], row["tally"]) == (
        "retry",
        "No trials count.",
        [["failed", 4]],
    )
    assert (kind["kind"], kind["n"]) == ("no_recording", 4)
    assert f'4 × <span class="mono">{kind["kind"]}</span>' in page
    assert 'data-run-state="finished" data-failed' in page
    assert ">Retry failed</button>" in page


def test_latest_leads_to_the_newest_run(tmp_path: Path) -> None:
    with (
        Workspace.open(tmp_path, environment={}) as workspace,
        TestClient(create_app(workspace), follow_redirects=False) as client,
    ):
        client.headers["host"] = "127.0.0.1"
        assert client.get("/runs/latest").status_code == 404
        for answer in ("5", "4"):
            assay(tmp_path, "run", str(suite(tmp_path, "sums", answer=answer, trials=1)))
        newest = client.get("/runs.json").json()["runs"][0]["id"]
        for ending in ("", ".json"):
            answered = client.get(f"/runs/latest{ending}")
            assert answered.status_code == 307
            assert answered.headers["location"] == f"/runs/{newest}{ending}"
