"""Test runs of DeepEval: `test_run_*.json`, `.deepeval/.latest_run_full.json` and
`.latest_test_run.json`.

Based on `deepeval/test_run/test_run.py` and `api.py` in 4.3 and 2.x, which write the fields of
`TestRun` in camel case: `testCases` with `input`, `actualOutput`, `expectedOutput` and
`metricsData`, and `conversationalTestCases` with `turns`.

A candidate is the `model` among the hyperparameters, or the run's identifier. Metrics with an
evaluating model (`evaluationModel`) await review. Of all other metrics, only those that DeepEval
itself computes count; a user's own metric may call a model, so it awaits review. In older versions
the score of some metrics (`Bias`, `Toxicity`) is the share of bad content, so lower is better; such
metrics have `success` at scores below the threshold.
"""

from __future__ import annotations

import re
from collections import Counter
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
    Message,
    MetricValue,
    ReadOptions,
    Shape,
    Skipped,
    as_count,
    as_duration,
    as_number,
    as_object,
    as_text,
    explained_share,
    foreign_names,
    graded_records,
    named_after_file,
    objects_in,
    pick,
    prompt_digest,
    read_document,
    shorten,
    to_text,
)

NAME: Final = "deepeval"

_NAMES: Final = foreign_names(__name__)
_CASE: Final[Shape] = dict.fromkeys(_NAMES["case"])
_RUN: Final[Shape] = {
    "testCases": _CASE,
    "conversationalTestCases": _CASE,
    **dict.fromkeys(_NAMES["run"]),
}
_SET_UP: Final = _NAMES["set_up"]
_BY_RULE: Final = frozenset(
    {"Exact Match", "Pattern Match", "Tool Correctness", "Json Correctness"}
)
_UNNAMED: Final = re.compile(r"(test_case|conversational_test_case)_\d+$")


def recognise(sample: FileSample) -> float | None:
    if b'"testCases"' not in sample.head and b'"conversationalTestCases"' not in sample.head:
        return None
    run = _run_in(sample.document)
    return None if run is None else explained_share(run, _RUN)


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a response and metrics for every test case."""
    run = _run_in(read_document(source))
    if run is None:
        yield Skipped(where=source.name, why="is not a test run of DeepEval: it lacks `testCases`.")
        return
    cases = [
        (case, f"{source.name}#{key}/{number}")
        for key in ("testCases", "conversationalTestCases")
        for number, case in enumerate(objects_in(run.get(key)), 1)
    ]
    model = as_text(as_object(run.get("hyperparameters")).get("model"))
    identifier = as_text(run.get("identifier"))
    candidate = options.candidate or model or identifier or source.stem
    yield FoundRun(
        suite=options.dataset
        or as_text(run.get("datasetAlias"))
        or as_text(run.get("testFile"))
        or NAME,
        format=NAME,
        candidates=(FoundCandidate(name=candidate, model=model, metadata=options.model_info),),
        provenance=pick(run, _SET_UP),
    )
    if not (options.candidate or model or identifier):
        yield named_after_file(source.name, candidate, "the test run contains no model name")
    directions = _directions(case for case, _ in cases)
    names: dict[str, str] = {}
    rows = [_row(case, where, candidate, directions, names) for case, where in cases]
    yield from graded_records(lambda: rows, source.name)


def _run_in(document: object) -> JsonObject | None:
    """Return the test run in a document; in older versions, the latest test run is inside
    `testRunData`.
    """
    fields = as_object(document)
    for run in (fields, as_object(fields.get("testRunData"))):
        cases = [*objects_in(run.get("testCases")), *objects_in(run.get("conversationalTestCases"))]
        if any(case.keys() & {"metricsData", "metricsMetadata", "actualOutput"} for case in cases):
            return run
    return None


def _directions(cases: Iterator[JsonObject]) -> Mapping[str, tuple[float, float] | None]:
    """Return each metric's worst and best score; None if the metric's verdicts contradict each
    other.
    """
    above: Counter[str] = Counter()
    below: Counter[str] = Counter()
    for case in cases:
        for metric in _metrics(case):
            name, score, threshold = _name(metric), metric.get("score"), metric.get("threshold")
            success = metric.get("success")
            scored, limit = as_number(score), as_number(threshold)
            if scored is None or limit is None or scored == limit or not isinstance(success, bool):
                continue
            (above if success is (scored > limit) else below)[name] += 1
    contradicting = dict.fromkeys(above.keys() & below.keys())
    return {**dict.fromkeys(below, (1.0, 0.0)), **dict.fromkeys(above, (0.0, 1.0)), **contradicting}


def _row(
    case: JsonObject,
    where: str,
    candidate: str,
    directions: Mapping[str, tuple[float, float] | None],
    names: dict[str, str],
) -> GradedRow:
    prompt, content = (
        _conversation(case) if "turns" in case else (_asked(case), case.get("actualOutput"))
    )
    name = as_text(case.get("name"))
    task = None
    if name is not None and not _UNNAMED.match(name):
        digest = prompt_digest(prompt)
        # Two cases with the same name but different questions are different tasks.
        task = name if names.setdefault(name, digest) == digest else f"{name} {digest}"
    expected = as_text(case.get("expectedOutput")) or as_text(case.get("expectedOutcome"))
    failure = None
    if content is None:
        failure = Failure(
            kind="no_output", fault=Fault.HARNESS, detail="the test case has no actual output."
        )
    return GradedRow(
        where=where,
        candidate=candidate,
        prompt=prompt,
        task=task,
        expected=() if expected is None else (expected,),
        metadata=pick(
            case,
            (
                "context",
                "retrievalContext",
                "expectedTools",
                "metadata",
                "additionalMetadata",
                "tags",
            ),
        ),
        content=None if content is None else to_text(content),
        failure=failure,
        values=tuple(_value(metric, directions) for metric in _metrics(case)),
        input_tokens=as_count(case.get("inputTokenCount")),
        output_tokens=as_count(case.get("outputTokenCount")),
        latency_s=as_duration(case.get("completionTime")),
        cost_usd=as_duration(case.get("tokenCost")),
    )


def _asked(case: JsonObject) -> tuple[Message, ...]:
    return (Message(role="user", content=to_text(case.get("input"))),)


def _conversation(case: JsonObject) -> tuple[tuple[Message, ...], str | None]:
    turns = objects_in(case.get("turns"))
    scenario = as_text(case.get("scenario"))
    last = max(
        (at for at, turn in enumerate(turns) if turn.get("role") == "assistant"), default=None
    )
    spoken = [
        Message(
            role="assistant" if turn.get("role") == "assistant" else "user",
            content=to_text(turn.get("content")),
        )
        for turn in turns
    ]
    before = tuple(spoken if last is None else spoken[:last])
    prompt = (Message(role="system", content=scenario), *before) if scenario is not None else before
    return prompt, None if last is None else spoken[last].content


def _metrics(case: JsonObject) -> list[JsonObject]:
    return objects_in(case.get("metricsData")) or objects_in(case.get("metricsMetadata"))


def _name(metric: JsonObject) -> str:
    return to_text(metric.get("name")) or to_text(metric.get("metric")) or "metric"


def _value(metric: JsonObject, directions: Mapping[str, tuple[float, float] | None]) -> MetricValue:
    name = _name(metric)
    model = as_text(metric.get("evaluationModel"))
    by_rule = model is None and name in _BY_RULE
    error = as_text(metric.get("error"))
    direction = directions.get(name, (0.0, 1.0))
    reason = as_text(metric.get("reason")) or ""
    if error is not None:
        reason = f"the metric broke: {shorten(error, 500)}"
    elif direction is None:
        reason = f"no score: verdicts contradict the direction of the metric. {reason}".strip()
    score = None if error is not None or direction is None else metric.get("score")
    worst, best = direction or (0.0, 1.0)
    return MetricValue(
        criterion=name,
        value=score,
        judge=NAME if by_rule else model or name,
        by=GradedBy.RULE if by_rule else GradedBy.MODEL,
        worst=worst,
        best=best,
        reason=reason,
        assumed=not by_rule and model is None,
    )
