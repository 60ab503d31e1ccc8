"""Pages on paper, with more contrast, and in the colours of the system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.web.conftest import Served, Watch, ready

if TYPE_CHECKING:
    from playwright.sync_api import Page

SHOWN = "node => getComputedStyle(node).display !== 'none'"


def test_print_shows_text_and_no_controls(page: Page, served: Served, watch: Watch) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(f"{served.url}/assessments/a1")
    ready(page)
    assert not page.locator("header.top").evaluate(SHOWN)
    assert not page.locator("footer.actions").evaluate(SHOWN)
    assert (
        page.locator("main").evaluate("node => getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    clipped = page.evaluate(
        """() => [...document.querySelectorAll('main *')]
             .filter((node) => ['auto', 'scroll', 'hidden'].includes(getComputedStyle(node).overflowY))
             .filter((node) => node.scrollHeight > node.clientHeight + 2 && !node.closest('.sr, svg'))
             .map((node) => node.className)"""
    )
    assert clipped == []
    page.goto(f"{served.url}/compare")
    assert not page.locator("form").first.evaluate(SHOWN)


def test_selection_is_visible_in_forced_colours(page: Page, served: Served, watch: Watch) -> None:
    page.emulate_media(forced_colors="active")
    page.goto(f"{served.url}/start?suite=gates.json")
    page.wait_for_selector(".choice-pill input:checked")
    outline = "node => getComputedStyle(node.nextElementSibling).outlineStyle"
    assert page.locator(".choice-pill input:checked").first.evaluate(outline) == "solid"
    assert page.locator(".choice-pill input:not(:checked)").first.evaluate(outline) == "none"
    here = "node => getComputedStyle(node).borderBottomWidth"
    for address, place in (
        ("/start", ".who .go"),
        ("/runs", ".top nav a"),
        ("/models", ".who .set"),
        ("/models", ".within a"),
    ):
        page.goto(f"{served.url}{address}")
        assert page.locator(f"{place}[aria-current]").evaluate(here) == "3px"


def test_more_contrast_is_given_where_it_is_asked_for(
    page: Page, served: Served, watch: Watch
) -> None:
    page.goto(served.url)
    soft = "() => getComputedStyle(document.querySelector('main .soft')).color"
    usual = page.evaluate(soft)
    page.emulate_media(contrast="more")
    assert page.evaluate(soft) != usual


def test_nothing_moves_where_less_motion_is_asked_for(
    page: Page, served: Served, watch: Watch
) -> None:
    moving = """() => {
      for (const run of document.querySelectorAll('[data-run-state]')) {
        run.dataset.runState = 'running';
        run.hidden = false; // as the script of the page shows a run that is not finished
      }
      return document.getAnimations().length;
    }"""
    page.emulate_media(reduced_motion="reduce")
    page.goto(served.url)
    assert page.evaluate(moving) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(moving) > 0
