"""`echo`: a model that repeats the question and needs no network."""

from __future__ import annotations

from typing import ClassVar

from assay.domain.calls import ModelRequest, Reply, Usage
from assay.domain.failure import CallFailed, Fault
from assay.domain.model import ModelSpec
from assay.providers.registry import ProviderContext

_CHARACTERS_PER_TOKEN = 4


class Echo:
    """Answers with the user's last message. It is free, instant and deterministic.

    It cannot be a judge, because it never returns a grade.
    """

    calls_tools: ClassVar[bool] = True  # it may be offered tools, but answers without them

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Return the last user message; four characters count as one token."""
        if request.answer_schema is not None:
            raise CallFailed(
                "bad_request", "echo cannot judge.", transient=False, fault=Fault.HARNESS
            )
        text, asked = "", 0
        for message in request.messages:
            asked += len(message.content)
            if message.role == "user":
                text = message.content
        if not text.strip():
            raise CallFailed(
                "empty", "echo got an empty prompt, so its answer is empty.", transient=False
            )
        return Reply(
            text=text,
            usage=Usage(input_tokens=_tokens(asked), output_tokens=_tokens(len(text))),
            model_version="echo",
            cost_usd=0.0,
        )

    async def close(self) -> None:
        """Do nothing, because the provider has no connection."""


def open_echo(model: ModelSpec, context: ProviderContext, /) -> Echo:
    return Echo()


def _tokens(characters: int) -> int:
    return -(-characters // _CHARACTERS_PER_TOKEN)
