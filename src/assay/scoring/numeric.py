"""Scorers that compare a number in the response with the reference: `numeric` is 1 or 0,
`closeness` credits near misses.

`numeric` reads the number that the response gives as its result (`result_in`), and it must equal
the reference's. `closeness` takes the nearest number of the response: within a relative tolerance
of 1% it gets full credit. Beyond 1%, the score is 1 - sqrt(error / 0.25), which is 0 at 25%. At 1%
the formula gives 0.8, so the score drops abruptly just above the tolerance; `curve: continuous`
avoids this.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from assay.domain.digest import JsonValue
from assay.scoring.final_answer import marked_answer
from assay.scoring.scorer_result import Outcome, Score, Unscored

TOLERANCE: Final = 0.01
ZERO_TOLERANCE: Final = 0.01
"""Absolute tolerance if the reference is 0 and the options set none, because an error relative to 0
is undefined.
"""
LIMIT: Final = 0.25
"""Relative error at and above which the score is 0."""
EPSILON: Final = 1e-9
"""An error of exactly the tolerance counts as within it, despite floating point (42.42 against 42).
"""
MAX_DIGITS: Final = 400

_NUMBER: Final = re.compile(
    r"""
    ([0-9.](?:                                          # a set comes first: the search then skips quickly to digits
        (?<=[0-9])(?:
            [0-9]{0,2}(?:,[0-9]{3})+(?![0-9])         # 1,234,567
          | [0-9]{0,2}(?:[\u00a0\u202f\u2009][0-9]{3})+(?![0-9])
          | [0-9]*
        )(?:\.[0-9]*)?
      | (?<=\.)(?<![0-9A-Za-z_)\].]\.)[0-9]+          # .5 has no whole part
    ))
    (?:[eE]([-+−]?[0-9]+)
      |\s*(?:×|\\times|\\cdot|[x*])\s*10\s*(?:\^|\*\*)\s*\{?\s*([-+−]?[0-9]+)\s*\}?
    )?
    """,
    re.VERBOSE,
)
_MINUS: Final = re.compile(r"(?<![0-9A-Za-z_)\].%°])[-−][$€£¥]?\Z")
"""A minus sign directly before a number; after a digit, word or bracket it does not count: 10-5,
x-1.
"""


def numbers_in(text: str) -> list[float]:
    """Return the finite numbers in a text, in order: `1,234`, `.5`, `−3` with a Unicode minus,
    `6.02e23`, `6.02 × 10^23`.
    """
    numbers: list[float] = []
    if "-" not in text and "−" not in text:
        for digits, exponent, power in _NUMBER.findall(text):
            if exponent or power or len(digits) > 300 or not digits.isascii():
                number = _value(digits, exponent or power)
                if number is not None:
                    numbers.append(number)
            else:
                numbers.append(float(digits.replace(",", "")))
        return numbers
    for match in _NUMBER.finditer(text):
        digits, exponent, power = match.groups()
        number = _value(digits, exponent or power)
        if number is not None:
            start = match.start()
            numbers.append(-number if _MINUS.search(text, max(0, start - 3), start) else number)
    return numbers


def _value(digits: str, exponent: str | None) -> float | None:
    """Convert digits to a number without its sign; None if it is too long or too large."""
    if not digits.isascii():
        digits = re.sub(r"[^0-9.]", "", digits)
    if "," in digits:
        digits = digits.replace(",", "")
    if len(digits) > MAX_DIGITS:
        whole, _, fraction = digits.partition(".")
        if len(whole) > MAX_DIGITS:
            return None
        digits = f"{whole}.{fraction[:MAX_DIGITS]}"
    if exponent:
        if len(exponent) > 6:
            return None
        digits = f"{digits}e{exponent.replace('−', '-')}"
    number = float(digits)
    return number if number < math.inf else None


@lru_cache(maxsize=256)
def _first_number(text: str) -> float | None:
    return next(iter(numbers_in(text)), None)


_BOLD: Final = re.compile(
    r"(?:\*\*|__)\s*(?:=\s*)?([$€£¥]?\s?[-−]?[0-9][0-9,]*(?:\.[0-9]+)?)(?:\s*%|[^\d*_.:]{0,20})\.?(?:\*\*|__)"
)
"""A number that a response prints in bold, at most with its unit; `**1.

First step**` is a heading.
"""
_OPENING: Final = re.compile(
    r"\W{0,4}([-−]?[0-9][0-9,]*(?:\.[0-9]+)?)\s*%?(?:[;:,!(\n—]|\s[-–—(]\s?[A-Za-z]|\.(?![0-9])|\Z)"
)
"""A number with which a response begins, followed by the end of a phrase: `51, because …`."""
_WORDS: Final = (
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
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_IN_WORDS: Final = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[-\s]({'|'.join(_WORDS[1:10])}))?|({'|'.join(_WORDS)}))\b",
    re.IGNORECASE,
)


def result_in(response: str) -> float | None:
    """Return the number that a response gives as its result, or None if the response contains no
    number.

    The order of preference is: the part marked as the final answer (`final_answer.marked_answer`),
    the last number in bold, the only number, a number with which the response begins, the last
    number. Without digits, the last number word below 100.
    """
    if (marked := marked_answer(response)) is not None and (numbers := numbers_in(marked)):
        return (numbers_in(marked.rpartition("=")[2]) or numbers)[0]  # `17 × 3 = 51`
    if bold := [number for text in _BOLD.findall(response) for number in numbers_in(text)]:
        return bold[-1]
    numbers = numbers_in(response)
    if not numbers:
        return _in_words(response)
    # `1. …` begins a list of steps more often than it is a result.
    if (
        len(set(numbers)) > 1
        and (opening := _OPENING.match(response))
        and not response.lstrip().startswith("1. ")
    ):
        return numbers_in(opening[1])[0]
    return numbers[-1]


def _in_words(text: str) -> float | None:
    matches = _IN_WORDS.findall(text)
    if not matches:
        return None
    tens, unit, small = (word.lower() for word in matches[-1])
    if small:
        return float(_WORDS.index(small))
    return float(20 + 10 * _TENS.index(tens) + (_WORDS.index(unit) if unit else 0))


def numeric(response: str, reference: str, options: Mapping[str, JsonValue], /) -> Outcome:
    """Score 1 if the response's result equals the reference's number, else 0.

    Without a tolerance, the result may have more decimals than the reference if it rounds to it.
    Options: `tolerance` (relative) and `abs_tolerance`, no default; `pick` (`result`: as
    `result_in`; `any`: the nearest number; `first`; `last`).
    """
    wanted, places = _reference_number(reference)
    if wanted is None:
        return Unscored("no_reference", "The reference contains no number to compare with.")
    given = _picked(response, str(options.get("pick", "result")), wanted)
    if given is None:
        return Score(0.0, "no number in the response", 1.0)
    difference = abs(given - wanted)
    relative, absolute = options.get("tolerance"), options.get("abs_tolerance")
    allowed = [float(absolute)] if isinstance(absolute, int | float) else []
    allowed += [float(relative) * abs(wanted)] if isinstance(relative, int | float) else []
    if not allowed:
        allowed = [0.5 * 10.0**-places if places else 0.0]
    near = difference <= max(allowed) * (1 + EPSILON) + EPSILON * abs(wanted)
    return Score(float(near), f"{given:.12g} {'equals' if near else 'is not'} {wanted:.12g}", 1.0)


@lru_cache(maxsize=256)
def _reference_number(reference: str) -> tuple[float | None, int]:
    """Return the reference's number and how many decimals it is written with; a worked solution
    states its result at its end.
    """
    marked = marked_answer(reference)
    text = marked if marked is not None and numbers_in(marked) else reference
    number = _first_number(text)
    decimals = re.search(r"\.([0-9]+)(?![0-9eE×])", text)
    return number, len(decimals[1]) if decimals and not re.search(
        r"[0-9]\s*(?:[eE][-+0-9]|×|\\times)", text
    ) else 0


def _picked(response: str, pick: str, wanted: float) -> float | None:
    if pick == "result":
        return result_in(response)
    numbers = numbers_in(response)
    if not numbers:
        return None
    if pick == "any":
        return min(numbers, key=lambda number: abs(number - wanted))
    return numbers[0] if pick == "first" else numbers[-1]


def closeness(response: str, reference: str, options: Mapping[str, JsonValue], /) -> Outcome:
    """Score how close the response's number is to the reference's first number; 0 if the response
    has no number.

    Options with their defaults: `tolerance` (relative, 0.01), `abs_tolerance` (none; 0.01 if the
    reference is 0), `pick` (`any`: the number that scores best; `first`; `last`), `curve` (`step`
    or `continuous`).
    """
    wanted = _first_number(reference)
    if wanted is None:
        return Unscored("no_reference", "The reference contains no number to compare with.")
    numbers = numbers_in(response)
    if not numbers:
        return Score(0.0, "no number in the response", 1.0)
    tolerance, absolute, continuous = TOLERANCE, (ZERO_TOLERANCE if wanted == 0 else None), False
    if options:
        pick, asked, given = (
            options.get("pick"),
            options.get("abs_tolerance"),
            options.get("tolerance"),
        )
        numbers = numbers[:1] if pick == "first" else numbers[-1:] if pick == "last" else numbers
        absolute = asked if isinstance(asked, int | float) else absolute
        tolerance = float(given) if isinstance(given, int | float) else tolerance
        continuous = options.get("curve") == "continuous"
    differences = [abs(number - wanted) for number in numbers]
    difference = min(differences)
    nearest = numbers[differences.index(difference)]
    error = difference / abs(wanted) if wanted else difference
    note = f"{nearest:g} against {wanted:g}"
    near = bool(wanted) and error <= tolerance + EPSILON
    if near or (absolute is not None and difference <= absolute * (1 + EPSILON)):
        return Score(1.0, f"{note}: within tolerance", 1.0)
    if error >= LIMIT or not math.isfinite(error):
        return Score(0.0, f"{note}: off by {_percent(error)}", 1.0)
    if continuous:
        value = 1 - math.sqrt(max(0.0, error - tolerance) / (LIMIT - tolerance))
    else:
        value = 1 - math.sqrt(error / LIMIT)
    return Score(
        min(1.0, max(0.0, value)), f"{note}: off by {_percent(error)}", max(0.5, 1 - 2 * error)
    )


def _percent(error: float) -> str:
    return f"{100 * error:.3g}%"


def option_problems(options: Mapping[str, JsonValue]) -> Iterator[str]:
    tolerance = options.get("tolerance", TOLERANCE)
    if not _is_number(tolerance) or not 0 <= float(str(tolerance)) <= 1:
        yield f"`tolerance` is {tolerance!r}; it must be a number from 0 to 1, 0.01 for one per cent."
    absolute = options.get("abs_tolerance", 0)
    if not _is_number(absolute) or float(str(absolute)) < 0:
        yield f"`abs_tolerance` is {absolute!r}; it must be a number of at least 0."
    if options.get("pick", "any") not in ("result", "any", "first", "last"):
        yield f"`pick` is {options['pick']!r}; it must be `result`, `any`, `first` or `last`."
    if options.get("curve", "step") not in ("step", "continuous"):
        yield f"`curve` is {options['curve']!r}; it must be `step` or `continuous`."


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
