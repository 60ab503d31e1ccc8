"""Attacks on `review rerun`: an attempt and the event with reviewer and reason are stored together,
once.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.attack.figures import publish
from tests.contract.stores import wait
from tests.journey.conftest import Command
from tests.support import forked
from tests.support.model_server import ModelServer
from tests.support.sets import write_set

from assay.app.review.rerun import rerun, rerun_now, rerun_trial
from assay.app.workspace import Workspace
from assay.domain.errors import Refused
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import AssessmentRow, Selection

JUDGE = "openai/gpt-4o-mini"

ORPHANS = """
SELECT count(*) FROM assessment AS old WHERE old.state = 'superseded' AND NOT EXISTS (
    SELECT 1 FROM review_event AS e WHERE e.assessment_key = old.key AND e.verb = 'rerun' AND e.reason = 'why'
)
"""
UNDONE = """
SELECT count(*) FROM review_event AS e JOIN assessment AS old ON old.key = e.assessment_key
WHERE e.verb = 'rerun' AND old.state <> 'superseded'
"""
TWICE = """
SELECT count(*) FROM (
    SELECT 1 FROM assessment GROUP BY trial_key, grader_key, candidate_key, attempt HAVING count(*) > 1
)
"""


def counted(store: Path, question: str) -> int:
    with closing(sqlite3.connect(store)) as connection:
        return int(connection.execute(question).fetchone()[0])


def current(workspace: Workspace) -> list[AssessmentRow]:
    return [row for row in workspace.archive.assessments.matching(Selection()) if row.current]


@pytest.fixture
def store(assay: Command, server: ModelServer, project: Path) -> Path:
    """A store with one run of two graded trials."""
    ran = assay("run", write_set(project, things=1, trials=2), "--judge", JUDGE)
    assert ran.code == 0, ran.err
    return project / ".assay" / "assay.db"


@pytest.fixture
def workspace(store: Path, project: Path) -> Iterator[Workspace]:
    with Workspace.open(project) as opened:
        yield opened


@pytest.mark.parametrize("whole_trial", [False, True])
def test_each_commit_of_a_rerun_holds_attempt_and_event(
    store: Path, workspace: Workspace, whole_trial: bool
) -> None:
    row = current(workspace)[0]
    after_commits: list[tuple[int, int]] = []

    def look(_connection: Any) -> None:
        after_commits.append((counted(store, ORPHANS), counted(store, UNDONE)))

    engine = workspace.store.database._engine
    event.listen(engine, "commit", look)
    if whole_trial:
        assert asyncio.run(rerun_trial(workspace, row.trial, responses=True, reason="why")) is None
    else:
        rerun_now(workspace, row.key, reason="why", reviewer="rita")
    event.remove(engine, "commit", look)
    assert len(after_commits) >= 3  # the claim, the attempt and the release
    assert set(after_commits) == {(0, 0)}
    assert counted(store, ORPHANS) == 0


def test_an_attempt_of_another_process_meanwhile_is_not_repeated(
    workspace: Workspace,
    project: Path,
    store: Path,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = current(workspace)[0]
    claim = workspace.journal.claim_trial
    asked = server.served

    def overtaken(trial: Any) -> Any:
        with Workspace.open(project) as other:
            wait(rerun(other, row.key, reason="why", reviewer="otto"))
        return claim(trial)

    monkeypatch.setattr(workspace.journal, "claim_trial", overtaken)
    with pytest.raises(Refused, match="superseded by a later attempt"):
        rerun_now(workspace, row.key, reason="why", reviewer="rita")
    assert server.served == asked + 1
    assert counted(store, TWICE) == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_hundred_kills_leave_no_attempt_without_its_event(
    assay: Command, server: ModelServer, store: Path, project: Path
) -> None:
    variables = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
    dice = random.Random(200)

    def start(key: AssessmentKey) -> forked.Process:
        return forked.start(
            "review",
            "rerun",
            f"a{key}",
            "--reason",
            "why",
            "--force",
            "--reviewer",
            "rita",
            folder=project,
            **variables,
        )

    def keys() -> list[AssessmentKey]:
        with closing(sqlite3.connect(store)) as connection:
            rows = connection.execute(
                "SELECT key FROM assessment WHERE state <> ?", (AssessmentState.SUPERSEDED.value,)
            )
            return [AssessmentKey(row[0]) for row in rows]

    start(keys()[0]).communicate()  # the first one also starts the process that forks the others
    began = time.monotonic()
    start(keys()[0]).communicate()
    whole_s = time.monotonic() - began
    before = counted(store, "SELECT count(*) FROM assessment")
    stopped = torn = 0
    for _ in range(200):
        process = start(dice.choice(keys()))
        time.sleep(dice.uniform(0.0, 1.1 * whole_s))
        process.kill()
        process.communicate()
        stopped += process.status == -9
        torn += bool(counted(store, ORPHANS) or counted(store, UNDONE) or counted(store, TWICE))
    publish("kill -9 during review rerun", tried=200, through=torn)
    assert stopped >= 50
    assert counted(store, "SELECT count(*) FROM assessment") > before
