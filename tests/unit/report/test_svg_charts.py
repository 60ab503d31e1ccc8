"""SVG charts need no package, stay inside their frame, hold hostile names, and have labels and
units on each axis.
"""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from assay.report.charts import calibration, forest, kinds, output
from assay.report.charts.chart import Chart, Row, with_links
from assay.report.charts.svg.canvas import nice_ticks, shortened, width_of
from assay.statistics import ScoreTable, rank

HOSTILE = '"><script>alert("x")</script>\x00\u202e'
LONG = "a candidate with a name that is much longer than any column of a chart could ever be"
UNITS = {
    "forest": "score, points out of 100",
    "pairs": "difference in points",
    "ranks": "rank, 1 is best",
    "scores": "score of a trial, points out of 100",
    "calibration": "reference score, points out of 100",
    "trend": "start of the run, UTC",
}


def charts(n_candidates: int) -> list[Chart]:
    names = [HOSTILE, LONG, *(f"candidate-{n:02}" for n in range(50))][:n_candidates]
    rows = [
        (
            f"t{t}",
            name,
            f"{t}.{k}",
            min(1.0, 0.3 + 0.01 * place + 0.03 * ((t * 7 + k * 3 + place) % 11)),
        )
        for place, name in enumerate(names)
        for t in range(8)
        for k in range(2)
    ]
    task, candidate, trial, score = (list(column) for column in zip(*rows, strict=True))
    table = ScoreTable.from_columns(
        task=task, candidate=candidate, trial=trial, score=[float(each) for each in score]
    )
    return [*kinds.standard(rank(table), table), trend(names), judged()]


def trend(names: list[str]) -> Chart:
    rows: tuple[Row, ...] = tuple(
        {
            "started": f"2026-11-{day:02}T10:0{day}:00Z",
            "candidate": name,
            "mean": 50.0 + place + day,
            "low": 40.0,
            "high": 90.0,
            "run": f"r{day}",
        }
        for day in range(1, 5)
        for place, name in enumerate(names)
    )
    return Chart(kind="trend", title="suite over time", about="Each run.", rows=rows)


def judged() -> Chart:
    samples = [
        {"id": f"r{n}", "expected": n / 10, "judged": (n % 4) / 4, "passed": n % 2 == 0}
        for n in range(10)
    ]
    return calibration.calibration(samples)


def svgs(chart: Chart) -> list[ElementTree.Element]:
    """The wide, the narrow and the file's drawing."""
    page = ElementTree.fromstring(output.drawing(chart).svg)
    return [*page, ElementTree.fromstring(output.as_svg(chart, dark=True))]


def texts(drawn: ElementTree.Element) -> list[ElementTree.Element]:
    return [element for element in drawn.iter() if element.tag.endswith("}text")]


def words(text: ElementTree.Element) -> str:
    """The line as shown, without the whole name that its tooltip holds."""
    title = next(iter(text), None)
    return (title.tail if title is not None else text.text) or ""


@pytest.mark.parametrize("n_candidates", [1, 3, 50])
def test_every_axis_has_its_unit_and_round_labels(n_candidates: int) -> None:
    for chart in charts(n_candidates):
        for drawn in svgs(chart):
            shown = [words(text) for text in texts(drawn)]
            assert UNITS[chart.kind] in shown
            assert any(re.fullmatch(r"[+−]?\d+|\d+ \w{3}", label) for label in shown)


@pytest.mark.parametrize("n_candidates", [1, 3, 50])
def test_no_text_leaves_the_frame_or_lies_on_another(n_candidates: int) -> None:
    for chart in charts(n_candidates):
        for drawn in svgs(chart)[:2]:
            width, height = (float(drawn.attrib[name]) for name in ("width", "height"))
            lines: dict[float, list[tuple[float, float]]] = {}
            for text in texts(drawn):
                length = width_of(words(text), float(text.attrib["font-size"])) * 0.85
                x, y = float(text.attrib["x"]), float(text.attrib["y"])
                start = x - {"middle": length / 2, "end": length}.get(
                    text.attrib.get("text-anchor", ""), 0.0
                )
                assert start >= -1, (chart.kind, words(text))
                assert start + length <= width + 1, (chart.kind, words(text))
                assert y <= height
                lines.setdefault(y, []).append((start, start + length))
            for line in lines.values():
                assert all(left[1] <= right[0] for left, right in pairwise(sorted(line))), (
                    chart.kind
                )


def test_hostile_names_do_nothing_and_long_names_are_cut() -> None:
    for chart in charts(3):
        linked = with_links(chart, lambda row: f"/runs/{row.get('run', 1)}")
        for drawn in svgs(linked):
            elements = {element.tag.rpartition("}")[2] for element in drawn.iter()}
            assert not {"script", "style", "image", "foreignObject", "use"} & elements
            attributes = [
                (name, value) for element in drawn.iter() for name, value in element.attrib.items()
            ]
            assert not any(name == "style" or name.startswith("on") for name, _ in attributes)
            assert all(value.startswith("/runs/") for name, value in attributes if name == "href")
        page = output.drawing(chart).svg
        assert "<script" not in page
        assert not set("\x00\u202e") & set(page)
        if chart.kind in ("forest", "ranks", "scores"):
            assert f"<title>{LONG}</title>" in page
            assert "…</text>" in page


def test_a_drawing_names_and_describes_itself() -> None:
    chart = charts(3)[0]
    for drawn in svgs(chart):
        title, about = list(drawn)[:2]
        assert (title.text, about.text, drawn.attrib["role"]) == (chart.title, chart.about, "img")
    dots = with_links(charts(3)[3], lambda row: "/results")
    assert svgs(dots)[0].attrib["role"] == "group", "links inside an image could not be reached"


def test_many_trials_become_histograms_of_few_bytes() -> None:
    n = 3000
    table = ScoreTable.from_columns(
        task=["t"] * n,
        candidate=["a"] * n,
        trial=list(range(n)),
        score=[k / (n - 1) for k in range(n)],
    )
    (_, chart) = kinds.standard(rank(table), table)
    drawing = output.drawing(chart).svg
    assert "circle" not in drawing
    assert "median 50, 3,000 trials" in drawing
    assert len(drawing) < 8000


def test_the_trend_axis_prints_days_and_minutes_of_close_runs() -> None:
    rows: tuple[Row, ...] = tuple(
        {
            "started": f"2026-11-03T10:25:0{n}.500Z",
            "candidate": "ada",
            "mean": 50.0,
            "low": 40.0,
            "high": 60.0,
            "run": f"r{n}",
        }
        for n in range(3)
    )
    for drawn in svgs(Chart(kind="trend", title="suite over time", about="Each run.", rows=rows)):
        below = [words(text) for text in texts(drawn) if text.get("text-anchor") == "middle"]
        assert below == [*["3 Nov", "10:25"] * 3, "start of the run, UTC"]


def test_an_empty_chart_says_so() -> None:
    assert "No trials count yet." in output.as_svg(
        forest.forest([], about_scope="on tasks of this kind")
    )


@given(st.floats(-100, 100), st.floats(0, 200), st.integers(2, 10))
def test_ticks_are_round_even_and_enclose_the_values(low: float, width: float, most: int) -> None:
    high = min(low + width, 100.0)
    ticks = nice_ticks(low, high, most, (-100.0, 100.0))
    assert ticks[0] <= low + 1e-6 <= high + 2e-6
    assert ticks[-1] >= high - 1e-6
    assert 2 <= len(ticks) <= most + 2
    steps = {round(b - a, 9) for a, b in pairwise(ticks)}
    assert len(steps) == 1


@given(st.text(max_size=60), st.floats(20, 300))
def test_shortened_text_fits(text: str, most: float) -> None:
    short = shortened(text, most)
    assert short == text or width_of(short) <= most + width_of("…")
