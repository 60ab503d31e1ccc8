"""Reports of pydantic-evals: an `EvaluationReport` as JSON, with its data set in a separate file.

Based on `pydantic_evals/reporting/__init__.py` and `evaluators/` in 1.x (2026) and a genuine
report. A report is one candidate, named after the experiment. A case is a task, and repetitions of
a case (`source_case_name`) are trials. An evaluator is a judge, and each of its scores and
assertions is a criterion; labels have no scale, so they are left out.

The evaluators of pydantic-evals are rule-based, except `LLMJudge` and `GEval`. A user's own
evaluator may call a model, which no report shows, so its grades await review.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from assay.domain.failure import Failure, Fault
from assay.domain.import_records import (
    Found,
    FoundCandidate,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    Noted,
    Skipped,
)
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing import json_values as js
from assay.exchange.parsing.explained import Shape, explained_share
from assay.exchange.parsing.foreign_names import foreign_names
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_rows import folder_path, lies_beneath, read_document
from assay.exchange.parsing.metric_grades import MetricGrades, MetricValue, outside_their_scale

NAME: Final = "pydantic_evals"

_NAMES: Final = foreign_names(__name__)
_CASE: Final[Shape] = dict.fromkeys(_NAMES["case"])
_REPORT: Final[Shape] = {"cases": _CASE, "failures": _CASE, **dict.fromkeys(_NAMES["report"])}
_RULES: Final = frozenset(_NAMES["rules"])
_BY_MODEL: Final = frozenset({"LLMJudge", "GEval"})
_DATA_SET: Final = re.compile(
    rb"^(# yaml-language-server: .*\n|\$schema: .*\n|name: .*\n)*cases:\s*\n", re.MULTILINE
)


def recognise(sample: FileSample) -> float | None:
    """Recognise reports (by cases with scores and assertions) and data sets."""
    match _kind(sample):
        case "report":
            return explained_share(sample.document, _REPORT)
        case "data set":
            return 0.95
        case _:
            return None


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the data sets in a report's folder and subfolders, because the report already contains
    their cases.
    """
    if _kind(source.sample) != "report":
        return ()
    folder = folder_path(source)
    return [
        other
        for other in others
        if _kind(other.sample) == "data set" and lies_beneath(folder_path(other), folder)
    ]


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run: a task per case, a response per run of the case, and an assessment per
    evaluator.
    """
    if _kind(source.sample) == "data set":
        yield Skipped(
            where=source.name,
            why="is a data set of pydantic-evals without results; import it with a report.",
        )
        return
    report = js.as_object(read_document(source))
    candidate = options.candidate or js.as_text(report.get("name")) or source.stem
    trace = js.as_text(report.get("trace_id"))
    yield FoundRun(
        suite=options.dataset or js.as_text(report.get("dataset_name")) or source.stem,
        format=NAME,
        candidates=(FoundCandidate(name=candidate, metadata=options.model_info),),
        provenance=js.pick(
            report, ("name", "experiment_metadata", "analyses", "report_evaluator_failures")
        ),
        identity=None if trace is None else f"pydantic-evals trace {trace}",
    )
    cases = [js.as_object(case) for case in js.as_list(report.get("cases"))]
    reading = _CaseReader(
        candidate, outside_their_scale(value for case in cases for value in _values(case))
    )
    for key in ("cases", "failures"):
        for number, case in enumerate(js.as_list(report.get(key)), 1):
            yield from reading.case(
                js.as_object(case), f"{source.name}#{key}/{number}", failed=key == "failures"
            )
    yield from reading.notes(source.name)


def _kind(sample: FileSample) -> str | None:
    head = sample.head
    if b"cases" not in head or len(sample.rows) > 1:  # a document on one line is one row
        return None
    document = js.as_object(sample.document)
    if document:
        cases = (
            js.objects_in(document.get("cases"))[:20]
            or js.objects_in(document.get("failures"))[:20]
        )
        if cases and all(
            "inputs" in case and ("assertions" in case or "error_message" in case) for case in cases
        ):
            return "report"
        is_data_set = cases and "evaluators" in document and all("inputs" in case for case in cases)
        return "data set" if is_data_set and "output" not in cases[0] else None
    return (
        "data set"
        if _DATA_SET.search(head[:4096]) and b"inputs:" in head and b"evaluators:" in head
        else None
    )


class _CaseReader:
    """Reads cases, numbers the trials of each task, and counts labels."""

    def __init__(self, candidate: str, unscaled: Collection[str]) -> None:
        self._candidate = candidate
        self._trials: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._grades = MetricGrades(unscaled)

    def case(self, case: js.JsonObject, where: str, *, failed: bool) -> Iterator[Found]:
        task = js.as_text(case.get("source_case_name")) or js.as_text(case.get("name"))
        if task is None:
            yield Skipped(where=where, why="has no `name`, so it belongs to no task.")
            return
        if not self._trials[task]:
            yield _task(task, case)
        self._trials[task] += 1
        trial = self._trials[task]
        metrics = js.as_object(case.get("metrics"))
        failure = None
        if failed or "output" not in case:
            detail = js.shorten(js.as_text(case.get("error_message")) or "there is no output.")
            failure = Failure(kind="error", fault=Fault.HARNESS, detail=detail)
        yield FoundResponse(
            task=task,
            candidate=self._candidate,
            trial=trial,
            where=where,
            content=None if failure is not None else js.to_text(case.get("output")),
            failure=failure,
            input_tokens=js.as_count(metrics.get("input_tokens")),
            output_tokens=js.as_count(metrics.get("output_tokens")),
            latency_s=js.as_duration(case.get("task_duration")),
            cost_usd=js.as_duration(metrics.get("cost")),
            identity=js.as_text(case.get("span_id")),
        )
        if failure is None:
            self._labels.update(js.as_object(case.get("labels")).keys())
            yield from self._grades.assessments(
                list(_values(case)), task=task, candidate=self._candidate, trial=trial, where=where
            )

    def notes(self, where: str) -> Iterator[Noted]:
        if self._labels:
            names = ", ".join(f"{name} ({count:,})" for name, count in self._labels.most_common(10))
            yield Noted(
                where=where, what=f"labels are words without a scale; Assay left them out: {names}."
            )
        yield from self._grades.notes(where)


def _values(case: js.JsonObject) -> Iterator[MetricValue]:
    for kind in ("scores", "assertions"):
        for name, result in js.as_object(case.get(kind)).items():
            given = js.as_object(result)
            yield _value(name, given.get("value"), given, js.as_text(given.get("reason")) or "")
    for failure in js.objects_in(case.get("evaluator_failures")):
        reason = f"the evaluator failed: {js.shorten(failure.get('error_message'), 500)}"
        yield _value(js.as_text(failure.get("name")) or "evaluator", None, failure, reason)


def _task(task: str, case: js.JsonObject) -> FoundTask:
    inputs, expected = case.get("inputs"), case.get("expected_output")
    metadata = case.get("metadata")
    return FoundTask(
        id=task,
        prompt=js.as_messages(js.to_text(inputs)),
        expected=() if expected is None else (js.to_text(expected),),
        metadata=js.as_object(js.storable(metadata))
        or ({} if metadata is None else {"metadata": js.storable(metadata)}),
    )


def _value(name: str, value: object, result: js.JsonObject, reason: str) -> MetricValue:
    """Return a result as a metric; for G-Eval, with the score range that the result states."""
    source = result.get("source")
    evaluator = js.as_text(js.as_object(source).get("name")) or js.as_text(source) or name
    arguments = js.as_object(js.as_object(source).get("arguments"))
    ends = (
        [js.as_number(end) for end in js.as_list(arguments.get("score_range"))]
        if evaluator == "GEval"
        else []
    )
    worst, best = (
        (ends[0], ends[1]) if len(ends) == 2 else (1.0, 5.0) if evaluator == "GEval" else (0.0, 1.0)
    )
    known = worst is not None and best is not None and worst < best
    model = js.as_text(arguments.get("model"))
    return MetricValue(
        criterion=name,
        value=value,
        judge=evaluator if model is None else f"{evaluator} ({model})",
        by=GradedBy.RULE if evaluator in _RULES else GradedBy.MODEL,
        worst=worst if known and worst is not None else 0.0,
        best=best if known and best is not None else 1.0,
        reason=reason,
        assumed=evaluator not in _RULES and evaluator not in _BY_MODEL,
    )
