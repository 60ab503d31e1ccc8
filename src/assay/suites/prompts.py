"""Reads prompts of tasks and candidates: text, messages with text and images, and templates that
use a task's columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.domain.prompts import columns_named
from assay.domain.suite import Image, Message
from assay.suites.grammar import (
    PATH_NAME,
    TEXT,
    Keys,
    Kind,
    ReadContext,
    Schema,
    choice,
    key,
    made_of,
    one_of,
    read_text,
    unfit,
)
from assay.suites.located_yaml import Value, shown
from assay.suites.problems import Path

_ROLES: Final = ("system", "user", "assistant")
_DATA_IMAGE: Final = re.compile(
    r"data:(?P<type>image/(?:png|jpeg|gif|webp));base64,(?P<data>[A-Za-z0-9+/=\s]+)"
)


def _read_content(
    value: Value, path: Path, context: ReadContext
) -> tuple[str, tuple[Image, ...]] | None:
    """Read text, or a list of parts in OpenAI's format; texts are joined, and images are kept."""
    if not isinstance(value, list):
        text = read_text(value, path, context)
        return None if text is None else (text, ())
    texts: list[str] = []
    images: list[Image] = []
    for position, item in enumerate(value):
        inner = (*path, position)
        part: dict[str, Value] = item if isinstance(item, dict) else {"text": item}
        kind, words = part.get("type"), part.get("text")
        if kind in ("image", "image_url"):
            image = _read_image(part, inner, context)
            if image is None:
                return None
            images.append(image)
        elif kind in (None, "text") and isinstance(words, str):
            texts.append(words)
        else:
            context.report(inner, f"is a part of type {shown(kind)}, expected text or image.")
            return None
    text = read_text("\n".join(texts), path, context)
    return None if text is None else (text, tuple(images))


def _read_image(part: dict[str, Value], path: Path, context: ReadContext) -> Image | None:
    """Read an image from a file next to the suite, or from a `data:` address; nothing is
    downloaded.
    """
    named = part.get("file")
    if isinstance(named, str) and named:
        return context.files.image(named, (*path, "file"), context)
    # OpenAI's format nests the address: {image_url: {url: ...}}.
    address = part.get("image_url", part.get("url"))
    address = address.get("url") if isinstance(address, dict) else address
    if isinstance(address, str) and (match := _DATA_IMAGE.fullmatch(address)):
        return Image(media_type=match["type"], data=match["data"])
    remedy = "Write {type: image, file: picture.png}; images are not fetched from the web."
    context.report(path, "is an image without a `file`.", remedy)
    return None


_PART: Final[Schema] = {
    "type": "object",
    "properties": {
        "type": {"enum": ["text", "image", "image_url"]},
        "text": {"type": "string"},
        "file": {"type": "string", "minLength": 1},
    },
}
_CONTENT: Final = Kind(_read_content, {"anyOf": [TEXT.schema, {"type": "array", "items": _PART}]})


class MessageKeys(Keys):
    """A message of a prompt."""

    role = key(choice(_ROLES), required=f"Give it a role: {one_of(_ROLES)}.")
    content = key(_CONTENT, required="Give it the text of the message.")


def _read_message(value: Value, path: Path, context: ReadContext) -> Message | None:
    if isinstance(value, dict) and value.get("tool_calls") is not None:
        context.report(
            (*path, "tool_calls"), "makes the message a tool call, expected a text message."
        )
        return None
    keys = MessageKeys.read(value, path, context)
    if keys is None or keys.role is None or keys.content is None:
        return None
    text, images = keys.content
    return Message(role=keys.role, content=text, images=images)


def _read_prompt(value: Value, path: Path, context: ReadContext) -> tuple[Message, ...] | None:
    """Read text, which becomes the user's message, or a list of {role, content}."""
    if isinstance(value, dict):
        context.report(path, "is a mapping, expected text or a list of {role, content}.")
        return None
    if not isinstance(value, list):
        text = read_text(value, path, context)
        if text is not None and not text.strip():
            context.report(path, "is empty, expected the candidates' prompt.")
        return None if text is None else (Message(role="user", content=text),)
    messages = []
    for position, item in enumerate(value):
        message = _read_message(item, (*path, position), context)
        if message is not None:
            messages.append(message)
    if not value:
        context.report(path, "is an empty list, expected at least one message.")
    elif len(messages) == len(value) and all(message.role == "system" for message in messages):
        context.report(path, "has only system messages.", "Add a message with `role: user`.")
    return tuple(messages)


PROMPT: Final = Kind(
    _read_prompt,
    {"anyOf": [TEXT.schema, {"type": "array", "minItems": 1, "items": MessageKeys.schema()}]},
)


# --- templates of candidates ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Template:
    """A template's text, and the file that it came from, if any."""

    text: str
    path: str | None = None


class TemplateFileKeys(Keys):
    """A file that holds a template."""

    file = key(
        PATH_NAME, "Relative to the suite.", required="Name the file: {file: prompts/terse.txt}."
    )


def _template_file(keys: TemplateFileKeys) -> Template | None:
    return (
        None if keys.file is None else _in_file(keys.file, keys.node.at("file"), keys.node.context)
    )


_FILE: Final = made_of(TemplateFileKeys, _template_file)


def _in_file(named: str, path: Path, context: ReadContext) -> Template | None:
    text = context.files.text(named, path, context)
    if text is None:
        return None
    if not text.strip():
        context.report(path, f"names {named!r}, which is empty.")
    elif problem := unfit(text):
        context.report(path, f"names {named!r}, which {problem}")
    # Editors end a file with a line break, which its author does not intend to send.
    return Template(text.removesuffix("\n").removesuffix("\r"), named)


def _read_system_template(value: Value, path: Path, context: ReadContext) -> Template | None:
    if isinstance(value, dict):
        return _FILE.read(value, path, context)
    text = read_text(value, path, context)
    return None if text is None else Template(text)


def _read_user_template(value: Value, path: Path, context: ReadContext) -> Template | None:
    """Read a template, the mapping {file: ...}, or the path of a file, which is a line without a
    column.
    """
    template = _read_system_template(value, path, context)
    if template is None or isinstance(value, dict):
        return template
    line = template.text.strip()
    if not line:
        context.report(path, "is empty, expected a template or the path of its file.")
        return None
    # Text that names no column asks the same for every task, so such a line must be meant as a
    # path.
    if "{{" in line or "\n" in line:
        return template
    if any(char.isspace() for char in line) and not (context.files.folder / line).is_file():
        context.report(
            path,
            f"is {shown(line)}, which names no column, so every task would get the same prompt.",
            _HOW,
        )
        return None
    return _in_file(line, path, context)


_HOW: Final = (
    "Write {{prompt}}, or the name of a column such as {{question}}, where its text belongs."
)


def asks_the_same(templates: Sequence[str], path: Path, context: ReadContext) -> bool:
    """True if no template contains a column, so that every task would get the same prompt; reports
    this at `path`.
    """
    if any(columns_named(template) for template in templates):
        return False
    context.report(path, "names no column, so every task would get the same prompt.", _HOW)
    return True


_TEMPLATE_SCHEMA: Final[Schema] = {"anyOf": [TEXT.schema, _FILE.schema]}
SYSTEM_TEMPLATE: Final = Kind(_read_system_template, _TEMPLATE_SCHEMA)
USER_TEMPLATE: Final = Kind(_read_user_template, _TEMPLATE_SCHEMA)


def _read_judge_template(value: Value, path: Path, context: ReadContext) -> Template | None:
    """Read a judge's prompt template, the mapping {file: ...}, or the path of a file, which is a
    line without a placeholder.
    """
    if isinstance(value, dict):
        keys = TemplateFileKeys.read(value, path, context)
        named, path = (None if keys is None else keys.file), (*path, "file")
    else:
        named = read_text(value, path, context)
        if named is not None and ("{{" in named or "\n" in named.strip()):
            return Template(named)
    # Kept to the last character, unlike a candidate's template, because a calibration is valid for
    # exactly this text.
    text = None if named is None else context.files.text(named.strip(), path, context)
    if named is None or text is None:
        return None
    if not text.strip():
        context.report(path, f"names {named}, which is empty.")
        return None
    return Template(text, named)


JUDGE_TEMPLATE: Final = Kind(_read_judge_template, _TEMPLATE_SCHEMA)


def _read_messages(value: Value, path: Path, context: ReadContext) -> tuple[Message, ...] | None:
    if not isinstance(value, list):
        context.report(path, f"is {shown(value)}, expected a list of {{role, content}}.")
        return None
    return _read_prompt(value, path, context)


MESSAGES: Final = Kind(
    _read_messages, {"type": "array", "minItems": 1, "items": MessageKeys.schema()}
)
