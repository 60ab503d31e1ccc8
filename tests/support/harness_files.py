"""Results of other harnesses, written for tests the way those harnesses' own code writes them.

Every function writes one small evaluation into a folder and answers the path to import.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any


def put(path: Path, value: Any) -> Path:
    """A JSON document; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), "utf-8")
    return path


def put_lines(path: Path, rows: list[Any]) -> Path:
    """JSON Lines; a row that is text stands as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), "utf-8"
    )
    return path


# --- Inspect --------------------------------------------------------------------------------------


def inspect_sample(number: int, epoch: int, value: Any, **more: Any) -> dict[str, Any]:
    """A sample whose answer is `four` and whose scorer `match` gave `value`."""
    sample: dict[str, Any] = {
        "id": number,
        "epoch": epoch,
        "input": f"What is 2 + {number}?",
        "target": str(2 + number),
        "messages": [
            {"role": "user", "content": "What?"},
            {"role": "assistant", "content": "four"},
        ],
        "output": {
            "model": "tiny-2026-01-01",
            "choices": [
                {"message": {"role": "assistant", "content": "four"}, "stop_reason": "stop"}
            ],
            "usage": {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14},
            "time": 0.5,
        },
        "scores": {"match": {"value": value, "answer": "four", "explanation": "four"}},
        "metadata": {"level": number},
        "attachments": {},
    }
    return {**sample, **more}


def inspect_log(*samples: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A finished log of these samples."""
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "run_id": "r1",
            "created": "2026-03-01T10:00:00+01:00",
            "task": "sums",
            "task_id": "t1",
            "dataset": {"name": "sums", "samples": len(samples)},
            "model": "mockllm/tiny",
            "model_args": {"api_key": "sk-never-to-be-kept"},
            "config": {"epochs": 2},
            "scorers": [{"name": "match", "options": {}}],
            "packages": {"inspect_ai": "0.3.154"},
        },
        "plan": {"name": "plan", "steps": []},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": []},
        "stats": {
            "started_at": "2026-03-01T10:00:00+01:00",
            "completed_at": "2026-03-01T10:01:00+01:00",
        },
        "samples": list(samples),
        **more,
    }


def inspect_archive(
    path: Path, log: dict[str, Any], compression: int = zipfile.ZIP_DEFLATED
) -> Path:
    """The same log as an `.eval` file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", compression) as archive:
        start = {key: log[key] for key in ("version", "eval", "plan")}
        archive.writestr("_journal/start.json", json.dumps(start))
        for sample in log["samples"]:
            archive.writestr(
                f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample)
            )
        if log["status"] != "started":
            header = {key: value for key, value in log.items() if key != "samples"}
            archive.writestr("header.json", json.dumps(header))
    return path


def inspect(folder: Path) -> Path:
    """Two tasks in two epochs, one of the four wrong; one archive."""
    samples = [
        inspect_sample(n, epoch, "I" if (n, epoch) == (2, 2) else "C")
        for n in (1, 2)
        for epoch in (1, 2)
    ]
    return inspect_archive(folder / "2026-03-01_sums.eval", inspect_log(*samples))


# --- lm-evaluation-harness ------------------------------------------------------------------------


def lm_eval_row(number: int, **more: Any) -> dict[str, Any]:
    """A generated answer, read by the filter `strict-match`."""
    return {
        "doc_id": number,
        "doc": {"question": f"{number} + 2?"},
        "target": str(number + 2),
        "arguments": {"gen_args_0": {"arg_0": f"Q: {number} + 2?\nA:", "arg_1": {"until": ["\n"]}}},
        "resps": [[f"It is {number + 2}."]],
        "filtered_resps": [str(number + 2)],
        "filter": "strict-match",
        "metrics": ["exact_match"],
        "doc_hash": "d",
        "prompt_hash": "p",
        "target_hash": "t",
        "exact_match": 1.0,
        **more,
    }


def lm_eval(folder: Path) -> Path:
    """Two documents under two filters, with the results beside them."""
    home = folder / "org__tiny"
    stamp = "2026-03-01T10-00-00.123456"
    put(
        home / f"results_{stamp}.json",
        {
            "results": {"sums": {"alias": "sums", "exact_match,strict-match": 0.5}},
            "configs": {"sums": {"task": "sums", "output_type": "generate_until"}},
            "versions": {"sums": 1.0},
            "config": {"model": "hf", "model_args": "pretrained=org/tiny,dtype=float32"},
            "date": 1772355600.5,
            "model_name": "org/tiny",
            "model_source": "hf",
        },
    )
    rows = [lm_eval_row(number) for number in (0, 1)]
    rows += [
        lm_eval_row(number, filter="flexible-extract", exact_match=float(number))
        for number in (0, 1)
    ]
    put_lines(home / f"samples_sums_{stamp}.jsonl", rows)
    return folder


# --- promptfoo ------------------------------------------------------------------------------------


def promptfoo_result(provider: str, city: str, **more: Any) -> dict[str, Any]:
    """A test of one rule and one model-graded assertion, both passed."""
    return {
        "promptIdx": 0,
        "testIdx": 0,
        "testCase": {
            "description": f"capital of {city}",
            "vars": {"city": city},
            "assert": [
                {"type": "contains", "value": city},
                {"type": "llm-rubric", "value": "is polite"},
            ],
        },
        "promptId": "p1",
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": f"Name {city}", "label": "Name {{city}}"},
        "vars": {"city": city},
        "response": {
            "output": f"Well: {city}.",
            "tokenUsage": {"total": 9, "prompt": 5, "completion": 4},
        },
        "success": True,
        "failureReason": 0,
        "score": 1,
        "latencyMs": 250,
        "cost": 0.001,
        "namedScores": {},
        "gradingResult": {
            "pass": True,
            "score": 1,
            "reason": "All assertions passed",
            "componentResults": [
                {
                    "pass": True,
                    "score": 1,
                    "reason": "found",
                    "assertion": {"type": "contains", "value": city},
                },
                {
                    "pass": True,
                    "score": 0.9,
                    "reason": "It says please.",
                    "assertion": {
                        "type": "llm-rubric",
                        "value": "is polite",
                        "provider": "openai:gpt-4.1",
                    },
                },
            ],
        },
        **more,
    }


def promptfoo_document(*results: dict[str, Any], version: int = 3) -> dict[str, Any]:
    """Write the file of `promptfoo eval -o results.json`."""
    return {
        "evalId": "eval-abc-2026-03-01T10:00:00",
        "results": {
            "version": version,
            "timestamp": "2026-03-01T10:00:00.000Z",
            "prompts": [],
            "results": list(results),
            "stats": {"successes": 1, "failures": 0, "errors": 0},
        },
        "config": {"description": "cities"},
        "shareableUrl": None,
    }


def promptfoo(folder: Path) -> Path:
    """Two providers, two tests, the first of them twice."""
    rows = [
        promptfoo_result(provider, city)
        for provider in ("openai:small", "openai:large")
        for city in ("Oslo", "Lima", "Oslo")
    ]
    return put(folder / "results.json", promptfoo_document(*rows))


# --- OpenAI Evals ---------------------------------------------------------------------------------


def openai_log_rows() -> list[Any]:
    """Write the `oaieval` log of a match eval: a hit, a miss and a call that broke."""
    spec = {
        "completion_fns": ["gpt-4o-mini"],
        "eval_name": "sums.dev.v0",
        "base_eval": "sums",
        "split": "dev",
        "run_config": {
            "eval_spec": {"cls": "evals.elsuite.basic.match:Match", "args": {}},
            "seed": 20220722,
        },
        "created_by": "",
        "run_id": "2603011000AAAA",
        "created_at": "2026-03-01 10:00:00.000000",
    }

    def event(number: int, sample: str, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        return {
            "run_id": "2603011000AAAA",
            "event_id": number,
            "sample_id": sample,
            "type": kind,
            "data": data,
            "created_by": "",
            "created_at": "2026-03-01 10:00:01.000000+00:00",
        }

    def asked(sample: str, answer: str) -> dict[str, Any]:
        prompt = [{"role": "system", "content": "Add."}, {"role": "user", "content": sample}]
        return {"prompt": prompt, "sampled": [answer], "model": "gpt-4o-mini-2024-07-18"}

    return [
        {"spec": spec},
        event(0, "sums.dev.0", "sampling", asked("2+2", "4")),
        event(1, "sums.dev.1", "sampling", asked("2+3", "6")),
        event(
            2,
            "sums.dev.0",
            "match",
            {"correct": True, "expected": "4", "picked": "4", "sampled": "4"},
        ),
        event(
            3,
            "sums.dev.1",
            "match",
            {"correct": False, "expected": "5", "picked": None, "sampled": "6"},
        ),
        event(4, "sums.dev.2", "error", {"type": "RateLimitError", "message": "too many requests"}),
        {"final_report": {"accuracy": 0.5}},
    ]


def openai_log(folder: Path) -> Path:
    """A log of the open-source evals."""
    return put_lines(folder / "2603011000AAAA_gpt-4o-mini_sums.jsonl", openai_log_rows())


def openai_item(number: int, passed: bool, **more: Any) -> dict[str, Any]:
    """An output item of the hosted service, graded by a string check and by a model on 1 to 5."""
    return {
        "object": "eval.run.output_item",
        "id": f"outputitem_{number}",
        "created_at": 1772355600 + number,
        "run_id": "evalrun_1",
        "eval_id": "eval_1",
        "status": "pass" if passed else "fail",
        "datasource_item_id": number,
        "datasource_item": {"input": f"headline {number}", "ground_truth": "Markets"},
        "results": [
            {
                "name": "String check-a2486074-d803-4445-b431-ad2262e85d47",
                "type": "string-check-grader",
                "sample": None,
                "passed": passed,
                "score": float(passed),
            },
            {
                "name": "tone",
                "type": "score_model",
                "passed": True,
                "score": 4.0,
                "sample": {
                    "model": "gpt-4.1-2025-04-14",
                    "output": [{"role": "assistant", "content": '{"steps": [], "result": 4.0}'}],
                },
            },
        ],
        "sample": {
            "input": [
                {"role": "developer", "content": "Categorise."},
                {"role": "user", "content": f"headline {number}"},
            ],
            "output": [{"role": "assistant", "content": "Markets" if passed else "Sports"}],
            "finish_reason": "stop",
            "model": "gpt-4o-mini-2024-07-18",
            "usage": {
                "total_tokens": 25,
                "completion_tokens": 2,
                "prompt_tokens": 23,
                "cached_tokens": 0,
            },
            "error": None,
        },
        **more,
    }


def openai_eval() -> dict[str, Any]:
    """The eval object that says what the graders are."""
    return {
        "object": "eval",
        "id": "eval_1",
        "name": "headlines",
        "created_at": 1772355000,
        "data_source_config": {"type": "custom", "schema": {}},
        "testing_criteria": [
            {
                "id": "String check-a2486074-d803-4445-b431-ad2262e85d47",
                "name": "String check",
                "type": "string_check",
                "input": "{{sample.output_text}}",
                "reference": "{{item.ground_truth}}",
                "operation": "eq",
            },
            {
                "id": "tone",
                "name": "tone",
                "type": "score_model",
                "model": "gpt-4.1",
                "range": [1, 5],
                "pass_threshold": 3,
            },
        ],
    }


def openai_run() -> dict[str, Any]:
    """The run object that says who answered."""
    return {
        "object": "eval.run",
        "id": "evalrun_1",
        "eval_id": "eval_1",
        "name": "first try",
        "model": "gpt-4o-mini",
        "status": "completed",
        "created_at": 1772355600,
        "data_source": {"type": "completions"},
    }


def openai_api(folder: Path) -> Path:
    """Items as JSON Lines, the eval and the run in files of their own beside them."""
    put(folder / "eval_1.json", openai_eval())
    put(folder / "evalrun_1.json", openai_run())
    put_lines(folder / "output_items.jsonl", [openai_item(1, True), openai_item(2, False)])
    return folder


# --- AlpacaEval, MT-bench -------------------------------------------------------------------------


def alpaca_annotation(number: int, preference: Any, **more: Any) -> dict[str, Any]:
    """A comparison of `base` with `new`."""
    return {
        "instruction": f"Say {number}.",
        "output_1": f"{number}",
        "generator_1": "base",
        "dataset": "helpful_base",
        "output_2": f"It is {number}.",
        "generator_2": "new",
        "annotator": "alpaca_eval_gpt4_turbo_fn",
        "preference": preference,
        "price_per_example": 0.01,
        "time_per_example": 1.1,
        **more,
    }


def alpaca(folder: Path) -> Path:
    """One clear preference each way and a tie."""
    return put(
        folder / "annotations.json",
        [alpaca_annotation(1, 1.0), alpaca_annotation(2, 2.0), alpaca_annotation(3, 1.5)],
    )


def mt_bench(folder: Path) -> Path:
    """A question of two turns, two models, a single and a pairwise judgment of each turn."""
    home = folder / "mt_bench"
    put_lines(
        home / "question.jsonl",
        [{"question_id": 101, "category": "math", "turns": ["2+2?", "And 2+3?"]}],
    )
    for model, turns in (("alpha", ["4", "5"]), ("beta", ["5", "6"])):
        row = {
            "question_id": 101,
            "answer_id": "x",
            "model_id": model,
            "choices": [{"index": 0, "turns": turns}],
        }
        put_lines(home / f"model_answer/{model}.jsonl", [{**row, "tstamp": 1772355600.5}])
    reference = {
        "question_id": 101,
        "answer_id": "r",
        "model_id": "gpt-4",
        "choices": [{"index": 0, "turns": ["4", "5"]}],
    }
    put_lines(home / "reference_answer/gpt-4.jsonl", [reference])
    singles = [
        {
            "question_id": 101,
            "model": model,
            "judge": ["gpt-4", "single-math-v1"],
            "user_prompt": "…",
            "judgment": f"Rating: [[{score}]]",
            "score": score,
            "turn": turn,
            "tstamp": 1772355700.5,
        }
        for model, scores in (("alpha", (10, 9)), ("beta", (1, -1)))
        for turn, score in enumerate(scores, 1)
    ]
    put_lines(home / "model_judgment/gpt-4_single.jsonl", singles)
    pairs = [
        {
            "question_id": 101,
            "model_1": "alpha",
            "model_2": "beta",
            "g1_winner": "model_1",
            "g2_winner": second,
            "judge": ["gpt-4", "pair-math-v1"],
            "g1_user_prompt": "…",
            "g1_judgment": "[[A]]",
            "g2_user_prompt": "…",
            "g2_judgment": "[[B]]",
            "turn": turn,
            "tstamp": 1772355800.5,
        }
        for turn, second in ((1, "model_1"), (2, "tie"))
    ]
    put_lines(home / "model_judgment/gpt-4_pair.jsonl", pairs)
    return home


# --- SWE-bench, Harbor ----------------------------------------------------------------------------


def swe_bench(folder: Path) -> Path:
    """Four predictions: resolved, not resolved, empty, and one whose evaluation broke; with reports
    of both kinds.
    """
    ids = [f"django__django-{number}" for number in (1, 2, 3, 4)]
    patches = ["diff --git a/x b/x", "diff --git a/y b/y", "", "diff --git a/z b/z"]
    put_lines(
        folder / "predictions.jsonl",
        [
            {"instance_id": name, "model_name_or_path": "org/agent", "model_patch": patch}
            for name, patch in zip(ids, patches, strict=True)
        ],
    )
    put(
        folder / "org__agent.run7.json",
        {
            "total_instances": 5,
            "submitted_instances": 4,
            "completed_instances": 2,
            "resolved_instances": 1,
            "unresolved_instances": 1,
            "empty_patch_instances": 1,
            "error_instances": 1,
            "completed_ids": ids[:2],
            "incomplete_ids": ["django__django-9"],
            "empty_patch_ids": ids[2:3],
            "submitted_ids": ids,
            "resolved_ids": ids[:1],
            "unresolved_ids": ids[1:2],
            "error_ids": ids[3:],
            "schema_version": 2,
        },
    )
    for name, resolved in zip(ids[:2], (True, False), strict=True):
        status = {
            "FAIL_TO_PASS": {
                "success": ["t1"] if resolved else [],
                "failure": [] if resolved else ["t1"],
            },
            "PASS_TO_PASS": {"success": ["t2"], "failure": []},
        }
        report = {
            "patch_is_None": False,
            "patch_exists": True,
            "patch_successfully_applied": True,
            "resolved": resolved,
        }
        put(
            folder / f"logs/run_evaluation/run7/org__agent/{name}/report.json",
            {name: {**report, "tests_status": status}},
        )
    return folder


def harbor_trial(task: str, trial: str, reward: float | None, **more: Any) -> dict[str, Any]:
    """A trial of the agent `terminus-2`."""
    return {
        "id": "0",
        "task_name": task,
        "trial_name": trial,
        "trial_uri": f"file:///jobs/j/{trial}",
        "task_id": {"path": f"tasks/{task}"},
        "source": "terminal-bench",
        "task_checksum": "c",
        "config": {
            "task": {"path": f"tasks/{task}"},
            "agent": {"name": "terminus-2", "model_name": "anthropic/claude-x"},
        },
        "agent_info": {
            "name": "terminus-2",
            "version": "2.0",
            "model_info": {"name": "claude-x", "provider": "anthropic"},
        },
        "agent_result": {
            "n_input_tokens": 100,
            "n_cache_tokens": 10,
            "n_output_tokens": 20,
            "cost_usd": 0.25,
        },
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": None,
        "started_at": "2026-03-01T10:00:00.000000Z",
        "finished_at": "2026-03-01T10:05:00.000000Z",
        "agent_execution": {
            "started_at": "2026-03-01T10:01:00Z",
            "finished_at": "2026-03-01T10:03:00Z",
        },
        **more,
    }


def harbor(folder: Path) -> Path:
    """A job: one task twice (solved, not solved), another whose environment broke."""
    job = folder / "2026-03-01__10-00-00"
    put(
        job / "config.json",
        {"job_name": "j", "jobs_dir": "jobs", "n_attempts": 2, "agents": [{}], "datasets": [{}]},
    )
    put(
        job / "result.json",
        {
            "id": "j",
            "started_at": "2026-03-01T10:00:00Z",
            "finished_at": "2026-03-01T10:20:00Z",
            "n_total_trials": 3,
            "stats": {"n_trials": 3, "n_errors": 1, "evals": {}},
        },
    )
    broke = {
        "exception_type": "EnvironmentStartTimeoutError",
        "exception_message": "the container did not start",
        "exception_traceback": "…",
        "occurred_at": "2026-03-01T10:09:00",
    }
    for trial in (
        harbor_trial("hello-world", "hello-world__aaaaaaa", 1.0),
        harbor_trial("hello-world", "hello-world__bbbbbbb", 0.0, started_at="2026-03-01T10:05:00Z"),
        harbor_trial("fix-git", "fix-git__ccccccc", None, exception_info=broke),
    ):
        home = job / trial["trial_name"]
        put(home / "result.json", trial)
        put(
            home / "config.json",
            {
                "task": {"path": "tasks"},
                "trial_name": trial["trial_name"],
                "trials_dir": "jobs/j",
                "agent": {},
            },
        )
        steps = [
            {"step_id": 1, "source": "user", "message": f"Solve {trial['task_name']}."},
            {"step_id": 2, "source": "agent", "message": "Done.", "tool_calls": []},
        ]
        put(
            home / "agent/trajectory.json",
            {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {}, "steps": steps},
        )
    return job


# --- Terminal-Bench 1 -----------------------------------------------------------------------------


def terminal_bench_trial(
    task: str, number: int, resolved: bool | None, **more: Any
) -> dict[str, Any]:
    """The row of a trial; one without a verdict ended in `parse_error`."""
    return {
        "id": f"{task}-{number}",
        "trial_name": f"{task}.{number}-of-2.r1",
        "task_id": task,
        "instruction": f"Do {task}.",
        "is_resolved": resolved,
        "failure_mode": "parse_error" if resolved is None else "unset",
        "parser_results": None
        if resolved is None
        else {"test_a": "passed", "test_b": "passed" if resolved else "failed"},
        "recording_path": f"r1/{task}/agent.cast",
        "total_input_tokens": 50,
        "total_output_tokens": 20,
        "trial_started_at": "2026-03-01T10:00:00+00:00",
        "trial_ended_at": "2026-03-01T10:05:00+00:00",
        "agent_started_at": "2026-03-01T10:01:00+00:00",
        "agent_ended_at": "2026-03-01T10:03:00+00:00",
        "test_started_at": None,
        "test_ended_at": None,
        **more,
    }


def terminal_bench_job(*rows: dict[str, Any]) -> dict[str, Any]:
    """The results of a job, with the lists that Terminal-Bench derives from its rows."""
    resolved = [row["task_id"] for row in rows if row["is_resolved"]]
    unresolved = [row["task_id"] for row in rows if not row["is_resolved"]]
    return {
        "id": "j",
        "results": list(rows),
        "pass_at_k": {},
        "n_resolved": len(resolved),
        "n_unresolved": len(unresolved),
        "resolved_ids": resolved,
        "unresolved_ids": unresolved,
        "accuracy": len(resolved) / len(rows),
    }


def terminal_bench_set_up(model: str | None = "acme/tiny") -> dict[str, Any]:
    """The `run_metadata.json` of a job."""
    return {
        "run_id": "r1",
        "dataset_name": "core",
        "dataset_version": "0.1",
        "output_path": "runs",
        "agent_name": "terminus",
        "model_name": model,
        "n_concurrent_trials": 4,
        "n_attempts": 2,
        "start_time": "2026-03-01T10:00:00+00:00",
        "end_time": "2026-03-01T10:30:00+00:00",
    }


def terminal_bench(folder: Path) -> Path:
    """A job of two tasks in two trials, one resolved and one without a verdict, with a file for
    each trial.
    """
    rows = [
        terminal_bench_trial("hello", 1, True),
        terminal_bench_trial("hello", 2, False),
        terminal_bench_trial("bye", 1, None),
        terminal_bench_trial("bye", 2, False),
    ]
    put(folder / "r1/results.json", terminal_bench_job(*rows))
    put(folder / "r1/run_metadata.json", terminal_bench_set_up())
    for row in rows:
        put(folder / "r1" / row["task_id"] / row["trial_name"] / "results.json", row)
    return folder
