"""Grades the length and the greeting of a response, each with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.plugins import JsonValue


def manners(
    task: Mapping[str, JsonValue], response: str, options: Mapping[str, JsonValue], /
) -> object:
    """Return two criteria: `short` and `greets`.

    Options:
        longest: the most words that a short answer has;
            10 unless stated.
    """
    words, longest = len(response.split()), options.get("longest", 10)
    short = {"score": float(words <= int(str(longest))), "reason": f"{words} words", "weight": 3}
    return {"short": short, "greets": float(response.lower().startswith("hello"))}
