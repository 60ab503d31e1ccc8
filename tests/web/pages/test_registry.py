"""The registry in a browser: every run with what it rests on."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.support import forked
from tests.web.accessibility import WIDTHS
from tests.web.conftest import NAMES, Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page


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
def filled_template(template: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Beside the run that waits: two runs of one suite in one batch, one with a hostile name, and an import."""
    folder = shutil.copytree(template, tmp_path_factory.mktemp("filled") / "store")
    runs = {"waits": json.loads(assay(folder, "runs", "--json"))["runs"][0]["run_id"]}
    for name, answer, trials, candidate in (("before", "6", 2, "echo-b"), ("after", "5", 3, HOSTILE)):
        path = suite(folder, name, answer=answer, trials=trials, candidate=candidate)
        runs[name] = json.loads(assay(folder, "run", path.name, "--batch-id", BATCH, "--json"))["run_id"]
    (folder / "scores.csv").write_text(f"task,candidate,trial,score\na,gpt,1,0.5\na,{TURNED},1,0.75\n", "utf-8")
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
    found: list[dict[str, Any]] = served.get(f"/registry.json{query}")["runs"]
    return [one["run_id"] for one in found]


def test_run_list_shows_suite_and_judge_of_each_run(served: Served, filled: dict[str, str]) -> None:
    rows = {one["run_id"]: one for one in served.get("/registry.json")["runs"]}
    assert list(rows) == [filled["imported"], filled["after"], filled["before"], filled["waits"]]
    before, after = rows[filled["before"]], rows[filled["after"]]
    assert before["config_digest"] != after["config_digest"]
    assert before["code_version"]
    assert isinstance(before["seed"], int)
    assert before["source"]["kind"] == "here"
    assert rows[filled["imported"]]["source"] == {"kind": "imported", "from": "scores.csv", "format": "scores"}
    assert rows[filled["imported"]]["seed"] is None
    assert before["protocol"] == {"version": 1, "mode": "plain"}
    again = json.loads(assay(served.folder, "run", "before.json", "--json"))["run_id"]
    same = next(one for one in served.get("/registry.json")["runs"] if one["run_id"] == again)
    assert same["config_digest"] == before["config_digest"]
    assert same["seed"] != before["seed"]


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
    assert status_of(served, "/registry?state=asleep") == 422
    assert status_of(served, "/registry?before=none") == 404


def test_owner_sees_every_name_while_items_wait(served: Served, filled: dict[str, str]) -> None:
    for path in ("/registry", "/registry.json", "/candidates", "/candidates.json", f"/registry?q={filled['waits']}"):
        said = text_of(served, path)
        assert all(name in said for name in NAMES), path
    assert listed(served, f"?candidate={NAMES[0]}") == [filled["waits"]]
    assert listed(served, f"?q={NAMES[0]}") == [filled["waits"]]
    assert status_of(served, f"/candidates/{NAMES[0]}") == 200
    assert status_of(served, "/registry.json?candidate=nobody") == 404


def test_batch_and_candidate_pages_gather_their_runs(served: Served, filled: dict[str, str]) -> None:
    batch = served.get("/batches/night%2F1%20%3Cb%3E%26.json")
    assert [one["id"] for one in batch["runs"]] == [filled["after"], filled["before"]]
    assert batch["together"]["trials"] == batch["together"]["approved"] == 10
    assert status_of(served, "/batches/none") == 404
    found = served.get("/candidates/echo-a.json")
    assert [one["run_id"] for one in found["runs"]] == [filled["after"], filled["before"]]
    (mean,) = found["means"]
    stats = json.loads(assay(served.folder, "stats", "--suite", "sums", "--json"))["candidates"]
    assert mean["mean"] == next(one["mean"] for one in stats if one["candidate"] == "echo-a")
    assay(served.folder, "candidates", "rename", "echo-b", "echo-c")
    renamed = served.get("/candidates/echo-c.json")
    assert (renamed["candidate"], renamed["runs"][0]["named"]) == ("echo-c", "echo-b")
    assert served.get("/candidates/echo-b.json")["candidate"] == "echo-c"
    assert "echo-b renamed to echo-c" in text_of(served, "/candidates")


def test_the_page_narrows_down_by_links(page: Page, served: Served, filled: dict[str, str]) -> None:
    page.goto(f"{served.url}/registry")
    expect(page.locator(".register tbody tr")).to_have_count(4)
    page.locator(".facets a", has_text="sums").click()
    page.wait_for_url("**suite=sums**")
    expect(page.locator(".register tbody tr")).to_have_count(2)
    expect(page.locator("body")).not_to_contain_text("\u202e", use_inner_text=True)
    page.locator(".chosen .chip").click()
    page.wait_for_url(lambda url: "suite=" not in url)
    page.locator("input[name=q]").fill("scores")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**q=scores**")
    expect(page.locator(".register tbody tr")).to_have_count(1)


@pytest.mark.slow
def test_nothing_is_clipped(page: Page, served: Served, filled: dict[str, str]) -> None:
    paths = ("/registry", "/batches/night%2F1%20%3Cb%3E%26", "/candidates", "/candidates/echo-a")
    for path in paths:
        page.goto(served.url + path)
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert over <= 0, f"{path} is {over} px too wide at {width}"
