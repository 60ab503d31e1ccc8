"""How fast review is with 100,000 items waiting: key to next item painted in a real browser, and
the server's time.

    python bench/review_speed.py [--assessments 100000] [--runs 1] [--approvals 200] [--lines 30]
                                 [--width 60] [--candidates 3] [--words 2000] [--store URL]
                                 [--requests 60]

A store that is given by name is kept. A file that exists is used as it is; each run decides some
hundred of its assessments.

The floor stands beside each figure, from the same run: for the keys an empty page that changes one
word, for the server `/health`. A key's time goes from the event's own time stamp to the moment
after the frame in which the next item is on the page.
"""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.browser import browser  # noqa: E402 # they stand beside this folder
from tests.support.waiting_store import fill, stored_runs  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

PAINTED = """(was) => {
  window.taken = [];
  addEventListener("keydown", (event) => {
    const before = was();
    const look = () => {
      if (was() === before) return requestAnimationFrame(look);
      const channel = new MessageChannel();
      channel.port1.onmessage = () => taken.push(performance.now() - event.timeStamp);
      channel.port2.postMessage(null);
    };
    requestAnimationFrame(look);
  }, true);
}"""
EMPTY = "<!doctype html><title>floor</title><p id=word>0</p>"
CHANGES = "addEventListener('keydown', () => { word.textContent = Number(word.textContent) + 1; });"
LINE = {
    "offline": False,
    "latency": 100,
    "downloadThroughput": 125_000,
    "uploadThroughput": 125_000,
}
THINK_MS = 250
"""Between keys; nobody reads as fast."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assessments", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--approvals", type=int, default=200)
    parser.add_argument("--lines", type=int, default=30)
    parser.add_argument("--width", type=int, default=60)
    parser.add_argument(
        "--words", type=int, default=0, help="of Markdown in each response, in place of code"
    )
    parser.add_argument("--candidates", type=int, default=3)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--store")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        url = given.store or f"sqlite:///{name}/assay.db"
        started = time.perf_counter()
        ids = stored_runs(url) or fill(
            url,
            given.assessments,
            runs=given.runs,
            candidates=given.candidates,
            lines=given.lines,
            width=given.width,
            words=given.words,
        )
        print(
            f"{given.assessments} waiting in {len(ids)} runs: {time.perf_counter() - started:.1f} s to fill or find"
        )
        with serving(url, Path(name)) as port:
            server(port, ids[-1], given.requests)
            if given.approvals:
                keys(port, given.approvals)
            slowly(port)


def keys(port: int, approvals: int) -> None:
    with browser() as running:
        page = running.new_page(viewport={"width": 1360, "height": 800})
        page.set_content(EMPTY)
        page.evaluate(f"() => {{ {CHANGES} }}")
        page.evaluate(f"() => ({PAINTED})(() => word.textContent)")
        press(page, approvals)
        said("key: an empty page changes a word", page.evaluate("taken"))
        started = time.perf_counter()
        page.goto(f"http://127.0.0.1:{port}/review")
        page.wait_for_selector("#item:not([hidden])")
        print(
            f"review opened, first item on the page: {1000 * (time.perf_counter() - started):.0f} ms"
        )
        page.wait_for_timeout(500)
        page.evaluate(f"() => ({PAINTED})(() => document.getElementById('item').dataset.id)")
        press(page, approvals, key="a")
        said("key: approved, next item painted", page.evaluate("taken"))
        page.wait_for_function(
            "() => !Object.keys(localStorage).some(key => key.startsWith('assay.outbox.'))"
        )


def slowly(port: int) -> None:
    """Pages with nothing kept in the browser over 1 Mbit/s with 100 ms to and fro."""
    with browser() as running:
        for path, ready in (
            ("/", ".run, [data-run]"),
            ("/review", "#item:not([hidden])"),
            ("/statistics", "main"),
        ):
            page = running.new_page(viewport={"width": 1360, "height": 800})
            network = page.context.new_cdp_session(page)
            network.send("Network.enable")
            network.send("Network.emulateNetworkConditions", LINE)
            sent: list[float] = []
            network.on(
                "Network.loadingFinished",
                lambda event, sent=sent: sent.append(event["encodedDataLength"]),
            )
            started = time.perf_counter()
            page.goto(f"http://127.0.0.1:{port}{path}", wait_until="commit")
            page.wait_for_selector(ready)
            taken = 1000 * (time.perf_counter() - started)
            page.wait_for_load_state("load")
            print(
                f"1 Mbit/s: {path:12s} there after {taken:5.0f} ms   {sum(sent) / 1000:.0f} kB",
                flush=True,
            )
            page.close()


def press(page: Page, times: int, key: str = "b") -> None:
    for _ in range(times):
        page.keyboard.press(key)
        page.wait_for_timeout(THINK_MS)
    page.wait_for_timeout(1000)
    if (painted := page.evaluate("taken.length")) != times:
        print(
            f"{times - painted} of {times} keys came before the item was ready, and decided nothing"
        )


def server(port: int, run: str, requests: int) -> None:
    for where in ("/health", "/", "/runs.json", "/review"):
        ask(port, "GET", where, requests)
    suite, judge = run.split("-")[1], "strict"
    for number, query in enumerate(
        ("", f"&run={run}", f"&suite=waiting-{int(suite) % 7}", "&task=task-0-0", f"&judge={judge}")
    ):
        ask(
            port,
            "GET",
            "/api/review/next?limit=5" + query + f"&desk=bench-{number}-{{n}}",
            requests,
        )
    items = Items(port, requests)
    ask(port, "POST", "/api/decisions", requests, items.body)


class Items:
    """Items to approve, each once."""

    def __init__(self, port: int, n: int) -> None:
        self.ids: list[str] = []
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        import json

        for number in range(-(-n // 20)):
            connection.request("GET", f"/api/review/next?limit=20&desk=items-{number}")
            self.ids += [
                item["id"] for item in json.loads(connection.getresponse().read())["items"]
            ]
        connection.close()

    def body(self, n: int) -> str:
        return f'{{"decisions": [{{"key": "bench-{n:06d}", "id": "{self.ids[n]}", "verb": "approve"}}]}}'


def ask(port: int, method: str, path: str, times: int, body: Any = None) -> None:
    """Print how long the server took over one connection; the first answers, which fill what it
    remembers, apart.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    taken, size = [], 0
    for number in range(times):
        sent = None if body is None else body(number)
        headers = {} if body is None else {"content-type": "application/json"}
        started = time.perf_counter()
        connection.request(method, path.replace("{n}", str(number)), sent, headers)
        answer = connection.getresponse()
        size = len(answer.read())
        taken.append(1000 * (time.perf_counter() - started))
        assert answer.status == 200, (path, answer.status)
    connection.close()
    said(
        f"{method} {path.replace('-{n}', '')}",
        taken[1:],
        f"   first {taken[0]:.0f} ms   {size / 1000:.1f} kB",
    )


def said(name: str, taken: list[float], more: str = "") -> None:
    ordered = sorted(taken)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95, 0.99)]
    print(f"{name:62s} p50 {at[0]:7.1f}   p95 {at[1]:7.1f}   p99 {at[2]:7.1f} ms{more}", flush=True)


@contextmanager
def serving(url: str, folder: Path) -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    command = [sys.executable, "-m", "assay", "serve", "--port", str(port), "--store", url]
    process = subprocess.Popen(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}
    )
    try:
        for _ in range(200):
            try:
                http.client.HTTPConnection("127.0.0.1", port, timeout=1).request("GET", "/health")
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(20)


if __name__ == "__main__":
    main()
