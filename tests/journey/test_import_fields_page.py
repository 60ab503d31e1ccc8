"""Import options of a run decide how its answers are compared side by side."""

from __future__ import annotations

import json
from pathlib import Path

from fastapi.testclient import TestClient

from assay.app.imports.importer import import_paths
from assay.app.imports.options import ImportOptions
from assay.app.workspace import Workspace
from assay.web.server import create_app


def output(custom_id: str, said: str, run: str) -> str:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": said},
        "finish_reason": "stop",
    }
    body = {
        "id": f"{run}-{custom_id}",
        "object": "chat.completion",
        "model": "m",
        "choices": [choice],
    }
    return json.dumps(
        {
            "id": f"r-{custom_id}",
            "custom_id": custom_id,
            "response": {"status_code": 200, "body": body},
            "error": None,
        }
    )


def test_described_fields_decide_agreement_on_later_visits(tmp_path: Path) -> None:
    for name, verdicts in (("one", ("yes", "no")), ("two", ("yes", "yes"))):
        (tmp_path / name).mkdir()
        lines = [
            output(f"c{n}", f'{name} thinks so: {{"hire": "{verdict}"}}', name)
            for n, verdict in enumerate(verdicts)
        ]
        (tmp_path / name / "output.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    fields = tmp_path / "fields.yaml"
    fields.write_text(
        "fields: {hire: {path: $.hire, labels: [yes, no]}}\n".replace("yes, no", '"yes", "no"'),
        "utf-8",
    )
    workspace = Workspace.open(tmp_path, environment={})
    for name in ("one", "two"):
        import_paths(
            workspace,
            [tmp_path / name],
            ImportOptions(candidate=name, fields=fields, dataset="people"),
        )
    client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
    offered = client.get("/compare.json").json()["runs"]
    columns = [one["column"] for run in reversed(offered) for one in run["candidates"]]
    assert len(columns) == 2
    document = client.get("/compare.json", params={"col": columns}).json()
    assert [
        (row["state"], [one["value"] for one in row["answers"]]) for row in document["rows"]
    ] == [("agree", ["yes", "yes"]), ("disagree", ["no", "yes"])]
    workspace.close()
