"""Fresh copies of a fixture for the validation, with the agent's visible changes and nothing else
of what it left.

Left out are `IGNORED` folders, compiled files, empty folders, special files, and the changes that
are `violations`. A file that the diff does not show has the content of the fixture, whatever the
agent's workspace says.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from assay.agents.files import (
    COMPILED,
    Snapshot,
    copy_fixture,
    open_regular,
    open_up,
    remove,
    restore,
    walk,
)
from assay.domain.integrity import scripts_of, violations
from assay.domain.scenarios import Scenario

_PACKAGE: Final = "package.json"
_CACHE: Final = "__pycache__"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChanges:
    """Changes of an agent that a fresh copy gets, and those that it does not get.

    Attributes:
        folder: the workspace in which the agent worked.
        changed: paths of all files that the agent added, changed or deleted.
        applied: paths of files to add, replace or delete.
        refused: reasons, as sentences, by path.
        scripts: names of the scripts in `package.json` that stay as they were.
    """

    folder: Path
    changed: tuple[str, ...]
    applied: tuple[str, ...]
    refused: dict[str, str]
    scripts: frozenset[str] = frozenset()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The reasons for all refused changes."""
        return tuple(self.refused.values())


def agent_changes(
    scenario: Scenario, base: Snapshot, now: Snapshot, folder: Path, changed: Sequence[str]
) -> AgentChanges:
    """Return which of the changed files the validation uses."""
    refused = violations(scenario, base.sizes, changed, now.sizes)
    protected = set(scenario.protected_files)
    applied = tuple(path for path in changed if path not in protected and path not in refused)
    scripts = frozenset[str]()
    if _PACKAGE in applied and _PACKAGE not in scenario.allowed:
        before, after = _scripts_in(base.texts.get(_PACKAGE)), _scripts_in(now.texts.get(_PACKAGE))
        scripts = frozenset(
            name for name in scripts_of(scenario) if before and before.get(name) != after.get(name)
        )
        for name in sorted(scripts):
            refused[f"{_PACKAGE} {name}"] = (
                f"The script {name!r} of {_PACKAGE} was changed, and a validation command runs it."
            )
    return AgentChanges(
        folder=folder, changed=tuple(changed), applied=applied, refused=refused, scripts=scripts
    )


def fresh_copy(
    source: Path, target: Path, changes: AgentChanges | None, *, prepared: bool
) -> dict[str, str]:
    """Copy a fixture and apply an agent's changes; return the digests of the fixture's files.

    Args:
        source: the fixture or, if baseline commands ran (`prepared`), the copy in which they ran.
        target: the folder to create.
        changes: the agent's changes; None for an unchanged copy.
        prepared: True if `source` may contain `IGNORED` folders that the commands need. There are
            no digests then.
    """
    applied = changes.applied if changes is not None else ()
    if prepared:
        _copy_prepared(source, target)
        digests: dict[str, str] = {}
        for path in applied:
            (target / path).unlink(missing_ok=True)
    else:
        target.mkdir(parents=True)
        digests, _ = copy_fixture(source, target, without=frozenset(applied))
    if changes is not None:
        for path in applied:
            _apply(changes.folder, path, target)
        if changes.scripts:
            _restore_scripts(source / _PACKAGE, target / _PACKAGE, changes.scripts)
    return digests


def _copy_prepared(source: Path, target: Path) -> None:
    """Copy a folder with all its files, but without Python's caches: a cached module may differ
    from the source beside it.
    """
    target.mkdir(parents=True)
    done = subprocess.run(
        ["cp", "-R", "-P", "-p", "--", f"{source}/.", target], check=False, capture_output=True
    )
    if done.returncode:
        raise OSError(
            f"{source} could not be copied: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}"
        )
    pending = [str(target)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name == _CACHE:
                        shutil.rmtree(entry.path)
                    else:
                        pending.append(entry.path)


def _apply(folder: Path, path: str, target: Path) -> None:
    """Give a file or link the state that it has in the agent's workspace; do nothing for one that
    is gone or special.

    No folder above the file is a link: `walk` did not follow links, and the agent's processes have
    ended.
    """
    place = target / path
    try:
        facts = os.lstat(folder / path)
    except OSError:
        return
    if not stat.S_ISREG(facts.st_mode) and not stat.S_ISLNK(facts.st_mode):
        return
    _make_folders(target, Path(path).parent)
    if place.is_dir() and not place.is_symlink():  # the fixture's files below it were deleted
        shutil.rmtree(place)
    if stat.S_ISLNK(facts.st_mode):
        os.symlink(os.readlink(folder / path), place)
        return
    with open_regular(folder / path) as file:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, facts.st_mode & 0o777)
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(file, copy)


def _make_folders(target: Path, parent: Path) -> None:
    """Make the folders above a file, in place of files and links that the agent replaced by
    folders.
    """
    place = target
    for step in parent.parts:
        place /= step
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)


def _scripts_in(text: str | None) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        document = json.loads(text or "null")
        scripts = document.get("scripts") if isinstance(document, dict) else None
        return scripts if isinstance(scripts, dict) else {}
    return {}


def _restore_scripts(source: Path, target: Path, names: Collection[str]) -> None:
    before = _scripts_in(source.read_text("utf-8", "replace"))
    with suppress(OSError, ValueError, RecursionError):
        document = json.loads(target.read_text("utf-8", "replace"))
        scripts = {
            **_scripts_in(json.dumps(document)),
            **{name: before[name] for name in names if name in before},
        }
        document["scripts"] = {
            name: text for name, text in scripts.items() if name in before or name not in names
        }
        target.write_text(json.dumps(document, indent=2) + "\n", "utf-8")


def restore_checks(
    scenario: Scenario, source: Path, target: Path, applied: Collection[str]
) -> None:
    """Undo the changes of a validation command to the checks that follow: protected files, files
    that steer them, and caches.

    Code of the agent runs in each command, and could otherwise write the checks of the next.
    """
    open_up(target)
    restore(scenario.protected_files, source, target)
    left_out: list[str] = []
    present = [path for path, _ in walk(target, left_out)]
    added = [path for path in present if path not in applied and not os.path.lexists(source / path)]
    for path in violations(scenario, set(present).difference(added), added, present):
        (target / path).unlink(missing_ok=True)
    for path in left_out:
        if path.rpartition("/")[2] == _CACHE:
            remove(target / path)
        elif path.endswith(COMPILED):
            (target / path).unlink(missing_ok=True)
