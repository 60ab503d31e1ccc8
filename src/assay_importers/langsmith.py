"""Experiments of LangSmith: `evaluate(…).to_pandas()` as CSV, JSON or JSON Lines, and the rows of
its results as JSON.

Based on `langsmith/evaluation/_runner.py` and `schemas.py` in 0.15: a table with the columns
`inputs.KEY`, `outputs.KEY`, `reference.KEY`, `feedback.KEY`, `error`, `execution_time`,
`example_id` and `id`; or, as `ExperimentResults` yields them, objects with `run`, `example` and
`evaluation_results`, which also contain comments, tokens, cost and times.

Neither format states whether a rule, a model or a person gave a score, so all scores await review.
Values that are not numbers get no score. The candidate is named after the model in the first run's
metadata, otherwise after the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from assay.plugins import (
    Failure,
    Fault,
    FileSample,
    Found,
    FoundCandidate,
    FoundRun,
    GradedBy,
    GradedRow,
    InputFile,
    JsonObject,
    JsonValue,
    MetricValue,
    ReadOptions,
    Shape,
    Skipped,
    answer_text,
    as_count,
    as_duration,
    as_id,
    as_object,
    as_text,
    cell_number,
    decoded,
    explained_share,
    first_frame_rows,
    frame_rows,
    from_text,
    graded_records,
    named_after_file,
    objects_in,
    prompt_of,
    seconds_between,
    shorten,
    storable,
    to_text,
)

NAME: Final = "langsmith"

_PREFIXES: Final = ("inputs.", "outputs.", "reference.", "feedback.")
_OWN: Final = ("error", "execution_time", "example_id", "id")
_RESULT: Final[Shape] = {"run": None, "example": None, "evaluation_results": {"results": None}}
_MODEL_KEYS: Final = ("ls_model_name", "model", "model_name")


def recognise(sample: FileSample) -> float | None:
    """Recognise a table with `example_id` and `inputs.KEY` or `outputs.KEY`, or rows of results."""
    if b"example_id" not in sample.head and b"evaluation_results" not in sample.head:
        return None
    rows = first_frame_rows(sample)
    if rows and all(_RESULT.keys() <= row.keys() for row in rows):
        return explained_share(rows, _RESULT)
    columns = {key for row in rows for key in row}
    if "example_id" not in columns or not any(
        key.startswith(("inputs.", "outputs.")) for key in columns
    ):
        return None
    return explained_share(
        rows, dict.fromkeys(key for key in columns if key in _OWN or key.startswith(_PREFIXES))
    )


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a response and feedback for every example."""
    first = next((row for row in first_frame_rows(source.sample)), {})
    whole = "evaluation_results" in first
    run = as_object(first.get("run"))
    metadata = as_object(as_object(run.get("extra")).get("metadata"))
    model = next(
        (name for key in _MODEL_KEYS if (name := as_text(metadata.get(key))) is not None), None
    )
    experiment = as_id(run.get("session_id"))
    candidate = options.candidate or model or source.stem
    yield FoundRun(
        suite=options.dataset or NAME,
        format=NAME,
        candidates=(FoundCandidate(name=candidate, model=model, metadata=options.model_info),),
        provenance={
            "candidate_from": "option"
            if options.candidate
            else "metadata"
            if model
            else "file name"
        },
        identity=None if experiment is None else f"langsmith experiment {experiment}",
    )
    if not (options.candidate or model):
        yield named_after_file(source.name, candidate)
    yield from graded_records(lambda: _rows(source, candidate, whole=whole), source.name)


def _rows(source: InputFile, candidate: str, *, whole: bool) -> Iterator[GradedRow | Skipped]:
    for row, where in frame_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        graded = _result(row, where, candidate) if whole else _flat(row, where, candidate)
        yield Skipped(where=where, why="has no example.") if graded.task is None else graded


def _flat(row: Mapping[str, object], where: str, candidate: str) -> GradedRow:
    parts = {prefix: _under(row, prefix) for prefix in _PREFIXES}
    error = as_text(decoded(row.get("error")))
    content = answer_text(parts["outputs."] or None)
    feedback = parts["feedback."].items()
    return GradedRow(
        where=where,
        candidate=candidate,
        prompt=prompt_of(parts["inputs."]),
        task=as_id(row.get("example_id")),
        expected=_expected(parts["reference."]),
        content=content,
        failure=_failure(error, content),
        values=tuple(_value(key, value, "", None) for key, value in feedback if value is not None),
        latency_s=as_duration(cell_number(row.get("execution_time"))),
        identity=as_id(row.get("id")),
    )


def _under(row: Mapping[str, object], prefix: str) -> dict[str, JsonValue]:
    """Return a row's values in columns with a prefix, by key; skips empty cells, which stand for
    keys of other rows.
    """
    cells = {
        key.removeprefix(prefix): decoded(cell)
        for key, cell in row.items()
        if key.startswith(prefix)
    }
    return {key: storable(value) for key, value in cells.items() if value is not None}


def _result(row: Mapping[str, object], where: str, candidate: str) -> GradedRow:
    run, example = as_object(row.get("run")), as_object(row.get("example"))
    content = answer_text(run.get("outputs") or None)
    results = objects_in(as_object(row.get("evaluation_results")).get("results"))
    return GradedRow(
        where=where,
        candidate=candidate,
        prompt=prompt_of(example.get("inputs") or run.get("inputs")),
        task=as_id(example.get("id")) or as_id(run.get("reference_example_id")),
        expected=_expected(as_object(example.get("outputs"))),
        content=content,
        failure=_failure(as_text(run.get("error")), content),
        values=tuple(
            _value(
                as_text(result.get("key")) or "feedback",
                result.get("value") if result.get("score") is None else result["score"],
                as_text(result.get("comment")) or "",
                as_object(result.get("feedback_config")),
            )
            for result in results
        ),
        input_tokens=as_count(run.get("prompt_tokens")),
        output_tokens=as_count(run.get("completion_tokens")),
        latency_s=seconds_between(run.get("start_time"), run.get("end_time")),
        cost_usd=as_duration(cell_number(run.get("total_cost"))),
        started=from_text(run.get("start_time")),
        identity=as_id(run.get("id")),
    )


def _expected(reference: Mapping[str, JsonValue]) -> tuple[str, ...]:
    text = answer_text(dict(reference)) if reference else None
    return () if text is None else (text,)


def _failure(error: str | None, content: str | None) -> Failure | None:
    if error is not None:
        return Failure(kind="error", fault=Fault.HARNESS, detail=shorten(error))
    return (
        None
        if content is not None
        else Failure(kind="no_output", fault=Fault.HARNESS, detail="the run has no outputs.")
    )


def _value(key: str, value: object, comment: str, config: JsonObject | None) -> MetricValue:
    number = cell_number(value)
    if number is None and value is not None:
        comment = f"{to_text(value)}: {comment}" if comment else to_text(value)
    lowest, highest = cell_number((config or {}).get("min")), cell_number((config or {}).get("max"))
    scale = (
        (lowest, highest)
        if lowest is not None and highest is not None and lowest < highest
        else (0.0, 1.0)
    )
    return MetricValue(
        criterion=key,
        value=number,
        judge=key,
        by=GradedBy.MODEL,
        worst=scale[0],
        best=scale[1],
        reason=comment,
        assumed=True,
    )
