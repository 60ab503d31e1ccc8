"""Conversations: the user's turns, and the transcript that graders and reviewers read as the
response.

A transcript is plain text with a heading before each message, so that all code that stores, shows,
compares or exports responses works for conversations too. A line of a message that looks like a
heading gets a backslash before it, so that a model cannot forge a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from assay.domain.model import ModelSpec
from assay.domain.tools import ToolCall

USER: Final = "user"
ASSISTANT: Final = "assistant"
TOOL_CALL: Final = "tool call"
TOOL_RESULT: Final = "tool result"
TOOL_ERROR: Final = "tool error"

MAX_TURNS: Final = 100
"""Maximum turns of a conversation."""

_HEADING: Final = re.compile(
    r"(?:\A|\n\n)## Turn (\d{1,4}) · (user|assistant|tool call|tool result|tool error)\n\n"
)
_LIKE_HEADING: Final = re.compile(r"^(\\*## Turn )", re.MULTILINE)
_ESCAPED: Final = re.compile(r"^\\(\\*## Turn )", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a scripted user; `expected` is the reference for the reply to it, or None if
    there is no reference.
    """

    content: str
    expected: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedUser:
    """A model that plays the user, in conversations with at most `turns` replies by the
    candidate.
    """

    model: ModelSpec
    turns: int = 5


def transcript(messages: Iterable[tuple[str, str]]) -> str:
    """Return a conversation as text; `messages` are (role, text) pairs, starting with the user's
    message.
    """
    parts = []
    number = 0
    for role, text in messages:
        number += role == USER
        parts.append(f"## Turn {number} · {role}\n\n" + _LIKE_HEADING.sub(r"\\\1", text))
    return "\n\n".join(parts)


def messages_of(text: str) -> tuple[tuple[str, str], ...]:
    """Split a transcript into (role, text) pairs; empty if the text is not a transcript."""
    headings = list(_HEADING.finditer(text))
    if not headings or headings[0].start() > 0:
        return ()
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    return tuple(
        (heading[2], _ESCAPED.sub(r"\1", text[heading.end() : end]))
        for heading, end in zip(headings, ends, strict=True)
    )


def replies_of(text: str) -> tuple[str, ...]:
    """Return the candidate's reply in each turn of a transcript; a text that is not a transcript
    counts as a single reply.

    If a turn ends with tool calls, its reply is empty. Text before a tool call is not the reply.
    """
    messages = messages_of(text)
    replies: dict[int, str] = {}
    turn = 0
    for role, content in messages:
        turn += role == USER
        if role != USER:
            replies[turn] = content if role == ASSISTANT else ""
    return tuple(replies.values()) if messages else (text,)


def call_text(call: ToolCall) -> str:
    """Return a call as its message in a transcript: `name {"argument": "value"}`."""
    # No tool has blanks in its name, but a model may call one that does not exist.
    name = re.sub(r"\s", "␣", call.name)
    return f"{name} {call.text}"


def calls_of(text: str) -> tuple[ToolCall, ...]:
    """Return the tool calls in a transcript, in order and without ids."""
    calls = (content.partition(" ") for role, content in messages_of(text) if role == TOOL_CALL)
    return tuple(ToolCall.written("", name, arguments) for name, _, arguments in calls)
