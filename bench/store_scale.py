"""How the store answers when it is large: reads, claims and decisions at a million assessments, on
this machine now.

    python bench/store_scale.py [--assessments 1000000]

One run of 1,000 tasks is opened through the Journal; its assessments are then filled in by plain
SQL, since what is measured is reading them, one claim and one decision. A bare commit of one row is
printed beside, as the floor for what must be on disk.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from store_speed import WallClock, plan, planned

from assay.app.review.queue import ReviewQueue
from assay.domain.assessment import Assessment
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.review import Decision, Via
from assay.domain.run import PlannedTask
from assay.domain.selection import Selection
from assay.store.database.codec import assessment_bytes
from assay.store.opening import open_store

EVERYTHING = Selection()
PENDING = frozenset({AssessmentState.PENDING})

FILL = """
INSERT INTO grader VALUES (1, 'judge');
INSERT INTO run_grader VALUES (1, 1, false);
INSERT INTO body SELECT 100000000 + key, x'{body}' FROM trial;
INSERT INTO assessment SELECT key, 1, task_key, key, 1, NULL, 1, 1, 'pending', NULL, 0, 1, NULL, 100000000 + key, ''
    FROM trial;
INSERT INTO score SELECT 1, key, 1, task_key, key, 1, 0.5, 0.5, 1, 'pending' FROM trial;
UPDATE trial SET state = 'needs_review', owner = NULL, rest = NULL;
DELETE FROM run_tally WHERE subject = 'trial';
INSERT INTO run_tally SELECT 1, 'trial', 'needs_review', count(*) FROM trial;
INSERT INTO run_tally SELECT 1, 'assessment', 'pending', count(*) FROM trial;
"""


def timed(name: str, what: Callable[[int], object], *, times: int = 100) -> None:
    """Print the median and the 95th percentile of some calls."""
    taken = []
    for number in range(times):
        started = time.perf_counter()
        what(number)
        taken.append(1000 * (time.perf_counter() - started))
    taken.sort()
    print(f"{name:34s} p50 {taken[times // 2]:8.2f} ms   p95 {taken[int(times * 0.95)]:8.2f} ms")


def tasks(n: int) -> Iterator[PlannedTask]:
    for planned_task in planned(1000):
        yield PlannedTask(
            task=planned_task.task, position=planned_task.position, trials=range(1, n // 1000 + 1)
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assessments", type=int, default=1_000_000)
    n = parser.parse_args().assessments // 1000 * 1000
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "assay.db"
        with closing(sqlite3.connect(Path(name) / "bare.db", isolation_level=None)) as bare:
            bare.execute("PRAGMA journal_mode=WAL")
            bare.execute("PRAGMA synchronous=FULL")
            bare.execute("CREATE TABLE t (a)")
            timed("bare commit of one row", lambda _: bare.execute("INSERT INTO t VALUES (1)"))
        store = open_store(f"sqlite:///{path}", clock=WallClock())
        started = time.perf_counter()
        store.journal.open_run(plan(), tasks(n))
        print(f"open_run, {n} trials: {time.perf_counter() - started:.1f} s")
        run = plan().id
        timed("claim one trial", lambda _: store.journal.claim(run, limit=1))
        timed("claim fifty trials", lambda _: store.journal.claim(run, limit=50), times=40)
        empty = assessment_bytes(Assessment(grades=(), scores={"echo": 0.5}))
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript("BEGIN;" + FILL.format(body=empty.hex()) + "COMMIT;")
        archive, deep = store.archive, int(n * 0.9)
        of_run, of_task = Selection(runs=(run,)), Selection(tasks=("task-900",))
        timed(
            "five pending, deep in the queue",
            lambda i: _list(
                archive.assessments.matching(
                    EVERYTHING, states=PENDING, after=AssessmentKey(deep + i), limit=5
                )
            ),
        )
        timed(
            "five pending of one run",
            lambda i: _list(
                archive.assessments.matching(
                    of_run, states=PENDING, after=AssessmentKey(deep + i), limit=5
                )
            ),
        )
        timed(
            "page of fifty of one run",
            lambda i: _list(
                archive.assessments.matching(of_run, after=AssessmentKey(deep + i), limit=50)
            ),
        )
        timed(
            "five pending of one task",
            lambda i: _list(archive.assessments.matching(of_task, states=PENDING, limit=5)),
            times=10,
        )
        queue, again = (
            ReviewQueue(archive.assessments, store.leases, WallClock()) for _ in range(2)
        )
        timed(
            "review queue: first of a process",
            lambda i: queue.take(EVERYTHING, desk="first", limit=1),
            times=1,
        )
        timed(
            "review queue: claim one",
            lambda i: queue.take(EVERYTHING, desk=f"desk {i}", limit=1),
            times=1000,
        )
        timed(
            "review queue: claim five",
            lambda i: queue.take(EVERYTHING, desk=f"five {i}", limit=5),
            times=200,
        )
        timed(
            "review queue: claim five of a run",
            lambda i: queue.take(of_run, desk=f"run {i}", limit=5),
            times=200,
        )
        timed(
            "review queue: claim, second process",
            lambda i: again.take(EVERYTHING, desk=f"second {i}", limit=1),
        )
        timed(
            "one assessment with everything",
            lambda i: archive.assessments.detail(AssessmentKey(1 + i)),
        )
        timed("runs with all their counts", lambda i: archive.runs.matching())
        timed("excluded", lambda i: archive.scores.excluded(EVERYTHING))

        def approve(number: int) -> None:
            key = AssessmentKey(1 + number)
            decision = Decision(
                assessment=key, verb=Verb.APPROVE, reviewer="r", via=Via.PAGE, displayed=True
            )
            store.decisions.decide([decision])

        timed("one decision", approve)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(
                "BEGIN; UPDATE score SET state = 'approved'; UPDATE assessment SET state = 'approved'; COMMIT;"
            )
        timed(
            "pending, when none is",
            lambda i: _list(archive.assessments.matching(EVERYTHING, states=PENDING, limit=5)),
        )
        timed("score_columns, all", lambda i: archive.scores.columns(EVERYTHING), times=3)
        timed("score_columns, one task", lambda i: archive.scores.columns(of_task), times=5)
        store.close()


def _list(rows: Iterator[object]) -> list[object]:
    return list(rows)


if __name__ == "__main__":
    main()
