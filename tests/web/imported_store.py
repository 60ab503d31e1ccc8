"""A store with answers of another harness: a batch of three models over the same requests, one of
which left some out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support import forked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MODELS = ("google/gemma-2-9b-it", "Qwen/Qwen3-4B", "allenai/OLMo-2-1B")
TASKS = tuple(f"r{number:02}" for number in range(6))


def request(task: str, model: str, question: str | None = None) -> dict[str, Any]:
    return {
        "custom_id": task,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": model,
            "temperature": 0,
            "max_tokens": 300,
            "messages": [
                {"role": "user", "content": question or f"Is **Person {task}** a good hire?"}
            ],
        },
    }


def answer(task: str, text: str, model: str) -> dict[str, Any]:
    body = {
        "object": "chat.completion",
        "created": 1730126000,
        "model": model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    return {
        "id": f"v-{task}",
        "custom_id": task,
        "response": {"status_code": 200, "body": body},
        "error": None,
    }


def lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_exports(
    folder: Path,
    *,
    models: Sequence[str] = MODELS,
    given: Mapping[tuple[str, str], str] | None = None,
    lacking: int = 2,
) -> list[Path]:
    """Requests and a file of answers for each model; the first model has no answer to the last
    `lacking` requests.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "input_0.jsonl").write_text(
        lines([request(task, models[0]) for task in TASKS]), "utf-8"
    )
    paths = [folder / "input_0.jsonl"]
    for place, model in enumerate(models):
        tasks = TASKS[: len(TASKS) - lacking] if place == 0 else TASKS
        texts = {
            task: (given or {}).get((model, task)) or f"{task}: yes, says number {place}."
            for task in tasks
        }
        path = folder / f"output_{place}.jsonl"
        path.write_text(lines([answer(task, text, model) for task, text in texts.items()]), "utf-8")
        paths.append(path)
    return paths


def imported_store(folder: Path, **what: Any) -> Path:
    """A store under `folder` into which the exports were imported, a run a model."""
    write_exports(folder / "exports", **what)
    done = forked.run("import", "exports", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder
