"""A collecting process that is killed at every step and started again: the results of a live run,
and nothing asked twice.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.journey.conftest import Command
from tests.journey.test_batch import SUITE, collected, live, results, server  # noqa: F401 - a fixture
from tests.support import forked
from tests.support.batch_server import BatchServer, Fate

SMALL = (
    SUITE.replace("trials: 2", "trials: 1")
    .replace(", openai/large", "")
    .replace("  - {id: two, prompt: Say two.}\n", "")
)
VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")


def killed_at(step: int, *arguments: object) -> int:
    """Run a command in a process that dies at a step; return its exit code, negative if it was
    killed.
    """
    variables = {name: os.environ[name] for name in VARIABLES}
    done = forked.run(*arguments, folder=Path.cwd(), KILLED_AT_STEP=str(step), **variables)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("provider", "stride"), [("openai", 1), ("anthropic", 2)])
def test_a_process_killed_at_every_step_repeats_and_loses_nothing(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
    provider: str,
    stride: int,
) -> None:
    suite = SMALL.replace("openai/", f"{provider}/")
    before = live(assay, server, suite)
    server.fates.extend([Fate(unanswered=1, status="expired"), Fate(failed=1)])
    (project / "suite.yaml").write_text(suite, "utf-8")
    step = 1
    while not (runs := assay("runs", "--json").document["runs"]):
        killed_at(step, "batch", "submit", "suite.yaml")
        step += 1
    run = runs[0]["run_id"]
    kills, row = 0, runs[0]
    for step in range(1, 400, stride):
        kills += killed_at(step, "batch", "collect", run) < 0
        (row,) = assay("runs", "--json").document["runs"]
        if row["state"] == "finished":
            break
    assert kills >= 20 / stride
    assert (row["trials"]["done"], row["trials"]["failed"]) == (2, 0)
    assert results(assay, run)[0] == before[0]
    assert server.repeats == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_submitting_killed_at_each_step_is_continued_by_collect(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    before = live(assay, server, SMALL)
    (project / "suite.yaml").write_text(SMALL, "utf-8")
    known: set[str] = set()
    for step in range(1, 60):
        server.seen.clear()
        code = killed_at(step, "batch", "submit", "suite.yaml")
        new = {row["run_id"] for row in assay("runs", "--json").document["runs"]} - known
        if not new:
            continue
        (run,) = new
        known |= new
        state = ""
        for _ in range(6):
            (done,) = assay("batch", "collect", run, "--json").document["runs"]
            if (state := done["run"]["state"]) == "finished":
                break
        assert state == "finished", step
        assert results(assay, run) == before, step
        assert server.repeats == {}, step
        if code == 0:
            break
    assert step > 10


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_batch_that_was_created_unseen_is_found_again(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
    provider: str,
) -> None:
    server.fates.append(Fate(silent=True, looks=2))
    (project / "suite.yaml").write_text(SMALL.replace("openai/", f"{provider}/"), "utf-8")
    first = assay("batch", "submit", "suite.yaml", "--json").document
    run = first["run"]["run_id"]
    if provider == "anthropic":  # its batches carry nothing of ours before they have ended
        assert [job["state"] for job in first["jobs"]] == ["creating"]
        assert "Collect again after" in first["troubles"][0]
    else:
        assert [(job["state"], job["remote_id"]) for job in first["jobs"]] == [
            ("sent", "batch_001")
        ]
    collected(assay, run)
    assert (
        len([batch for batch in server.batches.values() if "Say one." in str(batch.lines[0])]) == 2
    ), "asked, judged"
    assert server.repeats == {}
