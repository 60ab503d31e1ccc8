"""Batches that stop after a stage, that follow the settings, and that Python starts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import assay as library
from tests.journey.conftest import Command
from tests.journey.test_batch import (
    RUBRIC_SUITE,
    SUITE,
    collected,
    live,
    results,
    server as server,  # a fixture
    submitted,
)
from tests.support.batch_server import BatchServer, Fate


def judged(server: BatchServer) -> int:
    return sum("judge" in str(line) for batch in server.batches.values() for line in batch.lines)


@pytest.mark.slow
def test_a_batch_that_only_structures_is_judged_when_sent_again(
    assay: Command, server: BatchServer, project: Path
) -> None:
    before = live(assay, server, RUBRIC_SUITE)
    run = submitted(assay, project, RUBRIC_SUITE, "--stage", "structure")
    state = "submitted"
    for _ in range(4):
        if state == "submitted":
            state = _collected_once(assay, run)["run"]["state"]
    assert (state, judged(server)) == ("interrupted", 0)
    assert assay("batch", "collect", "--json").document["runs"] == [], "nothing waits"
    assert _collected_once(assay, run)["run"]["trials"]["pending"] == 4
    assay("batch", "submit", "--run", run)
    collected(assay, run)
    assert results(assay, run) == before
    assert judged(server) == 8
    assert server.repeats == {}


def _collected_once(assay: Command, run: str) -> Any:
    (document,) = assay("batch", "collect", run, "--json").document["runs"]
    return document


def test_a_batch_holds_no_more_requests_than_the_settings_allow(
    assay: Command, server: BatchServer, project: Path
) -> None:
    (project / "assay.yaml").write_text("batch_requests: 4\nbatch_tries: 1\n", "utf-8")
    server.fates.append(Fate(unanswered=4, status="expired"))
    done = collected(assay, submitted(assay, project))
    answers = [job["requests"] for job in done["jobs"] if job["stage"] == "answers"]
    assert sorted(answers) == [2, 2, 4, 4]
    assert {row["kind"] for row in done["run"]["failures"]} == {"expired"}


@pytest.mark.parametrize("text", ["batch_requests: 0", "batch_tries: 0", "batch_requests: many"])
def test_impossible_batch_settings_are_named(
    assay: Command, server: BatchServer, project: Path, text: str
) -> None:
    (project / "assay.yaml").write_text(text, "utf-8")
    (project / "suite.yaml").write_text(SUITE, "utf-8")
    done = assay("batch", "submit", "suite.yaml")
    assert done.code == 2
    assert text.partition(":")[0] in done.err


def test_python_submits_and_collects(assay: Command, server: BatchServer, project: Path) -> None:
    before = live(assay, server)
    (project / "suite.yaml").write_text(SUITE, "utf-8")

    async def notebook() -> str:
        return library.submit_batch("suite.yaml").id

    run = asyncio.run(notebook())
    assert library.collect_batch(run).summary.state == "submitted", "the judge was only asked now"
    (project / "assay.yaml").write_text("batch_interval: 0.01\n", "utf-8")
    assert library.collect_batch(run, watch=True).summary.state == "finished"
    assert results(assay, run) == before
    assert server.repeats == {}
