"""Every page: accessible, unclipped at three widths, light and dark; its script small, its texts
and keys complete.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.support.documented_keys import as_table
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, Watch, complete_item, first_cell, pressed, ready

from assay.report.wording import numbers
from assay.web import keyboard, texts
from assay.web.templating import count, folder, static_content
from assay.web.texts import GLYPHS, TEXTS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MAX_BYTES = 60_000
REVIEW_SCRIPTS = (
    "frame/dom",
    "frame/keys",
    "frame/page",
    "review/outbox",
    "review/item",
    "review/panel",
    "review/review",
)


@pytest.mark.slow
def test_nothing_is_clipped_and_axe_finds_nothing_serious_in_any_dialog(
    page: Page, served: Served
) -> None:
    run = served.run_id
    for path in (
        "/",
        f"/runs/{run}",
        "/start",
        "/start?suite=gates.json",
        "/assessments/a1",
        "/signin",
        "/compare",
        f"/review?run={run}",
    ):
        page.goto(served.url + path)
        page.wait_for_load_state("load")
        if "review" in path or "assess" in path:
            ready(page)
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"
    complete_item(page)
    for key in ("c", "Escape", "?", "Escape", "x"):
        page.keyboard.press(key)
        page.wait_for_timeout(60)
        assert serious(page) == [], f"after {key}"


def test_targets_are_large_enough(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    small = page.evaluate(
        """() => [...document.querySelectorAll('button, summary, nav a, .button')]
             .filter(e => e.checkVisibility() && !e.closest('.said, .prose'))
             .map(e => [e.outerHTML.slice(0, 80), e.getBoundingClientRect()])
             .filter(([, r]) => r.width && (r.width < 24 || r.height < 24))
             .map(([text]) => text)"""
    )
    assert small == []


@pytest.mark.slow
def test_at_400_percent_everything_can_be_reached(
    chromium: Browser, served: Served, watch: Watch
) -> None:
    context = chromium.new_context(viewport={"width": 320, "height": 256})
    page = context.new_page()
    watch.on(page, served)
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    assert page.evaluate(
        "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    for name in ("Approve", "Correct", "Reject", "Rerun", "Skip"):
        button = page.get_by_role("button", name=name)
        button.scroll_into_view_if_needed()
        expect(button).to_be_visible()
    context.close()


def test_the_focus_goes_to_the_next_items_heading(review: Page) -> None:
    complete_item(review)
    pressed(review, "a")
    assert review.evaluate("document.activeElement.id") == "thing"
    expect(review.locator("#said")).to_contain_text("approved", use_inner_text=True)


def test_a_row_of_the_queue_moves_while_one_looks(page: Page, served: Served) -> None:
    page.goto(served.url)
    page.wait_for_selector("#live[data-now='queue.live']")
    body = {"decisions": [{"key": "live-test-1", "id": "a5", "verb": "reject", "reason": "why"}]}
    page.evaluate(
        """body => fetch('/api/decisions', {method: 'POST', headers: {'content-type': 'application/json'},
                                            body: JSON.stringify(body)})""",
        body,
    )
    expect(page.locator(".tally .rejected")).to_have_text("1 rejected")


def test_a_cell_of_the_matrix_leads_to_its_assessment(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/runs/{served.run_id}")
    page.get_by_role("link", name=re.compile("Gate 2, Trial 3: awaiting review")).click()
    ready(page)
    expect(page.locator("#thing")).to_have_text("Gate 2", use_inner_text=True)
    expect(page.locator("#heading")).to_contain_text("Trial 3 of 5", use_inner_text=True)


def test_the_review_script_is_small() -> None:
    assert sum(len(static_content(f"{name}.js")) for name in REVIEW_SCRIPTS) <= MAX_BYTES


def test_no_script_has_a_template_over_several_lines() -> None:
    for script in folder("static").rglob("*.js"):
        for number, line in enumerate(script.read_text("utf-8").splitlines(), start=1):
            assert len(re.findall(r"(?<!\\)`", line)) % 2 == 0, f"{script.name}:{number}"


def test_locals_of_scripts_say_what_they_hold() -> None:
    riddles = re.compile(
        r"\b(?:const|let) (?:said|found)\b|[(,] ?(?:said|found)(?: = [^,)]*)?[,)](?: =>| \{)"
    )
    scripts = folder("static").rglob("*.js")
    assert {
        file.name: riddles.findall(file.read_text("utf-8"))
        for file in scripts
        if riddles.search(file.read_text("utf-8"))
    } == {}


def test_pages_sentences_and_scripts_group_digits_by_commas() -> None:
    assert count(1200) == "1,200"
    assert numbers.count(1200, "trial") == "1,200 trials"
    grouping = {
        (script.name, call)
        for script in folder("static").rglob("*.js")
        for call in re.findall(
            r"toLocaleString\([^)]*|NumberFormat\([^)]*", script.read_text("utf-8")
        )
    }
    assert grouping == {("dom.js", 'NumberFormat("en-US", { maximumFractionDigits: 20 }')}


def test_every_text_a_script_asks_for_is_there() -> None:
    for script in folder("static").rglob("*.js"):
        for key in re.findall(r'\bt\("([\w.]+)"', script.read_text("utf-8")):
            assert key in TEXTS, f"{script.name}: {key}"


def test_every_text_of_the_scripts_is_shown_by_one() -> None:
    scripts = "".join(file.read_text("utf-8") for file in folder("static").rglob("*.js"))
    built = tuple(re.findall(r"`([a-z_.]+\.)\$\{", scripts))
    unused = [
        key
        for key in TEXTS
        if f'"{key.removesuffix(".one")}"' not in scripts and not key.startswith(built)
    ]
    assert not unused, ", ".join(unused)


def test_every_text_with_a_count_has_a_form_for_one() -> None:
    counted = re.compile(r"\{n\} (?:[a-z]+ )?[a-z]{3,}s\b|\{n\} (?:await|wait|need|are|were)\b")
    lacking = {
        key for key, text in TEXTS.items() if counted.search(text) and f"{key}.one" not in TEXTS
    }
    assert lacking <= {
        "review.show_chars",
        "review.others_wait",
        "review.formula_long",
        "review.formula_deep",
    }, "always many, or of no number"
    of_templates = re.compile(r'(?<!n)_\("[^"]*%\(n\)s (?:[a-z]+ )?[a-z]{3,}s\b[^"]*"')
    names = {
        f"{file.name}: {text}"
        for file in folder("templates").rglob("*.html")
        for text in of_templates.findall(file.read_text("utf-8"))
    }
    always_many = {
        "agreement.html",
        "compare_choose.html",
        "candidate.html",
        "record.html",
        "trend.html",
    }
    assert {name.partition(":")[0] for name in names} <= always_many, "or a constant number above 1"


def test_every_state_has_a_glyph_beside_its_colour() -> None:
    assert {key.split(".")[1] for key in TEXTS if key.startswith("state.")} <= set(GLYPHS)


def test_no_key_is_bound_twice_or_reserved() -> None:
    bound = [key for entry in keyboard.REGISTRY for key in entry.keys]
    assert len(bound) == len(set(bound))
    assert not set(bound) & keyboard.NEVER_BOUND


@pytest.mark.parametrize(
    ("script", "registry"),
    [("review/review.js", keyboard.REGISTRY), ("arena/arena_pair.js", keyboard.COMPARISON)],
)
def test_every_key_has_an_action_and_every_action_a_key(
    script: str, registry: tuple[keyboard.KeyBinding, ...]
) -> None:
    text = (folder("static") / script).read_text("utf-8")
    lines = text.partition("const actions = {\n")[2].partition("\n};")[0].splitlines()
    plain = [line for line in lines if re.fullmatch(r"  (\w+, )*\w+,", line)]
    others = [
        match[1] for line in lines if line not in plain and (match := re.match(r"  (\w+)", line))
    ]
    names = [*(name for line in plain for name in re.findall(r"\w+", line)), *others]
    assert sorted(names) == sorted(entry.action for entry in registry)


def test_the_documentation_shows_the_registry() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "review-in-the-browser.md"
    assert as_table() in page.read_text("utf-8")


def test_no_text_is_written_twice_under_one_key() -> None:
    tables = [file for file in files(texts).iterdir() if file.name.endswith(".toml")]
    assert sum(len(tomllib.loads(file.read_text("utf-8"))) for file in tables) == len(TEXTS) > 400


def test_a_quotation_within_a_reason_is_tall_enough_to_be_hit(review: Page) -> None:
    first_cell(review)
    quotes = review.locator(".said button.quote")
    quotes.first.wait_for()
    assert (
        min(one.evaluate("one => one.getBoundingClientRect().height") for one in quotes.all()) >= 24
    )
