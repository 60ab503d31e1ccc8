"""Names that give a writer away are hidden however they are written, and nothing else is."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.app.review.name_masking import HIDDEN_NAME, mask_of, masked
from assay.domain.model import ModelSpec


def plan(*candidates: str | ModelSpec, judge: str = "openai/gpt-4.1-nano") -> Any:
    def one(named: str | ModelSpec) -> SimpleNamespace:
        model = named if isinstance(named, ModelSpec) else None
        return SimpleNamespace(name=named if isinstance(named, str) else named.ref, model=model)

    provider, _, name = judge.partition("/")
    grader = SimpleNamespace(name=judge, model=ModelSpec(provider=provider, name=name))
    return cast(
        "Any", SimpleNamespace(candidates=[one(each) for each in candidates], judges=[grader])
    )


GPT = ModelSpec(provider="openai", name="gpt-4o-mini")
CLAUDE = ModelSpec(provider="anthropic", name="claude-sonnet-4-5-20250929")
PEOPLE = plan("Wilhelmina Jo", "bartholomew", GPT, CLAUDE)


@pytest.mark.parametrize(
    "written",
    [
        "gpt-4o-mini",
        "GPT-4o mini",
        "gpt4omini",
        "openai/gpt-4o-mini",
        "ChatGPT",
        "OpenAI",
        "Claude",
        "Claude Sonnet 4.5",
        "claude_sonnet_4_5",
        "claude-sonnet-4-5-20250929",
        "Anthropic",
        "WilhelminaJo",
        "wilhelmina_jo",
        "WILHELMINA-JO",
        "Wilhelmina",
        "Bartholomew",
        "bar\u200btholo\u00admew",
        "\uff42\uff41\uff52\uff54\uff48\uff4f\uff4c\uff4f\uff4d\uff45\uff57",
        "gpt-4.1-nano",
        "GPT 4.1 nano",
    ],
)
def test_a_name_is_hidden_however_it_is_written(written: str) -> None:
    result = masked(f"This (by {written}) is \u00fcbel, says {written}.", mask_of(PEOPLE))
    assert result == f"This (by {HIDDEN_NAME}) is \u00fcbel, says {HIDDEN_NAME}."
    assert masked(f"x = {written};", mask_of(PEOPLE)) == f"x = {HIDDEN_NAME};"


@pytest.mark.parametrize(
    "text",
    [
        "jo",
        "the joy of minis",
        "clauded",
        "bartholomews",
        "sonnet",
        "4.5",
        "gp t",
        "mini",
        "\uff4d\uff49\uff4e\uff49",
        "an open AI",
    ],
)
def test_words_that_are_not_names_stay(text: str) -> None:
    assert masked(text, mask_of(PEOPLE)) == text


def test_characters_around_a_name_keep_their_places() -> None:
    mask = mask_of(plan("bartholomew"))
    assert (
        masked("\ufb01rst \u202ebartholomew\u202c \u00bd", mask)
        == f"\ufb01rst \u202e{HIDDEN_NAME}\u202c \u00bd"
    )


@pytest.mark.parametrize(
    "text",
    [
        "nothing of it",
        "bartholomew wrote it, BARTHOLOMEW did",
        "wilhelmina jo",
        "GPT 4o-Mini",
        "the \u212aelvin sign is a k",
    ],
)
def test_the_quick_look_that_spares_most_texts_misses_none(text: str) -> None:
    mask = mask_of(plan("Wilhelmina Jo", "bartholomew", "kelvin", GPT))
    assert mask is not None
    assert masked(text, mask) == mask.pattern.sub(HIDDEN_NAME, text)


def test_names_too_short_hide_nothing() -> None:
    assert mask_of(plan("a", "b2", judge="x/y")) is None


@pytest.mark.parametrize(
    "text",
    ["g-" * 50_000, "gpt " * 25_000, "\u200b" * 100_000, "w\u200b" * 50_000, "claude-" * 15_000],
)
def test_a_hostile_text_is_read_in_linear_time(text: str) -> None:
    mask = mask_of(PEOPLE)

    def seconds(some: str) -> float:
        began = time.process_time()
        masked(some, mask)
        return time.process_time() - began

    half = min(seconds(text[: len(text) // 2]) for _ in range(3))
    assert min(seconds(text) for _ in range(3)) < 8 * half + 0.05


def test_a_candidate_called_candidate_leaves_the_labels_readable() -> None:
    assert (
        masked("Candidate C beats candidate D.", mask_of(plan("Candidate", "Answer")))
        == "Candidate C beats candidate D."
    )
    mask = mask_of(plan("Candidate A", "Candidate B"))
    assert (
        masked("Candidate A wrote it, says candidate C.", mask)
        == f"{HIDDEN_NAME} wrote it, says candidate C."
    )
