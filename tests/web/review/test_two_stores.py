"""Two stores take turns at one address, as projects do: what was decided in one never touches the
other.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.web.conftest import (
    BOXES,
    Served,
    ServedHere,
    Watch,
    complete_item,
    eventually,
    item_of,
    judged_store,
    pressed,
    ready,
    unsent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.slow
FAULTS = ("Failed to load resource", "ERR_CONNECTION", "ERR_EMPTY_RESPONSE")
BEFORE = "assay.outbox.1"


@pytest.fixture(scope="module")
def other_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_store(tmp_path_factory.mktemp("other") / "store")


@pytest.fixture
def other(served: ServedHere, other_folder: Path) -> Iterator[Served]:
    """Another project's server, to be started at the same address once the first has ended."""
    server = replace(served, folder=other_folder, process=None, thread=None, server=None)
    yield server
    server.kill()


def switch(gone: Served, come: Served) -> None:
    gone.kill()
    come.start()


def opened(page: Page, served: Served) -> str:
    page.goto(f"{served.url}/review")
    return ready(page)


def said(page: Page) -> str:
    return page.locator("#said").text_content() or ""


def test_decisions_wait_for_the_store_they_were_taken_in(
    review: Page, served: Served, other: Served, watch: Watch
) -> None:
    watch.expected = FAULTS
    served.kill()
    first = complete_item(review)
    second = pressed(review, "a")
    pressed(review, "x", "1")
    eventually(lambda: unsent(review) == 2)
    other.start()
    eventually(
        lambda: (
            "2 decisions for the earlier store are saved in this browser"
            in review.locator("#unsent").inner_text()
        ),
        within_s=20,
    )
    opened(review, other)
    eventually(lambda: "2 decisions saved in this browser belong to another store" in said(review))
    mine = item_of(review)
    pressed(review, "x", "1")
    eventually(
        lambda: [(key, verb) for key, verb, _ in other.events()] == [(int(mine[1:]), "reject")]
    )
    eventually(lambda: unsent(review) == 2)
    switch(other, served)
    opened(review, served)
    eventually(lambda: unsent(review) == 0)
    assert [(key, verb) for key, verb, _ in served.events()] == [
        (int(first[1:]), "approve"),
        (int(second[1:]), "reject"),
    ]


def test_undo_and_drafts_stay_with_their_store(
    review: Page, served: Served, other: Served, watch: Watch
) -> None:
    watch.expected = FAULTS
    complete_item(review)
    pressed(review, "a")
    drafted = complete_item(review)
    review.keyboard.press("c")
    review.keyboard.type("3")
    eventually(lambda: unsent(review) == 0)
    before = served.events()
    switch(served, other)
    held = other.events()
    review.goto(f"{other.url}/assessments/{drafted}")
    ready(review)
    expect(review.locator("[data-field]"), "the other store's draft").to_have_count(0)
    opened(review, other)
    review.keyboard.press("u")
    eventually(lambda: "You have nothing to undo" in said(review))
    eventually(lambda: unsent(review) == 0)
    assert other.events() == held
    switch(other, served)
    review.goto(f"{served.url}/assessments/{drafted}")
    ready(review)
    assert "3" in [field.input_value() for field in review.locator("[data-field]").all()]
    assert served.events() == before


@pytest.mark.parametrize("verb", ["approve", "rerun"])
def test_a_run_that_is_not_here_is_refused_and_kept(
    review: Page, served: Served, watch: Watch, verb: str
) -> None:
    watch.expected = FAULTS
    first = item_of(review)
    entry = {
        "key": "0123456789",
        "id": first,
        "verb": verb,
        "run": "20200101-000000-gates-beef",
        "reviewer": "ann",
        "what": "Gate 7 · Trial 1 of 5",
        "reason": "why",
        "attempt": 1,
    }
    review.evaluate(
        """entry => { const id = JSON.parse(document.getElementById('boot').textContent).store;
        localStorage[`assay.outbox.2.${id}`] = JSON.stringify([entry]); }""",
        entry,
    )
    review.reload()
    ready(review)
    eventually(
        lambda: "Gate 7 · Trial 1 of 5" in said(review) and "saved in this browser" in said(review)
    )
    mine = complete_item(review)
    pressed(review, "a")
    eventually(lambda: served.states().get("approved") == 1)
    assert [key for key, _, _ in served.events()] == [int(mine[1:])]
    eventually(lambda: unsent(review) == 1)


def test_api_refuses_requests_for_another_store(review: Page, served: Served, watch: Watch) -> None:
    watch.expected = FAULTS
    ask = """async ([path, body, store]) => { const answer = await fetch(path, { method: body ? 'POST' : 'GET',
        headers: { 'content-type': 'application/json', 'assay-store': store }, body: body && JSON.stringify(body) });
        return [answer.status, (await answer.json()).error?.where ?? null]; }"""
    one: dict[str, Any] = {"key": "0123456789", "id": "a1", "verb": "reject", "reason": "why"}
    assert review.evaluate(ask, ["/api/decisions", {"decisions": [one]}, "somebody-elses"]) == [
        409,
        "store",
    ]
    assert review.evaluate(ask, ["/api/review/next?desk=desk", None, "somebody-elses"]) == [
        409,
        "store",
    ]
    assert review.evaluate(ask, ["/review.json", None, "somebody-elses"]) == [409, "store"]
    for path in ("verdict", "second"):
        body: dict[str, Any] = {"key": "0123456789", "id": "a1", "run": "another"}
        body |= {"scores": [{"pane": 0, "score": 0.5}]} if path == "verdict" else {}
        asked = [f"/api/review/{path}", body, served_store(review)]
        assert review.evaluate(ask, asked) == [409, "run"]
    assert served.events() == []


def test_a_run_that_nobody_knows_is_said_before_anything_is_applied(
    review: Page, served: Served, watch: Watch
) -> None:
    watch.expected = FAULTS
    ask = """async (body) => { const answer = await fetch('/api/decisions', { method: 'POST',
        headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }); return answer.status; }"""
    one = {"key": "0123456789", "id": "a4", "verb": "reject", "reason": "why"}
    assert review.evaluate(ask, {"run": "20200101-000000-gates-beef", "decisions": [one]}) == 404
    assert served.events() == []
    assert review.evaluate(ask, {"run": served.run_id, "decisions": [one]}) == 200
    assert [(key, verb) for key, verb, _ in served.events()] == [(4, "reject")]


def served_store(page: Page) -> str:
    return str(page.evaluate("() => JSON.parse(document.getElementById('boot').textContent).store"))


def written(item: str, run: str | None, number: int) -> dict[str, Any]:
    """A rejection as pages wrote it when one box served all stores."""
    return {
        "key": f"{number:016x}",
        "id": item,
        "verb": "reject",
        "reviewer": "ann",
        "run": run,
        "what": f"Gate 1 · Trial {number} of 5",
        "reason": "why",
        "active_ms": 5,
        "tried": True,
    }


def test_old_outbox_releases_only_this_store_s_decisions(
    page: Page, served: Served, other: Served, watch: Watch
) -> None:
    watch.expected = FAULTS
    page.goto(f"{served.url}/signin")
    kept = [
        written("a1", served.run_id, 1),
        written("a2", "20200101-000000-gates-beef", 2),
        written("a3", None, 3),
    ]
    page.evaluate("([name, box]) => { localStorage[name] = JSON.stringify(box); }", [BEFORE, kept])
    opened(page, served)
    eventually(lambda: [(key, verb) for key, verb, _ in served.events()] == [(1, "reject")])
    eventually(lambda: "1 decision made before an update" in said(page))
    assert "Gate 1 · Trial 3 of 5" in said(page)
    assert [one["id"] for one in json.loads(page.evaluate(f"() => localStorage['{BEFORE}']"))] == [
        "a2",
        "a3",
    ]
    page.get_by_role("button", name="Send to this store").click()
    eventually(lambda: sorted(key for key, _, _ in served.events()) == [1, 3])
    assert [one["id"] for one in json.loads(page.evaluate(f"() => localStorage['{BEFORE}']"))] == [
        "a2"
    ]
    opened(page, served)
    eventually(lambda: "1 decision saved in this browser belongs to another store" in said(page))
    assert page.evaluate(f"() => {BOXES}.length") == 1
