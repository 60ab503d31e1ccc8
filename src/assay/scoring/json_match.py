"""The `json` scorer: compares the last JSON document in a response with the reference, by value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.tools import same_json
from assay.scoring.json_repair import read_loosely
from assay.scoring.scorer_result import Outcome, Score, Unscored

_LONGEST_PATH: Final = 100


def json_match(response: str, reference: str, options: Mapping[str, JsonValue], /) -> Outcome:
    """Score 1 if the last JSON document in the response equals the reference, else 0; the note
    names the first difference.

    The order of keys, white space and text around the document do not matter; 2 equals 2.0, and
    `true` is not 1.
    """
    wanted = strict_json(reference)
    if wanted is None:
        return Unscored(
            "bad_reference", "`expected` is not JSON, so there is nothing to compare with."
        )
    given = strict_json(response)
    if given is None:
        documents = read_loosely(response).documents
        if not documents:
            return Score(0.0, "no JSON in the response", 1.0)
        given = (documents[-1].value,)
    if same_json(given[0], wanted[0]):
        return Score(1.0, "equal JSON", 1.0)
    return Score(0.0, _first_difference(given[0], wanted[0], "$"), 1.0)


@lru_cache(maxsize=16)
def strict_json(text: str) -> tuple[JsonValue] | None:
    """Return a text's JSON value in a tuple, because `null` is a value too; None if the text is not
    JSON.
    """
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def _first_difference(given: JsonValue, wanted: JsonValue, path: str) -> str:
    """Describe where two documents begin to differ, as a path such as `$.items[2].price`."""
    if isinstance(given, dict) and isinstance(wanted, dict):
        for name, value in wanted.items():
            if name not in given:
                return f"{_short(path)} lacks {name!r}"
            if not same_json(given[name], value):
                return _first_difference(given[name], value, f"{path}.{name}")
        extra = next(name for name in given if name not in wanted)
        return f"{_short(path)} has {extra!r}, which the reference lacks"
    if isinstance(given, list) and isinstance(wanted, list) and len(given) == len(wanted):
        place = next(
            place
            for place, (a, b) in enumerate(zip(given, wanted, strict=True))
            if not same_json(a, b)
        )
        return _first_difference(given[place], wanted[place], f"{path}[{place}]")
    return f"{_short(path)} differs"


def _short(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"
