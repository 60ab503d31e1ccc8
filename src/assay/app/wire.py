"""JSON documents as frozen dataclasses; each class defines both the written JSON and the published
schema.

A document class lists its fields in the order of the JSON. If the published shape is that of a
record, the record itself is the document. A document that adds fields to another document or to a
record holds it as an `inlined` field. Everything else is constructed with its fields, so that the
type checker sees every name. Three rules apply to every document:

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
from functools import cache
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    TypeAlias,
    TypeVar,
    dataclass_transform,
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


def inlined() -> Any:
    """Declare that the keys of this field's document or record are written in its place, among
    those of the outer document.
    """
    return field(metadata={"inlined": True})


def optional() -> Any:
    """Declare that a field is left out of the JSON unless a value is set."""
    return field(default_factory=_absent)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(field, inlined, optional)
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
