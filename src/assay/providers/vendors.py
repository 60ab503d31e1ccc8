"""Model providers that Assay calls over HTTP, one record each.

To add a provider that speaks the protocol of OpenAI or Anthropic, add a record here. To add a protocol, write a module like
`openai_chat` and add a line to `http_model.WIRES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

OLLAMA_PORT: Final = 11434


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """Defaults of one provider.

    Attributes:
        protocol: name of its wire protocol in `http_model.WIRES`.
        address: usual address; `address_variable` names the environment variable of another one.
        key_variable: environment variable with the key; `key_required` is True if the usual address needs it.
        example: a model reference for messages.
        priced: `genai-prices` knows its models.
    """

    name: str
    protocol: str
    address: str
    address_variable: str
    key_variable: str
    example: str
    key_required: bool = False
    priced: bool = False


VENDORS: Final[Mapping[str, Vendor]] = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            name="openai",
            protocol="openai",
            address="https://api.openai.com/v1",
            address_variable="OPENAI_BASE_URL",
            key_variable="OPENAI_API_KEY",
            example="openai/gpt-4o-mini",
            key_required=True,
            priced=True,
        ),
        Vendor(
            name="anthropic",
            protocol="anthropic",
            address="https://api.anthropic.com/v1",
            address_variable="ANTHROPIC_BASE_URL",
            key_variable="ANTHROPIC_API_KEY",
            example="anthropic/claude-sonnet-4-5",
            key_required=True,
            priced=True,
        ),
        Vendor(
            name="openrouter",
            protocol="openai",
            address="https://openrouter.ai/api/v1",
            address_variable="OPENROUTER_BASE_URL",
            key_variable="OPENROUTER_API_KEY",
            example="openrouter/meta-llama/llama-3.3-70b-instruct",
            key_required=True,
            priced=True,
        ),
        Vendor(
            name="vllm",
            protocol="openai",
            address="http://127.0.0.1:8000/v1",
            address_variable="VLLM_BASE_URL",
            key_variable="VLLM_API_KEY",
            example="vllm/Qwen/Qwen3-32B",
        ),
        Vendor(
            name="ollama",
            protocol="openai",
            address=f"http://127.0.0.1:{OLLAMA_PORT}/v1",
            address_variable="OLLAMA_HOST",
            key_variable="OLLAMA_API_KEY",
            example="ollama/llama3.2",
        ),
    )
}
