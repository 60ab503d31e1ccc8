"""Experiments of Braintrust: events of the API and its exports, and results that the SDK returns.

Based on the SDK's `generated_types.json` (`ExperimentEvent`) and `js/src/framework.ts`
(`EvalResultWithSummary`) from 2026. Events are lines, a list, or `{"events": […]}`. If a file
contains all spans of an experiment, only the root span of each case becomes a response. The SDK's
results are `{"summary": …, "results": […]}`.

Each distinct input is a task, and a repeated input is a further trial. Scores are between 0 and 1.
Only `autoevals` scorers that are known to be rule-based count without review: a model call under a
scorer's span shows that the scorer used a model, but a client without instrumentation leaves no
such span.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import orjson

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
    MetricGrades,
    MetricValue,
    Noted,
    ReadOptions,
    Shape,
    Skipped,
    as_count,
    as_duration,
    as_list,
    as_messages,
    as_number,
    as_object,
    as_text,
    explained_share,
    foreign_names,
    from_text,
    from_unix,
    objects_in,
    pick,
    read_document,
    read_rows,
    shorten,
    storable,
    to_text,
)

NAME: Final = "braintrust"

_NAMES: Final = foreign_names(__name__)
_EVENT: Final[Shape] = dict.fromkeys(_NAMES["event"])
_RULES: Final = frozenset(_NAMES["rules"])
_LISTS: Final = ("events", "results", "data")
_FILE: Final[Shape] = {**dict.fromkeys(_LISTS, _EVENT), "summary": None, "cursor": None}


@dataclass(slots=True)
class _Trace:
    """Data from one case's spans below the root: scorers with their reasons, and tokens of calls
    made outside scorers.
    """

    parents: dict[str, str] = field(default_factory=dict)
    scorers: dict[str, JsonObject] = field(default_factory=dict)
    calls: list[tuple[str, JsonObject]] = field(default_factory=list)

    def scorer_above(self, span: str) -> str | None:
        """Return the scorer's span that contains this span; None if no scorer's span does."""
        seen: set[str] = set()
        while span not in seen:  # the parents come from a file, and may form a cycle
            if span in self.scorers:
                return span
            seen.add(span)
            span = self.parents.get(span, span)
        return None


def recognise(sample: FileSample) -> float | None:
    """Recognise events with scores and spans, and the SDK's results with their summary."""
    head = sample.head
    if b'"scores"' not in head:
        return None
    if _are_lines(sample):
        return explained_share(sample.rows, _EVENT) if _are_events(sample.rows) else None
    document = sample.document
    if isinstance(document, list):
        return (
            explained_share(document, _EVENT) if _are_events(objects_in(document[:200])) else None
        )
    file = as_object(document)
    if _are_events(_first_list(file)[:200]):
        return explained_share(file, _FILE)
    summary = as_object(file.get("summary"))
    named = "experimentName" in summary or "experiment_name" in summary
    results = objects_in(file.get("results"))[:200]
    is_result = (
        named
        and results
        and all("input" in row and isinstance(row.get("scores"), dict) for row in results)
    )
    return explained_share(file, _FILE) if is_result else None


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run: a task for every input, a response for every case, an assessment for every
    scorer.
    """
    summary, rows = {}, None
    if not _are_lines(source.sample):
        document = read_document(source)
        file = as_object(document)
        summary = as_object(file.get("summary"))
        listed = (
            document
            if isinstance(document, list)
            else next((as_list(file[key]) for key in _LISTS if key in file), [])
        )
        rows = [
            (row if isinstance(row, dict) else "is not a JSON object.", f"{source.name}#{number}")
            for number, row in enumerate(listed, 1)
        ]
    traces, experiments = _traces(
        row for row, _ in (rows or read_rows(source)) if not isinstance(row, str)
    )
    name = as_text(summary.get("experimentName")) or as_text(summary.get("experiment_name"))
    if name is None and len(experiments) == 1:
        name = next(iter(experiments))
    names = {options.candidate or name or source.stem} if len(experiments) < 2 else experiments
    yield FoundRun(
        suite=options.dataset
        or as_text(summary.get("projectName"))
        or as_text(summary.get("project_name"))
        or source.stem,
        format=NAME,
        candidates=tuple(
            FoundCandidate(name=candidate, metadata=options.model_info)
            for candidate in sorted(names)
        ),
        provenance={"summary": storable(summary)} if summary else {},
        identity=f"braintrust experiment {next(iter(experiments))}"
        if len(experiments) == 1
        else None,
    )
    reading = _CaseReader(traces, None if len(experiments) > 1 else next(iter(names)))
    for row, where in rows or read_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
        elif _is_root(row):
            yield from reading.case(row, where)
    yield from reading.notes(source.name)


def _are_lines(sample: FileSample) -> bool:
    """True if a file consists of JSON Lines, and not of a single document on one line."""
    return bool(sample.rows) and not sample.rows[0].keys() & {*_LISTS, "summary"}


def _first_list(file: JsonObject) -> list[JsonObject]:
    return next((objects_in(file[key]) for key in _LISTS if isinstance(file.get(key), list)), [])


def _are_events(rows: Iterable[JsonObject]) -> bool:
    """True if the rows are Braintrust events: spans of an experiment, some with scores."""
    listed = list(rows)
    return (
        bool(listed)
        and all("root_span_id" in row and "span_id" in row and "input" in row for row in listed)
        and any(isinstance(row.get("scores"), dict) for row in listed)
    )


def _is_root(row: JsonObject) -> bool:
    """True if a row is the root span of a case, not a step or scorer inside it."""
    if isinstance(row.get("is_root"), bool):
        return row["is_root"] is True
    return not as_list(row.get("span_parents")) and row.get("span_id") == row.get("root_span_id")


def _traces(rows: Iterable[JsonObject]) -> tuple[dict[str, _Trace], set[str]]:
    traces: defaultdict[str, _Trace] = defaultdict(_Trace)
    experiments: set[str] = set()
    for row in rows:
        experiment = as_text(row.get("experiment_id"))
        if experiment is not None:
            experiments.add(experiment)
        root, span = as_text(row.get("root_span_id")), as_text(row.get("span_id"))
        if root is None or span is None or _is_root(row):
            continue
        trace, kind = traces[root], as_object(row.get("span_attributes")).get("type")
        parent = as_text(next(iter(as_list(row.get("span_parents"))), None))
        if parent is not None:
            trace.parents[span] = parent
        if kind == "score":
            trace.scorers[span] = {
                key: row.get(key) for key in ("scores", "metadata", "span_attributes", "error")
            }
        elif kind == "llm":
            trace.calls.append((span, as_object(row.get("metrics"))))
    return traces, experiments


class _CaseReader:
    def __init__(self, traces: dict[str, _Trace], candidate: str | None) -> None:
        self._traces = traces
        self._candidate = candidate
        self._trials: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._tasks: set[str] = set()
        self._grades = MetricGrades()

    def case(self, row: JsonObject, where: str) -> Iterator[Found]:
        candidate = self._candidate or as_text(row.get("experiment_id")) or "experiment"
        task = _task_id(row)
        if task not in self._tasks:
            self._tasks.add(task)
            yield _task(task, row)
        self._trials[task, candidate] += 1
        trial = self._trials[task, candidate]
        trace = self._traces.get(as_text(row.get("root_span_id")) or "", _Trace())
        metrics = _metrics(as_object(row.get("metrics")), trace)
        error, output = row.get("error"), row.get("output")
        failure = None
        if error or output is None:
            detail = shorten(to_text(error) if error else "there is no output.")
            failure = Failure(
                kind="error" if error else "no_output", fault=Fault.HARNESS, detail=detail
            )
        start, end = as_number(metrics.get("start")), as_number(metrics.get("end"))
        duration = as_duration(metrics.get("duration"))
        identity = as_text(row.get("id"))
        yield FoundResponse(
            task=task,
            candidate=candidate,
            trial=trial,
            where=where,
            content=None if failure is not None else to_text(output),
            failure=failure,
            input_tokens=as_count(metrics.get("prompt_tokens")),
            output_tokens=as_count(metrics.get("completion_tokens")),
            latency_s=duration
            if duration is not None or start is None or end is None
            else as_duration(end - start),
            cost_usd=as_duration(metrics.get("estimated_cost")),
            started=from_unix(start) or from_text(row.get("created")),
            identity=None if identity is None else f"braintrust {identity}",
        )
        if failure is None:
            values = list(_values(as_object(row.get("scores")), trace))
            yield from self._grades.assessments(
                values, task=task, candidate=candidate, trial=trial, where=where
            )

    def notes(self, where: str) -> Iterator[Noted]:
        """Yield a note about scores that await review although the file contains no model name for
        them.
        """
        yield from self._grades.notes(where)


def _task_id(row: JsonObject) -> str:
    record = as_text(row.get("dataset_record_id")) or as_text(
        as_object(row.get("origin")).get("id")
    )
    content = orjson.dumps(storable(row.get("input")), option=orjson.OPT_SORT_KEYS)
    return record or hashlib.sha256(content).hexdigest()[:10]


def _task(task: str, row: JsonObject) -> FoundTask:
    value, expected = row.get("input"), row.get("expected")
    is_chat = isinstance(value, list) and all("role" in as_object(turn) for turn in value)
    return FoundTask(
        id=task,
        thing=shorten(value, 60).replace("\n", " "),
        prompt=as_messages(value if is_chat else to_text(value)),
        expected=() if expected is None else (to_text(expected),),
        tags=tuple(tag for tag in as_list(row.get("tags")) if isinstance(tag, str)),
        metadata=pick(row, ("metadata",)),
    )


def _metrics(metrics: JsonObject, trace: _Trace) -> dict[str, JsonValue]:
    """Return the metrics of a case; if the root span has no tokens, adds those of the case's own
    model calls.
    """
    if "prompt_tokens" in metrics:
        return dict(metrics)
    own = [call for span, call in trace.calls if trace.scorer_above(span) is None]
    sums: dict[str, JsonValue] = {}
    for key in ("prompt_tokens", "completion_tokens", "estimated_cost"):
        known = [number for call in own if (number := as_number(call.get(key))) is not None]
        if known:
            sums[key] = sum(known)
    return {**metrics, **sums}


def _values(scores: JsonObject, trace: _Trace) -> Iterator[MetricValue]:
    asked = {trace.scorer_above(span) for span, _ in trace.calls}
    spans = {name: span for span, row in trace.scorers.items() for name in _names(row)}
    for name, value in scores.items():
        span = spans.get(name)
        metadata = as_object(trace.scorers[span].get("metadata")) if span is not None else {}
        reason = (
            as_text(metadata.get("rationale"))
            or as_text(as_object(metadata.get(name)).get("rationale"))
            or ""
        )
        asked_a_model = span is not None and span in asked
        is_rule = name in _RULES and not asked_a_model
        yield MetricValue(
            criterion=name,
            value=value,
            judge=name,
            by=GradedBy.RULE if is_rule else GradedBy.MODEL,
            reason=reason,
            assumed=not is_rule and not asked_a_model and not reason,
        )


def _names(scorer: JsonObject) -> set[str]:
    """Return the names of the scores in a scorer's span, or the span's name if it lists none."""
    name = as_text(as_object(scorer.get("span_attributes")).get("name"))
    return set(as_object(scorer.get("scores"))) or ({name} if name else set())
