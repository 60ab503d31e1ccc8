"""Predictions and results of OpenCompass: `predictions/MODEL/DATASET.json` and
`results/MODEL/DATASET.json`.

Based on `opencompass/tasks/openicl_eval.py`, `openicl/icl_inferencer/icl_base_inferencer.py`,
`icl_evaluator/` and `evaluator/` of 0.5 (2025). Predictions are an object with one row per index.
Results contain totals and, with `--dump-eval-details`, `details`: an object of rows, or a list of
rows in which each value is a list with one entry per repeat. The folder is named after the model,
the file after the data set.

A row's `correct` is rule-based, unless the row contains a judge model's reply. Results without
details are only means, which cannot be compared; they are kept with the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from assay.plugins import (
    Failure,
    Fault,
    FileSample,
    Found,
    FoundCandidate,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    JsonValue,
    Message,
    MetricGrades,
    MetricValue,
    Noted,
    NotJson,
    ReadOptions,
    Shape,
    Skipped,
    as_list,
    as_object,
    as_text,
    as_texts,
    explained_share,
    folder_name,
    folder_path,
    foreign_names,
    objects_in,
    parent_folder,
    parse_json,
    pick,
    shorten,
    to_text,
)

NAME: Final = "opencompass"

_PREDICTION: Final[Shape] = {"*": {"*": None}}
_RESULTS: Final[Shape] = {"*": None}
_DETAIL_KEYS: Final = frozenset(foreign_names(__name__)["detail_keys"])
_VERDICTS: Final = ("correct", "is_correct", "cascade_correct")
_OF_A_MODEL: Final = (
    "llm_evaluation",
    "llm_judge",
    "origin_grade_response",
    "grade_letter",
    "judge",
    "judgement",
)
_ROLES: Final = {"HUMAN": "user", "SYSTEM": "system", "BOT": "assistant"}


class _Place(NamedTuple):
    """Task and trial of a row; the predictions of the first repeat come first, then those of the
    second.
    """

    task: str
    trial: int


def recognise(sample: FileSample) -> float | None:
    """Recognise predictions keyed by row number, and results with details per row."""
    shape = {"predictions": _PREDICTION, "results": _RESULTS}.get(_kind(sample) or "")
    return None if shape is None else explained_share(sample.document, shape)


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the results of a file of predictions: the file for the same model and data set in the
    folder `results`.
    """
    if _kind(source.sample) != "predictions":
        return ()
    return [
        other
        for other in others
        if _kind(other.sample) == "results" and _place(other) == _place(source)
    ]


def artifact_folders(source: InputFile, companions: Sequence[InputFile]) -> Collection[str]:
    """Return the evaluation's folder, in which OpenCompass also leaves its configuration, logs and
    summaries.
    """
    folder = parent_folder(folder_path(source))
    return (parent_folder(folder),) if folder_name(folder) in ("predictions", "results") else ()


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a response for every prediction, and verdicts if the results have
    details.
    """
    documents: dict[str | None, JsonObject] = {}
    for file in (source, *options.beside.get("companions", ())):
        try:
            documents[_kind(file.sample)] = as_object(parse_json(file.read()))
        except NotJson as error:
            yield Skipped(where=file.name, why=str(error))
    predictions, results = documents.get("predictions", {}), documents.get("results", {})
    details = _details(results)
    if not predictions and not details:
        what = "contains only mean scores, which cannot be compared. Run OpenCompass with `--dump-eval-details`."
        yield Skipped(where=source.name, why=what)
        return
    model = folder_name(folder_path(source)) or "model"
    candidate = options.candidate or model
    yield FoundRun(
        suite=options.dataset or source.stem,
        format=NAME,
        candidates=(FoundCandidate(name=candidate, model=model, metadata=options.model_info),),
        provenance={"results": pick(results, [key for key in results if key != "details"])},
    )
    repeats = max((n for _, n in details.values()), default=1)
    size = max(1, len(predictions) // repeats)
    rows = list(predictions.items()) or [(index, {}) for index in details]
    grades = MetricGrades()
    ungraded = 0
    seen: set[str] = set()
    for index, value in rows:
        where = f"{source.name}#{index}"
        row = as_object(value)
        number = int(index) if index.isdecimal() else None
        place = (
            _Place(index, 1)
            if number is None or repeats == 1
            else _Place(str(number % size), number // size + 1)
        )
        detail = _of_repeat(details.get(place.task, ({}, 1))[0], place.trial - 1)
        if place.task not in seen:
            seen.add(place.task)
            yield _task(place.task, row, detail)
        answer = row.get("prediction", detail.get("origin_prediction", detail.get("pred")))
        failure = None
        if answer is None:
            failure = Failure(
                kind="no_output", fault=Fault.PROVIDER, detail="there is no prediction."
            )
        yield FoundResponse(
            task=place.task,
            candidate=candidate,
            trial=place.trial,
            where=where,
            content=None if failure is not None else to_text(answer),
            failure=failure,
        )
        verdict = _verdict(detail)
        ungraded += verdict is None and bool(detail)
        if verdict is not None and failure is None:
            yield from grades.assessments(
                [verdict], task=place.task, candidate=candidate, trial=place.trial, where=where
            )
    yield from grades.notes(source.name)
    if ungraded:
        what = f"{ungraded:,} details hold no verdict (`correct`), so their answers have no grade."
        yield Noted(where=source.name, what=what)
    if not details:
        what = (
            "the results have no details, so the answers have no grades. Use `--dump-eval-details`."
        )
        yield Noted(where=source.name, what=what)


def _kind(sample: FileSample) -> str | None:
    head = sample.head
    if sample.rows and not sample.document:
        return None
    document = as_object(sample.document)
    if (b'"prediction"' in head and b'"origin_prompt"' in head) or b'"testing input"' in head:
        rows = [row for key, row in list(document.items())[:20] if key.isdecimal()]
        if (
            rows
            and len(rows) == min(len(document), 20)
            and all("prediction" in as_object(row) for row in rows)
        ):
            return "predictions"
    if b'"details"' in head and (
        b'"pred' in head or b'"correct"' in head or b'"example_abbr"' in head
    ):
        details = [detail for detail, _ in _details(document).values()][:20]
        return (
            "results"
            if details and all(detail.keys() & _DETAIL_KEYS for detail in details)
            else None
        )
    return None


def _place(source: InputFile) -> tuple[str, str, str]:
    folder = folder_path(source)
    return parent_folder(parent_folder(folder)), folder_name(folder), source.stem


def _details(results: JsonObject) -> dict[str, tuple[JsonObject, int]]:
    details = results.get("details")
    if isinstance(details, dict):
        return {
            index: (row, _repeats(row)) for index, row in details.items() if isinstance(row, dict)
        }
    return {str(number): (row, _repeats(row)) for number, row in enumerate(objects_in(details))}


def _repeats(row: JsonObject) -> int:
    """Return the number of repeats in a row whose values are lists; 1 for a plain row."""
    lists = [row[key] for key in _VERDICTS if isinstance(row.get(key), list)]
    if not lists and "example_abbr" in row:
        lists = [value for key, value in row.items() if isinstance(value, list)]
    return len(as_list(lists[0])) or 1 if lists else 1


def _of_repeat(row: JsonObject, at: int) -> JsonObject:
    """Return one repeat of a row in which every value is a list with one entry per repeat."""
    repeats = _repeats(row)
    listed = "example_abbr" in row or any(isinstance(row.get(key), list) for key in _VERDICTS)
    if not listed or at >= repeats:
        return row if not listed else {}
    return {
        key: value[at] if isinstance(value, list) and len(value) == repeats else value
        for key, value in row.items()
        if key != "example_abbr"
    }


def _task(task: str, row: JsonObject, detail: JsonObject) -> FoundTask:
    prompt = row.get("origin_prompt", detail.get("prompt"))
    expected = row.get("gold", detail.get("answer", detail.get("references", detail.get("ref"))))
    return FoundTask(id=task, prompt=_prompt(prompt), expected=as_texts(expected))


def _prompt(value: JsonValue) -> tuple[Message, ...]:
    if isinstance(value, str):
        return (Message(role="user", content=value),) if value else ()
    return tuple(
        Message(role=_ROLES.get(str(turn.get("role")), "user"), content=text)
        for turn in objects_in(value)
        if (text := as_text(turn.get("prompt")))
    )


def _verdict(detail: JsonObject) -> MetricValue | None:
    if "prediction" in detail and "origin_prompt" in detail:
        return _reply_of_a_judge(detail)
    words = next((detail[key] for key in _OF_A_MODEL if detail.get(key) is not None), None)
    value = next(
        (detail[key] for key in _VERDICTS if isinstance(detail.get(key), bool | int | float)), None
    )
    rule = as_object(detail.get("rule_evaluation"))
    if value is None and "correct" in rule:
        value = rule["correct"]
    if value is None and words is None:
        return None
    reason = shorten(words) if words is not None else ""
    if not reason and detail.get("pred") is not None:
        reason = f"Answer read: {shorten(detail['pred'], 300)}"
    by = GradedBy.RULE if words is None else GradedBy.MODEL
    judge = "OpenCompass" if words is None else "OpenCompass's judge"
    return MetricValue(criterion="", value=value, judge=judge, by=by, reason=reason)


def _reply_of_a_judge(detail: JsonObject) -> MetricValue:
    """Return a judge model's verdict; its letter is a score only if its prompt defines the
    letters.
    """
    reply = to_text(detail.get("prediction"))
    prompt = "\n".join(message.content for message in _prompt(detail.get("origin_prompt")))
    value = None
    if "A: CORRECT" in prompt and "B: INCORRECT" in prompt:
        value = {"A": True, "B": False}.get(reply.strip())
    return MetricValue(
        criterion="",
        value=value,
        judge="OpenCompass's judge",
        by=GradedBy.MODEL,
        reason=shorten(reply),
    )
