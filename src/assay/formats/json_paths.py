"""Resolve paths in JSON documents: the subset of JSONPath (RFC 9535) in which a path matches
exactly one value.

`$` is the document, `.name` or `['name']` a key, `[0]` an index, and `[-1]` the last item.
Wildcards, filters and slices are not supported, because they match several values.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from assay.domain.digest import JsonValue

Steps: TypeAlias = "tuple[str | int, ...]"

_STEP: Final = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*) | \[(?P<position>-?\d{1,9})\] | \['(?P<single>[^']*)'\] | \["(?P<double>[^"]*)"\]""",
    re.VERBOSE,
)


def steps_of(path: str) -> Steps:
    """Return the keys and indexes in a path; raises `ValueError` with the part that cannot be
    parsed.
    """
    text = path.strip()
    if not text.startswith("$"):
        raise ValueError("it does not start with $")
    steps: list[str | int] = []
    place = 1
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            raise ValueError(f"{text[place:]!r} is neither .name, ['name'] nor [position]")
        if step["position"] is not None:
            steps.append(int(step["position"]))
        else:
            steps.append(
                next(name for name in step.group("name", "single", "double") if name is not None)
            )
        place = step.end()
    return tuple(steps)


def value_at(document: JsonValue, path: str) -> JsonValue:
    """Return the value at a path; raises `LookupError` with the longest prefix of the path that
    exists.
    """
    value = document
    reached = "$"
    for step in steps_of(path):
        match value:
            case dict() if isinstance(step, str) and step in value:
                value = value[step]
            case list() if isinstance(step, int) and -len(value) <= step < len(value):
                value = value[step]
            case _:
                raise LookupError(f"has no {path}: {reached} is {_described(value)}")
        reached += f"[{step}]" if isinstance(step, int) else f".{step}"
    return value


def _described(value: JsonValue) -> str:
    match value:
        case dict():
            names = ", ".join(list(value)[:8])
            return f"an object with {names}" if names else "an empty object"
        case list():
            return f"a list of {len(value)}"
        case str():
            return "text"
        case None:
            return "null"
        case _:
            return "true or false" if isinstance(value, bool) else "a number"
