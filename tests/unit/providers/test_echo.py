"""Echo."""

from __future__ import annotations

import asyncio

import pytest

from assay.domain.calls import AnswerSchema, ModelRequest, Purpose, Reply, Role
from assay.domain.failure import CallFailed, Fault
from assay.domain.model import DEFAULTS, ModelSpec
from assay.domain.suite import Message
from assay.providers.echo import Echo


def ask(*messages: tuple[str, str], schema: AnswerSchema | None = None) -> Reply:
    request = ModelRequest(
        model=ModelSpec(provider="echo", name=""),
        messages=tuple(Message(role=role, content=content) for role, content in messages),
        parameters=DEFAULTS,
        purpose=Purpose(role=Role.CANDIDATE, task="t", trial=1),
        answer_schema=schema,
    )
    return asyncio.run(Echo().complete(request))


def test_the_last_message_of_the_user_comes_back() -> None:
    reply = ask(
        ("system", "be terse"),
        ("user", "first"),
        ("assistant", "ok"),
        ("user", "second"),
        ("assistant", "well"),
    )
    assert reply.text == "second"
    # a quarter of 25 and of 6 characters
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 2)
    assert reply.cost_usd == 0.0


def test_nothing_asked_is_an_empty_answer() -> None:
    with pytest.raises(CallFailed, match="empty"):
        ask(("user", " "))


def test_a_judges_question_fails_as_the_harness_fault() -> None:
    with pytest.raises(CallFailed) as caught:
        ask(("user", "q"), schema=AnswerSchema(name="s", schema={}))
    assert caught.value.fault is Fault.HARNESS
