"""Read a request to the gate strictly, and write it anew from the parts that pass.

The provider never gets the agent's bytes, because two parsers may read them differently: of a key that occurs twice, one takes
the first value and another the last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from assay.providers.gate_protocols import FORMS
from assay.providers.gate_shapes import PassedParts, RequestRefused
from assay.providers.json_body import dump
from assay.providers.vendors import Vendor

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
        """Return the request with the parts that pass; raises `RequestRefused` for anything that is not listed."""
        shape = FORMS[self.vendor.protocol].get(path)
        if shape is None:
            raise RequestRefused(path, f"is not open to agents of {self.vendor.name}.")
        parts = PassedParts(network=self.network)
        document = shape(_parsed(body), "The request", parts)
        return GatedRequest(path=path, model=self._model(document.get("model")), document=document, parts=parts)

    def _model(self, name: object) -> str:
        """Return the model's name; raises `RequestRefused` if it names a router, a preset or a variant of a model."""
        where = "The request.model"
        if not isinstance(name, str) or not name:
            raise RequestRefused(where, "is missing.", "Name the model that answers.")
        if self.model and name != self.model:
            raise RequestRefused(where, f"is {name[:80]!r}, which this agent may not ask.", f"Use {self.model!r}.")
        shown = repr(name[:80])
        if not _MODELS.get(self.vendor.name, _OTHER_MODELS).fullmatch(name) or _ROUTERS.match(name):
            raise RequestRefused(
                where, f"is {shown}, which is not the plain name of a model.", "Leave out presets, routers and suffixes."
            )
        if not self.network and _SEARCHING.search(name):
            raise RequestRefused(where, f"is {shown}, a model that searches the web, and this trial has no network.")
        return name


def _parsed(body: bytes) -> object:
    """Parse a body; raises `RequestRefused` for repeated keys, NaN, and any encoding other than UTF-8."""
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
                raise RequestRefused("The request", f"repeats the key {name[:60]!r}.", "Write each key once.")
            seen.add(name)
    return passed


def _no_number(name: str) -> object:
    raise RequestRefused("The request", f"contains {name}, which is not JSON.")
