"""The page that compares answers, in a browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from fastapi import Request
from playwright.sync_api import expect
from tests.web.accessibility import serious
from tests.web.conftest import NAMES, Served, Watch, eventually

from assay.web.pages.answers_side_by_side import Sides, _parts

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def template(free_template: Path) -> Path:
    return free_template


@pytest.fixture(scope="module")
def served(standing: Served) -> Served:
    return standing


def address(served: Served, *names: str, **more: str) -> str:
    return "/compare?" + urlencode(
        [*(("col", f"{served.run_id}~{name}") for name in names), *more.items()]
    )


def test_columns_are_chosen_by_checkbox_and_the_rows_stand_side_by_side(
    page: Page, served: Served
) -> None:
    page.goto(served.url + "/")
    page.get_by_role("link", name="Compare", exact=True).click()
    for name in NAMES[:2]:
        page.get_by_label(name).check()
    page.get_by_role("button", name="Compare", exact=True).click()
    first = page.locator("article.answer")
    expect(first).to_have_count(1)
    expect(page.locator(".task-list li")).to_have_text(["Gate 1, disagree", "Gate 2, disagree"])
    assert serious(page) == []
    expect(first.locator(".pane")).to_have_count(2)
    expect(first.locator("h2")).to_have_text("Gate 1", use_inner_text=True)
    assert first.locator(".pane").nth(1).locator("pre").inner_text().count("def enter") == 1
    expect(first.locator(".pane").nth(0).locator("mark")).to_have_text(
        ["wilhelmina", "0"], use_inner_text=True
    )
    expect(first.locator(".pane").nth(1).locator("mark")).to_have_text(
        ["bartholomew", "1"], use_inner_text=True
    )
    expect(first.locator(".says").first).to_have_text("disagree", use_inner_text=True)
    page.get_by_text("Rubric: 4 criteria").click()
    expect(page.get_by_text("maintainability").first).to_be_visible()


def test_one_task_is_shown_and_j_and_k_open_the_others(page: Page, served: Served) -> None:
    page.goto(served.url + address(served, *NAMES[:2]))
    title = page.locator("article.answer h2")
    expect(title).to_have_text("Gate 1")
    page.keyboard.press("j")
    expect(title).to_have_text("Gate 2")
    expect(page.locator(".task-list [aria-current]")).to_contain_text("Gate 2")
    assert "task=gate-2" in page.url
    page.keyboard.press("k")
    expect(title).to_have_text("Gate 1")
    numbers = page.locator(".numbered").first.locator(".ln")
    expect(numbers).to_have_count(10)
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("() => document.documentElement.scrollHeight") < 4_000
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_differences_are_marked_unasked_only_in_similar_texts() -> None:
    result = (
        "We have refunded the shipping of your order and the voucher is on its way to you today."
    )
    other = "Seven green bottles stood upon a wall; nobody knew why anybody had put them there."
    sides = Sides(Request({"type": "http", "query_string": b"col=r~a&col=r~b", "headers": []}))
    assert [part.changed for part in _parts(result, result.replace("today", "soon"), sides)] == [
        False,
        True,
        False,
    ]
    assert [part.changed for part in _parts(result, other, sides)] == [False]
    sides.by = "word"
    assert any(part.changed for part in _parts(result, other, sides))
    sides.by = "off"
    assert [part.changed for part in _parts(result, result + " Bye.", sides)] == [False]


def test_runs_are_found_by_name(page: Page, served: Served) -> None:
    page.goto(served.url + "/compare")
    page.get_by_label("Find runs").fill("GATES")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("fieldset")).to_have_count(1)
    page.get_by_label("Find runs").fill("nowhere")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("No run has a matching suite")).to_be_visible()


def test_extracted_answers_decide_agreement(page: Page, served: Served) -> None:
    page.goto(served.url + address(served, *NAMES))
    page.get_by_text("Advanced").click()
    page.get_by_label("Field to extract").fill(r"import (\w+)")
    page.get_by_label("Title from the input").fill("Nothing (.*)\\.")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("article.answer .says.agree")).to_have_count(1)
    expect(page.locator("article.answer .value")).to_have_text(
        ["threading"] * 3, use_inner_text=True
    )
    expect(page.locator("article.answer h2").first).to_have_text(
        "may enter twice", use_inner_text=True
    )
    page.locator("select[name=only]").select_option("disagree")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("article.answer")).to_have_count(0)
    expect(page.get_by_text("No more rows match.")).to_be_visible()
    expect(
        page.get_by_label("Field to extract"), "the whole state is in the address"
    ).to_have_value(r"import (\w+)")
    page.get_by_role("link", name="Agreement between answers").click()
    expect(page.get_by_text("2 tasks: all answers agree on 2, some differ on 0.")).to_be_visible()
    expect(page.locator("table").first.locator("td", has_text="100.0%")).to_have_count(6)


def test_search_and_lines(page: Page, served: Served) -> None:
    page.goto(served.url + address(served, *NAMES[:2], q="gate 2", by="line"))
    expect(page.locator("article.answer h2")).to_have_text(["Gate 2"], use_inner_text=True)
    expect(page.locator("mark").first).to_contain_text("# by wilhelmina", use_inner_text=True)


def test_panes_of_a_row_scroll_together_until_told_not_to(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 1360, "height": 700})
    page.goto(served.url + address(served, *NAMES[:2]))
    panes = page.locator(".abreast").first.locator("pre.text")
    page.evaluate(
        "document.querySelectorAll('pre.text').forEach((pane) => pane.style.setProperty('max-height', '60px'))"
    )
    panes.nth(0).evaluate("pane => { pane.scrollTop = 40; }")
    eventually(lambda: panes.nth(1).evaluate("pane => pane.scrollTop") > 10)
    page.get_by_text("Advanced").click()
    page.get_by_label("Scroll together").uncheck()
    panes.nth(0).evaluate("pane => { pane.scrollTop = 0; }")
    page.wait_for_timeout(200)
    assert panes.nth(1).evaluate("pane => pane.scrollTop") > 10


def test_json_twin_matches_the_page(served: Served) -> None:
    response = served.get(address(served, *NAMES[:2]).replace("/compare?", "/compare.json?"))
    assert [row["title"] for row in response["rows"]] == ["Gate 1", "Gate 2"]
    assert [one["state"] for one in response["rows"][0]["answers"]] == ["ok", "ok"]
    assert json.dumps(response).count("score") == 4
    assert any(one["score"] is not None for row in response["rows"] for one in row["answers"])
    assert response["next"] is None
    agreement = served.get(
        address(served, *NAMES[:2]).replace("/compare?", "/compare/agreement.json?")
    )
    assert agreement["matrix"] == [[None, 0.0], [0.0, None]]


def test_wrong_address_names_the_valid_values(served: Served, page: Page, watch: Watch) -> None:
    watch.expected = ("Failed to load resource",)
    for path, result in (
        ("/compare?col=nonsense", "Write RUN~CANDIDATE"),
        (address(served, "nobody"), "No candidate named “nobody”"),
        (
            address(served, *NAMES, read="(unclosed").replace("/compare?", "/compare/agreement?"),
            "is not a valid rule",
        ),
        (address(served, NAMES[0], only="some"), "Use one of all, agree"),
        (address(served, NAMES[0], after="x"), "not a valid page position"),
    ):
        page.goto(served.url + path)
        expect(page.locator("main"), path).to_contain_text(result, use_inner_text=True)


def test_search_without_a_match_names_the_search_text(page: Page, served: Served) -> None:
    page.goto(served.url + address(served, *NAMES, q="zebra"))
    expect(page.locator("main")).to_contain_text("No text contains “zebra”.", use_inner_text=True)


def test_unusable_mapping_is_explained_at_its_field(page: Page, served: Served) -> None:
    page.goto(served.url + address(served, *NAMES))
    page.get_by_text("Advanced").click()
    for label, name in (("Field to extract", "read"), ("Title from the input", "title")):
        field = page.get_by_label(label)
        field.fill("(unclosed")
        page.get_by_role("button", name="Apply").click()
        page.locator(f"#wrong-{name}").wait_for()
        expect(page.locator(f"#wrong-{name}")).to_contain_text(
            f"{label}: '(unclosed' is not a valid rule", use_inner_text=True
        )
        expect(field).to_have_value("(unclosed")
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(page.locator("article.answer"), "all the rest is there").to_have_count(1)
    assert serious(page) == []
    assert "unclosed" not in str(
        page.get_by_role("link", name="Agreement between answers").get_attribute("href")
    )


def test_scrolling_apart_stands_in_the_address_and_is_kept(page: Page, served: Served) -> None:
    page.goto(served.url + address(served, *NAMES[:2]))
    box = page.get_by_label("Scroll together")
    expect(box).to_be_checked()
    page.get_by_text("Advanced").click()
    box.uncheck()
    page.wait_for_url("**together=no**")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**together=no**")
    expect(box, "the form says it too").not_to_be_checked()
    page.get_by_role("link", name="Agreement between answers").click()
    page.wait_for_url("**/agreement?**together=no**")
    page.go_back()
    box.check()
    page.wait_for_url(lambda url: "together" not in url)
    assert "together" not in str(
        page.get_by_role("link", name="Agreement between answers").get_attribute("href")
    )
    page.get_by_role("button", name="Apply").click()
    page.wait_for_load_state()
    expect(box).to_be_checked()
    assert "together" not in page.url
