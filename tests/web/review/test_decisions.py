"""The review page in a real browser: decisions by key and by button, undo, reruns, and what guards
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.web.conftest import (
    Served,
    Watch,
    complete_item,
    decided,
    eventually,
    first_cell,
    item_of,
    pressed,
    ready,
    unsent,
)

from assay.app.review import decisions
from assay.app.workspace import Workspace
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.quick_browser


def state_of(served: Served, item: str) -> str:
    return str(served.get(f"/api/assessments/{item}")["state"])


def test_one_key_approves_and_the_next_item_is_there(review: Page, served: Served) -> None:
    first = complete_item(review)
    second = pressed(review, "a")
    assert second != first
    eventually(lambda: state_of(served, first) == "approved")
    (event,) = served.events()
    assert event[1] == "approve"


@pytest.mark.slow
def test_buttons_act_like_their_keys(review: Page, served: Served) -> None:
    first = complete_item(review)
    review.get_by_role("button", name="Approve").click()
    ready(review)
    eventually(lambda: state_of(served, first) == "approved")
    review.get_by_role("button", name="Undo").click()
    eventually(lambda: state_of(served, first) == "pending")
    assert item_of(review) == first
    review.get_by_role("button", name="Reject").click()
    review.get_by_role("button", name="It quotes text that does not exist").click()
    eventually(lambda: state_of(served, first) == "rejected")


def test_undo_restores_the_exact_former_state(review: Page, served: Served) -> None:
    first = complete_item(review)
    before = served.get(f"/api/assessments/{first}")
    pressed(review, "a")
    eventually(lambda: state_of(served, first) == "approved")
    assert pressed(review, "u") == first
    eventually(lambda: state_of(served, first) == "pending")
    after = served.get(f"/api/assessments/{first}")
    assert [event["verb"] for event in after.pop("events")] == ["approve", "undo"]
    before.pop("events")
    assert after == before


def test_rejecting_takes_a_reason(review: Page, served: Served) -> None:
    first = item_of(review)
    review.keyboard.press("x")
    review.wait_for_selector("dialog[open]")
    assert state_of(served, first) == "pending"
    pressed(review, "3")
    eventually(lambda: state_of(served, first) == "rejected")
    assert (
        served.get(f"/api/assessments/{first}")["events"][0]["reason"]
        == "The scores contradict the reasons"
    )


def test_the_last_reason_asks_for_a_note_and_escape_changes_nothing(
    review: Page, served: Served
) -> None:
    first = item_of(review)
    review.keyboard.press("x")
    review.keyboard.press("6")
    assert review.evaluate("document.activeElement.id") == "panel-note"
    review.keyboard.press("Escape")
    expect(review.locator("dialog[open]")).to_have_count(0)
    assert item_of(review) == first
    assert state_of(served, first) == "pending"
    review.keyboard.press("x")
    review.keyboard.press("6")
    review.keyboard.type("a reason of mine")
    review.keyboard.press("Control+Enter")
    eventually(lambda: state_of(served, first) == "rejected")
    assert served.get(f"/api/assessments/{first}")["events"][0]["note"] == "a reason of mine"


def test_a_correction_counts_with_the_persons_scores(review: Page, served: Served) -> None:
    first = complete_item(review)
    name = review.locator('.right:not(.behind) [data-cell="0.0"]').get_attribute("aria-label")
    assert name is not None
    assert name.startswith("integrity, Candidate A")
    first_cell(review)
    review.keyboard.press("c")
    assert review.evaluate("document.activeElement.dataset.field") == "0.0"
    review.keyboard.type("2,5")
    pressed(review, "Enter")
    eventually(lambda: state_of(served, first) == "corrected")
    item = served.get(f"/api/assessments/{first}")
    assert item["criteria"][0]["cells"][0]["raw"] == 2.5
    assert item["criteria"][0]["cells"][0]["judged"] > 2.5
    assert item["panes"][0]["score"] < item["panes"][0]["judged"]
    assert item["events"][0]["reason"] == "The judge scored too high"


def test_a_score_outside_its_scale_is_said_and_not_sent(review: Page, served: Served) -> None:
    first = complete_item(review)
    first_cell(review)
    review.keyboard.press("c")
    review.keyboard.type("11")
    review.keyboard.press("Enter")
    expect(review.locator("#correct-error")).to_have_text(
        "integrity takes scores from 0 to 10.", use_inner_text=True
    )
    assert item_of(review) == first
    assert unsent(review) == 0


def test_item_without_a_score_cannot_be_approved_and_says_why(page: Page, served: Served) -> None:
    lacking = next(
        a for a in (f"a{n}" for n in range(1, 11)) if served.get(f"/api/assessments/{a}")["missing"]
    )
    page.goto(f"{served.url}/assessments/{lacking}")
    ready(page)
    page.keyboard.press("a")
    expect(page.locator("#said")).to_contain_text(
        "cannot be approved as it is", use_inner_text=True
    )
    page.keyboard.press("c")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    eventually(lambda: state_of(served, lacking) == "corrected")


@pytest.mark.slow
def test_a_draft_survives_leaving_the_page(review: Page, served: Served) -> None:
    first = complete_item(review)
    first_cell(review)
    review.keyboard.press("c")
    review.keyboard.type("3")
    review.goto(f"{served.url}/")
    review.goto(f"{served.url}/assessments/{first}")
    ready(review)
    expect(review.locator('[data-field="0.0"]')).to_have_value("3")
    assert state_of(served, first) == "pending"


def test_a_key_pressed_twice_decides_once(review: Page, served: Served) -> None:
    complete_item(review)
    review.evaluate(
        """() => { for (let i = 0; i < 5; i += 1)
             document.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true, repeat: i > 2})); }"""
    )
    ready(review)
    eventually(lambda: unsent(review) == 0)
    assert [verb for _, verb, _ in served.events()] == ["approve"]


def test_keys_in_fields_and_with_modifiers_decide_nothing(review: Page, served: Served) -> None:
    complete_item(review)
    review.keyboard.press("c")
    for key in ("a", "x", "r", "s", "u"):
        review.keyboard.press(key)
    review.keyboard.press("Escape")
    review.keyboard.press("Escape")
    for key in ("Control+a", "Alt+a", "Backspace", "Delete", "Space", "Enter"):
        review.keyboard.press(key)
    assert served.events() == []


def test_single_keys_can_be_turned_off(review: Page, served: Served) -> None:
    complete_item(review)
    review.keyboard.press("?")
    review.get_by_label("Use single-key shortcuts").uncheck()
    review.keyboard.press("Escape")
    review.keyboard.press("a")
    eventually(lambda: unsent(review) == 0)
    assert served.events() == []


@pytest.mark.slow
def test_a_skipped_item_comes_back_at_the_end(review: Page, served: Served) -> None:
    first = item_of(review)
    seen = [first, pressed(review, "s")]
    assert first not in seen[1:]
    for _ in range(12):
        if review.locator("#item").is_hidden():
            break
        decided(review, "x", "3")
        seen.append(item_of(review))
    others = dict.fromkeys(item for item in seen if item != first)
    assert len(others) == 9
    assert seen.index(first, 1) > seen.index([*others][-1])


def test_looking_back_and_forth_decides_nothing(review: Page, served: Served) -> None:
    first = item_of(review)
    second = pressed(review, "j")
    assert second != first
    assert pressed(review, "k") == first
    assert served.events() == []


def test_a_reload_shows_the_same_item(review: Page) -> None:
    second = pressed(review, "j")
    review.wait_for_url(f"**item={second}*")
    review.reload()
    assert ready(review) == second


@pytest.mark.slow
def test_rerun_shows_both_attempts_side_by_side(review: Page, served: Served) -> None:
    first = complete_item(review)
    pressed(review, "r", "4")
    eventually(lambda: state_of(served, first) == "superseded")
    eventually(lambda: unsent(review) == 0)
    old = served.get(f"/api/assessments/{first}")
    (new,) = old["attempts"]
    assert (new["attempt"], new["state"]) == (2, "pending")
    assert old["hidden"], "the new attempt waits, so the old one still hides names"
    eventually(lambda: pressed(review, "j") == new["id"])
    review.goto(f"{served.url}/assessments/{new['id']}")
    ready(review)
    expect(review.get_by_role("heading", name="Compare attempts")).to_be_visible()
    assert served.states()["superseded"] == 1


@pytest.mark.slow
def test_a_rerun_that_fails_brings_its_item_back(page: Page, served: Served) -> None:
    first = next(
        f"a{n}" for n in range(1, 11) if not served.get(f"/api/assessments/a{n}")["missing"]
    )
    page.goto(f"{served.url}/assessments/{first}")
    ready(page)
    page.keyboard.press("r")
    page.keyboard.press("1")
    page.wait_for_url(lambda url: f"/{first}" not in url)
    page.wait_for_load_state()
    second = ready(page)
    page.keyboard.press("r")
    page.keyboard.press("1")
    eventually(lambda: "the judge failed" in page.locator("#said").inner_text(), within_s=60)
    expect(page.locator("#said")).to_contain_text("the earlier grades remain", use_inner_text=True)
    assert state_of(served, second) == "pending"


@pytest.mark.slow
def test_decisions_carry_the_name_chosen_on_the_page(review: Page, served: Served) -> None:
    complete_item(review)
    review.get_by_role("button", name="Reviewer").click()
    review.get_by_label("Name").fill("anna müller")
    review.get_by_role("button", name="Save").click()
    eventually(lambda: review.locator("#reviewer-shown").inner_text() == "anna müller")
    ready(review)
    pressed(review, "a")
    eventually(lambda: unsent(review) == 0)
    assert [reviewer for _, _, reviewer in served.events()] == ["anna müller"]


def test_two_tabs_never_show_the_same_item(review: Page, served: Served) -> None:
    other = review.context.browser.new_context() if review.context.browser else None
    assert other is not None
    tab = other.new_page()
    tab.goto(review.url.split("&item")[0])
    ready(tab)
    mine = {item_of(review), *(pressed(review, "j") for _ in range(3))}
    theirs = {item_of(tab), *(pressed(tab, "j") for _ in range(3))}
    assert not mine & theirs
    other.close()


def test_a_decision_taken_elsewhere_meanwhile_is_told_and_not_overwritten(
    review: Page, served: Served, watch: Watch
) -> None:
    first = complete_item(review)
    with Workspace.open(served.folder, environment={}) as workspace:
        decisions.reject(
            workspace, [decisions.assessment_key(first)], reason="by hand", reviewer="ben"
        )
    pressed(review, "a")
    eventually(lambda: "not pending" in (review.locator("#said").text_content() or ""))
    result = review.locator("#said").text_content() or ""
    assert "ben decided it" in result, "who decided"
    assert "assay review" not in result, "a page has no command line"
    assert state_of(served, first) == "rejected"
    assert len(served.events()) == 1


@pytest.mark.slow
def test_the_whole_queue_ends_in_a_page_that_says_so(review: Page, served: Served) -> None:
    for _ in range(12):
        if review.locator("#item").is_hidden():
            break
        decided(review, "x", "1")
    eventually(lambda: "has been decided" in (review.locator("#empty-lines").text_content() or ""))
    eventually(lambda: served.states() == {"rejected": 10})
    with Workspace.open(served.folder, environment={}) as workspace:
        assert all(
            not row.assessment.scores or row.state == "rejected"
            for row in workspace.archive.assessments.matching(Selection())
        )
