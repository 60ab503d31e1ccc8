"""Tables of MLflow's evaluations: `result_df` of `mlflow.genai.evaluate`, and
`eval_results_table.json` of `mlflow.evaluate`.

Based on `mlflow/genai/utils/trace_utils.py`, `entities/trace.py` and
`models/evaluation/default_evaluator.py` in 3.18. A `result_df` has a trace for each row
(`trace_id`, `trace`, `request`, `response`, `assessments`) and columns `NAME/value` and
`NAME/rationale`, which `mlflow.search_traces()` leaves out; `eval_results_table.json` has the
columns of the data, `outputs`, and `METRIC/score` with `METRIC/justification`.

Assessments state their source: those from code count, a person's are attributed to that person, and
all others await review. Assessments from another evaluation of the same trace, and overridden ones,
are left out. `yes` and `no` are 1 and 0, as in MLflow's own means. In the older table, a metric
with a justification was graded by a model, on MLflow's scale of 1 to 5; for `toxicity`, lower is
better. A task is named after a digest of its request without the model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
    MetricValue,
    Noted,
    ReadOptions,
    Skipped,
    answer_of,
    answer_text,
    as_count,
    as_duration,
    as_object,
    as_text,
    cell_number,
    decoded,
    explained_share,
    first_frame_rows,
    foreign_names,
    frame_rows,
    from_text,
    from_unix,
    graded_records,
    objects_in,
    prompt_of,
    shorten,
    storable,
    to_text,
)

NAME: Final = "mlflow"

_NAMES: Final = foreign_names(__name__)
_TRACE: Final = _NAMES["trace"]
_ASSESSED: Final = re.compile(r"(.+)/(value|rationale|error_message|error_code)$")
_SCORED: Final = re.compile(r"(.+?)(?:/v\d+)?/(score|justification)$")
_VERSIONED: Final = re.compile(r".+/v\d+/(score|justification)$")
_OUTPUTS: Final = ("outputs", "predictions", "prediction")
_TARGETS: Final = ("ground_truth", "target", "targets", "expected_response")
_MEASURES: Final = ("token_count", "latency")
_ONE_TO_FIVE: Final = _NAMES["one_to_five"]
_RATINGS: Final = {"yes": 1.0, "no": 0.0}
_BY_SOURCE: Final = {"CODE": GradedBy.RULE, "HUMAN": GradedBy.PERSON}


def recognise(sample: FileSample) -> float | None:
    """Recognise rows of traces with `NAME/value`, or of data with `METRIC/v1/score`."""
    head = sample.head
    # pandas escapes slashes in JSON.
    if not any(
        part in head
        for part in (b"/value", b"\\/value", b"/score", b"\\/score", b"assessment_name")
    ):
        return None
    rows = first_frame_rows(sample)
    columns = {key for row in rows for key in row}
    if columns & {"trace_id", "request_id"} and any(map(_is_of_traces, columns)):
        known = [key for key in columns if key in _TRACE or _ASSESSED.match(key)]
        return explained_share(rows, dict.fromkeys(known))
    if any(_VERSIONED.match(key) for key in columns) and columns & {*_OUTPUTS, *_TARGETS}:
        return explained_share(rows, dict.fromkeys(columns))  # the other columns come from the data
    return None


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a response and assessments for every row."""
    traces = any(_is_of_traces(key) for row in first_frame_rows(source.sample) for key in row)
    models: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    changed: str | None = None
    for row, _ in frame_rows(source):
        if traces and not isinstance(row, str):
            trace = _Trace(row)
            models.update(filter(None, (trace.model,)))
            runs.update(filter(None, (_run_of(assessment) for assessment in trace.assessments)))
            changed = max(filter(None, (changed, *map(_changed, trace.assessments))), default=None)
    run = next((name for name, _ in runs.most_common(1)), None)
    model = next(iter(models)) if len(models) == 1 else None
    candidate = options.candidate or model or source.stem
    yield FoundRun(
        suite=options.dataset or NAME,
        format=NAME,
        candidates=(FoundCandidate(name=candidate, model=model, metadata=options.model_info),),
        provenance={
            "candidate_from": "option"
            if options.candidate
            else "responses"
            if model
            else "file name",
            **({} if run is None else {"run_id": run}),
        },
        identity=None if run is None else f"mlflow run {run}",
        version=changed,
    )
    if options.candidate is None and model is None:
        what = f"the file has no single model name; candidate {candidate!r} is named after the file; `--candidate` renames it."
        yield Noted(where=source.name, what=what)
    yield from graded_records(lambda: _rows(source, candidate, run, traces=traces), source.name)


def _rows(
    source: InputFile, candidate: str, run: str | None, *, traces: bool
) -> Iterator[GradedRow | Skipped]:
    for row, where in frame_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
        else:
            yield (
                _traced(_Trace(row), run, where, candidate)
                if traces
                else _evaluated(row, where, candidate)
            )


def _is_of_traces(column: str) -> bool:
    return column == "assessments" or _ASSESSED.match(column) is not None


class _Trace:
    """A row and its trace's fields, which come from columns or from the trace as JSON (complete in
    CSV files).
    """

    def __init__(self, row: Mapping[str, object]) -> None:
        self.row = row
        whole = as_object(decoded(row.get("trace")))
        self.info = as_object(whole.get("info"))
        self.metadata = as_object(self.info.get("trace_metadata")) or as_object(
            decoded(row.get("trace_metadata"))
        )
        self.assessments = objects_in(self.info.get("assessments")) or objects_in(
            decoded(row.get("assessments"))
        )
        spans = objects_in(as_object(whole.get("data")).get("spans")) or objects_in(
            decoded(row.get("spans"))
        )
        root = next((span for span in spans if not span.get("parent_span_id")), {})
        attributes = as_object(root.get("attributes"))
        self.request = decoded(attributes.get("mlflow.spanInputs")) or decoded(row.get("request"))
        self.response = decoded(attributes.get("mlflow.spanOutputs")) or decoded(
            row.get("response")
        )
        answered = as_text(as_object(self.response).get("model"))
        self.model = answered or as_text(as_object(self.request).get("model"))

    @property
    def state(self) -> str | None:
        """The trace's state: OK, ERROR, IN_PROGRESS or None."""
        return (
            as_text(self.row.get("state"))
            or as_text(self.info.get("state"))
            or as_text(self.row.get("status"))
        )

    @property
    def started(self) -> str | None:
        """Time of the request: milliseconds in the column, text in the trace."""
        milliseconds = cell_number(self.row.get("request_time"))
        return from_text(self.info.get("request_time")) or from_unix(
            milliseconds and milliseconds / 1000
        )


def _run_of(assessment: JsonObject) -> str | None:
    return as_text(as_object(assessment.get("metadata")).get("mlflow.assessment.sourceRunId"))


def _changed(assessment: JsonObject) -> str | None:
    return from_text(assessment.get("last_update_time")) or from_text(assessment.get("create_time"))


def _traced(trace: _Trace, run: str | None, where: str, candidate: str) -> GradedRow:
    body = as_object(trace.response)
    text, finish, failure = (
        answer_of(body) if "choices" in body else (answer_text(trace.response), None, None)
    )
    if trace.state == "ERROR":
        failure = Failure(
            kind="error", fault=Fault.HARNESS, detail="the traced call ended with an error."
        )
    elif text is None and failure is None:
        failure = Failure(
            kind="no_output", fault=Fault.HARNESS, detail="the trace holds no response."
        )
    request = as_object(trace.request)
    asked = (
        {key: value for key, value in request.items() if key != "model"}
        if "messages" in request
        else trace.request
    )
    tokens = as_object(decoded(trace.metadata.get("mlflow.trace.tokenUsage")))
    cost = as_object(decoded(trace.metadata.get("mlflow.trace.cost")))
    milliseconds = cell_number(trace.row.get("execution_duration"))
    name = as_text(trace.row.get("trace_id")) or as_text(trace.row.get("request_id"))
    return GradedRow(
        where=where,
        candidate=candidate,
        prompt=prompt_of(asked),
        expected=_expected(trace),
        content=text,
        failure=failure,
        values=tuple(_assessed(trace, run)),
        model=trace.model,
        finish_reason=finish,
        input_tokens=as_count(tokens.get("input_tokens")),
        output_tokens=as_count(tokens.get("output_tokens")),
        latency_s=None if milliseconds is None else as_duration(milliseconds / 1000),
        cost_usd=as_duration(cost.get("total_cost")),
        started=trace.started,
        identity=name,
    )


def _expected(trace: _Trace) -> tuple[str, ...]:
    named = {
        to_text(assessment.get("assessment_name")): to_text(
            as_object(assessment.get("expectation")).get("value")
        )
        for assessment in trace.assessments
        if assessment.get("expectation")
    }
    return (
        tuple(named.values())
        if len(named) < 2
        else tuple(f"{name}: {value}" for name, value in named.items())
    )


def _assessed(trace: _Trace, run: str | None) -> Iterator[MetricValue]:
    """Yield the feedback on a trace, from the trace's assessments or, if it has none, from the
    table's columns.
    """
    known: set[str] = set()
    for assessment in trace.assessments:
        name = to_text(assessment.get("assessment_name"))
        known.add(name)
        feedback = as_object(assessment.get("feedback"))
        if (
            not feedback
            or assessment.get("valid") is False
            or _run_of(assessment) not in (None, run)
        ):
            continue
        given = as_object(assessment.get("source"))
        kind, giver = as_text(given.get("source_type")) or "", as_text(given.get("source_id"))
        by = _BY_SOURCE.get(kind, GradedBy.MODEL)
        if any(
            key.startswith("mlflow.assessment.judge")
            for key in as_object(assessment.get("metadata"))
        ):
            by = GradedBy.MODEL  # code that called a judge, whose cost or tokens MLflow recorded
        judge = NAME if by is GradedBy.RULE else giver or name
        error = as_text(as_object(feedback.get("error")).get("error_message"))
        reason = as_text(assessment.get("rationale")) or ""
        if error is not None:
            reason = f"the scorer broke: {shorten(error, 500)}"
        yield _rated(
            name,
            None if error else feedback.get("value"),
            judge,
            by,
            reason,
            assumed=kind not in (*_BY_SOURCE, "LLM_JUDGE"),
        )
    for key in trace.row:
        match = _ASSESSED.match(key)
        if match is not None and match[2] == "value" and match[1] not in known:
            reason = as_text(decoded(trace.row.get(f"{match[1]}/rationale"))) or ""
            value = decoded(trace.row[key])
            if value is not None:
                yield _rated(match[1], value, match[1], GradedBy.MODEL, reason, assumed=True)


def _rated(
    name: str, value: object, judge: str, by: GradedBy, reason: str, *, assumed: bool
) -> MetricValue:
    if isinstance(value, str):
        rating = _RATINGS.get(value.strip().lower())
        number = cell_number(value) if rating is None else rating
        if number is None:
            reason = f"{value}: {reason}" if reason else value
        value = number
    return MetricValue(
        criterion=name, value=value, judge=judge, by=by, reason=reason, assumed=assumed
    )


def _evaluated(row: Mapping[str, object], where: str, candidate: str) -> GradedRow:
    """Return a row of `eval_results_table.json`: data, outputs and metrics."""
    metrics = {key: match for key in row if (match := _SCORED.match(key)) is not None}
    output = next((key for key in _OUTPUTS if key in row), None)
    target = next((key for key in _TARGETS if key in row), None)
    data = {
        key: decoded(value)
        for key, value in row.items()
        if key not in metrics and key not in (output, target, *_MEASURES)
    }
    text = None if output is None else answer_text(decoded(row[output]))
    expected = None if target is None else decoded(row[target])
    # MLflow counts the tokens of the outputs
    return GradedRow(
        where=where,
        candidate=candidate,
        prompt=prompt_of(storable(data)),
        expected=() if expected is None else (to_text(storable(expected)),),
        content=text,
        values=tuple(_scored(row, metrics)),
        output_tokens=as_count(cell_number(row.get("token_count"))),
        latency_s=as_duration(cell_number(row.get("latency"))),
    )


def _scored(
    row: Mapping[str, object], metrics: Mapping[str, re.Match[str]]
) -> Iterable[MetricValue]:
    justified = {match[1] for match in metrics.values() if match[2] == "justification"}
    for key, match in metrics.items():
        name = match[1]
        if match[2] != "score" or (value := decoded(row[key])) is None:
            continue
        by_model = name in justified
        worst, best = (1.0, 0.0) if name == "toxicity" else (0.0, 1.0)
        if by_model and name in _ONE_TO_FIVE:
            worst, best = 1.0, 5.0
        reason = next(
            (
                row[other]
                for other, part in metrics.items()
                if part[1] == name and part[2] != "score"
            ),
            None,
        )
        yield MetricValue(
            criterion=name,
            value=cell_number(value),
            judge=name if by_model else NAME,
            by=GradedBy.MODEL if by_model else GradedBy.RULE,
            worst=worst,
            best=best,
            reason=as_text(decoded(reason)) or "",
        )
