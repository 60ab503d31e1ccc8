"""Answers of several candidates in columns, with the agreement in each row and between each pair of
candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations
from time import monotonic
from typing import TYPE_CHECKING, Final

from assay.analysis.answer_cells import (
    AnswerCell,
    CellState,
    RowAgreement,
    RowState,
    answer_cell,
    summarise_row,
)
from assay.domain.answer_rows import AnswerColumn, AnswerRow
from assay.domain.extraction import Field
from assay.scoring.fields import read_field, read_fields, reading_of

if TYPE_CHECKING:
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary
    from assay.store.opening import Store

PORTION: Final = 50
SCAN_S: Final = 0.4
"""Maximum seconds to search for rows that match a page's filter; the next page continues where the
search stopped.
"""
AGREEMENT_TASKS: Final = 20_000
"""Maximum number of tasks for which the page counts agreement between answers."""
AGREEMENT_S: Final = 4.0


_LOOKED_AT: Final = 5


class AnswerFilter(StrEnum):
    """The rows to show: all rows, or those with a particular pattern of answers."""

    ALL = "all"
    AGREE = "agree"
    DISAGREE = "disagree"
    ERROR = "error"
    MISSING = "missing"
    UNPARSABLE = "unparsable"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuery:
    """A query for answers in columns.

    Attributes:
        fields: fields to extract from answers. Two answers agree if their first field is equal;
            without fields, if their texts are.
        title: field of a task's input that is shown as the title of its row.
        search: show only rows whose name, input or answers contain this text, ignoring case.
    """

    columns: tuple[AnswerColumn, ...]
    fields: tuple[Field, ...] = ()
    title: Field | None = None
    only: AnswerFilter = AnswerFilter.ALL
    search: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswers:
    """One row of the page; `changed` is True if the task's text differs between the runs."""

    row: AnswerRow
    title: str
    cells: tuple[AnswerCell, ...]
    says: RowAgreement
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersPage:
    """A page of rows.

    The next page begins after `after` (None on the last page); `looked_at` is the number of rows
    read.
    """

    rows: tuple[ShownAnswers, ...]
    after: tuple[int, int] | None
    looked_at: int


def page(
    store: Store,
    wanted: AnswerQuery,
    *,
    after: tuple[int, int] | None = None,
    limit: int = PORTION,
    clock: Callable[[], float] = monotonic,
) -> AnswersPage:
    """Return the next matching rows, searching for up to `SCAN_S` seconds; raises `UnknownName` for
    a run or candidate.
    """
    shown_rows: list[ShownAnswers] = []
    looked, began, place = 0, clock(), after
    while True:
        # Index seeks: one query over the whole run took most of the 220 ms that a page needed with
        # a million tasks.
        rows = store.archive.trials.answer_rows(wanted.columns, after=place, limit=limit)
        for row in rows:
            looked, place = looked + 1, row.place
            shown = shown_row(row, wanted)
            if _is_wanted(shown, wanted):
                shown_rows.append(shown)
            if len(shown_rows) == limit:
                break
        if len(shown_rows) == limit or len(rows) < limit or clock() - began > SCAN_S:
            ended = len(rows) < limit and (not rows or rows[-1].place == place)
            return AnswersPage(
                rows=tuple(shown_rows), after=None if ended else place, looked_at=looked
            )


def shown_row(row: AnswerRow, wanted: AnswerQuery) -> ShownAnswers:
    cells = tuple(
        answer_cell(
            text=answer.text,
            failure=answer.failure,
            read=read_fields(answer.text, wanted.fields)
            if wanted.fields and answer.text is not None
            else None,
        )
        for answer in row.answers
    )
    known = {digest for digest in row.digests if digest is not None}
    return ShownAnswers(
        row=row,
        title=_title(row, wanted),
        cells=cells,
        says=summarise_row(cells),
        changed=len(known) > 1,
    )


def input_of(row: AnswerRow) -> str:
    task = row.task
    context = [task.context] if task.context else []
    return "\n\n".join([*context, *(message.content for message in task.prompt)])


def _title(row: AnswerRow, wanted: AnswerQuery) -> str:
    read = None if wanted.title is None else read_field(input_of(row), wanted.title)
    return read or row.task.thing


def _is_wanted(shown: ShownAnswers, wanted: AnswerQuery) -> bool:
    if wanted.search:
        needle = wanted.search.casefold()
        texts = (
            shown.title,
            shown.row.task.id,
            input_of(shown.row),
            *(answer.text or "" for answer in shown.row.answers),
        )
        if not any(needle in text.casefold() for text in texts):
            return False
    if wanted.only is AnswerFilter.ALL:
        return True
    if wanted.only in (AnswerFilter.AGREE, AnswerFilter.DISAGREE):
        return shown.says.state.value == wanted.only.value
    return bool(shown.says.states[CellState(wanted.only.value)])


@dataclass(slots=True, kw_only=True)
class Agreement:
    """Agreement between candidates over the tasks read so far.

    Attributes:
        agreed: for each pair of columns, number of tasks on which both answers are ok and equal.
        both: for each pair of columns, number of tasks on which both answers are ok.
        odd: for each column, number of tasks on which this column differs while at least two other
            columns agree.
        states: for each column, number of answers in each state.
        tasks: number of tasks read; `whole` is True if this is every task.
    """

    columns: int
    tasks: int = 0
    whole: bool = True
    agree: int = 0
    disagree: int = 0
    agreed: dict[tuple[int, int], int] = field(default_factory=dict)
    both: dict[tuple[int, int], int] = field(default_factory=dict)
    odd: list[int] = field(default_factory=list)
    states: list[dict[CellState, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        pairs = list(combinations(range(self.columns), 2))
        self.agreed, self.both = dict.fromkeys(pairs, 0), dict.fromkeys(pairs, 0)
        self.odd = [0] * self.columns
        self.states = [dict.fromkeys(CellState, 0) for _ in range(self.columns)]

    def add(self, cells: Sequence[AnswerCell], says: RowAgreement) -> None:
        self.tasks += 1
        self.agree += says.state is RowState.AGREE
        self.disagree += says.state is RowState.DISAGREE
        if says.odd is not None:
            self.odd[says.odd] += 1
        for place, cell in enumerate(cells):
            self.states[place][cell.state] += 1
        for a, b in self.agreed:
            if cells[a].state is CellState.OK and cells[b].state is CellState.OK:
                self.both[a, b] += 1
                self.agreed[a, b] += cells[a].value == cells[b].value

    def share(self, a: int, b: int) -> float | None:
        """Return the fraction of tasks on which two candidates agree, among those that both
        answered; None without such tasks.
        """
        pair = (min(a, b), max(a, b))
        return self.agreed[pair] / self.both[pair] if self.both[pair] else None


def agreement(
    store: Store, wanted: AnswerQuery, *, clock: Callable[[], float] = monotonic
) -> Agreement:
    """Count agreement over at most `AGREEMENT_TASKS` tasks and `AGREEMENT_S` seconds, without
    applying filters.
    """
    counts = Agreement(columns=len(wanted.columns))
    began = clock()
    for row in _every_row(store, wanted):
        shown = shown_row(row, wanted)
        counts.add(shown.cells, shown.says)
        if counts.tasks == AGREEMENT_TASKS or clock() - began > AGREEMENT_S:
            # The row that reached the limit may have been the last row.
            counts.whole = not store.archive.trials.answer_rows(
                wanted.columns, after=row.place, limit=1
            )
            break
    return counts


def holds_answers(store: Store, summary: RunSummary) -> bool:
    """True if a run's first tasks have answers or failures, which an imported table of scores does
    not have.
    """
    columns = tuple(
        AnswerColumn(run=summary.id, candidate=name) for name in summary.candidates[:_LOOKED_AT]
    )
    rows = store.archive.trials.answer_rows(columns, limit=_LOOKED_AT) if columns else ()
    return any(
        answer.text is not None or answer.failure is not None
        for row in rows
        for answer in row.answers
    )


def _every_row(store: Store, wanted: AnswerQuery) -> Iterator[AnswerRow]:
    place = None
    while rows := store.archive.trials.answer_rows(wanted.columns, after=place, limit=200):
        yield from rows
        place = rows[-1].place


def with_stored_fields(store: Store, wanted: AnswerQuery) -> AnswerQuery:
    """Fill in the fields and title that were stored when the query's first run was imported."""
    if wanted.fields and wanted.title:
        return wanted
    for plan in plans_of(store, wanted):
        imported = plan.environment.get("imported")
        stored = imported.get("reading") if isinstance(imported, Mapping) else None
        if stored is not None:
            spec = reading_of(stored)
            return replace(
                wanted, fields=wanted.fields or spec.fields, title=wanted.title or spec.title
            )
    return wanted


def plans_of(store: Store, wanted: AnswerQuery) -> tuple[RunPlan, ...]:
    return tuple(
        store.journal.plan_of(run) for run in dict.fromkeys(column.run for column in wanted.columns)
    )
