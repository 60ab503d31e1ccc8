"""Cells of an answer table, and the agreement between the answers in a row.

An error does not count as an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.domain.failure import Failure


class CellState(StrEnum):
    """State of one cell.

    `OK`: the first field was read from the answer. `ERROR`: the call failed. `MISSING`: there is
    neither an answer nor an error. `UNPARSABLE`: there is an answer, but the first field could not
    be read from it.
    """

    OK = "ok"
    ERROR = "error"
    MISSING = "missing"
    UNPARSABLE = "unparsable"


class RowState(StrEnum):
    """Agreement between the answers to one task.

    `AGREE` and `DISAGREE` compare the `ok` cells, if there are at least two; otherwise the state is
    `ERROR`. A row can therefore be `AGREE` although it contains an error, which
    `RowAgreement.states` shows.
    """

    AGREE = "agree"
    DISAGREE = "disagree"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCell:
    """One candidate's answer to one task.

    `value` is compared for agreement; `read` maps extracted fields' names to values.
    """

    state: CellState
    text: str | None = None
    failure: Failure | None = None
    read: Mapping[str, str | None] = field(default_factory=dict)
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAgreement:
    """Agreement and states of the answers to one task.

    Attributes:
        state: agreement of the row.
        states: number of cells in each state; all four states are present.
        values: number of `ok` cells with each value, with the most frequent value first.
        odd: position of the only cell that differs from the others, if at least three cells are
            `ok`; else None.
    """

    state: RowState
    states: Mapping[CellState, int]
    values: tuple[tuple[str, int], ...]
    odd: int | None


def answer_cell(
    *,
    text: str | None,
    failure: Failure | None = None,
    read: Mapping[str, str | None] | None = None,
) -> AnswerCell:
    """Build the cell of one answer.

    Args:
        text: the answer; None if it is missing.
        failure: the reason why the answer is missing, if known. If its kind is `missing`, the
            cell's state is `MISSING`.
        read: the result of `scoring.fields.read_fields` for the text, with the field to compare
            first. If it is None, the whole text without surrounding white space is compared.
    """
    if text is None:
        missing = failure is None or failure.kind == "missing"
        return AnswerCell(state=CellState.MISSING if missing else CellState.ERROR, failure=failure)
    if not read:
        return AnswerCell(state=CellState.OK, text=text, value=" ".join(text.split()))
    value = next(iter(read.values()))
    state = CellState.UNPARSABLE if value is None else CellState.OK
    return AnswerCell(state=state, text=text, read=read, value=value)


def summarise_row(cells: Sequence[AnswerCell]) -> RowAgreement:
    good = [
        (place, cell.value)
        for place, cell in enumerate(cells)
        if cell.state is CellState.OK and cell.value is not None
    ]
    counts = Counter(value for _, value in good)
    if len(good) < 2:
        state = RowState.ERROR
    else:
        state = RowState.AGREE if len(counts) == 1 else RowState.DISAGREE
    odd = None
    if len(counts) == 2 and len(good) >= 3 and min(counts.values()) == 1:
        alone = min(counts, key=lambda value: counts[value])
        odd = next(place for place, value in good if value == alone)
    states = {state: sum(cell.state is state for cell in cells) for state in CellState}
    return RowAgreement(state=state, states=states, values=tuple(counts.most_common()), odd=odd)
