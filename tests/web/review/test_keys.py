"""The keyboard in a real browser: a blind verdict in K + 2 keys, own keys, conflicts, keys off;
forms that are accessible.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.web.accessibility import serious
from tests.web.conftest import (
    CRITERIA,
    NAMES,
    PAINTED,
    Served,
    eventually,
    item_of,
    judged_store,
    pressed,
    ready,
    serving,
)
from tests.web.review.test_blind_verdict import switch
from tests.web.review.test_late_answers import held, late, let_go

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

SAVED_AND_NOTED = """() => {
  const saved = new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(saved);
  document.getElementById("correct-note").focus();
}"""
"""Saves the verdict, and enters the note before the script that sends the verdict is there."""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    blind = judged_store(tmp_path_factory.mktemp("blind") / "store", things=1, trials=3)
    switch(blind, blind=1.0)
    human = judged_store(
        tmp_path_factory.mktemp("human") / "store", things=1, trials=2, judge="human"
    )
    return {"blind": blind, "human": human}


@pytest.fixture(params=["blind"])
def served(
    request: pytest.FixtureRequest, kinds: dict[str, Path], tmp_path: Path
) -> Iterator[Served]:
    folder = tmp_path / "store"
    shutil.copytree(kinds[request.param], folder)
    with serving(folder) as server:
        yield server


def test_a_blind_verdict_takes_a_key_a_score_and_two_more(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/assessments/a2")
    ready(page)
    pressed = 0
    for key in (*"7" * (len(NAMES) * len(CRITERIA)), "Control+Enter"):
        page.keyboard.press(key)
        pressed += 1
        ready(page)
    page.wait_for_selector(".cell")
    ready(page)
    page.keyboard.press("a")
    pressed += 1
    eventually(lambda: served.get("/api/assessments/a2")["state"] == "approved")
    assert pressed == len(NAMES) * len(CRITERIA) + 2


@pytest.mark.slow
@pytest.mark.parametrize("served", ["blind", "human"], indirect=True)
def test_the_forms_for_own_scores_are_accessible(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    page.wait_for_selector(".correction")
    assert serious(page) == []


def test_own_keys_work_stay_and_refuse_conflicts(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/review?run={served.run_id}")
    first = ready(page)
    page.keyboard.press("?")
    page.get_by_role("button", name="Change keys").click()
    field = page.locator("#remap-skip")
    field.press("j")
    expect(page.locator("#remap-error")).to_contain_text("Next item", use_inner_text=True)
    field.press("Backspace")
    assert page.locator("#remap-error").inner_text()
    field.press("z")
    expect(field).to_have_value("z")
    page.locator("#remap-panel button.go").click()
    ready(page)
    expect(page.locator("[data-action=skip] kbd").first).to_have_text("z", use_inner_text=True)
    page.reload()
    first = ready(page)
    page.keyboard.press("s")
    assert ready(page) == first
    page.keyboard.press("z")
    eventually(lambda: ready(page) != first)


def test_keys_can_be_switched_off(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    page.evaluate("localStorage.setItem('assay.keys.off', '1')")
    page.reload()
    first = ready(page)
    for key in ("s", "j", "x"):
        page.keyboard.press(key)
    assert ready(page) == first
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_a_blind_item_that_is_judged_again_shows_no_grades_and_says_why(
    page: Page, served: Served
) -> None:
    page.goto(f"{served.url}/review?run={served.run_id}")
    first = ready(page)
    page.locator("#thing").focus()
    pressed(page, "r", "1")
    assert item_of(page) != first
    assert pressed(page, "k") == first
    right = page.locator(".right:not(.behind)")
    expect(right.locator(".none")).to_have_count(0)
    expect(right).not_to_contain_text("are shown once you have saved your own verdict")
    expect(right).to_contain_text("you did not give your own verdict first")


def test_grades_that_come_late_do_not_replace_a_note_one_writes(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/assessments/a2")
    ready(page)
    late(page, "/api/review/verdict")
    for _ in range(len(CRITERIA) * len(NAMES)):
        page.keyboard.press("5")
    eventually(lambda: page.locator(".score.changed").count() == len(CRITERIA) * len(NAMES))
    page.evaluate(SAVED_AND_NOTED)
    page.keyboard.type("a kind axe")
    let_go(page)
    eventually(lambda: "when you leave the field" in page.locator("#said").inner_text())
    expect(page.locator("#correct-note")).to_have_value("a kind axe")
    page.keyboard.press("Escape")
    page.wait_for_selector(".right:not(.behind) [data-cell]")
    assert served.events() == []


def test_a_digit_that_comes_late_scores_no_other_item(page: Page, served: Served) -> None:
    kept = held(page, "blind_verdict")
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    page.keyboard.press("7")
    pressed(page, "j")
    for request in kept:
        request.continue_()
    page.wait_for_selector(".right:not(.behind) .ways")
    page.evaluate(PAINTED)
    assert {field.input_value() for field in page.locator("[data-field]").all()} == {""}
