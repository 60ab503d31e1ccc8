"""Names with characters that a renderer cannot draw."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.attack import figures
from tests.journey.conftest import Command

from assay.domain.errors import InputError
from assay.report.charts import output
from assay.report.charts.chart import SPOKEN, Chart, Row
from assay.report.charts.renderer import Renderer

FAR = "https://vega.github.io/schema/vega-lite/v5.json"
SVG = "http://www.w3.org/2000/svg"
CODES = [0, 1, 27, 0x7F, 0x85, 0xD800, 0xFFFE, 0xFFFF]


def bar(name: str, *, n: int = 1) -> dict[str, Any]:
    """A specification whose title and marks have this name."""
    return {
        "$schema": FAR,
        "title": name,
        "data": {"values": [{"candidate": f"{name}{k}", "score": 50.0} for k in range(n)]},
        "mark": "bar",
        "encoding": {"y": {"field": "candidate", "type": "nominal"}, "x": {"field": "score", "type": "quantitative"}},
    }


@pytest.fixture
def renderer() -> Iterator[Renderer]:
    pytest.importorskip("vl_convert")
    with closing(Renderer()) as opened:
        yield opened


def test_charts_with_hostile_names_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert")
    failed = 0
    for code in CODES:
        name = f"a{chr(code)}b"
        row: Row = {"candidate": name, "rank": 1, "low": 1, "high": 1, "label": name, SPOKEN: name}
        chart = Chart(kind="ranks", title=name, about=name, rows=(row,), settings={"most": 1})
        failed += ElementTree.fromstring(output.as_svg(chart).encode("utf-8", "replace")).tag != f"{{{SVG}}}svg"
        monkeypatch.setattr(output, "specification", lambda *_, name=name, **__: bar(name))
        failed += not output.as_png(chart).startswith(b"\x89PNG")
    figures.publish("name with a character that ends the process that draws", tried=2 * len(CODES), through=failed)


def test_an_abort_of_the_renderer_ends_only_its_child(renderer: Renderer) -> None:
    with pytest.raises(InputError, match="could not be drawn: the drawing process ended with code -"):
        renderer.draw(bar("a\x01b"))
    assert renderer.draw(bar("ann"))


def test_a_specification_that_is_none_is_a_message(renderer: Renderer) -> None:
    with pytest.raises(InputError, match="could not be drawn: ValueError"):
        renderer.draw({"$schema": FAR, "mark": {"type": "no such mark"}, "layer": 5})


def test_a_drawing_without_end_is_given_up() -> None:
    pytest.importorskip("vl_convert")
    with closing(Renderer(limit_s=0.01)) as renderer, pytest.raises(InputError, match=r"took more than 0\.01 s"):
        renderer.draw(bar("ann"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the memory of data")
def test_a_drawing_that_takes_too_much_memory_is_given_up() -> None:
    pytest.importorskip("vl_convert")
    with closing(Renderer(memory=40 << 20)) as renderer, pytest.raises(InputError, match="could not be drawn"):
        renderer.draw(bar("ann", n=50_000))


def test_a_fork_draws_with_a_child_of_its_own(renderer: Renderer) -> None:
    renderer.draw(bar("ann"))
    before = renderer._child
    assert before is not None
    renderer._owner += 1  # as in a process that was forked from this one
    assert renderer.draw(bar("ann"))
    assert renderer._child is not before
    assert before.poll() is None
    before.kill()
    before.communicate()


ENTRANCES = {
    "the name of a suite": ("run", "hostile.yaml"),
    "a batch": ("run", "fair.yaml", "--batch-id", "a\u202eb"),
    "a candidate of an import": ("import", "rows.csv", "--candidate", "a\u202eb"),
    "a suite of an import": ("import", "rows.csv", "--dataset", "a\u202eb"),
    "a run of an import": ("import", "rows.csv", "--run-name", "a\u202eb"),
    "a new name": ("candidates", "rename", "bob", "a\u202eb"),
}


@pytest.mark.parametrize("command", ENTRANCES.values(), ids=ENTRANCES)
def test_a_hostile_name_is_refused_at_every_entrance(assay: Command, project: Path, command: tuple[str, ...]) -> None:
    task = '{"id": "t", "prompt": "p", "expected": "x", "score": "exact", "snippets": {"bob": "x"}}'
    (project / "hostile.yaml").write_text('{"name": "a\\u202eb", "tasks": [' + task + "]}", "utf-8")
    (project / "fair.yaml").write_text('{"name": "fair", "tasks": [' + task + "]}", "utf-8")
    (project / "rows.csv").write_text("task,candidate,score\nt,bob,1\n", "utf-8")
    refused = assay(*command)
    assert refused.code == 2, refused
    assert "expected a name on one line without control characters" in refused.err
