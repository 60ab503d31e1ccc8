"""Formulas are drawn as an independent renderer draws them, or shown as their source; no formula
reaches out of the page or stops it.

`formulas.tsv` holds formulas in the style of mathematical answers, each with the structure that
Temml 0.13 gave it once, or `source` if it has to stay as it is. In four rows, which both renderers
draw alike, Temml expresses the structure differently in MathML, and the table holds KaTeX's.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Served, judged_store, ready, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

TABLE: Final = Path(__file__).with_name("formulas.tsv")
STRUCTURE: Final = frozenset(
    [
        "mfrac",
        "msqrt",
        "mroot",
        "msup",
        "msub",
        "msubsup",
        "munder",
        "mover",
        "munderover",
        "mtable",
        "mtr",
        "mtd",
    ]
)
SCRIPTS: Final = {"msup": "^", "msub": "_", "msubsup": "_^"}
UNSEEN: Final = frozenset("\u2061\u2062\u2063\u2064\u200b")
SAME: Final = str.maketrans("∣∥⃗ˆˉ⌀⟂´’′", "|‖→^¯∅⊥ˊ''")  # signs that both mean
ALIKE: Final = {"\u203e": "¯", "\u0304": "¯", "\u0305": "¯"}

DRAW: Final = """async ([file, formulas]) => {
  const { formula, ready } = await import(file);
  await ready();
  return formulas.map((tex) => {
    const element = formula(tex, true);
    document.body.append(element);
    const drawn = {
      math: element.querySelector(".katex-mathml math")?.outerHTML ?? null,
      source: element.querySelector("code.tex")?.textContent ?? null,
      width: element.querySelector(".katex-html")?.getBoundingClientRect().width ?? 0,
      links: element.querySelectorAll("a, img, script, iframe").length,
    };
    element.remove();
    return drawn;
  });
}"""
"""Draws formulas with the page's own script."""


def skeleton(element: ElementTree.Element) -> str:
    """The structure of a formula in MathML: elements that place their children, and leaf texts."""
    name = element.tag.rpartition("}")[2]
    if name == "annotation":
        return ""
    text = "".join(
        ALIKE.get(sign, sign)
        for sign in unicodedata.normalize("NFKC", (element.text or "").translate(SAME))
        if sign not in UNSEEN and not sign.isspace()
    )
    parts = [skeleton(child) for child in element]
    if name not in STRUCTURE:
        return text + "".join(parts)
    if name in ("mtr", "mtable"):
        parts = [part for part in parts if part]
        return f"{name}({';'.join(parts)})" if parts else ""
    if name in SCRIPTS:  # (-1)^2 looks the same whether the base is the bracket or its closing sign
        return parts[0] + "".join(
            f"{sign}({part})" for sign, part in zip(SCRIPTS[name], parts[1:], strict=True)
        )
    if name in ("mtd", "msqrt"):
        return f"{name}({''.join(parts)})" if any(parts) else ""
    return f"{name}({';'.join(parts)})"


def structure_of(math: str) -> str:
    return skeleton(ElementTree.fromstring(math.replace("&nbsp;", "\u00a0")))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = judged_store(tmp_path_factory.mktemp("formulas") / "store", things=1, trials=1)
    with serving(folder) as server:
        yield server


def drawn(page: Page, served: Served, formulas: list[str]) -> list[dict[str, Any]]:
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    static = page.locator('link[href^="/static/"]').first.get_attribute("href")
    assert static is not None
    file = "/".join(static.split("/")[:3]) + "/review/formulas.js"
    answers: list[dict[str, Any]] = page.evaluate(DRAW, [file, formulas])
    return answers


@pytest.mark.slow
def test_each_formula_equals_the_reference_or_is_shown_as_source(
    page: Page, served: Served
) -> None:
    rows = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines()]
    assert len(rows) >= 120
    blocked: list[str] = []
    page.on("console", lambda message: blocked.append(message.text))
    wrong = {}
    for (tex, expected), answer in zip(
        rows, drawn(page, served, [tex for tex, _ in rows]), strict=True
    ):
        if expected == "source":
            right = answer["source"] == tex and answer["math"] is None
        else:
            right = answer["width"] > 0 and structure_of(answer["math"]) == expected
        if not right or answer["links"]:
            wrong[tex] = (expected, answer)
    assert wrong == {}, json.dumps(wrong, indent=1, ensure_ascii=False)
    assert [text for text in blocked if "Content Security Policy" in text] == []


def test_hostile_formulas_stay_source_and_stop_nothing(page: Page, served: Served) -> None:
    hostile = {
        "deep": "{" * 50_000,
        "closed": "{" * 101 + "x" + "}" * 101,
        "long": "x" * 6_000,
        "endless": r"\def\a{\a\a}\a",
        "link": r"\href{javascript:alert(1)}{x}",
        "picture": r"\includegraphics{https://127.0.0.1:9/x.png}",
        "style": r"\htmlStyle{color: red}{x}",
        "comment": "5 % of 10",
        "invisible": r"\phantom{x} y",
        "white": r"\color{white} y",
        "defined": r"\def\a{SECRET}x",
        "renamed": r"\renewcommand{\le}{\ge}x\le y",
        "let": r"\let\le\ge x\le y",
        "message": r"\message{SECRET}x",
        "one of several": r"\mathchoice{x}{SECRET}{y}{z}",
        "internal": r"\@firstoftwo{x}{SECRET}",
        "comment after a line": "x\\\\% SECRET\ny",
        "skipped back": r"\hskip-10em x",
        "drawn over": r"\text{SECRET}\!\!\!\!\!\rule{4em}{1.2em}",
        "row over row": r"\begin{matrix}SECRET\\[-1.4em] x\end{matrix}",
        "odd address": r"\href{a b:c}{SECRET}x",
    }
    answers = drawn(page, served, list(hostile.values()))
    shown = {name: answer["math"] for name, answer in zip(hostile, answers, strict=True)}
    assert shown == dict.fromkeys(hostile), "none is drawn"
    assert [answer["source"] for answer in answers] == list(hostile.values())
    assert not any(answer["links"] for answer in answers)
    expect(page.locator("[data-action=approve]")).to_be_visible()


def test_pages_without_formulas_do_not_fetch_the_library(page: Page, served: Served) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    page.keyboard.press("m")
    ready(page)
    assert [url for url in asked if "katex" in url] == []
