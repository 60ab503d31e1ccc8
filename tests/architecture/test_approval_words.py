"""A number of approved grades is worded in one module, so that no surface presents a script's
approvals as reviews.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "assay"
WORDING = SOURCE / "report" / "wording" / "approvals.py"
NUMBER = "\0"
"""Stands for a formatted value in the text of an f-string."""

WORD = r"\bapprov(?:ed|als?)\b"
COUNTED = re.compile(
    rf"{NUMBER}[^.;:,{NUMBER}]{{0,40}}{WORD}|{WORD}[^.;\w{NUMBER}]{{0,3}}{NUMBER}", re.IGNORECASE
)
PLACEHOLDER = r"(?:%\(\w+\)s|\{\{[^}]*\}\}|\$?\{\w+\})"
IN_TEMPLATE = re.compile(
    rf"{PLACEHOLDER}[^.;<{{]{{0,30}}{WORD}|{WORD}:? {PLACEHOLDER}|\{{\{{[^}}]*\bapproved\b *(?:\||\}})",
    re.IGNORECASE,
)

NO_COUNTS = (
    "web/texts/review.toml: {what} approved",  # the item that was approved
    # a habit: only decisions on a screen have it
    "report/wording/attention.py: {…} approvals in a row by one reviewer",
)
"""Matches that are not a number of approved grades."""


def counts_in_python(text: str) -> Iterator[str]:
    """Yield f-strings with a value beside the word, and calls that put a number before it, such as
    `count(n, "approval")`.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            written = "".join(
                str(part.value) if isinstance(part, ast.Constant) else NUMBER
                for part in node.values
            )
            if COUNTED.search(written):
                yield written.replace(NUMBER, "{…}")
        elif isinstance(node, ast.Call):
            words = [
                arg.value
                for arg in node.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            ]
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            if name in {"count", "counted", "plural"} and any(
                re.search(WORD, word) for word in words
            ):
                yield ast.unparse(node)
            if name == "get" and words[:1] == ["approved"]:
                yield ast.unparse(node)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and IN_TEMPLATE.search(node.value)
        ):
            yield node.value


def counts_in_template(text: str) -> list[str]:
    return [match.group() for match in IN_TEMPLATE.finditer(text)]


def places() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*")):
        name = path.relative_to(SOURCE).as_posix()
        if path == WORDING:
            continue
        if path.suffix == ".py":
            yield from (f"{name}: {entry}" for entry in counts_in_python(path.read_text("utf-8")))
        elif path.suffix in {".html", ".js", ".toml"}:
            yield from (f"{name}: {entry}" for entry in counts_in_template(path.read_text("utf-8")))


def test_only_one_module_words_a_number_of_approved_grades() -> None:
    assert [place for place in places() if place not in NO_COUNTS] == [], (
        "Take the words from `report/wording/approvals.py`."
    )


@pytest.mark.parametrize(
    "text",
    [
        'f"{n:,} approved by a person"',
        'f"({numbers.total} grades approved)"',
        'f"approved: {n}"',
        'count(n, "approval")',
        'counted(reviewed.approved, "approval")',
        'counts.get("approved", 0)',
        '"{n} approved"',
    ],
)
def test_the_check_recognises_a_count_in_python(text: str) -> None:
    assert list(counts_in_python(text))


@pytest.mark.parametrize(
    "text",
    [
        '"count.approved" = "{n} approved"',
        'ngettext("1 decision: %(approved)s approved", "%(n)s decisions", n)',
        "<td>{{ row.trials.approved|count }}</td>",
        "<p>{{ n }} approved</p>",
        "`${n} approved`",
    ],
)
def test_the_check_recognises_a_count_in_a_template(text: str) -> None:
    assert counts_in_template(text)


@pytest.mark.parametrize(
    "text",
    [
        'f"{where} has no score, so it cannot be approved"',
        '"Approved without reading?"',
        "approved = True",
    ],
)
def test_the_check_accepts_the_word_without_a_count(text: str) -> None:
    assert not list(counts_in_python(text))
