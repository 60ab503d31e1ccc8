"""Copy the responses of a run to its regrade."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, and_, select

from assay.store.database import schema
from assay.store.database.connections import Database, portions, take_keys

_ROWS_AT_ONCE: Final = 4000


def copy_responses(
    database: Database, connection: Connection, *, run_key: int, origin_key: int
) -> int:
    """Copy the original trials' latest responses to a new run, sharing the texts; return the number
    of responses.
    """
    new, old, table = schema.trial.alias("new"), schema.trial.alias("old"), schema.response
    takes_part = schema.run_candidate
    rows = connection.execute(
        select(
            new.c.key, table.c.candidate_key, table.c.truncated, table.c.call_key, table.c.body_key
        )
        .select_from(new)
        .join(
            old,
            and_(old.c.run_key == origin_key, old.c.position == new.c.position, old.c.k == new.c.k),
        )
        .join(table, table.c.trial_key == old.c.key)
        .join(
            takes_part,
            and_(
                takes_part.c.run_key == run_key, takes_part.c.candidate_key == table.c.candidate_key
            ),
        )
        .where(new.c.run_key == run_key)
        .order_by(new.c.key, table.c.candidate_key, table.c.round)
    )
    by_candidate: dict[tuple[int, int], Any] = {(row.key, row.candidate_key): row for row in rows}
    latest = list(by_candidate.values())
    for portion in portions(latest, _ROWS_AT_ONCE):
        keys = take_keys(connection, response=len(portion))["response"]
        database.insert(
            connection,
            table,
            [
                (key, row.key, row.candidate_key, 1, row.truncated, row.call_key, row.body_key)
                for key, row in zip(keys, portion, strict=True)
            ],
        )
    return len(latest)
