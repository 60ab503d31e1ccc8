"""Texts open rendered: Markdown, formulas, JSON and conversations as such, evidence lit in place,
two of them side by side.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.support import forked
from tests.web.accessibility import serious
from tests.web.conftest import Served, ready

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

SKY = (
    "## Why\n\nIt is *Rayleigh* scattering, **nine times** stronger for blue.\n\n1. As $1/\\lambda^4$\n2. Violet too\n\n"
    "| colour | nm |\n| --- | --- |\n| blue | 450 |\n\n```python\ndef f(): pass\n```\n\n<b id=boot>x</b>\n"
)
SEA = "It reflects the sea.\n"
MAIL = "Dear Ms Moor,\nwe have refunded the shipping {when}.\n\nBest wishes\n"
PERSON = '{"name": "Lin", "age": 1.0, "tags": [], "home": {"city": "Ulm"}}'
CODE = "def add(a, b):\n    return a + b  # a comment\n"
TASKS = {
    "sky": ("", SKY, SEA, ["*Rayleigh* scattering, **nine times** stronger", "As $1/\\lambda^4$"]),
    "mail": (
        "",
        MAIL.format(when="today"),
        MAIL.format(when="on Monday"),
        ["refunded the shipping"],
    ),
    "json": ("", PERSON, "{}", ['"city": "Ulm"']),
    "sums": (
        "",
        "The answer is $\\sqrt{x}$ for all of us.\n",
        "The answer is $x$ for all of us.\n",
        ["The answer is"],
    ),
    "code": ("python", CODE, "x = 1\n", ["return a + b"]),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts") / "store"
    folder.mkdir()
    tasks, lines = [], []
    for name, (language, one, other, evidence) in TASKS.items():
        tasks.append(
            {
                "id": name,
                "thing": name,
                "language": language,
                "trials": 1,
                "snippets": {"kira": one, "tova": other},
            }
        )
        grade = {"right": {"score": 8, "reason": "Says why.", "evidence": evidence}}
        other_grade = {"right": {"score": 1, "reason": "No.", "evidence": []}}
        reply = {
            "candidates": {"{{label:kira}}": grade, "{{label:tova}}": other_grade},
            "report": "Done.",
        }
        lines.append(
            {"match": {"role": "judge", "task": name}, "reply": {"text": json.dumps(reply)}}
        )
    (folder / "judge.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    rubric = [{"name": "right", "guidance": "10: no error; 0: wrong."}]
    (folder / "suite.json").write_text(
        json.dumps({"name": "texts", "rubric": rubric, "tasks": tasks}), "utf-8"
    )
    done = forked.run("run", "suite.json", "--judge", "replay/judge.jsonl", folder=folder)
    assert done.returncode in (0, 1), done.stderr
    return folder


def opened(page: Page, served: Served, thing: str, *, of: str = "kira") -> None:
    """Open the item of a thing at the response of one candidate."""
    names = {
        row["thing"]: row["id"]
        for n in range(1, len(TASKS) + 1)
        if (row := served.get(f"/api/assessments/a{n}"))
    }
    text = TASKS[thing][1 if of == "kira" else 2]
    pane = [pane["text"] for pane in served.get(f"/api/assessments/{names[thing]}")["panes"]].index(
        text
    )
    page.goto(f"{served.url}/assessments/{names[thing]}?candidate={pane + 1}")
    ready(page)


LIT = """name => [...(CSS.highlights.get(name) ?? [])].filter(range => range.startContainer.isConnected).map(range => {
  const live = document.createRange();
  live.setStart(range.startContainer, range.startOffset);
  live.setEnd(range.endContainer, range.endOffset);
  return live.toString();
})"""


def lit(page: Page, name: str = "evidence") -> list[str]:
    """The texts of a highlight that are on the page."""
    return list(page.evaluate(LIT, name))


def test_markdown_opens_rendered_with_evidence_in_place(page: Page, served: Served) -> None:
    opened(page, served, "sky")
    article = page.locator("article.reading")
    expect(article.locator("h4")).to_have_text("Why")
    expect(article.locator("ol > li")).to_have_count(2)
    expect(article.locator("tbody td")).to_have_text(["blue", "450"])
    expect(article.locator(".katex-html .mfrac, .katex-html .msupsub").first).to_be_visible()
    expect(article.locator("pre .w")).to_have_text(["def", "pass"])
    expect(article).to_contain_text("<b id=boot>x</b>")
    assert lit(page) == ["Rayleigh scattering, nine times stronger"]
    expect(article.locator("li.lit"), "a formula has no range, so its line is lit").to_have_count(1)
    width = article.locator(".measure").bounding_box()
    assert width is not None
    assert width["width"] <= 72 * 12
    assert serious(page) == []


def test_m_shows_the_source_and_the_text_again(page: Page, served: Served) -> None:
    opened(page, served, "sky")
    page.keyboard.press("m")
    expect(page.locator("#pane .line").first).to_have_text("## Why\n")
    expect(page.locator("#pane .line.lit")).to_have_count(2)
    page.get_by_role("button", name="Source").click()
    expect(page.locator("article.reading h4")).to_be_visible()


def test_a_formula_is_one_word_of_the_differences(page: Page, served: Served) -> None:
    opened(page, served, "sums")
    page.keyboard.press("d")
    expect(page.locator(".legend")).to_be_visible()
    assert page.evaluate("CSS.highlights.get('different').size") == 2


def test_d_shows_two_similar_texts_with_their_differences(page: Page, served: Served) -> None:
    opened(page, served, "mail")
    assert lit(page, "different") == []
    page.keyboard.press("d")
    expect(page.locator(".both article")).to_have_count(2)
    expect(page.locator(".legend")).to_be_visible()
    assert sorted(lit(page, "different")) == ["Monday", "on", "today"]
    assert lit(page) == ["refunded the shipping"]
    page.keyboard.press("d")
    expect(page.locator("article.reading")).to_have_count(1)
    opened(page, served, "sky")
    page.keyboard.press("d")
    expect(page.locator(".both article")).to_have_count(2)
    expect(page.locator(".legend")).to_have_count(0)
    assert lit(page, "different") == [], "these two are not similar"


def test_json_folds_and_keeps_its_numbers(page: Page, served: Served) -> None:
    opened(page, served, "json")
    expect(page.locator(".json .n")).to_have_text("1.0")
    assert lit(page) == ['"city": "Ulm"']
    page.locator(".json summary").first.click()
    expect(page.locator(".json .n")).not_to_be_visible()


def test_code_gets_its_colours_and_w_wraps_it(page: Page, served: Served) -> None:
    opened(page, served, "code")
    expect(page.locator("#pane .line .w")).to_have_text(["def", "return"])
    expect(page.locator("#pane .line .c")).to_have_text("# a comment")
    expect(page.locator("#pane .line.lit")).to_have_count(1)
    assert (
        page.locator("#pane .line").first.evaluate(
            "one => getComputedStyle(one).whiteSpaceCollapse"
        )
        == "preserve"
    )
    page.keyboard.press("w")
    expect(page.locator("#item.wrapped")).to_have_count(1)
    assert (
        page.locator("#pane .line").first.evaluate("one => getComputedStyle(one).textWrapMode")
        == "wrap"
    )


def test_guidance_and_save_stay_in_sight_while_correcting(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{served.url}/review")
    ready(page)
    bar = page.locator(".actions").bounding_box()
    expect(page.locator("#reason")).to_contain_text("10: no error; 0: wrong.")
    page.keyboard.press("c")
    save = page.get_by_role("button", name="Save correction")
    expect(save).to_be_in_viewport(ratio=1)
    expect(page.locator("#reason")).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1024, "height": 768})
    expect(save).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.keyboard.insert_text("99")
    page.keyboard.press("Control+Enter")
    field = page.locator(".score.on")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#said .alert")).to_have_text("right takes scores from 0 to 10.")
    assert page.evaluate("() => getSelection().toString()") == "99"
    assert page.locator(".actions").bounding_box() == bar, "messages appear above the bar"
    page.keyboard.insert_text("9")
    expect(field).not_to_have_attribute("aria-invalid", "true")


def test_a_long_title_does_not_move_the_progress_bar(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/review")
    ready(page)
    before = page.locator("#progress-bar").bounding_box()
    page.locator("#thing").evaluate("one => { one.textContent = 'a very long title '.repeat(40); }")
    assert page.locator("#progress-bar").bounding_box() == before
