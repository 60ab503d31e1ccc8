"""Memory and answers of a server with 100,000 trials under load: readers of every page, or thirty
people who review.

    python bench/server_load.py read [--requests 16000] [--clients 6] [--trials 100000] [--store
    URL] python bench/server_load.py review [--seconds 300] [--reviewers 30] [--trials 100000]
    [--store URL]

`read` asks for pages, documents and reports with changing filters. `review` reads items and decides
them, each reviewer with a pause between two decisions. Both print the server's memory as it goes
on, and how many requests failed. `read` exits 1 if the server's memory ever exceeds 400 MB,
`review` if a request failed or if memory still rises after the first minute.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, make_url, text

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.waiting_store import fill, stored_runs  # noqa: E402 # they stand beside this folder

if TYPE_CHECKING:
    from collections.abc import Iterator

PROMISED_MB = 400
SEED = 20261124
PAUSE_S = 1.0
"""Mean pause of a reviewer between two decisions."""

_APPROVE_HALF = (
    "UPDATE assessment SET state = 'approved' WHERE key % 2 = 0",
    "UPDATE score SET state = 'approved' WHERE assessment_key % 2 = 0",
    "UPDATE trial SET state = 'approved' WHERE key % 2 = 0",
    "DELETE FROM run_tally WHERE subject IN ('trial', 'assessment')",
    "INSERT INTO run_tally SELECT run_key, 'trial', state, count(*) FROM trial GROUP BY run_key, state",
    "INSERT INTO run_tally SELECT run_key, 'assessment', state, count(*) FROM assessment GROUP BY run_key, state",
)
PAGES = (
    "/",
    "/runs.json?start={hundred}",
    "/results?suite={suite}",
    "/results?suite={suite}&a=ada&b=bruno&from={hundred}",
    "/statistics.json?suite={suite}",
    "/statistics/behind?suite={suite}",
    "/statistics/trials?suite={suite}&candidate=ada",
    "/statistics/tables/tasks.csv?suite={suite}",
    "/results?run={run}&task={task}",
    "/statistics.json?run={run}&task={task}",
    "/runs/{run}",
    "/runs/{run}.json",
    "/review?run={run}",
    "/api/review/next?limit=5&run={run}&desk={desk}",
    "/assessments/a{item}",
    "/api/assessments/a{item}",
    "/openapi.json",
    "/candidates/ada",
    "/nowhere/{item}",
)
REPORTS = (
    "/results/report.html?suite={suite}",
    "/results/report.md?suite={suite}",
    "/results/report.csv?suite={suite}",
)


class Figures:
    """Seconds of each kind of request, and the statuses of those that failed. Thread-safe."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failed: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def add(self, kind: str, seconds: float, status: int) -> None:
        with self._lock:
            self.seconds[kind].append(seconds)
            if status >= 500 or status == 0:
                self.failed[f"{kind} {status}"] += 1

    def __str__(self) -> str:
        lines = []
        for kind, seconds in sorted(self.seconds.items()):
            ordered = sorted(seconds)
            middle, late = (
                ordered[len(ordered) // 2],
                ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))],
            )
            times = "  ".join(
                f"{name} {1000 * value:8.1f}"
                for name, value in (("p50", middle), ("p95", late), ("most", ordered[-1]))
            )
            lines.append(f"{kind:60s} n {len(ordered):6d}  {times} ms")
        lines.append(f"failed requests: {dict(self.failed) or 'none'}")
        return "\n".join(lines)


class Client:
    """One connection to the server, opened again after an error."""

    def __init__(self, port: int, figures: Figures, cookie: str = "") -> None:
        self._port, self._figures, self._cookie = port, figures, cookie
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, kind: str, path: str, body: object = None) -> bytes:
        headers = {"sec-fetch-site": "same-origin", "accept": "text/html, application/json"}
        if self._cookie:
            headers["cookie"] = self._cookie
        if body is not None:
            headers["content-type"] = "application/json"
        began, status, content = time.perf_counter(), 0, b""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
            sent = None if body is None else json.dumps(body)
            self._connection.request("GET" if body is None else "POST", path, sent, headers)
            answer = self._connection.getresponse()
            content, status = answer.read(), answer.status
        except OSError:
            self._connection = None
        self._figures.add(kind, time.perf_counter() - began, status)
        return content


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("read", "review"))
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=16_000)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--reviewers", type=int, default=30)
    parser.add_argument("--store")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        url = given.store or f"sqlite:///{name}/assay.db"
        runs = stored_runs(url) or filled(url, given.trials)
        with serving(url, Path(name)) as (port, process):
            print(
                f"{given.trials:,} trials; server at start: {resident_mb(process):.0f} MB",
                flush=True,
            )
            if given.what == "read":
                return read(port, process, runs, given.requests, given.clients)
            return review(port, process, given.seconds, given.reviewers)


def filled(url: str, trials: int) -> list[str]:
    """Fill a store with four runs of trials, and approve half of their grades."""
    runs = fill(url, trials, runs=4, lines=10)
    address = make_url(url)
    if address.get_backend_name() == "postgresql":
        address = address.set(drivername="postgresql+psycopg")
    engine = create_engine(address)
    with engine.begin() as connection:
        for statement in _APPROVE_HALF:
            connection.execute(text(statement))
    engine.dispose()
    return [str(run) for run in runs]


def read(port: int, process: int, runs: list[str], requests: int, clients: int) -> int:
    figures, numbers, most = Figures(), itertools.count(), [0.0]

    def work(seed: int) -> None:
        draw, client = random.Random(SEED + seed), Client(port, figures)
        while (number := next(numbers)) < requests:
            # One request of a hundred is for a report; every client starts with one, so that they
            # overlap.
            pattern = draw.choice(REPORTS if number < clients or number % 100 == 0 else PAGES)
            run = draw.choice(runs)
            suite, index = f"waiting-{int(run.split('-')[1]) % 7}", runs.index(run)
            named = {
                "suite": suite,
                "run": run,
                "task": f"task-{index}-{draw.randrange(1000)}",
                "item": draw.randrange(1, 50_000),
                "hundred": 100 * draw.randrange(5),
                "desk": f"desk-{seed}",
            }
            client.ask(pattern, pattern.format(**named))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(clients)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(timeout=5 / clients)
        now = resident_mb(process)
        most[0] = max(most[0], now)
        print(
            f"{time.monotonic() - began:5.0f} s  {sum(map(len, figures.seconds.values())):6d} requests  {now:.0f} MB",
            flush=True,
        )
    time.sleep(3)
    print(figures)
    print(
        f"most: {most[0]:.0f} MB, at the end {resident_mb(process):.0f} MB; promised: {PROMISED_MB} MB"
    )
    return int(most[0] > PROMISED_MB or bool(figures.failed))


def review(port: int, process: int, seconds: int, reviewers: int) -> int:
    idle, figures, memory = Figures(), Figures(), []
    decide_until(time.monotonic() + 10, port, idle, "idle", pause_s=0.2)
    print("an idle server, one reviewer:", idle, sep="\n", flush=True)
    began = time.monotonic()
    threads = [
        threading.Thread(target=decide_until, args=(began + seconds, port, figures, f"reviewer{n}"))
        for n in range(reviewers)
    ]
    for thread in threads:
        thread.start()
    while time.monotonic() < began + seconds:
        time.sleep(10)
        memory.append((time.monotonic() - began, resident_mb(process)))
        print(
            f"{memory[-1][0]:5.0f} s  {len(figures.seconds['decision']):6d} decisions  {memory[-1][1]:.0f} MB",
            flush=True,
        )
    for thread in threads:
        thread.join()
    print(figures)
    after = [mb for at, mb in memory if at > 60]
    rise = after[-1] - after[0] if after else 0.0
    print(
        f"memory after the first minute: {after[0]:.0f} MB, at the end {after[-1]:.0f} MB"
        if after
        else "shorter than a minute"
    )
    return int(bool(figures.failed) or rise > 0.1 * (after[0] if after else 1))


def decide_until(
    end: float, port: int, figures: Figures, name: str, *, pause_s: float = PAUSE_S
) -> None:
    """Review as one person: fetch items, open each, decide it."""
    client, draw, number = (
        Client(port, figures, f"assay_reviewer={name}"),
        random.Random(name),
        itertools.count(),
    )
    while time.monotonic() < end:
        items = json.loads(
            client.ask("next items", f"/api/review/next?limit=5&desk={name}") or b"{}"
        ).get("items", [])
        for item in items:
            if time.monotonic() >= end:
                return
            time.sleep(draw.uniform(0, 2 * pause_s))
            decision = {
                "key": f"{name}-{next(number):06d}-{item['id']}",
                "id": item["id"],
                "verb": "approve",
                "reviewer": name,
            }
            answer = json.loads(
                client.ask("decision", "/api/decisions", {"decisions": [decision]}) or b"{}"
            )
            if not all(result.get("ok") for result in answer.get("results", [{}])):
                figures.failed[f"decision refused: {json.dumps(answer)[:300]}"] += 1


def resident_mb(process: int) -> float:
    """Return the memory of a process in MB."""
    fields = Path(f"/proc/{process}/statm").read_text("ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _wait_for(port: int) -> None:
    """Wait until a server answers; raises TimeoutError after two minutes."""
    for _ in range(1200):
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=1).request("GET", "/health")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the server did not answer within two minutes")


@contextmanager
def serving(url: str, folder: Path) -> Iterator[tuple[int, int]]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    command = [sys.executable, "-m", "assay", "serve", "--port", str(port), "--store", url]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        try:
            _wait_for(port)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(20)


if __name__ == "__main__":
    sys.exit(main())
