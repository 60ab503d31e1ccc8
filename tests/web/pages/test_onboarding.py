"""From an empty folder to a first verdict in a real browser, by keyboard alone and without any
key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.support import harness_files as files
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, Watch, eventually, pressed, ready, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as server:
        yield server


@pytest.fixture
def first(chromium: Browser, empty: Served, watch: Watch) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1100, "height": 800})
    page = context.new_page()
    watch.on(page, empty)
    page.goto(empty.url)
    yield page
    context.close()


def tab_to(page: Page, name: str) -> None:
    """Press Tab until something of this name has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if name in page.evaluate(
            "() => document.activeElement.innerText || document.activeElement.name || ''"
        ):
            return
    raise AssertionError(f"{name} is not reached by the Tab key")


def test_the_demo_leads_to_a_verdict_by_keyboard(first: Page, empty: Served) -> None:
    expect(first.get_by_role("heading", level=1)).to_have_text(
        "Get your first verdict", use_inner_text=True
    )
    expect(first.locator("main"), "commands come last, folded").not_to_contain_text(
        "assay", use_inner_text=True
    )
    tab_to(first, "Start the demo")
    first.keyboard.press("Enter")
    first.wait_for_selector(".guide[data-stage=review]")
    eventually(lambda: empty.states() == {"pending": 35})
    assert first.locator(".way [aria-current=step] h3").inner_text().startswith("Review the grades")
    tab_to(first, "Start reviewing")
    first.keyboard.press("Enter")
    ready(first)
    for _ in range(3):
        while first.locator("[data-action=approve]").get_attribute("aria-disabled") == "true":
            pressed(first, "s")
        pressed(first, "a")
    eventually(lambda: empty.states().get("approved") == 3)
    first.goto(empty.url)
    tab_to(first, "See the verdict")
    first.keyboard.press("Enter")
    first.wait_for_url("**/results?run=*")
    expect(first.locator("main")).to_contain_text(
        "3 trials count (3 approved: ", use_inner_text=True
    )
    answer = first.request.post(f"{empty.url}/api/demo", data={"key": "another-key"})
    assert answer.status == 409
    assert answer.json()["error"]["where"] == "the demo"


def test_two_pasted_texts_lead_to_a_verdict_by_keyboard(first: Page, empty: Served) -> None:
    tab_to(first, "thing")
    for text in ("Rate limiter", "", "ann", "It lets all pass.", "bob", "It counts."):
        first.keyboard.type(text)
        first.keyboard.press("Tab")
    expect(first.locator("#rubric-now")).to_have_text("quality")
    tab_to(first, "Grade these")
    first.keyboard.press("Enter")
    first.wait_for_url("**/review?run=*")
    ready(first)
    first.locator("input.score").first.focus()
    for score in ("8", "5"):
        first.keyboard.type(score)
        first.keyboard.press("Tab")
    first.keyboard.press("Enter")
    first.wait_for_selector("#empty:not([hidden])")
    eventually(
        lambda: first.locator("h1:visible").all_inner_texts() == ["Nothing awaits review here"]
    )
    tab_to(first, "See the verdict")
    first.keyboard.press("Enter")
    first.wait_for_url("**/results?run=*")
    ahead = first.get_by_role("heading", level=1).filter(has_text="is 30.0 points ahead")
    ahead.wait_for()  # the decision may still be on its way; which of the two, the shuffle decides
    first.goto(empty.url)
    expect(first.locator(".guide")).to_have_attribute("data-stage", "verdict")
    expect(first.locator(".way .done")).to_have_count(2)


SUBJECTS = (
    "sky",
    "bread",
    "debt",
    "tide",
    "yeast",
    "glass",
    "cache",
    "leap year",
    "magnet",
    "vaccine",
)
QUESTIONS = tuple(f"How does a {subject} work?" for subject in SUBJECTS)
LONG = """*{}* needs two steps.

| Step | Effect |
| --- | --- |
| 1 | light enters |

1. Take $E = mc^2$.
2. See `cache.get(key)`."""


def test_markdown_answers_to_ten_questions_lead_to_a_verdict(
    first: Page, empty: Served, tmp_path: Path
) -> None:
    """The walk of a new user; each step says what is there and what comes next."""
    for name, answer in (("short", "It is **light**."), ("long", LONG)):
        text = "".join(
            f"## {place}. {question}\n\n{answer.format(question)}\n\n"
            for place, question in enumerate(QUESTIONS, 1)
        )
        (tmp_path / f"{name}.md").write_text(f"# Answers\n\n{text}", "utf-8")
    expect(first.get_by_role("heading", name="Add files")).to_be_in_viewport()
    first.set_input_files("#files", [tmp_path / "short.md", tmp_path / "long.md"])
    first.wait_for_url("**/start#editor")
    expect(first.locator("#brought")).to_have_text(
        "10 tasks now have texts by short, long. Check them below, then save."
    )
    expect(first.locator('[data-name="1"]')).to_have_value("long")
    expect(first.get_by_role("textbox", name="Task 2", exact=True)).to_have_value(
        "2. How does a bread work?"
    )
    expect(first.locator("#t-1-s0")).to_have_value("It is **light**.")
    save = first.get_by_role("button", name="Save and continue")
    expect(save, "in sight above ten tasks").to_be_in_viewport(ratio=1)
    save.click()
    first.wait_for_url("**/start?suite=*")
    expect(first.locator("#estimate")).to_contain_text("Choose a judge")
    first.locator("#judges label", has_text="A person").click()
    expect(first.locator("#estimate")).to_contain_text("10 trials will await your grades.")
    first.get_by_role("button", name="Start the run").click()
    first.wait_for_url("**/runs/*")
    eventually(lambda: empty.states() == {"pending": 10})
    expect(first.locator(".facts")).not_to_contain_text("uncalibrated")
    first.locator("main").get_by_role("link", name="Review").first.click()
    first.wait_for_url("**/review*")
    for place in range(10):
        ready(first)
        sheet = first.locator(".right:not(.behind)")
        expect(sheet.locator("#grades-title + p")).to_contain_text(
            "This run is graded by people. Names are hidden"
        )
        if place == 0:
            for name in ("Approve", "Correct", "Rerun"):
                expect(first.get_by_role("button", name=name)).to_have_count(0)
            first.set_viewport_size({"width": 390, "height": 844})
            expect(first.get_by_role("button", name="Save", exact=True)).to_be_in_viewport(ratio=1)
            expect(first.locator(".left:not(.behind) .reading")).to_be_in_viewport()
            assert serious(first) == []
            first.set_viewport_size({"width": 1100, "height": 800})
        reading = first.locator(".left:not(.behind) .reading")
        expect(reading).to_contain_text("light")
        scores = ("6", "8") if "two steps" in reading.inner_text() else ("8", "6")
        for field, score in zip(sheet.locator("tbody input.score").all(), scores, strict=True):
            field.fill(score)
        first.keyboard.press("Control+Enter")
        expect(first.locator("#progress-text")).to_contain_text(f"{place + 1} of 10 decided")
    expect(first.locator("#empty-lines")).to_contain_text("In this session: 10 graded by a person.")
    eventually(lambda: empty.states() == {"corrected": 10})
    first.get_by_role("link", name="See the verdict").click()
    first.wait_for_url("**/results?run=*")
    expect(first.get_by_role("heading", level=1)).to_contain_text(
        "short is better than long by 20.0 points"
    )
    expect(first.locator("main")).to_contain_text("10 trials count (10 approved: ")
    first.goto(empty.url)
    expect(first.locator(".guide")).to_have_attribute("data-stage", "verdict")


def test_files_are_shown_before_anything_is_kept(
    first: Page, empty: Served, watch: Watch, tmp_path: Path
) -> None:
    thing = {
        "thingName": "Gate",
        "snippets": [{"name": "ann", "content": "a"}, {"name": "bob", "content": "b"}],
    }
    wrong, good, theirs = (
        tmp_path / "wrong.json",
        tmp_path / "pair.json",
        files.promptfoo(tmp_path / "theirs"),
    )
    wrong.write_text(json.dumps([{**thing, "snippets": []}]), "utf-8")
    good.write_text(json.dumps([thing]), "utf-8")
    first.set_input_files("#files", wrong)
    expect(first.locator(".found .wrongs li").first).to_contain_text("snippets")
    expect(first.locator("#import")).to_have_count(0)
    first.set_input_files("#files", [good, theirs])
    expect(first.locator(".found")).to_contain_text("6 grades will await your review")
    expect(first.locator(".found tbody tr")).to_have_count(2)
    expect(first.locator(".found")).to_contain_text("suites/pair.json")
    assert empty.get("/api/runs")["runs"] == []
    for width, height in WIDTHS:
        first.set_viewport_size({"width": width, "height": height})
        assert serious(first) == []
    first.locator("#import").click()
    first.wait_for_url("**/runs/*")
    eventually(
        lambda: [run["assessments"]["pending"] for run in empty.get("/api/runs")["runs"]] == [6]
    )
    expect(first.locator("main")).to_contain_text("cities", use_inner_text=True)


def test_typed_text_survives_a_run_started_elsewhere(first: Page, empty: Served) -> None:
    first.get_by_label("What you are comparing").fill("Not lost")
    answer = first.request.post(f"{empty.url}/api/demo", data={"key": "from-elsewhere"})
    assert answer.status == 201
    first.wait_for_selector("#begun:not([hidden])")
    expect(first.get_by_label("What you are comparing")).to_have_value("Not lost")
    first.get_by_role("link", name="Show it").click()
    first.wait_for_selector(".guide[data-stage]")


def test_the_first_page_is_whole_and_accessible(first: Page) -> None:
    for width, height in WIDTHS:
        first.set_viewport_size({"width": width, "height": height})
        assert (
            first.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            <= 0
        )
    first.get_by_text("Use a terminal").click()
    expect(first.locator("main")).to_contain_text("assay init my-bench", use_inner_text=True)
    assert serious(first) == []


def test_an_open_form_of_a_run_outlives_its_trials(first: Page, empty: Served) -> None:
    # the first page reloads itself when a run begins, which would race with the next goto
    first.goto("about:blank")
    first.request.post(f"{empty.url}/api/demo", data={"key": "from-elsewhere"})
    eventually(lambda: empty.states() == {"pending": 35})
    first.goto(f"{empty.url}/runs/{empty.run_id}")
    first.get_by_text("Extend this run").click()
    first.get_by_label("More trials per task").fill("2")
    decided = {"decisions": [{"key": "elsewhere-1", "id": "a1", "verb": "reject", "reason": "why"}]}
    first.request.post(f"{empty.url}/api/decisions", data=decided)
    expect(first.locator(".tally .rejected")).to_have_text("1 rejected")
    answer = first.request.post(
        f"{empty.url}/api/runs/{empty.run_id}/extend", data={"trials": 1, "candidates": []}
    )
    assert answer.ok, answer.text()
    first.wait_for_selector("#begun:not([hidden])", timeout=20_000)
    expect(first.get_by_label("More trials per task")).to_have_value("2")


def test_invalid_addition_is_explained_at_its_field(
    first: Page, empty: Served, watch: Watch
) -> None:
    watch.expected = ("422",)
    # the first page reloads itself when a run begins, which would race with the next goto
    first.goto("about:blank")
    first.request.post(f"{empty.url}/api/demo", data={"key": "from-elsewhere"})
    eventually(lambda: empty.states() == {"pending": 35})
    first.goto(f"{empty.url}/runs/{empty.run_id}")
    first.get_by_text("Extend this run").click()
    more, join = first.locator("#more"), first.locator("#join")
    for typed, result in (
        ("", "Enter a number of trials, or name a model to add."),
        ("0", "Enter a number of trials, or name a model to add."),
        ("-2", "This field is -2, and must be at least 1."),
        ("99999999999", "This field is 99,999,999,999, and must be at most 10,000."),
    ):
        more.fill(typed)
        first.get_by_role("button", name="Add", exact=True).click()
        first.locator("#more-wrong").get_by_text(result, exact=True).wait_for()
        expect(more).to_have_attribute("aria-invalid", "true")
        expect(first.locator("#extend")).not_to_contain_text("--", use_inner_text=True)
    more.fill("")
    join.fill("echo")
    first.get_by_role("button", name="Estimate cost").click()
    first.locator("#join-wrong").get_by_text("no task here has a prompt").wait_for()
    assert (more.get_attribute("aria-invalid"), join.get_attribute("aria-invalid")) == (
        "false",
        "true",
    )
    expect(first.locator("#more-wrong")).to_have_text("", use_inner_text=True)
    join.fill("nonsense")
    first.get_by_role("button", name="Estimate cost").click()
    first.locator("#join-wrong").get_by_text("model 'nonsense' names no provider").wait_for()
    assert empty.states() == {"pending": 35}, "nothing was added"


def test_invalid_pasted_text_is_explained_at_its_field(
    first: Page, empty: Served, watch: Watch
) -> None:
    watch.expected = ("422",)
    first.locator("[name=thing]").fill("Rate limiter")
    for place, text in enumerate(("one", " ")):
        first.locator("[name=name]").nth(place).fill("Ann")
        first.locator("[name=content]").nth(place).fill(text)
    first.get_by_role("button", name="Grade these").click()
    first.get_by_text("Candidate 2 has no text. Paste its text.", exact=True).wait_for()
    expect(first.locator("[aria-invalid=true]")).to_have_attribute(
        "data-path", "snippets[1].content"
    )
    first.locator("[name=content]").nth(1).fill("two")
    first.get_by_role("button", name="Grade these").click()
    problem = (
        "Candidate 2 has the same name as candidate 1, 'Ann'. Name the candidates differently."
    )
    first.locator('[data-error="snippets[1].name"]').get_by_text(problem, exact=True).wait_for()
    expect(first.locator("[aria-invalid=true]")).to_have_attribute("data-path", "snippets[1].name")
