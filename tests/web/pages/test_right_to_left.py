"""Answers in scripts that run from right to left stand from right to left; code keeps its
direction.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support import forked
from tests.web.conftest import NAMES, Served, ready, write_judge

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

HEBREW = "שלום לכולם, זו תשובה.\nPlain words follow."


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged task of prose and one of code."""
    folder = tmp_path_factory.mktemp("rtl") / "store"
    folder.mkdir()
    task = {"trials": 1, "context": HEBREW, "snippets": dict.fromkeys(NAMES, HEBREW)}
    tasks = [
        {**task, "id": "prose", "thing": "Prose"},
        {**task, "id": "code", "thing": "Code", "language": "python"},
    ]
    path = folder / "suite.json"
    path.write_text(json.dumps({"name": "words", "review": "none", "tasks": tasks}), "utf-8")
    done = forked.run("run", path, "--judge", f"replay/{write_judge(folder)}", folder=folder)
    assert done.returncode in (0, 1), done.stderr
    return folder


def direction(place: Locator) -> str:
    return str(place.evaluate("place => getComputedStyle(place).direction"))


def test_an_answer_side_by_side_has_the_direction_of_its_words(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/compare?col={served.run_id}~{NAMES[0]}&col={served.run_id}~{NAMES[1]}")
    answer = page.locator("pre.text", has_text="שלום").last
    assert direction(answer) == "rtl"
    assert answer.evaluate("pre => getComputedStyle(pre).unicodeBidi") == "plaintext", (
        "each line by itself"
    )
    assert direction(page.locator("h1")) == "ltr"


def test_under_review_prose_has_its_direction_and_code_has_not(page: Page, served: Served) -> None:
    by_name = {}
    for one in (1, 2):
        page.goto(f"{served.url}/assessments/a{one}")
        ready(page)
        name = page.locator("#thing").inner_text()
        by_name[name] = [
            direction(line) for line in page.locator("#pane .line, #pane .measure p").all()
        ]
        if name == "Prose":
            bidi = page.locator("#pane .measure p").evaluate(
                "one => getComputedStyle(one).unicodeBidi"
            )
            assert bidi == "plaintext", "each line by itself"
            page.keyboard.press("m")
            page.locator("#pane .line").first.wait_for()
            by_name["Source"] = [direction(line) for line in page.locator("#pane .line").all()]
    assert by_name == {"Prose": ["rtl"], "Source": ["rtl", "ltr"], "Code": ["ltr", "ltr"]}
