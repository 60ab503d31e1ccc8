"""Render responses on a separate request: Markdown as a tree, conversations by turns, and code in
colour.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import orjson

from assay.domain.conversation import ASSISTANT, USER, messages_of
from assay.report.markdown import Node, reading_tree
from assay.report.syntax import is_code_language, marks_of

if TYPE_CHECKING:
    from assay.app.review.item import Item, Pane, ResponseForm

MAX_PROSE: Final = 100_000
"""Maximum number of characters that are rendered; longer responses are shown as plain text."""
_MAX_GROWTH: Final = 12
"""Maximum bytes of a rendered tree per character of text, beyond `MAX_PROSE`: usually about 2; a
table of empty cells had 100.
"""
_CODE_LINE: Final = re.compile(
    r"^\s*(?:@|#include|//|def |class |import |from \w+ import|return\b|func |fn |const |let |var |public |private |static |void "
    r"|(?:if|for|while|switch)\s*\()|[;{}]\s*$|^\s*[\w.]+\s*[-+*/]?=\s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnResponse:
    """One rendered response: a Markdown `tree` or the colour `marks` of code."""

    tree: orjson.Fragment
    marks: str = ""


def form_of(text: str, language: str, *, turns: bool) -> ResponseForm:
    """Return the best format for showing a response: code, JSON, prose or turns."""
    if turns and messages_of(text):
        return "turns"
    if language.strip().lower() in ("", "json") and _is_json(text):
        return "json"
    if language.strip():
        return "code" if is_code_language(language) else "prose"
    lines = [line for line in text[:20_000].split("\n") if line.strip()]
    return (
        "code"
        if sum(bool(_CODE_LINE.search(line)) for line in lines) * 5 > 2 * len(lines)
        else "prose"
    )


def prose_tree(text: str) -> list[Node]:
    """Return the Markdown tree of a text; empty for code, JSON, or a text with too many elements
    for a page.
    """
    return (
        reading_tree(text)
        if len(text) < MAX_PROSE // 6 and form_of(text, "", turns=False) == "prose"
        else []
    )


def _is_json(text: str) -> bool:
    if len(text) > MAX_PROSE or text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def drawn(item: Item) -> list[DrawnResponse]:
    """Return an item's rendered responses in the order of its panes."""
    return [_drawn(pane, item.language) for pane in item.panes]


def _drawn(pane: Pane, language: str) -> DrawnResponse:
    if pane.form == "code":
        return DrawnResponse(tree=orjson.Fragment(b"[]"), marks=marks_of(pane.text, language))
    return DrawnResponse(
        tree=orjson.Fragment(b"[]" if pane.form == "json" else _tree_json(pane.text, pane.form))
    )


@lru_cache(256)
def _tree_json(text: str, form: ResponseForm) -> bytes:
    if len(text) > MAX_PROSE:
        return b"[]"
    content = orjson.dumps(_turns(text) if form == "turns" else reading_tree(text))
    return content if len(content) <= MAX_PROSE + _MAX_GROWTH * len(text) else b"[]"


def _turns(text: str) -> list[Node]:
    turns: list[Node] = []
    line = 1
    for role, message in messages_of(text):
        last = line + 2 + message.count("\n")
        if role in (USER, ASSISTANT):
            inside = reading_tree(message, first_line=line + 2)
        else:  # a tool's name, arguments or result is not Markdown
            inside = [["pre", {"data-at": f"{line + 2}-{last}"}, ["code", {}, message]]]
        turns.append(["section", {"role": role.replace(" ", "_")}, *inside])
        line = last + 2
    return turns
