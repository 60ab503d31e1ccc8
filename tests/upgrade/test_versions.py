"""The store and the results folder of each version that was on main, opened and rebuilt with the
figures they had.
"""

from __future__ import annotations

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.attack.figures import publish_cases
from tests.contract.rows import assert_derived_agrees
from tests.contract.stores import StandingClock, a_decision
from tests.upgrade.keep_a_store import tables_now
from tests.upgrade.keep_a_version import VERSIONS, digest_of, figures

from assay.app.imports.restore import rebuild
from assay.app.workspace import Workspace
from assay.cli.main import exit_code
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.selection import Selection
from assay.store.database import schema
from assay.store.opening import Store, open_store

KEPT = sorted(VERSIONS.glob("*.tar.xz"))
WITH_RESULTS = [path for path in KEPT if path.name >= "0005"]
WITH_EXPORTS = [path for path in KEPT if path.name >= "0003"]
each = pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name[:13])


def unpacked(kept: Path, folder: Path) -> dict[str, Any]:
    """Unpack a version's files into a folder, and return the figures that they must show."""
    with tarfile.open(kept) as archive:
        archive.extractall(folder, filter="data")
    return dict(json.loads((folder / "figures.json").read_text("utf-8")))


def figures_of(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(json.loads(json.dumps(figures(connection))))


def means_in(store: Store) -> dict[str, dict[str, tuple[int, float]]]:
    """Each run's number of scores and mean per candidate, read as statistics read them."""
    means: dict[str, dict[str, tuple[int, float]]] = {}
    for run in store.archive.runs.matching():
        columns = store.archive.scores.columns(Selection(runs=(run.id,)))
        for index, name in enumerate(columns.candidates):
            scores = columns.score[columns.candidate == index]
            means.setdefault(run.id, {})[name] = (len(scores), round(float(scores.mean()), 9))
    return means


def as_pairs(counted: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, tuple[int, float]]]:
    return {
        run: {name: (int(n), mean) for name, (n, mean) in by.items()} for run, by in counted.items()
    }


def assert_usable(url: str, expected: dict[str, Any]) -> None:
    """Read everything that a store has, then decide on what awaits review, and undo a decision."""
    store = open_store(url, clock=StandingClock())
    try:
        assert means_in(store) == as_pairs(expected["counted"])
        assert store.event_log.first_broken() is None
        for run in expected["runs"]:
            assert store.journal.plan_of(run).id == run
            assert list(store.archive.records.whole(run))[-1]["kind"] == "mark"
        rows = list(store.archive.assessments.matching(Selection()))
        details = [store.archive.assessments.detail(row.key) for row in rows]
        assert sum(len(detail.events) for detail in details) == sum(expected["decisions"].values())
        assert all(detail.judged.grades for detail in details)
        pending = [row.key for row in rows if row.state is AssessmentState.PENDING]
        (corrected,) = (row.key for row in rows if row.state is AssessmentState.CORRECTED)
        decisions = [a_decision(Verb.APPROVE, key) for key in pending] + [
            a_decision(Verb.UNDO, corrected)
        ]
        assert len(store.decisions.decide(decisions)) == len(pending) + 1
        assert store.event_log.first_broken() is None
    finally:
        store.close()
    assert_derived_agrees(url)


@each
def test_a_store_of_each_version_opens_with_the_figures_it_had(kept: Path, tmp_path: Path) -> None:
    expected = unpacked(kept, tmp_path)
    path = tmp_path / "assay.db"
    assert figures_of(path) == expected
    open_store(f"sqlite:///{path}", clock=StandingClock()).close()
    assert figures_of(path) == expected
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        columns = columns_of(connection)
    open_store(f"sqlite:///{tmp_path / 'new.db'}", clock=StandingClock()).close()
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert columns == columns_of(connection)
    assert_usable(f"sqlite:///{path}", expected)


def columns_of(connection: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """The columns of every table and index, with type, null and default."""
    names = connection.execute("SELECT type, name FROM sqlite_master ORDER BY name").fetchall()
    return {
        name: connection.execute(f'PRAGMA {kind}_info("{name}")').fetchall() for kind, name in names
    }


@pytest.mark.parametrize("kept", WITH_RESULTS, ids=lambda path: path.name[:13])
def test_a_results_folder_of_each_version_rebuilds_the_store(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = unpacked(kept, tmp_path)
    (tmp_path / "assay.db").unlink()
    monkeypatch.chdir(tmp_path)
    with Workspace.open() as workspace:
        rebuilt = rebuild(workspace.store, workspace.results, tmp_path / "results")
    assert (rebuilt.altered, rebuilt.skipped) == ((), ())
    path = tmp_path / ".assay" / "assay.db"
    assert figures_of(path) == expected
    assert_usable(f"sqlite:///{path}", expected)


@pytest.mark.parametrize("kept", WITH_EXPORTS, ids=lambda path: path.name[:13])
def test_an_exported_table_of_each_version_is_imported_with_its_means(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = unpacked(kept, tmp_path)
    (tmp_path / "assay.db").unlink()
    monkeypatch.chdir(tmp_path)
    assert exit_code(["import", "exports/results.csv"]) == 0
    store = open_store(f"sqlite:///{tmp_path / '.assay' / 'assay.db'}", clock=StandingClock())
    try:
        (imported,) = means_in(store).values()  # one table becomes one run
    finally:
        store.close()
    counted = as_pairs(expected["counted"])
    assert imported == {
        name: pair for by_candidate in counted.values() for name, pair in by_candidate.items()
    }


def test_one_version_is_kept_for_each_migration_and_for_todays_tables() -> None:
    """If this fails, run `python -m tests.upgrade.keep_a_version` and commit the file that it
    writes.
    """
    migrations = Path(schema.__file__).parents[1] / "migrations" / "versions"
    numbers = {path.name[:4] for path in migrations.glob("[0-9]*.py")}
    names = {path.name.removesuffix(".tar.xz") for path in KEPT}
    assert numbers <= {name[:4] for name in names}
    statements = [statement for statement in tables_now("sqlite").split(";\n") if statement.strip()]
    assert f"{schema.VERSION}-{digest_of(statements)}" in names


def test_published_figures() -> None:
    publish_cases(
        "store, results folder or exported table of an earlier version",
        test_a_store_of_each_version_opens_with_the_figures_it_had,
        test_a_results_folder_of_each_version_rebuilds_the_store,
        test_an_exported_table_of_each_version_is_imported_with_its_means,
    )
