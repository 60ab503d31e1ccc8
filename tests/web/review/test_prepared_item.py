"""The next item's sides are made and laid out behind those of the one on the page; nobody sees,
finds or reaches them before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.support.waiting_store import fill
from tests.web.conftest import complete_item, pressed, ready, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

MADE = "() => document.querySelector('.behind .line .w') !== null"
IDS = "() => [...document.querySelectorAll('[id]')].map(one => one.id)"
MARK = "() => document.querySelectorAll('.behind').forEach((side, place) => { side.firstElementChild.dataset.made = place; })"


def made(page: Page) -> None:
    """Wait until the next item is made and its code coloured, because the colours draw it anew."""
    page.wait_for_function(MADE)


def test_prepared_item_comes_to_the_front(review: Page) -> None:
    complete_item(review)
    made(review)
    coming = review.locator(".left.behind pre").text_content() or ""
    review.evaluate(MARK)
    pressed(review, "a")
    front = review.locator("#item > :not(.behind)")
    expect(front.locator("[data-made]"), "the very same elements").to_have_count(2)
    expect(front.locator("pre").first).to_have_text(coming)
    expect(front.locator("[data-cell].on")).to_have_count(1)
    assert review.evaluate("() => document.activeElement.id") == "thing"
    ids = review.evaluate(IDS)
    assert len(ids) == len(set(ids))
    assert {"pane", "tab-0", "reason", "grades-title"} <= set(ids)
    made(review)
    again = review.evaluate(IDS)
    assert sorted(again) == sorted(ids), "what lies behind has none"


def test_prepared_item_is_neither_visible_nor_focusable(review: Page) -> None:
    complete_item(review)
    made(review)
    expect(review.locator(".behind pre")).not_to_be_visible()
    for _ in range(60):
        review.keyboard.press("Tab")
        assert not review.evaluate("() => Boolean(document.activeElement.closest('.behind'))")
    expect(review.get_by_role("table")).to_have_count(1)
    review.emulate_media(media="print")
    assert (
        review.evaluate("() => getComputedStyle(document.querySelector('.behind')).display")
        == "none"
    )


def test_undo_shows_the_former_item_and_not_the_prepared_one(review: Page) -> None:
    item = complete_item(review)
    shown = review.locator("#item > :not(.behind)").all_inner_texts()
    made(review)
    pressed(review, "a")
    made(review)
    pressed(review, "u")
    expect(review.locator("#item")).to_have_attribute("data-id", item)
    expect(review.locator("#item > :not(.behind)")).to_have_text(shown, use_inner_text=True)


def test_a_report_that_is_open_is_open_in_the_next_one_too(review: Page) -> None:
    complete_item(review)
    made(review)
    pressed(review, "o")
    review.wait_for_function(
        "() => document.querySelector('#item > :not(.behind) details.report').open"
    )
    pressed(review, "a")
    report = review.locator("#item > :not(.behind) details.report")
    report.locator(".prose p").first.wait_for()
    assert report.evaluate("one => one.open")


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1360, 500)])
def test_where_all_is_one_column_the_next_one_takes_no_room(
    review: Page, width: int, height: int
) -> None:
    review.set_viewport_size({"width": width, "height": height})
    complete_item(review)
    made(review)
    assert [one.bounding_box() for one in review.locator(".behind").all()] == [None, None]
    pressed(review, "s")
    expect(review.locator("#item > :not(.behind) pre")).to_be_visible()


def test_of_a_long_text_only_what_is_near_its_evidence_is_painted(
    chromium: Browser, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/assay.db"
    fill(store, 10, words=2000)
    with serving(tmp_path, store=store) as server, chromium.new_context() as context:
        page = context.new_page()
        page.goto(f"{server.url}/review")
        ready(page)
        page.wait_for_selector(".behind [data-at][style]", state="attached")
        pressed(page, "a")
        article = page.locator(".left:not(.behind) article")
        expect(article.locator(".quoted")).to_be_in_viewport()
        first = article.locator("em").first
        painted = "block => block.checkVisibility({ contentVisibilityAuto: true })"
        assert not first.evaluate(painted)
        height = article.evaluate("text => text.scrollHeight")
        article.evaluate("text => text.scrollTo(0, 0)")
        expect(first).to_be_in_viewport()
        page.wait_for_function(painted, arg=first.element_handle())
        assert article.evaluate("text => text.scrollHeight") == pytest.approx(height, abs=2), (
            "text jumps while it scrolls"
        )
