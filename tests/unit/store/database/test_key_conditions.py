"""The condition for a set of keys chooses exactly these, whether it is written as a range or as a
list.
"""

from __future__ import annotations

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, select

from assay.store.database.connections import among

NUMBERS = Table("number", MetaData(), Column("key", Integer, primary_key=True))


@pytest.mark.parametrize(
    "keys", [[], [4], [3, 4, 5], [5, 3, 4], [3, 5], [3, 3, 5], [4, 4, 5, 6], [-1, 0, 1]]
)
def test_a_condition_chooses_exactly_its_keys(keys: list[int]) -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        NUMBERS.create(connection)
        connection.execute(insert(NUMBERS), [{"key": key} for key in range(-3, 10)])
        chosen = connection.execute(
            select(NUMBERS.c.key).where(among(NUMBERS.c.key, keys))
        ).scalars()
        assert set(chosen) == set(keys)


def test_keys_without_a_gap_take_two_parameters() -> None:
    assert len(among(NUMBERS.c.key, range(1000)).compile().params) == 2
