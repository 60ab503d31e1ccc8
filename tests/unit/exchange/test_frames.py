"""Cells of tables that pandas wrote: objects as Python prints them, and cells that only look like
one.
"""

from __future__ import annotations

import pytest

from assay.exchange.parsing.frames import decoded


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("{'a': [1, None, True]}", {"a": [1, None, True]}),
        ('{"a": null}', {"a": None}),
        ("{1: (2, 3)}", {"1": [2, 3]}),
        ("['it\\'s']", ["it's"]),
        ("", None),
        ("nan", None),
        (float("nan"), None),
        ("False", False),
        ("7", "7"),
        ("plain text", "plain text"),
    ],
)
def test_a_cell_gives_the_value_that_pandas_wrote(cell: object, value: object) -> None:
    assert decoded(cell) == value


@pytest.mark.parametrize(
    "cell",
    [
        "[" * 300_000,
        "{" * 100 + "1" + "}" * 100,
        "[" + "-" * 200_000 + "1]",
        "[" + "1+" * 50_000 + "1]",
        "{'a': print}",
        "[",
    ],
    ids=["deep", "sets of sets", "signs", "sum", "name", "cut"],
)
def test_a_cell_that_only_looks_like_an_object_stays_text(cell: str) -> None:
    assert decoded(cell) == cell
