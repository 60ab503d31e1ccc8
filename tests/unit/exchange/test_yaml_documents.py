"""YAML of other harnesses: the values of JSON, within bounds."""

from __future__ import annotations

import pytest

from assay.exchange.parsing.json_values import NotJson
from assay.exchange.parsing.yaml_documents import DEEPEST, parse_yaml

ALIASES = "\n".join(
    ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8))]
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 200_000, f"nested more than {DEEPEST} levels"),
        (ALIASES, "aliases expand to more than 100,000 values"),
        ("a: &a [*a]", "aliases expand to more than 100,000 values"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a: !!int x", "does not fit its tag"),
        ("a: !!bool x", "does not fit its tag"),
        ("a: " + "9" * 5000, "does not fit its tag"),
        ("a: \ud800", "does not fit its tag|special characters|surrogates|invalid"),
    ],
)
def test_a_document_that_would_break_the_reader_is_refused(text: str, problem: str) -> None:
    with pytest.raises(NotJson, match=problem):
        parse_yaml(text.encode("utf-8", "surrogatepass"))


def test_values_are_those_of_json() -> None:
    text = "day: 2026-13-45\n1: =\nlarge: 0x99999999999999999999\nlist: [&a 1.5, *a, true, ~]\n"
    assert parse_yaml(text.encode()) == {
        "day": "2026-13-45",
        "1": "=",
        "large": "0x99999999999999999999",
        "list": [1.5, 1.5, True, None],
    }
