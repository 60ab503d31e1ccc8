"""The texts of an item in a terminal review: shortened under each heading, never silently."""

from __future__ import annotations

from assay.cli.review_item import ItemLine, shortened

HEADING = ItemLine("Candidate A", heading=True)
LEFT_OUT = "… the rest is left out; type view to see all of it"


def answer(rows: int) -> list[ItemLine]:
    return [HEADING, *(ItemLine(f"line {n}") for n in range(1, rows))]


def test_a_text_of_200_rows_is_whole() -> None:
    assert shortened(answer(200)) == answer(200)


def test_a_longer_text_ends_with_a_line_that_says_how_to_see_it_all() -> None:
    kept = shortened([*answer(300), *answer(3)])
    assert kept[:200] == answer(200)
    assert kept[-4].text == LEFT_OUT
    assert kept[-3:] == answer(3)  # each heading begins anew
    assert [line.text for line in kept].count(LEFT_OUT) == 1


def test_one_endless_line_is_cut_too() -> None:
    heading, cut, note = shortened([HEADING, ItemLine("x" * 1_000_000)])
    assert (heading, len(cut.text), note.text) == (HEADING, 199 * 80, LEFT_OUT)
