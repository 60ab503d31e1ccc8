"""Means that the store computes are correctly rounded, on SQLite and PostgreSQL alike."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Double,
    Integer,
    MetaData,
    Table,
    create_engine,
    insert,
    select,
)
from tests.contract.rows import driven
from tests.contract.stores import WEIGHTS, a_plan, a_task, grades, judged, planned, wait

from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.store.opening import Store
from assay.store.queries.exact_means import exact_mean, weighted

_GROUPS = 400


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    engine = create_engine(driven(url))
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def _rows() -> list[tuple[int, float]]:
    """Return values by group: steps of a scale, thousandths, and any other."""
    draw = random.Random(28)
    rows = [
        (0, 0.9),
        (0, 0.9),
        (0, 0.9),
        (1, 0.1),
        (1, 0.1),
        (1, 0.1),
        (2, 0.9),
        (2, 0.8),
        (2, 0.7),
    ]
    for group in range(3, _GROUPS):
        steps = draw.choice((4, 6, 10, 1000, 0))
        values = (
            draw.randint(0, steps) / steps if steps else draw.uniform(1e-6, 1.0)
            for _ in range(draw.randint(1, 40))
        )
        rows += [(group, value) for value in values]
    return rows


def _expected(
    rows: Sequence[tuple[int, float]], weights: Sequence[int] | None = None
) -> Mapping[int, float]:
    totals: defaultdict[int, Fraction] = defaultdict(Fraction)
    divisors: defaultdict[int, int] = defaultdict(int)
    for (group, value), weight in zip(rows, weights or [1] * len(rows), strict=True):
        totals[group] += weight * Fraction(value)
        divisors[group] += weight
    return {group: float(total / divisors[group]) for group, total in totals.items()}


def _table(connection: Connection) -> Table:
    columns = (Column("team", Integer), Column("value", Double), Column("weight", Double))
    table = Table("assay_means", MetaData(), *columns, prefixes=["TEMPORARY"])
    table.create(connection)
    return table


def _means(
    connection: Connection, table: Table, mean: ColumnElement[Any]
) -> dict[int, float | None]:
    rows = connection.execute(select(table.c.team, mean.label("mean")).group_by(table.c.team))
    return {row.team: row.mean for row in rows}


def test_a_mean_is_correctly_rounded(connection: Connection) -> None:
    table, rows = _table(connection), _rows()
    connection.execute(insert(table), [{"team": team, "value": value} for team, value in rows])
    connection.execute(insert(table), [{"team": _GROUPS, "value": None}])
    assert _means(connection, table, exact_mean(table.c.value)) == {
        **_expected(rows),
        _GROUPS: None,
    }


@pytest.mark.parametrize("heaviest", [1, 7])
def test_a_mean_with_whole_weights_is_correctly_rounded(
    connection: Connection, heaviest: int
) -> None:
    draw = random.Random(heaviest)
    rows = _rows()
    weights = [draw.randint(1, heaviest) for _ in rows]
    table = _table(connection)
    given = zip(rows, weights, strict=True)
    connection.execute(
        insert(table),
        [{"team": team, "value": value, "weight": weight} for (team, value), weight in given],
    )
    assert _means(connection, table, weighted(table.c.value, table.c.weight)) == _expected(
        rows, weights
    )


def test_equal_weights_need_not_be_whole_and_no_weight_is_a_plain_mean(
    connection: Connection,
) -> None:
    table = _table(connection)
    values = (0.1, 0.7, 0.7)
    weights = ((0.3, 0.3, 0.3), (0.0, 0.0, 0.0), (0.0, 0.3, 0.7))
    connection.execute(
        insert(table),
        [
            {"team": team, "value": value, "weight": weight}
            for team, row in enumerate(weights)
            for value, weight in zip(values, row, strict=True)
        ],
    )
    nulls = ((3, None, 1.0), (3, 0.5, 1.0), (4, None, 0.0), (4, 0.5, 1.0))
    connection.execute(
        insert(table),
        [{"team": team, "value": value, "weight": weight} for team, value, weight in nulls],
    )
    mean = float(sum(map(Fraction, values)) / 3)
    means = _means(connection, table, weighted(table.c.value, table.c.weight))
    assert means == {0: mean, 1: pytest.approx(mean), 2: 0.7, 3: None, 4: 0.5}


def test_equal_grades_keep_their_value_in_every_answer(store: Store) -> None:
    run = a_plan()
    store.journal.open_run(run, planned(a_task(), trials=3))
    for trial in store.journal.claim(run.id, limit=3):
        graded = grades(
            {"alice": dict.fromkeys(WEIGHTS, 0.9), "bob": {"integrity": 0.1, "fitness": 0.1}}
        )
        wait(store.journal.record(judged(trial, graded, state=AssessmentState.EXEMPT)))
    narrowed = Selection(criteria=tuple(WEIGHTS))
    scores = store.archive.scores
    assert set(scores.columns(Selection()).score.tolist()) == {0.9, 0.1}
    assert set(scores.columns(narrowed).score.tolist()) == {0.9, 0.1}
    assert set(scores.review_columns(narrowed).judged.tolist()) == {0.9, 0.1}
    assert set(scores.review_columns(narrowed).final.tolist()) == {0.9, 0.1}
    for moments in scores.criterion_moments(Selection()):
        assert moments.mean.reshape(-1).tolist() == [0.9, 0.1]


def test_the_mean_of_a_criterion_is_correctly_rounded(store: Store) -> None:
    run = a_plan(candidates=("alice",))
    values = (0.9, 0.8, 0.7, 0.8, 0.8)
    store.journal.open_run(run, planned(a_task(), trials=len(values)))
    for trial, value in zip(store.journal.claim(run.id, limit=len(values)), values, strict=True):
        graded = grades({"alice": dict.fromkeys(WEIGHTS, value)})
        wait(store.journal.record(judged(trial, graded, state=AssessmentState.EXEMPT)))
    exact = float(sum(map(Fraction, values)) / len(values))
    assert [
        float(moments.mean[0, 0]) for moments in store.archive.scores.criterion_moments(Selection())
    ] == [exact, exact]


def test_scores_that_earlier_versions_rounded_are_read_exactly(store: Store) -> None:
    run = a_plan()
    store.journal.open_run(run, planned(a_task()))
    (trial,) = store.journal.claim(run.id, limit=1)
    graded = replace(
        grades({"alice": WEIGHTS, "bob": WEIGHTS}),
        scores={"alice": 0.8999999999999999, "bob": 1 / 3},
    )
    wait(store.journal.record(judged(trial, graded, state=AssessmentState.EXEMPT)))
    read = store.archive.scores.columns(Selection())
    exact = {"alice": 0.9, "bob": 1 / 3}
    assert dict(zip(read.candidates, read.score.tolist(), strict=True)) == exact
    assert sorted(store.archive.scores.review_columns(Selection()).final.tolist()) == sorted(
        exact.values()
    )
    (trial_scores,) = store.archive.scores.of_trials(Selection(), (trial.key,))
    assert trial_scores.scores == exact
    assert {
        row.candidate: row.score for row in store.archive.exports.score_rows(Selection())
    } == exact
