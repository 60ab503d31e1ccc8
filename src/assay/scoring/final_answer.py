"""Extracts final answers to mathematical tasks from responses, and compares them as text.

This module computes only with exact fractions, so it is safe to run in the main process.
Comparisons that need algebra return None and are decided in a child process. Both use the same
comparison of lists, intervals and equations: the child process passes a function that compares
single expressions by algebra.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

MAX_ANSWER: Final = 2_000
"""Longest final answer, in characters; real answers are shorter."""
MAX_TAIL: Final = 20_000
"""Characters at the end of a response that are searched for a final answer, unless it is boxed."""
MAX_NESTING: Final = 40
MAX_ITEMS: Final = 40
MAX_NUMERAL: Final = 600

Leaf: TypeAlias = Callable[[str, str], "bool | None"]
"""Function that returns True if the given and the expected expression are equal, and None if it
cannot decide.
"""

# --- finding --------------------------------------------------------------------------------------

_BOXES: Final = ("\\boxed{", "\\fbox{")
_MARKED: Final = re.compile(
    r"^[ \t]*(?:####|A:)[ \t]*(\S[^\n]*)$|<(?:final_)?answer>\s*(\S[^<>]{0,2000})</(?:final_)?answer>",
    re.MULTILINE,
)
_ANSWER_IS: Final = re.compile(
    r"\banswers?\b(?:\s+(?:is|are|would be|must be)\b\s*:?|\s*\*{0,2}\s*[:=])\s*\*{0,2}[ \t\n]*",
    re.IGNORECASE,
)
_ANNOUNCED_LATER: Final = re.compile(
    r"\bfinal answer is\s*:?\s*\*{0,2}\s*\$?[-\d\\(]", re.IGNORECASE
)
_CONCLUDED: Final = re.compile(
    r"(?:^|(?<=[.\n]))[^\S\n]*(?:Therefore|Thus|So|Hence)\b,?([^.$\\=\n]{1,300}(?:\.\d+[^.$\\=\n]{0,200})?)(?:\.\s|\.?$)"
)
_SEGMENT: Final = re.compile(
    r"\$\$([^$]{1,2000})\$\$|(?<!\\)\$((?:\\.|[^$\\\n]){1,2000})\$|\\\((.{1,2000}?)\\\)|\\\[(.{1,2000}?)\\\]",
    re.DOTALL,
)
_STOP_TOKEN: Final = re.compile(r"<\|(?:im_start|im_end|endoftext|eot_id|end)\|>")
"""Stop markers; any text of a model after one of them is not part of its answer."""
_JOINING: Final = re.compile(
    r"(?:\s|\$|\\\(|\\\)|\\\[|\\\]|\\q?quad|\\[,;! ]|\\text\{\s*,?\s*(?:and|or)\s*\}|\band\b|\bor\b|[,;]){0,40}"
    r"|[\s$}]{0,3}(?:\\text\{)?(?:\s*[A-Za-z()]{1,12}){0,4}\s+and\s*[\s$}]{0,3}"
    r"|[ $]*(?:\\[)\]])?\s*(?:,|and|or)\s*(?:\\[(\[])?[ $]*[A-Za-z](?:_\{?\w\}?)?\s*=\s*"
)
_LINKING: Final = re.compile(
    r".*(?:\b(?:is|are|be|equals|gets?|makes?)\b|=)\s*", re.DOTALL | re.IGNORECASE
)
_LAST_NUMBER: Final = re.compile(r"[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)?\.?\d+(?:/\d+)?\s*%?")


def final_answer(text: str) -> str | None:
    """Return the final answer in a response, at most `MAX_ANSWER` characters long, or None if there
    is none.

    The order of preference is: the last box; `#### …` and `A: …` lines and `<answer>…</answer>`;
    "the answer is …"; the last formula; the whole text if it is short, or the last number of a long
    text.
    """
    if (boxed := _last_boxed(text)) is not None:
        return boxed.strip()[:MAX_ANSWER] or None
    tail = _tail(text)
    if (marked := _last(_MARKED, tail)) is not None:
        return _unwrapped(marked[1] or marked[2])[:MAX_ANSWER]
    if (announced := _last(_ANSWER_IS, tail)) is not None and (rest := tail[announced.end() :]):
        return _said(_sentence(rest))
    if "\n" in tail and len(tail) > 200:
        lines = tail.splitlines()
        return (
            _said(lines[-1]) if _SEGMENT.search(lines[-1]) or len(lines[-1]) <= 200 else _said(tail)
        )
    return _said(tail) if tail else None


def marked_answer(text: str) -> str | None:
    """Return the part of a response that it marks as its final answer, or None if it marks none.

    Marks are a box, a line `#### …` or `A: …`, `<answer>…</answer>` and "the answer is …", as in
    `final_answer`.
    """
    if (boxed := _last_boxed(text)) is not None:
        return boxed.strip()[:MAX_ANSWER] or None
    tail = _tail(text)
    if (marked := _last(_MARKED, tail)) is not None:
        return _unwrapped(marked[1] or marked[2])[:MAX_ANSWER]
    announced = _last(_ANSWER_IS, tail)
    rest = "" if announced is None else tail[announced.end() :]
    return _unwrapped(_sentence(rest)) or None


def _last_boxed(text: str) -> str | None:
    """Return the contents of the last box, unless the response announces another answer after
    it.
    """
    boxed = _boxed(text)
    if boxed is None or _ANNOUNCED_LATER.search(text, max(map(text.rfind, _BOXES))):
        return None
    return boxed


def _tail(text: str) -> str:
    return _STOP_TOKEN.split(text[-MAX_TAIL:], maxsplit=1)[0].strip()


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)


def _boxed(text: str) -> str | None:
    """Return the contents of the last box and of the boxes directly before it (`\boxed{-2} and
    \boxed{1}`).
    """
    boxed: list[str] = []
    end = len(text)
    later_start = -1
    while len(boxed) < MAX_ITEMS:
        start = max(text.rfind(box, 0, end) for box in _BOXES)
        if start < 0:
            break
        opening = text.index("{", start)
        closing = _closing(text, opening)
        for _ in range(0 if boxed else 3):  # another box inside the box
            outer = max(text.rfind(box, 0, start) for box in _BOXES)
            outer_opening = text.index("{", outer) if outer >= 0 else -MAX_TAIL
            if (
                outer_opening < start - MAX_ANSWER
                or (outer_closing := _closing(text, outer_opening)) < closing
            ):
                break
            start, opening, closing = outer, outer_opening, outer_closing
        if boxed and not (
            closing < later_start and _JOINING.fullmatch(text[closing + 1 : later_start][:120])
        ):
            break
        boxed.append(text[opening + 1 : closing])
        end = later_start = start
    return ", ".join(reversed(boxed)) if boxed else None


def _closing(text: str, opening: int) -> int:
    """Return the index of the closing brace, or the end of the searched text if there is no closing
    brace.
    """
    depth = 0
    stop = min(len(text), opening + MAX_TAIL)
    for place in range(opening, stop):
        if text[place] == "{":
            depth += 1
        elif text[place] == "}":
            depth -= 1
            if depth == 0:
                return place
    return stop


def _sentence(rest: str) -> str:
    """Return the first sentence after "the answer is"; a decimal point does not end it."""
    rest = rest[:MAX_ANSWER].split("\n\n")[0]
    return re.split(r"(?<=[^\s.])\.(?:\s+(?=[A-Z<])|\s*$)", rest, maxsplit=1)[0]


def _said(sentence: str) -> str | None:
    """Return the answer in a sentence: its last formulas, or the words after its last "is", or a
    short sentence as a whole.
    """
    sentence = sentence.strip()[-MAX_ANSWER:]
    segments = list(_SEGMENT.finditer(sentence))
    if segments:
        after = sentence[segments[-1].end() :]
        if (concluded := _last(_CONCLUDED, after)) and len(
            numbers := _LAST_NUMBER.findall(concluded[1])
        ) == 1:
            return str(numbers[0]).strip()
        spoken = re.search(r"\b(?:is|are|equals)\s+([-\d].*)", after, re.DOTALL)
        if spoken:
            return _unwrapped(spoken[1])
        if unit := re.fullmatch(r"\s*(%|percent(?:age)?|pct)\W*", after):
            return _inside(segments[-1]) + unit[1]
        joined = [_inside(segments[-1])]
        for before, later in zip(reversed(segments[:-1]), reversed(segments[1:]), strict=False):
            gap = sentence[before.end() : later.start()]
            if len(gap) > 120 or not _JOINING.fullmatch(gap) or not gap.strip():
                break
            joined.append(_inside(before))
        return ", ".join(reversed(joined))
    linked = (
        _LINKING.match(sentence) if re.search(r"(?<![A-Za-z])[A-Za-z]{3,},? ", sentence) else None
    )
    rest = _unwrapped(sentence[linked.end() :] if linked else sentence)
    if not re.search(r"(?<![A-Za-z])[A-Za-z]{3,}\s+[A-Za-z]{2,}", rest) and len(rest) <= 200:
        return rest or None
    numbers = _LAST_NUMBER.findall(rest)
    return numbers[-1].strip() if numbers else rest[-200:] or None


def _inside(segment: re.Match[str]) -> str:
    return next(group for group in segment.groups() if group is not None).strip()


def _unwrapped(text: str) -> str:
    text = text.strip().strip("*`").strip()
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text


# --- one way of writing ---------------------------------------------------------------------------

_UNICODE: Final = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "×": "\\times ",
        "·": "\\cdot ",
        "⋅": "\\cdot ",
        "÷": "/",
        "²": "^2",
        "³": "^3",
        "π": "\\pi ",
        "∞": "\\infty ",
        "≤": "\\leq ",
        "≥": "\\geq ",
        "≠": "\\neq ",
        "±": "\\pm ",
        "∅": "\\emptyset ",
        "ℝ": "\\mathbb{R}",
        "…": "...",
        "∪": "\\cup ",
        "∩": "\\cap ",
        "∈": "\\in ",
        "½": "\\frac{1}{2}",
        "¼": "\\frac{1}{4}",
        "¾": "\\frac{3}{4}",
        "°": "",
        "\u00a0": " ",
        "\u202f": " ",
        "\u2009": " ",
    }
)
_WRAPPERS: Final = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|operatorname|boxed|fbox)\s*\{([^{}]*)\}"
)
_ABOUT: Final = re.compile(
    r"(?:\\approx|\\sim|≈|~|(?:approximately|approx\.?|about|roughly)\s)\s*(?=\S)", re.IGNORECASE
)
_EMPTY_SET: Final = re.compile(r"\\varnothing|\\emptyset|\\?\{\s*\\?\}")
_ALL_REALS: Final = re.compile(r"\\mathbb\s*(?:\{\s*R\s*\}|R)")
_POWER_OF: Final = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_COUNTED: Final = re.compile(rf"(?<=[\d.])\s*({'|'.join(_POWER_OF)})\b", re.IGNORECASE)
_SPELLED: Final = (
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
    "twenty",
)
_SPACES: Final = re.compile(
    r"(?<!\\)\\[,;:! ]|\\q?quad(?![a-z])|\\(?:left|right|big|Big|displaystyle|limits)(?![a-zA-Z])|~"
)


def written_plainly(text: str) -> str:
    """Remove everything that does not change an answer's meaning: delimiters, spacing, `\\text`,
    degrees, dollar signs.
    """
    text = (
        _ABOUT.sub("", text.translate(_UNICODE).strip(), count=1)
        if _ABOUT.match(text)
        else text.translate(_UNICODE).strip()
    )
    text = re.sub(r"√\s*(\d+)", r"\\sqrt{\1}", text)
    if "\\begin" not in text:
        text = re.sub(r"\\\\(?=[A-Za-z({\[])", r"\\", text)
    text = re.sub(r"\\[()\[\]]|\\?\$|\\displaystyle", "", text)
    text = re.sub(r"(?<=\d)(?:\\!|\{,\}\s?|,\\!\s?)+(?=\d{3})", ",", text)
    text = re.sub(r"(?<=\d),\\!\s*(?=\d{3})", ",", text)
    text = _SPACES.sub(" ", text)
    for _ in range(6):
        text, count = _WRAPPERS.subn(r" \1 ", text)
        if not count:
            break
    text = re.sub(
        r"\^\s*(?:\{\s*\\circ\s*\}|\\circ|(?<=\d\^)o\b|\{o\})|\\degree|\\%",
        lambda m: "%" if m[0] == "\\%" else "",
        text,
    )
    text = re.sub(r"\\[dtc]frac(?![a-z])", r"\\frac", text)
    text = re.sub(r"(?i)(?<=[\d}])\s*(?:percent(?:age)?|pct)\b", "%", text)
    text = re.sub(r"\\(le|ge|ne)(?![a-z])", r"\\\1q", text)
    text = text.replace("<=", "\\leq ").replace(">=", "\\geq ").replace("!=", "\\neq ")
    text = _COUNTED.sub(lambda m: f"\\times 10^{{{_POWER_OF[m[1].lower()]}}}", text)
    text = re.sub(r"(?<![\d.,/])\d{1,3}(?: \d{3})+(?![\d/])", lambda m: m[0].replace(" ", ""), text)
    text = re.sub(r"\+\s*/?\s*-(?=\s*[\d\\(])", r"\\pm ", text)
    text = re.sub(r"(?<=\d)\s*[€£¥]$", "", text)
    text = re.sub(r"(?<=\d)(or|and)(?=[A-Z(\\])", r" \1 ", text)
    text = re.sub(r"\s+", " ", text).strip().strip("“”").removeprefix("=").strip()
    text = re.sub(
        r"^\\langle(?![a-z])(.*,.*)\\rangle$|^<([^<>]*,[^<>]*)>$",
        lambda m: f"({(m[1] or m[2]).strip()})",
        text,
    )
    if outward := re.fullmatch(r"([\[\]])([^\[\]]*,[^\[\]]*)([\[\]])", text):  # ]0, 1] means (0, 1]
        text = f"{'(' if outward[1] == ']' else '['}{outward[2]}{')' if outward[3] == '[' else ']'}"
    text = _unwrapped(text).strip(" ;,") if not text.endswith("...") else text
    if _EMPTY_SET.fullmatch(text):
        return "\\emptyset"
    if _ALL_REALS.fullmatch(text) or text.lower() in ("all real numbers", "all reals"):
        return "(-\\infty,\\infty)"
    return str(_SPELLED.index(text.lower())) if text.lower() in _SPELLED else text


def nesting(text: str) -> int:
    """Return the nesting depth of braces, brackets and parentheses."""
    depth = deepest = 0
    for character in text:
        if character in "{[(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}])":
            depth -= 1
    return deepest


# --- numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number as it was written; `places` counts its digits after the decimal point, None for
    integers and fractions.
    """

    value: Fraction
    places: int | None = None
    percent: bool = False
    unit: str = ""


_DIGITS: Final = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_NUMERAL: Final = rf"(?:{_DIGITS}(?:\.\d*)?|\.\d+)"
_NUMBER: Final = re.compile(
    rf"(?P<sign>[-+]?)\s*+[€£¥]?\s*+(?:"
    rf"(?P<whole>\d+)?\s*+\\frac\s*+(?:\{{\s*(?P<above>-?{_DIGITS})\s*\}}|(?P<above1>\d))\s*(?:\{{\s*(?P<below>{_DIGITS})\s*\}}|(?P<below1>\d))"
    rf"|(?P<over>{_DIGITS})\s*/\s*(?P<under>{_DIGITS})"
    rf"|(?P<mixed>\d+)\s+(?P<mixed_over>\d+)\s*/\s*(?P<mixed_under>\d+)"
    rf"|(?P<numeral>{_NUMERAL})(?:[eE](?P<exponent>[-+]?\d{{1,3}})|\s*(?:\\times|\\cdot|\*)\s*10\s*\^\s*(?:\{{\s*(?P<power>[-+]?\d{{1,3}})\s*\}}|(?P<power1>\d)))?"
    rf")\s*(?P<percent>%)?\s*(?P<unit>.*)",
    re.DOTALL,
)
_SHORT_UNITS: Final = frozenset(
    {
        "m",
        "s",
        "g",
        "l",
        "L",
        "h",
        "A",
        "V",
        "W",
        "J",
        "N",
        "K",
        "C",
        "F",
        "hr",
        "hrs",
        "min",
        "sec",
        "cm",
        "mm",
        "km",
        "kg",
        "mg",
        "ml",
        "mL",
        "ft",
        "in",
        "yd",
        "mi",
        "lb",
        "oz",
        "mph",
        "kph",
        "km/h",
        "m/s",
    }
)
_NO_UNITS: Final = frozenset(
    {
        "pi",
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "log",
        "ln",
        "exp",
        "sqrt",
        "oo",
        "inf",
        "and",
        "or",
        "mod",
    }
)
_SAME_UNIT: Final = {
    "hrs": "h",
    "hr": "h",
    "hour": "h",
    "hours": "h",
    "meter": "m",
    "meters": "m",
    "metre": "m",
    "metres": "m",
    "centimeter": "cm",
    "centimeters": "cm",
    "kilometer": "km",
    "kilometers": "km",
    "second": "s",
    "seconds": "s",
    "minute": "min",
    "minutes": "min",
    "gram": "g",
    "grams": "g",
    "kilogram": "kg",
    "kilograms": "kg",
}
_KNOWN_UNITS: Final = frozenset({*_SHORT_UNITS, *_SAME_UNIT})
_MEASURES: Final = frozenset(
    {
        "cm",
        "mm",
        "km",
        "kg",
        "mg",
        "ml",
        "mL",
        "ft",
        "yd",
        "mi",
        "min",
        "sec",
        "inches",
        "feet",
        "miles",
        "units",
        "m",
        "s",
        "g",
        "h",
        "m/s",
    }
)
"""Units that are removed after an expression; single letters are not among them, because they may
be names.
"""


def number_in(text: str) -> Number | None:
    """Return the number that a text consists of, ignoring its unit; None if the text is not a
    number.
    """
    if len(text) > MAX_NUMERAL:
        return None
    if repeating := _REPEATING.fullmatch(text):
        return _repeating(repeating)
    if not (match := _NUMBER.fullmatch(text)):
        return None
    unit = match["unit"].strip()
    if unit and not _is_unit(
        unit, attached=not match["unit"][:1].isspace() and text[match.start("unit") - 1] != " "
    ):
        return None
    places = None
    if match["above"] or match["above1"]:
        below = _whole(match["below"] or match["below1"])
        value = Fraction(_whole(match["above"] or match["above1"]), below) if below else None
        if value is not None and match["whole"]:
            value += int(match["whole"])
    elif match["over"]:
        value = (
            Fraction(_whole(match["over"]), under) if (under := _whole(match["under"])) else None
        )
    elif match["mixed"]:
        under = int(match["mixed_under"])
        value = int(match["mixed"]) + Fraction(int(match["mixed_over"]), under) if under else None
    else:
        numeral = re.sub(r",\s?", "", match["numeral"])
        exponent = int(match["exponent"] or match["power"] or match["power1"] or 0)
        value = Fraction(f"0{numeral}") * Fraction(10) ** exponent
        places = len(numeral.partition(".")[2]) - exponent if "." in numeral else None
    if value is None:
        return None
    return Number(
        value=-value if match["sign"] == "-" else value,
        places=places,
        percent=bool(match["percent"]),
        unit=unit,
    )


_REPEATING: Final = re.compile(
    r"(?P<sign>[-+]?)\s*(?P<whole>\d*)\.(?P<fixed>\d*?)(?:\\(?:overline|bar|dot)\s*\{?\s*(?P<period>\d+)\s*\}?"
    r"|(?P<again>(?P<digit>\d)(?P=digit){2,})\s*(?:\.{3}|\\(?:l|c)?dots))\s*(?P<percent>%)?"
)
"""Repeating decimals: `0.1\\overline{6}`, and `0.333...` if the last digit is written three times
or more.
"""


def _repeating(match: re.Match[str]) -> Number:
    whole, fixed, period = match["whole"] or "0", match["fixed"], match["period"] or match["digit"]
    shift = 10 ** len(fixed)
    value = Fraction(int(whole + fixed), shift) + Fraction(
        int(period), (10 ** len(period) - 1) * shift
    )
    return Number(value=-value if match["sign"] == "-" else value, percent=bool(match["percent"]))


def _whole(numeral: str) -> int:
    return int(re.sub(r",\s?", "", numeral))


def _is_unit(unit: str, *, attached: bool) -> bool:
    bare = re.sub(r"\^\{?[23]\}?|\b(?:square|cubic|sq\.?|cu\.?)\s", "", unit).strip().rstrip(".")
    if bare in _SHORT_UNITS:
        return True
    words = bare.replace("/", " ").split()
    if not words or len(words) > 6 or (attached and bare not in _KNOWN_UNITS and len(bare) < 3):
        return False
    return all(
        re.fullmatch(r"[A-Za-z]{2,}\.?|a", word) and word.lower() not in _NO_UNITS for word in words
    )


def _same_numbers(given: Number, wanted: Number) -> bool:
    ours, theirs = (_SAME_UNIT.get(number.unit, number.unit) for number in (given, wanted))
    if ours != theirs and ours in _KNOWN_UNITS and theirs in _KNOWN_UNITS:
        return False
    if given.percent is wanted.percent:
        return _equal(given, wanted, Fraction(1))
    return _equal(given, wanted, Fraction(1)) or _equal(
        given, wanted, Fraction(1, 100) if given.percent else Fraction(100)
    )


def _equal(given: Number, wanted: Number, factor: Fraction) -> bool:
    """True if two numbers are equal, or if one is the other rounded to at least six decimal places,
    such as 0.0833333 and 1/12.
    """
    value = given.value * factor
    if value == wanted.value:
        return True
    places = [number.places for number in (given, wanted) if number.places is not None]
    return (
        len(places) == 1
        and places[0] >= 6
        and abs(value - wanted.value) <= Fraction(1, 10 ** min(places[0], 400))
    )


# --- comparing ------------------------------------------------------------------------------------

_LISTED: Final = re.compile(
    r"(?:\\?(?P<open>[{(\[]))(?P<inner>.*?)(?:\\?(?P<close>[})\]]))", re.DOTALL
)
_MATH_WORDS: Final = frozenset({*_NO_UNITS, "infty", "infinity"})
_WORDS: Final = re.compile(r"[A-Za-z][A-Za-z'’ -]*")


def same_answer(given: str, wanted: str, *, leaf: Leaf | None = None) -> bool | None:
    """Compare two final answers as text; None if undecided.

    `leaf` compares expressions that are neither numbers nor words.
    """
    return _same(written_plainly(given), written_plainly(wanted), leaf, 0)


def _same(given: str, wanted: str, leaf: Leaf | None, level: int) -> bool | None:
    if given == wanted or _closed_up(given) == _closed_up(wanted):
        return bool(given)
    if not given or not wanted:
        return False
    ours, theirs = number_in(given), number_in(wanted)
    if level == 0 and (_DECIMAL_COMMA.fullmatch(given) or _DECIMAL_COMMA.fullmatch(wanted)):
        ours, theirs = _with_decimal_comma(given, wanted) or (ours, theirs)
    if ours and theirs:
        return _same_numbers(ours, theirs)
    if (decided := _same_words(given, wanted)) is not None:
        return decided
    bases = [_BASED.fullmatch(text) for text in (given, wanted)]
    if bases[0] and bases[1]:
        return bases[0].groups() == bases[1].groups()
    grids = [_grid(text) for text in (given, wanted)]
    if level < 2 and grids[0] and grids[1]:
        return _same_grids(grids[0], grids[1], leaf, level)
    if (bare := _without_units(given, wanted)) != (given, wanted):
        return _same(*bare, leaf, level) if all(bare) else False
    if level == 0:
        given, wanted = _as_tuples(given), _as_tuples(wanted)
    if level < 4:
        given, wanted = _sides(given, wanted)
        if (listed := _same_lists(given, wanted, leaf, level)) is not None:
            return listed[0]
        ours, theirs = number_in(given), number_in(wanted)
        if ours and theirs:
            return _same_numbers(ours, theirs)
    given, wanted = (_without_commas(text) for text in (given, wanted))
    if leaf is None and (theirs or ours) and _is_wordy(given if theirs else wanted):
        return False
    return leaf(given, wanted) if leaf else None


_DECIMAL_COMMA: Final = re.compile(r"[-+]?(?:\d+,(?!\d{3}(?!\d))\d+|0,\d+)")
_DECIMAL_POINT: Final = re.compile(r"[-+]?\d*\.\d+")


def _with_decimal_comma(given: str, wanted: str) -> tuple[Number, Number] | None:
    """Return both as numbers if one is written 1,22 and the other 1.22.

    In all other cases `1,22` is a list.
    """
    for comma, point in ((given, wanted), (wanted, given)):
        if _DECIMAL_COMMA.fullmatch(comma) and _DECIMAL_POINT.fullmatch(point):
            read, other = number_in(comma.replace(",", ".")), number_in(point)
            return (read, other) if read and other else None
    return None


def _closed_up(text: str) -> str:
    """Remove blanks, except a blank between two numbers: 3 1/2 is not 31/2."""
    return re.sub(r"(?<!\d) | (?!\d)", "", text)


def _without_commas(text: str) -> str:
    """Remove the thousands separators from a number; leave anything else unchanged."""
    number = number_in(text) if "," in text else None
    return text.replace(",", "") if number is not None and not number.unit else text


_BASED: Final = re.compile(r"(\w+?)_\{?\s*(\d{1,2})\s*\}?")
"""A numeral in a base: `110_2`. Algebra would drop the base."""

_UNIT_BEHIND: Final = re.compile(
    r"(?P<rest>.+) (?P<unit>[A-Za-z]{1,12}(?:/[a-z]{1,4})?) ?(?:\^ ?\{?[23]\}?)?", re.DOTALL
)


def _without_units(given: str, wanted: str) -> tuple[str, str]:
    """Return both expressions (such as `6\\pi cm^2`) without known units, or empty texts if their
    units differ.
    """
    matches = [
        match
        if (match := _UNIT_BEHIND.fullmatch(text))
        and _SAME_UNIT.get(match["unit"], match["unit"]) in _MEASURES
        and re.search(r"\\[a-z]+|[})]\s*$|[A-Za-z]\d*\s*$", match["rest"])
        else None
        for text in (given, wanted)
    ]
    units = {_SAME_UNIT.get(match["unit"], match["unit"]) for match in matches if match}
    if len(units) > 1:
        return "", ""
    bare = [
        match["rest"].strip() if match else text
        for match, text in zip(matches, (given, wanted), strict=True)
    ]
    return bare[0], bare[1]


_GRID: Final = re.compile(
    r"\\begin\s*\{(?P<kind>[pbB]?matrix|smallmatrix|array)\}(?:\s*\{[clr| ]*\})?(?P<inner>.*)\\end\s*\{(?P=kind)\}",
    re.DOTALL,
)


def _grid(text: str) -> list[list[str]] | None:
    """Return the cells of a matrix row by row; it may be written in LaTeX or as nested lists.

    None for anything else.
    """
    match = _GRID.fullmatch(text.strip("()[] ") if "\\begin{array}" in text else text)
    if match and "\\begin" not in match["inner"]:
        rows = [row for row in re.split(r"\\\\|\\cr(?![a-z])", match["inner"]) if row.strip()]
        cells = [[cell.strip() for cell in row.split("&")] for row in rows]
    elif re.fullmatch(r"\[\s*\[[^\[\]]*\](?:\s*,\s*\[[^\[\]]*\])*\s*\]", text):
        cells = [
            [cell.strip() for cell in row.split(",")]
            for row in re.findall(r"\[([^\[\]]*)\]", text[1:-1])
        ]
    else:
        return None
    return cells if 0 < sum(len(row) for row in cells) <= 4 * MAX_ITEMS else None


def _same_grids(
    given: list[list[str]], wanted: list[list[str]], leaf: Leaf | None, level: int
) -> bool | None:
    if [len(row) for row in given] != [len(row) for row in wanted]:
        return False
    pairs = [pair for rows in zip(given, wanted, strict=True) for pair in zip(*rows, strict=True)]
    return _all(_same(a, b, leaf, level + 2) for a, b in pairs)


def _same_words(given: str, wanted: str) -> bool | None:
    """Compare words ignoring case, and single letters exactly; None if either text is not made of
    words.

    The letter of a multiple-choice answer may be given with its text: `B) Paris`, `option B`,
    `(b)`.
    """
    if (choices := _choices(given, wanted)) is not None:
        return choices[0] == choices[1]
    bare = [re.sub(r"^\(([A-Za-z])\)$", r"\1", text).strip("\"'“”() ") for text in (given, wanted)]
    if not all(_is_wordy(text) or re.fullmatch(r"[A-Za-z]", text) for text in bare):
        return None
    if all(len(text) == 1 for text in bare):
        return bare[0] == bare[1]
    ours, theirs = (
        re.sub(r"^(?:the|an?) ", "", " ".join(text.casefold().split())) for text in bare
    )
    return ours == theirs


_CHOICE: Final = re.compile(
    r"\(?([A-J])(?:\)|[:.](?=\s))\s*\S.*|(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s+\(?([A-Ja-j])\)?|\(([a-j])\)",
    re.DOTALL,
)


def _choices(given: str, wanted: str) -> tuple[str, str] | None:
    """Return the letters of two multiple-choice answers, if at least one has text next to its
    letter; otherwise None.
    """
    letters = []
    for text in (given, wanted):
        match = _CHOICE.fullmatch(text) or re.fullmatch(r"\(?([A-J])\)?", text)
        if match is None:
            return None
        letters.append(next(filter(None, match.groups())).upper())
    return (
        (letters[0], letters[1]) if _CHOICE.fullmatch(given) or _CHOICE.fullmatch(wanted) else None
    )


def _is_wordy(text: str) -> bool:
    words = text.split()
    return (
        bool(_WORDS.fullmatch(text))
        and all(len(w) > 1 for w in words)
        and words[0].lower() not in _MATH_WORDS
    )


_NAMED_GROUP: Final = re.compile(
    r"\s*[A-Za-z](?:_\{?\w\}?)?\s*=[^=,;]{1,80}(?:,\s*[A-Za-z](?:_\{?\w\}?)?\s*=[^=,;]{1,80})+"
)


def _as_tuples(text: str) -> str:
    """Convert `p=5,q=2;p=7,q=2` to `(5,2),(7,2)`; return any other text unchanged."""
    groups = text.split(";")
    if (
        len(groups) < 2
        or len(groups) > MAX_ITEMS
        or not all(_NAMED_GROUP.fullmatch(group) for group in groups)
    ):
        return text
    named = [[part.partition("=") for part in group.split(",")] for group in groups]
    if len({tuple(name.strip() for name, _, _ in group) for group in named}) > 1:
        return text
    return ", ".join(f"({', '.join(value.strip() for _, _, value in group)})" for group in named)


def _sides(given: str, wanted: str) -> tuple[str, str]:
    r"""Return both sides without an `x =` or `x \in` that only one has or both share; equation
    chains keep only their ends.
    """
    (left, right), (wanted_left, wanted_right) = _equation(given), _equation(wanted)
    if left and wanted_left:
        same = left.replace(" ", "") == wanted_left.replace(" ", "") or _same_function(
            left, wanted_left, right + wanted_right
        )
        return (right, wanted_right) if same else (given, wanted)
    # 3 + 4 = 7 gives 7
    if left and (_is_name(left) or not re.search("[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", left))):
        return right, wanted
    if wanted_left and _is_name(wanted_left):
        return given, wanted_right
    return given, wanted


def _same_function(left: str, wanted_left: str, values: str) -> bool:
    """True for `W(n)` and `W(x)`, if their values contain no variable."""
    names = [
        re.fullmatch(r"\s*([A-Za-z])\s*\(\s*[A-Za-z]\s*\)\s*", side) for side in (left, wanted_left)
    ]
    return (
        all(names)
        and len({match[1] for match in names if match}) == 1
        and not re.search("[A-Za-z]", values)
    )


def _equation(text: str) -> tuple[str, str]:
    if tuple_named := re.match(r"\(\s*[A-Za-z](?:\s*,\s*[A-Za-z])+\s*\)\s*=\s*(?=[({\[\\])", text):
        return "x", text[tuple_named.end() :]
    if re.search(r"[,;]|\b(?:and|or)\b", text):
        if text.count("=") > 1:
            return "", text
        member = re.match(r"\s*([A-Za-z](?:_\{?\w+\}?)?)\s*(?:\\in\b|=)\s*(?=\S)", text)
        return (member[1], text[member.end() :]) if member else ("", text)
    # the `k=0` of a sum
    shielded = re.sub(r"_\s*\{[^{}]*\}", lambda index: index[0].replace("=", "\0"), text)
    parts = [part.replace("\0", "=") for part in re.split(r"(?<![<>!\\])=|\\in(?![a-z])", shielded)]
    if (
        len(parts) == 2
        and re.fullmatch(r"\s*[A-Za-z]\s*", parts[1])
        and number_in(parts[0].strip())
    ):
        parts.reverse()  # 10 = x
    return (
        (parts[0].strip(), parts[-1].strip())
        if len(parts) > 1 and parts[-1].strip()
        else ("", text)
    )


def _is_name(left: str) -> bool:
    r"""True if the left side of an equation only names the answer: `x`, `f(x)`, `\frac{NO}{BO}`,
    `V_1:V_2`, but not `2x+3`.
    """
    left = re.sub(r"_\{\w{1,3}\}", "", left)
    return (
        bool(re.search(r"[A-Za-z]", left))
        and not re.search(r"[+^]|(?<!\w)\d|-", left)
        and len(left) <= 60
    )


def _same_lists(
    given: str, wanted: str, leaf: Leaf | None, level: int
) -> tuple[bool | None] | None:
    """Compare two lists, and return the result in a tuple; None if they are not both lists.

    `{…}` and lists without brackets are unordered, unless the other side is ordered. Lists in round
    or square brackets are ordered, and the brackets must agree, because they may be the ends of an
    interval.
    """
    if re.search(r"\\(?:cup|begin|[lg]eq)|[<>]", given + wanted):
        return None
    ours, theirs = _items(given), _items(wanted)
    if len(ours[1]) < 2 and len(theirs[1]) < 2:
        if (
            ours[0] == theirs[0]
            or not (ours[0] or theirs[0])
            or (ours[1], theirs[1]) == ([given], [wanted])
        ):
            return None
        if {ours[0], theirs[0]} <= {"", "{}"} and leaf is not None:
            return (_same(ours[1][0], theirs[1][0], leaf, level + 1),)
        return None
    if len(ours[1]) != len(theirs[1]) and all(
        item.startswith("(") for item in (*ours[1], *theirs[1])
    ):
        ours, theirs = (
            (brackets, [*{_closed_up(item): item for item in items}.values()])
            for brackets, items in (ours, theirs)
        )
    if len(ours[1]) != len(theirs[1]) or len(ours[1]) > MAX_ITEMS:
        return (
            None
            if leaf is None and len(ours[1]) != len(theirs[1]) and "=" in given + wanted
            else (False,)
        )
    ordered = {"()", "[]", "[)", "(]"}
    if ours[0] in ordered and theirs[0] in ordered and ours[0] != theirs[0]:
        return (False,)
    if ours[0] in ordered or theirs[0] in ordered:
        return (
            _all(_same(a, b, leaf, level + 1) for a, b in zip(ours[1], theirs[1], strict=True)),
        )
    return (_matched(ours[1], theirs[1], leaf, level),)


def _all(answers: Iterable[bool | None]) -> bool | None:
    answers_ = list(answers)
    return False if False in answers_ else None if None in answers_ else True


def _matched(given: list[str], wanted: list[str], leaf: Leaf | None, level: int) -> bool | None:
    """True if the items of both lists can be paired one to one so that each pair is equal."""
    left = list(wanted)
    unsure = False
    for item in given:
        answers = [_same(item, other, leaf, level + 1) for other in left]
        if True in answers:
            left.pop(answers.index(True))
        elif None in answers:
            unsure = True
        else:
            return False
    return None if unsure else True


def _items(text: str) -> tuple[str, list[str]]:
    r"""Return a list's brackets (or "") and its items, separated by commas, `and` or `or`; `\pm`
    gives two items.
    """
    if number_in(text):
        return "", [text]
    brackets = ""
    match = _LISTED.fullmatch(text)
    if match and _closing_bracket(text) == len(text) - 1:
        brackets = match["open"] + match["close"]
        text = match["inner"].rstrip("\\")
    depth = 0
    items = [""]
    for part in re.split(r"([,;{}()\[\]]|\b(?:and|or)\b)", text):
        if part in ("{", "(", "["):
            depth += 1
        elif part in ("}", ")", "]"):
            depth -= 1
        if depth <= 0 and part in (",", ";", "and", "or"):
            items.append("")
        else:
            items[-1] += part
    items = [stripped for item in items if (stripped := item.strip().rstrip("\\").strip())]
    items = [sign for item in items for sign in _both_signs(item)]
    return brackets, items[: MAX_ITEMS + 1] or [text]


def _closing_bracket(text: str) -> int:
    depth = 0
    for place, character in enumerate(text):
        if character in "{([":
            depth += 1
        elif character in "})]":
            depth -= 1
            if depth == 0:
                return place
    return -1


def _both_signs(item: str) -> list[str]:
    item = item if "\\pm" in item or item.count("\\mp") != 1 else item.replace("\\mp", "\\pm")
    if item.count("\\pm") != 1 or "\\mp" in item:
        return [item]
    return [item.replace("\\pm", "+").lstrip("+ "), item.replace("\\pm", "-")]
