"""Origin of a run: its source, its code version, and a digest of its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.app.recorded_settings import planned_settings
from assay.domain.digest import JsonValue, digest

if TYPE_CHECKING:
    from assay.domain.run import RunPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a run; `kind` is `here`, `regraded` or `imported`.

    `detail` is the regraded run or the imported file.
    """

    kind: str
    detail: str = ""
    format: str = ""


def config_digest(plan: RunPlan) -> str:
    """Return a digest of a run's settings without the seed; runs with equal settings have equal
    digests.
    """
    settings = {
        name: value
        for name, value in planned_settings(plan).items()
        if name not in ("regrade_of", "seeds")
    }
    candidates: list[JsonValue] = [*sorted(candidate.name for candidate in plan.candidates)]
    return digest(
        {
            **settings,
            "candidates": candidates,
            "parameters": {
                name: value for name, value in plan.parameters.as_json().items() if name != "seed"
            },
            "policy": str(plan.policy),
            "margin": plan.margin,
        }
    )


def code_version(plan: RunPlan) -> str | None:
    """Return the code version, such as `0.1.0 (1c680ec12, changed)`; None for imported data without
    a version.
    """
    version, git = plan.environment.get("assay"), plan.environment.get("git")
    commit = ""
    if isinstance(git, dict) and git.get("commit"):
        commit = f"{str(git['commit'])[:9]}{', changed' if git.get('changed') else ''}"
    if not isinstance(version, str):
        return commit or None
    return f"{version} ({commit})" if commit else version


def source_of(plan: RunPlan) -> Source:
    if plan.regrade_of is not None:
        return Source(kind="regraded", detail=str(plan.regrade_of))
    imported = plan.environment.get("imported")
    if isinstance(imported, dict):
        return Source(
            kind="imported",
            detail=str(imported.get("from", "")),
            format=str(imported.get("format", "")),
        )
    return Source(kind="here")
