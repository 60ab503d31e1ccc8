"""Prices of models from the user's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.domain.errors import InputError, SettingsError
from assay.domain.model import ModelSpec, Price

if TYPE_CHECKING:
    from assay.app.settings import Settings


def priced(settings: Settings, model: ModelSpec) -> ModelSpec:
    """Return the model with the price that the settings state; its own price, from a suite, comes
    first.
    """
    if model.price is not None:
        return model
    configured: Any = settings.values["prices"].get(model.ref)
    if configured is None:
        return model
    try:
        price = Price(input_usd=float(configured["input"]), output_usd=float(configured["output"]))
    except (TypeError, KeyError, ValueError) as error:
        remedy = "Write {input: 0.15, output: 0.6}, in dollars per million tokens."
        raise SettingsError(f"prices, {model.ref}", f"is {configured!r}.", remedy=remedy) from error
    if not (0 <= price.input_usd <= 1e6 and 0 <= price.output_usd <= 1e6):
        raise InputError(f"prices, {model.ref}", "must be between 0 and 1,000,000.")
    return replace(model, price=price)
