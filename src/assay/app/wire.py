"""JSON documents as frozen dataclasses; each class defines both the written JSON and the published
schema.

A document class lists its fields in the order of the JSON. `fill` copies the fields from the
attributes with the same names in a record, so only computed values need code. Three rules apply to
every document:

* A value that is unknown or does not apply is null. A field may be left out only if its type
  includes `| Absent`.
* A trailing underscore is not part of the key; it allows names such as `from` and `global`, which
  Python reserves.
* Tuples are written as arrays and enumerations as their values. Numbers are never NaN or infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

Document = TypeVar("Document")
Json: TypeAlias = object  # any JSON value: pydantic cannot read the recursive alias of the domain
_Get: TypeAlias = Callable[[Any], Any]


class Absent(Enum):
    """Type of `ABSENT`, the value of a field that is left out of the JSON."""

    ABSENT = "absent"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        from pydantic_core import PydanticOmit

        raise PydanticOmit  # absent fields have no separate schema; they are just not required


ABSENT: Final = Absent.ABSENT


def _absent() -> Absent:
    return ABSENT


def source(path: str) -> Any:
    """Declare that `fill` reads this field from another attribute of the record: `trial: int =
    source("k")`.
    """
    return field(metadata={"source": path})


def inlined() -> Any:
    """Declare that the keys of this field's document or record are written in its place, among
    those of the outer document.
    """
    return field(metadata={"inlined": True})


def optional() -> Any:
    """Declare that a field is left out of the JSON unless a value is set."""
    return field(default_factory=_absent)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(field, source, inlined, optional)
)
def document(cls: type[Document]) -> type[Document]:
    """Turn a class into a document: a keyword-only dataclass without comparison, hashing and repr,
    to save start time.
    """
    made = dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)(cls)
    made.__pydantic_config__ = _PYDANTIC_CONFIG  # type: ignore[attr-defined] # read by pydantic alone
    if any(part.metadata.get("inlined") for part in fields(made)):  # type: ignore[arg-type] # every document is a dataclass
        made.__get_pydantic_core_schema__ = classmethod(_flat_schema)  # type: ignore[attr-defined] # read by pydantic alone
    return made


def key_of(name: str) -> str:
    return name.rstrip("_")


_PYDANTIC_CONFIG: Final = {"alias_generator": key_of}


def _flat_schema(
    cls: type[object], source: type[object], handler: GetCoreSchemaHandler
) -> CoreSchema:
    """Describe a document with the keys of its inlined fields as its own."""
    namespace = {
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__pydantic_config__": _PYDANTIC_CONFIG,
    }
    flat = make_dataclass(cls.__name__, _flat_fields(cls), kw_only=True, namespace=namespace)
    return handler.generate_schema(flat)


def _flat_fields(cls: type[object]) -> Iterator[tuple[str, Any, Any]]:
    hints = get_type_hints(cls)
    for part in fields(cls):  # type: ignore[arg-type] # every document is a dataclass
        if part.metadata.get("inlined"):
            yield from _flat_fields(hints[part.name])
        else:
            yield part.name, hints[part.name], field(default_factory=part.default_factory)


def fill(cls: type[Document], record: object, /, **given: object) -> Document:
    """Create a document from the attributes of a record; arguments in `given` add or replace
    fields.

    A field whose type is a document is converted too, even in `given`. A missing attribute raises
    AttributeError, and an unknown name in `given` raises TypeError.
    """
    kind = type(record)
    plan = _filling(cls, kind if _is_document(kind) else None)  # type: ignore[arg-type] # every class is hashable
    if given:
        values = {
            name: get(record) for name, get in plan.getters.items() if name not in given
        } | given
    else:  # the usual case of a nested document, and twice as fast
        values = dict(zip(plan.getters, plan.get_all(record), strict=True))
    for name, convert in plan.converters:
        if name in values:
            values[name] = convert(values[name])
    return cls(**values)


def attributes(record: object, *names: str) -> dict[str, Any]:
    """Return attributes of a record by name, as keyword arguments for `fill`."""
    return {name: getattr(record, name) for name in names}


def to_json(value: object) -> dict[str, object]:
    """Return the fields of one document or record; the `default` function of a JSON writer.

    Values may be documents.
    """
    if is_dataclass(value):
        keys, get, inlined_keys, may_be_absent = _writing(type(value))  # type: ignore[arg-type] # every class is hashable
        written = dict(zip(keys, get(value), strict=True))
        if inlined_keys:
            written = dict(_flat_items(written, inlined_keys))
        return (
            {key: part for key, part in written.items() if part is not ABSENT}
            if may_be_absent
            else written
        )
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a document.")


def _flat_items(
    written: dict[str, object], inlined_keys: frozenset[str]
) -> Iterator[tuple[str, object]]:
    for key, part in written.items():
        if key in inlined_keys:
            yield from to_json(part).items()
        else:
            yield key, part


def plain(value: object) -> Any:
    if isinstance(value, str | int | float | None):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    return {key: plain(part) for key, part in to_json(value).items()}


def schema(cls: type[object]) -> dict[str, object]:
    from pydantic import TypeAdapter

    return TypeAdapter(cls).json_schema(mode="serialization")


@dataclass(frozen=True, slots=True)
class _Filling:
    """Functions that fill a document class: one getter per field, one getter for all fields, and
    value converters.
    """

    getters: dict[str, _Get]
    get_all: _Get
    converters: tuple[tuple[str, _Get], ...]


@cache
def _filling(cls: type[object], smaller: type[object] | None) -> _Filling:
    """Return the functions that fill a document from a record or, if `smaller` is given, from a
    document with fewer fields.
    """
    hints = get_type_hints(cls)
    parts = fields(cls)  # type: ignore[arg-type] # every document is a dataclass
    if smaller is None:
        paths = {
            part.name: part.metadata.get("source", part.name)
            for part in parts
            if part.default_factory is not _absent
        }
    else:
        known = {part.name for part in fields(smaller)}  # type: ignore[arg-type] # every document is a dataclass
        paths = {
            part.name: part.name
            for part in parts
            if part.name in known or part.default_factory is not _absent
        }
    converters = [(part.name, _converter(hints[part.name])) for part in parts]
    return _Filling(
        getters={name: attrgetter(path) for name, path in paths.items()},
        get_all=_get_all(*paths.values()),
        converters=tuple((name, convert) for name, convert in converters if convert is not None),
    )


@cache
def _writing(cls: type[object]) -> tuple[tuple[str, ...], _Get, frozenset[str], bool]:
    """Return the keys of a class, a function that reads their values, the keys of inlined fields,
    and whether a field can be absent.
    """
    parts = fields(cls)  # type: ignore[arg-type] # every document is a dataclass
    return (
        tuple(key_of(part.name) for part in parts),
        _get_all(*(part.name for part in parts)),
        frozenset(key_of(part.name) for part in parts if part.metadata.get("inlined")),
        # The annotation is text: hints are resolved only for schemas, because it takes long.
        _is_document(cls) and any("Absent" in str(part.type) for part in parts),
    )


def _get_all(*paths: str) -> _Get:
    """Return a function that reads all attributes as a tuple, even a single attribute."""
    get: _Get = attrgetter(*paths)
    return get if len(paths) > 1 else lambda record: (get(record),)


def _is_document(cls: object) -> bool:
    return isinstance(cls, type) and hasattr(cls, "__pydantic_config__")


def _converter(hint: Any) -> _Get | None:
    """Return a function that converts a record's value to the type in the hint; None if the value
    needs no conversion.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        converters = [made for part in arguments if (made := _converter(part)) is not None]
        if not converters:
            return None
        documents = tuple(part for part in arguments if _is_document(part))
        # Of several documents, the caller fills the one that fits.
        return (
            partial(_unless_none, converters[0])
            if len(documents) < 2
            else partial(_unless_document, documents, converters[0])
        )
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        each = _converter(arguments[0])
        return None if each is None else partial(_each, each)
    if origin in (dict, Mapping) and (of_values := _converter(arguments[1])) is not None:
        return partial(_each_value, of_values)
    if _is_document(hint):
        return partial(_filled, hint)
    return None


def _unless_none(convert: _Get, value: object) -> object:
    return value if value is None or value is ABSENT else convert(value)


def _unless_document(documents: tuple[type[object], ...], convert: _Get, value: object) -> object:
    return value if isinstance(value, documents) else _unless_none(convert, value)


def _each(convert: _Get, values: Any) -> tuple[object, ...]:
    return tuple(map(convert, values))


def _each_value(convert: _Get, values: Mapping[str, object]) -> dict[str, object]:
    return {key: convert(value) for key, value in values.items()}


def _filled(cls: type[object], value: object) -> object:
    # a mapping is JSON already
    return value if isinstance(value, cls | Mapping) else fill(cls, value)
