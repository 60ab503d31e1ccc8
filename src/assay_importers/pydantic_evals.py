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
    folder_path,
    foreign_names,
    lies_beneath,
    objects_in,
    outside_their_scale,
    pick,
    read_document,
    shorten,
    storable,
    to_text,
)

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
    report = as_object(read_document(source))
    candidate = options.candidate or as_text(report.get("name")) or source.stem
    trace = as_text(report.get("trace_id"))
    yield FoundRun(
        suite=options.dataset or as_text(report.get("dataset_name")) or source.stem,
        format=NAME,
        candidates=(FoundCandidate(name=candidate, metadata=options.model_info),),
        provenance=pick(
            report, ("name", "experiment_metadata", "analyses", "report_evaluator_failures")
        ),
        identity=None if trace is None else f"pydantic-evals trace {trace}",
    )
    cases = [as_object(case) for case in as_list(report.get("cases"))]
    reading = _CaseReader(
        candidate, outside_their_scale(value for case in cases for value in _values(case))
    )
    for key in ("cases", "failures"):
        for number, case in enumerate(as_list(report.get(key)), 1):
            yield from reading.case(
                as_object(case), f"{source.name}#{key}/{number}", failed=key == "failures"
            )
    yield from reading.notes(source.name)


def _kind(sample: FileSample) -> str | None:
    head = sample.head
    if b"cases" not in head or len(sample.rows) > 1:  # a document on one line is one row
        return None
    document = as_object(sample.document)
    if document:
        cases = objects_in(document.get("cases"))[:20] or objects_in(document.get("failures"))[:20]
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

    def case(self, case: JsonObject, where: str, *, failed: bool) -> Iterator[Found]:
        task = as_text(case.get("source_case_name")) or as_text(case.get("name"))
        if task is None:
            yield Skipped(where=where, why="has no `name`, so it belongs to no task.")
            return
        if not self._trials[task]:
            yield _task(task, case)
        self._trials[task] += 1
        trial = self._trials[task]
        metrics = as_object(case.get("metrics"))
        failure = None
        if failed or "output" not in case:
            detail = shorten(as_text(case.get("error_message")) or "there is no output.")
            failure = Failure(kind="error", fault=Fault.HARNESS, detail=detail)
        yield FoundResponse(
            task=task,
            candidate=self._candidate,
            trial=trial,
            where=where,
            content=None if failure is not None else to_text(case.get("output")),
            failure=failure,
            input_tokens=as_count(metrics.get("input_tokens")),
            output_tokens=as_count(metrics.get("output_tokens")),
            latency_s=as_duration(case.get("task_duration")),
            cost_usd=as_duration(metrics.get("cost")),
            identity=as_text(case.get("span_id")),
        )
        if failure is None:
            self._labels.update(as_object(case.get("labels")).keys())
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


def _values(case: JsonObject) -> Iterator[MetricValue]:
    for kind in ("scores", "assertions"):
        for name, result in as_object(case.get(kind)).items():
            given = as_object(result)
            yield _value(name, given.get("value"), given, as_text(given.get("reason")) or "")
    for failure in objects_in(case.get("evaluator_failures")):
        reason = f"the evaluator failed: {shorten(failure.get('error_message'), 500)}"
        yield _value(as_text(failure.get("name")) or "evaluator", None, failure, reason)


def _task(task: str, case: JsonObject) -> FoundTask:
    inputs, expected = case.get("inputs"), case.get("expected_output")
    metadata = case.get("metadata")
    return FoundTask(
        id=task,
        prompt=as_messages(to_text(inputs)),
        expected=() if expected is None else (to_text(expected),),
        metadata=as_object(storable(metadata))
        or ({} if metadata is None else {"metadata": storable(metadata)}),
    )


def _value(name: str, value: object, result: JsonObject, reason: str) -> MetricValue:
    """Return a result as a metric; for G-Eval, with the score range that the result states."""
    source = result.get("source")
    evaluator = as_text(as_object(source).get("name")) or as_text(source) or name
    arguments = as_object(as_object(source).get("arguments"))
    ends = (
        [as_number(end) for end in as_list(arguments.get("score_range"))]
        if evaluator == "GEval"
        else []
    )
    worst, best = (
        (ends[0], ends[1]) if len(ends) == 2 else (1.0, 5.0) if evaluator == "GEval" else (0.0, 1.0)
    )
    known = worst is not None and best is not None and worst < best
    model = as_text(arguments.get("model"))
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
