"""Scores and dataset runs of Langfuse: its batch exports (CSV, JSON, JSON Lines) and the answers of
its public API.

Based on `worker/src/features/database-read-stream` and `packages/shared/src/domain/scores.ts` of
Langfuse 3, and the types of its Python library 5.0. Files in one folder are read together:

* items of a dataset run or experiment: each links a run, a dataset item and the trace that answered
  it;
* scores of a trace or of an observation in a trace;
* traces, with input, output, latency, cost and tokens;
* dataset items, with input and expected output.

A dataset run becomes a run whose candidate has the dataset run's name; a dataset item becomes a
task. If there are only scores of traces, a task is named after a digest of the trace's input, or
after the trace. ANNOTATION scores are a person's. EVAL scores await review; so do API scores, whose
origin is unknown. Booleans and numbers from 0 to 1 are scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from assay.plugins import (
    FileSample,
    Found,
    FoundCandidate,
    FoundRun,
    GradedBy,
    GradedRow,
    InputFile,
    MetricValue,
    ReadOptions,
    Skipped,
    TableRow,
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
    folder_path,
    foreign_names,
    frame_rows,
    from_text,
    graded_records,
    named_after_file,
    objects_in,
    prompt_of,
    to_text,
)

NAME: Final = "langfuse"

_NAMES: Final = foreign_names(__name__)
_SCORE: Final = _NAMES["score"]
_ITEM: Final = _NAMES["item"]
_DATASET_ITEM: Final = _NAMES["dataset_item"]
_FILE: Final = "@file"
_TRACE: Final = frozenset({*_NAMES["trace"], _FILE})
"""Columns of a trace; its export has an additional column for every score, without stating who gave
it.
"""
_RANKS: Final = ("items", "scores", "traces", "dataset items")
"""Kinds of files, in order: the first kind present in a folder yields the run, and the others
belong to it.
"""


def recognise(sample: FileSample) -> float | None:
    """Recognise scores, items of runs, traces and dataset items."""
    head = sample.head
    if not any(
        key in head
        for key in (
            b"traceId",
            b"datasetItemId",
            b"observationCount",
            b"htmlPath",
            b"expectedOutput",
        )
    ):
        return None
    kind, rows = _kind(sample)
    match kind:
        case "items":
            return explained_share(rows, dict.fromkeys(_ITEM))
        case "scores":
            return explained_share(rows, dict.fromkeys(_SCORE))
        case "dataset items":
            return explained_share(rows, dict.fromkeys(_DATASET_ITEM))
        case "traces":
            return 1.0  # a trace has a column for each of its scores
        case _:
            return None


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the folder's other files to read with this one; empty if another kind in the folder
    comes first in `_RANKS`.
    """
    kind, _ = _kind(source.sample)
    kinds = {
        other: other_kind
        for other in others
        if folder_path(other) == folder_path(source)
        and (other_kind := _kind(other.sample)[0]) is not None
    }
    if kind is None or any(_RANKS.index(other) < _RANKS.index(kind) for other in kinds.values()):
        return ()
    # Runs share the folder's scores, but two files with only scores may belong to two candidates.
    return [other for other, other_kind in kinds.items() if other_kind != kind or kind == "items"]


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield a run for each dataset run, or one run for all scored traces."""
    kind, _ = _kind(source.sample)
    tables: dict[str, list[tuple[TableRow, str]]] = {name: [] for name in _RANKS}
    for file in (source, *options.beside.get("companions", ())):
        for row, where in _rows(file):
            if isinstance(row, str):
                yield Skipped(where=where, why=row)
            else:
                tables[_kind(file.sample)[0] or kind or "traces"].append(
                    ({**row, _FILE: file.stem}, where)
                )
    if kind == "dataset items":
        yield Skipped(
            where=source.name,
            why="holds dataset items without a run; import it together with the items of a run.",
        )
        return
    reading = _Reading(source, options, tables)
    yield from reading.dataset_runs() if kind == "items" else reading.scored_traces()


def _kind(sample: FileSample) -> tuple[str | None, list[TableRow]]:
    rows = first_frame_rows(sample)
    run_items = objects_in(as_object(None if rows else sample.document).get("datasetRunItems"))
    rows = rows or [dict(item) for item in run_items[:20]]
    if not rows:
        return None, rows
    if all(
        {"traceId", "datasetItemId"} <= row.keys() or {"traceId", "experimentItemId"} <= row.keys()
        for row in rows
    ):
        return "items", rows
    if all(
        {"name", "source", "dataType"} <= row.keys() and row.keys() & {"traceId", "subject"}
        for row in rows
    ):
        return "scores", rows
    if all({"id", "datasetId", "input", "expectedOutput"} <= row.keys() for row in rows):
        return "dataset items", rows
    if all({"id", "timestamp", "input", "output"} <= row.keys() for row in rows) and any(
        row.keys() & {"observationCount", "htmlPath", "totalCost", "public"} for row in rows
    ):
        return "traces", rows
    return None, rows


def _rows(source: InputFile) -> Iterator[tuple[TableRow | str, str]]:
    """Yield the rows of a file; items of a dataset run from the API get the run's name, which is
    stored outside them.
    """
    run = as_object(source.sample.document) if not source.sample.rows else {}
    items = objects_in(run.get("datasetRunItems"))
    if not items:
        yield from frame_rows(source)
        return
    for number, item in enumerate(items, 1):
        named = {"datasetRunName": run.get("name"), "datasetName": run.get("datasetName")}
        yield {**named, **item}, f"{source.name}#datasetRunItems/{number}"


class _Reading:
    """The tables of one folder, connected by their ids."""

    def __init__(
        self,
        source: InputFile,
        options: ReadOptions,
        tables: Mapping[str, Sequence[tuple[TableRow, str]]],
    ) -> None:
        self._source = source
        self._options = options
        self._items = tables["items"]
        self._traces = {as_id(row.get("id")): row for row, _ in tables["traces"]}
        self._dataset = {as_id(row.get("id")): row for row, _ in tables["dataset items"]}
        self._scores: dict[str | None, list[tuple[TableRow, str]]] = {}
        for row, where in tables["scores"]:
            self._scores.setdefault(_trace_of(row), []).append((row, where))
        self._of_runs = len(self._scores.pop(None, []))

    def dataset_runs(self) -> Iterator[Found]:
        by_run: dict[str, list[tuple[TableRow, str]]] = {}
        for row, where in self._items:
            by_run.setdefault(_run_name(row) or to_text(row.get(_FILE)), []).append((row, where))
        for name, items in by_run.items():
            first = items[0][0]
            run_id = as_text(first.get("datasetRunId")) or as_text(first.get("experimentId"))
            candidate = (self._options.candidate if len(by_run) == 1 else None) or name
            suite = (
                as_text(first.get("datasetName"))
                or as_text(first.get("experimentDatasetId"))
                or NAME
            )
            yield self._run(suite, candidate, run_id, self._changed(items))
            if _run_name(first) is None and self._options.candidate is None:
                yield named_after_file(
                    self._source.name, candidate, "the files contain no dataset run"
                )
            rows = [self._row(row, where, candidate) for row, where in items]
            yield from graded_records(partial(iter, rows), self._source.name)
        if self._scores:
            lost = sum(map(len, self._scores.values()))
            what = (
                f"{lost:,} scores belong to traces that are not in these runs; Assay left them out."
            )
            yield Skipped(where=self._source.name, why=what)
        yield from self._left_out()

    def scored_traces(self) -> Iterator[Found]:
        candidate = self._options.candidate or self._source.stem
        yield self._run(NAME, candidate, None, None)
        if self._options.candidate is None:
            yield named_after_file(self._source.name, candidate, "the files contain no dataset run")
        rows: list[GradedRow | Skipped] = []
        for name in dict.fromkeys([*self._traces, *self._scores]):
            where = self._scores[name][0][1] if name in self._scores else self._source.name
            named = name is not None
            rows.append(
                self._row({"traceId": name}, where, candidate)
                if named
                else Skipped(where=where, why="has no `id`.")
            )
        yield from graded_records(partial(iter, rows), self._source.name)
        yield from self._left_out()

    def _changed(self, items: Sequence[tuple[TableRow, str]]) -> str | None:
        scores = (
            score
            for item, _ in items
            for score, _ in self._scores.get(as_id(item.get("traceId")), ())
        )
        rows = (*(item for item, _ in items), *scores)
        times = (
            from_text(row.get(key)) for row in rows for key in ("updatedAt", "timestamp", "endTime")
        )
        return max(filter(None, times), default=None)

    def _run(self, suite: str, candidate: str, run_id: str | None, version: str | None) -> FoundRun:
        return FoundRun(
            suite=self._options.dataset or suite,
            format=NAME,
            candidates=(FoundCandidate(name=candidate, metadata=self._options.model_info),),
            provenance={} if run_id is None else {"run_id": run_id},
            identity=None if run_id is None else f"langfuse run {run_id}",
            version=version,
        )

    def _left_out(self) -> Iterator[Skipped]:
        if self._of_runs:
            why = f"{self._of_runs:,} scores belong to a session or a whole run; Assay grades responses, so it left them out."
            yield Skipped(where=self._source.name, why=why)

    def _row(self, item: TableRow, where: str, candidate: str) -> GradedRow:
        trace_id = as_id(item.get("traceId"))
        trace: Mapping[str, object] = self._traces.get(trace_id) or {}
        item_id = as_id(item.get("datasetItemId")) or as_id(item.get("experimentItemId"))
        example: Mapping[str, object] = self._dataset.get(item_id) or {}
        asked = next(
            (
                value
                for row in (item, example, trace)
                if (value := decoded(row.get("input"))) is not None
            ),
            None,
        )
        expected = decoded(item.get("expectedOutput")) or decoded(example.get("expectedOutput"))
        answer = decoded(item.get("output")) if "output" in item else decoded(trace.get("output"))
        prompt = prompt_of(asked)
        return GradedRow(
            where=where,
            candidate=candidate,
            prompt=prompt,
            task=item_id or (None if prompt else trace_id),
            expected=() if expected is None else (answer_text(expected) or "",),
            content=answer_text(answer),
            values=tuple(self._values(item, trace, trace_id)),
            input_tokens=as_count(cell_number(trace.get("inputTokens"))),
            output_tokens=as_count(cell_number(trace.get("outputTokens"))),
            latency_s=as_duration(cell_number(trace.get("latency"))),
            cost_usd=as_duration(cell_number(trace.get("totalCost"))),
            started=from_text(trace.get("timestamp")) or from_text(item.get("startTime")),
            identity=trace_id,
        )

    def _values(
        self, item: TableRow, trace: Mapping[str, object], trace_id: str | None
    ) -> Iterator[MetricValue]:
        """Yield a trace's scores: from a file of scores, from the item and the trace, or else from
        the trace's columns.
        """
        scores = [score for score, _ in self._scores.pop(trace_id, [])]
        known = {as_id(score.get("id")) for score in scores}
        for row in (item, trace):
            for score in objects_in(decoded(row.get("scores"))):
                if "name" in score and as_id(score.get("id")) not in known:
                    known.add(as_id(score.get("id")))
                    scores.append(dict(score))
        yield from map(_value, scores)
        if not scores:
            for name, cell in trace.items():
                given = decoded(cell) if name not in _TRACE else None
                for value in given if isinstance(given, list) else ():
                    number = cell_number(value)
                    reason = "" if number is not None else to_text(value)
                    yield MetricValue(
                        criterion=name,
                        value=number,
                        judge=name,
                        by=GradedBy.MODEL,
                        reason=reason,
                        assumed=True,
                    )


def _run_name(item: TableRow) -> str | None:
    keys = ("datasetRunName", "experimentName", "datasetRunId", "experimentId")
    return next(
        (name for key in keys if (name := as_text(decoded(item.get(key)))) is not None), None
    )


def _trace_of(score: TableRow) -> str | None:
    """Return the trace that a score belongs to; None if it belongs to a session or a whole run."""
    subject = as_object(decoded(score.get("subject")))
    if subject:
        return as_id(subject.get("traceId")) or (
            as_id(subject.get("id")) if subject.get("kind") == "trace" else None
        )
    return as_id(decoded(score.get("traceId")))


def _value(score: TableRow) -> MetricValue:
    name = to_text(score.get("name")) or "score"
    source = as_text(score.get("source")) or ""
    by = GradedBy.PERSON if source == "ANNOTATION" else GradedBy.MODEL
    author = as_text(decoded(score.get("authorUserName"))) or as_text(
        decoded(score.get("authorUserId"))
    )
    kind = as_text(score.get("dataType"))
    value = decoded(score.get("value"))
    number = cell_number(value) if kind in ("NUMERIC", "BOOLEAN") else None
    word = as_text(decoded(score.get("stringValue"))) or (
        as_text(value) if number is None else None
    )
    comment = as_text(decoded(score.get("comment")))
    shown = word if kind not in ("NUMERIC", "BOOLEAN") else None
    return MetricValue(
        criterion=name,
        value=number,
        judge=(author or "annotation") if by is GradedBy.PERSON else name,
        by=by,
        reason=": ".join(part for part in (shown, comment) if part),
        assumed=source not in ("ANNOTATION", "EVAL"),
    )
