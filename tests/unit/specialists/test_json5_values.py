"""JSON5 texts: the same values as json-five reads, and bounded time for hostile ones."""

from __future__ import annotations

import math
import time
from contextlib import suppress

import json5
import pytest

from assay.specialists.json5_values import (
    MAX_TOKENS,
    Json5Error,
    TooLarge,
    is_editable,
    read_json5_value,
)
from assay.specialists.templates import LARGEST_TEMPLATE

VALID = (
    *(
        "1",
        "1.0",
        "1.",
        ".5",
        "+1",
        "-0",
        "-0.0",
        "0x1F",
        "-0x1F",
        "1e3",
        "1E-2",
        "5.e3",
        "12345678901234567890",
        "-Infinity",
    ),
    *(
        '"a\\\nb"',
        '"\\0"',
        '"\\x41"',
        "'it\\'s'",
        '"\\q"',
        '"\\1"',
        '"\\u0041"',
        "'\\\"'",
        '"\\\r\nx"',
        '""',
        '"\t"',
        '"Größe"',
    ),
    *(
        "{'a':1,a:2,}",
        "[1,]",
        "[]",
        "{}",
        "{a\\u0062:1}",
        "{$a_1:1}",
        "{é:1}",
        '{"a\\u0062":1}',
        '{"":1}',
        "{a:[{b:[]}]}",
    ),
    *(
        "true",
        "[false,null]",
        '{"a":1}//x',
        "/*x*/[]",
        "/**/1/***/",
        "\ufeff[1]",
        "\u00a0[1]\u2028",
        '{"a" : 1}',
        "[1/**/,2]",
    ),
)
INVALID = (
    *(
        "",
        "01",
        "00",
        "1_0",
        "--1",
        "- 1",
        "0x",
        "1e",
        ".",
        "a",
        "undefined",
        '"a\nb"',
        '"x',
        "/* x",
        "/*/1",
        "9" * 5000,
    ),
    *(
        "[,]",
        "[1,,2]",
        "[1 2]",
        "[1]]",
        "[",
        '["a" "b"]',
        "{,}",
        "{a:1,,}",
        "{:1}",
        "{a:}",
        "{a:1 b:2}",
        "{1:2}",
        "{a-b:1}",
        "{a",
    ),
)


@pytest.mark.parametrize("text", VALID)
def test_a_text_has_the_value_that_json_five_reads(text: str) -> None:
    value, expected = read_json5_value(text), json5.loads(text)
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize("text", INVALID)
def test_a_text_that_json_five_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        json5.loads(text)
    with pytest.raises(Json5Error, match=r"line \d+, column \d+\.$"):
        read_json5_value(text)


def test_halves_of_a_character_stay_apart_and_nan_is_read() -> None:
    assert read_json5_value('"\\ud83d"') == "\ud83d"
    number = read_json5_value("NaN")
    assert isinstance(number, float)
    assert math.isnan(number)


SIZE = LARGEST_TEMPLATE
HOSTILE = {
    "numbers": "[" + "1," * (SIZE // 2) + "]",
    "brackets": "[" * SIZE,
    "braces": "{a:" * (SIZE // 3),
    "names": "{" + "a:1," * (SIZE // 4) + "}",
    "half a text": '"' + "\\n" * (SIZE // 2),
    "escapes": '"' + "\\u0041" * (SIZE // 6) + '"',
    "quotes": '"' * SIZE,
    "half a comment": "/*" + "*" * SIZE,
    "comments": "/**/" * (SIZE // 4),
    "half comments": "/*" * (SIZE // 2),
    "digits": "9" * SIZE,
    "signs": "+" * SIZE,
    "points": "." * SIZE,
    "spaces": " " * SIZE,
    "escaped names": "\\u004" * (SIZE // 5),
}


@pytest.mark.parametrize("kind", list(HOSTILE))
def test_the_largest_hostile_text_takes_little_processor_time(kind: str) -> None:
    started = time.process_time()
    with suppress(Json5Error, TooLarge):
        read_json5_value(HOSTILE[kind])
    is_editable(HOSTILE[kind])
    assert time.process_time() - started < 3, "each takes less than 0.3 s on an idle machine"


def test_the_bound_is_on_what_a_text_contains_and_not_on_its_layout() -> None:
    numbers = ["1"] * (MAX_TOKENS // 2 - 2)
    spread = f"[{' , /**/ '.join(numbers)}]"
    assert read_json5_value(spread) == [1] * len(numbers)
    assert not is_editable(spread)
    with pytest.raises(TooLarge, match="more than 20,000"):
        read_json5_value(f"[{','.join(numbers * 2)}]")
