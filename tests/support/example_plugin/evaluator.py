"""Evaluator of workspaces: a change is better if it is short."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.plugins import JsonValue, WorkspaceReport


def small_change(report: WorkspaceReport, options: Mapping[str, JsonValue], /) -> tuple[float, str]:
    """Score 1 if the change is short and the licence is still there, otherwise 0.

    Options:
        most: the most lines that a short change adds or removes; 20 unless stated.
        files: files that must not be empty.
    """
    lines = sum(
        line.startswith(("+", "-")) and not line.startswith(("+++", "---"))
        for line in report.diff.splitlines()
    )
    names = options.get("files", [])
    gone = (
        [name for name in names if not report.files.get(str(name))]
        if isinstance(names, list)
        else []
    )
    if gone:
        return 0.0, f"{gone[0]} is missing or empty."
    return float(lines <= int(str(options.get("most", 20)))), f"{lines} changed lines."
