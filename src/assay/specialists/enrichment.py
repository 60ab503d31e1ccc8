"""Ask a model for metadata about a document, and insert it into a template, whose comments and
layout stay as they are.

A document may try to steer the metadata. It is marked as material, and whatever the model replies,
only four fields of limited length are used.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from assay.domain.calls import AnswerSchema, ModelRequest, Purpose, Reply, Role
from assay.domain.digest import text_digest
from assay.domain.model import Parameters
from assay.domain.suite import Message
from assay.domain.unescaped_json import unescaped_json
from assay.scoring.evaluator import UnreadableReply
from assay.scoring.json_repair import read_loosely
from assay.scoring.judge import closed_object
from assay.scoring.prompts import filled
from assay.specialists.templates import extra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.domain.digest import JsonValue
    from assay.domain.model import ModelSpec
    from assay.domain.specialists import SpecialistTemplate

LONGEST_TEXT: Final = 10_000
"""Maximum characters of a document that the model reads."""

PARAMETERS: Final = Parameters(temperature=0.3, max_tokens=2_000)

_MAX_CHARACTERS: Final = 1_000
_MAX_ITEMS: Final = 10
_LONGEST_ITEM: Final = 200
_TEXTS: Final = ("summary", "relevance_to_specialist")
_LISTS: Final = ("key_concepts", "use_cases")


def enrichment_request(
    model: ModelSpec, template: SpecialistTemplate, source: str, text: str
) -> ModelRequest:
    """Return the request for a document's metadata; equal documents of equal specialists give equal
    requests.
    """
    shown = text[:LONGEST_TEXT]
    mark = text_digest(shown)[:8]
    while mark in shown:
        mark = text_digest(mark)[:8]
    about = {
        "name": template.name,
        "persona": template.persona,
        "capabilities": template.capabilities,
    }
    values = {
        "specialist": unescaped_json(about, indent=1)[:LONGEST_TEXT],
        "source": source[:200],
        "mark": mark,
        "text": shown,
        "cut": ""
        if shown == text
        else f"(These are the first {len(shown):,} of {len(text):,} characters.)",
    }
    properties: dict[str, JsonValue] = {key: {"type": "string"} for key in _TEXTS}
    properties |= {key: {"type": "array", "items": {"type": "string"}} for key in _LISTS}
    prompt = (files(__package__) / "enrichment_prompt.md").read_text("utf-8")
    return ModelRequest(
        model=model,
        messages=(Message(role="user", content=filled(prompt, values)),),
        parameters=model.parameters.over(PARAMETERS),
        purpose=Purpose(
            role=Role.STRUCTURER, task=f"enrichment/{template.name}/{source[:200]}", trial=1
        ),
        answer_schema=AnswerSchema(name="enrichment", schema=closed_object(properties)),
    )


def read_enrichment(reply: Reply) -> dict[str, JsonValue]:
    """Return the four fields of a reply, shortened; raises `UnreadableReply` if it has no object
    with all of them.
    """
    for document in reversed(read_loosely(reply.text).documents):
        if isinstance(document.value, dict) and document.value.keys() >= {*_TEXTS, *_LISTS}:
            fields: dict[str, JsonValue] = {
                key: printable_line(document.value[key], _MAX_CHARACTERS) for key in _TEXTS
            }
            for key in _LISTS:
                items = document.value[key]
                lines = (
                    printable_line(item, _LONGEST_ITEM)
                    for item in (items if isinstance(items, list) else [])
                )
                kept: list[JsonValue] = [line for line in lines if line]
                fields[key] = kept[:_MAX_ITEMS]
            if fields["summary"]:
                return {key: fields[key] for key in ("summary", *_LISTS, "relevance_to_specialist")}
    raise UnreadableReply(
        "There is no JSON object with a summary, key_concepts, use_cases and relevance_to_specialist."
    )


def with_enrichments(
    text: str,
    documentation: Sequence[Mapping[str, Any]],
    enrichments: Mapping[int, Mapping[str, JsonValue]],
) -> str:
    """Return the text of a template with enrichments, which are keyed by the document's position in
    the merged documentation.

    Documentation that the template inherits is written into it.
    """
    json5 = extra("json5.loader")
    root = json5.loads(text, loader=json5.ModelLoader()).value
    own = next((value for key, value in reversed(_pairs(root)) if key == "documentation"), None)
    edits: list[tuple[int, int, str]] = []
    if own is None:
        whole = [
            {**each, "enrichment": dict(enrichments[n])} if n in enrichments else each
            for n, each in enumerate(documentation)
        ]
        edits += _set(text, root, "documentation", whole)
    else:
        for n, enrichment in enrichments.items():
            edits += _set(text, own.values[n], "enrichment", enrichment)
    for start, end, replacement in sorted(edits, key=lambda edit: edit[0], reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _set(text: str, node: Any, name: str, value: object) -> list[tuple[int, int, str]]:
    """Return the edits (start, end, new text) that set the key `name` of an object in a JSON5
    text.
    """
    closing: int = node._end_tok.index
    margin = re.match(r"[ \t]*", text[text.rfind("\n", 0, closing) + 1 :])
    indent = margin[0] if margin else ""
    written = re.sub(r'(?m)^( *)"(\w+)": ', r"\1\2: ", unescaped_json(value, indent=2))
    written = written.replace("\n", f"\n{indent}  ")
    known = [each for key, each in _pairs(node) if key == name]
    if known:
        return [(known[-1]._tok.index, _end(known[-1]), written)]
    alone = text[:closing].rpartition("\n")[2].strip() == ""  # the brace has its own line
    start = closing if alone else len(text[:closing].rstrip(" \t"))
    edits = [
        (start, closing, f"{'' if alone else f'{chr(10)}{indent}'}  {name}: {written},\n{indent}")
    ]
    if node.values and not node.trailing_comma:
        edits.append((_end(node.values[-1]), _end(node.values[-1]), ","))
    return edits


def _pairs(node: Any) -> list[tuple[Any, Any]]:
    return [
        (getattr(key, "name", None) or key.characters, value)
        for key, value in zip(node.keys, node.values, strict=True)
    ]


def _end(node: Any) -> int:
    return int((node._end_tok or node._tok).end)


def printable_line(value: object, most: int) -> str:
    """Return a text in one line without control characters, shortened; empty if the value is not a
    text.
    """
    line = (
        " ".join("".join(c if c.isprintable() else " " for c in value).split())
        if isinstance(value, str)
        else ""
    )
    return line if len(line) <= most else f"{line[: most - 1]}…"
