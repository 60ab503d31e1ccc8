"""Output items of OpenAI's hosted Evals, as its API returns them; the service ends on 30 November
2026.

Based on the API reference of `GET /evals/{id}/runs/{id}/output_items`, of the eval and the run
object and of the graders, in the openai-python and openai-node libraries of 2025 and 2026; Azure's
answers of the same shape. It reads JSON Lines or a JSON list of `eval.run.output_item` objects,
pages of them (`{"object": "list", "data": […]}`), and objects with such items under `output_items`.
Objects `eval` and `eval.run`, in the same file or in separate ones, name suite, candidate and
graders.

Each run becomes a run, and each item a task named after the item's number in the data source.
Grades of the types `label_model`, `score_model` and others that call a model await review, with the
model's answer as the reply; `string_check`, `text_similarity` and `python` count. Graders without a
type are treated as models, so that no unreviewed grade counts by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from assay.plugins import (
    Failure,
    Fault,
    FileSample,
    Found,
    FoundAssessment,
    FoundCandidate,
    FoundGrade,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    Noted,
    OffScale,
    ReadOptions,
    Skipped,
    as_count,
    as_id,
    as_list,
    as_messages,
    as_number,
    as_object,
    as_points,
    as_text,
    content_text,
    first_rows,
    folder_path,
    from_unix,
    in_unit_range,
    lies_beneath,
    objects_in,
    pick,
    read_document,
    read_rows,
    shorten,
    storable,
    to_text,
)

NAME: Final = "openai_evals"

_ITEM: Final = "eval.run.output_item"
_BY_RULE: Final = ("string_check", "text_similarity", "python", "endpoint")
_UUID: Final = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_REFERENCE: Final = re.compile(r"\{\{\s*item\.([A-Za-z0-9_]+)\s*\}\}")
_OWN_NAMES: Final = ("case_id", "custom_id", "id")


def recognise(sample: FileSample) -> float | None:
    """Recognise output items, evals and eval runs by their `object` field."""
    if b'"eval.run' not in sample.head and b'"testing_criteria"' not in sample.head:
        return None
    if any(_is_eval_object(row) for row in sample.rows[:50]):
        return 1.0
    return 1.0 if _objects_in(sample.document) else None


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the files with evals and runs in the folder of a file of items, or in any folder above
    it.
    """
    if not _has_items(source.sample):
        return ()
    return [
        other
        for other in others
        if lies_beneath(folder_path(source), folder_path(other))
        and recognise(other.sample)
        and not _has_items(other.sample)
    ]


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    about = _EvalFacts()
    runs: dict[str, int] = {}
    for file in options.beside.get("companions", ()):
        for row, _ in _objects(file):
            about.learn(row)
    for row, where in _objects(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
        elif row.get("object") == _ITEM:
            runs.setdefault(as_id(row.get("run_id")) or "", len(runs))
            about.note_item(row)
        else:
            about.learn(row)
    if not runs:
        why = "holds an eval or a run but none of its output items; fetch them from `/evals/{id}/runs/{id}/output_items`."
        yield Skipped(where=source.name, why=why)
        return
    for run in runs:
        yield from _run(source, run, about, options)


class _EvalFacts:
    """Names, models and graders from evals and runs; if no run has a model name, from items."""

    def __init__(self) -> None:
        self.evals: dict[str, JsonObject] = {}
        self.runs: dict[str, JsonObject] = {}
        self.models: dict[str, str] = {}
        self.eval_of: dict[str, str] = {}
        self.cut: bool = False
        self.scale = OffScale()

    def learn(self, row: JsonObject | str) -> None:
        """Record an eval or a run, or that more pages follow."""
        if isinstance(row, str):
            return
        name = as_id(row.get("id"))
        if row.get("has_more") is True:
            self.cut = True
        if name is None:
            return
        if row.get("object") == "eval.run":
            self.runs[name] = row
        elif "testing_criteria" in row:
            self.evals[name] = row

    def note_item(self, item: JsonObject) -> None:
        run = as_id(item.get("run_id")) or ""
        model = as_text(as_object(item.get("sample")).get("model"))
        if model is not None:
            self.models.setdefault(run, model)
        self.eval_of.setdefault(run, as_id(item.get("eval_id")) or "")
        for result in objects_in(item.get("results")):
            self.scale.learn(as_text(result.get("name")), as_points(result.get("score")))

    def graders(self, run: str) -> dict[str, JsonObject]:
        criteria = objects_in(self.evals.get(self.eval_of.get(run, ""), {}).get("testing_criteria"))
        return {
            name: criterion
            for criterion in criteria
            for name in (as_text(criterion.get("id")), as_text(criterion.get("name")))
            if name is not None
        }


def _is_eval_object(row: object) -> bool:
    fields = as_object(row)
    return fields.get("object") in (_ITEM, "eval.run") or (
        fields.get("object") == "eval" and "testing_criteria" in fields
    )


def _objects_in(document: object) -> list[JsonObject]:
    if isinstance(document, list):
        return [row for row in document if _is_eval_object(row)]
    fields = as_object(document)
    rows: list[JsonObject] = [fields] if _is_eval_object(fields) else []
    for value in fields.values():
        if isinstance(value, dict) and _is_eval_object(value):
            rows.append(value)
        elif isinstance(value, list):
            rows.extend(row for row in objects_in(value) if _is_eval_object(row))
    if rows and fields.get("has_more") is True:
        rows.append({"id": "page", "has_more": True})
    return rows


def _has_items(sample: FileSample) -> bool:
    return b'"eval.run.output_item"' in sample.head or any(
        row.get("object") == _ITEM for row in first_rows(sample, 50)
    )


def _objects(source: InputFile) -> Iterator[tuple[JsonObject | str, str]]:
    """Yield objects with their locations, from JSON Lines (each an object or a page) or from one
    document.
    """
    if source.sample.rows:
        for row, where in read_rows(source):
            if isinstance(row, str):
                yield row, where
                continue
            inner = _objects_in(row)
            if not inner:
                yield "is not an output item, eval or run of OpenAI's Evals.", where
            for number, item in enumerate(inner, 1):
                yield item, where if len(inner) == 1 else f"{where}#{number}"
        return
    document = read_document(source)
    if isinstance(document, list):
        for number, value in enumerate(document, 1):
            if isinstance(value, dict) and _is_eval_object(value):
                yield value, f"{source.name}#{number}"
            else:
                yield (
                    "is not an output item, eval or run of OpenAI's Evals.",
                    f"{source.name}#{number}",
                )
        return
    for number, row in enumerate(_objects_in(document), 1):
        yield row, f"{source.name}#{number}"


def _run(source: InputFile, run: str, about: _EvalFacts, options: ReadOptions) -> Iterator[Found]:
    spec = about.runs.get(run, {})
    evaluation = about.evals.get(about.eval_of.get(run, ""), {})
    model = as_text(spec.get("model")) or about.models.get(run)
    candidate = options.candidate or model or as_text(spec.get("name")) or run or source.stem
    yield FoundRun(
        suite=options.dataset
        or as_text(evaluation.get("name"))
        or about.eval_of.get(run)
        or source.stem,
        format=NAME,
        candidates=(
            FoundCandidate(
                name=candidate, model=about.models.get(run), metadata=options.model_info
            ),
        ),
        started=from_unix(as_number(spec.get("created_at"))),
        complete=spec.get("status") in (None, "completed") and not about.cut,
        provenance={
            "run_id": run,
            "eval_id": about.eval_of.get(run),
            **pick(
                spec,
                (
                    "name",
                    "status",
                    "model",
                    "data_source",
                    "report_url",
                    "result_counts",
                    "metadata",
                    "error",
                ),
            ),
            **(
                {"testing_criteria": storable(evaluation["testing_criteria"])}
                if "testing_criteria" in evaluation
                else {}
            ),
        },
    )
    if about.cut:
        what = "a page has `has_more`: the eval has more items than this file. Assay imports only the items in this file."
        yield Noted(where=source.name, what=what)
    by_name = about.graders(run)
    graders = _Graders(by_name, _references(by_name), about.scale)
    seen: set[str] = set()
    trials: dict[str, int] = {}
    for row, where in _objects(source):
        if (
            isinstance(row, str)
            or row.get("object") != _ITEM
            or (as_id(row.get("run_id")) or "") != run
        ):
            continue
        name = as_id(row.get("id"))
        if name is not None and name in seen:
            yield Skipped(where=where, why=f"repeats the output item {name}.")
            continue
        seen.add(name or where)
        task = _task_of(row)
        if task is None:
            yield Skipped(
                where=where, why="has neither a `datasource_item_id` nor an item with an id."
            )
            continue
        trial = trials[task] = trials.get(task, 0) + 1
        yield from _item(row, task, trial, candidate, where, graders)


def _references(graders: dict[str, JsonObject]) -> tuple[str, ...]:
    """Return the item keys that a grader's `reference` contains, such as `label` in
    `{{item.label}}`.
    """
    matches = [
        _REFERENCE.fullmatch(to_text(grader.get("reference")).strip())
        for grader in graders.values()
    ]
    return tuple(dict.fromkeys(match[1] for match in matches if match))


def _task_of(row: JsonObject) -> str | None:
    number = as_id(row.get("datasource_item_id"))
    if number is not None:
        return number
    item = _item_of(row)
    return next((name for key in _OWN_NAMES if (name := as_id(item.get(key))) is not None), None)


def _item_of(row: JsonObject) -> JsonObject:
    item = as_object(row.get("datasource_item"))
    inner = item.get("item")  # some data sources wrap the item once more
    return inner if isinstance(inner, dict) else item


class _Graders(NamedTuple):
    """A run's graders by name and id, the item keys that they compare answers with, and the scales
    of their scores.
    """

    by_name: dict[str, JsonObject]
    references: tuple[str, ...]
    scale: OffScale


def _item(
    row: JsonObject, task: str, trial: int, candidate: str, where: str, graders: _Graders
) -> Iterator[Found]:
    item, sample = _item_of(row), as_object(row.get("sample"))
    if trial == 1:
        prompt = as_messages(sample.get("input"))
        yield FoundTask(
            id=task,
            prompt=prompt or as_messages(as_text(item.get("input")) or as_text(item.get("query"))),
            expected=tuple(
                to_text(item[key]) for key in graders.references if item.get(key) is not None
            ),
            metadata={"item": storable(item)},
        )
    texts = _texts_of(sample)
    content = "\n".join(texts) if texts else _given(row, item)
    error = as_object(sample.get("error"))
    failed = any(error.get(key) for key in ("code", "message"))
    usage = as_object(sample.get("usage"))
    if failed or content is not None:
        failure = None
        if failed:
            detail = shorten(error.get("message") or "no message")
            failure = Failure(
                kind=shorten(error.get("code") or "error", 80), fault=Fault.PROVIDER, detail=detail
            )
        yield FoundResponse(
            task=task,
            candidate=candidate,
            trial=trial,
            where=where,
            content=None if failed else content,
            failure=failure,
            model_answered=as_text(sample.get("model")),
            finish_reason=as_text(sample.get("finish_reason")),
            input_tokens=as_count(usage.get("prompt_tokens")),
            output_tokens=as_count(usage.get("completion_tokens")),
            started=from_unix(as_number(row.get("created_at"))),
        )
    if failed:
        return
    for result in map(as_object, as_list(row.get("results"))):
        yield _assessment(result, task, trial, candidate, where, graders)


def _texts_of(sample: JsonObject) -> list[str]:
    outputs = map(as_object, as_list(sample.get("output")))
    return [text for output in outputs if (text := content_text(output.get("content"))) is not None]


def _given(row: JsonObject, item: JsonObject) -> str | None:
    for holder in (as_object(row.get("datasource_item")), item):
        text = holder.get("sample.output_text", as_object(holder.get("sample")).get("output_text"))
        if isinstance(text, str):
            return text
    return None


def _assessment(
    result: JsonObject, task: str, trial: int, candidate: str, where: str, graders: _Graders
) -> FoundAssessment:
    full = as_text(result.get("name")) or "grader"
    name = _UUID.sub("", full)
    grader = graders.by_name.get(full) or graders.by_name.get(name) or {}
    kind = (
        (as_text(result.get("type")) or as_text(grader.get("type")) or "")
        .replace("-", "_")
        .removesuffix("_grader")
    )
    asked = as_object(result.get("sample"))
    by_rule = kind.startswith(_BY_RULE)
    reply = "\n".join(_texts_of(asked)) or as_text(result.get("reason"))
    raw = as_points(result.get("score"))
    low, high = _scale(grader)
    if grader.get("range") is None:
        score = graders.scale.score(as_text(result.get("name")), raw)
    else:
        score = None if raw is None else in_unit_range((raw - low) / (high - low))
    passed = result.get("passed")
    if raw is None and isinstance(passed, bool):
        raw = score = float(passed)
    model = as_text(grader.get("model")) or as_text(asked.get("model"))
    verdict = result.get("label") or (
        "passed" if passed is True else "failed" if passed is False else ""
    )
    return FoundAssessment(
        task=task,
        trial=trial,
        judge=name if by_rule or model is None else f"{name} ({model})",
        by=GradedBy.RULE if by_rule else GradedBy.MODEL,
        where=where,
        grades=(
            FoundGrade(
                candidate=candidate,
                score=score,
                raw_score=raw,
                min_score=low,
                max_score=high,
                reason=as_text(result.get("reason")) or to_text(verdict),
            ),
        ),
        reply=None if by_rule else reply or to_text(verdict) or None,
        input_tokens=None
        if by_rule
        else as_count(as_object(asked.get("usage")).get("prompt_tokens")),
        output_tokens=None
        if by_rule
        else as_count(as_object(asked.get("usage")).get("completion_tokens")),
    )


def _scale(grader: JsonObject) -> tuple[float, float]:
    match [as_number(end) for end in as_list(grader.get("range"))]:
        case [float(low), float(high)] if low < high:
            return low, high
        case _:
            return 0.0, 1.0
