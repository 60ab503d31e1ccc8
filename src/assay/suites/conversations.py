"""Conversations in a suite: the turns of a task, and the simulated user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from assay.domain.conversation import MAX_TURNS, SimulatedUser, Turn
from assay.domain.model import Parameters
from assay.domain.suite import PERSON
from assay.suites.expected import EXPECTED
from assay.suites.grammar import (
    NAME,
    TEXT,
    Keys,
    Kind,
    ReadContext,
    choice,
    key,
    list_of,
    made_of,
    read_text,
    whole,
)
from assay.suites.located_yaml import Value
from assay.suites.models import ModelKeys, described_model
from assay.suites.problems import Path

TURN: Final = "turn"
CONVERSATION: Final = "conversation"
GRADE_BY: Final = choice((CONVERSATION, TURN))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredUser:
    """The simulated user of a suite, with the default persona for tasks without a persona."""

    user: SimulatedUser
    persona: str


class UserKeys(ModelKeys):
    """The keys of a simulated user."""

    model = key(NAME, required="Add `model: provider/name`, the model that plays the user.")
    persona = key(
        TEXT, "Who the user is and what they want; may name columns of the task, {{name}}."
    )
    turns = key(
        whole(1, MAX_TURNS), "The maximum number of replies by a candidate in one conversation."
    )


def _declared_user(keys: UserKeys) -> DeclaredUser | None:
    model = described_model(keys)
    if model is None:
        return None
    if model.provider == PERSON:
        keys.node.report("model", "is a person, who cannot be asked during a run.", "Name a model.")
    model = replace(model, parameters=keys.parameters or Parameters(), metadata=keys.metadata or {})
    user = (
        SimulatedUser(model=model)
        if keys.turns is None
        else SimulatedUser(model=model, turns=keys.turns)
    )
    return DeclaredUser(user=user, persona=keys.persona or "")


USER: Final = made_of(UserKeys, _declared_user)


class TurnKeys(Keys):
    """One message of a scripted user."""

    content = key(TEXT, required="Give the user's message.")
    expected = key(EXPECTED, "The reference for the reply to this message.")


def _turn_of(keys: TurnKeys) -> Turn | None:
    return None if keys.content is None else Turn(content=keys.content, expected=keys.expected)


_DESCRIBED_TURN: Final = made_of(TurnKeys, _turn_of)


def _read_turn(value: Value, path: Path, context: ReadContext) -> Turn | None:
    if isinstance(value, dict):
        turn = _DESCRIBED_TURN.read(value, path, context)
    else:
        text = read_text(value, path, context)
        turn = None if text is None else Turn(content=text)
    if turn is not None and not turn.content.strip():
        context.report(path, "is empty, expected the user's message.")
    return turn


_TURN: Final = Kind(_read_turn, {"anyOf": [TEXT.schema, _DESCRIBED_TURN.schema]})
_LIST: Final = list_of(_TURN, empty="is an empty list, expected the user's messages.")


def _read_turns(value: Value, path: Path, context: ReadContext) -> tuple[Turn, ...] | None:
    if isinstance(value, list) and len(value) > MAX_TURNS:
        context.report(path, f"has {len(value)} messages, but at most {MAX_TURNS} are allowed.")
        return None
    turns = _LIST.read(value, path, context)
    return None if turns is None else tuple(turn for _, turn in turns)


TURNS: Final = Kind(_read_turns, {**_LIST.schema, "maxItems": MAX_TURNS})
