"""Browser notifications of the open queue: a run's end, waiting reviews, and the count in the title."""

from __future__ import annotations

import json
import urllib.request
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Error, Page, expect
from tests.web.conftest import Served, Watch, eventually

RECORDER = """
window.said = JSON.parse(sessionStorage.getItem('test.said') ?? '[]');
class Recorded {
  static permission = 'granted';
  static async requestPermission() { return 'granted'; }
  constructor(title, options) {
    window.said.push(options.body);
    sessionStorage.setItem('test.said', JSON.stringify(window.said));
  }
}
window.Notification = Recorded;
"""
"""Keeps what is shown, over reloads too; headless browsers show nothing by themselves."""


@pytest.fixture
def queue(context: BrowserContext, served: Served, watch: Watch) -> Page:
    context.add_init_script(RECORDER)
    page = context.new_page()
    watch.on(page, served)
    page.goto(served.url)
    page.wait_for_selector("#live[data-now='queue.live']")
    return page


def submitted(served: Served, name: str) -> str:
    body = {"thing": name, "suite": name, "judge": "human", "snippets": {"ann": "a", "bob": "b"}}
    request = urllib.request.Request(
        f"{served.url}/submit_evaluation", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["evaluation_id"])


def said(page: Page) -> list[str]:
    """Return the notifications so far; asks again if the page was just being redrawn."""
    for _ in range(5):
        with suppress(Error):
            found: list[str] = page.evaluate("() => window.said")
            return found
        page.wait_for_load_state()
    raise AssertionError("the page does not come to rest")


def test_page_title_counts_waiting_items(queue: Page, served: Served) -> None:
    eventually(lambda: queue.title().startswith("(10) "))
    submitted(served, "another")
    eventually(lambda: queue.title().startswith("(11) "))


def test_page_title_counts_items_of_older_runs(served: Served, page: Page) -> None:
    judged = {"evaluatorName": "llm-judge", "score": 0.5}
    for number in range(51):
        body = {"suite": "s", "scenario": f"x{number}", "agent": "a", "runId": f"r{number}", "evaluations": [judged]}
        request = urllib.request.Request(
            f"{served.url}/api/runs", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=10).close()
    page.goto(served.url)
    page.wait_for_selector("#live[data-now='queue.live']")
    eventually(lambda: page.title().startswith("(61) "))
    expect(page.locator("#waiting")).to_contain_text("61", use_inner_text=True)


def test_a_run_that_is_new_ends_and_waits_and_is_told_once(queue: Page, served: Served) -> None:
    eventually(lambda: queue.title().startswith("("))
    assert said(queue) == []  # what waited when the page was opened is no news
    submitted(served, "another")
    eventually(lambda: len(said(queue)) >= 1)
    eventually(lambda: queue.locator("[data-run]").count() == 2)
    queue.wait_for_timeout(1500)
    assert len([text for text in said(queue) if "another" in text]) == len(said(queue)) <= 2
    assert "1" in said(queue)[-1]
    queue.reload()
    queue.wait_for_selector("#live[data-now='queue.live']")
    queue.wait_for_timeout(1200)
    told = said(queue)
    assert len(told) <= 2


def row(waiting: int, state: str) -> dict[str, Any]:
    return {"waiting": waiting, "state": state}


def test_reviews_that_begin_to_wait_while_a_run_goes_on_are_told(
    context: BrowserContext, served: Served, watch: Watch
) -> None:
    """The stream is the server's own; only its counts are changed on the way."""
    context.add_init_script(RECORDER)
    page = context.new_page()
    watch.on(page, served)
    steps = [row(0, "running"), row(3, "running"), row(5, "running"), row(5, "finished")]
    runs = served.get("/runs.json")["runs"]
    events = "".join(
        f"event: runs\ndata: {json.dumps([{**runs[0], **step, 'id': runs[0]['id']}])}\n\n" for step in steps
    )
    page.route("**/api/live", lambda route: route.fulfill(content_type="text/event-stream", body=events))
    page.goto(served.url)
    eventually(lambda: len(said(page)) == 2)
    assert ["3 assessments now await review" in said(page)[0], "finished" in said(page)[1]] == [True, True]


@pytest.mark.parametrize(
    "states", [("planned", "running", "finished"), ("planned", "finished"), ("paused", "finished")]
)
def test_a_run_that_is_planned_has_not_ended_and_its_end_is_told_once(
    context: BrowserContext, served: Served, watch: Watch, states: tuple[str, ...]
) -> None:
    """The page may see the run while it runs, or only afterwards."""
    context.add_init_script(RECORDER)
    page = context.new_page()
    watch.on(page, served)
    known = served.get("/runs.json")["runs"][0]
    news = [[known], *([known, {**known, "id": "new", "state": state, "waiting": 0}] for state in states)]
    events = "".join(f"retry: 600000\nevent: runs\ndata: {json.dumps(rows)}\n\n" for rows in news)
    page.route("**/api/live", lambda route: route.fulfill(content_type="text/event-stream", body=events))
    page.goto(f"{served.url}/runs/{served.run_id}")  # unlike the queue it need not draw itself anew for a new run
    eventually(lambda: len(said(page)) >= 1)
    page.wait_for_timeout(300)
    told = said(page)
    assert len(told) == 1
    assert "is finished" in told[0]
