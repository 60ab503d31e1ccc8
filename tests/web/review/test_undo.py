"""Undo by `u` takes back the reviewer's last act with its typed text, and nothing of another
item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.web.conftest import (
    Served,
    Watch,
    asks_why,
    complete_item,
    eventually,
    item_of,
    judged_store,
    new_context,
    pressed,
    ready,
    serving,
    unsent,
    write_judge,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.slow

FAULTS = (
    "Failed to load resource",
    "ERR_CONNECTION",
    "ERR_FAILED",
    "ERR_EMPTY_RESPONSE",
    "ERR_INTERNET_DISCONNECTED",
)


def said(page: Page) -> str:
    return page.locator("#said").text_content() or ""


def verbs(served: Served) -> list[tuple[int, str]]:
    return [(key, verb) for key, verb, _ in served.events()]


def test_undo_after_a_rerun_takes_nothing_else_back(review: Page, served: Served) -> None:
    first = complete_item(review)
    again = pressed(review, "a")
    pressed(review, "r", "1")
    eventually(lambda: unsent(review) == 0)
    before = verbs(served)
    review.keyboard.press("u")
    assert "a rerun cannot be undone" in said(review)
    eventually(lambda: unsent(review) == 0)
    assert verbs(served) == before == [(int(first[1:]), "approve"), (int(again[1:]), "rerun")]
    assert pressed(review, "u") == first
    eventually(lambda: verbs(served)[2:] == [(int(first[1:]), "undo")])


def test_undo_after_a_failed_rerun_takes_nothing_else_back(
    review: Page, served: Served, watch: Watch
) -> None:
    watch.expected = FAULTS
    first = complete_item(review)
    pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    error = {"where": "judge", "problem": "the recording ends.", "remedy": ""}
    review.route("**/api/rerun", lambda route: route.fulfill(status=422, json={"error": error}))
    complete_item(review)
    pressed(review, "r", "1")
    expect(review.locator("#said")).to_contain_text("the judge failed")
    review.keyboard.press("u")
    expect(review.locator("#said")).to_contain_text("a rerun cannot be undone")
    eventually(lambda: unsent(review) == 0)
    assert verbs(served) == [(int(first[1:]), "approve")]


def test_a_rerun_that_was_not_sent_is_dropped(review: Page, served: Served, watch: Watch) -> None:
    watch.expected = FAULTS
    complete_item(review)
    approved = item_of(review)
    first = pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    review.context.set_offline(True)
    pressed(review, "r", "1")
    eventually(lambda: "1 decision has not been sent" in review.locator("#unsent").inner_text())
    assert pressed(review, "u") == first
    assert "will not be judged again" in said(review)
    assert unsent(review) == 0
    review.context.set_offline(False)
    again = complete_item(review)
    pressed(review, "a")
    # the outbox sends in order, so a rerun would have arrived by now
    eventually(lambda: unsent(review) == 0)
    assert verbs(served) == [(int(item[1:]), "approve") for item in (approved, again)]
    assert served.states() == {"pending": 8, "approved": 2}


def test_rerun_stays_when_its_answer_was_lost(review: Page, served: Served, watch: Watch) -> None:
    watch.expected = FAULTS
    first = complete_item(review)
    heard: list[str] = []

    def lose(route: Route) -> None:
        if not heard:
            heard.append(route.fetch().text())
        route.abort()

    review.route("**/api/rerun", lose)
    assert pressed(review, "r", "1") != first
    eventually(lambda: review.locator("#unsent").is_visible())
    assert "running" in heard[0]
    assert pressed(review, "u") != first
    assert "a rerun cannot be undone" in said(review)
    review.unroute("**/api/rerun")
    eventually(lambda: "attempt 2 is ready" in said(review))
    assert unsent(review) == 0
    assert verbs(served) == [(int(first[1:]), "rerun")]


def test_a_rerun_that_the_server_did_not_take_is_dropped(
    review: Page, served: Served, watch: Watch
) -> None:
    watch.expected = FAULTS
    first = complete_item(review)
    review.route("**/api/rerun", lambda route: route.fulfill(status=401, body="{}"))
    assert pressed(review, "r", "1") != first
    eventually(lambda: "session has expired" in review.locator("#unsent").inner_text())
    assert pressed(review, "u") == first
    assert "will not be judged again" in said(review)
    assert unsent(review) == 0
    assert verbs(served) == []


def test_a_decision_that_a_rerun_superseded_is_not_undone(review: Page, served: Served) -> None:
    first = complete_item(review)
    pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    assert pressed(review, "k") == first
    asks_why(review, "r")
    pressed(review, "1")
    eventually(lambda: "attempt 2 is ready" in said(review))
    ready(review)
    review.keyboard.press("u")
    assert "a rerun cannot be undone" in said(review)
    review.keyboard.press("u")
    assert "You have nothing to undo" in said(review)
    eventually(lambda: unsent(review) == 0)
    assert verbs(served) == [(int(first[1:]), "approve"), (int(first[1:]), "rerun")]


def typed(page: Page) -> list[str]:
    """Return the values of the form's fields, and the note."""
    return [field.input_value() for field in page.locator("[data-field], #correct-note").all()]


def correct(page: Page) -> list[str]:
    """Half a correction with a note; what stands in its fields."""
    page.keyboard.press("c")
    page.wait_for_selector('[data-field="0.0"]')
    for cell, score in (("0.0", "3"), ("1.0", "2"), ("2.1", "1")):
        page.locator(f'[data-field="{cell}"]').fill(score)
    page.locator("#correct-note").fill("as I see it")
    return typed(page)


def test_an_undone_correction_has_its_scores_and_its_note_again(
    review: Page, served: Served
) -> None:
    first = complete_item(review)
    given = correct(review)
    pressed(review, "Control+Enter")
    eventually(lambda: unsent(review) == 0)
    assert pressed(review, "u") == first
    review.keyboard.press("c")
    assert typed(review) == given
    pressed(review, "Control+Enter")
    eventually(lambda: [verb for _, verb in verbs(served)] == ["correct", "undo", "correct"])


def test_a_discarded_correction_comes_back(review: Page, served: Served) -> None:
    first = complete_item(review)
    given = correct(review)
    review.keyboard.press("Escape")
    review.keyboard.press("Escape")
    expect(review.locator("[data-field]")).to_have_count(0)
    assert "Press u to restore" in said(review)
    pressed(review, "j")
    assert pressed(review, "u") == first
    assert typed(review) == given
    assert served.events() == []
    review.get_by_role("button", name="Discard").click()
    pressed(review, "a")
    review.keyboard.press("u")
    eventually(lambda: [verb for _, verb in verbs(served)] == ["approve", "undo"])
    review.keyboard.press("u")
    assert typed(review) == given


def test_a_note_that_is_too_long_is_said_and_stays(review: Page, served: Served) -> None:
    first = item_of(review)
    review.keyboard.press("x")
    review.locator("#panel-note").fill("long " * 4001)
    review.locator("dialog[open] .choice").first.click()
    assert (
        review.locator("#panel-note")
        .evaluate("field => field.validationMessage")
        .startswith("A note can have at most")
    )
    assert len(review.locator("#panel-note").input_value()) == 20_005
    review.locator("#panel-note").fill("long " * 4000)
    review.locator("dialog[open] .choice").first.click()
    eventually(lambda: verbs(served) == [(int(first[1:]), "reject")])


def test_newer_decision_survives_a_reload(review: Page, served: Served, watch: Watch) -> None:
    watch.expected = FAULTS
    first = complete_item(review)
    served.kill()
    pressed(review, "a")
    assert pressed(review, "u") == first
    second = pressed(review, "a")
    eventually(lambda: unsent(review) == 3)
    review.wait_for_timeout(500)
    served.start()
    review.goto(f"{served.url}/review")
    ready(review)
    eventually(lambda: unsent(review) == 0)
    review.wait_for_timeout(500)
    assert [verb for _, verb in verbs(served)] == ["approve", "undo", "approve"]
    assert served.states() == {"pending": 9, "approved": 1}
    assert item_of(review) != first
    assert "awaits review again" not in said(review)
    assert second != first


def test_undo_in_one_tab_shows_in_the_other(review: Page, served: Served) -> None:
    first = complete_item(review)
    pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    assert pressed(review, "k") == first
    eventually(lambda: review.locator("#item").get_attribute("data-state") == "approved")
    other = review.context.new_page()
    other.goto(f"{served.url}/review?run={served.run_id}")
    ready(other)
    other.keyboard.press("u")
    eventually(lambda: [verb for _, verb in verbs(served)] == ["approve", "undo"])
    eventually(lambda: review.locator("#item").get_attribute("data-state") == "pending")
    assert item_of(review) == first


def test_of_two_names_one_of_which_begins_the_other_each_undoes_its_own(
    review: Page, served: Served
) -> None:
    def goes_by(name: str) -> None:
        review.evaluate(
            "(name) => fetch('/api/reviewer', { method: 'POST', headers: { 'content-type': 'application/json' }, "
            "body: JSON.stringify({ name }) })",
            name,
        )
        review.reload()
        ready(review)

    goes_by("ann.b")
    complete_item(review)
    pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    goes_by("ann")
    review.keyboard.press("u")
    eventually(lambda: "You have nothing to undo" in said(review))
    assert [reviewer for *_, reviewer in served.events()] == ["ann.b"]


def test_a_second_opinion_is_asked_for_until_the_server_answers(
    review: Page, served: Served, watch: Watch
) -> None:
    watch.expected = FAULTS
    first = complete_item(review)
    review.keyboard.press("c")  # the module is fetched with the first form
    review.wait_for_selector(".ways")
    review.keyboard.press("Escape")
    review.context.set_offline(True)
    review.keyboard.press("f")
    eventually(lambda: "request for a second opinion will be repeated" in said(review))
    review.context.set_offline(False)
    eventually(lambda: "This item is reviewed by two people" in said(review))
    assert served.get(f"/api/assessments/{first}")["second"]
    review.context.set_offline(True)
    pressed(review, "j")
    review.keyboard.press("f")
    eventually(lambda: "request for a second opinion will be repeated" in said(review))
    pressed(review, "k")
    eventually(lambda: "did not reach the server" in said(review))


def test_undo_withdraws_a_second_opinion_and_nothing_else(review: Page, served: Served) -> None:
    first = complete_item(review)
    pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    second = complete_item(review)
    review.keyboard.press("f")
    expect(review.locator("#said")).to_contain_text("reviewed by two people")
    review.keyboard.press("u")
    expect(review.locator("#said")).to_contain_text(
        "your request for a second opinion has been withdrawn"
    )
    assert not served.get(f"/api/assessments/{second}")["second"]
    assert served.get(f"/api/assessments/{first}")["state"] == "approved"
    assert [verb for _, verb in verbs(served)] == ["approve"]
    review.keyboard.press("f")
    expect(review.locator("#said")).to_contain_text("reviewed by two people")
    assert served.get(f"/api/assessments/{second}")["second"], "it may be requested again"


def test_the_trial_strip_and_the_tally_follow_an_undo(review: Page, served: Served) -> None:
    first = complete_item(review)
    k = served.get(f"/api/assessments/{first}")["k"]
    mark = review.locator(".strip > li").nth(k - 1)
    pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    while (
        served.get(f"/api/assessments/{item_of(review)}")["task"]
        != served.get(f"/api/assessments/{first}")["task"]
    ):
        pressed(review, "s")
    expect(mark).to_contain_text("✓")
    review.keyboard.press("u")
    eventually(lambda: item_of(review) == first)
    expect(mark).to_contain_text("○")
    pressed(review, "j")
    while item_of(review) == first:
        pressed(review, "j")
    expect(mark).to_contain_text("○")


def test_a_decision_that_a_rerun_replaced_leaves_the_end_tally(
    chromium: Browser, watch: Watch, tmp_path: Path
) -> None:
    folder = tmp_path / "bench"
    folder.mkdir()
    store = judged_store(folder, things=1, trials=2, judge=write_judge(folder, missing_in=None))
    with serving(store) as server, new_context(chromium) as context:
        page = context.new_page()
        watch.on(page, server)
        page.goto(f"{server.url}/review?run={server.run_id}")
        ready(page)
        first = item_of(page)
        assert pressed(page, "a") != first
        eventually(lambda: unsent(page) == 0)
        assert pressed(page, "k") == first
        asks_why(page, "r")
        pressed(page, "1")
        expect(page.locator("#said")).to_contain_text("attempt 2 is ready")
        second = ready(page)
        pressed(page, "a")
        eventually(lambda: item_of(page) != second)  # the new attempt may still be on its way
        ready(page)
        page.keyboard.press("a")
        expect(page.locator("#empty-lines")).to_contain_text(
            "In this session: 2 approved on screen, 1 rerun."
        )
        eventually(lambda: server.states() == {"approved": 2, "superseded": 1})
