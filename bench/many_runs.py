"""Cost of pages in a store with many small runs: each page over HTTP, the first answer and then p50
and p95.

    python bench/many_runs.py [--runs 20000] [--requests 12] [--store sqlite:///FILE] [--only
    /registry]

All but the newest tenth of the runs are decided, so that pages which wait for that have something
to say. A store that is given by name is made where there is none, and kept.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from review_speed import ROOT, said, serving
from sqlalchemy import create_engine, make_url, text
from tests.support.waiting_store import TRIALS, fill, stored_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.identifiers import RunId

sys.path.insert(0, str(ROOT))

DECIDE = """
UPDATE assessment SET state = 'approved' WHERE run_key <= :last;
UPDATE score SET state = 'approved' WHERE run_key <= :last;
UPDATE trial SET state = 'approved', standing = 'counted' WHERE run_key <= :last;
DELETE FROM run_tally WHERE run_key <= :last;
INSERT INTO run_tally SELECT run_key, 'trial', 'approved', count(*) FROM trial WHERE run_key <= :last GROUP BY run_key;
INSERT INTO run_tally SELECT run_key, 'standing', 'counted', count(*) FROM trial WHERE run_key <= :last GROUP BY run_key;
INSERT INTO run_tally SELECT run_key, 'assessment', 'approved', count(*) FROM trial WHERE run_key <= :last GROUP BY run_key
"""

PAGES = (
    "/health",
    "/",
    "/runs.json",
    "/?before={middle}",
    "/review",
    "/review?run={waits}",
    "/api/review/next?limit=5&desk=many-{n}",
    "/api/review/next?limit=5&run={waits}&desk=run-{n}",
    "/api/review/next?limit=5&suite=waiting-3&desk=suite-{n}",
    "/api/runs",
    "/api/runs?status=finished",
    "/api/runs/{old}",
    "/runs/{old}",
    "/runs/{waits}",
    "/assessments/a7",
    "/start",
    "/compare",
    "/compare?col={old}~ada&col={old}~bruno",
    "/compare/agreement?col={old}~ada&col={old}~bruno",
    "/compare/grades",
    "/compare/grades?run={old}",
    "/statistics?run={old}",
    "/statistics",
    "/reviewers",
    "/adjudication",
    "/calibration",
    "/criteria",
    "/models",
    "/models/echo%2F",
    "/runs",
    "/runs?suite=waiting-3",
    "/runs?state=waits",
    "/runs?q=waiting-2",
    "/runs?candidate=ada",
    "/runs?before={middle}",
    "/runs/diff?a={old}&b={middle}",
    "/results/trend?suite=waiting-3",
    "/results/task?suite=waiting-3&task=task-3-0",
    "/candidates",
    "/candidates/ada",
    "/runs/{old}/record",
    "/audit",
    "/arena",
    "/arena/{old}",
    "/arena/{old}/ranking",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--requests", type=int, default=12)
    parser.add_argument("--store")
    parser.add_argument("--only", nargs="*", default=())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        url = given.store or f"sqlite:///{name}/assay.db"
        runs = made(url, given.runs)
        places = {"old": runs[0], "middle": runs[len(runs) // 2], "waits": runs[-1]}
        with serving(url, Path(name)) as port:
            for path in PAGES:
                if not given.only or path in given.only:
                    measured(port, path, places, given.requests)


def made(url: str, n: int) -> Sequence[RunId]:
    """The ids of a store with `n` runs of one task, oldest first."""
    if ids := stored_runs(url):
        return ids
    started = time.perf_counter()
    ids = fill(url, n * TRIALS, runs=n, candidates=2, lines=5)
    address = make_url(url)
    engine = create_engine(
        address.set(drivername="postgresql+psycopg") if address.host else address
    )
    with engine.begin() as connection:
        for statement in DECIDE.split(";\n"):
            connection.execute(text(statement), {"last": n - n // 10})
    engine.dispose()
    print(f"{n} runs: {time.perf_counter() - started:.1f} s to fill")
    return ids


def measured(port: int, path: str, places: dict[str, RunId], requests: int) -> None:
    """Print what one page takes over one connection; its first answer apart, since later ones may
    rest on it.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    taken, size = [], 0
    for number in range(requests):
        started = time.perf_counter()
        connection.request("GET", path.format(n=number, **places), headers={"accept": "text/html"})
        answer = connection.getresponse()
        size = len(answer.read())
        taken.append(1000 * (time.perf_counter() - started))
        if len(taken) > 2 and sum(taken) > 15_000:
            break
    connection.close()
    said(path, taken[1:], f"   first {taken[0]:6.0f} ms   {size / 1000:6.1f} kB   {answer.status}")


if __name__ == "__main__":
    main()
