"""Answers of another harness on the pages: what they lack, and the ways on."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Served, Watch, eventually, serving
from tests.web.imported_store import MODELS, imported_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported_store(tmp_path_factory.mktemp("imported") / "store")


@pytest.fixture
def served(imported: Path, tmp_path: Path) -> Iterator[Served]:
    """A server over a fresh copy of three imported runs of one model each; the last in the list
    lacks two answers.
    """
    with serving(shutil.copytree(imported, tmp_path / "store")) as server:
        yield server


def run_of(served: Served, model: str) -> str:
    """The run of a model, by its name in the registry."""
    (result,) = [
        one["id"] for one in served.get("/runs.json")["runs"] if one["candidates"] == [model]
    ]
    return str(result)


def post(served: Served, path: str, body: Any) -> tuple[int, Any]:
    """The status and the document that a program gets."""
    asked = urllib.request.Request(
        served.url + path,
        json.dumps(body).encode(),
        {"content-type": "application/json", "origin": served.url},
    )
    try:
        with urllib.request.urlopen(asked, timeout=30) as opened:
            return opened.status, json.load(opened)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_imported_run_cannot_be_resumed(served: Served) -> None:
    run = run_of(served, "google/gemma-2-9b-it")
    before = served.get(f"/runs/{run}.json")
    assert before["run"]["moves"] == []
    assert before["run"]["failed"] == 2
    code, result = post(served, f"/api/runs/{run}/steer", {"wish": "resume"})
    assert code == 409
    assert "was imported" in json.dumps(result)
    assert f"assay regrade {run} --judge" in json.dumps(result)
    for wish in ("pause", "cancel"):
        assert post(served, f"/api/runs/{run}/steer", {"wish": wish})[0] == 409
    assert post(served, f"/api/runs/{run}/extend", {"trials": 2})[0] == 409
    after = served.get(f"/runs/{run}.json")
    assert {one["kind"] for one in after["failures"]} == {"missing"}
    assert after["run"]["finished"] == before["run"]["finished"]
    assert after == before


def test_ungraded_cells_open_the_whole_answer(page: Page, served: Served) -> None:
    run = run_of(served, "google/gemma-2-9b-it")
    page.goto(f"{served.url}/runs/{run}")
    expect(page.locator("table.matrix .box .word")).to_have_text(
        ["not graded"] * 4 + ["failed"] * 2, use_inner_text=True
    )
    assert page.locator(".summary .tally").inner_text().count("not graded") == 1
    page.get_by_role("link", name="r00, Trial 1: not graded").click()
    expect(page.locator("h1")).to_have_text("r00", use_inner_text=True)
    expect(page.locator(".reading").first).to_have_text(
        "Is Person r00 a good hire?", use_inner_text=True
    )
    expect(page.locator(".reading strong")).to_have_text("Person r00")
    expect(page.locator(".reading").nth(1)).to_have_text(
        "r00: yes, says number 0.", use_inner_text=True
    )
    with page.expect_download() as begun:
        page.get_by_role("link", name="Download").click()
    assert begun.value.path().read_text() == "r00: yes, says number 0."
    page.goto(f"{served.url}/runs/{run}")
    page.locator(".failure-kinds a").first.click()
    expect(page.locator("main")).to_contain_text("missing", use_inner_text=True)
    expect(page.locator("h1")).to_have_text("r04", use_inner_text=True)


def test_people_can_grade_ungraded_answers_from_their_page(
    page: Page, served: Served, watch: Watch
) -> None:
    run = run_of(served, "google/gemma-2-9b-it")
    code, result = post(served, f"/api/runs/{run}/regrade", {"judge": "human", "only_look": True})
    assert (code, result["estimate"]["calls"]) == (200, 0)
    assert len(served.get("/runs.json")["runs"]) == 3, "looking starts nothing"
    watch.expected = ("422",)
    page.goto(f"{served.url}/runs/{run}")
    expect(page.locator(".ungraded")).to_contain_text(
        f"assay regrade {run} --judge PROVIDER/MODEL", use_inner_text=True
    )
    page.get_by_role("button", name="Estimate cost").click()
    expect(page.get_by_text("Enter the judge's model")).to_be_visible()
    (served.folder / "judge.jsonl").write_text(
        '{"match": {"role": "judge"}, "reply": {"text": "{}"}}', "utf-8"
    )
    page.get_by_label("Judge", exact=True).fill("replay/judge.jsonl")
    page.get_by_role("button", name="Estimate cost").click()
    page.get_by_text("4 calls, about").wait_for()
    page.get_by_label("Judge", exact=True).fill("no such thing")
    page.get_by_role("button", name="Grade with the judge").click()
    page.locator("#ungraded-said.error").wait_for()
    page.get_by_role("button", name="Have people grade").click()
    page.wait_for_url(lambda url: run not in url)
    page.get_by_role("link", name="Review 4").wait_for()
    again = served.get(f"/runs/{run}.json")
    assert again["run"]["not_graded"] == 4
    assert [
        one["kind"] for one in served.get(f"{page.url.removeprefix(served.url)}.json")["failures"]
    ] == ["missing"] * 2
    assert page.url.endswith(again["facts"]["regrades"][0])


def test_owner_reads_and_compares_answers_while_the_run_waits(served: Served) -> None:
    run = run_of(served, "google/gemma-2-9b-it")
    _, result = post(served, f"/api/runs/{run}/regrade", {"judge": "human"})
    graded = result["run_id"]
    eventually(lambda: served.get(f"/runs/{graded}.json")["run"]["waiting"] == 4)
    trials = served.get(f"/runs/{graded}.json")["tasks"]
    shown = served.get(f"/runs/{graded}/trials/{trials[5]['cells'][0]['id']}/answers.json")
    assert [one["candidate"] for one in shown["answers"]] == ["google/gemma-2-9b-it"]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        served.get(f"/runs/{graded}/trials/t1/answers.json")
    assert {run, graded} <= {one["id"] for one in served.get("/compare.json")["runs"]}
    assert served.get(f"/compare.json?col={graded}~google%252Fgemma-2-9b-it")["rows"]


def test_long_answers_are_compared_whole_and_linked(
    tmp_path: Path, page_at: Callable[[Served], Page]
) -> None:
    given = {
        (MODELS[0], "r00"): json.dumps({"text": "x " * 15_000, "verdict": "yes"}),
        (MODELS[1], "r00"): json.dumps({"text": "x " * 15_000, "verdict": "no \u202egnp.exe"}),
    }
    with serving(imported_store(tmp_path / "long", models=MODELS[:2], given=given)) as served:
        page = page_at(served)
        columns = [
            one["column"]
            for run in served.get("/compare.json")["runs"]
            for one in run["candidates"]
        ]
        page.goto(f"{served.url}/compare?" + "&".join(f"col={quote(one)}" for one in columns))
        first = page.locator("article.answer").first
        row = first.locator("table.by-field tr", has=page.get_by_role("rowheader", name="verdict"))
        assert "differs" in (row.get_attribute("class") or "")
        expect(row).to_contain_text("⟨U+202E⟩gnp.exe", use_inner_text=True)
        first.get_by_role("link", name="Show the full text").first.click()
        expect(page.locator("pre").last).to_contain_text('"verdict"', use_inner_text=True)
        assert len(page.locator("pre").last.inner_text()) > 30_000
        page.goto("about:blank")


def test_imports_of_one_suite_are_told_apart_in_the_list(served: Served) -> None:
    rows = served.get("/runs.json")["runs"]
    assert {row["model"] for row in rows} == set(MODELS)
    with urllib.request.urlopen(served.url + "/", timeout=30) as opened:
        page = opened.read().decode()
    assert all(page.count(f" · {model}</small>") == 1 for model in MODELS)
    _, opened = post(served, f"/api/runs/{rows[0]['id']}/regrade", {"judge": "human"})
    eventually(lambda: served.get(f"/runs/{opened['run_id']}.json")["run"]["waiting"] > 0)
    assert served.get(f"/runs/{opened['run_id']}.json")["run"]["model"] is None


def test_model_page_shows_parameters_and_unanswered_requests(page: Page, served: Served) -> None:
    address = f"/models/{quote(MODELS[0], safe='')}"
    response = served.get(f"{address}.json")
    (role,) = response["roles"]
    assert role["parameters"] == {"temperature": 0.0, "max_tokens": 300}
    assert (role["used"]["calls"], role["used"]["failed"], role["used"]["unanswered"]) == (4, 0, 2)
    assert [(one["kind"], one["fault"], one["calls"]) for one in response["failures"]] == [
        ("missing", "provider", 2)
    ]
    assert [one["unanswered"] for one in response["runs"]] == [2]
    page.goto(served.url + address)
    words = page.inner_text("main")
    assert "Parameters: temperature 0, max_tokens 300" in words
    assert "0.7" not in words
    assert "2 requests without an answer" in words
    assert "the file has no answer to this request." in words
    other = served.get(f"/models/{quote(MODELS[1], safe='')}.json")
    assert other["failures"] == []
    assert other["roles"][0]["used"]["unanswered"] == 0
