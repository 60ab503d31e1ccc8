"""Server-sent events."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.providers.events import Event, events_in


def read(pieces: list[bytes]) -> list[Event]:
    waiting = [piece for piece in pieces if piece]

    async def next_piece() -> bytes:
        return waiting.pop(0) if waiting else b""

    async def go() -> list[Event]:
        return [event async for event in events_in(next_piece)]

    return asyncio.run(go())


STREAM = 'event: start\ndata: {"text": "a\u2028b ☃"}\n\n: comment\n\ndata: one\ndata: two\n\ndata:[DONE]\n\n'
EVENTS = [Event("start", '{"text": "a\u2028b ☃"}'), Event("", "one\ntwo"), Event("", "[DONE]")]


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM.encode())), max_size=12))
def test_events_are_the_same_however_the_bytes_arrive(cuts: list[int]) -> None:
    whole = STREAM.encode()
    edges = [0, *sorted(cuts), len(whole)]
    assert read([whole[start:end] for start, end in pairwise(edges)]) == EVENTS


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_every_line_end_is_one(end: str) -> None:
    assert read([STREAM.replace("\n", end).encode()]) == EVENTS


def test_a_last_event_without_its_blank_line_counts() -> None:
    assert read([b"data: x"]) == [Event("", "x")]


def test_nothing_gives_nothing() -> None:
    assert read([]) == []
