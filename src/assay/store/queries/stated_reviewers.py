"""Count decisions under a reviewer's name that another signed-in person gave."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from assay.domain.identifiers import RunId
from assay.store.database import schema
from assay.store.queries.plans import run_key_of


def stated_reviewers(connection: Connection, run: RunId | None, /) -> dict[tuple[str, str], int]:
    """Return the number of decisions by (reviewer, person who gave that name), in one run or in all
    runs.
    """
    event = schema.review_event
    of_run = [] if run is None else [event.c.run_key == run_key_of(connection, run)]
    statement = (
        select(event.c.reviewer, event.c.stated_by, func.count())
        .where(event.c.stated_by.is_not(None), *of_run)
        .group_by(event.c.reviewer, event.c.stated_by)
        .order_by(event.c.reviewer, event.c.stated_by)
    )
    return {(reviewer, stater): int(n) for reviewer, stater, n in connection.execute(statement)}
