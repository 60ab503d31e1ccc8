"""Reads YAML and JSON texts as plain values, and records the line of every value for messages.

YAML is read from its events and resolved by the rules of YAML 1.2: only `true` and `false` are
booleans, so `no`, `on` and `2024-01-01` stay text. Numbers keep their spelling, because in an
identifier `1.0` or an expected answer `007` the exact characters matter. Reading events instead of
PyYAML's nodes makes hostile files harmless: composing nodes recurses in C and crashes the process
if the nesting is deep, and aliases can be counted before they multiply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import yaml

from assay.domain.digest import JsonValue
from assay.suites.problems import Path

Value: TypeAlias = JsonValue
"""A YAML or JSON value; numbers in it may be `WrittenInt` or `WrittenFloat`."""

DEEPEST: Final = 60
"""Maximum levels of nesting in a suite file; suites need six."""

EXPANDED: Final = 100_000
"""Maximum values that all aliases of a file may expand to; a few kilobytes could otherwise expand
to billions.
"""


class WrittenInt(int):
    """A whole number that remembers how it was written."""

    text: str


class WrittenFloat(float):
    """A decimal number that remembers how it was written."""

    text: str


class UnreadableText(Exception):
    """Raised if a text is not YAML or JSON, with the 1-based line (None if unknown), the problem
    and its remedy.
    """

    def __init__(self, line: int | None, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem
        self.remedy = remedy


@dataclass(slots=True)
class Marks:
    """Line of a value, and the lines of the values inside it; `keys` has the line of each key of a
    mapping.
    """

    line: int
    keys: dict[str, int] = field(default_factory=dict)
    values: dict[str | int, Marks] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Misuse:
    """A construct that YAML or JSON allows but Assay refuses, such as a repeated key."""

    path: Path
    problem: str
    remedy: str


@dataclass(frozen=True, slots=True)
class LocatedDocument:
    """The value of a text, with line numbers.

    `line_of(path, at_key)` returns the 1-based line of a value or of its key; for a missing path,
    that of the nearest parent.
    """

    value: Value
    misuses: tuple[Misuse, ...]
    line_of: Callable[[Path, bool], int]


def _twice(path: Path, first: int, second: int) -> Misuse:
    lines = f"on line {first} and on line {second}" if first != second else f"on line {first}"
    return Misuse(path, f"is given twice, {lines}.", "Keep one of them.")


def as_written(value: float) -> str:
    return value.text if isinstance(value, WrittenInt | WrittenFloat) else repr(value)


def shown(value: Value) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(value if len(value) <= 60 else value[:57] + "...")
        case int() | float():
            written = (
                as_written(value)
                if not isinstance(value, int) or abs(value) < 10**30
                else "a very large number"
            )
            return written if len(written) <= 60 else written[:57] + "..."
        case list():
            return f"a list of {len(value)}" if value else "an empty list"
        case _:
            return "a mapping"


def _starts_with_tab(text: str, line: int) -> bool:
    lines = text.split("\n", line + 1)
    return line < len(lines) and "\t" in lines[line][: len(lines[line]) - len(lines[line].lstrip())]


def deeper_than(value: Value, levels: int) -> bool:
    """True if lists and mappings are nested more than `levels` deep.

    Uses a loop, because recursion could overflow.
    """
    below = [(value, 1)]
    while below:
        inner, depth = below.pop()
        if isinstance(inner, list | dict):
            if depth > levels:
                return True
            below.extend(
                (item, depth + 1) for item in (inner.values() if isinstance(inner, dict) else inner)
            )
    return False


def read_json(text: str) -> LocatedDocument:
    """Read a JSON text; raises UnreadableText.

    A second pass finds lines, only when the first problem needs one.
    """
    repeated = False

    def mapping(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
        nonlocal repeated
        values = dict(pairs)
        repeated = repeated or len(values) < len(pairs)
        return values

    try:
        value: Value = json.loads(text, object_pairs_hook=mapping, parse_float=_written_float)
    except json.JSONDecodeError as error:
        raise unreadable_json(error) from error
    except RecursionError as error:
        raise UnreadableText(None, "is nested too deeply to be a suite.") from error
    except ValueError as error:  # a whole number of more than 4,300 digits
        raise UnreadableText(
            None, f"holds a number that cannot be read: {_lowered(str(error))}."
        ) from error
    if deeper_than(value, DEEPEST):
        raise UnreadableText(None, f"is nested deeper than {DEEPEST} levels.")
    scanned: list[Marks] = []
    misuses: list[Misuse] = []

    def line_of(path: Path, at_key: bool) -> int:
        if not scanned:
            scanned.append(_JsonLines(text, misuses).marks)
        return _line(scanned[0], path, at_key)

    if repeated:
        line_of((), False)
    return LocatedDocument(value, tuple(misuses), line_of)


def unreadable_json(error: json.JSONDecodeError) -> UnreadableText:
    """Describe the problem with a JSON text, in the same words for every version of Python."""
    before = error.doc[: error.pos].rstrip()
    if error.msg.startswith("Illegal trailing comma"):
        before = error.doc[: error.pos + 1]
    if before.endswith(",") and error.doc[len(before) :].lstrip()[:1] in ("]", "}"):
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n") - 1
        return UnreadableText(
            line,
            f"is not valid JSON: there is a comma before a closing bracket (column {column}).",
            "Remove the comma.",
        )
    return UnreadableText(
        error.lineno, f"is not valid JSON: {_lowered(error.msg)} (column {error.colno})."
    )


def read_yaml(text: str) -> LocatedDocument:
    """Read a YAML text of one document.

    Raises UnreadableText if the text is not YAML, has several documents, is nested more than 60
    levels deep, or its aliases expand to more than 100,000 values.
    """
    builder = _YamlBuilder(text)
    try:
        value, marks = builder.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "it cannot be read"
        remedy = ""
        if mark is not None and _starts_with_tab(text, mark.line):
            problem, remedy = "the line starts with a tab", "Indent with spaces."
        if not remedy and "mapping values are not allowed" in problem:
            remedy = "Put text that holds a colon in quotes."
        if not remedy and "cannot start any token" in problem:
            remedy = "Put text that starts with @, ` or % in quotes."
        line = mark.line + 1 if mark else None
        raise UnreadableText(line, f"is not valid YAML: {problem}.", remedy) from error
    except yaml.reader.ReaderError as error:
        before = (
            text.encode("utf-8", "replace")[: error.position]
            if isinstance(error.position, int)
            else b""
        )
        raise UnreadableText(
            before.count(b"\n") + 1,
            f"is not valid YAML: {error.reason}.",
            'Write the character as an escape such as "\\x1b" in double quotes, or keep the text in a file of its own.',
        ) from error
    except yaml.YAMLError as error:
        raise UnreadableText(None, f"is not valid YAML: {error}.") from error
    return LocatedDocument(
        value, tuple(builder.misuses), lambda path, at_key: _line(marks, path, at_key)
    )


def _line(marks: Marks, path: Path, at_key: bool) -> int:
    line = marks.line
    for depth, step in enumerate(path):
        last = depth == len(path) - 1
        if last and at_key and isinstance(step, str) and step in marks.keys:
            return marks.keys[step]
        below = marks.values.get(step)
        if below is None:
            return line
        marks, line = below, below.line
    return line


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _written_float(text: str) -> WrittenFloat:
    number = WrittenFloat(text)
    number.text = text
    return number


def _written_int(text: str, digits: str, base: int) -> WrittenInt:
    number = WrittenInt(digits, base)
    number.text = text
    return number


# --- YAML -----------------------------------------------------------------------------------------

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
_TAGS: Final = {"bool", "float", "int", "map", "null", "seq", "str"}
_HELD: Final[dict[str, type | tuple[type, ...]]] = {
    "int": int,
    "float": (int, float),
    "bool": bool,
    "null": type(None),
}
_PREFIX: Final = "tag:yaml.org,2002:"


def resolved(text: str) -> Value:
    """Return the value of unquoted text, following the rules of YAML 1.2."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] not in "0123456789+-.":
        return text
    if _INT.fullmatch(text):
        return int(text) if len(text) < 20 and text == str(int(text)) else _big_int(text)
    if _BASED.fullmatch(text):
        return _written_int(text, text[2:], 16 if text[1] == "x" else 8)
    if _FLOAT.fullmatch(text):
        return _written_float(text)
    if text.lower() in _SPECIAL:
        return float(_SPECIAL[text.lower()])
    return text


def _big_int(text: str) -> Value:
    """Return a whole number that is long or in an unusual notation; return the text if Python
    cannot convert it.
    """
    try:
        return _written_int(text, text, 10)
    except ValueError:
        return text


def _line_of(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


class _YamlBuilder:
    """Builds values from the events of one text; `misuses` collects constructs that YAML allows but
    Assay refuses.
    """

    def __init__(self, text: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=loader)
        self._anchors: dict[str, tuple[Value, Marks, int]] = {}
        self._open: set[str] = set()
        self._expanded = 0
        self.misuses: list[Misuse] = []

    def document(self) -> tuple[Value, Marks]:
        value: Value = None
        marks = Marks(1)
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if value is not None:
                    line = _line_of(event)
                    raise UnreadableText(
                        line,
                        "starts a second YAML document; a file holds one suite.",
                        "Remove the line `---`.",
                    )
                value, marks, _ = self._node(next(self._events), (), 0)
        return value, marks

    def _node(self, event: yaml.Event, path: Path, depth: int) -> tuple[Value, Marks, int]:
        """Return a value, its lines, and the number of values in it when all aliases are
        expanded.
        """
        line = _line_of(event)
        if depth > DEEPEST:
            raise UnreadableText(line, f"is nested deeper than {DEEPEST} levels.")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor or "", line)
        assert isinstance(event, yaml.NodeEvent)
        self._check_tag(event, path, line)
        anchor = event.anchor
        if anchor is not None:
            self._open.add(anchor)
        value: Value
        marks = Marks(line)
        if isinstance(event, yaml.ScalarEvent):
            value, size = self._scalar(event, line), 1
        elif isinstance(event, yaml.SequenceStartEvent):
            value, size = self._sequence(marks, path, depth)
        else:
            value, size = self._mapping(marks, path, depth)
        if anchor is not None:
            self._open.discard(anchor)
            self._anchors[anchor] = (value, marks, size)
        return value, marks, size

    def _alias(self, anchor: str, line: int) -> tuple[Value, Marks, int]:
        if anchor in self._open:
            raise UnreadableText(
                line,
                f"uses the alias *{anchor} inside the value it stands for.",
                "Write the value out.",
            )
        if anchor not in self._anchors:
            raise UnreadableText(
                line, f"uses the alias *{anchor}, but no value above is marked &{anchor}."
            )
        value, marks, size = self._anchors[anchor]
        self._expanded += size
        if self._expanded > EXPANDED:
            raise UnreadableText(
                line,
                f"has aliases that stand for more than {EXPANDED:,} values.",
                "Write the values out.",
            )
        return value, marks, size

    def _check_tag(self, event: yaml.NodeEvent, path: Path, line: int) -> None:
        tag: str | None = getattr(event, "tag", None)
        if tag in (None, "!"):
            return
        kind = tag.removeprefix(_PREFIX) if tag else ""
        if kind not in _TAGS:
            raise UnreadableText(
                line,
                f"has the tag !{kind.lstrip('!')}, which a suite may not use.",
                "Remove the tag.",
            )

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Value:
        text: str = event.value
        tag = event.tag
        if tag is None:
            return resolved(text) if event.implicit[0] else text
        kind = tag.removeprefix(_PREFIX)
        if kind in ("str", "!"):
            return text
        value = resolved(text)
        held: type | tuple[type, ...] | None = _HELD.get(kind)
        if held is None or not isinstance(value, held):
            raise UnreadableText(
                line, f"is tagged !!{kind}, but holds {text!r}.", "Remove the tag."
            )
        return value

    def _sequence(self, marks: Marks, path: Path, depth: int) -> tuple[list[Value], int]:
        values: list[Value] = []
        size = 1
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            position = len(values)
            value, marks.values[position], held = self._node(event, (*path, position), depth + 1)
            values.append(value)
            size += held
        return values, size

    def _mapping(self, marks: Marks, path: Path, depth: int) -> tuple[dict[str, Value], int]:
        values: dict[str, Value] = {}
        merged: list[tuple[Value, Marks, int]] = []
        size = 1
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key, line, merges = self._key(event)
            value, inner, held = self._node(next(self._events), (*path, key), depth + 1)
            size += held
            if merges:
                merged.append((value, inner, line))
            elif key in values:
                self.misuses.append(_twice((*path, key), marks.keys[key], line))
            else:
                values[key], marks.values[key], marks.keys[key] = value, inner, line
        for value, inner, line in merged:
            _merge(values, marks, value, inner, line)
        return values, size

    def _key(self, event: yaml.Event) -> tuple[str, int, bool]:
        """Return the key's text, its line, and True if it is the merge key `<<`."""
        line = _line_of(event)
        if isinstance(event, yaml.AliasEvent):
            value, _, _ = self._alias(event.anchor or "", line)
            if isinstance(value, str):
                return value, line, False
        if not isinstance(event, yaml.ScalarEvent):
            raise UnreadableText(
                line, "has a key that is not text.", "Put text with brackets or braces in quotes."
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = (event.value, Marks(line), 1)
        return event.value, line, event.value == "<<" and event.implicit[0]


def _merge(values: dict[str, Value], marks: Marks, value: Value, inner: Marks, line: int) -> None:
    """Add the keys that `<<` merges into a mapping.

    The mapping's own keys take precedence, then those of earlier sources.
    """
    if isinstance(value, dict):
        sources = [(value, inner)]
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
        sources = [
            (item, inner.values[position])
            for position, item in enumerate(value)
            if isinstance(item, dict)
        ]
    else:
        raise UnreadableText(line, "merges (`<<`) something that is not a mapping.")
    for source, lines in sources:
        for key, below in source.items():
            if key not in values:
                values[key], marks.values[key], marks.keys[key] = (
                    below,
                    lines.values[key],
                    lines.keys[key],
                )


# --- lines of JSON --------------------------------------------------------------------------------


class _JsonLines:
    """Finds the line of each value in a valid JSON text, and keys that occur twice."""

    _TOKEN = re.compile(
        r'[ \t\r\n]*(?:([\[\]{}:,])|("(?:[^"\\]|\\.)*+(?:"|\Z))|([^\s\[\]{}:,"]+))', re.DOTALL
    )

    def __init__(self, text: str, misuses: list[Misuse]) -> None:
        self._misuses = misuses
        self._tokens = self._scan(text)
        _, token, line = next(self._tokens)
        self.marks = self._value(token, line, ())

    def _scan(self, text: str) -> Iterator[tuple[int, str, int]]:
        line, counted = 1, 0
        for match in self._TOKEN.finditer(text):
            start = match.start(match.lastindex or 0)
            line += text.count("\n", counted, start)
            counted = start
            yield start, match.group(match.lastindex or 0), line

    def _value(self, token: str, line: int, path: Path) -> Marks:
        marks = Marks(line)
        if token == "[":
            position = 0
            for _, token, line in self._tokens:
                if token == "]":
                    break
                if token != ",":
                    marks.values[position] = self._value(token, line, (*path, position))
                    position += 1
        elif token == "{":
            for _, token, line in self._tokens:
                if token == "}":
                    break
                if token != ",":
                    self._pair(marks, json.loads(token, strict=False), line, path)
        return marks

    def _pair(self, marks: Marks, key: str, key_line: int, path: Path) -> None:
        next(self._tokens)  # the colon
        _, token, line = next(self._tokens)
        inner = self._value(token, line, (*path, key))
        if key in marks.keys:
            self._misuses.append(_twice((*path, key), marks.keys[key], key_line))
        marks.values[key], marks.keys[key] = inner, key_line


def plain(value: Value) -> Value:
    """Convert a value to Python's own types, ready to be stored."""
    if isinstance(value, Mapping):
        return {key: plain(below) for key, below in value.items()}
    if isinstance(value, list):
        return [plain(below) for below in value]
    if isinstance(value, WrittenInt):
        return int(value)
    if isinstance(value, WrittenFloat):
        return float(value)
    return value
