"""Texts that scripts show, sent as one JSON block per page.

Each file is named after its folder of scripts.

All other texts are in templates, in `words.toml`, or in the Python code that uses them. A template
takes a text from here only if a script shows it too, such as the name of a state. `{name}` is a
placeholder; a key that ends in `.one` is for the number 1.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Final

TEXTS: Final[dict[str, str]] = {
    key: text
    for file in sorted(files(__package__).iterdir(), key=lambda file: file.name)
    if file.name.endswith(".toml")
    for key, text in tomllib.loads(file.read_text("utf-8")).items()
}

WORDS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    (files("assay.web") / "words.toml").read_text("utf-8")
)
"""Words and addresses that pages use, by table of `words.toml`."""

_REASONS: Final = tomllib.loads((files("assay.web") / "reasons.toml").read_text("utf-8"))
REJECT_REASONS: Final = tuple(_REASONS["reject"])
REJECT_REASONS_OF_PEOPLE: Final = tuple(_REASONS["reject_of_people"])
"""Reasons for rejecting grades that a person gave without a judge."""

RERUN_REASONS: Final = tuple(_REASONS["rerun"])

GLYPHS: Final = WORDS["glyphs"]
"""A sign for every state, because colour alone does not reach everybody."""


def t(key: str, **values: object) -> str:
    """Return the text of a key with its placeholders filled in; raises KeyError for an unknown
    key.
    """
    if values.get("n") in (1, "1") and f"{key}.one" in TEXTS:
        key = f"{key}.one"
    text = TEXTS[key]
    return text.format(**values) if values else text


def for_script(prefixes: str) -> dict[str, str]:
    """Return the texts whose keys begin with one of the prefixes, which are separated by spaces."""
    return {key: text for key, text in TEXTS.items() if key.split(".")[0] in prefixes.split()}
