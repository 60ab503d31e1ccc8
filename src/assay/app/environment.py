"""Record the software and machine of a run, so that it can be repeated."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from assay.domain.digest import JsonValue, text_digest
from assay.domain.errors import SettingsError
from assay.scoring.prompts import OURS
from assay.scoring.rubrics import ARENA_RUBRIC

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from assay.app.workspace import Workspace
    from assay.domain.model import ModelSpec
    from assay.domain.run import RunPlan
    from assay.providers.directory import Directory

_GIT_S = 5.0
_LIBRARIES = ("aiohttp", "numpy", "rapidfuzz", "regex", "scipy", "sqlalchemy")


def surroundings(workspace: Workspace, plan: RunPlan) -> Mapping[str, JsonValue]:
    """Return the run's environment: command, versions, machine, model addresses, prompt digests,
    and the repository's commit.
    """
    libraries: dict[str, JsonValue] = {
        name: installed for name in _LIBRARIES if (installed := _version(name)) is not None
    }
    return {
        "assay": version("assay-bench"),
        "command": workspace.command,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libraries": libraries,
        "endpoints": {
            "candidates": _endpoints(
                workspace.directory,
                {c.name: c.model for c in plan.candidates if c.model is not None},
            ),
            "judges": _endpoints(
                workspace.directory, {judge.name: judge.model for judge in plan.judges}
            ),
        },
        "prompts": {
            **{name: text_digest(text) for name, text in OURS.items()},
            "arena_rubric": ARENA_RUBRIC.digest,
        },
        "git": _git(workspace.folder),
        "count_scripted": bool(workspace.settings.values["count_scripted"]),
    }


def _endpoints(directory: Directory, models: Mapping[str, ModelSpec]) -> dict[str, JsonValue]:
    endpoints: dict[str, JsonValue] = {}
    for name, model in models.items():
        try:
            address = directory.address(model)
        except SettingsError:
            continue  # the provider check reports this error
        if address is not None:
            endpoints[name] = address
    return endpoints


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _git(folder: Path) -> JsonValue:
    """Return the folder's git commit and whether tracked files differ from it; None outside a
    repository.
    """
    commit = _said(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    # Runs create untracked files themselves (store, results folder), which do not change the code.
    changed = _said(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "changed": None if changed is None else bool(changed)}


def _said(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            # A repository's own configuration may name a program under `core.fsmonitor`, which `git
            # status` would run.
            ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=_GIT_S,
            check=True,
            # `git status` would otherwise lock and refresh the index, which could disturb a git
            # command of the user.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip()
