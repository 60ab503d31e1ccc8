"""Results of evaluation programs, written for tests in the shape of those programs' own
serialisers.

Every function writes one small evaluation into a folder and returns the path to import.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from tests.support.harness_files import put, put_lines

# --- code benchmarks ------------------------------------------------------------------------------


def evalplus(folder: Path) -> Path:
    """EvalPlus: two samples of two tasks, one of which fails the extra tests only."""
    put_lines(
        folder / "meta-llama--Llama-3_vllm_temp_0.8.jsonl",
        [{"task_id": f"HumanEval/{number}", "solution": "def f(): ..."} for number in (0, 0, 1, 1)],
    )
    put_lines(
        folder / "HumanEvalPlus.jsonl",
        [
            {
                "task_id": f"HumanEval/{number}",
                "prompt": f"def f{number}():\n",
                "entry_point": f"f{number}",
                "canonical_solution": "    return 1\n",
                "test": "def check(candidate): ...",
            }
            for number in (0, 1)
        ],
    )

    def sample(number: int, base: str, plus: str | None) -> dict[str, Any]:
        return {
            "task_id": f"HumanEval/{number}",
            "solution": f"def f{number}(): return {base}",
            "base_status": base,
            "plus_status": plus,
            "base_fail_tests": [] if base == "pass" else [[1, 2]],
            "plus_fail_tests": [] if plus == "pass" else [[3, 4]],
        }

    put(
        folder / "meta-llama--Llama-3_vllm_temp_0.8_eval_results.json",
        {
            "date": "2026-03-01 10:00",
            "hash": "fe585eb4df8c88d844eeb463ea4d0302",
            "eval": {
                "HumanEval/0": [sample(0, "pass", "pass"), sample(0, "pass", "fail")],
                "HumanEval/1": [sample(1, "fail", "pass"), sample(1, "timeout", "timeout")],
            },
            "pass_at_k": {"base": {"pass@1": 0.5}, "plus": {"pass@1": 0.25}},
        },
    )
    return folder


def bigcode(folder: Path) -> Path:
    """Generations of the BigCode harness: two tasks with two samples, of which one is missing."""
    put(
        folder / "generations_humaneval.json",
        [["def f():\n    return 1", "def f(): ..."], ["def g(): return 2", None]],
    )
    put(
        folder / "references_humaneval.json",
        ["def check(f):\n    assert f() == 1\ncheck(f)", "check(g)"],
    )
    config = {
        "model": "bigcode/starcoder2-3b",
        "temperature": 0.2,
        "n_samples": 2,
        "save_generations_path": "g.json",
    }
    put(folder / "evaluation_results.json", {"humaneval": {"pass@1": 0.25}, "config": config})
    return folder


# --- pydantic-evals -------------------------------------------------------------------------------


def pydantic_result(
    name: str, value: Any, evaluator: str, arguments: Any = None, reason: Any = None
) -> dict[str, Any]:
    source = {"name": evaluator, "arguments": arguments}
    return {
        "name": name,
        "value": value,
        "reason": reason,
        "source": source,
        "evaluator_version": None,
    }


def pydantic_case(name: str, **more: Any) -> dict[str, Any]:
    case: dict[str, Any] = {
        "name": name,
        "inputs": {"question": "Why?"},
        "metadata": {"level": 1},
        "expected_output": "Because.",
        "output": "Because.",
        "metrics": {"requests": 1, "cost": 0.002, "input_tokens": 11, "output_tokens": 3},
        "attributes": {},
        "scores": {},
        "labels": {},
        "assertions": {"EqualsExpected": pydantic_result("EqualsExpected", True, "EqualsExpected")},
        "task_duration": 0.5,
        "total_duration": 0.75,
        "source_case_name": None,
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": name.encode().hex()[:16],
        "evaluator_failures": [],
    }
    return {**case, **more}


def pydantic_report(
    folder: Path, *cases: dict[str, Any], failures: tuple[dict[str, Any], ...] = ()
) -> Path:
    """A report of pydantic-evals, and its data set as YAML."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset.yaml").write_text(
        "# yaml-language-server: $schema=dataset_schema.json\nname: reasons\ncases:\n- name: q1\n"
        "  inputs: {question: Why?}\n  expected_output: Because.\n  evaluators: []\nevaluators: []\n",
        "utf-8",
    )
    put(
        folder / "report.json",
        {
            "name": "answer_why",
            "cases": list(cases or (pydantic_case("q1"),)),
            "failures": list(failures),
            "analyses": [],
            "report_evaluator_failures": [],
            "experiment_metadata": None,
            "trace_id": "0af7651916cd43dd8448eb211c80319c",
            "span_id": "b7ad6b7169203331",
            "dataset_name": "reasons",
        },
    )
    return folder


# --- promptfoo's tables ---------------------------------------------------------------------------


def promptfoo_csv(folder: Path) -> Path:
    """A table as `promptfoo eval -o results.csv` writes it, with two providers and a label of two
    lines.
    """
    columns = ["Status", "Score", "Named Scores", "Metric: tone", "Grader Reason", "Comment"]
    label = "Answer {{question}}\nShortly."
    header = [
        "Description",
        "question",
        f"[openai:gpt-4o] {label}",
        *columns,
        f"[openai:gpt-4o-mini] {label}",
        *columns,
    ]
    passed = ["PASS", "0.75", '{"tone":0.5}', "0.50", "Fits, mostly", "checked"]
    failed = ["FAIL", "0.00", "", "", "Expected output to contain 4", ""]
    rows = [
        ["sum", "2 + 2?", "Four,\nthat is 4", *passed, "5", *failed],
        ["", "Why?", "'=because", *passed, "", "ERROR", "0.00", "", "", "API error: 503", ""],
    ]
    path = folder / "results.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


# --- HELM -----------------------------------------------------------------------------------------


def helm_stat(name: str, value: float) -> dict[str, Any]:
    metric = {"name": name, "split": "test"}
    return {
        "name": metric,
        "count": 1,
        "sum": value,
        "sum_squared": value,
        "min": value,
        "max": value,
        "mean": value,
    }


def helm(folder: Path, *metrics: dict[str, Any]) -> Path:
    """A run of HELM with three instances: answered, answered under a perturbation, and failed."""
    run = folder / "runs/v1/mmlu:subject=anatomy,method=multiple_choice_joint,model=openai_gpt-4"
    adapter = {
        "method": "multiple_choice_joint",
        "model": "openai/gpt-4",
        "temperature": 0.0,
        "max_tokens": 5,
    }

    def state(
        number: int, perturbation: str | None = None, error: str | None = None
    ) -> dict[str, Any]:
        instance: dict[str, Any] = {
            "input": {"text": f"Where is bone {number}?"},
            "references": [
                {"output": {"text": "arm"}, "tags": []},
                {"output": {"text": "leg"}, "tags": ["correct"]},
            ],
            "split": "test",
            "id": f"id{number}",
        }
        if perturbation is not None:
            instance["perturbation"] = {"name": perturbation, "robustness": True}
        result: dict[str, Any] = {
            "success": True,
            "embedding": [],
            "cached": True,
            "request_time": 0.5,
        }
        completion = {
            "text": " B",
            "logprob": -0.1,
            "tokens": [],
            "finish_reason": {"reason": "stop"},
        }
        result |= {"completions": [completion], "request_datetime": 1700000000}
        if error is not None:
            result |= {"success": False, "completions": [], "error": error}
        return {
            "instance": instance,
            "train_trial_index": 0,
            "request": {
                "model": "openai/gpt-4",
                "prompt": f"Question: Where is bone {number}?\nAnswer:",
            },
            "result": result,
            "num_train_instances": 5,
            "prompt_truncated": False,
            "num_conditioning_tokens": 0,
        }

    def row(number: int, *stats: dict[str, Any], perturbation: str | None = None) -> dict[str, Any]:
        named = (
            {}
            if perturbation is None
            else {"perturbation": {"name": perturbation, "robustness": True}}
        )
        return {"instance_id": f"id{number}", **named, "train_trial_index": 0, "stats": list(stats)}

    states = [state(1), state(1, perturbation="dialect"), state(2, error="rate limit")]
    put(run / "scenario_state.json", {"adapter_spec": adapter, "request_states": states})
    put(
        run / "per_instance_stats.json",
        [
            row(1, helm_stat("exact_match", 1.0), helm_stat("num_prompt_tokens", 40.0), *metrics),
            row(1, helm_stat("num_completion_tokens", 2.0), helm_stat("logprob", -0.1)),
            row(1, helm_stat("exact_match", 0.0), perturbation="dialect"),
        ],
    )
    put(
        run / "run_spec.json",
        {
            "name": run.name,
            "scenario_spec": {"class_name": "MMLUScenario", "args": {"subject": "anatomy"}},
            "adapter_spec": adapter,
            "metric_specs": [
                {"class_name": "BasicGenerationMetric", "args": {"names": ["exact_match"]}}
            ],
            "data_augmenter_spec": {"perturbation_specs": []},
            "groups": ["mmlu"],
        },
    )
    put(run / "stats.json", [helm_stat("exact_match", 0.5)])
    return folder


# --- OpenCompass ----------------------------------------------------------------------------------


def opencompass(folder: Path, details: Any = None, *, rows: int = 2) -> Path:
    """An evaluation of OpenCompass: predictions of one model for one data set, and their
    results.
    """
    work = folder / "outputs/20260301_100000"
    predictions = {
        str(index): {
            "origin_prompt": [{"role": "HUMAN", "prompt": f"What is {index} + 1?"}],
            "prediction": f"It is {index + 1}.",
            "gold": str(index + 1),
        }
        for index in range(rows)
    }
    if details is None:
        details = {"type": "GEN"} | {
            str(index): {"pred": str(index + 1), "answer": str(index + 1), "correct": index == 0}
            for index in range(rows)
        }
    put(work / "predictions/qwen2.5-7b-instruct/sums.json", predictions)
    put(work / "results/qwen2.5-7b-instruct/sums.json", {"accuracy": 50.0, "details": details})
    (work / "summary").mkdir()
    (work / "summary/summary.txt").write_text("dataset,version,metric\n", "utf-8")
    return folder


# --- LightEval ------------------------------------------------------------------------------------


def lighteval(folder: Path, *rows: dict[str, Any], with_results: bool = True) -> Path:
    """Details of one task as Parquet, and the results that name the model."""
    import pyarrow
    import pyarrow.parquet

    stamp = "2026-03-01T10-00-00.123456"
    details = folder / f"details/meta-llama/Llama-3.1-8B/{stamp}"
    details.mkdir(parents=True)
    table = pyarrow.Table.from_pylist(list(rows or (lighteval_row(0), lighteval_row(1, text="13"))))
    pyarrow.parquet.write_table(table, details / f"details_lighteval|gsm8k|0_{stamp}.parquet")
    if with_results:
        put(
            folder / f"results/meta-llama/Llama-3.1-8B/results_{stamp}.json",
            {
                "config_general": {
                    "lighteval_sha": "abc",
                    "max_samples": 2,
                    "start_time": 1234.5,
                    "model_name": "meta-llama/Llama-3.1-8B-Instruct",
                    "model_config": {"generation_parameters": {"temperature": 0.5, "seed": 42}},
                },
                "results": {"lighteval|gsm8k|0": {"extractive_match": 0.5}},
                "versions": {},
                "config_tasks": {},
                "summary_tasks": {},
                "summary_general": {},
            },
        )
    return folder


def lighteval_row(number: int, *, text: str | None = "12", **metrics: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "text": [] if text is None else [text],
        "input_tokens": [1, 2, 3],
        "output_tokens": [[4, 5]],
    }
    return {
        "doc": {
            "query": f"How many eggs are {number} dozen?",
            "choices": [" 12", " 24"],
            "gold_index": [0],
            "instruction": "Answer shortly.\n",
            "id": str(number),
            "task_name": "lighteval|gsm8k|0",
        },
        "model_response": {**answer, "logprobs": [-0.5, -0.25] if text is None else []},
        "metric": metrics or {"extractive_match": 1.0 if text == "12" else 0.0},
    }


# --- Braintrust -----------------------------------------------------------------------------------


def braintrust_case(number: int, **more: Any) -> dict[str, Any]:
    """The root span of a case."""
    case: dict[str, Any] = {
        "id": f"row{number}",
        "_xact_id": "1000192656880881099",
        "created": "2026-03-01T10:00:00.000Z",
        "project_id": "p1",
        "experiment_id": "exp1",
        "input": f"What is {number} + 1?",
        "output": str(number + 1),
        "expected": str(number + 1),
        "error": None,
        "scores": {"ExactMatch": 1.0, "Tone": 0.5},
        "metadata": {"level": 1},
        "tags": None,
        "metrics": {"start": 1772359200.0, "end": 1772359202.5},
        "span_id": f"s{number}",
        "span_parents": None,
        "root_span_id": f"s{number}",
        "span_attributes": {"name": "eval", "type": "eval"},
        "is_root": True,
    }
    return {**case, **more}


def braintrust_span(number: int, name: str, kind: str, parent: str, **more: Any) -> dict[str, Any]:
    """A span inside of a case."""
    place = {
        "span_id": f"s{number}{name}",
        "span_parents": [parent],
        "root_span_id": f"s{number}",
        "is_root": False,
    }
    span = {
        "id": f"row{number}{name}",
        "experiment_id": "exp1",
        "input": None,
        "output": None,
        "scores": None,
    }
    return {**span, **place, "span_attributes": {"name": name, "type": kind}, "metrics": {}, **more}


def braintrust(folder: Path) -> Path:
    """All spans of an experiment with one case: a task with a call of a model, a rule, and a scorer
    that asks a model.
    """
    spans = [
        braintrust_case(1),
        braintrust_span(1, "task", "task", "s1"),
        braintrust_span(
            1, "call", "llm", "s1task", metrics={"prompt_tokens": 11, "completion_tokens": 3}
        ),
        braintrust_span(1, "ExactMatch", "score", "s1", scores={"ExactMatch": 1.0}),
        braintrust_span(
            1, "Tone", "score", "s1", scores={"Tone": 0.5}, metadata={"rationale": "Rather curt."}
        ),
        braintrust_span(
            1, "judge", "llm", "s1Tone", metrics={"prompt_tokens": 90, "completion_tokens": 9}
        ),
    ]
    return put_lines(folder / "experiment.jsonl", spans)
