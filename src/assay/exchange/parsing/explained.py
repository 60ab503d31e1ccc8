"""Measure how much of a file a reader would explain: the share of characters under keys of the
reader's format.

A reader describes its format once as a `Shape`, and `recognise` returns `explained_share` of the
file. If two readers find their keys in a file, the share shows which one fits: the SWE-bench reader
finds `resolved_ids` in results from Terminal-Bench 1, but explains only 2% of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import orjson

Shape: TypeAlias = "Mapping[str, Shape | None]"
"""Keys of an object, or of each object in a list.

None: a reader uses the key's whole value. `*`: all other keys.
"""

ANY_KEY: Final = "*"
_MAX_ITEMS: Final = 50
_DEEPEST: Final = 20


def explained_share(value: object, shape: Shape) -> float:
    """Return the share of a JSON value that a shape explains, from 0 to 1; 0 for a value without
    objects.

    Only the first 50 items of a long list are measured.
    """
    explained, total = _measured(value, shape, 0)
    return explained / total if total else 0.0


def _measured(value: object, shape: Shape | None, depth: int) -> tuple[float, float]:
    """Return (explained characters, all characters)."""
    if depth > _DEEPEST:
        size = _size(value)
        return size if shape is None else 0.0, size
    if isinstance(value, list | tuple):
        parts = [_measured(item, shape, depth + 1) for item in value[:_MAX_ITEMS]]
        scale = len(value) / len(parts) if parts else 1.0
        return scale * sum(part for part, _ in parts), scale * sum(whole for _, whole in parts)
    if shape is None or not isinstance(value, Mapping):
        size = _size(value)
        return size if shape is None else 0.0, size
    explained = total = 0.0
    for key, item in value.items():
        name = key if key in shape else ANY_KEY
        if name in shape:
            part, whole = _measured(item, shape[name], depth + 1)
            part += len(key)
        else:
            part, whole = 0.0, _size(item)
        explained += part
        total += whole + len(key)
    return explained, total


def _size(value: object) -> float:
    if isinstance(value, str):
        return len(value)
    try:
        return len(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS))
    except (orjson.JSONEncodeError, RecursionError):
        return len(str(value)[:1_000_000])
