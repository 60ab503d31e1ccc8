"""Charts draw without network, say in words what they show, and hand out their rows."""

from __future__ import annotations

import builtins
import csv
import io
import json
import re
from typing import Any

import pytest

from assay.domain.errors import InputError
from assay.report.charts import forest, kinds, output, pairs, ranks, scores
from assay.report.charts.chart import Chart
from assay.report.charts.colours import DARK, LIGHT
from assay.statistics import Ranking, ScoreTable, rank

HOSTILE = '=1+1<script>alert("x")</script>'


def a_table(n_tasks: int = 8) -> ScoreTable:
    names = ("ann", "bob", HOSTILE)
    rows = [
        (f"t{t}", name, f"{t}.{k}", min(1.0, 0.5 + 0.15 * place + 0.03 * ((t * 7 + k * 3) % 5)))
        for place, name in enumerate(names)
        for t in range(n_tasks)
        for k in range(3)
    ]
    task, candidate, trial, score = (
        (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    )
    table = ScoreTable.from_columns(
        task=task, candidate=candidate, trial=trial, score=[float(one) for one in score]
    )
    return table.including(names)


def drawn(table: ScoreTable) -> dict[str, Chart]:
    ranking: Ranking = rank(table)
    return {
        "forest": forest.forest(
            [one.estimate for one in ranking.candidates], about_scope="on tasks of this kind"
        ),
        "ranks": ranks.ranks(ranking),
        "pairs": pairs.pairs(ranking),
        "scores": scores.scores(table),
    }


@pytest.mark.parametrize("kind", kinds.KINDS)
@pytest.mark.parametrize("n_tasks", [8, 1, 0])
def test_every_chart_draws_in_light_and_dark_from_the_same_rows(kind: str, n_tasks: int) -> None:
    chart = drawn(a_table(n_tasks))[kind]
    light, dark = (output.as_svg(chart, dark=is_dark) for is_dark in (False, True))
    assert LIGHT["ground"] in light
    assert DARK["ground"] in dark
    assert not re.search(r"url\(|NaN|Infinity|nan", light)
    document = json.loads(output.as_json(chart))
    assert document["about"] == chart.about
    assert len(document["rows"]) == len(chart.rows)


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_the_rows_are_a_table_that_no_spreadsheet_executes(kind: str) -> None:
    chart = drawn(a_table())[kind]
    rows = list(csv.DictReader(io.StringIO(output.as_csv(chart))))
    assert len(rows) == len(chart.rows) > 0
    assert not any(str(value).startswith("=") for row in rows for value in row.values())


def test_a_forest_shows_points_with_ranges_best_first() -> None:
    chart = drawn(a_table())["forest"]
    assert [row["candidate"] for row in chart.rows] == [HOSTILE, "bob", "ann"]
    for row in chart.rows:
        assert float(row["low"] or 0) < float(row["mean"] or 0) < float(row["high"] or 0) <= 100


def test_a_pair_stands_on_both_sides_with_opposite_signs() -> None:
    chart = drawn(a_table())["pairs"]
    points = {(row["row"], row["column"]): float(row["points"] or 0) for row in chart.rows}
    assert len(points) == 6
    for (one, other), value in points.items():
        assert value == -points[other, one]
    by_name = {(row["row"], row["column"]): row["decision"] for row in chart.rows}
    assert by_name["bob", "ann"] == "better"
    assert by_name["ann", "bob"] == "worse"


def test_many_trials_are_thinned_and_the_extremes_stay() -> None:
    n = 9001
    table = ScoreTable.from_columns(
        task=["t"] * n,
        candidate=["a"] * n,
        trial=list(range(n)),
        score=[k / (n - 1) for k in range(n)],
    )
    chart = scores.scores(table, trials=lambda code: f"t{code + 1}")
    assert len(chart.rows) <= scores.MAX_POINTS
    assert chart.rows[0]["score"] == 0.0
    whole = list(csv.DictReader(io.StringIO(output.as_csv(chart))))
    assert len(whole) == n
    assert {row["trial"] for row in whole} == {f"t{k + 1}" for k in range(n)}
    assert {name for row in whole for name in row} == {"candidate", "task", "trial", "score"}
    assert [float(row["score"]) for row in whole] == pytest.approx(
        [100 * k / (n - 1) for k in range(n)]
    )
    drawn_ones = {(row["trial"], row["score"]) for row in chart.rows}
    assert drawn_ones <= {(row["trial"], float(row["score"])) for row in whole}


def test_a_png_is_the_svg_at_twice_its_size() -> None:
    chart = drawn(a_table())["ranks"]
    width = int(re.search(r'width="(\d+)"', output.as_svg(chart))[1])  # type: ignore[index]
    png = output.as_png(chart)
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 2 * width


def test_missing_charts_extra_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    review = builtins.__import__

    def lacking(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "vl_convert":
            raise ImportError(name)
        return review(name, *arguments, **named)

    chart = drawn(a_table())["forest"]
    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(InputError, match=r"assay-bench\[charts\]"):
        output.as_png(chart)
    assert output.as_csv(chart).startswith("candidate,mean")
    assert output.as_svg(chart).startswith("<svg")


def test_standard_charts_begin_with_scores() -> None:
    full = a_table()
    assert [chart.kind for chart in kinds.standard(rank(full), full)] == [
        "forest",
        "pairs",
        "ranks",
        "scores",
    ]
    alone = ScoreTable.from_columns(
        task=["a", "b"], candidate=["ann"] * 2, trial=[1, 1], score=[0.5, 0.7]
    )
    assert [chart.kind for chart in kinds.standard(rank(alone), alone)] == ["forest", "scores"]


def test_candidates_of_equal_mean_are_drawn_in_the_order_of_the_table() -> None:
    names = [f"candidate {n}" for n in range(12)]
    table = ScoreTable.from_columns(
        task=["t"] * 12, candidate=names, trial=names, score=[0.7] * 12
    ).including(names)
    order = scores.scores(table).settings["order"]
    assert order == [str(name) for name in table.candidates]
