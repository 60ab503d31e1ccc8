"""Tables wider than their place: one way everywhere to see that there is more, and to reach it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.web.accessibility import serious
from tests.web.conftest import Served, Watch

from assay.web.templating import NAV, SETTINGS, folder

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

_PLACE = re.compile(r'class="[^"]*scroll[^"]*"[^>]*>\s*$')


@pytest.fixture(scope="module")
def template(free_template: Path) -> Path:
    return free_template


@pytest.fixture(scope="module")
def served(standing: Served) -> Served:
    return standing


def test_wide_table_keeps_its_first_column_and_scrolls_by_keyboard(
    page: Page, served: Served, watch: Watch
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{served.url}/statistics/trials")
    place = page.locator(".scroll[data-wide]").first
    place.wait_for()
    assert place.evaluate("place => getComputedStyle(place, '::before').content").startswith(
        '"Scroll sideways'
    )
    first = place.locator("tbody th").first
    before = first.bounding_box()
    place.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.scroll[data-wide]').scrollLeft > 20")
    after = first.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["x"] - after["x"]) < 1
    assert serious(page) == []


def test_a_table_that_fits_is_no_stop_of_the_tab_key(
    page: Page, served: Served, watch: Watch
) -> None:
    page.set_viewport_size({"width": 1360, "height": 800})
    page.goto(f"{served.url}/statistics/trials")
    page.wait_for_selector(".scroll[tabindex='-1']")
    expect(page.locator(".scroll[data-wide]")).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_selector(".scroll[data-wide][tabindex='0']")


def test_every_table_that_may_be_wide_stands_in_such_a_place() -> None:
    bare = set()
    for template in folder("templates").rglob("*.html"):
        text = template.read_text("utf-8")
        if any(not _PLACE.search(text[: entry.start()]) for entry in re.finditer(r"<table", text)):
            bare.add(template.name)
    assert bare <= {"rubric.html", "reviewer.html", "runs.html"}, (
        "tables of two short columns, and one that always fits"
    )


def test_the_list_of_runs_fits_at_every_width(page: Page, served: Served, watch: Watch) -> None:
    page.goto(f"{served.url}/runs")
    for width in (320, 390, 899, 901, 1360):
        page.set_viewport_size({"width": width, "height": 844})
        beyond = """table => [...table.querySelectorAll('tbody *')].filter((node) =>
          node.getBoundingClientRect().right > table.parentElement.getBoundingClientRect().right + 1).length"""
        assert page.locator(".run-list").evaluate(beyond) == 0, width
        assert page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        ), width


def test_the_whole_navigation_is_reached_on_a_narrow_screen(
    page: Page, served: Served, watch: Watch
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{served.url}/arena")
    nav = page.locator(".top nav")
    assert nav.evaluate("nav => nav.scrollWidth <= nav.clientWidth"), "nothing of it is cut off"
    expect(nav.locator("[aria-current=page]")).to_have_text("Arena")
    for _, address, _ in NAV:
        expect(nav.locator(f"a[href='{address}']")).to_be_in_viewport(ratio=1)
    page.click(".top .set")
    within = page.locator("nav.within")
    assert within.evaluate("nav => nav.scrollWidth <= nav.clientWidth"), "nothing of it is cut off"
    for _, address, _ in SETTINGS:
        expect(within.locator(f"a[href='{address}']")).to_be_in_viewport(ratio=1)
