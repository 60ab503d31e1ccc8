"""Write JSON without escaping characters beyond ASCII."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def unescaped_json(
    value: object,
    *,
    indent: int | None = None,
    allow_nan: bool = True,
    default: Callable[..., object] | None = None,
) -> str:
    """Return a value as JSON that keeps characters beyond ASCII; the options are those of
    `json.dumps`.
    """
    return json.dumps(
        value, ensure_ascii=False, indent=indent, allow_nan=allow_nan, default=default
    )
