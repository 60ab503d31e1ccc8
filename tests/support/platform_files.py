"""Results of evaluation platforms, written for tests the way their own exporters write them.

Every function writes one small evaluation into a folder and returns the path to import.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from tests.support.harness_files import put, put_lines


def put_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A CSV file as pandas writes it: columns of all rows, objects as Python prints them, empty
    cells for None.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(columns)
        table.writerows(
            [["" if row.get(key) is None else row[key] for key in columns] for row in rows]
        )
    return path


# --- MLflow ---------------------------------------------------------------------------------------


def mlflow_assessment(name: str, value: Any, kind: str, giver: str, **more: Any) -> dict[str, Any]:
    """An assessment as `Assessment.to_dictionary` writes it."""
    return {
        "assessment_id": f"a-{name}-{giver}",
        "assessment_name": name,
        "trace_id": "tr-1",
        "source": {"source_type": kind, "source_id": giver},
        "create_time": "2026-03-01T10:00:01.602Z",
        "feedback": {"value": value},
        "metadata": {"mlflow.assessment.sourceRunId": "run1"},
        "valid": True,
        **more,
    }


def mlflow_row(
    question: str, answer: str, *assessments: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """A row of `result_df`: the columns of the feedback, then those of the trace."""
    request = {"model": "tiny", "messages": [{"role": "user", "content": question}]}
    message = {"role": "assistant", "content": answer, "refusal": None}
    response = {
        "id": "c1",
        "model": "tiny",
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    span = {
        "span_id": "s1",
        "parent_span_id": None,
        "name": "Completions",
        "attributes": {
            "mlflow.spanInputs": json.dumps(request),
            "mlflow.spanOutputs": json.dumps(response),
        },
    }
    metadata = {
        "mlflow.trace.tokenUsage": '{"input_tokens": 27, "output_tokens": 4, "total_tokens": 31}',
        "mlflow.trace.cost": '{"input_cost": 0.001, "output_cost": 0.002, "total_cost": 0.003}',
    }
    expectation = {
        **mlflow_assessment("expected_response", None, "HUMAN", "root"),
        "expectation": {"value": "Paris"},
    }
    del expectation["feedback"]
    given = [*assessments, expectation]
    info = {"trace_id": f"tr-{question}", "request_time": "2026-03-01T10:00:00.000Z", "state": "OK"}
    trace = {
        "info": {**info, "trace_metadata": metadata, "assessments": given},
        "data": {"spans": [span]},
    }
    columns = {
        f"{one['assessment_name']}/value": one["feedback"].get("value") for one in assessments
    }
    return {
        "trace_id": f"tr-{question}",
        **columns,
        "expected_response/value": "Paris",
        "trace": json.dumps(trace),
        "client_request_id": None,
        "state": "OK",
        "request_time": 1772359200000,
        "execution_duration": 80,
        "request": request,
        "response": response,
        "trace_metadata": metadata,
        "tags": {"mlflow.traceName": "Completions"},
        "spans": [span],
        "assessments": given,
        **more,
    }


def mlflow_rows() -> list[dict[str, Any]]:
    """Two rows, each graded by code, by a judge and, once, by a person."""
    judged = mlflow_assessment("safety", "yes", "LLM_JUDGE", "openai:/judge", rationale="Harmless.")
    exact = mlflow_assessment("exact", True, "CODE", "exact")
    wrong = mlflow_assessment("exact", False, "CODE", "exact")
    person = mlflow_assessment("style", 0.5, "HUMAN", "mia@example.org", rationale="Short.")
    return [
        mlflow_row("Capital?", "Paris", exact, judged),
        mlflow_row("Biggest?", "Lyon", wrong, judged, person),
    ]


def mlflow(folder: Path) -> Path:
    """`result_df.to_json(orient="records")`."""
    return put(folder / "eval.json", mlflow_rows())


# --- DeepEval -------------------------------------------------------------------------------------


def deepeval_metric(
    name: str, score: float | None, *, model: str | None = None, **more: Any
) -> dict[str, Any]:
    """A `MetricData`; a metric that a model evaluates names it."""
    metric: dict[str, Any] = {
        "name": name,
        "threshold": 0.5,
        "success": score is not None and score >= 0.5,
        "score": score,
        "reason": f"{name} says so.",
        "strictMode": False,
        "flaky": False,
    }
    if model is not None:
        metric |= {
            "evaluationModel": model,
            "evaluationCost": 0.0002,
            "inputTokenCount": 162,
            "outputTokenCount": 41,
        }
    return {key: value for key, value in {**metric, **more}.items() if value is not None}


def deepeval_case(number: int, *metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An `LLMApiTestCase` with these metrics."""
    return {
        "name": f"test_case_{number}",
        "input": f"What is 2 + {number}?",
        "actualOutput": "four",
        "expectedOutput": str(2 + number),
        "success": True,
        "metricsData": list(metrics),
        "runDuration": 0.1,
        "completionTime": 1.5,
        "tokenCost": 0.01,
        "order": number,
        **more,
    }


def deepeval_run(*cases: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A `TestRun` as `save` writes it."""
    return {
        "testCases": list(cases),
        "conversationalTestCases": [],
        "metricsScores": [],
        "identifier": "nightly",
        "hyperparameters": {"model": "tiny", "prompt": "plain"},
        "testPassed": 1,
        "testFailed": 1,
        "runDuration": 0.5,
        **more,
    }


def deepeval(folder: Path) -> Path:
    """A test run of two cases, each with a metric by rule and one by a model."""
    cases = [
        deepeval_case(
            number,
            deepeval_metric("Exact Match", score),
            deepeval_metric("Correctness [GEval]", 0.9, model="judge"),
        )
        for number, score in enumerate((0.0, 1.0))
    ]
    return put(folder / "test_run_20260301_100000.json", deepeval_run(*cases))


# --- Ragas ----------------------------------------------------------------------------------------


def ragas_row(question: str, **more: Any) -> dict[str, Any]:
    """A row of `EvaluationResult.to_pandas()`."""
    return {
        "user_input": question,
        "retrieved_contexts": ["Paris is the capital."],
        "response": "Paris",
        "reference": "Paris",
        "faithfulness": 0.75,
        "rouge_score(mode=fmeasure)": 1.0,
        **more,
    }


def ragas(folder: Path) -> Path:
    """`to_pandas().to_csv()`: lists as Python prints them."""
    return put_table(
        folder / "tiny.csv", [ragas_row("Capital?"), ragas_row("Biggest?", faithfulness=None)]
    )


# --- Phoenix --------------------------------------------------------------------------------------


def phoenix_annotation(name: str, kind: str, score: float | None, **more: Any) -> dict[str, Any]:
    """An annotation of an experiment run."""
    return {
        "name": name,
        "annotator_kind": kind,
        "label": None,
        "score": score,
        "explanation": f"{name} explains.",
        "trace_id": "t9",
        "error": None,
        "metadata": {},
        "start_time": "2026-03-01T10:00:02+00:00",
        "end_time": "2026-03-01T10:00:03+00:00",
        **more,
    }


def phoenix_row(
    example: str, repetition: int, *annotations: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """A record of `/experiments/{id}/json`."""
    return {
        "example_id": example,
        "repetition_number": repetition,
        "input": {"question": f"What of {example}?"},
        "reference_output": {"answer": "four"},
        "output": "four",
        "error": None,
        "latency_ms": 1500.0,
        "start_time": "2026-03-01T10:00:00+00:00",
        "end_time": "2026-03-01T10:00:01.500000+00:00",
        "trace_id": f"trace-{example}-{repetition}",
        "prompt_token_count": 11,
        "completion_token_count": 3,
        "annotations": list(annotations),
        **more,
    }


def phoenix_rows() -> list[dict[str, Any]]:
    """Two examples, one of them repeated, with annotations of every kind."""
    code, judged = (
        phoenix_annotation("exact", "CODE", 1.0),
        phoenix_annotation("correct", "LLM", 0.0, label="wrong"),
    )
    person = phoenix_annotation("style", "HUMAN", 0.5)
    return [
        phoenix_row("RGF0YTox", 1, code, judged),
        phoenix_row("RGF0YTox", 2, code, judged, person),
        phoenix_row("RGF0YToy", 1, error="RuntimeError: no", output=None),
    ]


def phoenix(folder: Path) -> Path:
    """The JSON download of an experiment."""
    return put(folder / "tiny-experiment.json", phoenix_rows())


def phoenix_csv(folder: Path) -> Path:
    """The CSV download of the same experiment."""
    rows = []
    for row in phoenix_rows():
        flat = {key: value for key, value in row.items() if key != "annotations"}
        flat |= {key: json.dumps(flat[key]) for key in ("input", "reference_output")}
        for annotation in row["annotations"]:
            for part in annotation:
                if part != "name":
                    value = annotation[part]
                    flat[f"annotation_{annotation['name']}_{part}"] = (
                        json.dumps(value) if part == "metadata" else value
                    )
        rows.append(flat)
    return put_table(folder / "tiny-experiment.csv", rows)


# --- LangSmith ------------------------------------------------------------------------------------


def langsmith_flat(number: int, **more: Any) -> dict[str, Any]:
    """A row of `ExperimentResults.to_pandas()`."""
    return {
        "inputs.question": f"What is 2 + {number}?",
        "outputs.answer": "four",
        "error": None,
        "reference.answer": str(2 + number),
        "feedback.correct": True,
        "feedback.tone": "dry",
        "execution_time": 0.75,
        "example_id": f"e-{number}",
        "id": f"r-{number}",
        **more,
    }


def langsmith(folder: Path) -> Path:
    """The table as CSV, with one run that broke."""
    broken = {
        "outputs.answer": None,
        "error": "ValueError('no')",
        "feedback.correct": None,
        "feedback.tone": None,
    }
    return put_table(folder / "tiny.csv", [langsmith_flat(1), langsmith_flat(2, **broken)])


def langsmith_result(number: int, *results: dict[str, Any]) -> dict[str, Any]:
    """An `ExperimentResultRow` with its models dumped as JSON."""
    return {
        "run": {
            "id": f"r-{number}",
            "name": "target",
            "start_time": "2026-03-01T10:00:00+00:00",
            "end_time": "2026-03-01T10:00:02+00:00",
            "extra": {"metadata": {"ls_model_name": "tiny"}},
            "error": None,
            "inputs": {"question": f"What is 2 + {number}?"},
            "outputs": {"answer": "four"},
            "reference_example_id": f"e-{number}",
            "session_id": "s-1",
            "prompt_tokens": 11,
            "completion_tokens": 3,
            "total_cost": "0.002",
        },
        "example": {
            "id": f"e-{number}",
            "dataset_id": "d-1",
            "inputs": {"question": f"What is 2 + {number}?"},
            "outputs": {"answer": str(2 + number)},
        },
        "evaluation_results": {"results": list(results)},
    }


# --- Langfuse -------------------------------------------------------------------------------------


def langfuse_score(
    trace: str | None, name: str, source: str, value: Any, **more: Any
) -> dict[str, Any]:
    """A row of the scores export."""
    return {
        "id": f"s-{trace}-{name}",
        "traceId": trace,
        "sessionId": None,
        "datasetRunId": None,
        "timestamp": "2026-03-01T10:00:05.000Z",
        "source": source,
        "name": name,
        "dataType": "NUMERIC",
        "value": value,
        "stringValue": None,
        "comment": f"{name} comments.",
        "metadata": {},
        "observationId": None,
        "traceName": "qa",
        "userId": None,
        "traceTags": [],
        "environment": "default",
        "authorUserName": "Mia" if source == "ANNOTATION" else None,
        **more,
    }


def langfuse_trace(name: str, question: str, **more: Any) -> dict[str, Any]:
    """A row of the traces export."""
    return {
        "id": name,
        "timestamp": "2026-03-01T10:00:00.000Z",
        "name": "qa",
        "input": {"question": question},
        "output": "four",
        "latency": 1.5,
        "totalCost": 0.002,
        "inputTokens": 11,
        "outputTokens": 3,
        "observationCount": 1,
        **more,
    }


def langfuse_run(name: str, *traces: str) -> dict[str, Any]:
    """A dataset run as `GET /datasets/{name}/runs/{run}` returns it; the nth trace is of the nth
    item.
    """
    run_id = f"run-{name}"
    items = [
        {
            "id": f"i-{name}-{number}",
            "datasetRunId": run_id,
            "datasetRunName": name,
            "datasetItemId": f"item-{number}",
            "traceId": trace,
            "observationId": None,
            "createdAt": "2026-03-01T10:00:00.000Z",
            "updatedAt": "2026-03-01T10:00:00.000Z",
        }
        for number, trace in enumerate(traces, 1)
    ]
    return {
        "id": run_id,
        "name": name,
        "datasetId": "d1",
        "datasetName": "sums",
        "datasetRunItems": items,
    }


def langfuse(folder: Path) -> Path:
    """A dataset run with its traces, its scores and the items of its dataset."""
    scores = [
        langfuse_score("t1", "exact", "API", 1),
        langfuse_score("t1", "helpful", "EVAL", 0.5),
        langfuse_score("t2", "style", "ANNOTATION", 0.25),
    ]
    put(folder / "run.json", langfuse_run("tiny", "t1", "t2"))
    put_lines(folder / "scores.jsonl", scores)
    put(folder / "traces.json", [langfuse_trace("t1", "2 + 2?"), langfuse_trace("t2", "2 + 3?")])
    item = {"datasetId": "d1", "datasetName": "sums", "status": "ACTIVE", "metadata": None}
    items = [
        {
            **item,
            "id": f"item-{number}",
            "input": {"question": f"2 + {number + 1}?"},
            "expectedOutput": str(number + 3),
        }
        for number in (1, 2)
    ]
    put(
        folder / "items.json",
        {"data": items, "meta": {"page": 1, "limit": 50, "totalItems": 2, "totalPages": 1}},
    )
    return folder
