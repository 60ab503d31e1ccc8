"""Every English sentence of the web app, once: templates take them by `t(…)`, scripts by the same keys.

A page's sentences stand in the module named after it. `{name}` is filled in. Where a number decides the form, the key
ending in `.one` is for 1.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

TEXTS: Final[dict[str, str]] = {
    key: text
    for module in iter_modules(__path__)
    for key, text in import_module(f"{__name__}.{module.name}").TEXTS.items()
}

REJECT_REASONS: Final = (
    "The judge states something wrong about the response",
    "It quotes what is not there",
    "The scores contradict the reasons",
    "The rubric is misread",
    "It is incomplete or cut off",
    "Another reason, see the note",
)

REJECT_REASONS_OF_PEOPLE: Final = (
    "The responses cannot be graded",
    "The task or the rubric is at fault",
    "A response is incomplete or cut off",
    "Another reason, see the note",
)
"""Where people alone grade, so that there is no judge to blame."""

RERUN_REASONS: Final = (
    "It is incomplete or cut off",
    "It cannot be made sense of",
    "It quotes what is not there",
    "The scores contradict the reasons",
    "Another reason, see the note",
)

GLYPHS: Final[dict[str, str]] = {
    "pending": "○",
    "needs_review": "○",
    "approved": "✓",
    "corrected": "✎",
    "graded": "✎",
    "corrected_or_graded": "✎",
    "rejected": "✕",
    "superseded": "↻",
    "not_required": "=",
    "exempt": "◇",
    "failed": "!",
    "running": "◔",
    "rerun": "↻",
    "planned": "·",
    "not_graded": "–",
}
"""Beside every state's word, so that colour is never all there is."""


def t(key: str, **values: object) -> str:
    """The text of a key, filled in; raises KeyError for a key that is not there."""
    if values.get("n") in (1, "1") and f"{key}.one" in TEXTS:
        key = f"{key}.one"
    text = TEXTS[key]
    return text.format(**values) if values else text


def for_script(*prefixes: str) -> dict[str, str]:
    """The texts a script needs."""
    return {key: text for key, text in TEXTS.items() if key.split(".")[0] in prefixes}
