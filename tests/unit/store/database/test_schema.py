"""The tables of a store as the code describes them."""

from __future__ import annotations

from sqlalchemy import PrimaryKeyConstraint, UniqueConstraint

from assay.store.database import schema

SWEPT = {"trial", "response", "call", "assessment", "score", "grade", "body"}
FEW_ROWS = {"suite_copy", "run", "calibration"}


def test_rows_of_a_dropped_import_are_referred_to_by_index() -> None:
    """PostgreSQL looks for references to every deleted row; without an index it reads the whole
    table each time.
    """
    unindexed = []
    for table in schema.metadata.tables.values():
        keys = [
            each
            for each in table.constraints
            if isinstance(each, PrimaryKeyConstraint | UniqueConstraint)
        ]
        leading = {next(iter(each.columns)).name for each in (*keys, *table.indexes)}
        unindexed += [
            str(reference.parent)
            for reference in table.foreign_keys
            if reference.column.table.name in SWEPT
            and table.name not in FEW_ROWS
            and reference.parent.name not in leading
        ]
    assert unindexed == []
