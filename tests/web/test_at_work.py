"""What a late answer does not do: replace what somebody is at, or act on another item than the one a key was pressed at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.web.conftest import Served, complete_item, eventually, item_of, pressed, ready, unsent

if TYPE_CHECKING:
    from playwright.sync_api import Page

LATE = """([part, ms]) => {
  const send = window.fetch;
  window.fetch = async (path, more) => {
    if (String(path).includes(part)) await new Promise((done) => setTimeout(done, ms));
    return send(path, more);
  };
}"""


def late(page: Page, part: str, ms: int = 500) -> None:
    """Answers to addresses with a part in them come later."""
    page.evaluate(LATE, [part, ms])


def said(page: Page) -> str:
    return page.locator("#said").text_content() or ""


def verbs(served: Served) -> list[tuple[int, str]]:
    return [(key, verb) for key, verb, _ in served.events()]


def write_note(page: Page, text: str) -> None:
    page.keyboard.press("c")
    page.locator("#correct-note").focus()
    for letter in text:
        page.keyboard.press("Space" if letter == " " else letter)
        page.wait_for_timeout(40)


def decided_before(page: Page) -> tuple[str, str]:
    """Approve an item and load the page anew; that item, and the one on the page."""
    first = complete_item(page)
    pressed(page, "a")
    eventually(lambda: unsent(page) == 0)
    page.reload()
    return first, ready(page)


def test_what_is_undone_does_not_replace_what_one_writes(review: Page, served: Served) -> None:
    first, here = decided_before(review)
    late(review, "/api/")
    review.keyboard.press("u")
    write_note(review, "has a small gap at a call, a kind axe")
    eventually(lambda: "comes next" in said(review))
    assert item_of(review) == here
    assert review.locator("#correct-note").input_value() == "has a small gap at a call, a kind axe"
    assert verbs(served) == [(int(first[1:]), "approve"), (int(first[1:]), "undo")]
    review.keyboard.press("Escape")
    review.keyboard.press("Escape")
    review.get_by_role("button", name="Discard").click() if review.locator("[data-field]").count() else None
    assert pressed(review, "j") == first


def test_what_is_undone_comes_next_where_one_has_gone_on(review: Page, served: Served) -> None:
    first, here = decided_before(review)
    late(review, "/api/")
    review.keyboard.press("u")
    other = pressed(review, "a")
    eventually(lambda: "comes next" in said(review))
    assert item_of(review) == other != here
    review.get_by_role("button", name="Show it now").click()
    assert ready(review) == first


def test_what_is_undone_is_on_the_page_again_where_one_waits_for_it(review: Page) -> None:
    first, _ = decided_before(review)
    review.keyboard.press("u")
    eventually(lambda: item_of(review) == first)
    assert "waits again." in said(review)


def test_a_trial_that_comes_late_does_not_replace_what_one_writes(review: Page, served: Served) -> None:
    here = complete_item(review)
    late(review, "/api/assessments/")
    strange = review.locator("#heading .strip a").first  # it was put back, and is not held any more
    strange.click()
    write_note(review, "a kind axe")
    eventually(lambda: "comes next" in said(review))
    assert item_of(review) == here
    assert review.locator("#correct-note").input_value() == "a kind axe"
    assert served.events() == []


def test_a_refusal_does_not_replace_what_one_writes(review: Page, served: Served) -> None:
    first = complete_item(review)
    other = review.context.new_page()
    other.goto(f"{served.url}/assessments/{first}")
    ready(other)
    other.keyboard.press("x")
    other.keyboard.press("1")
    eventually(lambda: verbs(served) == [(int(first[1:]), "reject")])
    other.close()
    late(review, "/api/")
    here = pressed(review, "a")
    write_note(review, "a small gap at a call")
    eventually(lambda: review.get_by_role("button", name="Show it now").is_visible())
    assert item_of(review) == here
    assert review.locator("#correct-note").input_value() == "a small gap at a call"


def test_what_another_tab_changed_stays_while_one_writes(review: Page, served: Served) -> None:
    here = complete_item(review)
    other = review.context.new_page()
    other.goto(f"{served.url}/assessments/{here}")
    ready(other)
    write_note(review, "a kind")
    other.keyboard.press("a")
    eventually(lambda: verbs(served) == [(int(here[1:]), "approve")])
    other.keyboard.press("r")
    other.keyboard.press("1")
    eventually(lambda: "changed elsewhere" in said(review))
    assert item_of(review) == here
    assert review.locator("#correct-note").input_value() == "a kind"
