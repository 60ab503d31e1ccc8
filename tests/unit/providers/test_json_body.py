"""Bodies to bytes and back."""

from __future__ import annotations

import math
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from assay.domain.suite import Message
from assay.providers.json_body import UnreadableBody, dump, parse, whole


def test_records_become_objects_also_where_the_fast_way_fails() -> None:
    for text in ("plain", "half \ud83d"):
        body = {
            "messages": (Message(role="user", content=text),),
            "schema": MappingProxyType({"a": 1}),
        }
        assert parse(dump(body))["schema"] == {"a": 1}
        assert parse(dump(body))["messages"][0]["role"] == "user"


def test_json_body_accepts_nan_and_lone_surrogates() -> None:
    assert math.isnan(parse(b'{"a": NaN}')["a"])
    assert parse(b'"\\ud83d"') == "\ud83d"


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b"\xff", b"[" * 100_000])
def test_unreadable_json_body_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableBody):
        parse(body)


@given(st.text(st.characters(codec=None)))
def test_whole_text_can_be_stored(text: str) -> None:
    stored = whole(text)
    stored.encode()
    assert "\0" not in stored


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_text_that_can_be_stored_is_left_alone(text: str) -> None:
    assert whole(text) == text
