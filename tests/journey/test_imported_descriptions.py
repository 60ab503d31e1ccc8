"""Descriptions of imported runs say what the files hold, and nothing that nobody knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.conftest import Command


def batch_of(folder: Path, model: str, *, log: bool) -> None:
    """Write the output file of a batch run, and its log."""
    lines = []
    for n in range(4):
        message = {"role": "assistant", "content": f"{model} answers {n}"}
        body = {
            "id": "c",
            "created": 1730126400,
            "model": f"org/{model}",
            "choices": [{"index": 0, "message": message}],
        }
        response = {"status_code": 200, "request_id": f"{model}{n}", "body": body}
        lines.append(
            json.dumps(
                {"id": f"{model}-{n}", "custom_id": f"req-{n}", "response": response, "error": None}
            )
        )
    (folder / f"{model}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    if log:
        (folder / f"{model}.log").write_text(
            "INFO 10-28 14:33:00 api_server.py:495] vLLM API server version 0.6.3\n"
            f"python -m vllm.entrypoints.openai.run_batch -i batch_5k.jsonl -o {model}.jsonl --model org/{model}\n"
            "Running batch: 100% Completed | 4/4 [00:08<00:00,  0.50req/s]\n",
            "utf-8",
        )


def imported(
    assay: Command, project: Path, model: str, *, log: bool, more: tuple[str, ...] = ()
) -> Any:
    batch_of(project, model, log=log)
    request = {"method": "POST", "url": "/v1/chat/completions"}
    bodies = [
        {"model": "m", "messages": [{"role": "user", "content": f"Question {n}?"}]}
        for n in range(4)
    ]
    lines = (
        json.dumps({"custom_id": f"req-{n}", **request, "body": body})
        for n, body in enumerate(bodies)
    )
    (project / "batch_5k.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    logs = ("--log", f"{model}.log") if log else ()
    result = assay("import", f"{model}.jsonl", "--input", "batch_5k.jsonl", *logs, *more)
    assert result.code == 0, result.err
    (meta,) = (project / "results" / f"org--{model}").glob("*.meta.json")
    return json.loads(meta.read_text("utf-8"))


def test_a_log_gives_an_imported_run_its_command_time_and_server(
    assay: Command, project: Path
) -> None:
    meta = imported(assay, project, "a", log=True)
    assert meta["dataset"]["name"] == meta["files"]["input"] == "batch_5k.jsonl"
    execution = meta["execution"]
    assert execution["command"].startswith(
        "python -m vllm.entrypoints.openai.run_batch -i batch_5k.jsonl"
    )
    assert (execution["duration_seconds"], execution["req_per_sec"]) == (8, 0.5)
    assert execution["server_version"] == "0.6.3"
    assert not {"assay_version", "machine", "git", "seed"} & set(execution)


def test_what_no_file_says_is_left_out_and_a_dataset_is_listed_once(
    assay: Command, project: Path
) -> None:
    imported(assay, project, "a", log=True)
    execution = imported(assay, project, "b", log=False)["execution"]
    assert not {"command", "req_per_sec", "server_version"} & set(execution)
    registry = json.loads((project / "results" / "metadata.json").read_text("utf-8"))
    assert {run["dataset"] for run in registry["runs"]} == {"batch_5k.jsonl"}
    assert [*registry["datasets"]] == ["batch_5k.jsonl"]
    assert registry["datasets"]["batch_5k.jsonl"]["count"] == 4


def test_compare_page_shows_requests_per_second_and_imported_criteria(
    assay: Command, project: Path
) -> None:
    (project / "criteria.txt").write_text("An answer names its source.", "utf-8")
    run = imported(assay, project, "a", log=True, more=("--criteria", "criteria.txt"))["assay_run"]
    with (
        Workspace.open(project) as opened,
        TestClient(create_app(opened), base_url="http://127.0.0.1") as client,
    ):
        offered = client.get("/compare").text
        assert "Requests per second" in offered
        assert '<td class="n">0.50</td>' in offered
        shown = client.get("/compare", params={"col": f"{run}~org/a"}).text
        assert "Criteria in the imported file" in shown
        assert "An answer names its source." in shown
