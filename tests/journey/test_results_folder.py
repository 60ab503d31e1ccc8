"""The results folder: in step with the store, whole at any moment, and enough to have the store
back.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assay.app.imports import restore
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.exchange.results_folder import folder as results_folder
from tests.journey.conftest import Command
from tests.support.model_server import Mishap, ModelServer
from tests.support.sets import NAMES, write_set

JUDGE = "openai/judge-1"
MIXED = """
name: mixed
prompt_version: evaluation_v1
trials: 2
system_prompt: Be brief.
candidates:
  - openai/model-a
  - {name: "../../etc/passwd", model: openai/model-b, metadata: {hf_id: org/b, vram_gb: 7.6}}
judge: {model: openai/judge-1, mode: each}
rubric: [{name: right, weight: 2, guidance: Is it right?}, clear]
tasks:
  - {id: sum, prompt: "What is 1 + 1?", tags: [easy]}
  - {id: "../up", prompt: "What is 2 + 2?", expected: "4", score: exact, weight: 2}
  - {id: brought, prompt: "Say it.", snippets: {ann: "It.", "CON": "Con."}}
"""


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def everything(assay: Command) -> dict[str, Any]:
    """All that a person could ask of the store."""
    rows = assay("review", "list", "--json").document["assessments"]
    runs = assay("runs", "--json").document
    return {
        "runs": runs,
        "rows": rows,
        "details": [assay("review", "show", row["id"], "--json").document for row in rows],
        "stats": assay("stats", "--json").document,
        "rank": assay("rank", "--json").document,
        "shown": [assay("show", run["run_id"], "--json").document for run in runs["runs"]],
    }


def rebuild(folder: Path = Path("results")) -> restore.Rebuilt:
    with Workspace.open() as workspace:
        return restore.rebuild(workspace.store, workspace.results, folder)


def unbroken() -> bool:
    with Workspace.open() as workspace:
        return workspace.event_log.first_broken() is None


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test that needs the lived-in project keeps a copy for the others."""
    return tmp_path_factory.mktemp("lived") / "project"


@pytest.fixture
def lived(assay: Command, server: ModelServer, project: Path, kept: Path) -> Path:
    """Two runs with every kind of decision, a rerun, an undo, a failed trial and a regrade; the
    results folder.
    """
    if not kept.exists():
        live_in(assay, server, project)
        shutil.copytree(project, kept)
    else:
        shutil.copytree(kept, project, dirs_exist_ok=True)
    return project / "results"


def live_in(assay: Command, server: ModelServer, project: Path) -> None:
    (project / "mixed.yaml").write_text(MIXED, "utf-8")
    assay("run", write_set(project, things=2, trials=2), "--judge", JUDGE)
    ids = [row["id"] for row in assay("review", "list", "--json").document["assessments"]]
    assert assay("review", "approve", ids[0], "--reviewer", "rita").code == 0
    assert (
        assay(
            "review", "correct", ids[1], "--score", f"{NAMES[0]}=0.25", "--reason", "ümlaut \u202e"
        ).code
        == 0
    )
    assert assay("review", "reject", ids[2], "--reason", "no").code == 0
    assert assay("review", "rerun", ids[2], "--note", "look again").code == 0
    assert assay("review", "approve", ids[3]).code == 0
    assert assay("review", "undo", ids[3]).code == 0
    server.script([Mishap.HTTP_400])
    assert assay("run", "mixed.yaml", "--json").code == 1
    waiting = [
        row["id"]
        for row in assay("review", "list", "--state", "pending", "--json").document["assessments"]
    ]
    assert assay("review", "approve", *waiting[2:6]).code == 0
    (first, *_) = [
        run["run_id"]
        for run in assay("runs", "--json").document["runs"]
        if run["suite"] == "services"
    ]
    assert assay("regrade", first, "--judge", "openai/judge-2").code == 0


def test_the_store_comes_back_from_the_folder_word_for_word(
    assay: Command, lived: Path, project: Path
) -> None:
    before = everything(assay)
    shutil.rmtree(project / ".assay")
    result = rebuild()
    assert (len(result.runs), result.renumbered, result.altered, result.skipped) == (
        3,
        False,
        (),
        (),
    )
    assert everything(assay) == before
    assert unbroken()
    assert assay("run", "mixed.yaml").code == 0
    assert len(assay("runs", "--json").document["runs"]) == 4


def test_the_command_that_brings_the_store_back(assay: Command, lived: Path, project: Path) -> None:
    before = assay("stats", "--json").document
    shutil.rmtree(project / ".assay")
    document = assay("import", "results", "--rebuild", "--json").document
    assert document["imported"]["runs"] == len(document["run_ids"]) == 3
    assert document["imported"]["assessments"] > 10
    assert assay("stats", "--json").document == before
    again = assay("import", "results", "--rebuild")
    assert again.code == 0
    assert "3 were already there" in again.out
    assert assay("import", "results", "--rebuild", "--move").code == 2


def test_runs_of_a_store_that_cannot_be_upgraded_come_from_the_folder(
    assay: Command, lived: Path, project: Path
) -> None:
    """Every version that was on main can be upgraded, so this one has a number that no migration
    has.
    """
    before = everything(assay)
    with closing(sqlite3.connect(project / ".assay" / "assay.db")) as connection:
        connection.execute("UPDATE assay_version SET version_num = '0010'")
        connection.commit()
    refused = assay("runs")
    assert refused.code == 2
    assert not refused.out
    assert refused.err.count("\n") == 1
    assert "has tables of version 0010 that cannot be upgraded" in refused.err
    assert "Move the file away, then `assay import results --rebuild`" in refused.err
    (project / ".assay" / "assay.db").rename(project / "old.db")
    assert assay("import", "results", "--rebuild").code == 0
    assert everything(assay) == before


def test_an_imported_run_is_in_the_folder_and_comes_back(assay: Command, project: Path) -> None:
    line = {
        "custom_id": "q",
        "response": {
            "status_code": 200,
            "body": {"model": "m", "choices": [{"message": {"content": "x"}}]},
        },
    }
    (project / "out.jsonl").write_text(json.dumps({**line, "error": None}) + "\n", "utf-8")
    run = assay("import", "out.jsonl", "--json").document["run_ids"][0]
    shutil.rmtree(project / ".assay")
    assert rebuild().runs == (run,)
    assert assay("import", "out.jsonl", "--json").document["run_ids"] == []


def test_a_second_rebuild_changes_nothing(assay: Command, lived: Path, project: Path) -> None:
    shutil.rmtree(project / ".assay")
    rebuild()
    store, folder = everything(assay), files(lived)
    result = rebuild()
    assert (result.runs, len(result.there)) == ((), 3)
    assert everything(assay) == store
    assert files(lived) == folder


@pytest.mark.slow
def test_runs_join_a_store_that_has_others(assay: Command, lived: Path, project: Path) -> None:
    before = everything(assay)
    runs = [run["run_id"] for run in before["runs"]["runs"]]
    of_the_runs = (
        "stats",
        "--json",
        "--pool-anyway",
        *(word for run in runs for word in ("--run", run)),
    )
    stats = assay(*of_the_runs).document
    shutil.move(lived, project / "old")
    shutil.rmtree(project / ".assay")
    assay("run", write_set(project, things=1, trials=1, name="other.json"), "--judge", JUDGE)
    result = rebuild(Path("old"))
    assert (len(result.runs), result.renumbered) == (3, True)
    assert unbroken()
    assert assay(*of_the_runs).document == stats
    assert [row["scores"] for row in everything(assay)["rows"][1:]] == [
        row["scores"] for row in before["rows"]
    ]
    own = {path.stem for path in results_folder.records(project / "results")}
    assert set(runs) < own
    again = everything(assay)
    shutil.rmtree(project / ".assay")
    assert not rebuild().renumbered
    assert everything(assay)["rows"] == again["rows"]


def test_decisions_reach_the_folder_when_the_command_ends(assay: Command, lived: Path) -> None:
    row = assay("review", "list", "--state", "pending", "--json").document["assessments"][0]
    record = results_folder.record_of(lived, row["run_id"])
    size, last = record.stat().st_size, results_folder.last_event(record)
    assay("review", "reject", row["id"], "--reason", "projected at once")
    assert b"projected at once" in record.read_bytes()[size:]
    assert last is not None
    assert (results_folder.last_event(record) or 0) > last
    registry = json.loads((lived / "metadata.json").read_bytes())
    (one, *_) = [entry for entry in registry["runs"] if entry["assay_run"] == row["run_id"]]
    assert one["review"]["rejected"] >= 1


def test_a_decision_changed_in_the_folder_shows(assay: Command, lived: Path, project: Path) -> None:
    for path in results_folder.records(lived):
        path.write_bytes(path.read_bytes().replace(b'"reviewer":"rita"', b'"reviewer":"nina"'))
    shutil.rmtree(project / ".assay")
    assert rebuild().altered[:1] == (1,)


@pytest.mark.parametrize("cut", [1, 40, 3000])
def test_record_cut_off_by_a_crash_is_written_again(
    assay: Command, lived: Path, project: Path, cut: int
) -> None:
    row = assay("review", "list", "--state", "pending", "--json").document["assessments"][0]
    record = results_folder.record_of(lived, row["run_id"])
    whole = record.read_bytes()
    before = list(results_folder.record_lines(record))
    assay("review", "approve", row["id"])
    added = record.read_bytes()
    assert added.startswith(whole)
    record.write_bytes(added[: max(len(whole) + 1, len(added) - cut)])
    assert list(results_folder.record_lines(record)) == before
    assert results_folder.last_event(record) is None
    assay("review", "undo", row["id"])
    shutil.rmtree(project / ".assay")
    rebuild()
    events = assay("review", "show", row["id"], "--json").document["events"]
    assert [event["decision"] for event in events][-2:] == ["approve", "undo"]


def test_a_damaged_record_is_named_and_the_others_come_back(
    assay: Command, lived: Path, project: Path
) -> None:
    first, *others = results_folder.records(lived)
    first.write_bytes(first.read_bytes()[:500])
    shutil.rmtree(project / ".assay")
    result = rebuild()
    assert [one.where for one in result.skipped] == [str(first.relative_to(project))]
    assert len(result.runs) == len(others)


def test_no_name_leads_out_of_the_folder(assay: Command, lived: Path, project: Path) -> None:
    outside = {path.name for path in project.iterdir()} - {
        "results",
        ".assay",
        "mixed.yaml",
        "services.json",
    }
    assert outside == set()
    names = {path.name for path in lived.iterdir()}
    assert {"metadata.json", "_assay", "openai--model-a", "nora"} <= names
    assert any(name.startswith("etc--passwd-") for name in names)
    assert any(name.startswith("x-con-") for name in names)
    assert (lived / "openai--model-a").is_dir()


def test_results_folder_files_follow_the_documented_format(assay: Command, lived: Path) -> None:
    (meta,) = (json.loads(path.read_bytes()) for path in lived.glob("etc--passwd-*/*.meta.json"))
    assert meta["model"] == {
        **meta["model"],
        "name": "../../etc/passwd",
        "id": "org/b",
        "vram_gb": 7.6,
    }
    assert meta["dataset"]["criteria"]["right"] == "Is it right?"
    assert meta["dataset"]["count"] == 3
    assert meta["dataset"]["prompt_template"] == "evaluation_v1"
    assert meta["execution"]["duration_seconds"] > 0
    assert meta["status"] == "completed"
    (path,) = lived.glob("openai--model-a/*.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len({line["custom_id"] for line in lines}) == len(lines) == 6
    failed = [line for line in lines if line["error"]]
    mine = json.loads(Path(str(path).replace(".jsonl", ".meta.json")).read_bytes())["results"]
    assert mine["success"] + mine["errors"] == mine["total"] == 6
    assert mine["errors"] == len(failed)
    answered = [line for line in lines if not line["error"]]
    assert all(line["response"]["status_code"] == 200 for line in answered)
    assert mine["avg_prompt_tokens"] == pytest.approx(
        sum(line["response"]["body"]["usage"]["prompt_tokens"] for line in answered)
        / len(answered),
        abs=0.01,
    )
    registry = json.loads((lived / "metadata.json").read_bytes())
    assert {"runs", "datasets", "models"} <= set(registry)
    assert registry["models"]["openai--model-a"]["runs"] == 1
    for entry in registry["runs"]:
        assert (lived.parent / entry["results_file"]).is_file()


@pytest.mark.slow
def test_a_run_is_registered_while_it_runs(
    assay: Command, server: ModelServer, project: Path
) -> None:
    path = write_set(project, things=3, trials=5)
    slow = subprocess.Popen(
        [sys.executable, "-m", "assay", "run", str(path), "--judge", JUDGE, "--concurrency", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    registry = project / "results" / "metadata.json"
    seen: set[str] = set()
    deadline = time.monotonic() + 30
    while slow.poll() is None and time.monotonic() < deadline:
        if registry.exists():
            seen |= {entry["status"] for entry in json.loads(registry.read_bytes())["runs"]}
        time.sleep(0.005)
    slow.communicate()
    assert seen & {"planned", "running"}
    assert {entry["status"] for entry in json.loads(registry.read_bytes())["runs"]} == {"completed"}


@pytest.mark.slow
def test_killed_at_any_moment_nothing_half_written_is_taken_for_whole(
    assay: Command, lived: Path, project: Path
) -> None:
    """Exports of the folder are killed at many moments; what is there is always whole, and comes
    back the same.
    """
    before = everything(assay)
    for step in range(8):
        running = subprocess.Popen(
            [sys.executable, "-m", "assay", "export", "results"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        time.sleep(0.45 + 0.06 * step)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        json.loads((lived / "metadata.json").read_bytes())
        for path in lived.rglob("*.meta.json"):
            json.loads(path.read_bytes())
        for path in results_folder.records(lived):
            assert list(results_folder.record_lines(path))[-1]["kind"] == "mark"
    shutil.rmtree(project / ".assay")
    rebuild()
    assert everything(assay) == before


def test_registry_keeps_foreign_entries_and_moves_a_damaged_file(
    assay: Command, server: ModelServer, project: Path
) -> None:
    folder = project / "results"
    folder.mkdir()
    other = {
        "run_id": "qwen-3-4b-batch_5k-20241028-143300",
        "model": "Qwen 3-4B",
        "status": "completed",
        "x": 1,
    }
    (folder / "metadata.json").write_text(
        json.dumps({"runs": [other], "datasets": {}, "models": {}, "note": "ours"})
    )
    path = write_set(project, things=1, trials=1)
    assay("run", path, "--judge", JUDGE)
    registry = json.loads((folder / "metadata.json").read_bytes())
    assert other in registry["runs"]
    assert registry["note"] == "ours"
    assert len(registry["runs"]) == 1 + len(NAMES)
    for odd in (
        {"runs": [1, None, {"x": 2}], "datasets": {"services.json": 3}, "models": {"nora": []}},
        {"runs": 7},
    ):
        (folder / "metadata.json").write_text(json.dumps(odd))
        assert assay("export", "results").code == 0
        assert len(json.loads((folder / "metadata.json").read_bytes())["runs"]) >= len(NAMES)
    for meta in folder.glob("*/*.meta.json"):
        meta.write_text(
            json.dumps({"assay_run": json.loads(meta.read_bytes())["assay_run"], "dataset": 1})
        )
    assert assay("export", "results").code == 0
    (folder / "metadata.json").write_text('{"runs": [')
    assert assay("export", "results", "--json").document["rows"] == 1
    assert len(json.loads((folder / "metadata.json").read_bytes())["runs"]) == len(NAMES)
    assert len(list(folder.glob("metadata.json.unreadable-*"))) == 1


def test_the_folder_can_be_off_or_elsewhere(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_set(project, things=1, trials=1)
    monkeypatch.setenv("ASSAY_RESULTS", "off")
    assert assay("run", path, "--judge", JUDGE).code == 0
    assert not (project / "results").exists()
    assert assay("export", "results").code == 2
    assert assay("export", "results", "--output", "there").code == 0
    assert len(results_folder.records(project / "there")) == 1
    monkeypatch.setenv("ASSAY_RESULTS", "kept/here")
    assert assay("run", path, "--judge", JUDGE).code == 0
    assert len(results_folder.records(project / "kept" / "here")) == 1


def test_a_folder_that_cannot_be_written_does_not_fail_the_run(
    assay: Command, server: ModelServer, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "results").write_text("a file stands in the way")
    output = assay("run", write_set(project, things=1, trials=1), "--judge", JUDGE)
    assert output.code == 0
    assert "results folder" in caplog.text
    assert (project / "results").read_text() == "a file stands in the way"


def test_a_folder_that_is_none_says_so(project: Path) -> None:
    with pytest.raises(InputError, match="no run records"):
        rebuild(Path("nowhere"))
