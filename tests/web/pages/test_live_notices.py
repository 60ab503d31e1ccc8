"""Browser notifications of the open queue: a run's end, waiting reviews, and the count in the
title.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.contract.stores import a_plan, a_task, judged, planned, wait
from tests.web.conftest import Served, Watch, new_context

from assay.app.workspace import Workspace
from assay.domain.lifecycle import RunState

RECORDER = """
window.told = JSON.parse(sessionStorage.getItem('test.told') ?? '[]');
class Recorded {
  static permission = 'granted';
  static async requestPermission() { return 'granted'; }
  constructor(title, options) {
    window.told.push(options.body);
    sessionStorage.setItem('test.told', JSON.stringify(window.told));
  }
}
window.Notification = Recorded;
"""
"""Keeps what is shown, over reloads too; headless browsers show nothing by themselves."""


@pytest.fixture(scope="module")
def recording(chromium: Browser, standing: Served) -> Iterator[Page]:
    """A page that records what it tells, over a server whose store stays as it is."""
    context, watching = new_context(chromium), Watch()
    context.add_init_script(RECORDER)
    page = context.new_page()
    watching.on(page, standing)
    yield page
    context.close()
    assert watching.amiss == []


def submitted(served: Served, name: str) -> str:
    body = {"thing": name, "suite": name, "judge": "human", "snippets": {"ann": "a", "bob": "b"}}
    request = urllib.request.Request(
        f"{served.url}/submit_evaluation",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["evaluation_id"])


def open_queue(page: Page, served: Served) -> None:
    page.goto(served.url)
    page.wait_for_selector("#live[data-now='queue.live']")


def told_until(page: Page, name: str) -> list[str]:
    """Return everything the page has told, as soon as it has told something of this name."""
    page.wait_for_function("name => window.told.some(text => text.includes(name))", arg=name)
    return list(page.evaluate("() => window.told"))


def test_new_run_is_counted_in_the_title_and_told_once(
    chromium: Browser, served: Served, watch: Watch
) -> None:
    context = new_context(chromium)
    context.add_init_script(RECORDER)
    page = context.new_page()
    watch.on(page, served)
    open_queue(page, served)
    expect(page).to_have_title(re.compile(r"^\(10\) "))
    # what waited when the page was opened is no news
    assert page.evaluate("() => window.told") == []
    submitted(served, "another")
    expect(page).to_have_title(re.compile(r"^\(11\) "))
    expect(page.locator("[data-run]")).to_have_count(2)
    page.reload()
    page.wait_for_selector("#live[data-now='queue.live']")
    expect(page).to_have_title(re.compile(r"^\(11\) "))
    submitted(served, "third")
    expect(page.locator("[data-run]")).to_have_count(3)  # the page has drawn itself anew
    told = [text for text in told_until(page, "third") if "another" in text]
    assert 1 <= len(told) == len(set(told)) <= 2, told
    assert "1" in told[-1]
    context.close()


def test_a_click_on_a_link_survives_news_of_another_run(
    chromium: Browser, served: Served, watch: Watch
) -> None:
    context = new_context(chromium)
    # As console messages, because the driver cannot ask the page anything while a navigation is
    # held.
    context.add_init_script(
        RECORDER.replace("window.told.push(", "console.info(options.body); window.told.push(")
    )
    page = context.new_page()
    watch.on(page, served)
    open_queue(page, served)
    kept: list[Route] = []
    page.route("**/review?run=*", lambda route: kept.insert(0, route))
    page.locator("[data-run] a[href*='/review']").first.click(no_wait_after=True)
    with page.expect_console_message(lambda message: "another" in message.text):
        submitted(served, "another")  # at this news, the page wants to draw itself anew
    for route in kept:  # Chromium may have fetched the page ahead of the click
        route.continue_()
    page.wait_for_url("**/review*", wait_until="commit")
    context.close()


def test_page_title_counts_items_of_older_runs(served: Served, page: Page) -> None:
    with Workspace.open(served.folder, environment={}) as workspace:
        for number in range(51):
            plan = a_plan(f"20250101-000000-s{number}-aaaa", suite=f"s{number}")
            workspace.journal.open_run(plan, planned(a_task("x")))
            wait(workspace.journal.record(judged(workspace.journal.claim(plan.id, limit=1)[0])))
            workspace.journal.set_state(plan.id, RunState.FINISHED)
    open_queue(page, served)
    expect(page).to_have_title(re.compile(r"^\(61\) "))
    expect(page.locator("#waiting")).to_contain_text("61", use_inner_text=True)


def tell_by_script(page: Page, served: Served, news: list[list[dict[str, Any]]]) -> list[str]:
    """Open a run page whose stream brings these rows and a last run that ended; return what it told
    before that.

    Unlike the list of runs, the page of a run need not draw itself anew for a new one.
    """
    known = served.get("/runs.json")["runs"][0]
    rows = [
        *news,
        [{**known, "id": "last", "suite": "the last", "state": "finished", "waiting": 0}],
    ]
    events = "".join(f"retry: 600000\nevent: runs\ndata: {json.dumps(row)}\n\n" for row in rows)
    page.route(
        "**/api/live", lambda route: route.fulfill(content_type="text/event-stream", body=events)
    )
    page.goto(f"{served.url}/runs/{served.run_id}")
    told = told_until(page, "the last")
    page.unroute_all()
    page.evaluate("() => sessionStorage.clear()")
    return told[:-1]


def test_reviews_that_begin_to_wait_while_a_run_goes_on_are_told(
    recording: Page, standing: Served
) -> None:
    known = standing.get("/runs.json")["runs"][0]
    steps = [(0, "running"), (3, "running"), (5, "running"), (5, "finished")]
    told = tell_by_script(
        recording,
        standing,
        [[{**known, "waiting": waiting, "state": state}] for waiting, state in steps],
    )
    assert len(told) == 2
    assert "3 assessments now await review" in told[0]
    assert "finished" in told[1]


@pytest.mark.parametrize(
    "states", [("planned", "running", "finished"), ("planned", "finished"), ("paused", "finished")]
)
def test_a_run_that_is_planned_has_not_ended_and_its_end_is_told_once(
    recording: Page, standing: Served, states: tuple[str, ...]
) -> None:
    """The page may see the run while it runs, or only afterwards."""
    known = standing.get("/runs.json")["runs"][0]
    new = [[known, {**known, "id": "new", "state": state, "waiting": 0}] for state in states]
    (told,) = tell_by_script(recording, standing, [[known], *new])
    assert "is finished" in told
