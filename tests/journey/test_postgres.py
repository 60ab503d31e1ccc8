"""The same job on PostgreSQL."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.contract.conftest import postgres as postgres  # the one server of a test session
from tests.journey.conftest import Command, start
from tests.support.model_server import ModelServer
from tests.support.postgres import new_database
from tests.support.sets import write_set

pytestmark = pytest.mark.slow

JUDGE = "openai/judge-1"


@pytest.fixture
def database(postgres: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, as the settings name it."""
    address = new_database(postgres, f"journey{secrets.token_hex(4)}")
    monkeypatch.setenv("ASSAY_STORE", address)
    return address


def test_a_set_runs_is_reviewed_and_compared_on_postgresql(
    assay: Command, server: ModelServer, project: Path, database: str
) -> None:
    document = assay("run", write_set(project, trials=3), "--judge", JUDGE, "--json").document
    assert document["trials"]["done"] == 9
    ids = [row["id"] for row in assay("review", "list", "--json").document["assessments"]]
    assay("review", "reject", ids[0], "--reason", "messy")
    assert assay("review", "approve", *ids[1:]).code == 0
    stats = assay("stats", "--json").document
    assert stats["excluded"]["rejected"] == 1
    assert {one["n_trials"] for one in stats["candidates"]} == {8}
    assert assay("compare", "nora", "omar", "--json").document["method"] == "paired_stratified_t"
    assert not (project / ".assay" / "assay.db").exists()


def test_a_killed_run_resumes_on_postgresql(
    assay: Command, server: ModelServer, project: Path, database: str
) -> None:
    server.delay_s = 0.2
    process = start("run", write_set(project, trials=4), "--judge", JUDGE, "--concurrency", "2")
    while server.served < 4:
        assert process.poll() is None
    process.kill()
    process.wait()
    (run,) = assay("runs", "--json").document["runs"]
    server.delay_s = 0.0
    resumed = assay("resume", run["run_id"], "--json").document
    assert resumed["trials"]["done"] == resumed["trials"]["total"] == 12
    assert len(server.calls) <= 12 + 2


def test_a_password_in_the_store_s_address_is_never_shown(assay: Command, project: Path) -> None:
    output = assay("config", "--store", "postgresql://ann:s3cret@127.0.0.1:1/nowhere")
    assert "s3cret" not in output.out + output.err
    refused = assay("runs", "--store", "postgresql://ann:s3cret@127.0.0.1:1/nowhere")
    assert refused.code == 2
    assert "s3cret" not in refused.out + refused.err
