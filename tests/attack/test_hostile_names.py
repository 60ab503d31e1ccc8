"""Names with characters that a renderer cannot draw."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.attack import figures
from tests.journey.conftest import Command

from assay.report.charts import output
from assay.report.charts.chart import SPOKEN, Chart, Row

SVG = "http://www.w3.org/2000/svg"
CODES = [0, 1, 27, 0x7F, 0x85, 0xD800, 0xFFFE, 0xFFFF]


def test_charts_with_hostile_names_are_drawn() -> None:
    pytest.importorskip("vl_convert")
    failed = 0
    for code in CODES:
        name = f"a{chr(code)}b"
        row: Row = {"candidate": name, "rank": 1, "low": 1, "high": 1, "label": name, SPOKEN: name}
        chart = Chart(kind="ranks", title=name, about=name, rows=(row,), settings={"most": 1})
        failed += (
            ElementTree.fromstring(output.as_svg(chart).encode("utf-8", "replace")).tag
            != f"{{{SVG}}}svg"
        )
        failed += not output.as_png(chart).startswith(b"\x89PNG")
    figures.publish(
        "name with a character that ends the process that draws",
        tried=2 * len(CODES),
        through=failed,
    )


ENTRANCES = {
    "the name of a suite": ("run", "hostile.yaml"),
    "a batch": ("run", "fair.yaml", "--batch-id", "a\u202eb"),
    "a candidate of an import": ("import", "rows.csv", "--candidate", "a\u202eb"),
    "a suite of an import": ("import", "rows.csv", "--dataset", "a\u202eb"),
    "a run of an import": ("import", "rows.csv", "--run-name", "a\u202eb"),
    "a new name": ("candidates", "rename", "bob", "a\u202eb"),
}


@pytest.mark.parametrize("command", ENTRANCES.values(), ids=ENTRANCES)
def test_a_hostile_name_is_refused_at_every_entrance(
    assay: Command, project: Path, command: tuple[str, ...]
) -> None:
    task = '{"id": "t", "prompt": "p", "expected": "x", "score": "exact", "snippets": {"bob": "x"}}'
    (project / "hostile.yaml").write_text('{"name": "a\\u202eb", "tasks": [' + task + "]}", "utf-8")
    (project / "fair.yaml").write_text('{"name": "fair", "tasks": [' + task + "]}", "utf-8")
    (project / "rows.csv").write_text("task,candidate,score\nt,bob,1\n", "utf-8")
    refused = assay(*command)
    assert refused.code == 2, refused
    assert "expected a name on one line without control characters" in refused.err
