"""Input files of batch endpoints: each request becomes a task, with the request's messages as the
prompt.

Known requests: `custom_id` with a `body` (OpenAI and its copies), with `params` (Anthropic) or with
a `request` (Vertex AI); Gemini's `key` with a `request`; Bedrock's `recordId` with a `modelInput`;
Vertex AI's `request` without an id, whose prompt's digest serves as the task's id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from assay.domain.digest import JsonValue
from assay.domain.import_records import Found, FoundTask, Skipped
from assay.domain.suite import Message
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.explained import Shape, explained_share
from assay.exchange.parsing.foreign_names import foreign_names
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_values import JsonObject, as_object, as_text, objects_in
from assay.exchange.readers.batch_lines import id_of, looks_like_output, prompt_digest
from assay.formats.json_lines import lines_of, row_of

NAME: Final = "openai_batch_input"
ROLE: Final = "input"

_NAMES: Final = foreign_names(__name__)
_LINE: Final[Shape] = dict.fromkeys(_NAMES["line"])
_PARAMETERS: Final = _NAMES["parameters"]
_GOOGLE_PARAMETERS: Final = {
    "topP": "top_p",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
}
_BODIES: Final = ("body", "params", "request", "modelInput")
_SYSTEM: Final = ("system", "instructions", "systemInstruction", "system_instruction")
_ROLES: Final = {"model": "assistant"}
# vLLM's batches may also ask for scores (`text_1`) and for reranking (`query`); `inputText` is
# Titan's, `message` Cohere's.
_PROMPTS: Final = (
    "messages",
    "contents",
    "prompt",
    "input",
    "text_1",
    "query",
    "inputText",
    "message",
)


def looks_like_input(row: JsonObject) -> bool:
    if "response" in row or looks_like_output(row):
        return False
    if "custom_id" in row:
        return any(isinstance(row.get(key), dict) for key in _BODIES)
    if "recordId" in row:
        return isinstance(row.get("modelInput"), dict)
    return "contents" in as_object(row.get("request"))


def recognise(sample: FileSample) -> float | None:
    """Recognise lines that hold an id and a request body."""
    rows = sample.rows
    if not rows:
        return None
    fitting = sum(map(looks_like_input, rows))
    return explained_share(rows, _LINE) * fitting / len(rows) if fitting else None


def models_of(sample: FileSample) -> Counter[str]:
    return Counter(
        model for row in sample.rows if (model := as_text(body_of(row).get("model"))) is not None
    )


def parameters_of(sample: FileSample) -> dict[str, JsonValue]:
    shared: dict[str, JsonValue] = {}
    for number, row in enumerate(sample.rows):
        body = body_of(row)
        settings = {
            **body,
            **as_object(body.get("inferenceConfig")),
            **as_object(body.get("generationConfig")),
        }
        for key, name in _GOOGLE_PARAMETERS.items():
            settings.setdefault(name, settings.get(key))
        parameters = {key: settings[key] for key in _PARAMETERS if settings.get(key) is not None}
        if number == 0:
            shared = parameters
        shared = {key: value for key, value in shared.items() if parameters.get(key) == value}
    return shared


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield the file's tasks; the import assigns them to a suite."""
    yield from tasks(source)


def tasks(source: InputFile) -> Iterator[FoundTask | Skipped]:
    """Yield a task for each request; the request's messages are the prompt."""
    name = source.name
    with source.open() as stream:
        for number, line in enumerate(lines_of(stream), 1):
            if not line:
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                if line.strip():
                    yield Skipped(where=f"{name}:{number}", why=str(row_of(line)))
                continue
            where = f"{name}:{number}"
            if not isinstance(row, dict) or not looks_like_input(row):
                yield Skipped(where=where, why="is not a request: it lacks an id or a body.")
                continue
            prompt = prompt_of(body_of(row))
            if prompt is None:
                yield Skipped(where=where, why="has a body without messages, prompt or input.")
                continue
            task = task_of(row, prompt)
            if task is None:
                yield Skipped(
                    where=where,
                    why="has an id that is not text, so no answer can be matched to it.",
                )
                continue
            yield FoundTask(id=task, prompt=prompt)


def task_of(row: JsonObject, prompt: Sequence[Message] | None) -> str | None:
    """Return the id of a line's task: the request's id or, if it has none, the digest of its
    prompt.
    """
    own = id_of(row)
    if (
        own is None
        and prompt
        and "request" in row
        and not any(key in row for key in ("custom_id", "key"))
    ):
        return prompt_digest([f"{turn.role}\x1e{turn.content}" for turn in prompt])
    return own


def prompt_of(body: JsonObject) -> tuple[Message, ...] | None:
    """Return a request's messages, system text first; None if it has no messages."""
    turns: list[Message] = []
    system = next((body[key] for key in _SYSTEM if body.get(key)), None)
    if system is not None:
        turns.append(Message(role="system", content=_text(system)))
    prompt = next((body[key] for key in _PROMPTS if body.get(key)), None)
    if prompt is None:
        return None
    if isinstance(prompt, dict):  # one turn instead of a list of them
        prompt = [prompt]
    messages = objects_in(prompt)
    if isinstance(prompt, list) and len(messages) == len(prompt) and all(map(_is_turn, messages)):
        turns += [
            Message(
                role=_ROLES.get(str(message.get("role")), str(message.get("role", "user"))),
                content=_text(message.get("content", message.get("parts"))),
            )
            for message in messages
        ]
    else:
        turns.append(Message(role="user", content=_text(prompt)))
    return tuple(turns)


def body_of(row: JsonObject) -> JsonObject:
    """Return the body of a request; empty if the line has none."""
    return next((body for key in _BODIES if isinstance(body := row.get(key), dict)), {})


def _is_turn(message: JsonObject) -> bool:
    return "role" in message or "parts" in message  # Gemini's user needs no role


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, dict):
        return _text(content.get("parts", [content]))
    if not isinstance(content, list) or not any(isinstance(part, str | dict) for part in content):
        return orjson.dumps(content).decode()
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    # Vertex AI repeats a request with every field of a part, most of them null.
    return "\n".join(
        text if isinstance(text, str) else orjson.dumps(_without_nulls(part)).decode()
        for text, part in zip(texts, content, strict=True)
    )


def _without_nulls(part: object) -> object:
    return (
        {key: value for key, value in part.items() if value is not None}
        if isinstance(part, dict)
        else part
    )
