"""Choosing how a run is reviewed: on the start form, later on the run's page, and printed with
every number.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, Watch, eventually

from assay.app.statistics import results, statistics_documents
from assay.app.wire import plain
from assay.app.workspace import Workspace
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from playwright.sync_api import Page


def post(served: Served, path: str, **body: Any) -> Any:
    request = urllib.request.Request(
        served.url + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_protocol_cost_is_shown_before_the_run(served: Served) -> None:
    wish = {
        "suite": "gates.json",
        "judges": [f"replay/{served.folder / 'judge.jsonl'}"],
        "trials": 5,
    }
    plain = post(served, "/api/start/look", **wish)["review"]
    assert (plain["items"], plain["decisions"], plain["keys"], plain["scores"]) == (
        10,
        10,
        10,
        12.0,
    )
    wish["protocol"] = {"blind": 0.5, "second": 0.2}
    row = post(served, "/api/start/look", **wish)["review"]
    assert (row["decisions"], row["blind"], row["second"]) == (12, 6, 2)
    assert row["keys"] == 12 + 6 * 13
    assert row["plain_keys"] == 10
    (problem,) = post(served, "/api/start/look", **{**wish, "protocol": {"plants": 0.7}})[
        "problems"
    ]
    assert problem["field"] == "protocol.plants"
    assert post(served, "/api/start/look", **{**wish, "review": "none"})["review"]["items"] == 0


def test_the_choice_starts_the_run_and_stands_beside_its_numbers(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("422",)
    page.goto(f"{served.url}/start?suite=gates.json&trials=5")
    page.get_by_label("Add judge").first.fill(f"replay/{served.folder / 'judge.jsonl'}")
    page.get_by_role("button", name="Add judge").click()
    page.locator("summary", has_text="Review protocol").click()
    page.wait_for_selector("text=10 decisions with one key press each.")
    page.get_by_label("Suggested").check()
    page.wait_for_selector("text=without a protocol, 10 decisions")
    page.wait_for_url("**protocol=suggested**")
    page.get_by_label("Custom").check()
    page.get_by_label("Planted checks, per 100 items").fill("80")
    page.wait_for_selector("text=Enter a number from 0 to 50.")
    page.get_by_label("Planted checks, per 100 items").fill("10")
    page.get_by_label("Blind first, % of items").fill("50")
    page.wait_for_selector("text=1 planted")
    page.reload()
    expect(page.get_by_label("Blind first, % of items")).to_have_value("50")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url("**/runs/*")
    eventually(lambda: served.get("/api/runs")["runs"][0]["state"] == "finished")
    run = served.get("/api/runs")["runs"][0]["run_id"]
    with Workspace.open(served.folder, environment={}) as workspace:
        plan = workspace.journal.plan_of(
            workspace.archive.runs.matching(Selection(runs=(run,)))[0].id
        )
    assert {
        name: plan.protocol[name] for name in ("blind", "plants", "rereview", "version", "mode")
    } == {"blind": 0.5, "plants": 0.1, "rereview": 0.03, "version": 1, "mode": "mixed"}
    page.locator("aside.facts").get_by_text("50% blind-first").wait_for()
    # the run's page draws itself anew as the run ends, which would break a visit off
    page = page.context.new_page()
    page.goto(f"{served.url}/results?run={run}")
    expect(page.locator("main")).to_contain_text(
        "50% blind-first, 10% planted checks, 3% repeats", use_inner_text=True
    )


def test_a_switch_makes_a_version_and_nothing_is_pooled_in_silence(
    page: Page, served: Served
) -> None:
    run = served.run_id
    post(served, "/api/decisions", decisions=[{"key": "k" * 10, "id": "a2", "verb": "approve"}])
    page.goto(f"{served.url}/runs/{run}")
    page.locator("summary", has_text="Change the protocol").click()
    page.wait_for_selector("text=9 decisions with one key press each.")
    page.get_by_label("Suggested").check()
    page.wait_for_selector("text=without a protocol, 9 decisions")
    page.get_by_role("button", name="Change protocol").click()
    page.locator("aside.facts").get_by_text("20% blind-first").wait_for()
    page.locator("summary", has_text="Change the protocol").click()
    expect(page.get_by_text("Version 2 applies; 1 decision was made before it.")).to_be_visible()
    response = served.get(f"/api/runs/{run}/protocol")
    assert (response["version"], response["decided_before"], response["numbers"]["gap_items"]) == (
        2,
        1,
        50,
    )
    with Workspace.open(
        served.folder, environment={}
    ) as workspace:  # pages tell no statistics while checks may come
        document = plain(
            statistics_documents.scores_document(
                results.stats(workspace.store, workspace.settings, Selection(runs=(run,)))
            )
        )
    assert "switched_protocol" in json.dumps(document)
    assert document["protocol"][0]["switched"] == [{"version": 2, "decided_before": 1}]
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(served, f"/api/runs/{run}/protocol", blind=3)
    assert refused.value.code == 422
    assert served.get(f"/api/runs/{run}/protocol")["version"] == 2


@pytest.mark.slow
def test_the_forms_are_accessible_and_not_clipped(page: Page, served: Served) -> None:
    run = served.run_id
    for path, summary in (
        ("/start?suite=gates.json&protocol=blind:0.3,second:0.1", "Review protocol"),
        (f"/runs/{run}", "Change the protocol"),
    ):
        page.set_viewport_size({"width": 1360, "height": 800})
        page.goto(served.url + path)
        if "protocol=" not in path:  # a choice in the address opens the form by itself
            page.locator("summary", has_text=summary).click()
        page.get_by_label("Custom").check()
        expect(page.get_by_label("Repeat after this many hours")).to_be_visible()
        assert serious(page) == [], path
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"
