"""A model without a network that answers in capitals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.plugins import Reply, SettingsError

if TYPE_CHECKING:
    from assay.plugins import ModelRequest, ModelSpec, ProviderContext


class Shouting:
    """Repeats the last message, louder."""

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Return the last message in capitals."""
        return Reply(text=request.messages[-1].content.upper(), cost_usd=0.0)

    async def close(self) -> None:
        """Release nothing."""


def open_shouting(model: ModelSpec, context: ProviderContext, /) -> Shouting:
    """Open the provider; `SHOUT_KEY` must be set."""
    if not context.environment.get("SHOUT_KEY"):
        raise SettingsError(
            "SHOUT_KEY", "is not set, but models of shout need it.", remedy="Set it."
        )
    return Shouting()
