"""Convert JSON bodies to bytes and back, with support for NaN and lone surrogates."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from typing import Any, Final

import orjson

from assay.domain.unescaped_json import unescaped_json

MAX_TOKENS: Final = 2**40
"""A larger count is a server error: no answer has so many tokens, and their sums would not fit into
a database column.
"""


class UnreadableBody(ValueError):
    """Raised if the bytes do not contain a JSON document."""


def dump(body: object) -> bytes:
    """Serialise a body as JSON; records become objects, and lone surrogates become `?`."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return unescaped_json(body, default=_fields).encode("utf-8", "replace")


def parse(body: bytes) -> Any:
    """Parse a JSON body, including the NaN and lone surrogates that some servers send.

    Raises UnreadableBody.
    """
    try:
        return orjson.loads(body)
    except ValueError:
        pass
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableBody(str(error)) from error


def whole(text: str) -> str:
    """Replace characters that stores cannot contain (NUL and lone surrogates) with U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None


def _fields(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else dict(value)  # type: ignore[call-overload]
