"""Today's code opens a store kept from each released schema, reads it, reviews it and continues its
run.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.rows import assert_derived_agrees
from tests.contract.stores import StandingClock, a_decision, a_plan, judged, wait
from tests.upgrade.keep_a_store import A_CALIBRATION

from assay.domain.failure import Failure, Fault
from assay.domain.lifecycle import AssessmentState, TrialState, Verb
from assay.domain.review import Via
from assay.domain.selection import Excluded, Selection
from assay.store.database import schema
from assay.store.opening import open_store

KEPT = sorted(Path(__file__).parent.glob("schema_*.sql"))
EVERYTHING = Selection()


def test_one_store_is_kept_for_each_schema() -> None:
    migrations = Path(schema.__file__).parents[1] / "migrations" / "versions"
    versions = sorted(path.name[:4] for path in migrations.glob("[0-9]*.py"))
    assert [path.stem.removeprefix("schema_") for path in KEPT] == versions


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_a_kept_store_opens_and_can_be_read_reviewed_and_continued(
    kept: Path, tmp_path: Path
) -> None:
    path = tmp_path / "assay.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(kept.read_text(encoding="utf-8"))
    url = f"sqlite:///{path}"
    store = open_store(url, clock=StandingClock())
    assert_derived_agrees(url)
    (run,) = store.archive.runs.matching()
    assert store.journal.plan_of(run.id) == a_plan(batch_id="kept", budget_usd=5.0)
    assert run.trials == {
        TrialState.APPROVED: 2,
        TrialState.REJECTED: 1,
        TrialState.NEEDS_REVIEW: 1,
        TrialState.FAILED: 1,
        TrialState.PENDING: 1,
    }
    assert store.archive.scores.excluded(EVERYTHING) == Excluded(
        pending=2, rejected=1, failed=1, superseded=1, not_started=1
    )
    judged_alice, bob = (2 * 0.8 + 0.5) / 3, (2 * 0.25 + 0.5) / 3
    corrected_alice = (2 * 0.8 + 1.0) / 3
    scores = sorted(store.archive.scores.columns(EVERYTHING).score.tolist())
    assert scores == pytest.approx(sorted([judged_alice, bob, corrected_alice, bob]))
    (failed,) = store.archive.trials.matching(EVERYTHING, failed_only=True)
    assert failed.failure == Failure(
        kind="http_500", fault=Fault.PROVIDER, detail="the server broke", tries=5
    )

    calibrated = store.calibrations.records()
    assert calibrated == (replace(A_CALIBRATION, version=1, number=1),)
    assert store.calibrations.keep(A_CALIBRATION).version == 2

    rows = list(store.archive.assessments.matching(EVERYTHING))
    detail = store.archive.assessments.detail(rows[1].key)
    assert detail.events[0].decision.corrections == {("alice", "fitness"): 1.0}
    assert detail.events[0].decision.via is Via.SCRIPT
    assert [response.text for response in detail.responses] == ["def a(): ...\n", "def b(): ...\n"]
    assert detail.judged.flags[0].detail == "no reason for bob"
    assert store.event_log.first_broken() is None

    store.decisions.decide(
        [a_decision(Verb.UNDO, rows[1].key), a_decision(Verb.APPROVE, rows[4].key)]
    )
    assert store.archive.assessments.detail(rows[1].key).row.state is AssessmentState.PENDING
    store.journal.begin(run.id, retry_failed=True)
    for trial in store.journal.claim(run.id, limit=9):
        wait(store.journal.record(judged(trial)))
    assert store.journal.finish(run.id)
    assert_derived_agrees(url)
    store.close()
