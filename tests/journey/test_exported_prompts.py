"""Exports for other evaluation programs hold the messages that each candidate was sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.app.review.item_view import Showcase
from assay.app.workspace import Workspace
from assay.domain.selection import Selection
from tests.journey.conftest import Command
from tests.journey.test_conversations import counting, write as write_conversation
from tests.journey.test_prompt_candidates import answers, write as write_prompts
from tests.support.model_server import ModelServer

RED_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def logs_of(assay: Command, project: Path, *filters: str) -> dict[str, list[dict[str, Any]]]:
    """Export logs of Inspect and return their samples by candidate."""
    (project / "logs").mkdir()
    exported = assay("export", "inspect", "--output", "logs", *filters)
    assert exported.code == 0, exported.err
    logs = [json.loads(path.read_text("utf-8")) for path in sorted((project / "logs").iterdir())]
    return {log["eval"]["model"]: log["samples"] for log in logs}


def samples_of(assay: Command, project: Path) -> list[dict[str, Any]]:
    return [sample for samples in logs_of(assay, project).values() for sample in samples]


def rows_of(assay: Command, project: Path, *filters: str) -> list[dict[str, Any]]:
    assert assay("export", "hf_jsonl", "--output", "rows.jsonl", *filters).code == 0
    return [json.loads(line) for line in (project / "rows.jsonl").read_text("utf-8").splitlines()]


def texts(messages: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(message["content"] for message in messages)


def test_exports_hold_the_prompts_that_were_sent(
    assay: Command, server: ModelServer, project: Path
) -> None:
    answers(server)
    assert assay("run", write_prompts(project)).code == 0
    sent = {tuple(message["content"] for message in call.body["messages"]) for call in server.calls}
    samples = samples_of(assay, project)
    assert {texts(sample["input"]) for sample in samples} == sent
    assert len(sent) == 6
    assert all(
        texts(sample["messages"]) == (*texts(sample["input"]), sample["output"]["completion"])
        for sample in samples
    )
    rows = rows_of(assay, project)
    assert {row["prompt"] for row in rows} == {"\n\n".join(messages) for messages in sent}
    assert {row["prompt"] for row in rows if row["candidate"] == "terse"} >= {
        "Be terse.\n\nOnly the number: One and one?"
    }


def test_exports_name_renamed_candidates_as_statistics_do(
    assay: Command, server: ModelServer, project: Path
) -> None:
    answers(server)
    assert assay("run", write_prompts(project)).code == 0
    assert assay("candidates", "rename", "terse", "short").code == 0
    logs = logs_of(assay, project)
    assert set(logs) == {"short", "long"}
    assert ("Be terse.", "Only the number: One and one?") in {
        texts(sample["input"]) for sample in logs["short"]
    }
    assert {sample["output"]["model"] for sample in logs["short"]} == {"openai/small"}
    assert {row["candidate"] for row in rows_of(assay, project)} == {"short", "long"}


def test_models_of_one_name_are_exported_apart(
    assay: Command, server: ModelServer, project: Path
) -> None:
    answers(server)
    assert assay("run", write_prompts(project)).code == 0
    assert assay("run", write_prompts(project, long="Answer: {{question}}")).code == 0
    both = ("--all-runs", "--pool-anyway")
    in_statistics = {
        row["candidate"] for row in assay("stats", "--json", *both).document["candidates"]
    }
    assert len(in_statistics) == 3
    assert set(logs_of(assay, project, *both)) == in_statistics
    assert {row["candidate"] for row in rows_of(assay, project, *both)} == in_statistics


def test_a_renamed_candidate_keeps_its_prompt_in_the_review(
    assay: Command, server: ModelServer, project: Path
) -> None:
    answers(server)
    assert assay("run", write_prompts(project), "--limit", "1").code == 0
    assert assay("candidates", "rename", "terse", "short").code == 0
    with Workspace.open(project, environment={}) as workspace:
        items = [
            Showcase(workspace.archive, workspace.journal).item(detail)
            for detail, _ in workspace.archive.exports.assessments(Selection())
        ]
    assert {pane.sent for item in items for pane in item.panes} == {
        (("system", "Be terse."), ("user", "Only the number: One and one?")),
        (("user", "Think first. One and one?"),),
    }


def test_a_log_holds_a_conversation_message_by_message(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = counting
    assert assay("run", write_conversation(project)).code == 0
    (sample,) = samples_of(assay, project)
    assert [(message["role"], message["content"]) for message in sample["messages"]] == [
        ("user", "One and one?"),
        ("assistant", "1"),
        ("user", "And one more?"),
        ("assistant", "3"),
    ]
    assert (texts(sample["input"]), sample["output"]["completion"]) == (("One and one?",), "3")


def test_a_log_holds_the_pictures_of_a_prompt(
    assay: Command, server: ModelServer, project: Path
) -> None:
    picture = "data:image/png;base64," + RED_DOT
    path = project / "see.yaml"
    parts = f"[{{type: text, text: Which colour?}}, {{type: image_url, url: '{picture}'}}]"
    path.write_text(
        "name: see\nscore: similarity\nsystem_prompt: One word.\ncandidates: [{name: eye, model: openai/small}]\n"
        f"tasks: [{{id: dot, prompt: [{{role: user, content: {parts}}}], expected: red}}]\n",
        "utf-8",
    )
    run = assay("run", path)
    assert run.code == 0, run.err
    (sample,) = samples_of(assay, project)
    assert sample["input"] == [
        {"role": "system", "content": "One word."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Which colour?"},
                {"type": "image", "image": picture},
            ],
        },
    ]


def test_an_exported_log_imported_again_adds_nothing(
    assay: Command, server: ModelServer, project: Path
) -> None:
    answers(server)
    assert assay("run", write_prompts(project)).code == 0
    before = assay("stats", "--json").document["candidates"]
    logs_of(assay, project)
    again = assay("import", "logs", "--json")
    assert again.code == 0, again.err
    assert sum(again.document["imported"].values()) == 0
    assert assay("stats", "--json").document["candidates"] == before
    elsewhere = assay(
        "import", "logs", "--json", "--store", f"sqlite:///{project}/other.db"
    ).document
    assert elsewhere["imported"] == {"runs": 2, "tasks": 6, "responses": 6, "assessments": 6}
