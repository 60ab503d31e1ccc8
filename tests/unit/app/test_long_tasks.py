"""Shortened sending of long tasks until a reviewer asks for the whole text."""

from __future__ import annotations

from dataclasses import replace

from assay.app.review.item_view import MAX_TEXT, _beginning
from assay.domain.suite import Message, Scoring, Task


def test_a_long_prompt_travels_as_its_beginning_and_a_short_task_as_it_is() -> None:
    short = Task(
        id="t",
        thing="T",
        prompt=(Message(role="user", content="short"),),
        scoring=Scoring(method="judge"),
    )
    assert _beginning(short) is short
    long = replace(
        short,
        prompt=(Message(role="user", content="a line\n" * MAX_TEXT),),
        expected="x" * 2 * MAX_TEXT,
    )
    begun = _beginning(long)
    assert begun.prompt[0].content.endswith("a line\n")
    assert len(begun.prompt[0].content) <= MAX_TEXT
    assert begun.expected == "x" * MAX_TEXT
