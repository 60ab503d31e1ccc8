"""Building blocks for the grammar of suite files.

A `Kind` reads a value and describes it as JSON Schema, so that the reader and the published schema
cannot disagree. A `Keys` class declares the keys of a mapping, each with its kind.

When a reader has reported a problem, it returns None and the caller continues, so that an author
sees all mistakes at once. A key without a value (just `context:`) counts as absent. Pydantic is not
used because it does not return a partly read mapping that could be checked against the rest of the
suite, and because its unions report every branch that did not match.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias, TypeVar, cast

from assay.domain.digest import JsonValue
from assay.domain.errors import did_you_mean
from assay.domain.names import LONGEST_NAME, name_problem
from assay.suites.located_yaml import Value, as_written, plain, shown
from assay.suites.problems import Locate, Path, Problems

if TYPE_CHECKING:
    from enum import StrEnum

    from assay.suites.checks import ExternalChecks
    from assay.suites.files import NamedFiles

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K", bound="Keys")
E = TypeVar("E", bound="StrEnum")
Schema: TypeAlias = dict[str, JsonValue]


class ReadContext(Problems):
    """The problems found so far, the files that a suite may use, and the checks from other
    packages.
    """

    __slots__ = ("checks", "files")

    def __init__(self, locate: Locate, *, checks: ExternalChecks, files: NamedFiles) -> None:
        super().__init__(locate)
        self.checks = checks
        self.files = files

    def at(self, locate: Locate, *, files: NamedFiles | None = None) -> ReadContext:
        """Return a view of the same problems, for paths in another location such as a row of a
        file.
        """
        view = ReadContext(locate, checks=self.checks, files=files or self.files)
        view._gathered = self._gathered
        return view


Reader: TypeAlias = Callable[[Value, Path, ReadContext], T | None]


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of value.

    `read` converts a value, or reports a problem and returns None; `schema` describes the kind for
    editors.
    """

    read: Reader[T]
    schema: Schema


# --- mappings of known keys -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclaredKey:
    """A key of a mapping.

    `required` is the remedy shown if the key is missing; None means that the key is optional.
    """

    kind: Kind[Any]
    about: str = ""
    required: str | None = None
    name: str = ""


def key(kind: Kind[T], about: str = "", *, required: str | None = None, name: str = "") -> T | None:
    """Declare a key in the body of a `Keys` class.

    Args:
        kind: reads the value and describes it.
        about: description that editors show.
        required: the remedy if the key is missing; None if the key is optional.
        name: the key's name, if it cannot be the same as the attribute's.
    """
    return cast("T | None", DeclaredKey(kind, about, required, name))


class Table:
    """The known keys of a mapping, by name."""

    __slots__ = ("keys", "required")

    def __init__(self, keys: Mapping[str, DeclaredKey]) -> None:
        self.keys = keys
        self.required = [
            (name, declared.required)
            for name, declared in keys.items()
            if declared.required is not None
        ]

    def read(self, values: Mapping[str, Value], path: Path, context: ReadContext) -> dict[str, Any]:
        """Read the keys that are present and valid; report missing required keys and unknown
        keys.
        """
        contents = {}
        unknown = []
        keys = self.keys
        for name, value in values.items():
            declared = keys.get(name)
            if declared is None:
                unknown.append(name)
            elif value is not None:
                content = declared.kind.read(value, (*path, name), context)
                if content is not None:
                    contents[name] = content
        missing = []
        for name, remedy in self.required:
            # A required key that is present but wrong was already reported by its reader.
            if name not in contents and values.get(name) is None:
                missing.append(name)
                context.report(path, f"has no `{name}`.", remedy)
        for name in unknown:
            # A misspelt key is most likely the required key that seems to be missing.
            hint = did_you_mean(name, missing) or did_you_mean(name, keys)
            remedy = "" if hint else f"Known keys: {', '.join(keys)}."
            context.report((*path, name), f"is an unknown key.{hint}", remedy, at_key=True)
        return contents

    def schema(self) -> Schema:
        """Return the JSON Schema of such a mapping; optional keys may also have no value."""
        properties: dict[str, JsonValue] = {}
        for name, declared in self.keys.items():
            schema = (
                {"description": declared.about, **declared.kind.schema}
                if declared.about
                else declared.kind.schema
            )
            properties[name] = (
                schema if declared.required is not None else {"anyOf": [schema, {"type": "null"}]}
            )
        required: list[JsonValue] = [name for name, _ in self.required]
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": properties,
            "required": required,
        }


@dataclass(slots=True)
class Node:
    """A mapping as its author wrote it, with its path, for problems that involve several keys."""

    values: Mapping[str, Value]
    path: Path
    context: ReadContext

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def at(self, key: str) -> Path:
        return (*self.path, key)

    def report(self, key: str, problem: str, remedy: str = "") -> None:
        self.context.report((*self.path, key), problem, remedy)

    def report_missing(self, key: str, remedy: str) -> None:
        self.context.report(self.path, f"has no `{key}`.", remedy)


class Keys:
    """A mapping with known keys; subclasses declare each key as an attribute with `key(...)`.

    An attribute is None if its key is absent or has an invalid value; `node` contains the mapping
    as written.
    """

    node: Node
    table: ClassVar = Table({})
    _renamed: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        keys = dict(cls.table.keys)
        for attribute, declared in list(vars(cls).items()):
            if isinstance(declared, DeclaredKey):
                keys[declared.name or attribute] = declared
                if declared.name:
                    cls._renamed = {**cls._renamed, declared.name: attribute}
                setattr(cls, attribute, None)
        cls.table = Table(keys)

    @classmethod
    def read(cls: type[K], value: Value, path: Path, context: ReadContext) -> K | None:
        """Read a mapping; report and return None only if the value is not a mapping."""
        if not isinstance(value, dict):
            context.report(path, f"is {shown(value)}, expected a mapping.")
            return None
        keys = cls()
        keys.node = Node(value, path, context)
        contents = cls.table.read(value, path, context)
        for name, attribute in cls._renamed.items():
            if name in contents:
                contents[attribute] = contents.pop(name)
        keys.__dict__.update(contents)
        return keys

    @classmethod
    def schema(cls) -> Schema:
        return cls.table.schema()


def mapping_of(keys: Mapping[str, DeclaredKey], make: Callable[..., T]) -> Kind[T]:
    """Return the kind for a mapping with known keys that `make` converts; `make` receives only the
    keys with valid values.
    """
    table = Table(keys)

    def read(value: Value, path: Path, context: ReadContext) -> T | None:
        if isinstance(value, dict):
            return make(**table.read(value, path, context))
        context.report(path, f"is {shown(value)}, expected a mapping.")
        return None

    return Kind(read, table.schema())


def made_of(keys: type[K], make: Callable[[K], T | None]) -> Kind[T]:
    """Return the kind for a mapping with known keys, converted by a function."""

    def read(value: Value, path: Path, context: ReadContext) -> T | None:
        contents = keys.read(value, path, context)
        return None if contents is None else make(contents)

    return Kind(read, keys.schema())


def list_of(kind: Kind[T], *, empty: str = "") -> Kind[list[tuple[Path, T]]]:
    """Return the kind for a list, read as the paths and values of its valid items.

    `empty` is the problem with an empty list.
    """

    def read(value: Value, path: Path, context: ReadContext) -> list[tuple[Path, T]] | None:
        if not isinstance(value, list):
            context.report(path, f"is {shown(value)}, expected a list.")
            return None
        if empty and not value:
            context.report(path, empty)
        contents = []
        for position, item in enumerate(value):
            inner = (*path, position)
            content = kind.read(item, inner, context)
            if content is not None:
                contents.append((inner, content))
        return contents

    return Kind(read, {"type": "array", **({"minItems": 1} if empty else {}), "items": kind.schema})


# --- single values --------------------------------------------------------------------------------


def whole(low: int, high: int | None = None) -> Kind[int]:
    """Return the kind for a whole number, low <= number <= high.

    Without `high`, only the store's integer range limits it.
    """
    most = 10**9 if high is None else high

    def read(value: Value, path: Path, context: ReadContext) -> int | None:
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= most:
            return int(value)
        number = finite(value)
        # A bound of a million or more is a storage limit and would only be confusing in a message.
        one_sided = high is None or most >= 10**6 or (number is not None and number < low)
        bounds = f"of at least {low}" if one_sided else f"from {low} to {most:,}"
        context.report(path, f"is {shown(value)}, expected a whole number {bounds}.")
        return None

    return Kind(
        read, {"type": "integer", "minimum": low, **({} if high is None else {"maximum": high})}
    )


def number(low: float, high: float = math.inf) -> Kind[float]:
    bounds = f"of at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"

    def read(value: Value, path: Path, context: ReadContext) -> float | None:
        content = finite(value)
        if content is not None and low <= content <= high:
            return content
        context.report(path, f"is {shown(value)}, expected a number {bounds}.")
        return None

    return Kind(
        read, {"type": "number", "minimum": low, **({} if math.isinf(high) else {"maximum": high})}
    )


def _read_flag(value: Value, path: Path, context: ReadContext) -> bool | None:
    if not isinstance(value, bool):
        context.report(path, f"is {shown(value)}, expected true or false.")
        return None
    return value


def choice(names: Sequence[str]) -> Kind[str]:
    def read(value: Value, path: Path, context: ReadContext) -> str | None:
        if isinstance(value, str) and value in names:
            return value
        hint = did_you_mean(value, names) if isinstance(value, str) else ""
        context.report(path, f"is {shown(value)}, expected {one_of(names)}.{hint}")
        return None

    return Kind(read, {"enum": list(names)})


def member(enum: type[E]) -> Kind[E]:
    words = choice([item.value for item in enum])

    def read(value: Value, path: Path, context: ReadContext) -> E | None:
        word = words.read(value, path, context)
        return None if word is None else enum(word)

    return Kind(read, words.schema)


def read_text(value: Value, path: Path, context: ReadContext) -> str | None:
    """Read text, or a number as it was written.

    Reports any other value, and characters that the store cannot hold.
    """
    if isinstance(value, str):
        if problem := unfit(value):
            context.report(path, problem)
            return None
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        remedy = "Put it in quotes if it is meant as text." if isinstance(value, bool) else ""
        context.report(path, f"is {shown(value)}, expected text.", remedy)
        return None
    return as_written(value)


def read_name(value: Value, path: Path, context: ReadContext) -> str | None:
    """Read one line of text with at most 200 characters, without the blanks around it."""
    text = read_text(value, path, context)
    if text is None:
        return None
    name = text.strip()
    if not name:
        context.report(path, "is empty, expected a name.")
        return None
    if problem := name_problem(name):
        context.report(path, f"is {shown(name)}, {problem}")
        return None
    return name


def _read_word(value: Value, path: Path, context: ReadContext) -> str | None:
    # Spreadsheets and converters write empty text for "no value".
    return None if value == "" else read_name(value, path, context)


def unfit(text: str) -> str | None:
    """Return why a text cannot be stored: PostgreSQL refuses NUL, and UTF-8 cannot encode a lone
    surrogate.
    """
    if "\0" in text:
        return "holds a NUL character, which marks binary data; expected text."
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"holds half of a character (a lone surrogate, \\u{ord(text[error.start]):04x}); expected text."
    return None


def read_free(value: Value, path: Path, context: ReadContext) -> JsonValue:
    """Read any value, and report only parts that JSON or the store cannot represent."""
    if isinstance(value, str):
        if problem := unfit(value):
            context.report(path, problem)
            return ""
        return value
    if isinstance(value, float) and not math.isfinite(value):
        context.report(path, f"is {shown(value)}, expected a finite number.")
        return None
    if isinstance(value, list):
        return [read_free(item, (*path, position), context) for position, item in enumerate(value)]
    if isinstance(value, dict):
        return _free_items(value, path, context)
    return plain(value)


def _free_items(
    values: Mapping[str, Value], path: Path, context: ReadContext
) -> dict[str, JsonValue]:
    items = {}
    for name, value in values.items():
        if problem := unfit(name):
            context.report(path, f"has a key that {problem}")
        else:
            items[name] = read_free(value, (*path, name), context)
    return items


def _read_free_mapping(
    value: Value, path: Path, context: ReadContext
) -> dict[str, JsonValue] | None:
    if isinstance(value, dict):
        return _free_items(value, path, context)
    context.report(path, f"is {shown(value)}, expected a mapping.")
    return None


def unread(schema: Schema) -> Kind[Value]:
    return Kind(lambda value, _path, _context: value, schema)


TEXT: Final = Kind(read_text, {"type": ["string", "number"]})
NAME: Final = Kind(
    read_name, {"type": ["string", "number"], "minLength": 1, "maxLength": LONGEST_NAME}
)
WORD: Final = Kind(_read_word, NAME.schema)
"""A name that may be empty, which means the same as absent."""
FLAG: Final = Kind(_read_flag, {"type": "boolean"})
FREE: Final = Kind(read_free, {})
FREE_MAPPING: Final = Kind(_read_free_mapping, {"type": "object"})
PATH_NAME: Final = Kind(read_name, {"type": "string", "minLength": 1})
"""A file path, relative to the suite."""


def finite(value: Value) -> float | None:
    """Return the value if it is a finite number, else None; booleans do not count as numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        content = float(value)
    except OverflowError:
        return None
    return content if math.isfinite(content) else None


def one_of(names: Sequence[str]) -> str:
    """Return words as a list for a sentence, such as `every, flagged or none`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
