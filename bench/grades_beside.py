"""Grades side by side over a large run: every view of the page over HTTP, cold and warm, and the
server's memory.

    python bench/grades_beside.py [--trials 100000] [--times 40] [--keep FOLDER]

One run is opened through the Journal; two judges' assessments of each trial, five criteria each,
are filled in by plain SQL, since what is measured is reading them. One trial in fifty was judged
anew, one in ten corrected, one in a hundred rejected. Each view is asked once cold, then, when the
run has been read for its figures, `--times` times; `/health` as the floor.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from store_scale import tasks
from store_speed import plan

from assay.app.workspace import Workspace
from assay.domain.assessment import Assessment, Grade
from assay.domain.model import ModelSpec
from assay.domain.suite import Criterion, JudgeSpec, Rubric
from assay.store.database.codec import assessment_bytes

JUDGES = ("strict", "mild")
CRITERIA = tuple(f"criterion {n}" for n in range(1, 6))

FILL = """
CREATE TEMP TABLE j (n); INSERT INTO j VALUES (1), (2);
CREATE TEMP TABLE c (n); INSERT INTO c VALUES (1), (2), (3), (4), (5);
INSERT INTO body VALUES (900000000, x'{body}');
INSERT INTO assessment SELECT 10 * t.key + j.n, 1, t.task_key, t.key,
    (SELECT key FROM grader WHERE name = CASE j.n WHEN 1 THEN 'strict' ELSE 'mild' END),
    NULL, 1, 1, CASE WHEN t.key % 50 = 3 THEN 'superseded' WHEN t.key % 100 = 7 THEN 'rejected'
    WHEN t.key % 10 = 1 THEN 'corrected' ELSE 'approved' END, NULL, 0, 0, NULL, 900000000, '' FROM trial t, j ORDER BY 1;
INSERT INTO assessment SELECT key + 4, 1, task_key, trial_key, grader_key, NULL, 1, 2, 'approved', NULL, 0, 0, NULL,
    900000000, '' FROM assessment WHERE state = 'superseded';
INSERT INTO grade SELECT 1, a.key, (SELECT candidate_key FROM run_candidate), c.n, 1.0,
    (a.key * 7919 + c.n * 13) % 11 / 10.0, (a.key * 7919 + c.n * 13) % 11 / 10.0, 5, 0, 10, NULL
    FROM assessment a, c ORDER BY 2, 4;
INSERT INTO score SELECT 1, a.key, g.candidate_key, a.task_key, a.trial_key, a.grader_key, avg(g.value), avg(g.value), 1,
    a.state FROM assessment a JOIN grade g ON g.run_key = 1 AND g.assessment_key = a.key GROUP BY a.key ORDER BY a.key;
UPDATE score SET value = min(1.0, value + 0.2) WHERE state = 'corrected';
UPDATE trial SET state = 'approved', standing = 'counted', owner = NULL, rest = NULL;
DELETE FROM run_tally;
INSERT INTO run_tally SELECT 1, 'trial', 'approved', count(*) FROM trial;
INSERT INTO run_tally SELECT 1, 'standing', 'counted', count(*) FROM trial;
INSERT INTO run_tally SELECT 1, 'assessment', state, count(*) FROM assessment GROUP BY state;
UPDATE run SET state = 'finished', finished = started;
"""


def filled(folder: Path, trials: int) -> str:
    """A store with the run in it; its id."""
    with Workspace.open(folder, environment={}) as workspace:
        judges = tuple(
            JudgeSpec(name=name, model=ModelSpec(provider="replay", name="x")) for name in JUDGES
        )
        rubric = Rubric(criteria=tuple(Criterion(name=name) for name in CRITERIA))
        workspace.journal.open_run(replace(plan(), judges=judges, rubric=rubric), tasks(trials))
    grades = tuple(
        Grade(
            candidate="echo",
            criterion=name,
            score=0.5,
            raw_score=5,
            min_score=0,
            max_score=10,
            reason="So it is.",
        )
        for name in CRITERIA
    )
    body = assessment_bytes(
        Assessment(grades=grades, scores={"echo": 0.5}, report="It adds two numbers.")
    )
    with closing(sqlite3.connect(folder / ".assay" / "assay.db")) as connection:
        connection.executescript("BEGIN;" + FILL.format(body=body.hex()) + "COMMIT; ANALYZE;")
    return str(plan().id)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, int]]:
    """The server over the folder: its port and its process."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "assay", "serve", "--port", str(port)]
    server = subprocess.Popen(command, cwd=folder, env=dict(os.environ), stdout=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                asked(port, "/health")
                break
            except OSError:
                time.sleep(0.1)
        yield port, server.pid
    finally:
        server.terminate()
        server.wait(timeout=20)


def asked(port: int, path: str) -> tuple[float, int]:
    """Milliseconds until the whole answer is here, and its bytes."""
    began = time.perf_counter()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as line:
        line.request("GET", path, headers={"accept": "text/html"})
        answer = line.getresponse()
        body = answer.read()
    assert answer.status == 200, (path, answer.status, body[:500])
    return 1000 * (time.perf_counter() - began), len(body)


def reading(port: int, path: str) -> bool:
    """True if the figures of a view are still being read."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as line:
        line.request("GET", path.replace("/grades?", "/grades.json?"))
        return bool(json.loads(line.getresponse().read())["reading"])


def memory_mb(pid: int) -> float:
    """Resident memory of a process, where the system says it."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_ms(pid: int) -> float:
    """Return the CPU time of the process so far, which depends little on the load of the
    machine.
    """
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument(
        "--keep", help="a folder whose store is filled if it is not there, and kept"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(given.keep or name)
        folder.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        run = (
            str(plan().id)
            if (folder / ".assay" / "assay.db").exists()
            else filled(folder, given.trials)
        )
        print(f"{given.trials} trials of two judges: {time.perf_counter() - began:.0f} s to fill")
        with serving(folder) as (port, pid):
            views = (
                {},
                {"only": "differ"},
                {"only": "error"},
                {"sort": "run"},
                {"criterion": "criterion 3"},
                {"by": "people"},
                {"by": "attempts"},
                {"task": "task-500"},
                {"from": "400"},
            )
            for view in ({"floor": "yes"}, *views):
                path = (
                    "/health"
                    if "floor" in view
                    else "/compare/grades?" + urlencode({"run": run, **view})
                )
                began, cold = time.perf_counter(), asked(port, path)[0]
                while "floor" not in view and reading(port, path):
                    time.sleep(0.1)
                read = time.perf_counter() - began
                used = cpu_ms(pid)
                taken = sorted(asked(port, path)[0] for _ in range(given.times))
                p50, p95 = taken[len(taken) // 2], taken[int(len(taken) * 0.95)]
                print(
                    f"{urlencode(view) or 'as it opens':24s} cold {cold:8.1f} ms   whole run read after {read:5.1f} s"
                    f"   least {taken[0]:6.1f}   p50 {p50:7.1f}   p95 {p95:7.1f}"
                    f"   CPU {(cpu_ms(pid) - used) / given.times:6.1f} ms"
                    f"   memory {memory_mb(pid):6.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
