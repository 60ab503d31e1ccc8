"""Finds a judge's quotations in the code, and names in the judge's sentences that do not occur in
the code.

A quotation is compared without white space, because judges re-indent and re-wrap; the pieces
between `...` are compared one by one. Names are compared leniently: `lock` matches `self._lock`,
because prose shortens names.
"""

from __future__ import annotations

import builtins
import keyword
import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import accumulate
from typing import Final

_SPACE: Final = re.compile(r"\s+")
_ELLIPSIS: Final = re.compile(r"(?:\.{3,}|…|\[\s*(?:\.{3}|…)\s*\])")
_LINE_MARK: Final = re.compile(
    r"^\s*(?:(?:lines?|l)\.?\s*\d+(?:\s*[-–]\s*\d+)?\s*[:\-–]?\s+|\d+\s*[:|]\s+|[+>]\s+)",
    re.IGNORECASE,
)
_SMART: Final = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " ", "−": "-"}
)


def _readings_of(evidence: str) -> Iterable[str]:
    """Yield the quotation as written, then without surrounding quotation marks or backticks."""
    plain = evidence.translate(_SMART).strip()
    yield plain
    fenced = re.sub(r"^[^\S\n]*(?:```|~~~)[^\n]*$", "", plain, flags=re.MULTILINE).strip()
    unmarked = "\n".join(_LINE_MARK.sub("", line) for line in fenced.splitlines())
    bare = unmarked.strip().strip("`").strip()
    yield bare
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        yield bare[1:-1]
    yield bare.rstrip(";,.:")
    # the judge's own remark after the code
    yield re.sub(r"(?<!\s)\s+(?:#|//|--).*$", "", bare, flags=re.MULTILINE)


_BLOCK: Final = 1 << 15
_MAX_PLACES: Final = 1_000
_MAX_KEPT: Final = 100_000  # characters of a text whose page is kept
_WHITE: Final = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"


class Page:
    """Code without white space, with an index from character positions to the original lines.

    The index is built block by block, and only blocks with a match are split into lines, so a
    megabyte takes milliseconds. Quotations that were looked up are cached, because pages show the
    same grades several times.
    """

    def __init__(self, code: str) -> None:
        plain = code if code.isascii() else code.translate(_SMART)
        self._blocks = tuple(_blocks(plain))
        pressed = [_pressed(block) for block in self._blocks]
        self._text = "".join(pressed)
        self._ends: dict[int, list[int]] = {}
        self._places: dict[str, tuple[tuple[int, int] | None]] = {}
        self._starts = [0, *accumulate(len(block) for block in pressed)]

    @property
    def lines(self) -> int:
        return self._lines[-1]

    def where(self, evidence: str) -> tuple[int, int] | None:
        """Return the first and last line (1-based, inclusive) of a quotation, or None if it does
        not occur.

        A quotation may be re-indented, put in backticks or quotation marks, prefixed with line
        numbers, or shortened with `...`. It may also leave lines out if the others occur in the
        same order.
        """
        known = self._places.get(evidence)
        if known is None:
            if len(self._places) >= _MAX_PLACES:
                self._places.clear()
            known = self._places[evidence] = (self._search(evidence),)
        return known[0]

    def _search(self, evidence: str) -> tuple[int, int] | None:
        tried: set[tuple[str, ...]] = set()
        for quotation in _readings_of(evidence):
            for parts in ((quotation,), _ELLIPSIS.split(quotation), quotation.splitlines()):
                pieces = tuple(piece for part in parts if len(piece := _SPACE.sub("", part)) > 1)
                if pieces in tried:
                    continue
                tried.add(pieces)
                if (place := self._find(pieces)) is not None:
                    return place
        return None

    def _find(self, pieces: tuple[str, ...]) -> tuple[int, int] | None:
        """Return the first and last line of the pieces, or None unless all occur in this order."""
        start = end = -1
        for wanted in pieces:
            place = self._text.find(wanted, max(end, 0))
            if place < 0:
                return None
            start = place if start < 0 else start
            end = place + len(wanted)
        return None if start < 0 else (self._line(start), self._line(end - 1))

    def _line(self, place: int) -> int:
        """Return the line number (1-based) of a character, given its position in the code without
        white space.
        """
        at = bisect_right(self._starts, place) - 1
        if at not in self._ends:
            self._ends[at] = [
                *accumulate(len(_pressed(line)) for line in self._blocks[at].splitlines())
            ]
        return self._lines[at] + bisect_right(self._ends[at], place - self._starts[at]) + 1

    @cached_property
    def _lines(self) -> list[int]:
        """Return the number of lines before each block."""
        return [0, *accumulate(len(block.splitlines()) for block in self._blocks)]


_kept = lru_cache(128)(Page)


def page_of(code: str) -> Page:
    """Return the `Page` of a text. It is cached unless the text is very long."""
    return _kept(code) if len(code) <= _MAX_KEPT else Page(code)


def _blocks(code: str) -> Iterable[str]:
    """Yield whole lines in blocks; a long line is its own block."""
    start = 0
    while start < len(code):
        end = code.find("\n", start + _BLOCK) + 1 or len(code)
        yield code[start:end]
        start = end


def _pressed(text: str) -> str:
    return (
        text.encode().translate(None, _WHITE.encode()).decode()
        if text.isascii()
        else "".join(text.split())
    )


# --- names ----------------------------------------------------------------------------------------

_NAME: Final = re.compile(r"[^\W\d]\w*")
_STRING: Final = re.compile(r"\"[^\"]*\"|'[^']*'")

_OTHER_LANGUAGES: Final = _NAME.findall(
    (files(__package__) / "common_names.txt").read_text("utf-8")
)

COMMON_NAMES: Final = frozenset(
    name.casefold()
    for name in (*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *_OTHER_LANGUAGES)
)
"""Common names of the programming language and the field, which do not refer to the code under
review.
"""


class Vocabulary:
    """The set of names that occur in one or more texts."""

    def __init__(self, *texts: str) -> None:
        self._names = frozenset(name.casefold() for text in texts for name in _NAME.findall(text))
        self._all = "\n".join(sorted(self._names))
        self._pressed = self._all.replace("_", "")

    def holds(self, name: str) -> bool:
        """True if the vocabulary has the name, or a longer name that contains it; underscores and
        case are ignored.
        """
        plain = name.casefold().strip("_")
        return not plain or plain in self._all or plain.replace("_", "") in self._pressed


def names_nowhere(span: str, known: Vocabulary) -> tuple[str, ...]:
    """Return the names in a piece of code that are neither in the vocabulary nor common; empty for
    prose.
    """
    code = span.translate(_SMART).strip().strip("`").strip()
    if not code or re.fullmatch(r"[OΘΩo]\(.*\)", code) or _is_prose(code):
        return ()
    return tuple(
        dict.fromkeys(
            name
            for name in _NAME.findall(_STRING.sub(" ", code))
            if len(name) > 1
            and name.casefold() not in COMMON_NAMES
            and not re.fullmatch(r"\w*(?:Error|Exception|Warning)|[A-Z]{2,6}", name)
            and not known.holds(name)
        )
    )


def _is_prose(text: str) -> bool:
    """True if the text has at least three words and no sign of code."""
    return len(text.split()) >= 3 and not looks_like_code(text)


def looks_like_code(text: str) -> bool:
    """True if the text has a sign of code: brackets, assignments, calls, joined names, statement
    keywords.
    """
    return bool(
        re.search(
            r"[{}\[\]=<>;@$\\]|\w\(|\w\.\w|\w_\w|_\w|[a-z][A-Z]|::|->|^\s*(?:return|raise|import|from|def|class|with|for|if|else|try|"
            r"except|while|yield|await|throw|const|let|var)\b[^.!?]*[:(]?\s*$|\w\s*[+*/%|&]\s*\w",
            text,
        )
    )
