"""Settings of a single task: parameters, a system prompt, and images in its prompt."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.support.model_server import Call, ModelServer


def write(folder: Path, tasks: list[dict[str, Any]], **changed: Any) -> Path:
    document = {
        "name": "own",
        "system_prompt": "Be brief.",
        "parameters": {"temperature": 0.5, "max_tokens": 100},
        "candidates": [
            {"name": "one", "model": "openai/one", "parameters": {"top_p": 0.9, "temperature": 0.6}}
        ],
        "tasks": tasks,
        **changed,
    }
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def png(folder: Path, name: str = "square.png") -> bytes:
    """A picture of one red pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    data = (
        b"\x89PNG\r\n\x1a\n"
        + header
        + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
        + chunk(b"IEND", b"")
    )
    (folder / name).write_bytes(data)
    return data


def exact(**own: Any) -> dict[str, Any]:
    return {"id": "t", "prompt": "Say 42.", "expected": "42", "score": "exact", **own}


def test_a_task_s_own_parameters_and_system_prompt_come_before_all_others(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: "42"
    tasks = [
        exact(
            id="own",
            parameters={"temperature": 1.5, "max_tokens": 7},
            system_prompt="Shout.",
            context="Rule.",
        ),
        exact(id="none", system_prompt=""),
        exact(id="usual"),
    ]
    assert assay("run", write(project, tasks)).code == 0
    asked = {
        call.body["max_tokens"]
        if call.body["max_tokens"] == 7
        else call.body["messages"][0]["role"]: call.body
        for call in server.calls
    }
    own, none, usual = asked[7], asked["user"], asked["system"]
    assert (own["temperature"], own["top_p"], own["messages"][0]["content"]) == (
        1.5,
        0.9,
        "Shout.\n\nRule.",
    )
    assert (usual["temperature"], usual["max_tokens"], usual["messages"][0]["content"]) == (
        0.6,
        100,
        "Be brief.",
    )
    assert none["messages"] == [{"role": "user", "content": "Say 42."}]


def test_benchmark_mode_holds_for_a_task_s_own_parameters_too(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: "42"
    path = write(project, [exact(parameters={"temperature": 1.5, "max_tokens": 7})])
    assert assay("run", path, "--benchmark").code == 0
    assert (server.calls[0].body["temperature"], server.calls[0].body["max_tokens"]) == (0.0, 7)


def test_a_task_that_asks_otherwise_is_another_task(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: "42"
    assay("run", write(project, [exact()]))
    assay("run", write(project, [exact(system_prompt="Shout.")]))
    assert "task_changed" in {
        one["code"]
        for one in assay("stats", "--all-runs", "--pool-anyway", "--json").document["warnings"]
    }


def test_pictures_of_a_prompt_reach_candidates_and_the_judge(
    assay: Command, server: ModelServer, project: Path
) -> None:
    data = png(project)
    tasks = [
        {
            "id": "see",
            "prompt": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What colour?"},
                        {"type": "image", "file": "square.png"},
                    ],
                }
            ],
        }
    ]

    def answer(call: Call) -> str:
        if call.schema is None:
            return "Red."
        grade = {"score": 9, "reason": "It is red.", "evidence": []}
        ((label, result),) = call.schema["properties"]["candidates"]["properties"].items()
        return json.dumps(
            {"candidates": {label: dict.fromkeys(result["properties"], grade)}, "report": ""}
        )

    server.answer = answer
    path = write(project, tasks, judge={"model": "openai/judge", "mode": "each"})
    assert assay("run", path, "--json").code == 0
    assert len(server.calls) == 2
    picture = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    for call in server.calls:
        (image,) = call.images
        assert image["image_url"]["url"] == picture
        assert "What colour?" in call.prompt
    with Workspace.open(project, environment={}) as workspace:
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        assert client.get("/api/assessments/a1").json()["images"] is None, (
            "only with the whole item, they may be large"
        )
        assert client.get("/api/assessments/a1?whole=1").json()["images"] == [[picture, ""]]


def test_candidate_that_refuses_images_fails_and_is_not_asked_again(
    assay: Command, server: ModelServer, project: Path
) -> None:
    png(project)
    server.no_images = "this model does not support image input"
    content = [{"type": "text", "text": "What colour?"}, {"type": "image", "file": "square.png"}]
    path = write(project, [exact(prompt=[{"role": "user", "content": content}])])
    ran = assay("run", path, "--json")
    assert ran.code == 1
    assert "does not support image input" in ran.document["failures"][0]["detail"]
    assert all(call.images for call in server.calls)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"type": "image", "file": "none.png"}, "cannot be read"),
        ({"type": "image", "file": "own.yaml"}, "is not a PNG, JPEG, GIF or WebP"),
        ({"type": "image", "file": "../../etc/passwd"}, "lies outside"),
        ({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}, "not fetched"),
        ({"type": "audio"}, "expected text or image"),
    ],
)
def test_a_wrong_picture_is_named_with_its_place(
    assay: Command, project: Path, part: dict[str, Any], message: str
) -> None:
    path = write(project, [exact(prompt=[{"role": "user", "content": [part]}])])
    output = assay("validate", path)
    assert output.code == 2
    assert message in output.err + output.out
    assert "content[0]" in output.err + output.out


def test_a_task_may_not_set_the_seed(assay: Command, project: Path) -> None:
    output = assay("validate", write(project, [exact(parameters={"seed": 3})]))
    assert output.code == 2
    assert "are derived from the run's" in output.err + output.out
