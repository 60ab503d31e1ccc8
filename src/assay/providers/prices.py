"""Prices and context sizes of models, from the suite or, if the suite states none, from the
`genai-prices` data.

The data is part of the library and is not downloaded. Importing it takes a tenth of a second, so it
is loaded only if a price is missing from the suite. Each model is looked up once. An unknown price
is None, never 0.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from assay.domain.programs import KINDS
from assay.providers.vendors import VENDORS

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

    from assay.domain.calls import Usage
    from assay.domain.model import ModelSpec

_FREE: Final = frozenset({"echo", "replay", *KINDS})
_MILLION: Final = 1_000_000

Steps: TypeAlias = "tuple[tuple[int, float], ...]"
"""US dollars per million tokens by threshold of input tokens; a price applies above its threshold.

Highest threshold first.
"""


class CostOf(Protocol):
    """Function that returns the cost of a call, for protocol modules; `stated_usd` is the server's
    own figure.
    """

    def __call__(
        self, model: ModelSpec, usage: Usage, cached_tokens: int, stated_usd: float | None, /
    ) -> float | None: ...


class Rates(NamedTuple):
    """A model's prices.

    If a call exceeds a step's threshold, the step's price applies to all tokens of the call.
    """

    input_steps: Steps
    cached_steps: Steps
    output_steps: Steps
    request_usd: float

    def cost_usd(self, input_tokens: int, output_tokens: int, cached_tokens: int) -> float:
        """Return the cost of a call in US dollars; `input_tokens` includes `cached_tokens`."""
        fresh = input_tokens - cached_tokens
        return (
            fresh * _rate(self.input_steps, input_tokens)
            + cached_tokens * _rate(self.cached_steps, input_tokens)
            + output_tokens * _rate(self.output_steps, input_tokens)
        ) / _MILLION + self.request_usd


class PriceList:
    """Prices and context sizes, looked up once per model."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str], ModelInfo | None] = {}
        self._rates: dict[int, Rates | None] = {}

    def cost_usd(
        self, model: ModelSpec, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0
    ) -> float | None:
        """Return the cost of a call in US dollars; None if the price is unknown."""
        if model.price is not None:
            return (
                input_tokens * model.price.input_usd + output_tokens * model.price.output_usd
            ) / _MILLION
        if model.provider in _FREE:
            return 0.0
        rates = self._rates_of(model)
        # A server may count more cached tokens than input tokens; the number of other tokens must
        # not become negative.
        return (
            None
            if rates is None
            else rates.cost_usd(input_tokens, output_tokens, min(cached_tokens, input_tokens))
        )

    def cost_of(
        self, model: ModelSpec, usage: Usage, cached_tokens: int, stated_usd: float | None, /
    ) -> float | None:
        """Return the cost of a call from the server's token counts; None if counts or price are
        unknown.
        """
        if stated_usd is not None and model.price is None and model.provider == "openrouter":
            return stated_usd
        # no prompt has 0 tokens, so such a server does not count them
        if not usage.input_tokens or usage.output_tokens is None:
            return 0.0 if model.price is None and model.provider in _FREE else None
        return self.cost_usd(
            model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=cached_tokens,
        )

    def context_tokens(self, model: ModelSpec) -> int | None:
        if model.context_tokens is not None:
            return model.context_tokens
        known = self._known(model)
        return None if known is None else known.context_window

    def _rates_of(self, model: ModelSpec) -> Rates | None:
        known = self._known(model)
        if known is None or not known.prices:
            return None
        price = (
            known.get_prices(datetime.now(UTC)) if isinstance(known.prices, list) else known.prices
        )
        # the library keeps its price objects alive, so their ids are not reused
        if id(price) not in self._rates:
            self._rates[id(price)] = _rates(price)
        return self._rates[id(price)]

    def _known(self, model: ModelSpec) -> ModelInfo | None:
        key = (model.provider, model.name)
        if key not in self._models:
            self._models[key] = _look_up(*key)
        return self._models[key]


def priced_models() -> tuple[str, ...]:
    """Return the references of all models in the price data.

    The first call loads the data, which takes a tenth of a second.
    """
    from genai_prices.data_snapshot import get_snapshot

    providers = {provider.id: provider.models for provider in get_snapshot().providers}
    priced = [name for name, vendor in VENDORS.items() if vendor.priced]
    return tuple(f"{name}/{model.id}" for name in priced for model in providers.get(name, ()))


def _look_up(provider: str, name: str) -> ModelInfo | None:
    vendor = VENDORS.get(provider)
    if vendor is None or not vendor.priced:
        return None
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(name, None, provider, None)[1]
    except LookupError:
        return None


def _rates(price: ModelPrice) -> Rates | None:
    if price.input_mtok is None or price.output_mtok is None:
        return None
    cached = price.cache_read_mtok
    requests = price.requests_kcount
    return Rates(
        _steps(price.input_mtok),
        _steps(price.input_mtok if cached is None else cached),
        _steps(price.output_mtok),
        _steps(requests)[-1][1] / 1000 if requests is not None else 0.0,
    )


def _steps(price: object) -> Steps:
    from genai_prices.types import TieredPrices

    if isinstance(price, TieredPrices):
        return (
            *((tier.start, float(tier.price)) for tier in reversed(price.tiers)),
            (-1, float(price.base)),
        )
    return ((-1, float(str(price))),)


def _rate(steps: Steps, input_tokens: int) -> float:
    for threshold, usd in steps:
        if input_tokens > threshold:
            return usd
    return 0.0
