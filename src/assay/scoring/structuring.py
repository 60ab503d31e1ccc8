"""Structuring: a model splits a response or a model solution into assumptions, steps, results and
the final answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from importlib.resources import files
from typing import Final

from assay.domain.calls import AnswerSchema, ModelRequest, Purpose, Reply, Role
from assay.domain.digest import JsonValue
from assay.domain.model import Parameters
from assay.domain.structure import StructuredAnswer, Structuring
from assay.domain.suite import Message, Rubric
from assay.domain.unescaped_json import unescaped_json
from assay.scoring.evaluator import GradingAttempt, UnreadableReply
from assay.scoring.json_repair import read_loosely
from assay.scoring.judge import closed_object, prompt_text
from assay.scoring.prompts import filled

DEFAULTS: Final = Parameters(temperature=0.0, max_tokens=4096)

PROMPT: Final = (files(__package__) / "prompt_texts" / "structuring.md").read_text("utf-8")

_TEXTS: Final = ("assumptions", "final_answer", "format_notes")
_LISTS: Final = ("steps", "intermediate_results")


def structuring_request(
    structuring: Structuring, grading: GradingAttempt, text: str, *, candidate: str | None
) -> ModelRequest:
    """Return the request for one answer; `candidate` is None for the task's model solution.

    Equal texts give equal requests in all trials, so that one stored reply serves all of them.
    """
    template = PROMPT if structuring.prompt is None else structuring.prompt
    content = filled(template, {"prompt": prompt_text(grading.task), "answer": text})
    properties: dict[str, JsonValue] = {
        **{key: {"type": "array", "items": {"type": "string"}} for key in _LISTS},
        **{key: {"type": "string"} for key in _TEXTS},
    }
    return ModelRequest(
        model=structuring.model,
        messages=(Message(role="user", content=content),),
        parameters=structuring.model.parameters.over(DEFAULTS),
        purpose=Purpose(
            role=Role.STRUCTURER,
            task=grading.task.id,
            trial=grading.k,
            attempt=grading.attempt,
            candidate=candidate,
        ),
        answer_schema=AnswerSchema(name="structure", schema=closed_object(properties)),
    )


def foreseen_structuring(
    rubric: Rubric, grading: GradingAttempt, *, k: int
) -> Iterator[ModelRequest]:
    """Yield the requests for a grading attempt's answers and, in the first trial, the request for
    the model solution.
    """
    structuring, ideal = rubric.structuring, grading.task.ideal
    if structuring is None:
        return
    for response in grading.responses:
        yield structuring_request(structuring, grading, response.text, candidate=response.candidate)
    if ideal and k == 1:
        yield structuring_request(structuring, grading, ideal, candidate=None)


def read_structure(reply: Reply) -> StructuredAnswer:
    """Return the parsed answer.

    Raises `UnreadableReply` if the reply has no JSON object with steps and a final answer.
    """
    for document in reversed(read_loosely(reply.text).documents):
        if isinstance(document.value, dict):
            parts = {
                key.strip().lower().replace(" ", "_"): part for key, part in document.value.items()
            }
            if "steps" in parts and "final_answer" in parts:
                texts = {name: _text(parts[name]) for name in _TEXTS if name in parts}
                lists = {name: _list(parts[name]) for name in _LISTS if name in parts}
                return StructuredAnswer(**texts, **lists)  # type: ignore[arg-type] # names and values agree
    raise UnreadableReply("The reply contains no JSON object with `steps` and `final_answer`.")


def structure_text(structure: StructuredAnswer) -> str:
    return unescaped_json(asdict(structure), indent=1)


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else unescaped_json(value)


def _list(value: object) -> tuple[str, ...]:
    return tuple(map(_text, value)) if isinstance(value, list) else (_text(value),) if value else ()
