"""Providers that Assay calls over HTTP, from `vendors.toml`.

To add a provider with the protocol of OpenAI or Anthropic, add a table to `vendors.toml`. To add a
protocol, write a module like `openai_chat` and add a line to `wires.WIRES`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

OLLAMA_PORT: Final = 11434


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A provider's default settings.

    `protocol`: name of the wire protocol in `wires.WIRES`. `address`: usual address.
    `address_variable`: environment variable for a different address. `key_variable`: environment
    variable with the key. `key_required`: True if the usual address needs a key. `example`: a model
    reference for messages. `priced`: True if `genai-prices` contains the models. `batch`: True if
    the provider has a batch API, at half the price of calls.
    """

    name: str
    protocol: str
    address: str
    address_variable: str
    key_variable: str
    example: str
    key_required: bool = False
    priced: bool = False
    batch: bool = False


VENDORS: Final[Mapping[str, Vendor]] = {
    name: Vendor(name=name, **values)
    for name, values in tomllib.loads(
        (files(__package__) / "vendors.toml").read_text("utf-8")
    ).items()
}
