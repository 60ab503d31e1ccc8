"""RLHF data: tasks with ideal responses and people's evaluation forms, or pairs of a chosen and a
rejected text.

Tasks are messages with `signal` objects in a list under `rlhf`, or flat objects with
`model_responses`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from assay.domain import import_records as records
from assay.domain.digest import JsonValue
from assay.domain.suite import Message
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.explained import Shape, explained_share
from assay.exchange.parsing.foreign_names import foreign_names
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_rows import first_rows, read_rows
from assay.exchange.parsing.json_values import JsonObject, as_list, as_object, objects_in
from assay.exchange.parsing.preferences import PREFERENCE, preference_assessment

NAME: Final = "rlhf"
HUMAN: Final = "people"
_PAIR: Final[Shape] = dict.fromkeys(foreign_names(__name__)["pair"])
_YES_NO: Final = {"yes": 1.0, "no": 0.0}
_FAULTS: Final = ("failure", "error", "harmful", "issue")


def recognise(sample: FileSample) -> float | None:
    """Recognise a list under `rlhf`, or rows with `chosen` and `rejected`."""
    document = sample.document
    if isinstance(document, dict) and isinstance(document.get("rlhf"), list):
        return 1.0
    rows = first_rows(sample)
    if rows and all(row.keys() >= {"prompt", "model_responses"} for row in rows):
        return 1.0
    return (
        explained_share(rows, _PAIR)
        if rows and all(row.keys() >= {"chosen", "rejected"} for row in rows)
        else None
    )


def read(source: InputFile, options: ReadOptions) -> Iterator[records.Found]:
    """Yield one run, with evaluated tasks or with preferences."""
    document = source.sample.document
    suite = options.dataset or source.stem
    if isinstance(document, dict) and isinstance(document.get("rlhf"), list):
        yield records.FoundRun(suite=suite, format=NAME)
        for number, item in enumerate(as_list(document["rlhf"]), 1):
            yield from _task(item, f"{source.name}#{number}")
        return
    if any("model_responses" in row for row in first_rows(source.sample)):
        yield records.FoundRun(suite=suite, format=NAME)
        for row, where in read_rows(source):
            yield from (
                (records.Skipped(where=where, why=row),)
                if isinstance(row, str)
                else _flat_task(row, where)
            )
        return
    yield records.FoundRun(
        suite=suite, format=NAME, rubric=(PREFERENCE,), provenance={"kind": "preferences"}
    )
    for number, (row, where) in enumerate(read_rows(source), 1):
        if isinstance(row, str):
            yield records.Skipped(where=where, why=row)
            continue
        yield from _pair(row, number, where)


def _task(
    item: JsonValue, where: str, metadata: JsonObject | None = None
) -> Iterator[records.Found]:
    """Yield one task of the `rlhf` list: prompt, ideal response, each model's response and people's
    evaluations.

    `metadata`: that of the task; without it, the answers about the prompt.
    """
    if not isinstance(item, dict):
        yield records.Skipped(where=where, why="is not a JSON object.")
        return
    identifier = item.get("taskId", item.get("task_id", item.get("id")))
    turns = objects_in(item.get("messages"))
    asked = [turn for turn in turns if turn.get("role") in ("system", "user")]
    if identifier is None or not asked:
        yield records.Skipped(
            where=where, why="has no task id." if identifier is None else "has no prompt."
        )
        return
    task = str(identifier)
    prompt = tuple(
        Message(role=str(turn["role"]), content=str(turn.get("text") or turn.get("content") or ""))
        for turn in asked
    )
    answer = next((turn for turn in turns if turn.get("role") == "assistant"), {})
    signal = as_object(answer.get("signal"))
    ideal = signal.get("ideal_response")
    final_answer = _form(signal.get("raw_preference_evaluation_form")).get("Final Answer")
    about: JsonObject = {
        _key(question): value
        for turn in turns
        for question, value in _form(turn.get("prompt_evaluation")).items()
    }
    yield records.FoundTask(
        id=task,
        prompt=prompt,
        ideal=str(ideal) if ideal else None,
        final_answer=final_answer or None,
        metadata=about if metadata is None else metadata,
    )
    for holder, key in ((answer, "response_options"), (signal, "human_evals")):
        if holder.get(key) and not isinstance(holder[key], list):
            yield records.Skipped(where=where, why=f"has a `{key}` that is not a list.")
    for option in as_list(answer.get("response_options")):
        fields = as_object(option)
        content = fields.get("text")
        if fields.get("model_id") and isinstance(content, str):
            candidate = str(fields["model_id"])
            yield records.FoundResponse(
                task=task, candidate=candidate, trial=1, where=where, content=content
            )
        else:
            yield records.Skipped(
                where=where, why="holds a response without a model or without text."
            )
    for evaluation in as_list(signal.get("human_evals")):
        fields = as_object(evaluation)
        if not fields.get("model_id"):
            yield records.Skipped(where=where, why="holds an evaluation without a model.")
            continue
        grades = tuple(_grades(str(fields["model_id"]), _form(fields.get("evaluation_form"))))
        if grades:
            yield records.FoundAssessment(
                task=task,
                trial=1,
                judge=HUMAN,
                by=records.GradedBy.PERSON,
                where=where,
                grades=grades,
            )


def _flat_task(row: JsonObject, where: str) -> Iterator[records.Found]:
    """Yield a task with `model_responses` at its top level, read as one of the `rlhf` list."""
    for key in ("model_responses", "human_evaluations"):
        if row.get(key) and not isinstance(row[key], list):
            yield records.Skipped(where=where, why=f"has `{key}` that is not a list.")
    metadata = dict(as_object(row.get("metadata")))
    system = metadata.pop("system_prompt", None)
    yield from _task(_nested(row, system), where, metadata)


def _nested(row: JsonObject, system: JsonValue) -> dict[str, JsonValue]:
    """Convert a flat task to the form with messages; it has none without a prompt.

    Booleans become answers to questions.
    """
    evaluations: list[JsonValue] = []
    for each in map(as_object, as_list(row.get("human_evaluations"))):
        form = {
            name.replace("_", " ").title(): value
            for name, value in each.items()
            if name != "model_id"
        }
        evaluations.append({"model_id": each.get("model_id"), "evaluation_form": _questions(form)})
    options: list[JsonValue] = [
        {"model_id": each.get("model_id"), "text": each.get("response_text")}
        for each in map(as_object, as_list(row.get("model_responses")))
    ]
    final = _questions({"Final Answer": row.get("final_answer")})
    signal: dict[str, JsonValue] = {
        "ideal_response": row.get("ideal_response"),
        "human_evals": evaluations,
    }
    signal["raw_preference_evaluation_form"] = final
    messages: list[JsonValue] = []
    prompt = row.get("prompt")
    if isinstance(prompt, str) and prompt.strip():
        if isinstance(system, str) and system:
            messages.append({"role": "system", "text": system})
        messages.append({"role": "user", "text": prompt})
        messages.append({"role": "assistant", "response_options": options, "signal": signal})
    return {"taskId": row.get("task_id", row.get("taskId", row.get("id"))), "messages": messages}


def _questions(answers: JsonObject) -> list[JsonValue]:
    words = {True: "Yes", False: "No"}
    return [
        {"question": name, "human_input_value": words[value] if isinstance(value, bool) else value}
        for name, value in answers.items()
    ]


def _grades(candidate: str, form: Mapping[str, str]) -> Iterator[records.FoundGrade]:
    """Yield a grade for each Yes or No answer, with comments as reasons; No is 1 if Yes is bad
    (`Model Failure`).
    """
    comments = " ".join(value for key, value in form.items() if "comment" in key.lower())
    for question, value in form.items():
        points = _YES_NO.get(value.strip().lower())
        if points is not None:
            bad_news = any(word in question.lower() for word in _FAULTS)
            yield records.FoundGrade(
                candidate=candidate,
                criterion=question,
                score=1.0 - points if bad_news else points,
                raw_score=points,
                min_score=0.0,
                max_score=1.0,
                reason=comments,
            )


def _key(question: str) -> str:
    """Return a question such as `Task URL` as a key, `task_url`; texts that are keys already are
    returned unchanged.
    """
    return "_".join(question.lower().split()) if " " in question or question.istitle() else question


def _form(value: object) -> dict[str, str]:
    return {
        str(row["question"]): str(row["human_input_value"])
        for row in objects_in(value)
        if row.get("question") and row.get("human_input_value") is not None
    }


def _pair(row: JsonObject, number: int, where: str) -> Iterator[records.Found]:
    chosen, rejected = _text(row.get("chosen")), _text(row.get("rejected"))
    if chosen is None or rejected is None:
        yield records.Skipped(where=where, why="lacks a text under `chosen` or `rejected`.")
        return
    task = str(row.get("id", row.get("prompt_id", number)))
    prompt = row.get("prompt", row.get("question", row.get("instruction")))
    text = _text(prompt)
    # Some sets have no separate prompt: both texts then begin with the dialogue so far.
    shared = _shared(chosen, rejected) if text is None else text
    yield records.FoundTask(
        id=task, prompt=(Message(role="user", content=shared),) if shared else ()
    )
    names = (str(row.get("chosen_model") or "chosen"), str(row.get("rejected_model") or "rejected"))
    for name, answer in zip(names, (chosen, rejected), strict=True):
        content = answer if text is not None else answer[len(shared) :]
        yield records.FoundResponse(
            task=task, candidate=name, trial=1, where=where, content=content
        )
    yield preference_assessment(
        *names, 1.0, task=task, judge=HUMAN, by=records.GradedBy.PERSON, where=where
    )


def _shared(chosen: str, rejected: str) -> str:
    """Return the dialogue with which both texts begin, up to the end of the last turn that they
    share.
    """
    at = next(
        (i for i, (a, b) in enumerate(zip(chosen, rejected, strict=False)) if a != b),
        min(len(chosen), len(rejected)),
    )
    # The mark of a turn in Anthropic's HH set.
    end = chosen.rfind("Assistant:", 0, at + 1)
    return chosen[: end + len("Assistant:")] if end >= 0 else ""


def _text(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        content = as_object(value[-1]).get("content")
        return content if isinstance(content, str) else json.dumps(value)
    return None
