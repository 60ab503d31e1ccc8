"""Documents that programs write on one line are read like indented ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import evaluation_files as evaluations
from tests.support.harness_files import put
from tests.support.read_files import read_files


def braintrust_events(folder: Path) -> Path:
    return put(folder / "events.json", {"events": [evaluations.braintrust_case(1)], "cursor": None})


@pytest.mark.parametrize(
    "write",
    [
        evaluations.evalplus,
        evaluations.pydantic_report,
        evaluations.helm,
        evaluations.opencompass,
        evaluations.lighteval,
        braintrust_events,
    ],
)
def test_document_on_one_line_gives_the_same_records(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    path = write(tmp_path)
    indented = read_files(path)
    for file in tmp_path.rglob("*.json"):
        file.write_text(json.dumps(json.loads(file.read_text("utf-8"))), "utf-8")
    compact = read_files(path)
    assert indented.counts[0] == 1
    assert (compact.counts, compact.skipped, compact.strangers) == (
        indented.counts,
        indented.skipped,
        indented.strangers,
    )
