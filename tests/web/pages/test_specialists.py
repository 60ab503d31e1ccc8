"""The page of specialists: templates, their enrichment, snapshots with their comparison, and mints
that wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.web.specialist_files import NAME, write_snapshot, write_template

from assay.app import people
from assay.app.workspace import Workspace
from assay.domain.people import VisitorRole
from assay.specialists.signatures import SigningKey, make_key
from assay.web.server import create_app

HOME = "http://127.0.0.1"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path, environment={}) as workspace:
        yield workspace


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url=HOME) as client:
        yield client


def page_of(client: TestClient, address: str = "/specialists") -> str:
    answer = client.get(address, headers={"accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return answer.text


def listed(client: TestClient) -> Any:
    answer = client.get("/specialists.json")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_empty_project_says_what_to_type(client: TestClient) -> None:
    html = page_of(client)
    assert "assay init --specialist NAME" in html
    assert "assay mint NAME --batch-id ID" in html
    assert listed(client) == {
        "templates": [],
        "more_templates": 0,
        "snapshots": [],
        "more_snapshots": 0,
        "mints": [],
    }


def test_template_is_shown_with_its_enrichment(client: TestClient, tmp_path: Path) -> None:
    path = write_template(tmp_path)
    (template,) = listed(client)["templates"]
    assert (template["name"], template["version"], template["path"]) == (
        NAME,
        "1.0.0",
        "templates/react-expert.json5",
    )
    assert template["preferred_models"] == ["anthropic/claude-sonnet-4.5", "openai/gpt-4o"]
    assert ["enrichment" in each for each in template["documentation"]] == [True, False]
    html = page_of(client)
    assert "1 of 2 enriched" in html
    assert "by anthropic/claude-haiku" in html
    assert "assay mint templates/react-expert.json5 --batch-id ID" in html
    path.write_text(path.read_text("utf-8").replace("1.0.0", "1.0.1"), "utf-8")
    assert listed(client)["templates"][0]["version"] == "1.0.1", "a changed file is read again"


def test_changed_parent_changes_its_child(client: TestClient, tmp_path: Path) -> None:
    path = write_template(tmp_path)
    path.with_name("child.json5").write_text(
        "{from: 'react-expert', name: '@org/child', version: '2.0.0'}", "utf-8"
    )
    assert listed(client)["templates"][0]["purpose"].startswith("Build React")
    path.write_text(path.read_text("utf-8").replace("Build React", "Review React"), "utf-8")
    assert listed(client)["templates"][0]["purpose"].startswith("Review React")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{name: '<script>alert(1)</script>'}", "expected a name such as"),
        ("{", "is not valid JSON5"),
        ("{from: '../../secrets.json5'}", "outside of"),
        ("[" * 5_000 + "]" * 5_000, "is nested too deeply"),
        ("/" * 600_000, "has more than 500,000 bytes"),
        ("{persona: 1, from: 'broken'}", "broken"),
    ],
)
def test_template_that_does_not_read_fails_only_itself(
    client: TestClient, tmp_path: Path, text: str, problem: str
) -> None:
    path = write_template(tmp_path)
    path.with_name("broken.json5").write_text(text, "utf-8")
    broken, sound = listed(client)["templates"]
    assert problem in broken["problem"]
    assert str(tmp_path) not in broken["problem"]
    assert sound["name"] == NAME
    html = page_of(client)
    assert "assay validate templates/broken.json5" in html
    assert "<script>alert" not in html


def test_files_that_are_no_files_do_not_block_the_page(client: TestClient, tmp_path: Path) -> None:
    path = write_template(tmp_path)
    os.mkfifo(path.with_name("pipe.json5"))
    path.with_name("loop.json5").symlink_to("loop.json5")
    assert len(listed(client)["templates"]) == 1


def test_snapshot_shows_comparison_interval_and_evidence(
    client: TestClient, tmp_path: Path
) -> None:
    write_template(tmp_path)
    write_snapshot(tmp_path, (0.6, 0.65, 0.7), (0.85, 0.87, 0.83))
    (snapshot,) = listed(client)["snapshots"]
    comparison = snapshot["content"]["comparison"]
    assert (comparison["baseline_avg_score"], comparison["specialist_avg_score"]) == (0.65, 0.85)
    assert comparison["test"]["ci95"][0] > 0
    html = page_of(client)
    assert 'href="/batches/comparison"' in html
    assert "claude-sonnet-4.5, specialist − baseline: +20.0 points, 95% range +" in html
    assert '<span class="decision better">better</span>' in html
    assert "Not signed" in html


def test_thin_evidence_reads_not_decided(client: TestClient, tmp_path: Path) -> None:
    write_template(tmp_path)
    write_snapshot(tmp_path, (0.4, 0.65, 0.9), (0.6, 0.85, 1.0))
    html = page_of(client)
    assert '<span class="tag">not decided</span>' in html
    assert "That the specialist is better or worse than the baseline." in html


def test_changed_snapshot_shows_no_numbers(client: TestClient, tmp_path: Path) -> None:
    write_template(tmp_path)
    path = write_snapshot(tmp_path, (0.6, 0.65), (0.85, 0.87))
    assert listed(client)["snapshots"][0]["problem"] is None
    path.write_text(path.read_text("utf-8").replace("0.85", "0.95"), "utf-8")
    os.utime(path, ns=(1, 1))
    (snapshot,) = listed(client)["snapshots"]
    assert "content was changed" in snapshot["problem"]
    assert (snapshot["content"], snapshot["name"]) == (None, "react-expert")
    assert "The content is not shown" in page_of(client)


def test_moved_snapshot_shows_no_numbers(client: TestClient, tmp_path: Path) -> None:
    write_template(tmp_path)
    path = write_snapshot(tmp_path, (0.6, 0.65), (0.85, 0.87))
    path.rename(path.with_name("snapshot-007.json5"))
    (snapshot,) = listed(client)["snapshots"]
    assert snapshot["problem"] == (
        "The file was renamed or moved: it was minted as snapshot-001.json5, but the file is named snapshot-007.json5."
    )
    assert snapshot["content"] is None


def test_hostile_snapshot_with_a_fitting_digest_is_bounded(
    client: TestClient, tmp_path: Path
) -> None:
    write_template(tmp_path)

    def change(content: Any) -> None:
        test = content["benchmarks"]["comparison"]["test"]
        test |= {"ci95": [1e308, -1e308], "n_scenarios": 10**40}
        for _ in range(300):
            test["more"] = {"more": test.get("more", [])}
        content["snapshot_metadata"] = {
            **{f"x{n}": n for n in range(50)},
            **content["snapshot_metadata"],
        }
        content["evidence"]["statement"] = "<script>alert(1)</script>\ud800\u202e" + "x" * 100_000
        content["benchmarks"]["comparison"]["models_compared"] *= 500
        content["snapshot_metadata"] |= {"batch_id": '../"><b>', "created_at": "2026-99-99T<b>"}

    write_snapshot(tmp_path, (0.6, 0.65), (0.85, 0.87), change=change)
    (snapshot,) = listed(client)["snapshots"]
    assert snapshot["problem"] is None
    content = snapshot["content"]
    assert content["comparison"]["test"]["ci95"] == [1e9, -1e9]
    assert (
        len(content["comparison"]["models_compared"]),
        len(content["evidence"]["statement"]),
    ) == (20, 2000)
    html = page_of(client)
    assert "<script>alert" not in html
    assert '<b>"' not in html
    assert 'href="/batches/../%22%3E%3Cb%3E"' in html or "%3Cb%3E" in html


def test_verification_compares_one_snapshot_with_the_store(
    client: TestClient, tmp_path: Path
) -> None:
    make_key(tmp_path / "key")
    write_template(tmp_path)
    write_snapshot(tmp_path, (0.6, 0.65), (0.85, 0.87), key=SigningKey(tmp_path / "key"))
    (snapshot,) = listed(client)["snapshots"]
    assert (
        f"Signed with the key {snapshot['content']['snapshot_metadata']['public_key']}"
        in page_of(client)
    )
    html = page_of(client, f"/specialists?verify={snapshot['path']}")
    assert "comparison: passed." in html
    assert "This store has no batch comparison" in html
    answer = client.get("/specialists?verify=../../etc/passwd", headers={"accept": "text/html"})
    assert answer.status_code == 404


def test_snapshots_of_other_versions_stay_listed(client: TestClient, tmp_path: Path) -> None:
    path = write_template(tmp_path)
    write_snapshot(tmp_path, (0.6, 0.65), (0.85, 0.87))
    path.write_text(path.read_text("utf-8").replace("1.0.0", "1.1.0"), "utf-8")
    document = listed(client)
    assert [each["version"] for each in (*document["templates"], *document["snapshots"])] == [
        "1.1.0",
        "1.0.0",
    ]
    assert "Snapshots of other templates or versions" in page_of(client)


@pytest.mark.parametrize("role", [VisitorRole.REVIEWER, VisitorRole.VIEWER])
def test_only_the_owner_opens_the_page(workspace: Workspace, role: VisitorRole) -> None:
    invitation = people.invite(workspace.store, "ann", role=role, base=HOME)
    with TestClient(create_app(workspace), base_url=HOME) as client:
        assert client.post("/api/signin", json={"token": invitation.token}).status_code == 200
        assert client.get("/specialists").status_code == 403
        assert client.get("/specialists.json").status_code == 403
