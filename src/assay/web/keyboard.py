"""Keyboard shortcuts of all pages, read from `keyboard.toml`.

House rules: nothing is bound to Backspace, Delete or Space, and Enter alone never approves. An
action that discards grades or costs a model call takes two keys. `keys` are values of
`KeyboardEvent.key`; the keys of a sequence are separated by a space.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyBinding:
    """An action of a page and the keys that trigger it.

    Attributes:
        action: name of the action in the page's script.
        keys: alternatives; the badge shows the first.
        about, group: description and heading on the help sheet.
        badge: text on the badge, if it is not the first key.
        in_fields: True if the key also works while an input field has the focus.
    """

    action: str
    keys: tuple[str, ...]
    about: str
    group: str
    badge: str = ""
    in_fields: bool = False

    @property
    def shown(self) -> str:
        return self.badge or self.keys[0]


def _bindings(page: str) -> tuple[KeyBinding, ...]:
    rows = tomllib.loads((files(__package__) / "keyboard.toml").read_text("utf-8"))[page]
    return tuple(KeyBinding(**{**row, "keys": tuple(row["keys"])}) for row in rows)


REGISTRY: Final = _bindings("review")

COMPARISON: Final = _bindings("arena")
"""The keys of the arena."""

BESIDE: Final = _bindings("beside")
"""The keys of the pages that show grades or answers side by side."""

# In another review tool, Backspace discarded the record when a text field had lost the focus
# (argilla#5113).
NEVER_BOUND: Final = frozenset({"Backspace", "Delete", " ", "Enter"})


def badge(action: str, registry: tuple[KeyBinding, ...] = REGISTRY) -> str:
    return next(key.shown for key in registry if key.action == action)


def groups(registry: tuple[KeyBinding, ...] = REGISTRY) -> dict[str, list[KeyBinding]]:
    """Return the keys by heading, in the order of the registry."""
    headings = dict.fromkeys(key.group for key in registry)
    return {group: [key for key in registry if key.group == group] for group in headings}


def for_script(registry: tuple[KeyBinding, ...]) -> list[dict[str, object]]:
    return [
        {
            "action": key.action,
            "keys": key.keys,
            "in_fields": key.in_fields,
            "badge": key.shown,
            "about": key.about,
        }
        for key in registry
    ]
