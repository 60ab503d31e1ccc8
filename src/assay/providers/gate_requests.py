"""Read a request to the gate strictly, and write it anew from the parts that pass.

The provider never gets the agent's bytes, because two parsers may read them differently: of a key
that occurs twice, one takes the first value and another the last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final

from assay.providers.gate_protocols import FORMS
from assay.providers.gate_shapes import PassedParts, RequestRefused
from assay.providers.json_body import dump
from assay.providers.vendors import Vendor

DEFAULT_OUTPUT: Final = 16_384
"""Limit on output tokens for a call under a budget that states none."""

TOKENS_PER_IMAGE: Final = {"anthropic": 5_000, "openai": 50_000}
"""Upper bounds on the tokens of an image: gpt-4o-mini counts 48,169 for one of 2048 by 768 pixels.
"""

TOKENS_PER_DOCUMENT: Final = 1_000_000

_INSTRUCTIONS: Final = 3_000
"""Allowance for the instructions that a provider adds for tools."""

_OUTPUT_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_PART: Final = r"[A-Za-z0-9][\w.-]*"
_SLASHED: Final = rf"{_PART}(?:/{_PART}){{0,3}}"
_MODELS: Final[Mapping[str, re.Pattern[str]]] = {
    "anthropic": re.compile(_PART, re.ASCII),
    "openai": re.compile(rf"{_SLASHED}|ft:{_PART}(?::[\w.-]*){{0,3}}", re.ASCII),
    "ollama": re.compile(rf"{_SLASHED}(?::{_PART})?", re.ASCII),
}
_OTHER_MODELS: Final = re.compile(_SLASHED, re.ASCII)
_SEARCHING: Final = re.compile(r"search|sonar|(?:^|/)compound|online|deep-research", re.IGNORECASE)
_ROUTERS: Final = re.compile(r"openrouter/|(?:.*/)?auto", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedRequest:
    """A request that passed: its model, the document to forward, and facts about its size."""

    path: str
    model: str
    document: Mapping[str, Any]
    parts: PassedParts

    @property
    def body(self) -> bytes:
        return dump(self.document)

    @property
    def is_stream(self) -> bool:
        return self.document.get("stream") is True

    def with_fields(self, fields: Mapping[str, Any]) -> GatedRequest:
        """Return the request with further top-level fields, or with other values of them."""
        return replace(self, document={**self.document, **fields})

    @property
    def most_input_tokens(self) -> int:
        """Upper bound on the input tokens, as the price counts them: no tokenizer makes more tokens
        than a text has bytes.

        Images and documents are counted by number. Writing to a cache costs Anthropic's price of a
        token 1.25 times, or twice for an hour.
        """
        anthropic = self.path.startswith("/v1/messages")
        text_tokens = len(self.body) - self.parts.media_bytes + _INSTRUCTIONS
        image_tokens = (
            self.parts.images * (TOKENS_PER_IMAGE["anthropic" if anthropic else "openai"])
        )
        tokens = text_tokens + image_tokens + self.parts.documents * TOKENS_PER_DOCUMENT
        if not anthropic:
            return tokens
        return 2 * tokens if self.parts.cached_for_longer else ceil(1.25 * tokens)

    @property
    def answers(self) -> int:
        """Number of answers that the request asks for, each of which may reach the limit of output
        tokens.
        """
        document = self.document
        prompts = document.get("prompt")
        several = isinstance(prompts, list) and prompts and not isinstance(prompts[0], int)
        each = max(document.get("n") or 1, document.get("best_of") or 1)
        return each * (len(prompts) if isinstance(prompts, list) and several else 1)

    @property
    def most_output_tokens(self) -> int | None:
        """Upper bound on the output tokens of all answers; None if the request states no limit."""
        if self.path.endswith("/embeddings"):
            return 0
        stated = [
            self.document[name] for name in _OUTPUT_LIMITS if self.document.get(name) is not None
        ]
        return max(stated) * self.answers if stated else None

    def limited(self, tokens: int, *, old_name: bool) -> GatedRequest:
        """Return the request with a limit on output tokens, which it must not state yet.

        `old_name`: True for servers other than OpenAI's own, which know `max_tokens` in chats.
        """
        name = {
            "/v1/responses": "max_output_tokens",
            "/v1/chat/completions": "max_completion_tokens",
        }.get(self.path, "max_tokens")
        return self.with_fields(
            {"max_tokens" if old_name and name == "max_completion_tokens" else name: tokens}
        )

    @property
    def hides_usage(self) -> bool:
        """True if the reply is a stream that states no tokens unless it is asked to."""
        options = self.document.get("stream_options") or {}
        return (
            self.is_stream
            and self.path.endswith("/completions")
            and options.get("include_usage") is not True
        )

    def with_usage(self) -> GatedRequest:
        options = self.document.get("stream_options") or {}
        return self.with_fields({"stream_options": {**options, "include_usage": True}})


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRules:
    """Rules for the requests of one trial.

    Attributes:
        vendor: the provider, whose protocol decides which fields pass.
        network: True if the provider may search and fetch for the trial.
        model: the only model that the agent may ask; empty for any model of the provider.
    """

    vendor: Vendor
    network: bool = False
    model: str = ""

    def read(self, path: str, body: bytes) -> GatedRequest:
        """Return the request with the parts that pass; raises `RequestRefused` for anything that is
        not listed.
        """
        shape = FORMS[self.vendor.protocol].get(path)
        if shape is None:
            raise RequestRefused(path, f"is not open to agents of {self.vendor.name}.")
        parts = PassedParts(network=self.network)
        document = shape(_parsed(body), "The request", parts)
        return GatedRequest(
            path=path, model=self._model(document.get("model")), document=document, parts=parts
        )

    def _model(self, name: object) -> str:
        """Return the model's name; raises `RequestRefused` if it names a router, a preset or a
        variant of a model.
        """
        where = "The request.model"
        if not isinstance(name, str) or not name:
            raise RequestRefused(where, "is missing.", "Name the model that answers.")
        if self.model and name != self.model:
            raise RequestRefused(
                where, f"is {name[:80]!r}, which this agent may not ask.", f"Use {self.model!r}."
            )
        shown = repr(name[:80])
        if not _MODELS.get(self.vendor.name, _OTHER_MODELS).fullmatch(name) or _ROUTERS.match(name):
            raise RequestRefused(
                where,
                f"is {shown}, which is not the plain name of a model.",
                "Leave out presets, routers and suffixes.",
            )
        if not self.network and _SEARCHING.search(name):
            raise RequestRefused(
                where, f"is {shown}, a model that searches the web, and this trial has no network."
            )
        return name


def _parsed(body: bytes) -> object:
    """Parse a body; raises `RequestRefused` for repeated keys, NaN, and any encoding other than
    UTF-8.
    """
    try:
        return json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError:
        raise RequestRefused("The request", "is nested too deeply.") from None
    except ValueError as error:
        raise RequestRefused("The request", f"is not JSON in UTF-8: {error}."[:300]) from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    passed = dict(pairs)
    if len(passed) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise RequestRefused(
                    "The request", f"repeats the key {name[:60]!r}.", "Write each key once."
                )
            seen.add(name)
    return passed


def _no_number(name: str) -> object:
    raise RequestRefused("The request", f"contains {name}, which is not JSON.")
