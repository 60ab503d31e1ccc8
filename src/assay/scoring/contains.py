"""The `contains` scorer: looks for the reference in a response, as whole words."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from assay.domain.digest import JsonValue
from assay.scoring.scorer_result import Outcome, Score, Unscored

_QUOTES: Final = str.maketrans(
    {"’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "–": "-", "*": " "}
)
"""Characters that models write in place of those on a keyboard, and the asterisks of bold text."""

_DENIED_BEFORE: Final = re.compile(
    r"(?:\b(?:not|never|isn't|aren't|wasn't|weren't|neither|nor|rather than|instead of|unlike)|n't)"
    r"(?:\s+(?:the|a|an|be|in|called|named|really|simply))?\s+[\"'(]?\Z"
)
_DENIED_AFTER: Final = re.compile(
    r"[\"')]?\s+(?:(?:is|was|are|were|would be)\s+(?:not|wrong|incorrect)\b|(?:isn't|wasn't)\b)"
)
_LOOK_BACK: Final = 40
"""Characters before an occurrence in which a denial is looked for; the longest pattern needs 35."""

JSON_LIST: Final = "json"
"""Value of the option `any_of` for references that are JSON lists."""

FOUND: Final = Score(1.0, "contains the reference")
ABSENT: Final = Score(0.0, "does not contain the reference")
DENIED: Final = Score(0.0, "contains the reference only in a denial, such as `not …`", 0.7)


def contains(response: str, reference: str, options: Mapping[str, JsonValue], /) -> Outcome:
    """Score 1 if the response contains the reference as whole words, else 0.

    Case, Unicode form, white space, kinds of quotation marks and the full stop after the reference
    do not matter. `5` does not occur in `15` or `5.2`. An occurrence that is denied directly before
    or after it (`not Paris`, `Paris is wrong`) does not count. With the option `any_of`, the
    reference lists alternatives, and one of them suffices.
    """
    separator = options.get("any_of")
    listed = alternatives(reference, separator) if isinstance(separator, str) else (reference,)
    patterns = [pattern for each in listed if (pattern := _pattern(each)) is not None]
    if not patterns:
        return Unscored("no_reference", "The task has no reference to look for.")
    text = plain_words(response)
    outcomes = [_looked_for(pattern, text) for pattern in patterns]
    return next((outcome for outcome in (FOUND, DENIED) if outcome in outcomes), ABSENT)


def alternatives(reference: str, separator: str) -> tuple[str, ...]:
    """Return the right answers that a reference lists: separated by a text, or as a JSON list of
    texts with `json`.
    """
    if separator != JSON_LIST:
        return tuple(reference.split(separator))
    try:
        listed = json.loads(reference)
    except (ValueError, RecursionError):
        listed = None
    return tuple(map(str, listed)) if isinstance(listed, list) else (reference,)


def option_problems(options: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the problems with the option `any_of`, one sentence each."""
    separator = options.get("any_of", JSON_LIST)
    if isinstance(separator, str) and separator:
        return ()
    return (
        '`any_of` must be the text between alternatives, such as `"|"`, or `json` for a JSON list of texts.',
    )


def _looked_for(pattern: re.Pattern[str], text: str) -> Score:
    denied = False
    for match in pattern.finditer(text):
        if not _denied(text, match):
            return FOUND
        denied = True
    return DENIED if denied else ABSENT


def plain_words(text: str) -> str:
    """Return a text for comparison of words: case folded, in Unicode form NFKC, with single blanks
    and plain quotation marks.
    """
    folded = unicodedata.normalize("NFKC", text.translate(_QUOTES)).casefold()
    return " ".join(folded.split())


@lru_cache(maxsize=256)
def _pattern(reference: str) -> re.Pattern[str] | None:
    words = plain_words(reference)
    words = words.rstrip(".").rstrip() or words
    if not words:
        return None
    before = r"(?<!\w)" if words[0].isalnum() else ""
    after = r"(?!\w)" if words[-1].isalnum() else ""
    if words[0].isdigit():
        before += r"(?<!\d[.,])(?<![-.])"
    if words[-1].isdigit():
        after += r"(?![.,]\d)"
    return re.compile(before + re.escape(words) + after)


def _denied(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
    return (
        _DENIED_BEFORE.search(before) is not None
        or _DENIED_AFTER.match(text, match.end()) is not None
    )
