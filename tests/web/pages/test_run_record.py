"""The record of a run, what two runs differ in, and one suite over time: in a browser, over runs
made by the program.
"""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import NAMES, Served
from tests.web.pages.test_runs_page import (
    HOSTILE,
    TURNED,
    assay,
    filled,
    filled_template,
    served,
    status_of,
    text_of,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["filled", "filled_template", "served"]


def test_a_record_says_how_a_run_was_carried_out(served: Served, filled: dict[str, str]) -> None:
    run = filled["before"]
    record = served.get(f"/runs/{run}/record.json")
    shown = json.loads(assay(served.folder, "show", run, "--json"))
    for name in (
        "candidates",
        "asked_with",
        "judged_with",
        "rubric_digest",
        "suite_digest",
        "parameters",
        "answered",
    ):
        assert record[name] == shown[name], name
    assert record["config_digest"]
    assert record["protocols"] == [{"version": 1, "mode": "plain", "at": None, "reviewer": None}]
    assert {file["path"].rpartition(".")[2] for file in record["files"]} == {"json", "jsonl"}
    assert all(
        (served.folder / file["path"]).stat().st_size == file["bytes"] for file in record["files"]
    )
    with urllib.request.urlopen(f"{served.url}/runs/{run}/suite", timeout=30) as answer:
        assert "attachment" in answer.headers["content-disposition"]
        assert answer.headers.get_content_type() == "text/plain"
        assert json.load(answer) == json.loads((served.folder / "before.json").read_text("utf-8"))
    imported = text_of(served, f"/runs/{filled['imported']}/record")
    assert "Imported from scores.csv as scores." in imported
    assert TURNED not in imported
    assert status_of(served, "/runs/none/record") == 404


def test_owner_sees_the_whole_record_while_items_wait(
    served: Served, filled: dict[str, str]
) -> None:
    run = filled["waits"]
    assay(served.folder, "review", "protocol", run, "--set", "blind=1")
    for path in (f"/runs/{run}/record", f"/runs/{run}/record.json"):
        result = text_of(served, path)
        assert all(name in result for name in NAMES), path
        assert "replay" in result, path
    assert status_of(served, f"/runs/{run}/suite") == 200
    assert status_of(served, f"/registry/diff?a={run}&b={filled['before']}") == 200


def test_run_diff_page_matches_the_command(
    page: Page, served: Served, filled: dict[str, str]
) -> None:
    page.goto(f"{served.url}/runs?suite=sums")
    for box in page.locator(".pick input").all():
        box.check()
    page.get_by_role("button", name="Compare selected").click()
    page.wait_for_url(lambda url: url.endswith(f"?a={filled['before']}&b={filled['after']}"))
    document = json.loads(assay(served.folder, "diff", filled["before"], filled["after"], "--json"))
    assert served.get(f"/registry/diff.json?a={filled['before']}&b={filled['after']}") == document
    words = page.locator("main").inner_text()
    assert "two, trials" in words
    assert HOSTILE in words
    expect(page.locator(".changed .gone", has_text="-6")).to_have_count(1)
    expect(page.locator(".changed .added", has_text="+5")).to_have_count(1)
    for table in page.locator(".tall").all():
        height = str(table.evaluate("one => getComputedStyle(one).maxHeight"))
        assert float(height.removesuffix("px")) <= 704, "a long table scrolls by itself"
    page.get_by_role("link", name="Compare answers echo-a").click()
    page.wait_for_url(lambda url: "/compare?col=" in url)
    page.get_by_role("heading", name="One", exact=True).wait_for()
    for query in (f"?a={filled['before']}", f"?a={filled['before']}&b={filled['before']}"):
        assert status_of(served, f"/registry/diff{query}") == 422, query
    assert status_of(served, f"/registry/diff?a={filled['before']}&b=none") == 404


def test_a_task_is_known_by_its_content(page: Page, served: Served, filled: dict[str, str]) -> None:
    two = served.get("/results/task.json?suite=sums&task=two")["versions"]
    assert [[run["run_id"] for run in one["runs"]] for one in two] == [
        [filled["after"]],
        [filled["before"]],
    ]
    (one,) = served.get("/results/task.json?suite=sums&task=one")["versions"]
    assert [(run["run_id"], run["trials"]) for run in one["runs"]] == [
        (filled["after"], 3),
        (filled["before"], 2),
    ]
    assert status_of(served, "/results/task?suite=sums&task=three") == 404
    page.goto(f"{served.url}/registry/diff?a={filled['before']}&b={filled['after']}")
    page.locator(".differences tr", has_text="two, trials").get_by_role("link").first.click()
    page.wait_for_url(lambda url: "/results/task?suite=sums&task=two" in url)
    expect(page.locator("main section")).to_have_count(2)


def test_a_trend_is_drawn_with_its_table_and_files(
    page: Page, served: Served, filled: dict[str, str]
) -> None:
    page.goto(f"{served.url}/results/trend?suite=sums")
    expect(page.locator(".chart svg:visible")).to_have_count(1)
    document = json.loads(assay(served.folder, "trend", "sums", "--json"))
    assert served.get("/results/trend.json?suite=sums") == document
    assert page.locator(".register tbody tr").count() == len(document["points"]) == 4
    expect(page.locator(".register")).to_contain_text("different tasks", use_inner_text=True)
    page.get_by_role("link", name="echo-a", exact=True).first.click()
    page.wait_for_url("**candidate=echo-a**")
    expect(page.locator(".register tbody tr")).to_have_count(2)
    newest = served.get("/results/trend.json?suite=sums&last=2")
    assert newest["runs"] == 2
    assert status_of(served, "/results/trend/chart.pdf?suite=sums") == 404
    assert status_of(served, "/results/trend?suite=none") == 404
    rows = text_of(served, "/results/trend/chart.csv?suite=sums").splitlines()
    assert len(rows) == 1 + 4
    assert status_of(served, "/results/trend") == 422


@pytest.mark.slow
def test_axe_finds_nothing_serious_and_nothing_is_clipped(
    page: Page, served: Served, filled: dict[str, str]
) -> None:
    two = f"a={filled['before']}&b={filled['after']}"
    paths = (
        f"/runs/{filled['after']}/record",
        f"/runs/{filled['waits']}/record",
        f"/runs/{filled['imported']}/record",
        f"/registry/diff?{two}",
        f"/registry/diff?a={filled['imported']}&b={filled['after']}",
        "/results/task?suite=sums&task=two",
        "/results/trend?suite=sums",
        "/results/trend?suite=gates",
    )
    for path in paths:
        page.goto(served.url + path)
        if path.endswith("sums"):
            expect(page.locator(".chart svg:visible")).to_have_count(1)
        if filled["imported"] in path:
            assert serious(page) == [], path
        expect(page.locator("body"), path).not_to_contain_text("\u202e", use_inner_text=True)
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"
