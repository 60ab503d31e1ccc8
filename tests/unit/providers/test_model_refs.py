"""Model references."""

from __future__ import annotations

import pytest

from assay.domain.errors import InputError
from assay.providers.model_refs import parse_ref


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("openai/gpt-4o-mini", ("openai", "gpt-4o-mini")),
        ("openai:gpt-4o-mini", ("openai", "gpt-4o-mini")),
        ("openai:/gpt-4o-mini", ("openai", "gpt-4o-mini")),
        (" OpenAI/gpt-4o-mini ", ("openai", "gpt-4o-mini")),
        (
            "openrouter/anthropic/claude-sonnet-4.5:free",
            ("openrouter", "anthropic/claude-sonnet-4.5:free"),
        ),
        ("vllm/Qwen/Qwen3-32B", ("vllm", "Qwen/Qwen3-32B")),
        ("ollama/llama3.2:3b", ("ollama", "llama3.2:3b")),
        ("ollama:llama3.2:3b", ("ollama", "llama3.2:3b")),
        ("replay/recordings/a.jsonl", ("replay", "recordings/a.jsonl")),
        ("replay//tmp/a.jsonl", ("replay", "/tmp/a.jsonl")),
        ("replay:/tmp/a.jsonl", ("replay", "/tmp/a.jsonl")),
        ("replay/@demo", ("replay", "@demo")),
        ("echo", ("echo", "")),
        ("echo/loud", ("echo", "loud")),
    ],
)
def test_a_reference_is_provider_and_name(text: str, expected: tuple[str, str]) -> None:
    assert parse_ref(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("opena/gpt-4o", "Did you mean 'openai'?"),
        ("antropic/claude", "Did you mean 'anthropic'?"),
        ("gpt-4o-mini", "Did you mean 'openai/gpt-4o-mini'?"),
        ("claude-sonnet-4-5", "Did you mean 'anthropic/claude-sonnet-4-5'?"),
        ("bedrock/titan", "base_url"),
        ("openai/", "names a provider but no model"),
        ("openai", "names a provider but no model"),
        ("", "names no provider"),
    ],
)
def test_invalid_model_reference_shows_a_valid_one(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_ref(text)
    assert says in str(caught.value)
