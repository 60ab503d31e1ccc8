"""Limits of an agent in one trial, and its use of models, which counts towards them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self

MAX_TURNS: Final = 100
"""Default limit on the replies of an agent's model in one trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """An agent's use of models: replies, tokens and cost; tokens and cost are None if any reply
    lacked them.
    """

    turns: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cost_usd: float | None = 0.0

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together."""
        return _sum(self.input_tokens, self.output_tokens)

    def plus(
        self, input_tokens: int | None, output_tokens: int | None, cost_usd: float | None
    ) -> Self:
        into, out = _sum(self.input_tokens, input_tokens), _sum(self.output_tokens, output_tokens)
        cost = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd
        return replace(
            self, turns=self.turns + 1, input_tokens=into, output_tokens=out, cost_usd=cost
        )


def _sum(part: int | None, other: int | None) -> int | None:
    return None if part is None or other is None else part + other


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """Limits of an agent in one trial: replies of its model, input and output tokens together, and
    US dollars.
    """

    turns: int = MAX_TURNS
    tokens: int | None = None
    cost_usd: float | None = None

    def reached(self, spent: Spent) -> str | None:
        """Return the limit that was reached, or None; an unknown amount counts as over its limit,
        as it cannot be checked.
        """
        if self.tokens is not None and (spent.tokens is None or spent.tokens >= self.tokens):
            return (
                "token limit" if spent.tokens is not None else "token limit, as tokens are unknown"
            )
        if self.cost_usd is not None and (
            spent.cost_usd is None or spent.cost_usd >= self.cost_usd
        ):
            return (
                "cost limit" if spent.cost_usd is not None else "cost limit, as the cost is unknown"
            )
        return "turn limit" if spent.turns >= self.turns else None
