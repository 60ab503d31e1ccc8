"""The tables of keys that the documentation shows."""

from __future__ import annotations

from assay.web.keyboard import REGISTRY, KeyBinding


def as_table(registry: tuple[KeyBinding, ...] = REGISTRY) -> str:
    """Return the keys as a Markdown table, for the documentation."""
    rows = ["| key | what it does |", "| --- | --- |"]
    rows += [f"| `{'` `'.join(_printed(key))}` | {key.about} |" for key in registry]
    return "\n".join(rows)


def _printed(key: KeyBinding) -> list[str]:
    if "–" in key.badge:
        return [key.shown]
    return [key.shown, *(other.replace("Mod+", "Ctrl/⌘ ") for other in key.keys[1:])]
