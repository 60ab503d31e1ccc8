"""A judge without a model: a provider that gives every answer the highest grade."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from assay.plugins import CallFailed, Fault, Reply, as_list, as_number, as_object

if TYPE_CHECKING:
    from assay.plugins import JsonObject, JsonValue, ModelRequest, ModelSpec, ProviderContext


class Lenient:
    """Fills in the form of the answer that the request asks for."""

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Return the grades as JSON."""
        if request.answer_schema is None:
            raise CallFailed(
                "no_form", "This provider only grades.", transient=False, fault=Fault.HARNESS
            )
        return Reply(text=json.dumps(_filled(request.answer_schema.schema)), cost_usd=0.0)

    async def close(self) -> None:
        """Release nothing."""


def open_lenient(model: ModelSpec, context: ProviderContext, /) -> Lenient:
    """Open the judge, which needs no settings."""
    return Lenient()


open_lenient.local = True  # type: ignore[attr-defined] # it may be used under `local_only`


def _filled(schema: JsonObject) -> JsonValue:
    match schema["type"]:
        case "object":
            properties = as_object(schema["properties"])
            return {name: _filled(as_object(part)) for name, part in properties.items()}
        case "array":
            return []
        case "number":
            return as_number(schema["maximum"])
        case _:
            return next(iter(as_list(schema.get("enum"))), "Good enough.")
