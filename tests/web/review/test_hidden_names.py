"""While an assessment waits, the review page gets no candidate's and no judge's name; afterwards it
does.
"""

from __future__ import annotations

import re
import urllib.request
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.web.conftest import NAMES, Served, complete_item, eventually, pressed, ready

if TYPE_CHECKING:
    from playwright.sync_api import Page, Response

pytestmark = pytest.mark.quick_browser

SECRETS = re.compile("|".join((*NAMES, "replay/", "judge.jsonl")), re.IGNORECASE)


def test_no_byte_of_a_name_travels_before_the_verdict(page: Page, served: Served) -> None:
    leaks: list[str] = []

    def read(response: Response) -> None:
        if "/api/live" in response.url:
            return  # an open stream; its rows are those of /runs.json
        heard = f"{response.url} {response.headers} {response.text() if response.ok else ''}"
        leaks.extend(f"{response.url}: {entry}" for entry in SECRETS.findall(heard))

    page.on("response", read)
    run = served.run_id
    for path in ("/assessments/a1", f"/review?run={run}"):
        page.goto(served.url + path)
        page.wait_for_load_state("load")
    ready(page)
    for key in ("j", "j", "k", "i", "i", "o", "v", "t", "ArrowRight", "s"):
        pressed(page, key)
    assert leaks == []


def test_nor_does_it_travel_to_programs(served: Served) -> None:
    run = served.run_id
    for path in (
        f"/review.json?run={run}&item=a1",
        "/assessments/a1.json",
        "/api/review/next?desk=desk&limit=20",
    ):
        with urllib.request.urlopen(served.url + path) as answer:
            assert not SECRETS.findall(answer.read().decode()), path


def test_names_are_said_once_it_is_decided(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    first = complete_item(page)
    pressed(page, "a")
    eventually(lambda: served.get(f"/api/assessments/{first}")["state"] == "approved")
    page.goto(f"{served.url}/assessments/{first}")
    ready(page)
    shown = page.locator("main").inner_text()
    assert all(name in shown for name in NAMES)
    pressed(page, "u")
    eventually(lambda: served.get(f"/api/assessments/{first}")["hidden"])


def test_run_document_has_no_score_of_waiting_items(served: Served) -> None:
    document = served.get(f"/api/runs/{served.run_id}")
    assert set(document) >= {"run", "evaluations", "telemetry"}
    assert {one["scores"] for one in document["evaluations"]} == {None}


def test_uncalibrated_judge_is_marked_at_grades_and_run(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/assessments/a1")
    page.wait_for_selector("table.grades")
    expect(
        page.locator("section[aria-labelledby=grades-title]").get_by_text("Judge: uncalibrated")
    ).to_be_visible()
    page.goto(f"{served.url}/runs/{served.run_id}")
    expect(page.locator("aside.facts").get_by_text("uncalibrated")).to_be_visible()
