"""5,000 prompts with a deterministic scorer at concurrency 50, against a bare aiohttp and sqlite3
loop on the same work.

Both are whole processes, from start to stored results, alternating in one run against one loopback
server. The bare loop commits every result, as we do before we report one; a second bare loop that
commits fifty at a time, and so may lose as many, is shown beside it. Exits 1 when the median ratio
to the first is above the promise.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROMPTS = 5_000
CONCURRENCY = 50
ROUNDS = 3
PROMISE = 2.5
SERVER = """
import sys, asyncio, orjson
from aiohttp import web
async def answer(request):
    body = orjson.loads(await request.read())
    text = body["messages"][-1]["content"].rsplit(" ", 1)[-1]
    return web.Response(body=orjson.dumps({"id": "x", "model": "bench", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": text}}], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}),
        content_type="application/json")
async def main():
    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            return _measure(folder, url)
        finally:
            server.kill()


def _measure(folder: Path, url: str) -> int:
    tasks = folder / "tasks.jsonl"
    tasks.write_text(
        "".join(
            f"{json.dumps({'id': f'q{i}', 'prompt': f'repeat the word w{i}', 'answer': f'w{i}'})}\n"
            for i in range(PROMPTS)
        )
    )
    (folder / "suite.yaml").write_text(
        "name: bench\nreview: none\nparameters: {max_tokens: 16}\ncandidates:\n"
        f"  - {{name: bench, model: vllm/bench, base_url: '{url}'}}\n"
        "tasks: {file: tasks.jsonl, map: {id: id, prompt: prompt, expected: answer}, score: exact}\n"
    )
    environment = {**os.environ, "VLLM_BASE_URL": url}
    ours = [
        sys.executable,
        "-m",
        "assay",
        "run",
        "suite.yaml",
        "--concurrency",
        str(CONCURRENCY),
        "--json",
    ]
    bare = [sys.executable, __file__, "--bare", url, str(tasks), str(folder / "bare.db")]
    figures: dict[str, list[float]] = {"assay": [], "bare": [], "bare, fifty a commit": []}
    for number in range(ROUNDS):
        rounds = (
            ("bare", [*bare, "1"]),
            ("bare, fifty a commit", [*bare, "50"]),
            ("assay", [*ours, "--store", f"round{number}.db"]),
        )
        for name, command in rounds:
            began = time.perf_counter()
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            figures[name].append(time.perf_counter() - began)
            if done.returncode:
                print(done.stdout[-2000:], done.stderr[-2000:])
                return 1
        document = json.loads(done.stdout)
        assert document["trials"]["done"] == PROMPTS, document["trials"]
    lossy = statistics.median(
        a / b for a, b in zip(figures["assay"], figures["bare, fifty a commit"], strict=True)
    )
    ratios = [a / b for a, b in zip(figures["assay"], figures["bare"], strict=True)]
    for name, seconds in figures.items():
        print(
            f"{name}: {PROMPTS / statistics.median(seconds):,.0f} prompts/s, {statistics.median(seconds):.2f} s"
        )
    ratio = statistics.median(ratios)
    print(
        f"assay takes {ratio:.2f} times the bare loop ({min(ratios):.2f} to {max(ratios):.2f}); promised: {PROMISE}"
    )
    print(f"and {lossy:.2f} times the bare loop that commits fifty at a time")
    return int(ratio > PROMISE)


async def _bare(url: str, lines: list[str], store: str, at_once: int) -> None:
    """Time the bare minimum of a run: ask, score, store."""
    import aiohttp

    connection = sqlite3.connect(store)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS result (id TEXT, text TEXT, score REAL, tokens INTEGER)"
    )
    rows = iter([json.loads(line) for line in lines])
    pending: list[tuple[str, str, float, int]] = []

    def store_pending() -> None:
        connection.executemany("INSERT INTO result VALUES (?, ?, ?, ?)", pending)
        connection.commit()
        pending.clear()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            for row in rows:
                body = {"model": "bench", "messages": [{"role": "user", "content": row["prompt"]}]}
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    answer = await response.json()
                text = answer["choices"][0]["message"]["content"]
                pending.append(
                    (
                        row["id"],
                        text,
                        float(text == row["answer"]),
                        answer["usage"]["completion_tokens"],
                    )
                )
                if len(pending) >= at_once:
                    store_pending()

        async with asyncio.TaskGroup() as group:
            for _ in range(CONCURRENCY):
                group.create_task(work())
    store_pending()
    connection.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        asyncio.run(
            _bare(
                sys.argv[2],
                Path(sys.argv[3]).read_text().splitlines(),
                sys.argv[4],
                int(sys.argv[5]),
            )
        )
    else:
        sys.exit(main())
