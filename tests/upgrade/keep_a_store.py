"""Writes what is kept for each schema: `python -m tests.upgrade.keep_a_store`.

Kept are the dump of a small store and, for both databases, the statements that create the tables.
Run it whenever an unreleased schema changes. Once a schema is released its files never change
again: later versions must upgrade such a store and use it.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from tests.contract.stores import (
    StandingClock,
    a_call,
    a_decision,
    a_plan,
    a_task,
    grades,
    judged,
    planned,
    wait,
)

from assay.domain.assessment import Flag, FlagKind, Response
from assay.domain.calibration_record import CalibrationRecord, JudgeIdentity, Tier
from assay.domain.failure import Failure, Fault
from assay.domain.lifecycle import Verb
from assay.domain.run import Entry
from assay.domain.selection import Selection
from assay.store.database import schema
from assay.store.database.migrate import MIGRATIONS
from assay.store.opening import open_store, table_statements

A_CALIBRATION = CalibrationRecord(
    identity=JudgeIdentity(model="echo", prompt="p" * 32, rubric="r" * 32, parameters="q" * 32),
    tier=Tier.GOOD,
    at="2025-01-02T03:04:05.678Z",
    document={"pass_rate": {"value": 0.9}},
)
HERE = Path(__file__).parent
DRIVERS = {"sqlite": "pysqlite", "postgresql": "psycopg"}


def fill(url: str) -> None:
    """Six trials of two tasks: approved, corrected, rejected, rerun and waiting, failed,
    untouched.
    """
    store = open_store(url, clock=StandingClock())
    plan = a_plan(batch_id="kept", budget_usd=5.0)
    auth = a_task(
        "auth", snippets={"bob": "def b(): ...\n"}, tags=["security"], thing="Auth Service"
    )
    store.journal.open_run(plan, planned(auth, a_task("pay", language="go", weight=2.0), trials=3))
    claimed = store.journal.claim(plan.id, limit=5)
    flag = Flag(kind=FlagKind.EMPTY_REASON, detail="no reason for bob", candidate="bob")
    scores = grades(
        {"alice": {"integrity": 0.8, "fitness": 0.5}, "bob": {"integrity": 0.25, "fitness": 0.5}},
        flags=[flag],
    )
    for trial in claimed[:4]:
        answer = Response(candidate="alice", text="def a(): ...\n")
        wait(store.journal.record(judged(trial, scores, calls=[a_call(trial)], responses=[answer])))
    failure = Failure(kind="http_500", fault=Fault.PROVIDER, detail="the server broke", tries=5)
    wait(store.journal.record(Entry(trial=claimed[4].key, finished=True, failure=failure)))
    rows = list(store.archive.assessments.matching(Selection()))
    store.decisions.decide(
        [
            a_decision(Verb.APPROVE, rows[0].key, idempotency="first"),
            a_decision(
                Verb.CORRECT, rows[1].key, corrections={("alice", "fitness"): 1.0}, reason="it fits"
            ),
            a_decision(Verb.REJECT, rows[2].key, reason="invented"),
        ]
    )
    again = store.journal.claim_trial(claimed[3].key)
    wait(
        store.journal.record(
            judged(again, scores, attempt=2, rerun=a_decision(Verb.RERUN, 0, note="look again"))
        )
    )
    store.calibrations.keep(A_CALIBRATION)
    store.close()


def tables_of(version: str, dialect: str) -> Path:
    # the first migration needs the tables that it makes
    home = MIGRATIONS if version == "0011" else HERE
    return home / f"tables_{version}_{dialect}.sql"


def tables_now(dialect: str) -> str:
    """The statements for today's tables in the order of their references, then the indexes by
    name.
    """
    statements = [statement.strip() for statement in table_statements(dialect, DRIVERS[dialect])]
    indexes = [statement for statement in statements if "INDEX" in statement.partition(" ON ")[0]]
    tables = [statement for statement in statements if statement not in indexes]
    return "".join(f"{statement};\n" for statement in tables + sorted(indexes))


def main() -> None:
    for dialect in DRIVERS:
        tables_of(schema.VERSION, dialect).write_text(tables_now(dialect), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "assay.db"
        fill(f"sqlite:///{path}")
        with closing(sqlite3.connect(path)) as connection:
            dump = "\n".join(connection.iterdump()) + "\n"
    (HERE / f"schema_{schema.VERSION}.sql").write_text(dump, encoding="utf-8")


if __name__ == "__main__":
    main()
