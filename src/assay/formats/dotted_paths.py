"""Look up values at dotted paths such as `body.messages` or `choices.0.text`."""

from __future__ import annotations

from typing import Any


def value_at(row: Any, path: str) -> Any:
    """Return the value at a dotted path of a row, or None.

    A key that contains the dots takes precedence over a nested value. A path that starts with `$.`
    is relative to the whole document, which the row contains under the key `@root`. `-1` is the
    last item of a list.
    """
    if isinstance(row, dict) and path in row:
        return row[path]
    value = row
    if path.startswith("$."):
        value, path = row.get("@root") if isinstance(row, dict) else None, path[2:]
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, list) and value and step == "-1":
            value = value[-1]
        else:
            return None
    return value
