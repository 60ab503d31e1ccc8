"""Parser for scores as judges write them: numbers with or without their scale, percentages, words
and symbols.

A scale is never guessed from the size of a number: `85` is outside a scale up to 10, while `85%`
and `8.5/10` are unambiguous.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import eq
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.suite import Criterion
from assay.scoring.json_repair import CutText
from assay.scoring.label_matching import WRAPPING, canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadScore:
    """A score as written.

    `raw` is its value on the criterion's scale, or None if `written` is not a score.

    `outside`: True if the value is outside the scale. `by_word`: True if the judge wrote one of the
    criterion's labels.
    """

    raw: float | None
    written: str
    outside: bool = False
    by_word: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGrade:
    """A grade from the judge's reply; `score` is None if the grade has no score."""

    score: ReadScore | None
    reason: str = ""
    evidence: tuple[str, ...] = ()
    confidence: float | None = None

    @property
    def weight(self) -> tuple[bool, bool]:
        """Sort key to choose among several grades for the same criterion: a readable score counts
        first, then a reason.
        """
        return (self.score is not None and self.score.raw is not None, bool(self.reason))


NUMERAL: Final = r"[-+−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_WRITTEN_SCORE: Final = re.compile(
    rf"(?P<number>{NUMERAL})\s*"
    rf"(?:(?P<percent>%|percent\b)|(?:/|out\s+of|of)\s*(?P<total>{NUMERAL})|(?:points?|pts?)\b)?"
    r"\s*(?:[.,;:!]?|[-–—(].*)",
    re.IGNORECASE | re.DOTALL,
)

# `7-8` is a range and `5 -> 3` a change of mind: neither is one score.
_MORE_NUMBERS: Final = re.compile(r"\s*(?:/\s*\d+\s*)?(?:[-–—]|-+>)\s*[\d.]")


def read_score(
    value: JsonValue, criterion: Criterion, *, total: JsonValue = None
) -> ReadScore | None:
    """Read a score from a value of any type; None if the value is empty.

    Words count as scores if they are among the criterion's labels. `total` is a maximum that the
    judge wrote next to the score.
    """
    if isinstance(value, bool):
        return _by_label(_truth_words(value), criterion)
    if isinstance(value, int | float):
        top = total if isinstance(total, int | float) and not isinstance(total, bool) else None
        return _on_scale(float(value), criterion, total=top, written=f"{value:g}")
    if isinstance(value, CutText) or not isinstance(value, str) or not value.strip():
        return None
    written = value.strip()
    if score := _by_label((written,), criterion):
        return score
    bare = written.strip(WRAPPING) or written
    if (word := bare.rstrip(".!").casefold()) in NUMBER_WORDS and not criterion.labels:
        return _on_scale(float(NUMBER_WORDS.index(word)), criterion, total=None, written=written)
    if _DECIMAL_COMMA.fullmatch(bare):
        bare = bare.replace(",", ".", 1)
    match = _WRITTEN_SCORE.fullmatch(bare)
    if match is None or _MORE_NUMBERS.match(bare, match.end("number")):
        return ReadScore(raw=None, written=written[:80])
    number = _to_float(match["number"])
    if match["percent"]:
        if criterion.low == 0 and criterion.high == 100:
            return _on_scale(number, criterion, total=None, written=written)
        return _on_scale(number, criterion, total=100.0, written=written)
    top = _to_float(match["total"]) if match["total"] else None
    if top is None and isinstance(total, int | float) and not isinstance(total, bool):
        top = float(total)
    return _on_scale(number, criterion, total=top, written=written)


def _on_scale(
    number: float, criterion: Criterion, *, total: float | None, written: str
) -> ReadScore:
    if total is not None and total != max(criterion.low, criterion.high):
        if not 0 < total < 1e9 or not 0 <= number <= total:
            return ReadScore(raw=number, written=written, outside=True)
        low, high = sorted((criterion.low, criterion.high))
        number = low + number / total * (high - low)
    return ReadScore(raw=number, written=written, outside=not criterion.holds(number))


def _by_label(words: tuple[str, ...], criterion: Criterion) -> ReadScore | None:
    """Return the label that a word equals, means (`passed` and ✅ for pass) or begins with (`Yes,
    …`).
    """
    for word in words:
        bare = word.strip(WRAPPING).rstrip(".,;:!")
        begun = re.split(r"[,.;:(–—]|\s-\s", bare, maxsplit=1)[0]
        for likeness in (eq, _bends_it, _signs_it):
            for label, value in criterion.labels:
                if likeness(canonical(bare), canonical(label)):
                    return ReadScore(raw=value, written=word, by_word=True)
        for label, value in criterion.labels if begun != bare else ():
            if canonical(begun) == canonical(label):
                return ReadScore(raw=value, written=word[:80], by_word=True)
    return None


_BENT: Final = (
    "ed",
    "es",
    "s",
    "ing",
    "ly",
    "lymet",
    "lycorrect",
    "lysatisfied",
    "met",
    "credit",
    "satisfied",
)


def _bends_it(word: str, label: str) -> bool:
    return len(label) > 3 and word.startswith(label) and word.removeprefix(label) in _BENT


def _signs_it(word: str, label: str) -> bool:
    return (word in ("✅", "✔", "✔️", "✓", "👍") and label in _truth_words(True)) or (
        word in ("❌", "✗", "✘", "✖", "✖️", "👎") and label in _truth_words(False)
    )


NUMBER_WORDS: Final = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)
_DECIMAL_COMMA: Final = re.compile(r"\d{1,2},\d{1,2}(?:\s*/\s*\d{1,3})?")


def _truth_words(value: bool) -> tuple[str, ...]:
    return ("yes", "pass", "true", "correct") if value else ("no", "fail", "false", "incorrect")


def _to_float(numeral: str) -> float:
    return float(numeral.replace("−", "-").replace(",", "")[:320])
