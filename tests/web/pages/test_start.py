"""A person starts a run in a real browser: writes a set, mends what is wrong, and sees the run
end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.support.batch_server import BatchServer
from tests.web.conftest import Served, Watch, eventually, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page


def test_from_an_empty_form_to_a_run_that_waits_for_review(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("422",)
    page.goto(f"{served.url}/start")
    page.get_by_label("Name of the set").fill("A/B: Pasted")
    for place, name in enumerate(("wilhelmina", "bartholomew")):
        page.locator(f'[data-name="{place}"]').fill(name)
        page.locator(f"#t-0-s{place}").fill(f"def run():\n    return {place}\n")
    page.get_by_role("button", name="Save and continue").click()
    page.wait_for_selector('[data-path="[0].thingName"][aria-invalid="true"]')

    page.get_by_role("textbox", name="Task 1", exact=True).fill("Gate 1")
    page.reload()
    expect(
        page.get_by_role("textbox", name="Task 1", exact=True), "the draft outlives a reload"
    ).to_have_value("Gate 1")
    page.get_by_role("button", name="Duplicate").click()
    expect(page.get_by_role("textbox", name="Task 2", exact=True)).to_have_value("Gate 1 copy")
    page.get_by_role("button", name="Save and continue").click()
    page.wait_for_url("**/start?suite=suites%2Fa-b-pasted.json")
    expect(page.locator("h1")).to_have_text("A/B: Pasted", use_inner_text=True)
    page.wait_for_selector("text=This run cannot be started yet")
    recording = served.folder / "judge.jsonl"
    page.get_by_label("Add judge").first.fill(f"replay/{recording}")
    page.get_by_role("button", name="Add judge").click()
    page.locator("label.choice-pill", has_text="5").first.click()
    page.wait_for_selector("text=10 calls")
    page.wait_for_url("**trials=5**")
    page.reload()
    page.wait_for_selector("text=10 calls")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url("**/runs/*pasted*")
    eventually(lambda: served.get("/api/runs")["runs"][0]["trials"]["total"] == 10)
    eventually(lambda: served.get("/api/runs")["runs"][0]["state"] == "finished")
    page.get_by_text("Extend this run").click()
    page.get_by_label("More trials per task").fill("1")
    page.get_by_role("button", name="Estimate cost").click()
    page.wait_for_selector("text=2 calls")


def test_a_candidate_too_many_is_removed_and_texts_move_up(
    page: Page, served: Served, watch: Watch
) -> None:
    page.goto(f"{served.url}/start")
    page.click("#add-name")
    for place, name in enumerate(("ann", "bob", "cid")):
        page.locator(f'[data-name="{place}"]').fill(name)
        page.locator(f"#t-0-s{place}").fill(f"text of {name}")
    page.get_by_role("button", name="Remove Candidate 2").or_(
        page.get_by_role("button", name="Remove bob")
    ).click()
    expect(page.locator("[data-name]")).to_have_count(2)
    expect(page.locator('[data-name="1"]')).to_have_value("cid")
    expect(page.locator("#t-0-s1")).to_have_value("text of cid")
    page.reload()
    expect(page.locator("#t-0-s1")).to_have_value("text of cid")


def test_run_cost_stays_in_view_and_wrong_numbers_are_explained(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("422",)
    page.goto(f"{served.url}/start?suite=gates.json")
    page.get_by_text("Choose a judge: tick a model or a person, or add a model.").wait_for()
    page.locator("#judges label", has_text="A person").click()
    page.wait_for_selector("#estimate b")
    for width, height in ((1360, 800), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        for where in (0, 400):
            page.evaluate("y => scrollTo(0, y)", where)
            box = page.locator("#go").bounding_box()
            assert box is not None
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= height
    page.get_by_text("Advanced", exact=True).click()
    page.fill("#f-limit", "-2")
    page.wait_for_selector('#f-limit[aria-invalid="true"]')
    expect(page.locator('[data-error="limit"]')).to_have_text(
        "This field is -2, and must be at least 1.", use_inner_text=True
    )
    page.fill("#f-limit", "many")
    page.get_by_text("This field is many, and must be a whole number.").wait_for()
    page.fill("#f-limit", "1")
    page.wait_for_selector("#estimate b")
    expect(page.locator('[data-error="limit"]')).to_have_text("", use_inner_text=True)


@pytest.mark.parametrize(
    ("name", "wrong"), [("limit", "0"), ("limit", "abc"), ("trials", "1.5"), ("budget", "-3")]
)
def test_a_wrong_number_is_marked_and_never_stands_in_the_address(
    page: Page, served: Served, watch: Watch, name: str, wrong: str
) -> None:
    watch.expected = ("422",)
    page.goto(f"{served.url}/start?suite=gates.json&judge=human&limit=1&trials=4&budget=2")
    page.wait_for_selector("#estimate b")
    expect(page.locator("#advanced")).to_have_attribute("open", "")
    page.fill(f"#f-{name}", wrong)
    page.wait_for_selector(f'#f-{name}[aria-invalid="true"]', state="attached")
    assert page.locator(f'[data-error="{name}"]').inner_text().startswith("This field is ")
    assert page.input_value(f"#f-{name}") == wrong
    assert f"{name}=" not in page.url
    page.reload()
    page.wait_for_selector("#estimate b")
    expect(page.locator("#judges input[value=human]")).to_be_checked()


def test_nothing_is_marked_as_wrong_before_anything_was_done(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("422",)
    page.goto(f"{served.url}/start?suite=gates.json")
    page.locator("#estimate").get_by_text("Choose a judge").wait_for()
    expect(page.locator("[aria-invalid=true]")).to_have_count(0)
    expect(page.locator("#start .error:not(:empty), #problems li")).to_have_count(0)
    page.locator("#add-judge").fill("foo")
    page.get_by_role("button", name="Add judge").click()
    page.locator("#judges label", has_text="A person").click()
    page.locator('[data-error="judge"]').get_by_text("Model 'foo' names no provider").wait_for()
    expect(page.locator("#problems li")).to_have_count(0)
    page.goto(f"{served.url}/start?suite=")
    expect(page.get_by_role("heading", level=1)).to_have_text("Start a run", use_inner_text=True)
    expect(page.locator("#write")).to_be_visible()


def test_marked_fields_are_named_only_if_one_is_marked(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("422", "503")
    page.goto(f"{served.url}/start?suite=gates.json&judge=human&limit=1")
    page.wait_for_selector("#estimate b")
    page.fill("#f-limit", "0")
    expect(page.locator("#estimate")).to_have_text(
        "This run cannot be started yet. Fix the marked fields first.", use_inner_text=True
    )
    refusal = {"error": {"where": "", "problem": "the store is busy.", "remedy": "Try again."}}
    page.route("**/api/start/look", lambda route: route.fulfill(status=503, json=refusal))
    page.fill("#f-limit", "2")
    expect(page.locator("#problems li")).to_have_count(1)
    expect(page.locator("#estimate")).to_have_text(
        "This run cannot be started yet.", use_inner_text=True
    )
    expect(page.locator("[aria-invalid=true]")).to_have_count(0)


def test_a_number_that_no_run_can_hold_is_said_at_its_field(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("422",)
    page.goto(f"{served.url}/start?suite=gates.json&judge=human")
    page.wait_for_selector("#estimate b")
    page.locator("label.choice-pill", has_text="Other").click()
    page.fill("#f-trials", "99999999999")
    result = "This field is 99,999,999,999, and must be at most 10,000."
    page.locator('[data-error="trials"]').get_by_text(result, exact=True).wait_for()
    expect(page.locator("#estimate b"), "no estimate of what cannot be").to_have_count(0)
    page.goto(
        f"{served.url}/start?suite=gates.json&judge=human&candidate=wilhelmina&candidate=echo"
    )
    page.locator('[data-error="candidates"]').get_by_text("no task here has a prompt").wait_for()


def test_cost_bar_covers_no_choice(page: Page, served: Served, watch: Watch) -> None:
    page.set_viewport_size({"width": 1360, "height": 900})
    page.goto(f"{served.url}/start?suite=gates.json&judge=human")
    page.wait_for_selector("#estimate b")
    about = page.locator("fieldset", has_text="Trials per task").bounding_box()
    review = page.locator("label[for=f-review]").bounding_box()
    assert about is not None
    assert review is not None
    assert about["y"] + about["height"] <= review["y"], "what scrolls is not squeezed"
    page.get_by_text("Advanced", exact=True).click()
    hint, cost = page.locator("#a-batch_id"), page.locator(".go-part")
    hint.scroll_into_view_if_needed()
    shown, panel = hint.bounding_box(), cost.bounding_box()
    assert shown is not None
    assert panel is not None
    assert shown["y"] + shown["height"] <= panel["y"]
    assert panel["y"] + panel["height"] <= 900


@pytest.mark.slow
def test_a_batch_is_offered_submitted_and_collected(
    page_at: Callable[[Served], Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "suite.yaml").write_text(
        'name: asked\ncandidates: [openai/small, echo]\nscore: exact\ntasks: [{id: one, prompt: Say one., expected: "1"}]\n'
    )
    models = BatchServer()
    with models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        with serving(tmp_path) as served:
            page = page_at(served)
            page.goto(f"{served.url}/start?suite=suite.yaml")
            batch = page.locator("label.choice-pill", has_text="As a provider batch")
            batch.click()
            page.wait_for_url("**provider_batch=1**")
            expect(page.locator("#a-asking")).to_contain_text(
                "because they have no batch API: echo."
            )
            page.locator("#candidates label", has_text="openai/small").click()
            expect(page.locator("#a-asking")).to_have_text(re.compile("not possible: echo cannot"))
            expect(batch).to_be_hidden()
            page.locator("#candidates label", has_text="openai/small").click()
            batch.click()
            page.wait_for_url("**provider_batch=1**")
            page.reload()
            expect(page.get_by_role("radio", name="As a provider batch")).to_be_checked()
            page.get_by_role("button", name="Start the run").click()
            page.wait_for_url("**/runs/*asked*")
            page.get_by_text("batch_001").wait_for()
            page.get_by_role("button", name="Collect answers").click()
            eventually(lambda: served.get("/api/runs")["runs"][0]["state"] == "finished")
    assert (len(models.batches), models.repeats) == (1, {})
