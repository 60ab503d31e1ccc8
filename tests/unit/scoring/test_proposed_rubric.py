"""A fitting rubric is proposed by looking at the texts to be graded."""

from __future__ import annotations

import pytest

from assay.scoring.rubrics import proposed_rubric

REFUND = """Dear Ms Keller,

thank you for writing to us. Your order was delivered 12 days ago, which is within our 30 days; so we refund the full price of
the lamp. Please send it back with the enclosed label (no cost for you).

Kind regards
"""
MARKDOWN = """## Why the sky is blue

- Light of the sun holds *all* colours.
- Air scatters short waves more than long ones; blue light therefore reaches us from everywhere, and red light does not.

| colour | wave length |
| --- | --- |
| blue | 450 nm |
"""
PYTHON = """import re

def slug(title):
    # one hyphen between words
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words)
"""
GO = "package main\n\nfunc Add(a int, b int) int {\n\treturn a + b\n}\n"
SQL = "SELECT name, count(*)\nFROM orders\nWHERE paid = true\nGROUP BY name;\n"
FENCED = f"Here it is:\n\n```python\n{PYTHON}```\n"


@pytest.mark.parametrize(
    ("texts", "rubric"),
    [
        ([REFUND, REFUND.upper()], "helpfulness"),
        ([MARKDOWN, MARKDOWN], "helpfulness"),
        ([PYTHON, GO], "code"),
        ([SQL, FENCED], "code"),
        (["class Limiter: pass", "def allow(): return True"], "code"),
        (["Paris", "Paris, I think"], "quality"),
        ([REFUND, PYTHON], "quality"),
        (["", "  \n"], "quality"),
        ([], "quality"),
    ],
)
def test_the_rubric_fits_the_texts(texts: list[str], rubric: str) -> None:
    assert proposed_rubric(texts) == rubric


def test_a_text_of_one_endless_line_is_read_in_part() -> None:
    assert proposed_rubric(["import " + "a " * 5_000_000]) == "helpfulness"
