"""Answers side by side in a large run: the first page, a deep one, and filters, on this machine
now.

    python bench/side_by_side.py [--tasks 200000]

Two candidates answered every task of one run; the store is filled by plain SQL, since what is
measured is reading.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from store_scale import timed
from store_speed import WallClock, plan, planned

from assay.app.comparison.answers import AnswerFilter, AnswerQuery, agreement, page
from assay.domain.answer_rows import AnswerColumn
from assay.domain.run import PlannedTask
from assay.store.opening import open_store

FILL = """
INSERT INTO candidate SELECT 1000 + value, 'c' || value, 'c' || value FROM (SELECT 1 AS value UNION SELECT 2);
INSERT INTO run_candidate SELECT 1, 1000 + value, 10 + value, 'c' || value FROM (SELECT 1 AS value UNION SELECT 2);
INSERT INTO body SELECT 100000000 + key, CAST('{"answer": ' || (key % 7) || '}' AS BLOB) FROM trial;
INSERT INTO body SELECT 200000000 + key, CAST('{"answer": ' || (key % 7 + (key % 1000 = 0)) || '}' AS BLOB) FROM trial;
INSERT INTO response SELECT key, key, 1001, 1, 0, NULL, 100000000 + key FROM trial;
INSERT INTO response SELECT 100000000 + key, key, 1002, 1, 0, NULL, 200000000 + key FROM trial;
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=200_000)
    n = parser.parse_args().tasks
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "assay.db"
        store = open_store(f"sqlite:///{path}", clock=WallClock())
        started = time.perf_counter()
        store.journal.open_run(
            plan(),
            (
                PlannedTask(
                    task=planned_task.task, position=planned_task.position, trials=range(1, 2)
                )
                for planned_task in planned(n)
            ),
        )
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript("BEGIN;" + FILL + "COMMIT;")
        print(f"{n} tasks, {2 * n} answers stored in {time.perf_counter() - started:.0f} s")
        columns = tuple(AnswerColumn(run=plan().id, candidate=name) for name in ("c1", "c2"))
        workspace = cast("Any", SimpleNamespace(archive=store.archive))
        wanted, differing = (
            AnswerQuery(columns=columns),
            AnswerQuery(columns=columns, only=AnswerFilter.DISAGREE),
        )
        timed("first page", lambda i: page(workspace.store, wanted), times=40)
        timed(
            "page nine tenths in",
            lambda i: page(workspace.store, wanted, after=(0, int(n * 0.9) + i)),
            times=40,
        )
        timed(
            "page of what disagrees",
            lambda i: page(workspace.store, differing, after=(0, n // 2 + i)),
            times=10,
        )
        timed("agreement of what is counted", lambda i: agreement(workspace.store, wanted), times=2)
        store.close()


if __name__ == "__main__":
    main()
