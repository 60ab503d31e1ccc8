"""Bytes of a store that a disk or another program changed: every command names the damage, or is
right without it.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.attack.figures import publish, publish_cases
from tests.contract.test_plugins import SAMPLES
from tests.journey.conftest import Command, assay as assay, project as project
from tests.support import forked

from assay.app.workspace import Workspace
from assay.domain.arena import Choice, Pairing, Vote
from assay.domain.identifiers import RunId

FILES = 1_000
COMMANDS = (
    ("runs",),
    ("stats",),
    ("review", "list"),
    ("show", "{run}"),
    ("doctor", "--check-store"),
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one run; the file `whole.db` holds its store."""
    folder = tmp_path_factory.mktemp("damaged") / "project"
    folder.mkdir()
    for words in (("init",), ("run", "suites/first.yaml")):
        done = forked.run(*words, folder=folder)
        assert done.returncode == 0, done.stderr
    with sqlite3.connect(folder / ".assay" / "assay.db") as connection:
        connection.execute("VACUUM INTO ?", (str(folder / "whole.db"),))
    return folder


@pytest.fixture
def whole(template: Path, project: Path) -> str:
    """The id of the run in a copy of the template, which is the working folder."""
    shutil.copytree(template, project, dirs_exist_ok=True)
    with sqlite3.connect(project / "whole.db") as connection:
        return str(connection.execute("SELECT id FROM run").fetchone()[0])


def try_all(assay: Command, run: str) -> list[int]:
    """Run every command on the damaged store; return their exit codes."""
    codes = []
    for words in COMMANDS:
        done = assay(*(word.format(run=run) for word in words), "--store", "damaged.db")
        assert "internal error in Assay" not in done.err, done.err
        assert "safe" not in done.err
        codes.append(done.code)
    return codes


def used_places(content: bytes) -> list[int]:
    """Return the places of bytes other than 0, behind the head of the file."""
    return [place for place in range(100, len(content)) if content[place]]


def flip(project: Path, seed: int, content: bytes, used: list[int]) -> None:
    """Write `damaged.db`, a store with 1, 10 or 200 of its bytes changed."""
    chance, damaged = random.Random(seed), bytearray(content)
    for place in chance.sample(used, k=chance.choice([1, 10, 200])):
        damaged[place] = chance.randrange(256)
    (project / "damaged.db").write_bytes(damaged)


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=[pytest.mark.slow] if n > 1 else []) for n in range(8)]
)
def test_flipped_bytes_never_end_as_an_error_of_assay(
    assay: Command, project: Path, whole: str, seed: int
) -> None:
    content = (project / "whole.db").read_bytes()
    flip(project, seed, content, used_places(content))
    try_all(assay, whole)


@pytest.mark.slow
def test_a_thousand_damaged_stores_are_named_or_read(
    assay: Command, project: Path, whole: str
) -> None:
    through: list[str] = []
    content = (project / "whole.db").read_bytes()
    used = used_places(content)
    for seed in range(FILES):
        flip(project, seed, content, used)
        # `doctor` reads every row, which takes as long as all other commands together.
        words = COMMANDS[-1] if seed % 50 == 0 else COMMANDS[seed % (len(COMMANDS) - 1)]
        done = assay(*(word.format(run=whole) for word in words), "--store", "damaged.db")
        if "internal error in Assay" in done.err or "safe" in done.err:
            through.append(f"seed {seed}, {words[0]}: {done.err}")
    assert not through
    publish("command on a store with changed bytes", tried=FILES, through=len(through))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE body SET content = x'ff00ff7b'",
        "UPDATE body SET content = substr(content, 1, length(content) / 2)",
        "UPDATE trial SET state = 'aproved'",
        "UPDATE trial SET standing = 'none'",
        "UPDATE assessment SET state = CAST(x'fffe' AS TEXT)",
        "UPDATE run SET state = 'finish' || char(0)",
        "UPDATE run SET judges = '{'",
        "UPDATE run SET started = 7",
        "UPDATE run_task SET task_id = CAST(x'80' AS TEXT) || key FROM (SELECT key FROM task) WHERE key = task_key",
        "UPDATE score SET value = 'high'",
        "UPDATE task SET body_key = 999999",
        "DELETE FROM body",
        "DELETE FROM trial WHERE key = 1",
    ],
)
def test_a_damaged_value_is_named(
    assay: Command, project: Path, whole: str, statement: str
) -> None:
    shutil.copy(project / "whole.db", project / "damaged.db")
    with sqlite3.connect(project / "damaged.db") as connection:
        connection.execute(statement)
    assert try_all(assay, whole)[-1] == 1, "`doctor --check-store` finds the damage"


def test_statistics_name_a_state_that_does_not_exist(
    assay: Command, project: Path, whole: str
) -> None:
    shutil.copy(project / "whole.db", project / "damaged.db")
    with sqlite3.connect(project / "damaged.db") as connection:
        connection.execute("UPDATE assessment SET state = 'aproved' WHERE key = 1")
    done = assay("stats", "--store", "damaged.db")
    assert (done.code, "a state that does not exist" in done.err) == (2, True), done.err


def test_a_whole_store_has_no_findings(
    assay: Command, project: Path, whole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(project / "whole.db", project / "damaged.db")
    # as a setting, because --store would name another project's store
    monkeypatch.setenv("ASSAY_STORE", "damaged.db")
    checks = assay("doctor", "--check-store", "--json").document["checks"]
    parts = {check["what"]: check["state"] for check in checks if check["what"].startswith("store")}
    assert parts == dict.fromkeys(parts, "good")
    assert len(parts) == 9
    assert parts["store, results files"] == "good"


@pytest.mark.parametrize(
    ("of_record", "to"),
    [
        (b'"scores"', b'"scorez"'),
        (b"A first suite", b"A worse suite"),
        (b'"graders"', b'"graderz"'),
        (b"\n", b"}\n"),
    ],
)
def test_a_results_file_that_differs_from_the_store_is_named(
    assay: Command, project: Path, whole: str, of_record: bytes, to: bytes
) -> None:
    record = project / "results" / "_assay" / f"{whole}.jsonl"
    assert assay("doctor", "--check-store").code == 0
    content = record.read_bytes()
    assert of_record in content
    record.write_bytes(content.replace(of_record, to, 1))
    done = assay("doctor", "--check-store")
    assert done.code == 1
    assert f"{whole}.jsonl" in done.out


def test_a_changed_vote_is_named(assay: Command, project: Path, whole: str) -> None:
    with Workspace.open(project) as workspace:
        pairing = Pairing(position=0, k=1, left=0, right=1)
        workspace.arena.cast(
            Vote(
                run_id=RunId(whole),
                pairing=pairing,
                choice=Choice.LEFT,
                reviewer="ann",
                idempotency_key="the first",
            )
        )
    assert assay("doctor", "--check-store").code == 0
    with sqlite3.connect(project / ".assay" / "assay.db") as connection:
        connection.execute("UPDATE vote SET choice = 'right'")
    done = assay("doctor", "--check-store")
    assert (done.code, "vote 1 was changed" in done.out) == (1, True)


@pytest.mark.slow
def test_an_import_of_each_format_leaves_a_store_without_damage(
    assay: Command, project: Path
) -> None:
    for name, write in SAMPLES.items():
        (project / "in" / name).mkdir(parents=True)
        assay("import", write(project / "in" / name))
    assert assay("runs").out.count("\n") > 25
    for _ in range(2):
        checks = assay("doctor", "--check-store", "--json").document["checks"]
        assert [check["detail"] for check in checks if check["state"] == "broken"] == []
        shutil.rmtree(project / ".assay")
        assert assay("import", "results", "--rebuild").code == 0


def test_results_folders_of_two_stores_are_restored_together(assay: Command, project: Path) -> None:
    (project / "s.yaml").write_text(
        "candidates: [echo]\ntasks: [{id: t, prompt: x, expected: x, score: exact}]\n", "utf-8"
    )
    runs = [
        assay("run", "s.yaml", "--store", name, "--json").document["run_id"]
        for name in ("one.db", "two.db")
    ]
    restored = assay("import", "results", "--rebuild")
    assert restored.code == 0, restored.err
    assert {run["run_id"] for run in assay("runs", "--json").document["runs"]} == set(runs)
    assert assay("doctor", "--check-store").code == 0


@pytest.mark.parametrize("cost", ["1e308", "1e+13", "-1", "inf"])
def test_an_imported_amount_without_bounds_is_unknown(
    assay: Command, project: Path, cost: str
) -> None:
    rows = "".join(f"t{n},bob,1,y,{cost},{cost}\n" for n in range(3))
    (project / "rows.csv").write_text(f"t,c,s,a,usd,took\n{rows}", "utf-8")
    (project / "map.yaml").write_text(
        "{task: t, candidate: c, score: s, answer: a, cost_usd: usd, latency_s: took}", "utf-8"
    )
    assert assay("import", "rows.csv", "--map", "map.yaml").code == 0
    (run,) = assay("runs", "--json").document["runs"]
    assert not run["cost_usd"]


@pytest.mark.parametrize("name", ["scores", "phoenix", "inspect"])
def test_an_import_leaves_a_store_without_damage(assay: Command, project: Path, name: str) -> None:
    assert assay("import", SAMPLES[name](project)).code == 0
    assert assay("doctor", "--check-store").code == 0


def test_the_documentation_states_the_damages_that_were_tried() -> None:
    publish_cases("value of a store that nothing can read", test_a_damaged_value_is_named)
    publish_cases(
        "record that differs from its store",
        test_a_results_file_that_differs_from_the_store_is_named,
    )
