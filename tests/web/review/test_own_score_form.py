"""Forms of own scores: what a key means on each scale, what the form says of it, and which cell
takes the next key.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.support import forked
from tests.web.accessibility import serious
from tests.web.conftest import Served, eventually, ready, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.slow

RUBRIC = [
    {"name": "share", "scale": [0, 100], "guidance": "How much of it works?"},
    {"name": "step", "scale": [1, 5], "guidance": "<img src=x onerror=alert(1)>"},
    {"name": "verdict", "scale": ["bad", "ok", "good"]},
    {"name": "part", "scale": [0, 1]},
]


@pytest.fixture(scope="module")
def forms_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forms") / "store"
    folder.mkdir()
    tasks = [
        {
            "id": f"gate-{n}",
            "thing": f"Gate {n}",
            "language": "python",
            "trials": 1,
            "snippets": dict.fromkeys(("ann", "bob"), f"x = {n}"),
        }
        for n in (1, 2)
    ]
    (folder / "suite.json").write_text(
        json.dumps({"name": "gates", "rubric": RUBRIC, "tasks": tasks}), "utf-8"
    )
    done = forked.run("run", folder / "suite.json", "--judge", "human", folder=folder)
    assert done.returncode in (0, 1), done.stderr
    return folder


@pytest.fixture
def served(forms_template: Path, tmp_path: Path) -> Iterator[Served]:
    with serving(shutil.copytree(forms_template, tmp_path / "store")) as server:
        yield server


@pytest.fixture
def up_to_ten(tmp_path: Path) -> Iterator[Served]:
    """The same with two criteria from 0 to 10."""
    folder = tmp_path / "ten"
    folder.mkdir()
    task = {
        "id": "gate",
        "thing": "Gate",
        "trials": 1,
        "snippets": dict.fromkeys(("ann", "bob"), "x = 1"),
    }
    rubric = [{"name": name, "scale": [0, 10]} for name in ("order", "sense")]
    (folder / "suite.json").write_text(
        json.dumps({"name": "ten", "rubric": rubric, "tasks": [task]}), "utf-8"
    )
    done = forked.run("run", folder / "suite.json", "--judge", "human", folder=folder)
    assert done.returncode in (0, 1), done.stderr
    with serving(folder) as server:
        yield server


@pytest.fixture
def form(page: Page, served: Served) -> Page:
    page.goto(f"{served.url}/assessments/a1")
    ready(page)
    page.locator(".ways").wait_for()
    return page


def field(page: Page, row: int, pane: int = 0) -> str:
    return page.locator(f'[data-field="{row}.{pane}"]').input_value()


def current(page: Page) -> list[str]:
    result: list[str] = page.locator(".score.on").evaluate_all(
        "found => found.map(one => one.dataset.field)"
    )
    return result


def told(page: Page, words: str) -> None:
    eventually(lambda: words in page.locator("#said").inner_text())


def test_a_number_above_nine_is_typed_and_ended(form: Page, served: Served) -> None:
    form.keyboard.type("85")
    assert field(form, 0) == "85"
    assert field(form, 1) == ""
    form.keyboard.press("Enter")
    assert served.get("/api/assessments/a1")["state"] == "pending", (
        "Enter ended the number and saved nothing"
    )
    assert current(form) == ["1.0"]
    form.keyboard.press("4")
    assert (field(form, 1), current(form)) == ("4", ["2.0"])
    form.keyboard.press("3")
    assert (field(form, 2), current(form)) == ("good", ["3.0"])
    form.keyboard.type("0.5")
    form.keyboard.press("Tab")
    assert (field(form, 3), current(form)) == ("0.5", ["0.1"])
    form.keyboard.type("7")
    form.keyboard.press("ArrowDown")
    assert (field(form, 0, 1), current(form)) == ("7", ["1.1"])
    for keys in ("5", "1", "1"):
        form.keyboard.type(keys)
    form.keyboard.press("Control+Enter")
    eventually(lambda: served.get("/api/assessments/a1")["state"] == "corrected")
    rows = served.get("/api/assessments/a1")["criteria"]
    assert [[cell["raw"] for cell in row["cells"]] for row in rows] == [
        [85, 7],
        [4, 5],
        [1, 0],
        [0.5, 1],
    ]


def test_a_key_that_no_scale_has_is_told_and_changes_nothing(form: Page) -> None:
    form.keyboard.type("850")
    form.keyboard.press("Enter")
    told(form, "share takes scores from 0 to 100")
    assert current(form) == ["0.0"]
    form.keyboard.press("Backspace")
    form.keyboard.press("Enter")
    form.keyboard.press("8")
    told(form, "step takes scores from 1 to 5")
    form.keyboard.press("ArrowDown")
    form.keyboard.press("4")
    told(form, "verdict takes one of: 1 bad / 2 ok / 3 good")
    assert [field(form, row) for row in range(4)] == ["85", "", "", ""]


def test_a_word_may_be_written_or_chosen_by_its_digit_inside_the_field(
    form: Page, served: Served
) -> None:
    form.locator('[data-field="2.0"]').fill("GOOD")
    form.locator('[data-field="2.1"]').fill("2")
    form.locator('[data-field="3.1"]').fill("1")
    assert (field(form, 2, 0), field(form, 2, 1)) == ("good", "ok")
    form.locator('[data-field="-1.0"]').fill("50")
    for row, result in ((0, "0"), (1, "1")):
        form.locator(f'[data-field="{row}.1"]').fill(result)
    form.locator('[data-field="2.0"]').fill("")
    form.keyboard.press("Control+Enter")
    eventually(lambda: served.get("/api/assessments/a1")["state"] == "corrected")
    assert served.get("/api/assessments/a1")["criteria"][2]["cells"][1]["raw"] == 0.5


def test_the_form_says_its_scales_and_guidance_and_marks_the_current_cell(form: Page) -> None:
    result = form.locator(".grades").first.inner_text()
    for words in ("0–100", "1–5", "1 bad / 2 ok / 3 good", "0–1"):
        assert words in result
    guidance = form.locator("#reason")
    expect(guidance).to_contain_text("How much of it works?")
    ways = form.locator(".ways").inner_text()
    assert "0–100, 0–1: Type the score" in ways
    assert "1–5: Type one digit as the score" in ways
    assert "1 bad / 2 ok / 3 good: Type the digit shown with a word" in ways
    assert current(form) == ["0.0"]
    form.keyboard.press("ArrowRight")
    form.keyboard.press("ArrowDown")
    assert current(form) == ["1.1"]
    expect(guidance).to_contain_text("<img src=x onerror=alert(1)>")
    form.locator('[data-field="3.0"]').click()
    assert current(form) == ["3.0"]


@pytest.mark.parametrize("width", [390, 820, 1360])
def test_the_form_fits_and_its_mark_can_be_seen(
    served: Served, chromium: Browser, width: int
) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto(f"{served.url}/assessments/a1")
    ready(page)
    page.locator(".ways").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".score.on").evaluate("one => getComputedStyle(one).boxShadow") != "none"
    assert serious(page) == []
    context.close()


def test_where_people_alone_grade_nothing_speaks_of_a_judge(form: Page) -> None:
    expect(form.locator("[data-action=rerun]")).to_have_attribute("aria-disabled", "true")
    form.keyboard.press("r")
    told(form, "there is no judge to rerun")
    form.keyboard.press("x")
    result = form.locator("dialog[open]").inner_text()
    assert "The responses cannot be graded" in result
    assert "rerun" not in result.lower()
    assert "judge" not in result.lower()


def test_up_to_ten_a_digit_is_the_score_and_a_one_waits_for_its_nought(
    up_to_ten: Served, page_at: Callable[[Served], Page]
) -> None:
    page = page_at(up_to_ten)
    page.goto(f"{up_to_ten.url}/assessments/a1")
    ready(page)
    page.locator(".ways").wait_for()
    page.keyboard.press("7")
    assert (field(page, 0), current(page)) == ("7", ["1.0"])
    page.keyboard.type("10")
    page.keyboard.press("Enter")
    assert (field(page, 1), current(page)) == ("10", ["0.1"])
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.keyboard.press("0")
    assert (field(page, 0, 1), field(page, 1, 1)) == ("1", "0")
    page.keyboard.press("Control+Enter")
    eventually(lambda: up_to_ten.get("/api/assessments/a1")["state"] == "corrected")
    rows = up_to_ten.get("/api/assessments/a1")["criteria"]
    assert [[cell["raw"] for cell in row["cells"]] for row in rows] == [[7, 1], [10, 0]]


def test_where_people_alone_grade_nothing_counts_as_corrected(
    context: BrowserContext, up_to_ten: Served
) -> None:
    page = context.new_page()
    page.goto(f"{up_to_ten.url}/review?run={up_to_ten.run_id}")
    for _ in range(2):
        ready(page)
        page.locator(".ways").wait_for()
        for row in (0, 1):
            for pane in (0, 1):
                page.locator(f'[data-field="{row}.{pane}"]').fill("7")
        page.keyboard.press("Control+Enter")
        page.locator("#empty:not([hidden])").wait_for()
        eventually(
            lambda: (
                "In this session: 1 graded by a person."
                in page.locator("#empty-lines").inner_text()
            )
        )
        eventually(lambda: up_to_ten.states() == {"corrected": 1})
        page.keyboard.press("u")
    ready(page)
    eventually(lambda: up_to_ten.states() == {"pending": 1})
    for row in (0, 1):
        for pane in (0, 1):
            page.locator(f'[data-field="{row}.{pane}"]').fill("7")
    page.keyboard.press("Control+Enter")
    eventually(lambda: up_to_ten.states() == {"corrected": 1})
    page.goto(up_to_ten.url)
    expect(page.locator(".tally")).to_have_text(
        "1 approved: 1 read on screen1 of them graded by a person"
    )
    page.goto(f"{up_to_ten.url}/runs/{up_to_ten.run_id}")
    tallies = page.locator(".summary .tally").inner_text()
    assert "1 of them graded by a person" in " ".join(tallies.split())
    assert "corrected" not in tallies
    page.goto(f"{up_to_ten.url}/assessments/a1")
    ready(page)
    expect(page.locator("#heading")).to_contain_text("graded by a person", use_inner_text=True)
    expect(page.locator("main")).not_to_contain_text("corrected", use_inner_text=True)
    page.goto(f"{up_to_ten.url}/statistics/behind")
    rows = page.locator("section[aria-labelledby=fair-title] table tr")
    heads, first = (rows.nth(n).locator("th, td").all_inner_texts() for n in (0, 1))
    rates = dict(zip(heads[1:], first[1:], strict=True))
    assert (rates["Accepted"], rates["of which corrected"], rates["graded by a person"]) == (
        "100%",
        "–",
        "100%",
    )
