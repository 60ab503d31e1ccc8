"""Advise a scorer for a table, from what its references look like."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from assay.domain.digest import JsonValue
from assay.scoring.contains import JSON_LIST, alternatives, plain_words
from assay.scoring.numeric import numbers_in

MAX_LABELS: Final = 8
"""Largest number of different references that are taken for the labels of a classification."""
SHORT_WORDS: Final = 5
SHORT_CHARACTERS: Final = 60
"""Longest reference that a right answer is expected to repeat word for word."""
LONG_SHARE: Final = 0.1
"""Share of longer references above which no rule is advised."""
MAX_DIGITS: Final = 15
"""Longest number that floating point holds exactly; longer ones are numbers of accounts or orders,
compared as text.
"""

_NUMBER: Final = re.compile(
    r"\s*(?:[~≈]\s*)?(?:[-+−]\s*)?(?:[$€£¥]\s*)?[-−]?(?:\d[\d,\u00a0\u202f]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*(?:%|[A-Za-z°µ²³/]{1,6})?\.?"
)
_WORKED: Final = re.compile(r"^####[ \t]*[$€£]?[-−]?[\d,.]+[ \t]*\Z", re.MULTILINE)
_LETTER: Final = re.compile(r"\W?[A-Ja-j][).:\]]?|\W?[A-J][).:\]]\s.{1,200}", re.DOTALL)
_FORMULA: Final = re.compile(
    r"\\(?:d?frac|sqrt|boxed|pi|cdot|times|infty|text|left)\b|\^\{|\$[^$]+\$"
)
_DATE: Final = re.compile(
    r"\b\d{4}-\d{1,2}-\d{1,2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,4}\b",
    re.IGNORECASE,
)
_YES_NO: Final = frozenset({"yes", "no"})
_TRUE_FALSE: Final = frozenset({"true", "false"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerAdvice:
    """A scorer that fits a table's references; `method` is `judge` if no rule can tell right
    answers from wrong ones.

    `kind`: what the references are. `reason`: why this scorer fits them, in one or two sentences.
    """

    method: str
    kind: str
    reason: str
    options: Mapping[str, JsonValue] = field(default_factory=dict)


LIST_SEPARATOR: Final = ", "
"""Text between the items of a list that a task file gives as a reference."""


def advised_scorer(
    references: Sequence[str], *, lists_are_alternatives: bool = False
) -> ScorerAdvice:
    """Advise a scorer for references that are not empty. Raises `ValueError` without any reference.

    `lists_are_alternatives`: True if a JSON list of texts holds several right answers; else the
    list itself is the answer.
    """
    texts = [reference.strip() for reference in references if reference.strip()]
    if not texts:
        raise ValueError("there are no references to look at")
    return (
        _numbers(texts)
        or _letters(texts)
        or _alternatives(texts, json_lists=lists_are_alternatives)
        or _labels(texts)
        or _json(texts)
        or _formulas(texts)
        or _words(texts)
    )


def _numbers(texts: Sequence[str]) -> ScorerAdvice | None:
    plain = all(
        _NUMBER.fullmatch(text) and len(numbers_in(text)) == 1 and _digits(text) <= MAX_DIGITS
        for text in texts
    )
    if not plain and not all(_WORKED.search(text) for text in texts):
        return None
    worked = "" if plain else " of the line `####`"
    return ScorerAdvice(
        method="numeric",
        kind="numbers",
        reason=f"{_all(texts)} numbers, so `numeric` compares the result that an answer states with the number{worked}: 1 if "
        "they are equal, else 0. If rounded results are right too, set a tolerance: {numeric: {tolerance: 0.01}}.",
    )


def _digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


def _letters(texts: Sequence[str]) -> ScorerAdvice | None:
    if not all(_LETTER.fullmatch(text) for text in texts):
        return None
    return ScorerAdvice(
        method="choice",
        kind="letters",
        reason=f"{_all(texts)} letters of a multiple choice, so `choice` finds the letter that an answer chooses, also in "
        "`The answer is (B).`: 1 if it is the right one, else 0.",
    )


def _labels(texts: Sequence[str]) -> ScorerAdvice | None:
    words = Counter(plain_words(text).rstrip(".") for text in texts)
    for pair in (_YES_NO, _TRUE_FALSE):
        if words.keys() <= pair:
            named = " or ".join(sorted(pair, reverse=True))
            reason = f"{_all(texts)} {named}, so `choice` finds which of them an answer chooses: 1 if it is the right one, else 0."
            return ScorerAdvice(method="choice", kind=named, reason=reason)
    short = all(
        len(word.split()) <= SHORT_WORDS and len(word) <= SHORT_CHARACTERS for word in words
    )
    repeated = len(texts) >= 3 * len(words) and min(words.values()) > 1
    if not (short and repeated and 2 <= len(words) <= MAX_LABELS):
        return None
    options: list[JsonValue] = list(dict.fromkeys(_as_first_written(texts, word) for word in words))
    return ScorerAdvice(
        method="choice",
        kind="labels",
        reason=f"{_all(texts)} one of {len(words)} labels, so `choice` finds which of them an answer chooses: 1 if it is the "
        "right one, else 0. Complete the list if other labels are allowed.",
        options={"options": options},
    )


def alternatives_advised(*, separator: str, written: str) -> ScorerAdvice:
    """Advise `contains` for references that list several right answers; `written` says how."""
    return ScorerAdvice(
        method="contains",
        kind="alternatives",
        reason=f"The references list right answers ({written}), so `contains` looks for them in an answer, as whole words: 1 if "
        "one of them occurs, else 0.",
        options={"any_of": separator},
    )


def _alternatives(texts: Sequence[str], *, json_lists: bool) -> ScorerAdvice | None:
    """Advise for references such as `Paris|City of Paris`, or `["Paris", "City of Paris"]` if
    `json_lists`.
    """
    lists = json_lists and all(text[0] == "[" and _is_list_of_texts(text) for text in texts)
    bars = sum("|" in text for text in texts)
    separator = JSON_LIST if lists else "|"
    if not lists and bars <= LONG_SHARE * len(texts):
        return None
    each = [alternative for text in texts for alternative in alternatives(text, separator)]
    if sum(_is_long(text) for text in each) > LONG_SHARE * len(each):
        return None
    return alternatives_advised(
        separator=separator, written="JSON lists of texts" if lists else "separated by `|`"
    )


def _is_list_of_texts(text: str) -> bool:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(listed, list)
        and bool(listed)
        and all(isinstance(item, str) and item.strip() for item in listed)
    )


def _is_long(text: str) -> bool:
    return len(text.split()) > SHORT_WORDS or len(text) > SHORT_CHARACTERS or "\n" in text


def _as_first_written(texts: Sequence[str], word: str) -> str:
    return next(text for text in texts if plain_words(text).rstrip(".") == word)


def _json(texts: Sequence[str]) -> ScorerAdvice | None:
    if not all(text[0] in "{[" and _is_json(text) for text in texts):
        return None
    return ScorerAdvice(
        method="json",
        kind="JSON",
        reason=f"{_all(texts)} JSON, so `json` compares the last JSON document of an answer by value; spacing and the order of "
        "keys do not matter: 1 if it is equal, else 0.",
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _formulas(texts: Sequence[str]) -> ScorerAdvice | None:
    formulas = sum(_FORMULA.search(text) is not None for text in texts)
    if not formulas or any(len(text) > 3 * SHORT_CHARACTERS for text in texts):
        return None
    return ScorerAdvice(
        method="math",
        kind="formulas",
        reason=f"{formulas} of {_counted(texts)} {'holds a formula' if formulas == 1 else 'hold formulas'}, so `math` compares "
        "final answers also if they are written in another form.",
    )


def _words(texts: Sequence[str]) -> ScorerAdvice:
    long = sum(map(_is_long, texts))
    if long > LONG_SHARE * len(texts):
        return ScorerAdvice(
            method="judge",
            kind="long texts",
            reason=f"{long} of {_counted(texts)} {'is' if long == 1 else 'are'} longer than {SHORT_WORDS} words or one line. "
            "A right answer can use other words, so no rule can tell right from wrong: a judge or a person has to grade.",
        )
    also = (
        f" {long} {'is' if long == 1 else 'are'} longer: read the answers to {'it' if long == 1 else 'them'}."
        if long
        else ""
    )
    kind = (
        "numbers and short texts"
        if any(_NUMBER.fullmatch(text) for text in texts)
        else "short texts"
    )
    return ScorerAdvice(
        method="contains",
        kind=kind,
        reason=f"{_all(texts) if not long else f'Most of {_counted(texts)} are'} {kind}, so `contains` looks for the reference in "
        "an answer, as whole words: 1 if it occurs, else 0. A whole sentence such as `It is Paris.` is right, but so is an "
        f"answer that names several; write `exact` if only the reference alone is right.{also}{_dates(texts)}",
    )


def _dates(texts: Sequence[str]) -> str:
    """Return a warning for references that are dates, because an answer may write a date in another
    form.
    """
    if 2 * sum(_DATE.search(text) is not None for text in texts) < len(texts):
        return ""
    form = " A date in another form, such as `20 July 1969` for `1969-07-20`, gets 0"
    return f"{form}: ask for one form in the prompt, or use a judge."


def _all(texts: Sequence[str]) -> str:
    return "The references are" if len(texts) == 1 else f"All {len(texts):,} references are"


def _counted(texts: Sequence[str]) -> str:
    return f"{len(texts):,} reference{'' if len(texts) == 1 else 's'}"
