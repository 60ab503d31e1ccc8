"""Late answers never replace the reviewer's open form, and never act on another item."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Error, expect
from tests.web.conftest import (
    PAINTED,
    Served,
    Watch,
    asks_why,
    complete_item,
    eventually,
    eventually_in,
    item_of,
    pressed,
    ready,
    unsent,
)

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

pytestmark = pytest.mark.slow

LATE = """(part) => {
  const send = window.fetch;
  const free = new Promise((done) => { window.letGo = done; });
  window.fetch = async (path, more) => {
    if (String(path).includes(part)) await free;
    return send(path, more);
  };
}"""


def late(page: Page, part: str) -> None:
    """Keep requests to addresses with a part in them until `let_go`."""
    page.evaluate(LATE, part)


def let_go(page: Page) -> None:
    page.evaluate("() => window.letGo()")


def has_answered(page: Page, path: str) -> None:
    """Let the kept requests go, and wait until the page has dealt with the answer to one of
    them.
    """
    with page.expect_event("requestfinished", lambda request: request.url.endswith(path)):
        let_go(page)
    page.evaluate(PAINTED)


def said(page: Page) -> str:
    return page.locator("#said").text_content() or ""


def verbs(served: Served) -> list[tuple[int, str]]:
    return [(key, verb) for key, verb, _ in served.events()]


def write_note(page: Page, text: str) -> None:
    page.keyboard.press("c")
    page.locator("#correct-note").focus()
    for letter in text:
        page.keyboard.press("Space" if letter == " " else letter)


def decided_before(page: Page) -> tuple[str, str]:
    """Approve an item and load the page anew; that item, and the one on the page."""
    first = complete_item(page)
    pressed(page, "a")
    eventually(lambda: unsent(page) == 0)
    page.reload()
    return first, ready(page)


def test_undone_item_keeps_the_open_form(review: Page, served: Served) -> None:
    first, here = decided_before(review)
    late(review, "/api/")
    review.keyboard.press("u")
    write_note(review, "a gap")
    let_go(review)
    expect(review.locator("#said")).to_contain_text("comes next")
    for letter in " a kind axe":
        review.keyboard.press("Space" if letter == " " else letter)
    assert item_of(review) == here
    expect(review.locator("#correct-note")).to_have_value("a gap a kind axe")
    assert verbs(served) == [(int(first[1:]), "approve"), (int(first[1:]), "undo")]
    review.keyboard.press("Escape")
    review.keyboard.press("Escape")
    review.get_by_role("button", name="Discard").click() if review.locator(
        "[data-field]"
    ).count() else None
    assert pressed(review, "j") == first


def test_undone_item_comes_next_after_moving_on(review: Page, served: Served) -> None:
    first, _ = decided_before(review)
    here = complete_item(review)
    late(review, "/api/")
    review.keyboard.press("u")
    other = pressed(review, "a")
    has_answered(review, f"/api/assessments/{first}")
    assert item_of(review) == other
    assert other not in {first, here}
    assert pressed(review, "j") == first


def test_late_trial_keeps_the_open_form(review: Page, served: Served) -> None:
    first, here = decided_before(review)
    # decided, so that the page does not hold it
    link = review.locator(f"#heading .strip a[href*='{first}']")
    for _ in range(8):
        if link.count():
            break
        here = pressed(review, "j")
    late(review, f"/api/assessments/{first}")
    link.dispatch_event("click")
    write_note(review, "a kind axe")
    has_answered(review, f"/api/assessments/{first}")
    assert item_of(review) == here
    expect(review.locator("#correct-note")).to_have_value("a kind axe")
    assert verbs(served) == [(int(first[1:]), "approve")]


def test_undone_item_returns_to_a_waiting_page(review: Page) -> None:
    first, _ = decided_before(review)
    review.keyboard.press("u")
    eventually(lambda: item_of(review) == first)
    assert "awaits review again." in said(review)


def test_refusal_keeps_the_open_form(review: Page, served: Served) -> None:
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
    write_note(review, "a small")
    let_go(review)
    expect(review.get_by_role("button", name="Show it")).to_be_visible()
    assert item_of(review) == here
    expect(review.locator("#correct-note")).to_have_value("a small")


def test_change_in_another_tab_keeps_the_open_form(review: Page, served: Served) -> None:
    here = complete_item(review)
    other = review.context.new_page()
    other.goto(f"{served.url}/assessments/{here}")
    ready(other)
    write_note(review, "a kind")
    other.keyboard.press("a")
    eventually(lambda: verbs(served) == [(int(here[1:]), "approve")])
    eventually(lambda: unsent(other) == 0)
    asks_why(other, "r")
    other.keyboard.press("1")
    eventually(lambda: "changed elsewhere" in said(review))
    assert item_of(review) == here
    expect(review.locator("#correct-note")).to_have_value("a kind")


def held(page: Page, script: str) -> list[Route]:
    """Requests for a script, kept until they are let go."""
    kept: list[Route] = []

    def keep(route: Route) -> None:
        kept.append(route)

    page.route(f"**/{script}.js", keep)
    return kept


def test_a_second_opinion_is_for_the_item_it_was_asked_at(review: Page, served: Served) -> None:
    first = complete_item(review)
    kept = held(review, "blind_verdict")
    review.reload()  # a form among the items before this one has loaded the script
    assert ready(review) == first
    review.keyboard.press("f")
    other = pressed(review, "j")
    eventually_in(review, lambda: kept)
    kept[0].continue_()
    eventually(lambda: "is reviewed by two people" in said(review))
    assert served.get(f"/api/assessments/{first}")["second"]
    assert not served.get(f"/api/assessments/{other}")["second"]


def test_no_decision_slips_past_a_wish_for_a_second_opinion(review: Page, served: Served) -> None:
    first = complete_item(review)
    kept = held(review, "blind_verdict")
    review.reload()  # a form among the items before this one has loaded the script
    assert ready(review) == first
    review.keyboard.press("f")
    eventually_in(review, lambda: kept)
    for key in ("a", "c", "x", "f", "s"):
        review.keyboard.press(key)
        assert "Requesting a second opinion" in said(review)
    assert item_of(review) == first
    kept[0].continue_()
    eventually(lambda: "This item is reviewed by two people" in said(review))
    assert served.get(f"/api/assessments/{first}")["second"]
    pressed(review, "a")
    assert "your opinion is saved" in said(review)
    eventually(lambda: unsent(review) == 0)
    assert served.states() == {"pending": 10}


def test_a_quotation_that_comes_late_leaves_the_next_item_alone(review: Page) -> None:
    complete_item(review)
    kept = held(review, "page_frame")
    review.keyboard.press("]")
    review.locator("#reason .quote").first.click()
    pressed(review, "a")
    chosen = review.locator("#item > :not(.behind) [role=tab][aria-selected=true]").first
    before = chosen.get_attribute("id") or ""
    eventually_in(review, lambda: kept)
    with review.expect_event("requestfinished", lambda request: "page_frame" in request.url):
        kept[0].continue_()
    review.evaluate(PAINTED)
    expect(chosen).to_have_attribute("id", before)


@pytest.mark.parametrize("button", [False, True])
def test_an_unsaved_correction_is_not_approved_over(
    review: Page, served: Served, button: bool
) -> None:
    here = complete_item(review)
    review.keyboard.press("c")
    review.locator('[data-field="0.0"]').fill("1")
    review.keyboard.press("Escape")
    if button:
        review.locator("[data-action=approve]").click()
    else:
        review.keyboard.press("a")
    assert said(review) == "Your correction is not saved. Ctrl Enter saves it; Esc discards it."
    assert item_of(review) == here
    expect(review.locator('[data-field="0.0"]')).to_have_value("1")
    assert unsent(review) == 0
    pressed(review, "Control+Enter")
    eventually(lambda: verbs(served) == [(int(here[1:]), "correct")])


def test_a_form_without_a_change_may_be_approved(review: Page, served: Served) -> None:
    here = complete_item(review)
    review.keyboard.press("c")
    review.locator("#thing").focus()
    assert pressed(review, "a") != here
    eventually(lambda: verbs(served) == [(int(here[1:]), "approve")])


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1360, 500)])
def test_the_next_item_begins_at_its_top(review: Page, width: int, height: int) -> None:
    review.set_viewport_size({"width": width, "height": height})
    complete_item(review)
    review.evaluate("() => scrollTo(0, 600)")
    assert review.evaluate("() => scrollY") > 100
    pressed(review, "a")
    box = review.locator("#thing").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < height / 2


def test_arrows_move_from_a_focused_grade(review: Page) -> None:
    complete_item(review)
    review.locator('.right:not(.behind) [data-cell="0.0"]').focus()
    cell = "() => document.activeElement.dataset.cell"
    seen = []
    review.locator('.right:not(.behind) [data-cell="0.0"]').click()
    for key in ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft"):
        review.keyboard.press(key)
        seen.append(review.evaluate(cell))
    assert seen == ["1.0", "1.1", "0.1", "0.0"]


def test_tabs_keep_the_focus(review: Page) -> None:
    complete_item(review)
    review.keyboard.press("[")
    review.keyboard.press("[")
    focused = "() => document.activeElement.id"
    review.locator("#tab-0").focus()
    review.keyboard.press("ArrowRight")
    assert review.evaluate(focused) == "tab-1"
    review.locator("#tab-rules").focus()
    review.keyboard.press("Enter")
    assert review.evaluate(focused) == "tab-rules"
    expect(review.locator("#tab-rules")).to_have_attribute("aria-selected", "true")


BAR = """() => {
  const { top, bottom, height } = document.querySelector(".actions").getBoundingClientRect();
  const said = document.getElementById("said").getBoundingClientRect();
  return [height / innerHeight, top, bottom - innerHeight, said.height > 0 && said.top >= 0 && said.bottom <= top + 1];
}"""
COVERED = """() => {
  const one = document.activeElement;
  if (!one.closest("main")) return null;
  const { top, bottom, height } = one.getBoundingClientRect();
  const bar = document.querySelector(".actions").getBoundingClientRect().top;
  return height < bar && bottom > bar + 1 ? `${one.outerHTML.slice(0, 90)} ${bottom} ${bar}` : null;
}"""


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1360, 500), (340, 213), (820, 600)])
def test_the_bar_and_its_words_stay_in_sight(review: Page, width: int, height: int) -> None:
    review.set_viewport_size({"width": width, "height": height})
    complete_item(review)
    review.evaluate("() => scrollTo(0, 0)")
    review.keyboard.press("k")
    assert "no more items" in said(review)
    share, top, below, words = review.evaluate(BAR)
    assert share <= 1 / 3 + 0.01
    assert below <= 1
    assert words
    approve = review.locator("[data-action=approve]").bounding_box()
    assert approve is not None
    assert top - 1 <= approve["y"] < approve["y"] + approve["height"] <= height + 1
    covered = []
    for _ in range(35):
        review.keyboard.press("Tab")
        covered.append(review.evaluate(COVERED))
    assert [one for one in covered if one] == []


def changed(page: Page, served: Served, spans: list[list[int]]) -> None:
    """Open the review; every response has 200 lines and every grade these quotations, in its reason
    as well.
    """

    def change(route: Route) -> None:
        try:
            answer = route.fetch()
        except Error:
            return  # the test is over
        body: dict[str, Any] = answer.json()
        quotes = [{"text": f"line {span[0]}", "at": span} for span in spans]
        for item in body["items"]:
            item["flags"] = []
            for pane in item["panes"]:
                pane.update(text="\n".join(f"line {n}" for n in range(1, 201)), lines=200)
            for criterion in item["criteria"]:
                for cell in filter(None, criterion["cells"]):
                    cell.update(evidence=quotes, reason=["It says ", quotes[0], "."])
        with suppress(Error):  # the page may have gone on while the answer was changed
            route.fulfill(response=answer, json=body)

    page.route("**/api/review/next?*", change)
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)


def lit(page: Page) -> list[int]:
    """Numbers of the highlighted lines, read in one step because a key press replaces them."""
    lines: list[int] = page.evaluate(
        "[...document.querySelectorAll('.left:not(.behind) .lit')].map((line) => Number(line.dataset.n))"
    )
    return lines


def test_quotations_are_gone_through_from_the_first_one_on_and_each_once(
    page: Page, served: Served
) -> None:
    changed(page, served, [[3, 3], [9, 9], [3, 3]])
    for line in (3, 9, 3, 9):
        page.keyboard.press("v")
        eventually(lambda line=line: lit(page) == [line])  # type: ignore[misc]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("v")
    eventually(lambda: lit(page) == [3])
    pressed(page, "j")
    page.keyboard.press("v")
    eventually(lambda: lit(page) == [3])


def test_item_prepared_in_a_narrow_window_fits_a_wide_one(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 600, "height": 700})
    changed(page, served, [[150, 150]])
    complete_item(page)
    page.wait_for_function("() => document.querySelectorAll('.behind .line').length > 0")
    in_view = """() => {
      const line = document.querySelector(".left:not(.behind) .lit").getBoundingClientRect();
      const box = document.querySelector(".left:not(.behind) pre").getBoundingClientRect();
      return line.top >= box.top && line.bottom <= box.bottom;
    }"""
    pressed(page, "a")
    assert page.evaluate(in_view), "in the narrow one"
    page.wait_for_function("() => document.querySelectorAll('.behind .line').length > 0")
    page.set_viewport_size({"width": 1360, "height": 700})
    page.evaluate(PAINTED)
    pressed(page, "a")
    assert page.evaluate(in_view)


def test_script_that_cannot_be_fetched_is_reported_in_plain_words(
    context: BrowserContext, review: Page, watch: Watch
) -> None:
    watch.expected = ("Failed to load resource", "ERR_INTERNET_DISCONNECTED")
    complete_item(review)
    words = review.locator("body").get_attribute("data-offline") or ""
    assert words
    review.context.set_offline(True)
    for key in ("v", "f"):
        review.keyboard.press(key)
        eventually(lambda: said(review) == words)
        review.evaluate("() => { document.getElementById('said').textContent = ''; }")
    review.keyboard.press("i")
    eventually(lambda: words in (review.locator("#pane").text_content() or ""))
    review.keyboard.press("o")
    eventually(
        lambda: words in (review.locator(".right:not(.behind) details.report").text_content() or "")
    )
    pressed(review, "a")
    review.context.set_offline(False)
