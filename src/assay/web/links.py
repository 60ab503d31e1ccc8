"""Addresses that several pages link to."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from assay.domain.answer_rows import AnswerColumn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.domain.selection import RunSummary

MAX_COLUMNS = 8
"""Maximum number of answers on a comparison page."""


def shown_column(column: AnswerColumn) -> str:
    """Return a column in the form that addresses use: `RUN~CANDIDATE~TRIAL`."""
    # `quote` keeps `~`, which separates the parts of a column.
    return f"{column.run}~{quote(column.candidate, safe='').replace('~', '%7E')}~{column.k}"


def side_by_side(summaries: Iterable[RunSummary]) -> str:
    """Return the address of the page that compares these runs' candidates, with up to
    `MAX_COLUMNS` columns.
    """
    columns = [
        AnswerColumn(run=summary.id, candidate=name)
        for summary in summaries
        for name in summary.candidates
    ]
    return (
        f"/compare?{urlencode([('col', shown_column(column)) for column in columns[:MAX_COLUMNS]])}"
    )
