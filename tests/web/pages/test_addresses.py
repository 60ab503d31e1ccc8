"""Filters show what the address says, also after Back; downloads are told apart by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Served

from assay.web.templating import folder

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

BACK = "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"
"""What a browser says to a page it kept whole; the browser of these tests keeps none by itself."""


@pytest.fixture(scope="module")
def template(free_template: Path) -> Path:
    return free_template


@pytest.fixture(scope="module")
def served(standing: Served) -> Served:
    return standing


def test_after_back_the_choice_is_that_of_the_address(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/results?run={served.run_id}")
    page.get_by_text("Compare two candidates in detail").click()
    first = page.locator("#compare select[name=a]")
    stood = first.input_value()
    other = next(name for name in first.locator("option").all_inner_texts() if name != stood)
    first.focus()
    first.select_option(other)
    second = page.locator("#compare select[name=b]").input_value()
    assert second == stood, "the two change places: nobody is compared with themselves"
    page.locator("#compare button").click()
    page.wait_for_url("**a=**")
    assert (first.input_value(), page.locator("#compare select[name=b]").input_value()) == (
        other,
        second,
    )
    page.go_back()
    page.wait_for_url(lambda url: "a=" not in url)
    expect(first).to_have_value(stood)


def test_a_page_that_was_kept_whole_shows_its_address_too(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/results?run={served.run_id}")
    page.get_by_text("Compare two candidates in detail").click()
    first = page.locator("#compare select[name=a]")
    stood = first.input_value()
    first.select_option(index=2)
    page.get_by_text("+ Filter").click()
    page.locator("#filter-kind").select_option("tag")
    page.locator("#filters").evaluate("form => form.dispatchEvent(new Event('submit'))")
    expect(page.locator("#filter-value"), "what is empty is not sent").to_be_disabled()
    page.evaluate(BACK)
    page.wait_for_function("() => document.getElementById('filter-value').name === 'task'")
    expect(page.locator("#filter-value")).to_be_enabled()
    expect(first).to_have_value(stood)


def test_forms_turn_autofill_off() -> None:
    items = [
        (template.name, form)
        for template in folder("templates").rglob("*.html")
        for form in re.findall(r"<form [^>]*>", template.read_text("utf-8"))
        if "method=" in form or "action=" in form
    ]
    assert len(items) >= 10
    assert [name for name, form in items if 'autocomplete="off"' not in form] == []


def test_each_download_is_named_after_its_content(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/results?run={served.run_id}")
    expect(page.locator("#behind [data-chart] svg:visible")).to_have_count(1)
    names = page.locator("a[download]").evaluate_all(
        "links => links.map((link) => link.textContent.trim())"
    )
    assert len(names) > 6
    assert len(set(names)) == len(names)
    figure = page.locator("figure.chart").first
    title = figure.locator("h2").inner_text()
    expect(figure.get_by_role("link", name=f"SVG {title}", exact=True)).to_have_count(1)
