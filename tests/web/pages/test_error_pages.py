"""Error pages: the message, the links onwards, and the same as JSON for programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, Watch

from assay.domain.errors import InputError, Refused, StoreError, UnknownName
from assay.web.error_pages import problem_page

if TYPE_CHECKING:
    from playwright.sync_api import Page


def html_of(
    error: InputError | StoreError, status: int, path: str = "/runs/x", query: str = ""
) -> str:
    scope: dict[str, Any] = {"path": path, "query_string": query.encode(), "headers": []}
    return bytes(problem_page(scope, status, error).body).decode()


def main_of(html: str) -> str:
    match = re.search(r"<main.*</main>", html, re.DOTALL)
    assert match is not None
    return match[0]


def test_a_name_almost_right_leads_to_the_page_that_was_meant(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("404",)
    run = served.run_id
    page.goto(f"{served.url}/runs/{run}x")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        f"No run named “{run}x”", use_inner_text=True
    )
    assert "assay" not in page.locator("main").inner_text().replace(run, "")
    expect(page.get_by_role("link", name="All runs")).to_have_attribute("href", "/runs")
    page.get_by_role("link", name=run, exact=True).click()
    page.wait_for_url(f"**/runs/{run}")
    expect(page.get_by_role("heading", level=1)).to_have_text("gates", use_inner_text=True)


def test_a_misspelt_page_leads_to_the_page(page: Page, served: Served, watch: Watch) -> None:
    watch.expected = ("404",)
    page.goto(served.url)
    page.goto(f"{served.url}/result")
    expect(
        page.get_by_role("link", name="Results"), "in the navigation, and in the answer"
    ).to_have_count(2)
    page.get_by_role("button", name="Go back").click()
    page.wait_for_url(f"{served.url}/")


def test_a_misspelt_suite_leads_to_the_suite(page: Page, served: Served, watch: Watch) -> None:
    watch.expected = ("404",)
    page.goto(f"{served.url}/start?suite=gate.json")
    page.get_by_role("link", name="gates.json").click()
    page.wait_for_url("**/start?suite=gates.json")


def test_page_reports_that_the_server_is_gone(page: Page, served: Served, watch: Watch) -> None:
    watch.expected = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "Failed to load resource")
    page.goto(f"{served.url}/runs/{served.run_id}")
    page.get_by_text("Extend this run").click()
    page.locator("#more").fill("2")
    served.kill()
    page.get_by_role("button", name="Estimate cost").click()
    page.get_by_text("The server is not responding. Try again later.").wait_for()


def test_invalid_address_is_explained_and_corrected(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("422",)
    page.goto(f"{served.url}/runs/{served.run_id}?from=-3")
    result = page.locator("main").inner_text()
    assert "from = -3" in result
    assert "0 or more" in result
    page.get_by_role("link", name="Open the page without this").click()
    page.wait_for_url(f"**/runs/{served.run_id}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    ["/runs/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%E2%80%AEevil", "/runs/x?from=</script><b>"],
)
def test_hostile_addresses_stay_text_and_the_page_is_whole(
    page: Page, served: Served, watch: Watch, path: str
) -> None:
    watch.expected = ("404", "422")
    for width, height in WIDTHS:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(served.url + path)
        assert (
            page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            <= 0
        )
    expect(page.locator("main img, main b")).to_have_count(0)
    expect(page.locator("main")).not_to_contain_text("\u202e", use_inner_text=True)
    assert serious(page) == []


def test_a_twin_keeps_the_form_of_every_failed_request(served: Served, page: Page) -> None:
    for path, status in (
        (f"/runs/{served.run_id}x.json", 404),
        (f"/runs/{served.run_id}.json?from=abc", 422),
    ):
        answer = page.request.get(served.url + path)
        assert answer.status == status
        assert set(answer.json()["error"]) == {"where", "problem", "remedy"}
    assert answer.json()["error"]["problem"] == "is abc, and must be a whole number."


def test_refused_run_action_links_to_its_remedy() -> None:
    error = Refused(
        "run r-1",
        "is still being reviewed.",
        remedy="Finish its review first; `assay diff` shows it now.",
    )
    result = main_of(html_of(error, 409))
    assert "Run r-1 is still being reviewed" in result
    assert "Finish its review first." in result
    assert "assay diff" not in result
    assert 'href="/review?run=r-1"' in result


def test_internal_error_page_hides_details_and_offers_a_retry() -> None:
    result = main_of(html_of(StoreError("/results", "KeyError"), 500, "/results", "run=1"))
    assert "KeyError" not in result
    assert 'href="/results?run=1"' in result


def test_other_wrong_input_leads_to_the_page_without_its_filters() -> None:
    result = main_of(
        html_of(InputError("", "several runs begin with '20'."), 422, "/review", "run=20")
    )
    assert "Several runs begin with" in result
    assert 'href="/review"' in result


def test_names_like_the_unknown_one_are_kept_nearest_first() -> None:
    error = UnknownName("candidate", "Adda", ["bruno", "adda-2", "ada"])
    assert error.near[0] == "ada"
    assert set(error.near) == {"ada", "adda-2"}
    assert str(error) == "there is no candidate 'Adda'. Did you mean 'ada'?"
    assert UnknownName("run", "x").near == ()
