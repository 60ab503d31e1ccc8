"""Snapshots of earlier formats still verify, and each check that they do not allow is named with
the reason.

`snapshots_1` was minted at commit caefe560, before snapshots stated their number, predecessor and
removed runs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.journey.conftest import Command, assay as assay, project as project

from assay.specialists.signatures import make_key
from assay.specialists.snapshots import laid_out, read_snapshot

KEPT = Path(__file__).with_name("snapshots_1")


@pytest.fixture
def kept(project: Path) -> Path:
    """A copy of the kept snapshots with their key, in a project that imported their runs."""
    shutil.copytree(KEPT, project / "kept")
    return project / "kept"


def test_a_snapshot_of_format_1_verifies_with_its_gaps_named(assay: Command, kept: Path) -> None:
    assert assay("import", kept / "runs.jsonl").code == 0
    path = kept / "my-specialist" / "1.0.0" / "snapshot-002.json5"
    verified = assay("mint-verify", path, "--key", kept / "key.pem.pub", "--json")
    assert verified.code == 0, verified.out
    checks = {check["check"]: check for check in verified.document["checks"]}
    assert {name for name, check in checks.items() if check["result"] == "passed"} >= {
        "content",
        "signature",
        "template",
    }
    assert not [name for name, check in checks.items() if check["result"] == "failed"]
    for name in ("place", "predecessor", "removed_runs"):
        assert checks[name]["result"] == "not_checked"
        assert "was made before" in checks[name]["detail"]
    assert set(verified.document["not_checked"]) >= {"place", "predecessor", "removed_runs"}
    printed = assay("mint-verify", path, "--key", kept / "key.pem.pub").out
    assert "not checked: place, predecessor, removed_runs" in printed
    assert assay("mint-verify", path, "--key", kept / "key.pem.pub", "--strict").code == 3


def test_a_changed_or_moved_snapshot_of_format_1_fails(assay: Command, kept: Path) -> None:
    assert assay("import", kept / "runs.jsonl").code == 0
    path = kept / "my-specialist" / "1.0.0" / "snapshot-001.json5"
    elsewhere = kept / "my-specialist" / "2.0.0" / path.name
    elsewhere.parent.mkdir()
    shutil.copy(path, elsewhere)
    assert failed(assay, elsewhere) == {"place"}
    snapshot, _ = read_snapshot(path)
    snapshot["benchmarks"]["runs"][0]["overall_score"] = 0.1
    path.write_text(laid_out(snapshot), "utf-8")
    assert failed(assay, path) == {"content"}
    make_key(kept / "mallory")
    assert failed(assay, path.with_name("snapshot-002.json5"), "--key", kept / "mallory.pub") == {
        "signature"
    }


def test_a_measured_run_that_is_deleted_fails_a_snapshot_of_format_1(
    assay: Command, kept: Path
) -> None:
    assert assay("import", kept / "runs.jsonl").code == 0
    assert assay("delete", "mine-0", "--yes").code == 0
    assert failed(assay, kept / "my-specialist" / "1.0.0" / "snapshot-001.json5") == {"runs"}


def failed(assay: Command, path: Path, *words: object) -> set[str]:
    verified = assay("mint-verify", path, *words, "--json")
    assert verified.code == 3
    return {check["check"] for check in verified.document["checks"] if check["result"] == "failed"}
