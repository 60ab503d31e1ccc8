"""Real processes at one store: killed in the middle, sharing a run, and what the next one finds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contract.rows import all_rows, assert_derived_agrees
from tests.contract.stores import a_plan, a_task, judged, planned, wait

from assay.domain.lifecycle import TrialState
from assay.domain.selection import Selection
from assay.store.opening import Store

pytestmark = pytest.mark.slow

RUN = a_plan().id
ROOT = Path(__file__).parents[2]


def worker(url: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.store_worker", url, RUN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def finish(store: Store) -> None:
    while claimed := store.journal.claim(RUN, limit=50):
        for trial in claimed:
            wait(store.journal.record(judged(trial)))


def test_killed_process_loses_no_acknowledged_record(opened: Callable[[], Store], url: str) -> None:
    store = opened()
    store.journal.open_run(a_plan(), planned(a_task("auth"), a_task("pay"), trials=2000))
    told: set[int] = set()
    for _ in range(3):
        process = worker(url)
        tell(process)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(60)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        process.wait()
        told |= {
            int(line.split()[1])
            for line in lines
            if line.startswith("recorded") and line.endswith("\n")
        }
        # At once, without waiting for anything to time out:
        store.journal.begin(RUN, retry_failed=False)
        (run,) = store.archive.runs.matching()
        assert TrialState.RUNNING not in run.trials
    rows = list(store.archive.assessments.matching(Selection()))
    stored = Counter(int(row.trial) for row in rows)
    assert told <= set(stored)
    assert len(told) >= 60
    assert max(stored.values()) == 1
    assert len(stored) <= len(told) + 3 * 4  # only what was in flight can be stored untold
    assert_derived_agrees(url)
    again = store.journal.claim(RUN, limit=5)
    assert not stored.keys() & {int(trial.key) for trial in again}


def test_two_processes_share_a_run_without_doubles(opened: Callable[[], Store], url: str) -> None:
    trials = 3_000  # enough that the second process is there before the first is done
    store = opened()
    store.journal.open_run(a_plan(), planned(a_task(), trials=trials))
    workers = [worker(url), worker(url)]
    for process in workers:
        tell(process)
    lines = [process.communicate()[0].splitlines() for process in workers]
    assert [process.returncode for process in workers] == [0, 0]
    did = [
        {int(line.split()[1]) for line in entry if line.startswith("recorded")} for entry in lines
    ]
    assert did[0].isdisjoint(did[1])
    assert len(did[0] | did[1]) == trials
    assert all(did)  # both worked
    assert store.journal.finish(RUN)
    rows = all_rows(url)
    assert len(rows["assessment"]) == len(rows["response"]) == trials
    assert_derived_agrees(url)


def test_a_forked_child_does_not_keep_a_dead_parents_claims_alive(
    opened: Callable[[], Store], url: str
) -> None:
    store = opened()
    store.journal.open_run(a_plan(), planned(a_task(), trials=2))
    script = (
        "import os, sys, time\n"
        "from tests.contract.stores import StandingClock\n"
        "from assay.store.opening import open_store\n"
        "store = open_store(sys.argv[1], clock=StandingClock())\n"
        "store.journal.claim(sys.argv[2], limit=1)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.close(1)\n"
        "    time.sleep(30)\n"
        "    os._exit(0)\n"
        "print(child, flush=True)\n"
        "time.sleep(30)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, url, RUN], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        assert len(store.journal.claim(RUN, limit=5)) == 1
        parent.kill()
        parent.wait()
        if url.startswith("sqlite"):  # a forked child shares its parent's connection to PostgreSQL
            assert len(store.journal.claim(RUN, limit=5)) == 1
    finally:
        os.kill(child, signal.SIGKILL)
