"""List the known models with their prices."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from assay.app.runs.start import model_names
from assay.app.wire import document
from assay.domain.errors import InputError
from assay.domain.model import ModelSpec
from assay.providers.model_refs import parse_ref
from assay.providers.prices import PriceList
from assay.providers.vendors import VENDORS

if TYPE_CHECKING:
    from assay.app.settings import Settings
    from assay.store.opening import Store


@document
class ModelDocument:
    """A model with its price in US dollars per million tokens and its context size; null if
    unknown.
    """

    ref: str
    input_usd: float | None
    output_usd: float | None
    context_tokens: int | None


def list_models(store: Store, settings: Settings, search: str = "") -> tuple[ModelDocument, ...]:
    """Return models from earlier runs and the price data; the reference must contain every word of
    a search text.
    """
    words = search.lower().split()
    prices = PriceList()
    models = [
        _model(ref)
        for ref in model_names(store, settings)
        if all(word in ref.lower() for word in words)
    ]
    return tuple(
        ModelDocument(
            ref=model.ref,
            input_usd=_per_million(prices.cost_usd(model, input_tokens=1_000, output_tokens=0)),
            output_usd=_per_million(prices.cost_usd(model, input_tokens=0, output_tokens=1_000)),
            context_tokens=prices.context_tokens(model),
        )
        for model in models
    )


def default_model(vendor: str) -> str:
    """Return the name of the model that an agent of this vendor uses by default; raises
    `InputError` if there is none.
    """
    known = VENDORS.get(vendor)
    if known is None or not known.key_required:
        raise InputError(
            "--agent",
            f"{vendor!r} has no default model.",
            remedy=f"Give a model: --agent {vendor}/NAME",
        )
    return known.example.partition("/")[2]


def vendor_of(agent: str) -> str | None:
    """Return the vendor in an agent such as `anthropic` or `mine=anthropic`; None if it has a model
    or no known vendor.
    """
    target = agent.rpartition("=")[2].strip()
    return target if target in VENDORS else None


def with_model(agent: str, model: str) -> str:
    """Return `--agent` with its model: `anthropic` becomes `anthropic/MODEL`, and Claude Code gets
    the option `--model`.

    Raises InputError if the agent already has a model, or uses no model.
    """
    if vendor_of(agent):
        return f"{agent.strip()}/{model}"
    if agent.rpartition("=")[2].strip() == "claude-code":
        return f"{agent.strip()} --model {shlex.quote(model)}"
    raise InputError(
        "--model",
        f"does not apply to the agent {agent!r}.",
        remedy="Give a vendor: --agent anthropic --model NAME",
    )


def _model(ref: str) -> ModelSpec:
    provider, name = parse_ref(ref)
    return ModelSpec(provider=provider, name=name)


def _per_million(usd: float | None) -> float | None:
    return None if usd is None else round(usd * 1_000, 6)
