"""Read values of foreign JSON with the expected type, and convert times to ISO 8601 in UTC with
`Z`.

A getter never raises. A value of another type becomes None or an empty object, list or text, so
that one odd field does not lose the row. Readers import this module as `js`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TypeAlias

import orjson

from assay.domain.digest import JsonValue
from assay.domain.suite import Message
from assay.domain.unescaped_json import unescaped_json

JsonObject: TypeAlias = "Mapping[str, JsonValue]"
"""An object of a foreign document."""

_EARLIEST_S: Final = 946_684_800  # the year 2000: no evaluation is older than that
_LATEST_S: Final = 4_102_444_800  # the year 2100
_DEEPEST: Final = 12
_MAX_ITEMS: Final = 1000
_LONGEST: Final = 20_000
_SHOWN: Final = 2000
_LARGEST_COUNT: Final = 2**53  # above this, JSON numbers are not exact, and SQLite ends at 2**63
# Harnesses write a model's arguments into their results, including API keys.
_SECRET: Final = re.compile(
    r"api_?key|secret|password|authorization|(access|auth|hf|bearer)_?token", re.IGNORECASE
)
# `developer` is OpenAI's newer name for the system's turn, `model` is Google's for the assistant's.
_ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
}


# Many lines of a batch were answered in the same second.
@lru_cache(maxsize=4096)
def from_unix(seconds: float | None) -> str | None:
    """Convert seconds since 1970 to text; None outside 2000 to 2100, because some servers send
    their uptime instead.
    """
    if (
        not isinstance(seconds, int | float)
        or isinstance(seconds, bool)
        or not _EARLIEST_S <= seconds < _LATEST_S
    ):
        return None
    return _in_utc(datetime.fromtimestamp(seconds, UTC))


def from_text(text: object) -> str | None:
    """Parse an ISO 8601 time and return it in UTC; None for any other value, including a time
    without a zone.
    """
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    # Without a zone, it is the local time of an unknown machine.
    return None if moment.tzinfo is None else _in_utc(moment.astimezone(UTC))


def _in_utc(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class NotJson(ValueError):
    """Raised for bytes that are not a JSON document, with the reason in one sentence."""


def parse_json(content: bytes) -> JsonValue:
    """Parse a JSON document, even one that contains NaN; raises `NotJson`."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        document: JsonValue = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        # Python's json writes these, and so do harnesses; orjson refuses them.
        if b"NaN" in content or b"Infinity" in content:
            with suppress(ValueError, RecursionError):
                lenient: JsonValue = json.loads(content)
                return lenient  # assigned to a name for its type, because `json.loads` returns Any
        if "recursion" in error.msg.lower() or "depth" in error.msg.lower():
            raise NotJson("is nested too deeply to be read.") from error
        if not content.strip():
            raise NotJson("is empty.") from error
        raise NotJson(
            f"is not JSON: {error.msg.split(':')[0]} at line {error.lineno}, column {error.colno}."
        ) from error
    return document


def as_object(value: object) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def objects_in(value: object) -> list[JsonObject]:
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def as_id(value: object) -> str | None:
    """Return an id (text or a whole number) as text, otherwise None."""
    if isinstance(value, str):
        return value.strip() or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def as_number(value: object) -> float | None:
    """Return the value if it is a finite number, otherwise None; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        # An integer in JSON may have any number of digits.
        return None
    return number if math.isfinite(number) else None


def as_count(value: object) -> int | None:
    """Return a whole number of at least 0 that a database column can contain, otherwise None."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value < _LARGEST_COUNT
    ):
        return None
    return int(value) if value == int(value) else None


def as_duration(value: object) -> float | None:
    """Return a number of seconds or dollars from 0 to 1e12 (a limit that keeps sums finite),
    otherwise None.
    """
    number = as_number(value)
    return number if number is not None and 0 <= number <= 1e12 else None


def seconds_between(start: object, end: object) -> float | None:
    """Return the seconds between two ISO 8601 times with the same zone; None if either is
    unknown.
    """
    try:
        return as_duration(
            (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(start))).total_seconds()
        )
    except (ValueError, TypeError):  # one has a zone and the other has none
        return None


def seconds_after(start: str | None, seconds: float) -> str | None:
    return None if start is None else from_unix(datetime.fromisoformat(start).timestamp() + seconds)


def in_unit_range(score: float | None) -> float | None:
    """Return a score from 0 to 1 unchanged, otherwise None."""
    return score if score is not None and 0.0 <= score <= 1.0 else None


def as_points(value: object) -> float | None:
    """Return true and false as 1 and 0, and a number unchanged."""
    return float(value) if isinstance(value, bool) else as_number(value)


def to_text(value: object) -> str:
    """Convert a value to text: text unchanged, None to an empty text, all other values to JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return unescaped_json(storable(value))


def shorten(value: object, most: int = _SHOWN) -> str:
    """Return the beginning of a value as text, for messages."""
    text = to_text(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def storable(value: object, *, _depth: int = 0) -> JsonValue:
    """Make a value storable: finite, limited in depth and length, and without secrets."""
    match value:
        case None | bool():
            return value
        case int():
            return value if abs(value) < _LARGEST_COUNT else str(value)[:40]
        case float():
            return value if math.isfinite(value) else None
        case str():
            return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
        case dict():
            if _depth >= _DEEPEST:
                return "…"
            return {
                str(key)[:200]: "…"
                if _SECRET.search(str(key)[:200])
                else storable(item, _depth=_depth + 1)
                for key, item in list(value.items())[:_MAX_ITEMS]
            }
        case list() | tuple():
            if _depth >= _DEEPEST:
                return "…"
            return [storable(item, _depth=_depth + 1) for item in value[:_MAX_ITEMS]]
        case _:
            return str(value)[:_LONGEST]


def pick(source: JsonObject, keys: Iterable[str]) -> dict[str, JsonValue]:
    """Return the storable values of the given keys; keys without a value are omitted."""
    return {
        key: storable(source[key])
        for key in keys
        if source.get(key) is not None and source[key] not in ("", [], {})
    }


def content_text(content: object) -> str | None:
    """Return the text of a message's content: text unchanged, parts joined, other parts named in
    brackets.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return None
    parts: list[str] = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict):
            text = part.get("text")
            if isinstance(text, str):
                parts.append(text)
            elif part.get("type") == "reasoning":
                continue
            else:
                parts.append(f"[{shorten(part.get('type') or 'part', 40)}]")
    return "\n".join(parts)


def as_messages(value: object) -> tuple[Message, ...]:
    """Convert a prompt to messages.

    Text, and messages with an unknown role (tool, function), become user messages.
    """
    if isinstance(value, str):
        return (Message(role="user", content=value),) if value else ()
    messages: list[Message] = []
    for item in as_list(value):
        if isinstance(item, str):
            messages.append(Message(role="user", content=item))
            continue
        turn = as_object(item)
        content = content_text(turn.get("content"))
        if content:
            messages.append(
                Message(role=_ROLES.get(str(turn.get("role")), "user"), content=content)
            )
    return tuple(messages)


def chat_messages(value: object) -> tuple[Message, ...]:
    """Convert a prompt to messages, including a text that contains a list of messages as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(NotJson):
            return as_messages(parse_json(value.encode())) or as_messages(value)
    return as_messages(value)


def as_texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(to_text(item) for item in value if item is not None)
    return () if value is None else (to_text(value),)
