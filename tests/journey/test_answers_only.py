"""A file of requests without a judge is answered, and graded later by a model or by people."""

from __future__ import annotations

import json
from pathlib import Path

from tests.journey.conftest import Command
from tests.support.model_server import Call, ModelServer


def requests_file(folder: Path, n: int = 3) -> Path:
    path = folder / "batch_5k.jsonl"
    body = {"model": "any", "messages": [{"role": "user", "content": "What is six times seven?"}]}
    request = {"method": "POST", "url": "/v1/chat/completions", "body": body}
    path.write_text(
        "".join(json.dumps({"custom_id": f"q{i}", **request}) + "\n" for i in range(n)), "utf-8"
    )
    return path


def test_answers_without_a_judge_wait_for_nobody_and_count_nowhere(
    assay: Command, server: ModelServer, project: Path
) -> None:
    requests_file(project)
    ran = assay("run", "batch_5k.jsonl", "--candidate", "openai/small")
    assert ran.code == 0, ran.err
    assert len(server.calls) == 3
    assert "3 trials not graded: `assay regrade" in ran.out
    assert assay("review", "list", "--json").document["assessments"] == []
    (small,) = assay("stats", "--json").document["candidates"]
    assert (small["mean"], small["candidate"]) == (None, "openai/small")


def test_answers_are_graded_later_by_a_model_or_by_people(
    assay: Command, server: ModelServer, project: Path
) -> None:
    requests_file(project)
    run = assay("run", "batch_5k.jsonl", "--candidate", "openai/small", "--json").document["run_id"]
    refused = assay("regrade", run)
    assert refused.code == 2
    assert "has no judge" in refused.err
    by_hand = assay("regrade", run, "--judge", "human", "--json").document
    assert by_hand["trials"]["done"] == 3
    waiting = assay("review", "list", "--run", by_hand["run_id"], "--json").document["assessments"]
    assert len(waiting) == 3
    assert len(server.calls) == 3  # nobody was asked again
    by_model = assay("regrade", run, "--judge", "openai/judge", "--json").document
    assert by_model["trials"]["total"] == 3
    asked: tuple[Call, ...] = tuple(server.calls[3:])
    assert {call.body["model"] for call in asked} == {"judge"}
