"""Names that tell who wrote a response are found where they stand by themselves, and nowhere
else.
"""

from __future__ import annotations

import pytest

from assay.scoring.authorship import telling_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I am Claude, made by Anthropic.", ("anthropic", "claude")),
        ("<meta name=generator content='GPT-4o'>", ("gpt-4o",)),
        ("as GPT-4 I would", ("gpt-4",)),
        ("qwen2.5 wrote this", ("qwen",)),
        ("clauded the window with llamas", ()),
        ("<meta charset=utf-8> a command, a phi, granite", ()),
        ("", ()),
    ],
)
def test_models_and_makers(text: str, words: tuple[str, ...]) -> None:
    assert telling_words(text) == words


def test_a_candidates_own_name_is_found_with_and_without_its_provider() -> None:
    names = ("openai/Swift-9", "wilhelmina", "ab")
    assert telling_words("# by Wilhelmina; run on swift-9; ab", names) == ("Swift-9", "wilhelmina")
