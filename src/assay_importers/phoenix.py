"""Experiments of Arize Phoenix: the JSON and CSV downloads of an experiment's runs.

Based on `phoenix/server/api/routers/v1/experiments.py` (`/experiments/{id}/json` and `/csv`, the
downloads on Phoenix's page): a row for each example and repetition with `input`,
`reference_output`, `output`, `error`, times, tokens and `annotations`; in CSV the columns
`annotation_NAME_score`, `…_label`, `…_explanation` and `…_annotator_kind`.

Annotations of the kind CODE count, HUMAN annotations are a person's, and all others (LLM) await
review. An annotation with a label but without a score stays unscored, because the file does not
state the label's value. The download contains no costs and no model name, so the candidate is named
after the file, which Phoenix names after the experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from assay.plugins import (
    Failure,
    Fault,
    FileSample,
    Found,
    GradedBy,
    GradedRow,
    InputFile,
    MetricValue,
    ReadOptions,
    Shape,
    Skipped,
    answer_text,
    as_count,
    as_duration,
    as_id,
    as_text,
    cell_number,
    decoded,
    explained_share,
    first_frame_rows,
    foreign_names,
    frame_rows,
    from_text,
    graded_records,
    objects_in,
    prompt_of,
    run_without_model,
    shorten,
)

NAME: Final = "phoenix"

_ROW: Final = foreign_names(__name__)["row"]
_PARTS: Final = (
    *(
        "label",
        "score",
        "explanation",
        "metadata",
        "annotator_kind",
        "trace_id",
        "error",
        "start_time",
        "end_time",
    ),
)
_COLUMN: Final = re.compile(rf"annotation_(.+)_({'|'.join(_PARTS)})$")
_ANNOTATION: Final[Shape] = dict.fromkeys(("name", *_PARTS))
_BY_KIND: Final = {"CODE": GradedBy.RULE, "HUMAN": GradedBy.PERSON}


def recognise(sample: FileSample) -> float | None:
    """Recognise rows with an example, a repetition, a reference output and an output."""
    if b"example_id" not in sample.head or b"reference_output" not in sample.head:
        return None
    rows = first_frame_rows(sample)
    if not rows or not all(
        {"example_id", "repetition_number", "reference_output"} <= row.keys() for row in rows
    ):
        return None
    columns = {key for row in rows for key in row if _COLUMN.match(key)}
    return explained_share(rows, {**dict.fromkeys((*_ROW, *columns)), "annotations": _ANNOTATION})


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a response and annotations for each example and repetition."""
    candidate = options.candidate or source.stem
    yield from run_without_model(
        NAME, source, options.candidate, options.dataset, options.model_info
    )
    yield from graded_records(lambda: _rows(source, candidate), source.name)


def _rows(source: InputFile, candidate: str) -> Iterator[GradedRow | Skipped]:
    for row, where in frame_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
        elif (example := as_id(row.get("example_id"))) is None:
            yield Skipped(where=where, why="has no `example_id`.")
        else:
            yield _row(row, example, where, candidate)


def _row(row: Mapping[str, object], example: str, where: str, candidate: str) -> GradedRow:
    error = as_text(decoded(row.get("error")))
    content = answer_text(decoded(row.get("output")))
    failure = None
    if error is not None or content is None:
        kind = "error" if error is not None else "no_output"
        failure = Failure(
            kind=kind, fault=Fault.HARNESS, detail=shorten(error or "the run has no output.")
        )
    milliseconds = cell_number(row.get("latency_ms"))
    expected = answer_text(decoded(row.get("reference_output")))
    trial = as_count(cell_number(row.get("repetition_number")))
    trace = as_text(decoded(row.get("trace_id")))
    return GradedRow(
        where=where,
        candidate=candidate,
        prompt=prompt_of(decoded(row.get("input"))),
        task=example,
        trial=trial or None,
        expected=() if expected in (None, "{}") else (str(expected),),
        content=content,
        failure=failure,
        values=tuple(_value(name, parts) for name, parts in _annotations(row)),
        input_tokens=as_count(cell_number(row.get("prompt_token_count"))),
        output_tokens=as_count(cell_number(row.get("completion_token_count"))),
        latency_s=None if milliseconds is None else as_duration(milliseconds / 1000),
        started=from_text(row.get("start_time")),
        identity=trace,
    )


def _annotations(row: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield a row's annotations by name; empty cells of a CSV row are skipped."""
    for annotation in objects_in(decoded(row.get("annotations"))):
        yield as_text(annotation.get("name")) or "annotation", annotation
    by_name: dict[str, dict[str, object]] = {}
    for key, cell in row.items():
        match = _COLUMN.match(key)
        if match is not None and (value := decoded(cell)) is not None:
            by_name.setdefault(match[1], {})[match[2]] = value
    yield from by_name.items()


def _value(name: str, annotation: Mapping[str, object]) -> MetricValue:
    kind = as_text(annotation.get("annotator_kind")) or ""
    by = _BY_KIND.get(kind.upper(), GradedBy.MODEL)
    error = as_text(annotation.get("error"))
    score = annotation.get("score")
    reason = ": ".join(
        part
        for key in ("label", "explanation")
        if (part := as_text(annotation.get(key))) is not None
    )
    if error is not None:
        reason = f"the evaluator broke: {shorten(error, 500)}"
    judge = {GradedBy.RULE: NAME, GradedBy.PERSON: "human", GradedBy.MODEL: name}[by]
    return MetricValue(
        criterion=name,
        value=cell_number(score) if error is None else None,
        judge=judge,
        by=by,
        reason=reason,
        assumed=kind.upper() not in (*_BY_KIND, "LLM"),
    )
