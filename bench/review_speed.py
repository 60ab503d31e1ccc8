"""How fast review is when much waits: key to next item painted in a real browser, and what the server takes.

    python bench/review_speed.py [--pending 100000] [--store FOLDER]

The store is made by running a set with a recorded judge (about two minutes for 100,000; `--store` keeps it for another time).
Beside it stands an empty page that changes one word at each key, measured in the same browser right before: what the browser
itself takes. Times of the server are those of a client on this machine, beside `/health`, which does nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

TRIALS = 50
NAMES = ("ada", "bruno", "chen")
CRITERIA = ("integrity", "data_flow", "maintainability", "fitness")
PRESSES = 200

EMPTY_PAGE = """() => {
  document.body.textContent = "0";
  window.taken = [];
  addEventListener("keydown", (event) => {
    document.body.textContent = String(window.taken.length + 1);
    requestAnimationFrame(() => setTimeout(() => window.taken.push(performance.now() - event.timeStamp)));
  });
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pending", type=int, default=100_000)
    parser.add_argument("--store", type=Path, help="a folder to keep the store in, or one kept before")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.store or Path(scratch)
        if not (folder / ".assay").exists():
            fill(folder, asked.pending)
        with serving(folder) as url:
            server(url)
            browser(url)


def fill(folder: Path, pending: int) -> None:
    """Run a set of `pending` trials with a recorded judge; 60 lines of code a candidate."""
    folder.mkdir(parents=True, exist_ok=True)
    code = "\n".join(f"def step_{line}(value):  # {{name}}\n    return value + {line}" for line in range(30))
    things = [
        {
            "thingName": f"Thing {number}", "context": "Nothing may enter twice.", "language": "python", "trialsNeeded": TRIALS,
            "snippets": [{"name": name, "content": code.format(name=name) + f"\n# {number}\n"} for name in NAMES],
        }
        for number in range(max(1, pending // TRIALS))
    ]  # fmt: skip
    (folder / "things.json").write_text(json.dumps(things), "utf-8")
    grades = {
        f"{{{{label:{name}}}}}": {
            criterion: {
                "score": 5 + place,
                "reason": f"`return value + {place}` holds.",
                "evidence": [f"return value + {place}"],
            }
            for criterion in CRITERIA
        }
        for place, name in enumerate(NAMES)
    }
    reply = {
        "match": {"role": "judge"},
        "reply": {"text": json.dumps({"candidates": grades, "report": "As it stands."})},
    }
    (folder / "judge.jsonl").write_text(json.dumps(reply), "utf-8")
    started = time.perf_counter()
    command = [sys.executable, "-m", "assay", "run", "things.json", "--judge", "replay/judge.jsonl", "--json"]
    subprocess.run(
        command, cwd=folder, env=environment(), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    print(f"{pending} trials run and judged: {time.perf_counter() - started:.0f} s")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """`assay serve` as a process of its own."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "assay", "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            with suppress(OSError):
                urllib.request.urlopen(f"{url}/health", timeout=1).close()
                break
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def server(url: str) -> None:
    """Times of requests, in the order in which a reviewer's browser makes them."""
    run = get(url, "/api/runs")["runs"][0]
    print(f"waiting: {run['assessments']['pending']}")
    timed("/health, which does nothing", lambda _: get(url, "/health"))
    timed("first page of the process", lambda _: page_of(url, "/"), times=1)
    timed("queue page", lambda _: page_of(url, "/"))
    timed("run page, 100 tasks", lambda _: page_of(url, f"/runs/{run['run_id']}"), times=20)
    timed("review page", lambda _: page_of(url, "/review"))
    timed(
        "first five to review of the process", lambda i: get(url, f"/api/review/next?desk=first-{i}&limit=5"), times=1
    )
    timed("five to review", lambda i: get(url, f"/api/review/next?desk=five-{i}&limit=5"))
    for name in ("run", "suite", "task", "judge"):
        value = {"run": run["run_id"], "suite": "things", "task": "thing-7", "judge": "replay/judge.jsonl"}[name]
        timed(f"five to review of a {name}", lambda i, q=f"{name}={value}": get(
            url, f"/api/review/next?desk={q[:4]}-{i}&{q}&limit=1"))  # fmt: skip
    items = [get(url, f"/api/review/next?desk=decide-{i}&limit=1")["items"][0]["id"] for i in range(100)]

    def decide(number: int) -> None:
        decision = {
            "key": f"bench-{number:06d}-{time.time_ns()}",
            "id": items[number],
            "verb": "approve",
            "active_ms": 900,
        }
        post(url, "/api/decisions", {"decisions": [decision]})

    timed("one decision", decide, times=len(items))


def browser(url: str) -> None:
    """Key to paint, on an empty page and in review."""
    with sync_playwright() as playwright:
        path = next(
            p for p in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome") if os.path.exists(p)
        )
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page(viewport={"width": 1360, "height": 800})
        page.goto("about:blank")
        page.evaluate(EMPTY_PAGE)
        for _ in range(PRESSES):
            page.keyboard.press("a")
            page.wait_for_timeout(60)
        show("key to paint, empty page", page.evaluate("() => window.taken"))
        page.goto(f"{url}/review")
        ready(page)
        for _ in range(PRESSES):
            page.keyboard.press("a")
            page.wait_for_timeout(60)
            ready(page)
        measures = "() => performance.getEntriesByName('assay:key-to-next').map((one) => one.duration)"
        show("key to next item painted", page.evaluate(measures))
        page.wait_for_function("() => JSON.parse(localStorage.getItem('assay.outbox.1') ?? '[]').length === 0")
        chromium.close()


def ready(page: Page) -> None:
    page.wait_for_selector("#item:not([hidden])")
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
    )


def timed(name: str, what: Any, *, times: int = 60) -> None:
    taken = []
    for number in range(times):
        started = time.perf_counter()
        what(number)
        taken.append(1000 * (time.perf_counter() - started))
    show(name, taken)


def show(name: str, taken: list[float]) -> None:
    found = sorted(taken)
    at = {share: found[min(len(found) - 1, int(len(found) * share))] for share in (0.5, 0.95, 0.99)}
    print(
        f"{name:38s} n {len(found):4d}   p50 {at[0.5]:7.1f}   p95 {at[0.95]:7.1f}   p99 {at[0.99]:7.1f} ms", flush=True
    )


def page_of(url: str, path: str) -> bytes:
    with urllib.request.urlopen(url + path, timeout=60) as answer:
        return bytes(answer.read())


def get(url: str, path: str) -> Any:
    return json.loads(page_of(url, path))


def post(url: str, path: str, body: Any) -> None:
    asked = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    urllib.request.urlopen(asked, timeout=60).close()


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}


if __name__ == "__main__":
    main()
