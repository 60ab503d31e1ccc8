"""Prices and context windows."""

from __future__ import annotations

import pytest

from assay.domain.calls import Usage
from assay.domain.model import ModelSpec, Price
from assay.providers.prices import PriceList


def spec(
    provider: str, name: str, price: Price | None = None, context_tokens: int | None = None
) -> ModelSpec:
    return ModelSpec(provider=provider, name=name, price=price, context_tokens=context_tokens)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openrouter"])
@pytest.mark.parametrize(
    "tokens", [(0, 0), (1000, 500), (150_000, 8000), (200_000, 1), (200_001, 1), (900_000, 70_000)]
)
def test_every_listed_price_matches_the_price_library(
    provider: str, tokens: tuple[int, int]
) -> None:
    import genai_prices
    from genai_prices.data_snapshot import get_snapshot

    prices = PriceList()
    (known,) = (entry for entry in get_snapshot().providers if entry.id == provider)
    compared = 0
    for model in known.models:
        ours = prices.cost_usd(
            spec(provider, model.id), input_tokens=tokens[0], output_tokens=tokens[1]
        )
        if ours is None:
            continue
        usage = genai_prices.Usage(input_tokens=tokens[0], output_tokens=tokens[1])
        try:
            theirs = genai_prices.calc_price(usage, model.id, provider_id=provider)
        except ValueError:  # audio and image models need tokens by kind
            continue
        assert ours == pytest.approx(float(theirs.total_price), rel=1e-9), model.id
        compared += 1
    assert compared >= 20


def test_cached_input_is_cheaper_as_the_library_says() -> None:
    import genai_prices

    prices = PriceList()
    ours = prices.cost_usd(
        spec("openai", "gpt-4o-mini"), input_tokens=1000, output_tokens=10, cached_tokens=600
    )
    usage = genai_prices.Usage(input_tokens=1000, cache_read_tokens=600, output_tokens=10)
    assert ours == pytest.approx(
        float(genai_prices.calc_price(usage, "gpt-4o-mini", provider_id="openai").total_price)
    )


def test_an_unknown_price_is_none_and_never_zero() -> None:
    prices = PriceList()
    for provider, name in (
        ("openai", "no-such-model"),
        ("vllm", "gpt-4o-mini"),
        ("ollama", "llama3.2"),
    ):
        assert prices.cost_usd(spec(provider, name), input_tokens=10, output_tokens=10) is None


def test_a_suites_own_price_wins() -> None:
    priced = spec("openai", "gpt-4o-mini", Price(input_usd=1.0, output_usd=2.0))
    assert PriceList().cost_usd(priced, input_tokens=1_000_000, output_tokens=500_000) == 2.0


def test_nothing_is_paid_for_echo_and_recordings() -> None:
    for provider in ("echo", "replay"):
        assert PriceList().cost_usd(spec(provider, "x"), input_tokens=10, output_tokens=10) == 0.0
        assert PriceList().cost_of(spec(provider, "x"), Usage(), 0, None) == 0.0


def test_call_without_token_counts_has_no_known_cost() -> None:
    for usage in (
        Usage(input_tokens=3),
        Usage(output_tokens=3),
        Usage(input_tokens=0, output_tokens=0),
    ):
        assert PriceList().cost_of(spec("openai", "gpt-4o-mini"), usage, 0, None) is None


def test_openrouters_own_bill_comes_before_the_list() -> None:
    usage = Usage(input_tokens=10, output_tokens=10)
    prices = PriceList()
    assert prices.cost_of(spec("openrouter", "openai/gpt-4o-mini"), usage, 0, 0.125) == 0.125
    assert prices.cost_of(spec("vllm", "m"), usage, 0, 0.125) is None


def test_the_context_is_the_suites_else_the_lists_else_unknown() -> None:
    prices = PriceList()
    assert prices.context_tokens(spec("openai", "gpt-4o-mini", context_tokens=99)) == 99
    assert prices.context_tokens(spec("openai", "gpt-4o-mini")) == 128_000
    assert prices.context_tokens(spec("vllm", "m")) is None
