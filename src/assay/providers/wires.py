"""The wire protocols by name, and the parameters that each model's requests contain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assay.domain.model import ModelSpec, Parameters
from assay.domain.suite import PERSON
from assay.providers.anthropic_messages import AnthropicMessages
from assay.providers.openai_chat import OpenAIChat
from assay.providers.protocol import Wire
from assay.providers.vendors import VENDORS

WIRES: Final[Mapping[str, type[Wire]]] = {"openai": OpenAIChat, "anthropic": AnthropicMessages}
"""Protocols by the name in `vendors.toml`."""

_NOBODY: Final = frozenset({"echo", "replay", PERSON})
"""Providers that send no request."""


def sent_parameters(model: ModelSpec, parameters: Parameters, /) -> Parameters:
    """Return the parameters that a model's requests contain.

    A program gets at most the seed; `echo` and `replay` send nothing.

    Parameters that one endpoint refuses, and that Assay then leaves out, are included: no file
    states them in advance.
    """
    if model.program is not None:
        return Parameters(seed=parameters.seed)
    if model.provider in _NOBODY:
        return Parameters()
    vendor = VENDORS.get(model.provider)
    # A provider of another package gets every parameter.
    return parameters if vendor is None else WIRES[vendor.protocol]().sent(parameters)
