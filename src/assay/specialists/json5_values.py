"""Read the value of a JSON5 text in time that grows with its length.

The package json-five takes 0.2 ms for each token, so that 500 kB of numbers took 80 s. It still
edits templates, because it knows where each value stands; `MAX_EDITED_TOKENS` bounds such texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from assay.domain.digest import JsonValue

MAX_DEPTH: Final = 100
"""Maximum nesting of objects and lists."""

MAX_TOKENS: Final = 20_000
"""Maximum names, values and marks of a text."""

MAX_EDITED_TOKENS: Final = 40_000
"""Maximum tokens of a text that json-five reads, spaces and comments included."""

_SPACE: Final = r"[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*(?:[^*]|\*(?!/))*\*/"
_TOKEN: Final = re.compile(
    rf"(?P<space>{_SPACE})"
    r"|(?P<mark>[{}\[\]:,])"
    r"""|(?P<text>"(?:[^"\\\n\r]|\\(?:\r\n|[\s\S]))*"|'(?:[^'\\\n\r]|\\(?:\r\n|[\s\S]))*')"""
    r"|(?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|Infinity\b|NaN\b|(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w$.]))"
    r"|(?P<name>(?:[^\W\d]|\$|\\u[0-9a-fA-F]{4})(?:\w|\$|\\u[0-9a-fA-F]{4})*)"
)
_ESCAPE: Final = re.compile(
    r"\\(?:u(?P<unicode>[0-9a-fA-F]{4})|x(?P<hex>[0-9a-fA-F]{2})|(?P<line>\r\n|[\n\r\u2028\u2029])|(?P<other>[\s\S]))"
)
_CONTROL: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_WORDS: Final[dict[str, JsonValue]] = {"true": True, "false": False, "null": None}


class Json5Error(ValueError):
    """A text that is not JSON5; the message names the problem with its line and column."""


class TooLarge(ValueError):
    """A text that would take long to read and to check; the message is a predicate, such as "is
    nested too deeply.".
    """


def read_json5_value(text: str) -> JsonValue:
    """Return the value of a JSON5 text; Infinity and NaN are read as such, and the last of equal
    names counts.

    Raises `Json5Error`, or `TooLarge` for a text with too many tokens or levels.
    """
    reader = _Reader(text)
    value = reader.value(0)
    reader.end()
    return value


def is_editable(text: str) -> bool:
    """True if a text has at most `MAX_EDITED_TOKENS` tokens, so that json-five reads it in a few
    seconds.
    """
    place = n = 0
    while n <= MAX_EDITED_TOKENS and (match := _TOKEN.match(text, place)) is not None:
        place, n = match.end(), n + 1
    return n <= MAX_EDITED_TOKENS


class _Reader:
    """The tokens of a text without spaces and comments, ended by a token of the kind `end`, and the
    number of the next one.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._kinds: list[str] = []
        self._tokens: list[str] = []
        self._starts: list[int] = []
        self._next = 0
        place, size = 0, len(text)
        while place < size and (match := _TOKEN.match(text, place)) is not None:
            kind = match.lastgroup
            if kind is not None and kind != "space":
                self._add(kind, match[0], place)
                if len(self._kinds) > MAX_TOKENS:
                    raise TooLarge(f"has more than {MAX_TOKENS:,} names, values and marks.")
            place = match.end()
        self._add("end" if place == size else "unknown", text[place : place + 20], place)

    def _add(self, kind: str, token: str, place: int) -> None:
        self._kinds.append(kind)
        self._tokens.append(token)
        self._starts.append(place)

    def value(self, depth: int) -> JsonValue:
        """Take the next value."""
        number = self._next
        kind, token = self._kinds[number], self._tokens[number]
        self._next = number + 1
        if kind == "number":
            return self._number(token)
        if kind == "text":
            return _unescaped(token[1:-1])
        if depth > MAX_DEPTH:
            raise TooLarge("is nested too deeply.")
        if token == "{":
            return self._object(depth)
        if token == "[":
            return self._list(depth)
        if kind == "name" and token in _WORDS:
            return _WORDS[token]
        raise self._unexpected(number, "a value")

    def end(self) -> None:
        """Raise `Json5Error` unless all tokens were taken."""
        if self._kinds[self._next] != "end":
            raise self._unexpected(self._next, "the end")

    def _object(self, depth: int) -> JsonValue:
        members: dict[str, JsonValue] = {}
        while True:
            number = self._next
            kind, token = self._kinds[number], self._tokens[number]
            self._next = number + 1
            if token == "}":
                return members
            if kind not in ("text", "name"):
                raise self._unexpected(number, "a name or }")
            if self._tokens[number + 1] != ":":
                raise self._unexpected(number + 1, ":")
            self._next = number + 2
            members[_unescaped(token[1:-1] if kind == "text" else token)] = self.value(depth + 1)
            self._comma("}")

    def _list(self, depth: int) -> JsonValue:
        items: list[JsonValue] = []
        while self._tokens[self._next] != "]":
            items.append(self.value(depth + 1))
            self._comma("]")
        self._next += 1
        return items

    def _comma(self, closing: str) -> None:
        """Take a comma, unless the closing mark is next."""
        token = self._tokens[self._next]
        if token == ",":
            self._next += 1
        elif token != closing:
            raise self._unexpected(self._next, f", or {closing}")

    def _number(self, token: str) -> JsonValue:
        digits = token.lstrip("+-")
        try:
            if digits[:2] in ("0x", "0X"):
                size: float = int(digits[2:], 16)
            elif digits.isdecimal():
                size = int(digits)
            else:
                size = float(digits)
        except ValueError as error:  # more digits than Python converts
            raise self._problem(self._next - 1, f"a number has {len(digits):,} digits") from error
        return -size if token.startswith("-") else size

    def _unexpected(self, number: int, expected: str) -> Json5Error:
        token = self._tokens[number]
        shown = "the text ends" if self._kinds[number] == "end" else f"{_shown(token)} stands"
        return self._problem(number, f"{shown} where {expected} is expected")

    def _problem(self, number: int, what: str) -> Json5Error:
        before = self._text[: self._starts[number]]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return Json5Error(f"{what}, at line {line}, column {column}.")


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    code = escape["unicode"] or escape["hex"]
    if code is not None:
        return chr(int(code, 16))
    if escape["line"] is not None:
        return ""
    return _CONTROL.get(escape["other"], escape["other"])


def _shown(text: str) -> str:
    return repr(text if len(text) <= 20 else f"{text[:20]}…")
