"""Contract of score tables: rows with nothing but a score take a faster way, with the same
result.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.rows import assert_derived_agrees

from assay.app.imports.importer import import_paths
from assay.app.imports.options import ImportOptions, ImportResult
from assay.app.workspace import Workspace
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.exchange.readers import score_table

HEADER = "task,candidate,trial,score,judge,state"
ROWS = [
    "t1,a,1,0.5,,",
    "t1,b,1,0.25,,",
    "t1,a,1,0.75,,",
    " t2 ,'=b,2, 1 ,,",
    "t2,a,,0,,",
    "t2,a,3,,,",
    "tü,a,1,1e-1,judge one,",
    "t1,a,1,0.125,judge one,approved",
    "t1,a,2,0.3,judge one,rejected",
]
BROKEN = [
    "t9,a,1,1.5,,",
    "t9,a,0,0.5,,",
    ",a,1,0.5,,",
    "t9,a,1,half,,",
    "t9,a,1,0.5,,counted",
    "t9,a,1,0.5,,,,,",
]


@pytest.fixture
def workspace(url: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(
        tmp_path, environment={}, options={"store": url, "results": "off"}
    ) as opened:
        yield opened
    assert_derived_agrees(url)


def bring(workspace: Workspace, path: Path, header: str, rows: list[str]) -> ImportResult:
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return import_paths(workspace, [path], ImportOptions(copy=False))


def stored(workspace: Workspace) -> list[tuple[object, ...]]:
    return sorted(
        (
            row.task,
            row.k,
            row.grader,
            row.by_model,
            row.state.value,
            row.candidate or "",
            str(row.assessment.scores),
            str(row.assessment.grades),
            str(row.assessment.weights),
        )
        for row in workspace.archive.assessments.matching(Selection())
    )


def test_bare_rows_and_whole_rows_give_the_same_run(workspace: Workspace, tmp_path: Path) -> None:
    whole = bring(
        workspace, tmp_path / "whole.csv", f"{HEADER},criterion", [f"{row}," for row in ROWS]
    )
    expected = stored(workspace)
    assert (whole.assessments, whole.skipped) == (len(ROWS), [])
    bare = bring(workspace, tmp_path / "bare.csv", HEADER, ROWS)
    assert bare.unchanged == {str(tmp_path / "bare.csv"): tuple(whole.run_ids)}, (
        "the same results, so nothing is new"
    )
    workspace.store.run_removal.take_out(
        [RunId(run) for run in whole.run_ids], reviewer="x", reason=""
    )
    again = bring(workspace, tmp_path / "bare.csv", HEADER, ROWS)
    assert again.assessments == len(ROWS)
    assert stored(workspace) == expected
    states = {row.state for row in workspace.archive.assessments.matching(Selection())}
    assert AssessmentState.PENDING in states


def test_plain_rows_are_read_by_columns_and_odd_ones_by_row(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_row: set[str] = set()
    take = score_table._BareScores.take

    def noted(self: score_table._BareScores, cells: list[str]) -> bool:
        by_row.add(str(cells))
        return take(self, cells)

    monkeypatch.setattr(score_table._BareScores, "take", noted)
    plain = [f"t{n % 300},m{n % 7},{n % 5 + 1},{n % 11 / 10},," for n in range(20_000)]
    result = bring(workspace, tmp_path / "plain.csv", HEADER, plain)
    assert (result.assessments, by_row) == (len(plain), set())
    odd = {
        "t1,a,1,nan,,": 1,
        "t1,a,1,1.5,,": 1,
        "t1,a,1,0.5,judge,": 0,
        't1,"a",1,0.5,,': 0,
        "t1,a,1,0.5,,,": 1,
    }
    for number, (row, refused) in enumerate(odd.items()):
        by_row.clear()
        result = bring(workspace, tmp_path / "odd.csv", HEADER, [*plain[50 * number :][:50], row])
        assert [skipped.where[-3:] for skipped in result.skipped] == [":52"] * refused, (
            row,
            result.skipped,
        )
        assert (result.assessments, len(by_row)) == (51 - refused, 51), row


def test_rows_with_an_empty_score_are_counted_in_a_note(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("task,candidate,score\na,x,0.5\nb,x,\nc,x,\n", encoding="utf-8")
    (note,) = import_paths(workspace, [path]).notes
    assert note.what.startswith("2 rows have an empty score.")


def test_a_broken_row_among_bare_rows_is_named_with_its_line(
    workspace: Workspace, tmp_path: Path
) -> None:
    result = bring(workspace, tmp_path / "scores.csv", HEADER, [*ROWS, *BROKEN])
    assert result.assessments == len(ROWS)
    assert [skipped.where.rsplit(":", 1)[1] for skipped in result.skipped] == [
        str(len(ROWS) + 2 + number) for number in range(len(BROKEN))
    ]


@pytest.mark.parametrize("columns", ["task,candidate,score", "task,candidate,score,note"])
def test_a_table_mostly_off_its_scale_leaves_no_run(
    workspace: Workspace, tmp_path: Path, columns: str
) -> None:
    rest = "," * columns.count("note")
    rows = [f"t{number},x,{percent}{rest}" for number, percent in enumerate((0, 1, 50, 70, 90))]
    result = bring(workspace, tmp_path / "scores.csv", columns, rows)
    (skipped,) = result.skipped
    assert "3 of 5 scores lie outside 0 to 1" in skipped.why
    assert workspace.archive.runs.matching() == ()


def test_a_row_of_a_score_table_takes_less_than_320_bytes(tmp_path: Path) -> None:
    rows = [f"task-{n // 50},model-{n // 5 % 10},{n % 5 + 1},0.{n % 997}" for n in range(20_000)]
    options = {"store": f"sqlite:///{tmp_path}/assay.db", "results": "off"}
    with Workspace.open(tmp_path, environment={}, options=options) as workspace:
        bring(workspace, tmp_path / "scores.csv", "task,candidate,trial,score", rows)
    with closing(sqlite3.connect(tmp_path / "assay.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert os.path.getsize(tmp_path / "assay.db") / len(rows) < 320
