"""Cells of answers side by side."""

from __future__ import annotations

from assay.analysis.answer_cells import AnswerCell, CellState, RowState, answer_cell, summarise_row
from assay.domain.failure import Failure, Fault

REFUSED = Failure(kind="http_400", fault=Fault.HARNESS, detail="no chat template")


def answers(*values: str | None) -> list[AnswerCell]:
    return [answer_cell(text="prose", read={"recommendation": value}) for value in values]


def test_the_four_states_are_told_apart() -> None:
    assert answer_cell(text="Yes").state is CellState.OK
    assert answer_cell(text="").state is CellState.OK
    assert answer_cell(text=None, failure=REFUSED).state is CellState.ERROR
    assert answer_cell(text=None).state is CellState.MISSING
    absent = Failure(kind="missing", fault=Fault.PROVIDER, detail="not in the file")
    assert answer_cell(text=None, failure=absent).state is CellState.MISSING
    assert answer_cell(text="prose", read={"recommendation": None}).state is CellState.UNPARSABLE


def test_answers_without_a_mapping_are_compared_by_words() -> None:
    assert (
        summarise_row([answer_cell(text="a  b\n"), answer_cell(text="a b")]).state is RowState.AGREE
    )
    assert (
        summarise_row([answer_cell(text="a b"), answer_cell(text="a c")]).state is RowState.DISAGREE
    )


def test_an_error_is_no_answer_that_could_differ() -> None:
    row = summarise_row([*answers("Yes", "Yes"), answer_cell(text=None, failure=REFUSED)])
    assert row.state is RowState.AGREE
    assert row.states[CellState.ERROR] == 1
    assert row.values == (("Yes", 2),)


def test_one_answer_alone_neither_agrees_nor_disagrees() -> None:
    assert summarise_row([*answers("Yes", None), answer_cell(text=None)]).state is RowState.ERROR
    assert summarise_row([]).state is RowState.ERROR


def test_the_odd_one_out_is_the_one_against_all_others_of_at_least_three() -> None:
    assert summarise_row(answers("Yes", "No", "Yes")).odd == 1
    assert summarise_row(answers(None, "No", "Yes", "No")).odd == 2
    assert summarise_row(answers("Yes", "No")).odd is None
    assert summarise_row(answers("Yes", "No", "Maybe")).odd is None
    assert summarise_row(answers("Yes", "Yes", "No", "No")).odd is None
