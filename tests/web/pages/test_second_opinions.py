"""Two people decide: what a page counts as waiting is what its reader can still decide."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Served, decided, eventually, ready
from tests.web.review.test_blind_verdict import switch

if TYPE_CHECKING:
    from playwright.sync_api import Page


def asked(
    served: Served, path: str, body: dict[str, Any] | None = None, *, as_: str = "ann"
) -> Any:
    headers = {
        "content-type": "application/json",
        "cookie": f"assay_reviewer={as_}",
        "sec-fetch-site": "same-origin",
    }
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(
        urllib.request.Request(served.url + path, data, headers), timeout=30
    ) as answer:
        return json.load(answer)


def decide(served: Served, item: str, verb: str, *, as_: str) -> None:
    """Decide as a page does: it shows the item to this person first, so that the opinion is this
    person's own.
    """
    asked(served, f"/api/assessments/{item}", as_=as_)
    by_name = {
        "key": f"{item}-{as_}-{verb}",
        "id": item,
        "verb": verb,
        "reason": "why",
        "reviewer": as_,
    }
    (result,) = asked(served, "/api/decisions", {"decisions": [by_name]}, as_=as_)["results"]
    assert result["ok"], result


def goes_as(page: Page, served: Served, name: str) -> None:
    page.context.add_cookies([{"name": "assay_reviewer", "value": name, "url": served.url}])


def test_items_for_another_reviewer_are_counted_and_not_offered(page: Page, served: Served) -> None:
    switch(served.folder, second=1.0)
    items = [f"a{n}" for n in range(1, 11)]
    for item in items[:-1]:
        decide(served, item, "reject", as_="ann")
    goes_as(page, served, "ann")
    page.goto(served.url)
    expect(page.get_by_role("link", name="Start reviewing")).to_be_visible()
    expect(page.locator("#for-others")).to_contain_text(
        "9 of them need another reviewer", use_inner_text=True
    )
    page.goto(f"{served.url}/review?run={served.run_id}")
    assert ready(page) == "a10"
    eventually(
        lambda: "1 waiting · 9 for other reviewers" in page.locator("#progress-text").inner_text()
    )
    page.keyboard.press("x")
    page.keyboard.press("1")
    eventually(
        lambda: (
            "10 items need another reviewer" in (page.locator("#empty-lines").text_content() or "")
        )
    )
    eventually(
        lambda: (
            "0 of 10 decided · 0 waiting · 10 for other reviewers"
            in page.locator("#progress-text").inner_text()
        )
    )
    page.goto(served.url)
    expect(page.locator("#for-others")).to_contain_text(
        "All of them need another reviewer", use_inner_text=True
    )
    expect(page.get_by_role("link", name="Start reviewing")).to_have_count(0)
    goes_as(page, served, "bob")
    page.goto(served.url)
    expect(page.locator("#for-others")).to_have_count(0)
    expect(page.get_by_role("link", name="Start reviewing")).to_be_visible()
    assert asked(served, "/runs.json", as_="bob")["others"] == 0


def test_an_own_opinion_and_a_dispute_offer_no_decision(page: Page, served: Served) -> None:
    switch(served.folder, second=1.0)
    decide(served, "a2", "approve", as_="ann")
    goes_as(page, served, "ann")
    page.goto(f"{served.url}/assessments/a2")
    ready(page)
    expect(page.locator("#heading")).to_contain_text("your opinion is saved", use_inner_text=True)
    for action in ("approve", "correct", "reject", "second"):
        expect(page.locator(f"[data-action={action}]"), action).to_have_attribute(
            "aria-disabled", "true"
        )
    page.keyboard.press("a")
    eventually(
        lambda: "another reviewer will give the second one" in page.locator("#said").inner_text()
    )
    decide(served, "a2", "reject", as_="bob")
    goes_as(page, served, "cleo")
    page.goto(f"{served.url}/assessments/a2")
    ready(page)
    expect(page.locator("#heading")).to_contain_text(
        "the two reviewers disagree", use_inner_text=True
    )
    page.keyboard.press("x")
    eventually(lambda: "only adjudication can settle it" in page.locator("#said").inner_text())
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_filtered_review_counts_its_filtered_items(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/review?run={served.run_id}&task=gate-1")
    ready(page)
    eventually(lambda: "0 of 5 decided" in page.locator("#progress-text").inner_text())
    for _ in range(5):
        decided(page, "x", "1")
    eventually(lambda: "5 of 5 decided · 0 waiting" in page.locator("#progress-text").inner_text())
    eventually(lambda: "has been decided" in (page.locator("#empty-lines").text_content() or ""))
    eventually(lambda: served.states() == {"rejected": 5, "pending": 5})


def test_address_of_a_missing_thing_is_404(served: Served) -> None:
    for query in ("item=a9999", "item=zzz", "task=nope", "judge=nobody"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{served.url}/review?{query}")
        assert refused.value.code == 404, query
