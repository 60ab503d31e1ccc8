"""Record the software and machine of a run, so that it can be repeated."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assay.domain.digest import JsonValue, text_digest
from assay.domain.errors import SettingsError
from assay.domain.prompts import prompts_of
from assay.scoring.calibration import identity_of, parameters_of
from assay.scoring.prompts import OURS
from assay.scoring.rubrics import ARENA_RUBRIC

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from assay.app.workspace import Workspace
    from assay.domain.model import ModelSpec
    from assay.domain.run import RunPlan

_GIT_S = 5.0
_LIBRARIES = ("aiohttp", "numpy", "rapidfuzz", "regex", "scipy", "sqlalchemy")


def surroundings(workspace: Workspace, plan: RunPlan) -> Mapping[str, JsonValue]:
    """Return the run's environment: command, versions, machine, model addresses, prompt digests, and the repository's commit."""
    libraries: dict[str, JsonValue] = {name: installed for name in _LIBRARIES if (installed := _version(name)) is not None}
    return {
        "assay": version("assay-bench"),
        "command": workspace.command,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libraries": libraries,
        "endpoints": {
            "candidates": _endpoints(workspace, {c.name: c.model for c in plan.candidates if c.model is not None}),
            "judges": _endpoints(workspace, {judge.name: judge.model for judge in plan.judges}),
        },
        "prompts": {**{name: text_digest(text) for name, text in OURS.items()}, "arena_rubric": ARENA_RUBRIC.digest},
        "git": _git(workspace.folder),
        "count_scripted": bool(workspace.settings.values["count_scripted"]),
    }


def record_document(plan: RunPlan) -> dict[str, JsonValue]:
    return {
        "regrade_of": plan.regrade_of,
        "system_prompt": plan.system_prompt,
        "prompt_version": plan.prompt_version or None,
        "seeds": {"run": plan.seed, "sent": "derived from run seed, task, trial and attempt"},
        "asked_with": {
            candidate.name: {
                "model": candidate.model.ref,
                "base_url": _bare(candidate.model.base_url),
                "parameters": _without_seed(candidate.model.parameters.over(plan.parameters).as_json()),
                **prompts_of(candidate),
            }
            for candidate in plan.candidates
            if candidate.model is not None
        },
        "judged_with": {
            judge.name: {
                "model": judge.model.ref,
                "base_url": _bare(judge.model.base_url),
                "mode": judge.mode.value,
                "turn": None if judge.turn is None else {"place": judge.turn[0] + 1, "of": judge.turn[1]},
                "parameters": _without_seed(parameters_of(judge).as_json()),
                "persona": judge.persona,
                "prompt_path": judge.prompt_path,
                "prompt_digest": identity_of(judge, plan.rubric).prompt,
                "require_calibration": judge.require_calibration,
            }
            for judge in plan.judges
        },
        "rubric_digest": plan.rubric.digest,
        "suite_digest": plan.copy.digest,
    }


def _without_seed(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the parameters without the seed, because each trial gets its own seed."""
    return {name: value for name, value in parameters.items() if name != "seed"}


def _bare(address: str | None) -> str | None:
    """Return an address without its login and query, because both may contain keys."""
    if address is None:
        return None
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _endpoints(workspace: Workspace, models: Mapping[str, ModelSpec]) -> dict[str, JsonValue]:
    endpoints: dict[str, JsonValue] = {}
    for name, model in models.items():
        try:
            address = workspace.directory.address(model)
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
    """Return the folder's git commit and whether tracked files differ from it; None outside a repository."""
    commit = _said(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    # Runs create untracked files themselves (store, results folder), which do not change the code.
    changed = _said(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "changed": None if changed is None else bool(changed)}


def _said(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            # A repository's own configuration may name a program under `core.fsmonitor`, which `git status` would run.
            ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=_GIT_S,
            check=True,
            # `git status` would otherwise lock and refresh the index, which could disturb a git command of the user.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip()
