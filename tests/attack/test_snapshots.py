"""Forged snapshots: whoever changes, moves, renames or hides something is refused with words that
name it.

The snapshots have the best case of a forger: they are complete, lie where minting puts them, and
most are sealed again with the owner's own key. Only the store and the other snapshots still tell
the truth.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attack.figures import publish, publish_cases
from tests.journey.conftest import Command, assay as assay, project as project
from tests.journey.test_mint import (
    JUDGED,
    WORKED,
    imported,
    made_key,
    mint,
    pending,
    run,
    template as template,
)

from assay.app.specialists import waiting
from assay.app.workspace import Workspace
from assay.specialists.signatures import SigningKey
from assay.specialists.snapshots import laid_out, read_snapshot, seal

KILLS = 20

Change = Callable[[Any], None]
Forgery = Callable[[Command, Path], Path]


@pytest.fixture
def second(assay: Command, template: Path) -> Path:
    """The second of two signed snapshots of a batch from which one run was deleted and another
    archived.
    """
    imported(
        assay, [*WORKED, run("weak", 0.1, specialist=True), run("weaker", 0.05, specialist=True)]
    )
    assert assay("delete", "weak", "--yes", "--reason", "looks bad").code == 0
    assert assay("archive", "weaker", "--yes").code == 0
    key = made_key(assay)
    assert assay("mint", "--new-key", "mallory.pem").code == 0
    paths = [Path(mint(assay, template, "--key", key).document["path"]) for _ in range(2)]
    return paths[1]


def changed(change: Change, *, key: str | None = "key.pem") -> Forgery:
    """Return a forgery that changes a snapshot and seals it again with a key, or without."""

    def forge(_: Command, path: Path) -> Path:
        snapshot, _problems = read_snapshot(path)
        del snapshot["integrity"]
        change(snapshot)
        path.write_text(laid_out(seal(snapshot, SigningKey(Path(key)) if key else None)), "utf-8")
        return path

    return forge


def typed(before: str, after: str) -> Forgery:
    """Return a forgery that replaces a text in the file and seals nothing."""

    def forge(_: Command, path: Path) -> Path:
        text = path.read_text("utf-8")
        assert before in text
        path.write_text(text.replace(before, after), "utf-8")
        return path

    return forge


def set_metadata(name: str, value: object) -> Change:
    return lambda snapshot: snapshot["snapshot_metadata"].update({name: value})


def _other_version(snapshot: Any) -> None:
    snapshot["version"] = snapshot["snapshot_metadata"]["template_version"] = "2.0.0"
    snapshot["validity"]["valid_for"]["template"]["version"] = "2.0.0"


def _other_specialist(snapshot: Any) -> None:
    snapshot["name"] = snapshot["validity"]["valid_for"]["template"]["name"] = "@org/other"


def _older_format(snapshot: Any) -> None:
    for name in ("format", "number", "predecessor"):
        del snapshot["snapshot_metadata"][name]
    del snapshot["evidence"]["removed_runs"]


def _no_removed_runs(snapshot: Any) -> None:
    snapshot["evidence"]["removed_runs"] = {"deleted": 0, "archived": 0, "replaced": 0, "runs": []}


def _no_archived_run(snapshot: Any) -> None:
    stated = snapshot["evidence"]["removed_runs"]
    stated["archived"], stated["runs"] = (
        0,
        [each for each in stated["runs"] if each["removal"] == "deleted"],
    )


def _no_sentences(snapshot: Any) -> None:
    snapshot["evidence"]["does_not_show"] = []


def _a_better_archived_run(snapshot: Any) -> None:
    (archived,) = (
        each
        for each in snapshot["evidence"]["removed_runs"]["runs"]
        if each["removal"] == "archived"
    )
    archived["results"][0]["overall_score"] = 0.9


def _a_better_archived_run_in_every_place(snapshot: Any) -> None:
    _a_better_archived_run(snapshot)
    gaps = snapshot["evidence"]["does_not_show"]
    snapshot["evidence"]["does_not_show"] = [
        sentence.replace("mean score 5.0", "mean score 90.0") for sentence in gaps
    ]


def _another_reason(snapshot: Any) -> None:
    for each in snapshot["evidence"]["removed_runs"]["runs"]:
        each["reason"] = "a wrong key"


def _renamed_runs(snapshot: Any) -> None:
    for each in snapshot["benchmarks"]["runs"]:
        each["run_id"] = f"theirs-{each['run_id']}"


def renamed(name: str) -> Forgery:
    return lambda _, path: path.rename(path.with_name(name))


def moved(folder: str) -> Forgery:
    def forge(_: Command, path: Path) -> Path:
        target = path.parents[2] / folder
        shutil.copytree(path.parent, target)
        return target / path.name

    return forge


def after(*words: str) -> Forgery:
    """Return a forgery that runs a command after the mint."""

    def forge(assay: Command, path: Path) -> Path:
        assert assay(*words).code == 0
        return path

    return forge


def _replaced_predecessor(_: Command, path: Path) -> Path:
    first = path.with_name("snapshot-001.json5")
    changed(set_metadata("notes", "better"))(_, first)
    return path


def _removed_predecessor(_: Command, path: Path) -> Path:
    path.with_name("snapshot-001.json5").unlink()
    return path


FORGERIES: dict[str, tuple[Forgery, str, str]] = {
    "number typed": (typed('"number": 2', '"number": 3'), "content", "The content was changed"),
    "number sealed": (
        changed(set_metadata("number", 3)),
        "place",
        "minted as snapshot-003.json5, but the file is named",
    ),
    "version typed": (
        typed('"version": "1.0.0"', '"version": "9.0.0"'),
        "content",
        "The content was changed",
    ),
    "version sealed": (
        changed(_other_version),
        "place",
        "it has version 2.0.0, but lies in a folder of version 1.0.0",
    ),
    "version in one place": (
        changed(set_metadata("template_version", "2.0.0")),
        "template",
        "contradicts itself",
    ),
    "specialist sealed": (
        changed(_other_specialist),
        "place",
        "of the specialist other, but lies in a folder of my-specialist",
    ),
    "predecessor's digest": (
        changed(set_metadata("predecessor", {"number": 1, "file_sha256": "0" * 64})),
        "predecessor",
        "was changed or replaced",
    ),
    "predecessor not stated": (
        changed(set_metadata("predecessor", None)),
        "predecessor",
        "states no predecessor",
    ),
    "predecessor's file replaced": (
        _replaced_predecessor,
        "predecessor",
        "snapshot-001.json5 was changed or replaced",
    ),
    "predecessor's file removed": (
        _removed_predecessor,
        "predecessor",
        "Snapshot 1 is not in this folder",
    ),
    "older format": (changed(_older_format), "removed_runs", "was made before"),
    "measured run deleted": (after("delete", "base-0", "--yes"), "runs", "base-0 (was deleted by"),
    "measured run archived": (
        after("archive", "mine-1", "--yes"),
        "runs",
        "mine-1 (was archived by",
    ),
    "deleted and archived runs not stated": (
        changed(_no_removed_runs),
        "removed_runs",
        "is not stated",
    ),
    "archived run not stated": (
        changed(_no_archived_run),
        "removed_runs",
        "weaker was archived by",
    ),
    "sentences on removed runs left out": (
        changed(_no_sentences),
        "removed_runs",
        "do not fit the runs that it states",
    ),
    "archived run with a better score": (
        changed(_a_better_archived_run),
        "removed_runs",
        "do not fit the runs that it states",
    ),
    "archived run with a better score in every place": (
        changed(_a_better_archived_run_in_every_place),
        "removed_runs",
        "weaker (results[0].overall_score)",
    ),
    "another reason for a deletion": (
        changed(_another_reason),
        "removed_runs",
        "with another name or reason",
    ),
    "runs renamed, so that no store knows them": (
        changed(_renamed_runs),
        "runs",
        "has none of the listed runs",
    ),
    "file renamed": (
        renamed("best.json5"),
        "place",
        "minted as snapshot-002.json5, but the file is named best.json5",
    ),
    "file with another number": (
        renamed("snapshot-007.json5"),
        "place",
        "but the file is named snapshot-007.json5",
    ),
    "file in another specialist's folder": (
        moved("other/1.0.0"),
        "place",
        "lies in a folder of other",
    ),
    "file in another version's folder": (
        moved("my-specialist/1.1.0"),
        "place",
        "lies in a folder of version 1.1.0",
    ),
    "sealed with another key": (
        changed(lambda _: None, key="mallory.pem"),
        "signature",
        "not the key in key.pem.pub",
    ),
    "sealed without a key": (changed(lambda _: None, key=None), "signature", "is not signed"),
}


@pytest.mark.parametrize("name", list(FORGERIES))
def test_a_forged_snapshot_is_refused_with_the_reason(
    assay: Command, second: Path, name: str
) -> None:
    forge, check, words = FORGERIES[name]
    path = forge(assay, second)
    verified = assay("mint-verify", path, "--key", "key.pem.pub", "--strict", "--json")
    assert verified.code == 3, verified.out
    (told,) = (each for each in verified.document["checks"] if each["check"] == check)
    assert told["result"] in ("failed", "not_checked"), told
    assert words in told["detail"]


def test_the_snapshot_itself_passes_every_check(assay: Command, second: Path) -> None:
    verified = assay("mint-verify", second, "--key", "key.pem.pub", "--strict", "--json")
    assert verified.code == 0, verified.out
    assert {each["result"] for each in verified.document["checks"]} == {"passed"}
    assert (verified.document["strict"], verified.document["not_checked"]) == (True, [])


def test_a_recorded_mint_that_is_killed_after_its_file_is_minted_once(
    assay: Command, template: Path, project: Path
) -> None:
    imported(
        assay,
        [*WORKED, run("judged", 0.5, specialist=False, scenario="another", evaluations=[JUDGED])],
    )
    assert mint(assay, template).document["state"] == "waiting"
    template_text = template.read_text("utf-8")
    template.unlink()  # so that the last decision cannot mint
    assert assay("review", "approve", pending(assay)["id"]).code == 0
    template.write_text(template_text, "utf-8")
    killed = 0
    for _ in range(KILLS):
        child = os.fork()
        if child == 0:
            _mint_and_die(project)
        killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert killed == KILLS
    minted = assay("mint", "--pending", "--json").document["mints"]
    assert [(each["state"], Path(each["path"]).name) for each in minted] == [
        ("minted", "snapshot-001.json5")
    ]
    assert assay("mint", "--pending", "--json").document["mints"] == []
    snapshots = list(Path("snapshots").rglob("*.json5"))
    publish(
        "kill -9 of a recorded mint, after its file is written",
        tried=killed,
        through=len(snapshots) - 1,
    )


def _mint_and_die(project: Path) -> None:
    """Mint what is recorded, and end this process before it notes that."""
    try:
        waiting._note = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        with Workspace.open(project, environment={}) as opened:
            waiting.mint_recorded(opened)
    finally:
        os._exit(1)


def test_the_documentation_states_the_number_of_forged_snapshots() -> None:
    publish_cases(
        "forged, moved or incomplete snapshot under `--strict`",
        test_a_forged_snapshot_is_refused_with_the_reason,
    )
