"""Paths to one value in a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from assay.formats.json_paths import steps_of, value_at

if TYPE_CHECKING:
    from assay.domain.digest import JsonValue

DOCUMENT: JsonValue = {"out": [{"text": "first"}, {"text": "last", "a b": 1}], "n": None}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", DOCUMENT),
        ("$.out[0].text", "first"),
        ("$['out'][-1]['a b']", 1),
        ('$.out[1]["text"]', "last"),
        ("$.n", None),
    ],
)
def test_a_path_names_one_value(path: str, value: JsonValue) -> None:
    assert value_at(DOCUMENT, path) == value


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("$.out[2]", r"has no \$.out\[2\]: \$.out is a list of 2"),
        ("$.out.text", r"\$.out is a list of 2"),
        ("$.nothing", r"\$ is an object with out, n"),
        ("$.n.x", r"\$.n is null"),
    ],
)
def test_a_missing_value_says_how_far_the_document_goes(path: str, reason: str) -> None:
    with pytest.raises(LookupError, match=reason):
        value_at(DOCUMENT, path)


@pytest.mark.parametrize(
    "path", ["out.text", "$..text", "$.out[*]", "$.out[?(@.x)]", "$.out[0:1]", "$.", "$[]", ""]
)
def test_a_path_to_several_values_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"start with|neither"):
        steps_of(path)
