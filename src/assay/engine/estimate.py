"""Estimate the number of calls and the cost of a run before its first call."""

from __future__ import annotations

from dataclasses import dataclass

from assay.domain.calls import ModelRequest
from assay.domain.remaining_cost import CallsAhead
from assay.domain.suite import ToolMessage

TOKENS_PER_MESSAGE = 8
"""Generous estimate of the tokens that chat formats add to a message."""
TOKENS_PER_IMAGE = 1_600
"""Upper bound on the tokens for an image of 1280 by 800 pixels; smaller images take fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """Estimated calls and cost of the trials that are not done yet.

    `likely_usd` assumes one token per four characters of the prompt, and answers of half the token
    limit. `most_usd` is the worst case without retries. If a model has no known price, both are
    None and `unpriced` lists the model. `ahead` has the calls by role and model.
    """

    calls: int
    likely_usd: float | None
    most_usd: float | None
    unpriced: tuple[str, ...] = ()
    ahead: tuple[CallsAhead, ...] = ()


def worst_case_tokens(request: ModelRequest) -> tuple[int, int]:
    """Return upper bounds on (input, output) tokens: no tokenizer produces more tokens than the
    text has bytes.
    """
    asked = sum(
        len(m.content.encode("utf-8", "surrogatepass")) + TOKENS_PER_MESSAGE
        for m in request.messages
    )
    asked += _images(request) * TOKENS_PER_IMAGE
    asked += len(_tools(request).encode("utf-8", "surrogatepass"))
    if request.answer_schema is not None:
        asked += len(str(request.answer_schema.schema))
    # `anthropic_messages` sends a limit of 4096 if none is set, because its protocol requires one.
    return asked, request.parameters.max_tokens or 4096


def likely_tokens(request: ModelRequest) -> tuple[int, int]:
    """Return likely (input, output) tokens: one per four characters of input, and half of the token
    limit as output.
    """
    asked = sum(len(m.content) // 4 + TOKENS_PER_MESSAGE for m in request.messages)
    asked += _images(request) * TOKENS_PER_IMAGE // 2 + len(_tools(request)) // 4
    return asked, (request.parameters.max_tokens or 4096) // 2


def _tools(request: ModelRequest) -> str:
    """Return a text at least as long as the request's tools, calls and results together; empty if
    it has no tools.
    """
    used = [message for message in request.messages if isinstance(message, ToolMessage)]
    return str((request.tools, used)) if request.tools or used else ""


def _images(request: ModelRequest) -> int:
    return sum(len(message.images) for message in request.messages)
