"""Extracts the part of a response that a scorer reads, as specified by the suite's `extract`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.errors import did_you_mean
from assay.domain.unescaped_json import unescaped_json
from assay.scoring.final_answer import final_answer
from assay.scoring.json_repair import CutText, read_loosely

WAYS: Final = ("last_line", "fenced", "final_answer")
_PATH: Final = re.compile(r"\$(?:\.[A-Za-z_][\w-]*|\[\d{1,6}\])*")
_STEP: Final = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]")
_FENCE: Final = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})[^\n`]*$", re.MULTILINE)


def extracted(text: str, way: str) -> str | None:
    """Return the part of a text that `way` selects, or None if it is absent.

    `last_line`: the last line that is not blank. `fenced`: the content of the last fenced block,
    even if a token limit cut off its end. `final_answer`: the answer that `score: math` compares.
    `$.a.b[0]`: the value at this path in the last JSON document that contains the path.
    """
    if way == "last_line":
        lines = text.rstrip().splitlines()
        return lines[-1].strip() if lines else None
    if way == "fenced":
        return _fenced(text)
    if way == "final_answer":
        return final_answer(text)
    for document in reversed(read_loosely(text).documents):
        part = _at(document.value, way)
        if part is not None:
            return part
    return None


def way_problems(way: JsonValue) -> Iterator[str]:
    if not isinstance(way, str) or (way not in WAYS and not _PATH.fullmatch(way)):
        hint = did_you_mean(way, WAYS) if isinstance(way, str) else ""
        yield f"`extract` is {way!r}; it must be `last_line`, `fenced`, `final_answer` or a path such as `$.a.b[0]`.{hint}"


def _fenced(text: str) -> str | None:
    opening: re.Match[str] | None = None
    block = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif fence[1].startswith(opening[1]) and not fence[0].strip(" `~"):
            block = text[opening.end() : fence.start()].strip("\n")
            opening = None
    return text[opening.end() :].strip("\n") if opening is not None else block


def _at(value: JsonValue, path: str) -> str | None:
    for key, place in _STEP.findall(path):
        if key and isinstance(value, dict) and key in value:
            value = value[key]
        elif place and isinstance(value, list) and int(place) < len(value):
            value = value[int(place)]
        else:
            return None
    if value is None or isinstance(value, CutText):
        return None
    return value if isinstance(value, str) else unescaped_json(value)
