"""Parse model references, written as `provider/name`."""

from __future__ import annotations

import re
from typing import Final

from assay.domain.errors import InputError, did_you_mean
from assay.domain.suite import PERSON
from assay.providers.registry import PROVIDERS
from assay.providers.vendors import VENDORS

_SEPARATOR: Final = re.compile(r"[/:]")
_NAMELESS: Final = frozenset({"echo", PERSON})


def provider_names() -> tuple[str, ...]:
    """Return the names of all providers, including those of installed packages, for messages."""
    return (*PROVIDERS.names(), PERSON)


def parse_ref(text: str) -> tuple[str, str]:
    """Split `provider/name` into provider and name; `provider:name` and `provider:/name` have the
    same meaning.

    Only the first separator counts, so names may contain slashes and colons (`openrouter/a/b`,
    `ollama/llama3:8b`). The provider is lower-cased. `echo` and `human` need no name. Raises
    InputError if the provider is missing or unknown, or the name is missing.
    """
    ref = text.strip()
    separator = _SEPARATOR.search(ref)
    provider = (ref[: separator.start()] if separator else ref).strip().lower()
    name = ref[separator.end() :].strip() if separator else ""
    # `replay:/a.jsonl` has an absolute path
    if separator and separator.group() == ":" and provider != "replay":
        name = name.removeprefix("/")
    if (
        provider not in PROVIDERS.own
        and provider not in _NAMELESS
        and provider not in PROVIDERS.plugin_names()
    ):
        raise _unknown(ref, provider, name)
    if not name and provider not in _NAMELESS:
        raise InputError(
            "",
            (f"model {ref!r} names a provider but no model."),
            remedy=f"Write for example {_example(provider)}.",
        )
    return provider, name


def _example(provider: str) -> str:
    vendor = VENDORS.get(provider)
    if vendor is not None:
        return vendor.example
    return "replay/answers.jsonl" if provider == "replay" else f"{provider}/NAME"


def _unknown(ref: str, provider: str, name: str) -> InputError:
    known = provider_names()
    if not name:
        likely = "anthropic" if provider.startswith("claude") else "openai"
        hint = did_you_mean(provider, known) or f" Did you mean '{likely}/{ref}'?"
        return InputError(
            "", f"model {ref!r} names no provider; models are written provider/name.{hint}"
        )
    return InputError(
        "",
        f"model {ref!r} has the unknown provider {provider!r}; known are {', '.join(known)}.{did_you_mean(provider, known)}",
        remedy=(
            "If a package offers this provider, install that package. An endpoint with OpenAI's protocol works as openai/NAME "
            "with its base_url."
        ),
    )
