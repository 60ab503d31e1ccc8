"""A look behind the ports: all rows of a store, and whether what is derived agrees with what it is
derived from.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import create_engine, func, inspect, select, text, update
from sqlalchemy.engine import make_url

from assay.domain.lifecycle import AssessmentState, TrialState, standing
from assay.store.database import change_counter, schema


def all_rows(url: str, *, without: tuple[str, ...] = ()) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, in the order of the keys, but not the number of changes, which an
    undo raises as well.
    """
    engine = create_engine(driven(url))
    try:
        with engine.connect() as connection:
            return {
                table.name: [
                    tuple(row)
                    for row in connection.execute(select(table).order_by(*table.primary_key))
                    if (table is not schema.key_source or row.name != change_counter.NAME)
                ]
                for table in schema.metadata.sorted_tables
                if table.name not in without
            }
    finally:
        engine.dispose()


def assert_derived_agrees(url: str) -> None:
    """Tallies equal counts, scores have their assessment's state, standings follow from
    assessments.
    """
    engine = create_engine(driven(url))
    trial, assessment, score, tally = (
        schema.trial,
        schema.assessment,
        schema.score,
        schema.run_tally,
    )
    try:
        with engine.connect() as connection:
            counted: dict[tuple[int, str, str], int] = {}
            for subject, table, column in (
                ("trial", trial, trial.c.state),
                ("standing", trial, trial.c.standing),
                ("assessment", assessment, assessment.c.state),
            ):
                rows = connection.execute(
                    select(table.c.run_key, column, func.count()).group_by(table.c.run_key, column)
                )
                counted.update({(run, subject, state): n for run, state, n in rows})
            kept = {
                (row.run_key, row.subject, row.state): row.n
                for row in connection.execute(select(tally))
                if row.n
            }
            assert kept == counted
            differing = connection.execute(
                select(func.count())
                .select_from(score)
                .join(assessment, assessment.c.key == score.c.assessment_key)
                .where(score.c.state != assessment.c.state)
            ).scalar_one()
            assert differing == 0
            for row in connection.execute(select(trial)).all():
                states = frozenset(
                    AssessmentState(state)
                    for state in connection.execute(
                        select(assessment.c.state).where(
                            assessment.c.trial_key == row.key, assessment.c.state != "superseded"
                        )
                    ).scalars()
                )
                resting = TrialState(row.rest or row.state)
                assert row.standing == standing(resting, states), row
                assert (row.owner is None) == (row.state != "running") == (row.rest is None), row
    finally:
        engine.dispose()


def emptied(url: str) -> None:
    """Leave a PostgreSQL store as it was when new."""
    engine = create_engine(driven(url))
    names = ", ".join(
        f'"{table.name}"'
        for table in schema.metadata.sorted_tables
        if table is not schema.key_source
    )
    with engine.begin() as connection:
        if inspect(connection).has_table(schema.run.name):
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY"))
            connection.execute(update(schema.key_source).values(next=1))
    engine.dispose()


def fold_as_before(url: str, folded: str, before: str) -> None:
    """Store the folded name of a candidate as an earlier version did."""
    engine = create_engine(driven(url))
    with engine.begin() as connection:
        connection.execute(
            update(schema.candidate)
            .where(schema.candidate.c.folded == folded)
            .values(folded=before)
        )
    engine.dispose()


def driven(url: str) -> Any:
    """The address with the driver the store uses."""
    address = make_url(url)
    return (
        address.set(drivername="postgresql+psycopg")
        if address.get_backend_name() == "postgresql"
        else address
    )
