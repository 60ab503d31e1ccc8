"""A run's origin: its source, its code version and a digest of its set-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.app.environment import record_document
from assay.domain.digest import JsonValue, digest

if TYPE_CHECKING:
    from assay.domain.run import RunPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The origin of a run. `kind` is `here`, `regraded` (`detail` is the old run) or `imported` (`detail` is the file)."""

    kind: str
    detail: str = ""
    format: str = ""


def config_digest(plan: RunPlan) -> str:
    """Return a digest of a run's set-up; equal set-ups have equal digests, whatever their seeds."""
    settings = {name: value for name, value in record_document(plan).items() if name not in ("regrade_of", "seeds")}
    candidates: list[JsonValue] = [*sorted(candidate.name for candidate in plan.candidates)]
    return digest(
        {
            **settings,
            "candidates": candidates,
            "parameters": {name: value for name, value in plan.parameters.as_json().items() if name != "seed"},
            "policy": str(plan.policy),
            "margin": plan.margin,
        }
    )


def code_version(plan: RunPlan) -> str | None:
    """Return the code version, such as `0.1.0 (1c680ec12, changed)`; None for imported runs that do not state it."""
    version, git = plan.environment.get("assay"), plan.environment.get("git")
    commit = ""
    if isinstance(git, dict) and git.get("commit"):
        commit = f"{str(git['commit'])[:9]}{', changed' if git.get('changed') else ''}"
    if not isinstance(version, str):
        return commit or None
    return f"{version} ({commit})" if commit else version


def source_of(plan: RunPlan) -> Source:
    """Return a run's origin."""
    if plan.regrade_of is not None:
        return Source(kind="regraded", detail=str(plan.regrade_of))
    imported = plan.environment.get("imported")
    if isinstance(imported, dict):
        return Source(kind="imported", detail=str(imported.get("from", "")), format=str(imported.get("format", "")))
    return Source(kind="here")
