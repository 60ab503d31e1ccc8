"""Server time of the registry and the audit over many runs and decisions, on this machine now.

    python bench/registry_pages.py [--runs 2000] [--events 200000]

One run is opened through the Journal and its trials judged; the other runs, and the decisions with
their hashes, are then filled in by plain SQL, since what is measured is reading them. Every tenth
run waits for a person.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from store_speed import WallClock, plan, planned

from assay.app.workspace import Workspace
from assay.store.database.schema import review_event
from assay.store.event_chain import hash_of
from assay.store.opening import open_store
from assay.web.server import create_app

EVENTS = [column.name for column in review_event.c]


def filled(path: Path, runs: int, events: int) -> None:
    """A store with so many runs of three candidates, and so many decisions spread over them."""
    store = open_store(f"sqlite:///{path}", clock=WallClock())
    store.journal.open_run(plan(), planned(1))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA foreign_keys=OFF")
        database.execute("BEGIN")
        columns = [row[1] for row in database.execute("PRAGMA table_info(run)")]
        (first,) = database.execute("SELECT * FROM run").fetchall()
        (content,) = database.execute(
            "SELECT content FROM body WHERE key = ?", (first[columns.index("plan_key")],)
        ).fetchone()
        database.executemany(
            "INSERT INTO suite VALUES (?, ?)", [(100 + n, f"suite-{n}") for n in range(20)]
        )
        names = [(200 + n, f"model-{n}", f"model-{n}") for n in range(30)]
        database.executemany("INSERT INTO candidate VALUES (?, ?, ?)", names)
        database.execute("INSERT INTO grader VALUES (900, 'judge')")
        task = database.execute("SELECT key FROM task").fetchone()[0]
        for n in range(runs):
            key, run_id = 10_000 + n, f"2025{n // 60 % 12 + 1:02}01-{n:06}-suite-{n % 20}-abcd"
            run_row = dict(zip(columns, first, strict=True)) | {
                "key": key,
                "id": run_id,
                "suite_key": 100 + n % 20,
                "state": "finished",
                "plan_key": 1_000_000 + n,
                "started": f"2025-{n // 60 % 12 + 1:02}-01T00:{n % 60:02}:00.000Z",
                "batch_id": f"night-{n // 40}",
            }
            own = json.loads(content) | {"id": run_id, "suite": f"suite-{n % 20}", "seed": n}
            database.execute(
                "INSERT INTO body VALUES (?, ?)", (1_000_000 + n, json.dumps(own).encode())
            )
            database.execute(
                f"INSERT INTO run VALUES ({','.join('?' * len(columns))})",
                [run_row[name] for name in columns],
            )
            for place in range(3):
                who = (n + place) % 30
                database.execute(
                    "INSERT INTO run_candidate VALUES (?, ?, ?, ?)",
                    (key, 200 + who, place, f"model-{who}"),
                )
            waits = 5 if n % 10 == 0 else 0
            tallies = [
                ("trial", "approved", 95),
                ("trial", "needs_review", waits),
                ("assessment", "approved", 95),
                ("assessment", "pending", waits),
            ]
            database.executemany(
                "INSERT INTO run_tally VALUES (?, ?, ?, ?)",
                [(key, *tally) for tally in tallies if tally[2]],
            )
            database.execute(
                "INSERT INTO run_task VALUES (?, 0, ?, 'task-0', 'Task', 1.0, 100, ?)",
                (key, task, 1_000_000 + n),
            )
        _decided(database, runs, events, task)
        database.execute("COMMIT")
        database.execute("ANALYZE")


def _decided(database: sqlite3.Connection, runs: int, events: int, task: int) -> None:
    each = -(-events // runs)
    previous = ""
    rows: list[list[Any]] = []
    for number in range(events):
        run, k = 10_000 + number // each, number % each + 1
        key = 5_000_000 + number
        trial = (
            "INSERT INTO trial (key, run_key, task_key, position, k, state, standing, tries) VALUES "
            "(?, ?, ?, 0, ?, 'approved', 'counted', 0)"
        )
        database.execute(trial, (key, run, task, k))
        database.execute(
            "INSERT INTO assessment VALUES (?, ?, ?, ?, 900, NULL, 1, 1, 'approved', NULL, 0, 1, NULL, 1000000, '')",
            (key, run, task, key),
        )
        values: dict[str, Any] = {
            "idempotency_key": f"key-{number}",
            "assessment_key": key,
            "run_key": run,
            "verb": "approve",
            "before": "pending",
            "after": "approved",
            "reviewer": f"reviewer-{number % 7}",
            "via": "page",
            "displayed": True,
            "reason": "It quotes what is there.",
            "note": "",
            "corrections": "[]",
            "at": f"2025-01-{number * 28 // events + 1:02}T00:00:00.000Z",
            "previous_hash": previous,
        }
        if number == events // 1000:
            values |= {"verb": "reject", "after": "rejected"}
        values["hash"] = previous = hash_of(values)
        rows.append([number + 1 if name == "id" else values[name] for name in EVENTS])
    database.executemany(f"INSERT INTO review_event VALUES ({','.join('?' * len(EVENTS))})", rows)


def timed(client: TestClient, path: str, *, times: int) -> Any:
    """Print the median and the slowest of some requests, the first apart; the last answer."""
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        answer = client.get(path)
        taken.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200, (path, answer.text[:300])
    first, rest = taken[0], sorted(taken[1:])
    print(
        f"{path[:60]:60s} first {first:7.1f} ms   p50 {rest[len(rest) // 2]:7.1f}   slowest {rest[-1]:7.1f}"
    )
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--times", type=int, default=15)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "assay.db"
        began = time.perf_counter()
        filled(path, asked.runs, asked.events)
        print(
            f"{asked.runs} runs and {asked.events} decisions filled in within {time.perf_counter() - began:.0f} s"
        )
        with Workspace.open(
            Path(name), options={"store": f"sqlite:///{path}"}, environment={}
        ) as workspace:
            client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
            middle = client.get("/runs.json?suite=suite-7").json()["runs"][-1]["id"]
            for address in (
                "/runs",
                f"/runs?before={middle}",
                "/runs?suite=suite-3",
                "/runs?candidate=model-4",
                "/runs?q=night-3",
                "/runs?state=waits",
                "/runs.json",
                "/batches/night-3",
                "/candidates",
                "/audit",
                f"/audit?before={asked.events // 2}",
                "/audit?reviewer=reviewer-3",
                "/audit?item=a5000100",
                f"/audit?run={middle}",
                "/audit?verb=reject",
                "/audit?day=2025-01-02",
                "/audit.json",
            ):
                timed(client, address, times=asked.times)
            began, after, parts = time.perf_counter(), 0, 0
            while True:
                answer = client.get(f"/audit/check.json?after={after}").json()
                parts += 1
                if answer["ended"]:
                    break
                after = answer["intact_up_to"]
            took = time.perf_counter() - began
            print(
                f"the chain: {took:.1f} s in {parts} answers, first broken event {answer['first_broken_event']}"
            )
            began = time.perf_counter()
            size = len(client.get("/audit/events.csv").content)
            print(f"/audit/events.csv: {size / 1e6:.1f} MB in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
