"""Shapes of JSON that pass the gate: each names the fields, kinds and values that it knows, and
refuses all others.

A check takes a value, its place in the request and a `PassedParts`, and returns the value to
forward. It never returns a part of the request that it did not look at, so a request that passed is
written anew from the values that the checks returned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

DEEPEST: Final = 60
"""Maximum nesting of free-form JSON, such as the schema of a tool."""

LONGEST_LIST: Final = 100_000

_INLINE: Final = re.compile(r"data:(?P<kind>[a-z]+)/[\w.+-]+;base64,[A-Za-z0-9+/=_-]*")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=_\s-]*")
_WEB: Final = re.compile(r"https?://[^\s\\]+")


class RequestRefused(Exception):
    """Raised if a request does not pass; the text names the place, the problem and the remedy."""

    def __init__(self, where: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{where} {problem} {remedy}".strip())


@dataclass(slots=True)
class PassedParts:
    """Facts about one request: its permissions, the hints that were left out, and the media that it
    contains.

    Attributes:
        network: True if the provider may search and fetch for this trial.
        dropped: places of the hints that were left out.
        run_by_provider: places of what the provider runs or fetches itself.
        media_bytes: length of the images and documents, which no tokenizer reads as text.
        cached_for_longer: True if a part of the prompt is to be cached for an hour, which costs
            more.
    """

    network: bool = False
    dropped: list[str] = field(default_factory=list)
    run_by_provider: list[str] = field(default_factory=list)
    images: int = 0
    documents: int = 0
    media_bytes: int = 0
    cached_for_longer: bool = False


Check: TypeAlias = Callable[[Any, str, PassedParts], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Check of a JSON object: these fields pass, `hints` are left out, fields that are null and
    unknown too.

    `refused` gives the reasons for fields that are known and do not pass.
    """

    fields: Mapping[str, Check]
    required: tuple[str, ...] = ()
    hints: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, value: Any, where: str, parts: PassedParts) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise RequestRefused(where, f"is {_named(value)}, and must be an object.")
        for name in self.required:
            if name not in value:
                raise RequestRefused(f"{where}.{name}", "is missing.")
        passed: dict[str, Any] = {}
        for name, part in value.items():
            place = f"{where}.{name[:60]}"
            check = self.fields.get(name)
            if check is not None:
                passed[name] = None if part is None else check(part, place, parts)
            elif name in self.hints:
                parts.dropped.append(place)
            elif part is not None:
                reason = self.refused.get(name, "is not a field that passes.")
                raise RequestRefused(place, reason, "Leave it out of the request.")
        return passed


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Check of an object whose `type` decides its shape.

    `networked` are kinds that the provider runs or fetches, which pass only with a network.
    `default` is the kind of an object without a type, if it may have none. A key that ends in `*`
    stands for kinds with a date, such as `bash_20250124`.
    """

    kinds: Mapping[str, Check]
    networked: Mapping[str, Check] = field(default_factory=dict)
    default: str = ""

    def __call__(self, value: Any, where: str, parts: PassedParts) -> Any:
        if not isinstance(value, dict):
            raise RequestRefused(where, f"is {_named(value)}, and must be an object.")
        kind = value.get("type")
        if kind is None and self.default:
            kind = self.default
        if not isinstance(kind, str):
            raise RequestRefused(f"{where}.type", f"is {_named(kind)}, and must be a text.")
        check = _of_kind(self.kinds, kind)
        if check is not None:
            return check(value, where, parts)
        check = _of_kind(self.networked, kind)
        if check is not None and parts.network:
            parts.run_by_provider.append(where)
            return check(value, where, parts)
        if check is not None:
            raise RequestRefused(
                f"{where}.type",
                f"is {kind!r}: this trial has no network, so the provider may not search, fetch or run for it.",
            )
        known = ", ".join(sorted(self.kinds))
        raise RequestRefused(
            f"{where}.type", f"is {kind[:60]!r}, which does not pass.", f"Use {known}."
        )


def _of_kind(kinds: Mapping[str, Check], kind: str) -> Check | None:
    if "*" in kind:
        return None
    return kinds.get(kind) or kinds.get(re.sub(r"_[0-9]{8}$", "_*", kind))


def _named(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case int() | float():
            return "a number"
        case str():
            return f"the text {value[:40]!r}"
        case list():
            return "a list"
        case _:
            return "an object"


def text(value: Any, where: str, parts: PassedParts) -> str:
    if not isinstance(value, str):
        raise RequestRefused(where, f"is {_named(value)}, and must be a text.")
    return value


def flag(value: Any, where: str, parts: PassedParts) -> bool:
    if not isinstance(value, bool):
        raise RequestRefused(where, f"is {_named(value)}, and must be true or false.")
    return value


def number(value: Any, where: str, parts: PassedParts) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e9:
        raise RequestRefused(where, f"is {_named(value)}, and must be a number up to 1e9.")
    return value


def whole(least: int, most: int) -> Check:
    """Return a check of whole numbers in a range, both ends included."""

    def check(value: Any, where: str, parts: PassedParts) -> int:
        if type(value) is not int or not least <= value <= most:
            raise RequestRefused(where, f"must be a whole number from {least:,} to {most:,}.")
        return value

    return check


def among(*values: object) -> Check:
    """Return a check of values from a list."""

    def check(value: Any, where: str, parts: PassedParts) -> object:
        for known in values:
            if type(value) is type(known) and value == known:
                return known
        raise RequestRefused(
            where,
            f"is {_named(value)}, which does not pass.",
            f"Use {', '.join(map(repr, values))}.",
        )

    return check


def each(check: Check) -> Check:
    """Return a check of lists whose members pass a check."""

    def check_all(value: Any, where: str, parts: PassedParts) -> list[Any]:
        if not isinstance(value, list) or len(value) > LONGEST_LIST:
            raise RequestRefused(
                where, f"is {_named(value)}, and must be a list of at most {LONGEST_LIST:,}."
            )
        return [check(part, f"{where}[{place}]", parts) for place, part in enumerate(value)]

    return check_all


def text_or(check: Check) -> Check:
    """Return a check that takes a text or whatever another check takes."""

    def check_either(value: Any, where: str, parts: PassedParts) -> Any:
        return value if isinstance(value, str) else check(value, where, parts)

    return check_either


def free(value: Any, where: str, parts: PassedParts) -> Any:
    """Pass any JSON that is not too deep, such as the arguments of a tool.

    Providers treat it as data.
    """
    waiting = [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > DEEPEST:
            raise RequestRefused(where, f"is nested more than {DEEPEST} times.")
        if isinstance(part, dict):
            waiting += ((inner, depth + 1) for inner in part.values())
        elif isinstance(part, list):
            waiting += ((inner, depth + 1) for inner in part)
    return value


def schema(value: Any, where: str, parts: PassedParts) -> Any:
    """Pass a JSON Schema without references to other documents."""
    if not isinstance(value, dict):
        raise RequestRefused(where, f"is {_named(value)}, and must be an object.")
    waiting = [free(value, where, parts)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            for name in ("$ref", "$dynamicRef", "$recursiveRef"):
                target = part.get(name)
                if isinstance(target, str) and not target.startswith("#"):
                    raise RequestRefused(
                        f"{where}.{name}",
                        "refers to another document.",
                        "Write the schema in place.",
                    )
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return value


def image_address(value: Any, where: str, parts: PassedParts) -> str:
    """Pass an image that the address itself contains; with a network, also one on the web."""
    address = text(value, where, parts)
    parts.images += 1
    return _inline(address, where, parts, kinds=("image",))


def file_address(value: Any, where: str, parts: PassedParts) -> str:
    """Pass a document that the address itself contains; with a network, also one on the web."""
    address = text(value, where, parts)
    parts.documents += 1
    return _inline(address, where, parts, kinds=("application", "text", "image"))


def image_data(value: Any, where: str, parts: PassedParts) -> str:
    parts.images += 1
    return _base64(value, where, parts)


def file_data(value: Any, where: str, parts: PassedParts) -> str:
    parts.documents += 1
    return _base64(value, where, parts)


def web_address(value: Any, where: str, parts: PassedParts) -> str:
    """Pass an http address, for kinds that need a network."""
    address = text(value, where, parts)
    if not _WEB.fullmatch(address):
        raise RequestRefused(where, "is not an http address.")
    return address


def _inline(address: str, where: str, parts: PassedParts, *, kinds: tuple[str, ...]) -> str:
    inline = _INLINE.fullmatch(address)
    if inline is not None and inline["kind"] in kinds:
        parts.media_bytes += len(address)
        return address
    if parts.network and _WEB.fullmatch(address):
        return address
    raise RequestRefused(
        where,
        f"is {address[:40]!r}, which the provider would fetch.",
        "Send the content as a data: URL.",
    )


def _base64(value: Any, where: str, parts: PassedParts) -> str:
    content = text(value, where, parts)
    if not _BASE64.fullmatch(content):
        raise RequestRefused(where, "is not base64.")
    parts.media_bytes += len(content)
    return content
