"""Flat tasks with `model_responses`: what they hold is kept as it is, and what cannot be read is
reported.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.read_files import read_files

ROW = {
    "task_id": 7,
    "prompt": "Find the next number.",
    "model_responses": [{"model_id": "m1", "response_text": "54"}],
}


def flat_file(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "flat.json"
    path.write_text(json.dumps(rows), "utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_responses": ["54"]}, "holds a response without a model or without text."),
        ({"model_responses": {"m1": "54"}}, "has `model_responses` that is not a list."),
        ({"human_evaluations": ["good"]}, "holds an evaluation without a model."),
        ({"human_evaluations": {"m1": "good"}}, "has `human_evaluations` that is not a list."),
        ({"prompt": "  "}, "has no prompt."),
        ({"prompt": ["Find it."]}, "has no prompt."),
        ({"prompt": None, "metadata": {"system_prompt": "Answer exactly."}}, "has no prompt."),
    ],
)
def test_flat_task_with_an_unreadable_part_is_reported(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    records = read_files(flat_file(tmp_path, {**ROW, **change}, {**ROW, "task_id": 8}))
    assert [skipped.why for skipped in records.skipped] == [reason]
    assert "8" in {task.id for task in records.tasks}


def test_metadata_of_a_flat_task_keeps_its_values(tmp_path: Path) -> None:
    metadata = {"level": 3, "Subject Area": {"name": "Algebra"}, "hard": True, "source": None}
    system = {"system_prompt": "Answer exactly."}
    (task,) = read_files(flat_file(tmp_path, {**ROW, "metadata": {**metadata, **system}})).tasks
    assert task.metadata == metadata
    assert [message.role for message in task.prompt] == ["system", "user"]


def test_flat_task_may_name_its_id_as_nested_ones_do(tmp_path: Path) -> None:
    row = {**ROW, "taskId": "t-1"}
    del row["task_id"]
    records = read_files(flat_file(tmp_path, row))
    assert ([task.id for task in records.tasks], records.skipped) == (["t-1"], [])
