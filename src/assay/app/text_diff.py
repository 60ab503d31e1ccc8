"""Find differences between texts, by word or line, and between JSON answers, by field."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rapidfuzz.distance import LCSseq

from assay.domain.unescaped_json import unescaped_json
from assay.scoring.extraction import extracted

if TYPE_CHECKING:
    from assay.domain.digest import JsonValue

MAX_WORDS: Final = 4_000
"""Maximum number of words that are compared one by one; longer texts are compared by line."""
MAX_LINES: Final = 10_000
MAX_JSON: Final = 2_000_000
"""Maximum number of characters of an answer that is parsed as JSON."""
MAX_FIELDS: Final = 200

_WORD: Final = re.compile(r"\w+|[^\w\s]|\s+")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text; `changed` is True if the other text lacks this part."""

    text: str
    changed: bool = False


def marked(text: str, other: str, *, by_line: bool = False) -> tuple[Part, ...]:
    """Split `text` into parts and mark those that differ from the other text; joined, the parts
    equal `text`.
    """
    if text == other:
        return (Part(text),)
    ours, others = (_pieces(side, by_line=by_line) for side in (text, other))
    if not by_line and max(len(ours), len(others)) > MAX_WORDS:
        ours, others = (_pieces(side, by_line=True) for side in (text, other))
    if max(len(ours), len(others)) > MAX_LINES:
        return (Part(text),)
    changed = [True] * len(ours)
    # Sorted, so that both directions find the same alignment; otherwise two texts could leave
    # different words unmarked.
    for block in LCSseq.opcodes(*sorted((ours, others))):
        if block.tag == "equal":
            start = block.src_start if ours < others else block.dest_start
            for place in range(start, start + block.src_end - block.src_start):
                changed[place] = False
    return _joined(ours, changed)


def too_long(text: str, other: str, *, by_line: bool = False) -> bool:
    """True if two texts have too many lines for `marked`, which then marks no differences."""
    if (
        not by_line
        and max(len(_pieces(side, by_line=False)) for side in (text, other)) <= MAX_WORDS
    ):
        return False
    return max(len(_pieces(side, by_line=True)) for side in (text, other)) > MAX_LINES


def _pieces(text: str, *, by_line: bool) -> list[str]:
    return text.splitlines(keepends=True) if by_line else _WORD.findall(text)


def _joined(pieces: Sequence[str], changed: Sequence[bool]) -> tuple[Part, ...]:
    """Merge adjacent pieces with the same mark into parts; a space between two changed words counts
    as changed.
    """
    marks = list(changed)
    for place in range(1, len(pieces) - 1):
        if pieces[place].isspace() and marks[place - 1] and marks[place + 1]:
            marks[place] = True
    parts: list[Part] = []
    start = 0
    for place in range(1, len(pieces) + 1):
        if place == len(pieces) or marks[place] != marks[start]:
            parts.append(Part("".join(pieces[start:place]), marks[start]))
            start = place
    return tuple(parts)


def document_of(text: str) -> JsonValue:
    """Return the valid JSON object in an answer: the whole text, its last code fence, or its end;
    None if there is none.
    """
    if len(text) > MAX_JSON or "{" not in text:
        return None
    fenced, last = extracted(text, "fenced"), text.rfind("\n{")
    for candidate in (text, fenced, text[last:] if last >= 0 else None):
        if candidate is None:
            continue
        try:
            value: JsonValue = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """Values of one field in several answers (None if missing); `differs` ignores candidates that
    did not answer.
    """

    path: str
    values: tuple[str | None, ...]
    differs: bool


def field_rows(
    documents: Sequence[JsonValue], answered: Sequence[int] | None = None
) -> tuple[FieldRow, ...]:
    """Return the first `MAX_FIELDS` fields of the documents; only the documents at indexes
    `answered` are compared.
    """
    places = range(len(documents)) if answered is None else answered
    flat = [_flat(document) for document in documents]
    paths = list(dict.fromkeys(path for fields in flat for path in fields))[:MAX_FIELDS]
    rows = []
    for path in paths:
        values = tuple(fields.get(path) for fields in flat)
        rows.append(
            FieldRow(path=path, values=values, differs=len({values[place] for place in places}) > 1)
        )
    return tuple(rows)


def _flat(document: JsonValue) -> dict[str, str]:
    """Return the leaf values of a JSON document by path, such as `a.b[0]`; empty objects and lists
    are leaves.
    """
    fields: dict[str, str] = {}
    waiting: list[tuple[str, JsonValue]] = [("", document)]
    # An explicit stack, because an answer may be nested deeper than Python's recursion limit.
    while waiting and len(fields) < MAX_FIELDS:
        path, value = waiting.pop()
        if isinstance(value, Mapping) and value:
            inner = [
                (f"{path}.{key}" if path else str(key), inner_value)
                for key, inner_value in value.items()
            ]
            waiting += reversed(inner)
        elif isinstance(value, list) and value:
            waiting += reversed(
                [(f"{path}[{place}]", inner_value) for place, inner_value in enumerate(value)]
            )
        elif path:
            fields[path] = value if isinstance(value, str) else unescaped_json(value)
    return fields
