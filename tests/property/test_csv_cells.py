"""Cells of exported tables: never a formula, and never changed for whoever takes the guard off
again.
"""

from __future__ import annotations

import csv
import io

from hypothesis import example, given, strategies as st

from assay.formats.csv_lines import CsvLines, guarded, unguarded

TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=12) | st.text(
    alphabet="'=+-@\t\r\n＝ a,\"", max_size=6
)


@given(TEXTS)
@example("=1+1")
@example("'=1")
@example("'")
@example("''a")
@example("-0")
def test_no_cell_begins_as_a_formula_and_the_guard_comes_off(text: str) -> None:
    cell = guarded(text)
    assert cell[:1] not in {"=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"}
    assert unguarded(cell) == text


@given(st.lists(TEXTS, min_size=1, max_size=4), st.floats(0, 1))
def test_csv_cells_survive_a_round_trip(texts: list[str], score: float) -> None:
    out = io.StringIO()
    lines = CsvLines(out.write, [f"c{number}" for number in range(len(texts) + 3)])
    lines.row([*texts, score, None, True])
    _, row = csv.reader(io.StringIO(out.getvalue(), newline=""))
    assert [unguarded(cell) for cell in row[: len(texts)]] == texts
    assert (float(row[-3]), row[-2], row[-1]) == (score, "", "true")
