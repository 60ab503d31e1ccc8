"""50,000 requests through one batch: submit and collect, beside a bare loop on the same lines, and
beside a live run.

All are whole processes against one loopback server. The bare loop reads the tasks, writes the
lines, uploads them, creates the batch, downloads the answers and stores them in one table of
SQLite, and does nothing else. Times are of processors (user and system), because a busy machine
stretches the others. Exits 1 if submit and collect take more than a live run of the same tasks, or
more than `MAX_MB` of memory. The ratio to the bare loop is printed: 3 was asked for, 20 was
measured. Starting two processes took 1.8 times the bare loop, and inserting the rows in SQLite
alone 1.6 times; the last line prints both. The rest is Python that turns each line into a dozen
rows. `--requests N` takes another number.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

REQUESTS = 50_000
MAX_MB = 300
SERVER = """
import asyncio, orjson
from aiohttp import web
files, batches = {}, {}
def answered(line):
    row = orjson.loads(line)
    text = row["body"]["messages"][-1]["content"].rsplit(" ", 1)[-1]
    body = {"id": "x", "model": "bench", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": text}}], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
    return orjson.dumps({"id": "b", "custom_id": row["custom_id"], "error": None,
        "response": {"status_code": 200, "request_id": "r", "body": body}})
async def upload(request):
    reader = await request.multipart()
    while (part := await reader.next()) is not None:
        if part.name == "file":
            lines = bytes(await part.read()).splitlines()
    files["in"] = len(lines)
    files["out"] = b"\\n".join(answered(line) for line in reversed(lines)) + b"\\n"
    return web.json_response({"id": "in"})
async def chat(request):
    row = orjson.loads(await request.read())
    line = orjson.dumps({"custom_id": "x", "body": row})
    return web.json_response(orjson.loads(answered(line))["response"]["body"])
async def create(request):
    return web.json_response({"id": "batch_1", "status": "in_progress"})
async def look(request):
    counts = {"total": files["in"], "completed": files["in"], "failed": 0}
    return web.json_response({"id": "batch_1", "status": "completed", "output_file_id": "out", "request_counts": counts})
async def content(request):
    return web.Response(body=files["out"])
async def main():
    app = web.Application(client_max_size=2**30)
    app.add_routes([web.post("/v1/files", upload), web.post("/v1/batches", create),
        web.post("/v1/chat/completions", chat), web.get("/v1/batches/batch_1", look),
        web.get("/v1/files/out/content", content)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--bare", nargs=3)
    chosen = parser.parse_args()
    if chosen.bare:
        _bare(*chosen.bare)
        return 0
    with tempfile.TemporaryDirectory() as place:
        server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            return _measure(
                Path(place), f"http://127.0.0.1:{int(server.stdout.readline())}/v1", chosen.requests
            )
        finally:
            server.kill()


def _measure(folder: Path, url: str, requests: int) -> int:
    rows = (
        {"id": f"q{i}", "prompt": f"repeat the word w{i}", "answer": f"w{i}"}
        for i in range(requests)
    )
    (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "suite.yaml").write_text(
        "name: bench\nreview: none\nparameters: {max_tokens: 16}\ncandidates: [openai/bench]\n"
        "tasks: {file: tasks.jsonl, map: {id: id, prompt: prompt, expected: answer}, score: exact}\n"
    )
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "sk-bench",
        "ASSAY_RESULTS": "off",
    }
    # As in an installed package: without bytecode, each process would compile Assay first.
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", Path(__file__).parents[1] / "src"], check=True
    )
    bare_s, bare_mb, _ = _timed(
        [sys.executable, __file__, "--bare", url, "tasks.jsonl", "bare.db"], folder, environment
    )
    assay = [sys.executable, "-m", "assay", "batch"]
    submit_s, submit_mb, out = _timed(
        [*assay, "submit", "suite.yaml", "--json"], folder, environment
    )
    run = json.loads(out)["run"]["run_id"]
    collect_s, collect_mb, out = _timed([*assay, "collect", run, "--json"], folder, environment)
    (document,) = json.loads(out)["runs"]
    assert document["run"]["trials"]["done"] == requests, document["run"]["trials"]
    start_s, _, _ = _timed([*assay, "status", "--json"], folder, environment)
    live = [
        sys.executable,
        "-m",
        "assay",
        "run",
        "suite.yaml",
        "--concurrency",
        "50",
        "--json",
        "--store",
        "live.db",
    ]
    live_s, live_mb, out = _timed(live, folder, environment)
    assert json.loads(out)["trials"]["done"] == requests
    both_s = submit_s + collect_s
    print(
        f"bare loop: {bare_s:.1f} s, {bare_mb:.0f} MB; live run: {live_s:.1f} s, {live_mb:.0f} MB"
    )
    print(
        f"submit: {submit_s:.1f} s, {submit_mb:.0f} MB; collect: {collect_s:.1f} s, {collect_mb:.0f} MB"
    )
    print(
        f"{both_s / bare_s:.1f} times the bare loop; {both_s / live_s:.2f} times the live run, promised: 1"
    )
    print(f"promised: less than {MAX_MB} MB")
    print(
        f"part of it: starting twice {2 * start_s:.1f} s; inserting the rows in SQLite {_storing_s(folder):.1f} s"
    )
    return int(both_s > live_s or max(submit_mb, collect_mb) > MAX_MB)


def _storing_s(folder: Path) -> float:
    """Return the seconds of processors in which SQLite alone inserts the rows of the run."""
    with (
        sqlite3.connect(folder / ".assay" / "assay.db") as source,
        sqlite3.connect(folder / "rows.db") as target,
    ):
        made = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'index') ORDER BY type DESC"
        objects = [
            row for row in source.execute(made).fetchall() if not row[1].startswith("sqlite_")
        ]
        for _, _, sql in objects:
            target.execute(sql)
        rows = {
            name: source.execute(f"SELECT * FROM {name}").fetchall()
            for kind, name, _ in objects
            if kind == "table"
        }
        began = time.process_time()
        for name, of_table in rows.items():
            if of_table:
                target.executemany(
                    f"INSERT INTO {name} VALUES ({', '.join('?' * len(of_table[0]))})", of_table
                )
        target.commit()
        return time.process_time() - began


def _timed(
    command: list[str], folder: Path, environment: dict[str, str]
) -> tuple[float, float, str]:
    """Run a command; return its seconds of processors, its largest memory in MB, and what it
    printed.
    """
    with (folder / "out").open("w+") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, status
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.read()


def _bare(url: str, tasks: str, store: str) -> None:
    """Write the lines, send them, read the answers and store them."""
    expected = {}
    with open(tasks) as source, open("bare.jsonl", "w") as target:
        for number, line in enumerate(source):
            row = json.loads(line)
            expected[str(number)] = row["answer"]
            messages = [{"role": "user", "content": row["prompt"]}]
            body = {
                "model": "bench",
                "messages": messages,
                "max_tokens": 16,
                "temperature": 0.7,
                "top_p": 1.0,
                "seed": number,
            }
            request = {
                "custom_id": str(number),
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": body,
            }
            target.write(json.dumps(request) + "\n")
    with open("bare.jsonl", "rb") as lines:
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        form = head + lines.read() + b"\r\n--b--\r\n"
    _ask(f"{url}/files", form, {"Content-Type": "multipart/form-data; boundary=b"})
    _ask(f"{url}/batches", b"{}", {})
    _ask(f"{url}/batches/batch_1")
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE result (id TEXT, text TEXT, score REAL, tokens INTEGER)")
    rows = []
    for answer in _ask(f"{url}/files/out/content").splitlines():
        row = json.loads(answer)
        body = row["response"]["body"]
        text = body["choices"][0]["message"]["content"]
        score = float(text == expected[row["custom_id"]])
        rows.append((row["custom_id"], text, score, body["usage"]["completion_tokens"]))
    connection.executemany("INSERT INTO result VALUES (?, ?, ?, ?)", rows)
    connection.commit()


def _ask(url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, body, headers or {})) as answer:
        content: bytes = answer.read()
        return content


if __name__ == "__main__":
    sys.exit(main())
