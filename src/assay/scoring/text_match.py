"""Scorers that compare texts: `exact`, `similarity` (with credit for near misses) and `boolean` (a
contains check).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from rapidfuzz.distance import Levenshtein

from assay.domain.digest import JsonValue
from assay.scoring.scorer_result import Outcome, Score, Unscored

MAX_COMPARED_CELLS: Final = 30_000_000_000
"""Largest comparison (length times length) that uses Levenshtein distance; it takes about a second.
"""

EQUAL: Final = Score(1.0, "equal", 1.0)
UNEQUAL: Final = Score(0.0, "not equal", 1.0)
NO_REFERENCE: Final = Unscored("no_reference", "The task has no reference to compare with.")
CONTAINS: Final = Score(1.0, "contains the reference")
DIFFERS: Final = Score(0.0, "not similar", 0.5)
LACKS: Final = Score(0.0, "does not contain the reference")


def exact(response: str, reference: str, options: Mapping[str, JsonValue], /) -> Outcome:
    """Score 1 if the response equals the reference, else 0; ignores surrounding white space, case
    and Unicode form (NFC).
    """
    wanted, normalised = _normalised_reference(reference)
    if not wanted:
        return NO_REFERENCE
    return EQUAL if response.strip() == wanted or _normalised(response) == normalised else UNEQUAL


def _normalised(text: str) -> str:
    text = text.strip()
    if text.isascii():
        return text.lower()
    # Folding case can undo the composed form, so NFC is applied again.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@lru_cache(maxsize=16)
def _normalised_reference(reference: str) -> tuple[str, str]:
    return reference.strip(), _normalised(reference)


def similarity(response: str, reference: str, options: Mapping[str, JsonValue], /) -> Outcome:
    """Score 1 if the response equals the reference, and less for a near miss; the first matching
    rule decides.

    White space around both texts is ignored. Equal texts score 1, and texts that differ only in
    case 0.95. If the response contains the reference, it scores between 0.95 and 0.60 (between 0.90
    and 0.55 if the case differs): the more additional text, the less. Otherwise the similarity is s
    = 1 - Levenshtein / longer length, and the score is 0.7 s if s is above one half, 0.4 s if it is
    above one fifth, and else 0.
    """
    given = response.strip()
    wanted, lowered_wanted = _stripped(reference)
    if not wanted:
        return NO_REFERENCE
    if given == wanted:
        return EQUAL
    lowered = given.lower()
    if lowered == lowered_wanted:
        return Score(0.95, "equal except for case", 1.0)
    if not given:
        return Score(0.0, "the response is empty", 1.0)
    if wanted in given:
        return Score(max(0.60, 0.95 - 0.35 * _extra(given, wanted)), "contains the reference", 0.9)
    if lowered_wanted in lowered:
        return Score(
            max(0.55, 0.90 - 0.35 * _extra(given, wanted)),
            "contains the reference except for case",
            0.85,
        )
    return _similar(given, wanted)


def _extra(given: str, wanted: str) -> float:
    return 1 - len(wanted) / len(given)


@lru_cache(maxsize=16)
def _stripped(reference: str) -> tuple[str, str]:
    """Return the stripped reference, unchanged and in lower case.

    Cached, because one reference is used for many responses.
    """
    wanted = reference.strip()
    return wanted, wanted.lower()


def _similar(given: str, wanted: str) -> Outcome:
    given_length, wanted_length = len(given), len(wanted)
    longer = given_length if given_length > wanted_length else wanted_length
    # the lengths alone keep the similarity at or below one fifth
    if given_length <= 0.2 * longer or wanted_length <= 0.2 * longer:
        return DIFFERS
    if given_length * wanted_length > MAX_COMPARED_CELLS:
        return Unscored(
            "too_long",
            f"Texts of {given_length} and {wanted_length} characters are too long to compare.",
        )
    return _credit(longer, Levenshtein.distance(given, wanted))


@lru_cache(maxsize=10_000)
def _credit(longer: int, distance: int) -> Outcome:
    similarity = (longer - distance) / longer
    if similarity > 0.5:
        return Score(0.7 * similarity, f"similarity {similarity:.2f}", max(0.4, 0.8 * similarity))
    if similarity > 0.2:
        return Score(0.4 * similarity, f"similarity {similarity:.2f}", 0.3)
    return DIFFERS


def boolean(response: str, reference: str, options: Mapping[str, JsonValue], /) -> Outcome:
    """Score 1 if the response contains the reference, ignoring case, else 0.

    A preceding "not" is not noticed.
    """
    wanted = reference.strip().lower()
    if not wanted:
        return Unscored("no_reference", "The task has no reference to look for.")
    return CONTAINS if wanted in response.lower() else LACKS
