"""Candidate prompts: templates with `{{column}}` placeholders, and the messages built from them.

A template is filled in with a single pass and never evaluated. Inserted text is not searched again,
so `{{system_prompt}}` in the text of a task stays unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.programs import OFFERED, template_of
from assay.domain.specialists import specialist_prompts
from assay.domain.suite import CandidateSpec, Message, Task, message_identity

CONTEXT: Final = "context"
REFERENCES: Final = ("expected", "ideal", "final_answer")
"""Fields with a task's right answers; no template may use them, because candidates must not see the
answers.
"""

_PLACEHOLDER: Final = re.compile(r"\{\{([^{}\n]{1,200})\}\}")


def columns_named(template: str) -> tuple[str, ...]:
    """Return the distinct columns in a template, in order of appearance."""
    return tuple(
        dict.fromkeys(
            match[1].strip() for match in _PLACEHOLDER.finditer(template) if match[1].strip()
        )
    )


def filled_in(template: str, columns: Mapping[str, str]) -> str:
    """Return a template with its columns replaced by their values; a name without a value stays
    unchanged.
    """
    return _PLACEHOLDER.sub(lambda match: columns.get(match[1].strip(), match[0]), template)


def prompt_columns(candidate: CandidateSpec) -> tuple[str, ...]:
    """Return the columns in a candidate's `prompt` and `messages`."""
    return columns_named(
        "\n".join([candidate.prompt or "", *(message.content for message in candidate.messages)])
    )


def all_columns(candidate: CandidateSpec) -> tuple[str, ...]:
    """Return the distinct columns in all of a candidate's templates."""
    own = (
        *prompt_columns(candidate),
        *columns_named(candidate.system_prompt or ""),
        *program_columns(candidate),
    )
    return tuple(dict.fromkeys(own))


def program_columns(candidate: CandidateSpec) -> tuple[str, ...]:
    """Return the task columns in the templates of a candidate's program."""
    program = None if candidate.model is None else candidate.model.program
    named = () if program is None else columns_named(template_of(program))
    return tuple(name for name in named if name not in OFFERED)


def columns_of(task: Task, system_prompt: str = "") -> dict[str, str]:
    """Return a task's template values: its own keys, overridden by its columns.

    `prompt` is the text of the task's last user message; it is absent if there is no such message.
    `system_prompt` is used for candidates without their own.
    """
    own = {
        "id": task.id,
        "thing": task.thing,
        CONTEXT: task.context,
        "language": task.language,
        "family": task.family,
        "tags": ", ".join(task.tags),
        "system_prompt": system_prompt if task.system_prompt is None else task.system_prompt,
    }
    asked = _last_user(task.prompt)
    if asked is not None:
        own["prompt"] = task.prompt[asked].content
    return own | dict(task.columns)


def sent_to(system_prompt: str, candidate: CandidateSpec, task: Task) -> tuple[Message, ...]:
    """Return the messages that a run sends to a candidate for a task; empty for a snippet.

    `system_prompt`: the plan's.
    """
    if candidate.model is None or task.snippet_of(candidate.name) is not None:
        return ()
    return candidate_messages(system_prompt, task, candidate)


def candidate_messages(
    system_prompt: str, task: Task, candidate: CandidateSpec
) -> tuple[Message, ...]:
    """Return the messages for a candidate: one system message, then the turns.

    The system message contains, in this order: the prompt of the candidate's specialist, the
    candidate's system prompt (or else the task's, or else the suite's `system_prompt`), the task's
    context unless a template names it, and the system messages of the prompt. A candidate's
    `prompt` replaces the task's last user message, and its `messages` replace all of the task's
    messages. The task's images stay with the last user message.
    """
    first, messages = (
        system_prompt if task.system_prompt is None else task.system_prompt,
        task.prompt,
    )
    if (
        candidate.system_prompt is not None
        or candidate.prompt is not None
        or candidate.messages
        or task.columns
    ):
        columns = columns_of(task, system_prompt)
        first = (
            columns["system_prompt"]
            if candidate.system_prompt is None
            else filled_in(candidate.system_prompt, columns)
        )
        messages = _own_messages(task, candidate, columns)
    context = task.context if task.context and CONTEXT not in all_columns(candidate) else ""
    special = specialist_prompts(candidate).get(task.id, "")
    system = "\n\n".join(
        part
        for part in (special, first, context, *(m.content for m in messages if m.role == "system"))
        if part
    )
    turns = tuple(message for message in messages if message.role != "system")
    return (Message(role="system", content=system), *turns) if system else turns


def prompts_of(candidate: CandidateSpec) -> dict[str, JsonValue]:
    """Return a candidate's own prompts as JSON; empty if it uses the prompts of the suite and its
    tasks.
    """
    own: dict[str, JsonValue] = {
        "system_prompt": candidate.system_prompt,
        "prompt": candidate.prompt,
        "prompt_path": candidate.prompt_path,
        "messages": [message_identity(message) for message in candidate.messages] or None,
    }
    return {name: value for name, value in own.items() if value is not None}


def _own_messages(
    task: Task, candidate: CandidateSpec, columns: Mapping[str, str]
) -> tuple[Message, ...]:
    asked = _last_user(task.prompt)
    images = () if asked is None else task.prompt[asked].images
    if candidate.messages:
        messages = tuple(
            replace(message, content=filled_in(message.content, columns))
            for message in candidate.messages
        )
        place = _last_user(messages)
        if place is None or not images:
            return messages
        last = replace(messages[place], images=(*messages[place].images, *images))
        return (*messages[:place], last, *messages[place + 1 :])
    if candidate.prompt is None:
        return task.prompt
    message = Message(role="user", content=filled_in(candidate.prompt, columns), images=images)
    return (
        (*task.prompt, message)
        if asked is None
        else (*task.prompt[:asked], message, *task.prompt[asked + 1 :])
    )


def _last_user(messages: tuple[Message, ...]) -> int | None:
    return next(
        (place for place in reversed(range(len(messages))) if messages[place].role == "user"), None
    )
