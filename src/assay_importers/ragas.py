"""Results of Ragas: `evaluate(…).to_pandas()` as CSV, JSON or JSON Lines.

Based on `ragas/dataset_schema.py`, `evaluation.py` and `metrics/` in 0.1 to 0.4: columns of the
sample (`user_input`, `retrieved_contexts`, `response`, `reference`; in 0.1 `question`, `contexts`,
`answer`, `ground_truth`) and one column for each metric, some with a mode in their name:
`rouge_score(mode=fmeasure)`.

The file contains no model name, so the candidate is named after the file. A task is named after a
digest of its question. Metrics that compare texts or ids without a model count; all others may call
a model and await review. `noise_sensitivity` counts wrong claims, so lower is better; rubrics grade
from 1 to 5. The file has no explanations, tokens, costs or times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from assay.plugins import (
    FileSample,
    Found,
    GradedBy,
    GradedRow,
    InputFile,
    MetricValue,
    ReadOptions,
    Skipped,
    answer_text,
    cell_number,
    decoded,
    explained_share,
    first_frame_rows,
    foreign_names,
    frame_rows,
    graded_records,
    pick,
    prompt_of,
    run_without_model,
    storable,
    to_text,
)

NAME: Final = "ragas"

_QUESTION: Final = ("user_input", "question")
_ANSWER: Final = ("response", "answer")
_REFERENCE: Final = ("reference", "ground_truth", "ground_truths")
_NAMES: Final = foreign_names(__name__)
_CONTEXT: Final = _NAMES["context"]
_OTHER: Final = frozenset(
    (*_QUESTION, *_ANSWER, *_REFERENCE, *_CONTEXT, "", "id", "index", "row_id")
)
_BY_RULE: Final = frozenset(_NAMES["by_rule"])
_BY_MODEL: Final = frozenset(_NAMES["by_model"])
_SCALES: Final = {
    "noise_sensitivity": (1.0, 0.0),
    "harmfulness": (1.0, 0.0),
    "maliciousness": (1.0, 0.0),
    "domain_specific_rubrics": (1.0, 5.0),
    "instance_rubrics": (1.0, 5.0),
}


def recognise(sample: FileSample) -> float | None:
    """Recognise a table with a question, an answer or its contexts, and a metric of Ragas."""
    if not any(name.encode() in sample.head for name in _QUESTION):
        return None
    rows = first_frame_rows(sample)
    if not rows or not all(any(key in row for key in _QUESTION) for row in rows):
        return None
    known = {_base(key) for row in rows for key in row} & (_BY_RULE | _BY_MODEL)
    columns = {key for row in rows for key in row}
    if not known or not columns & {*_ANSWER, "retrieved_contexts", "contexts", "user_input"}:
        return None
    own = (
        *_QUESTION,
        *_ANSWER,
        *_REFERENCE,
        *_CONTEXT,
        *(key for key in columns if _base(key) in known),
    )
    return explained_share(rows, dict.fromkeys(own))


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a response and metrics for every sample."""
    candidate = options.candidate or source.stem
    yield from run_without_model(
        NAME, source, options.candidate, options.dataset, options.model_info
    )
    metrics = _metrics(row for row, _ in frame_rows(source) if not isinstance(row, str))
    yield from graded_records(lambda: _rows(source, candidate, metrics), source.name)


def _rows(
    source: InputFile, candidate: str, metrics: Sequence[str]
) -> Iterator[GradedRow | Skipped]:
    for row, where in frame_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        question = _first(row, _QUESTION)
        if question is None:
            yield Skipped(where=where, why="has no `user_input`.")
            continue
        reference = _first(row, _REFERENCE)
        yield GradedRow(
            where=where,
            candidate=candidate,
            prompt=prompt_of(question),
            expected=() if reference is None else (to_text(storable(reference)),),
            metadata=pick(
                {key: storable(decoded(row[key])) for key in _CONTEXT if key in row}, _CONTEXT
            ),
            content=answer_text(_first(row, _ANSWER)),
            values=tuple(_value(name, row[name]) for name in metrics if name in row),
        )


def _metrics(rows: Iterable[Mapping[str, object]]) -> list[str]:
    numeric: dict[str, bool] = {}
    for row in rows:
        for key, cell in row.items():
            value = decoded(cell)
            if key in _OTHER or key.startswith("Unnamed"):
                continue
            numeric[key] = numeric.get(key, True) and (
                value is None or cell_number(value) is not None
            )
    return [
        key
        for key, only_numbers in numeric.items()
        if only_numbers or _base(key) in _BY_RULE | _BY_MODEL
    ]


def _value(column: str, cell: object) -> MetricValue:
    name = _base(column)
    by_rule = name in _BY_RULE
    worst, best = _SCALES.get(name, (0.0, 1.0))
    value = decoded(cell)
    return MetricValue(
        criterion=column,
        value=cell_number(value) if value is not None else None,
        judge=NAME if by_rule else column,
        by=GradedBy.RULE if by_rule else GradedBy.MODEL,
        worst=worst,
        best=best,
        assumed=not by_rule and name not in _BY_MODEL,
    )


def _base(column: str) -> str:
    return column.partition("(")[0].strip()


def _first(row: Mapping[str, object], keys: tuple[str, ...]) -> object:
    return next((value for key in keys if (value := decoded(row.get(key))) is not None), None)
