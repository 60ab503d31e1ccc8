"""Names inside texts: hidden wherever they stand alone, and the quick look that spares most texts misses none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.app.showing import HIDDEN_NAME, MOST_TEXT, _beginning, _mask, _masked
from assay.domain.suite import Message, Scoring, Task

NAMES = ("ada", "GPT-4o", "kelvin", "Zoë", "x1")


@pytest.mark.parametrize(
    "text",
    [
        "nothing of it",
        "ada wrote it, ADA did, and Ada's code",
        "gpt-4o and GPT-4O",
        "canada and adamant keep theirs",
        "the \u212aelvin sign is a k",
        "Zoë and ZOË",
        "x1 is too short to be looked for",
    ],
)
def test_a_text_is_masked_as_if_it_were_not_looked_through_first(text: str) -> None:
    mask = _mask(NAMES)
    assert mask is not None
    assert _masked(text, mask) == mask.pattern.sub(HIDDEN_NAME, text)


def test_names_are_hidden_in_any_case_and_only_alone() -> None:
    mask = _mask(("ada",))
    assert _masked("Ada, ADA: adamant", mask) == f"{HIDDEN_NAME}, {HIDDEN_NAME}: adamant"


def test_a_long_prompt_travels_as_its_beginning_and_a_short_task_as_it_is() -> None:
    short = Task(id="t", thing="T", prompt=(Message(role="user", content="short"),), scoring=Scoring(method="judge"))
    assert _beginning(short) is short
    long = replace(short, prompt=(Message(role="user", content="a line\n" * MOST_TEXT),), expected="x" * 2 * MOST_TEXT)
    begun = _beginning(long)
    assert begun.prompt[0].content.endswith("a line\n")
    assert len(begun.prompt[0].content) <= MOST_TEXT
    assert begun.expected == "x" * MOST_TEXT
