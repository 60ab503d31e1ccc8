"""A store backed up and restored by the command line shows the same results."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.journey.conftest import Command


def test_a_backup_is_restored_with_the_same_results(assay: Command, project: Path) -> None:
    assert assay("init").code == 0
    assert assay("run", "suites/first.yaml").code == 0
    before = assay("stats", "--json").document
    backed_up = assay("store", "backup", "kept.db", "--json")
    assert backed_up.code == 0
    assert (
        assay("store", "restore", "kept.db", "--json", "--store", "again.db").document
        == backed_up.document
    )
    assert assay("stats", "--json", "--store", "again.db").document == before
    assert assay("doctor", "--check-store", "--store", "again.db").code == 0


def test_a_backup_over_results_or_of_nothing_is_refused(assay: Command, project: Path) -> None:
    assert assay("init").code == 0
    missing = assay("store", "backup", "kept.db")
    assert (missing.code, "there is no store yet" in missing.err) == (2, True)
    assert assay("run", "suites/first.yaml").code == 0
    assert assay("store", "backup", "kept.db").code == 0
    full = assay("store", "copy", "kept.db")
    assert (full.code, "is not empty" in full.err) == (2, True)


def test_a_backup_is_not_compared_with_the_live_results_folder(
    assay: Command, project: Path
) -> None:
    assert assay("init").code == 0
    assert assay("run", "suites/first.yaml").code == 0
    assert assay("store", "backup", "kept.db").code == 0
    with closing(sqlite3.connect(project / "kept.db")) as connection, connection:
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (1,)
    assert assay("run", "suites/first.yaml").code == 0
    checked = assay("doctor", "--check-store", "--store", "kept.db", "--json")
    states = {check["what"]: check["state"] for check in checked.document["checks"]}
    assert (checked.code, states["store, results files"]) == (0, "absent"), json.dumps(
        checked.document
    )
    own = assay("doctor", "--check-store", "--json").document["checks"]
    assert {check["what"]: check["state"] for check in own}["store, results files"] == "good"
