"""What `u` takes back: always the last thing one did, with all that was typed, and nothing of another item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.web.conftest import Served, Watch, complete_item, eventually, item_of, pressed, ready, unsent

if TYPE_CHECKING:
    from playwright.sync_api import Page

FAULTS = ("Failed to load resource", "ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_INTERNET_DISCONNECTED")


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
    review.wait_for_timeout(300)
    assert verbs(served) == before == [(int(first[1:]), "approve"), (int(again[1:]), "rerun")]
    assert pressed(review, "u") == first
    eventually(lambda: verbs(served)[2:] == [(int(first[1:]), "undo")])


def test_a_rerun_that_was_not_sent_is_dropped(review: Page, served: Served, watch: Watch) -> None:
    watch.expected = FAULTS
    complete_item(review)
    approved = item_of(review)
    first = pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    review.context.set_offline(True)
    pressed(review, "r", "1")
    eventually(lambda: "1 decision waits" in review.locator("#unsent").inner_text())
    assert pressed(review, "u") == first
    assert "is not judged again" in said(review)
    assert unsent(review) == 0
    review.context.set_offline(False)
    review.wait_for_timeout(1500)
    assert verbs(served) == [(int(approved[1:]), "approve")]
    assert served.states() == {"pending": 9, "approved": 1}


def test_a_decision_that_a_rerun_superseded_is_not_undone(review: Page, served: Served) -> None:
    first = complete_item(review)
    pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    assert pressed(review, "k") == first
    pressed(review, "r", "1")
    eventually(lambda: "attempt 2 is there" in said(review))
    ready(review)
    review.keyboard.press("u")
    assert "a rerun cannot be undone" in said(review)
    review.keyboard.press("u")
    assert "nothing of yours to undo" in said(review)
    review.wait_for_timeout(300)
    assert verbs(served) == [(int(first[1:]), "approve"), (int(first[1:]), "rerun")]
