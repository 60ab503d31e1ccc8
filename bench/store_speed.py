"""How fast a run is written: entries through the Journal beside the same rows through bare sqlite3,
on this machine now.

    python bench/store_speed.py [--trials 20000] [--concurrency 50] [--store URL]

Every trial is one call, one response, one deterministic assessment with one grade, as `score:
exact` makes them. The bare loop writes exactly the rows the store wrote, by executemany in
transactions of as many trials as the store's mean commit, with the same tables, indexes and
durability.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from assay.domain.assessment import Assessment, Grade, Response
from assay.domain.calls import ModelRequest, Purpose, Reply, Role, Usage
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState, Policy
from assay.domain.model import ModelSpec, Parameters
from assay.domain.run import (
    CallRecord,
    ClaimedTrial,
    Entry,
    NewAssessment,
    PlannedTask,
    RunPlan,
    Slot,
)
from assay.domain.selection import Selection
from assay.domain.suite import CandidateSpec, Message, Rubric, Scoring, SuiteCopy, Task
from assay.store.opening import Store, open_store

WRITTEN = ("body", "call", "response", "assessment", "score", "grade")


class WallClock:
    def now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float, /) -> None:
        await asyncio.sleep(seconds)


def plan() -> RunPlan:
    return RunPlan(
        id=RunId("20250101-000000-speed-abcd"),
        suite="speed",
        copy=SuiteCopy(path="speed.yaml", text="name: speed", digest="speed"),
        candidates=(CandidateSpec(name="echo", model=ModelSpec(provider="echo", name="")),),
        judges=(),
        rubric=Rubric(criteria=()),
        policy=Policy.EVERY,
        parameters=Parameters(temperature=0.0),
        system_prompt="",
        seed=1,
        started="2025-01-01T00:00:00.000Z",
    )


def planned(n: int) -> list[PlannedTask]:
    return [
        PlannedTask(
            task=Task(
                id=f"task-{i}",
                thing=f"task-{i}",
                prompt=(
                    Message(
                        role="user", content=f"What is {i} + {i}? Answer with the number only."
                    ),
                ),
                expected=str(2 * i),
                scoring=Scoring(method="exact"),
            ),
            position=i,
            trials=range(1, 2),
        )
        for i in range(n)
    ]


def entry_of(trial: ClaimedTrial) -> Entry:
    """Return the records that the engine hands over for one deterministic trial."""
    request = ModelRequest(
        model=ModelSpec(provider="echo", name=""),
        messages=trial.task.prompt,
        parameters=Parameters(temperature=0.0, max_tokens=64),
        purpose=Purpose(role=Role.CANDIDATE, task=trial.task.id, trial=trial.k, candidate="echo"),
    )
    answer = "The answer is " + (trial.task.expected or "")
    reply = Reply(
        text=answer, usage=Usage(input_tokens=20, output_tokens=5), latency_s=0.01, cost_usd=0.0
    )
    call = CallRecord(
        request=request, reply=reply, failure=None, number=1, started="2025-01-01T00:00:00.000Z"
    )
    grade = Grade(
        candidate="echo", criterion="exact", score=1.0, raw_score=1.0, min_score=0.0, max_score=1.0
    )
    new = NewAssessment(
        slot=Slot(grader="exact", candidate="echo", by_model=False),
        attempt=1,
        assessment=Assessment(grades=(grade,), scores={"echo": 1.0}, weights={"exact": 1.0}),
        state=AssessmentState.NOT_REQUIRED,
    )
    return Entry(
        trial=trial.key,
        calls=(call,),
        responses=((Response(candidate="echo", text=answer), 0),),
        assessments=((new, None),),
        finished=True,
    )


async def write_all(store: Store, run: RunId, *, concurrency: int, claims_s: list[float]) -> None:
    """Claim and record everything, `concurrency` trials at a time, with nothing between."""
    ready: asyncio.Queue[ClaimedTrial | None] = asyncio.Queue(maxsize=concurrency * 2)

    async def work() -> None:
        while (trial := await ready.get()) is not None:
            await store.journal.record(entry_of(trial))

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
        while True:
            started = time.perf_counter()
            claimed = await asyncio.to_thread(store.journal.claim, run, limit=concurrency * 2)
            claims_s.append(time.perf_counter() - started)
            if not claimed:
                break
            for trial in claimed:
                await ready.put(trial)
        for _ in range(concurrency):
            await ready.put(None)


def bare_seconds(
    source: Path, folder: Path, *, trials_a_commit: int, trials: int
) -> tuple[int, float, float]:
    """Rows, wall and CPU seconds of the same rows through sqlite3 alone."""
    with closing(sqlite3.connect(source)) as old:
        ddl = [
            sql
            for (sql,) in old.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
            )
        ]
        rows = {table: old.execute(f'SELECT * FROM "{table}"').fetchall() for table in WRITTEN}
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as new:
        new.execute("PRAGMA journal_mode=WAL")
        new.execute("PRAGMA synchronous=FULL")
        for statement in ddl:
            new.execute(statement)
        marks = {table: ", ".join("?" * len(table_rows[0])) for table, table_rows in rows.items()}
        share = {
            table: max(1, round(len(table_rows) / trials * trials_a_commit))
            for table, table_rows in rows.items()
        }
        wall, cpu, start = time.perf_counter(), time.process_time(), 0
        while any(start * share[table] < len(table_rows) for table, table_rows in rows.items()):
            new.execute("BEGIN IMMEDIATE")
            for table, table_rows in rows.items():
                part = table_rows[start * share[table] : (start + 1) * share[table]]
                new.executemany(f'INSERT INTO "{table}" VALUES ({marks[table]})', part)
            new.execute("COMMIT")
            start += 1
        return (
            sum(len(table_rows) for table_rows in rows.values()),
            time.perf_counter() - wall,
            time.process_time() - cpu,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--store")
    options = parser.parse_args()
    n = options.trials
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = open_store(options.store or f"sqlite:///{folder / 'assay.db'}", clock=WallClock())
        started = time.perf_counter()
        store.journal.open_run(plan(), planned(n))
        print(f"open_run        {n} tasks in {time.perf_counter() - started:.2f} s")
        store.journal.begin(plan().id, retry_failed=False)
        commits, claims_s = store.journal.commits, list[float]()
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(write_all(store, plan().id, concurrency=options.concurrency, claims_s=claims_s))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        commits = store.journal.commits - commits - len(claims_s)
        ours = sorted(1000 * s for s in claims_s)
        print(
            f"store           {n / wall:8.0f} trials/s  {cpu / n * 1e6:6.0f} us CPU a trial  "
            f"{commits} commits of {n / commits:.0f} trials"
        )
        print(
            f"claims          {options.concurrency * 2} trials at once: "
            f"p50 {statistics.median(ours):.1f} ms, p95 {ours[int(len(ours) * 0.95) - 1]:.1f} ms (while recording)"
        )
        started = time.perf_counter()
        columns = store.archive.scores.columns(Selection())
        print(
            f"score_columns   {len(columns.score)} rows in {1000 * (time.perf_counter() - started):.0f} ms"
        )
        store.close()
        print(f"peak memory     {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
        if options.store is None:
            rows, bare, bare_cpu = bare_seconds(
                folder / "assay.db", folder, trials_a_commit=max(1, round(n / commits)), trials=n
            )
            print(
                f"rows            store {rows / wall:.0f}/s, bare sqlite3 {rows / bare:.0f}/s, ratio {wall / bare:.2f}"
            )
            print(f"CPU             store {cpu:.2f} s, bare sqlite3 {bare_cpu:.2f} s")


if __name__ == "__main__":
    main()
