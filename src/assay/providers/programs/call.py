"""Build a program's input for one trial, and read the answer, usage and cost from its output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from assay.domain.calls import ModelRequest, Reply, Usage
from assay.domain.digest import JsonValue
from assay.domain.failure import CallFailed, Fault
from assay.domain.programs import Command, WebService, template_of
from assay.domain.prompts import CONTEXT, columns_named, columns_of, filled_in
from assay.formats.json_paths import value_at
from assay.providers.json_body import count, whole

LONGEST_ANSWER: Final = 8 * 2**20
"""Maximum bytes of an answer."""

LONGEST_LOG: Final = 64 * 1024
"""Maximum characters of a program's output that are stored in addition to its answer."""

LONGEST_DETAIL: Final = 500

_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSW", re.IGNORECASE)
_SHORTEST_SECRET: Final = 8


def input_of(request: ModelRequest) -> dict[str, JsonValue]:
    """Return the values that a program receives for a trial, by name.

    The expected answer is not included.

    `prompt` is the text of the last user message, preceded by the task's context unless the message
    already contains it. `messages` contains all messages. In a conversation with several turns,
    `prompt` contains all turns, each after its role.
    """
    system = "\n\n".join(
        message.content for message in request.messages if message.role == "system"
    )
    turns = [message for message in request.messages if message.role != "system"]
    if len(turns) == 1:
        prompt = turns[0].content
    else:
        prompt = "\n\n".join(f"{message.role}: {message.content}" for message in turns)
    task = request.task
    if task is None:
        about: dict[str, JsonValue] = {"id": request.purpose.task}
    else:
        about = {**columns_of(task), "tags": list(task.tags), "metadata": dict(task.extra)}
        named = request.model.program is not None and CONTEXT in columns_named(
            template_of(request.model.program)
        )
        if task.context and not named and task.context not in prompt:
            prompt = f"{task.context}\n\n{prompt}"
    messages: list[JsonValue] = [
        {"role": message.role, "content": message.content} for message in request.messages
    ]
    return {
        "task": {**about, "prompt": prompt, "messages": messages, "system_prompt": system},
        "prompt": prompt,
        "messages": messages,
        "system_prompt": system,
        "parameters": dict(request.parameters.as_json()),
        "seed": request.parameters.seed,
        "trial": request.purpose.trial,
    }


def text_values(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the values available to templates: the task's columns and all texts of the input."""
    task: Mapping[str, Any] = given["task"]
    values = {name: value for name, value in task.items() if isinstance(value, str)}
    values["tags"] = ", ".join(task.get("tags", ()))
    values |= {"trial": str(given["trial"]), "seed": str(given["seed"])}
    return values


def filled(template: JsonValue, given: Mapping[str, Any], values: Mapping[str, str]) -> JsonValue:
    """Fill in the templates in a JSON document; a text that is exactly `{{messages}}` becomes the
    list of messages.
    """
    match template:
        case "{{messages}}":
            messages: JsonValue = given["messages"]
            return messages
        case str():
            return filled_in(template, values)
        case list():
            return [filled(item, given, values) for item in template]
        case dict():
            return {
                filled_in(name, values): filled(item, given, values)
                for name, item in template.items()
            }
        case _:
            return template


def reply_in(
    output: JsonValue,
    program: Command | WebService,
    request: ModelRequest,
    *,
    elapsed_s: float,
    log: str = "",
) -> Reply:
    """Return the reply in a JSON output; raises `CallFailed` if the suite's answer path leads to no
    answer.
    """
    try:
        answer = value_at(output, program.response or "$")
    except LookupError as error:
        raise bad_answer(f"Its JSON {error}.", log=log) from None
    if isinstance(answer, dict | list) or answer is None:
        where = program.response or "$"
        what = "null" if answer is None else "a list" if isinstance(answer, list) else "an object"
        raise bad_answer(
            f"{where} of the program's JSON is {what}, but an answer must be text.", log=log
        )
    reported = {}
    for name, path in program.usage.items():
        try:
            reported[name] = value_at(output, path)
        except LookupError:
            continue
    text = (
        answer
        if isinstance(answer, str)
        else str(answer).lower()
        if isinstance(answer, bool)
        else str(answer)
    )
    return reply_of(text, reported, request, elapsed_s=elapsed_s, log=log)


def reply_of(
    text: str,
    reported: Mapping[str, Any],
    request: ModelRequest,
    *,
    elapsed_s: float,
    log: str = "",
) -> Reply:
    """Return the reply with the usage that the program reports; raises `CallFailed` for an empty
    answer.

    The cost is the program's own figure, else that of its tokens at the candidate's price, else 0.
    It is None if the program's figure is unreadable.
    """
    if not text.strip():
        raise CallFailed(
            "empty", "The answer is empty.", transient=False, fault=Fault.CANDIDATE, log=log
        )
    usage = Usage(
        input_tokens=count(reported.get("input_tokens")),
        output_tokens=count(reported.get("output_tokens")),
    )
    stated, price = reported.get("cost_usd"), request.model.price
    if isinstance(stated, int | float) and not isinstance(stated, bool) and 0 <= stated < 1e9:
        cost: float | None = float(stated)
    elif price is not None and usage.input_tokens is not None and usage.output_tokens is not None:
        cost = (
            usage.input_tokens * price.input_usd + usage.output_tokens * price.output_usd
        ) / 1_000_000
    else:
        cost = 0.0 if price is None and stated is None else None
    return Reply(text=whole(text), usage=usage, latency_s=elapsed_s, cost_usd=cost, log=log)


def bad_answer(detail: str, *, log: str = "") -> CallFailed:
    return CallFailed("bad_answer", detail, transient=False, fault=Fault.CANDIDATE, log=log)


def failed(kind: str, detail: str, *, log: str = "", fault: Fault = Fault.CANDIDATE) -> CallFailed:
    """Return the failure of a call that must not be repeated, because the program may have had
    effects before it failed.
    """
    return CallFailed(
        kind,
        whole(detail)[:LONGEST_DETAIL],
        transient=False,
        fault=fault,
        log=whole(log)[:LONGEST_LOG],
    )


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Replace the values of secret variables such as `OPENAI_API_KEY` in a text by the variables'
    names.
    """
    for name, value in environment.items():
        if len(value) >= _SHORTEST_SECRET and value in text and _SECRET.search(name):
            text = text.replace(value, f"[{name}]")
    return text
