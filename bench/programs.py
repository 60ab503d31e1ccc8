"""Time that Assay adds to each trial of a candidate that is a program, over 1,000 prompts with 50
at once.

    PYTHONPATH=src:. python bench/programs.py [--prompts 1000] [--concurrency 50] [--rounds 3]

A trial is measured whole: claimed, asked, scored and committed. From the processor time of a run,
with that of its child processes, is taken the time of a run of `echo` in the same round, which
calls nothing, and what the program needs by itself: a Python function that returns at once needs
nothing; for `command`, the same processes started by asyncio alone; for `http`, the same requests
sent by aiohttp alone. The rest is what Assay adds to call the program, as the median of the rounds.
Processor time, unlike wall time, does not grow with other work on the machine. Exit 1 if the rest
is above 2 ms for `python` or 10 ms for `command`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aiohttp

from assay.app.runs import execution, preflight
from assay.app.workspace import Workspace
from assay.domain.run import RunOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

LIMITS_MS: Final = {"python": 2.0, "python, async": 2.0, "command": 10.0}

PROGRAM: Final = """
def answer(prompt):
    return prompt

async def later(prompt):
    return prompt
"""
SERVER: Final = """
from aiohttp import web

async def answer(request):
    return web.json_response({"out": {"text": (await request.json())["question"]}})

async def main():
    application = web.Application()
    application.router.add_post("/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()

import asyncio
asyncio.run(main())
"""


def spent_s() -> float:
    """Return the processor time of this process and of its children that have ended."""
    usages = (
        resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def run_ms(
    folder: Path, candidate: Mapping[str, object], *, prompts: int, concurrency: int
) -> float:
    """Return milliseconds of processor time a trial of a whole run."""
    tasks = [{"id": f"t{i}", "prompt": f"say {i}", "expected": f"say {i}"} for i in range(prompts)]
    (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks), "utf-8")
    suite = {
        "name": "bench",
        "candidates": [candidate],
        "score": "exact",
        "tasks": {"file": "tasks.jsonl"},
    }
    (folder / "suite.json").write_text(json.dumps(suite), "utf-8")
    store = f"sqlite:///{tempfile.mkdtemp(dir=folder)}/assay.db"
    with Workspace.open(folder, options={"store": store, "results": "off"}) as workspace:
        loaded = preflight.load(workspace.settings, folder / "suite.json")
        options = RunOptions(concurrency=concurrency)
        began = spent_s()
        result = execution.run(workspace, loaded, options)
        elapsed = spent_s() - began
    assert result.summary.trials.get("approved") == prompts, (
        result.summary.trials,
        result.failures[:1],
    )
    return elapsed * 1000 / prompts


async def bare_ms(
    ask: Callable[[int], Awaitable[object]], *, prompts: int, concurrency: int
) -> float:
    """Return milliseconds of processor time a call without Assay."""
    numbers = iter(range(prompts))

    async def worker() -> None:
        for number in numbers:
            await ask(number)

    began = spent_s()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())
    return (spent_s() - began) * 1000 / prompts


async def command_alone(*, prompts: int, concurrency: int) -> float:
    async def ask(number: int) -> None:
        process = await asyncio.create_subprocess_exec(
            "echo", f"say {number}", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        await process.communicate()

    return await bare_ms(ask, prompts=prompts, concurrency=concurrency)


async def http_alone(url: str, *, prompts: int, concurrency: int) -> float:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(number: int) -> None:
            async with session.post(url, json={"question": f"say {number}"}) as answer:
                await answer.json()

        return await bare_ms(ask, prompts=prompts, concurrency=concurrency)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompts", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    size = {"prompts": options.prompts, "concurrency": options.concurrency}
    whole: dict[str, list[float]] = {}
    alone: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as place,
        subprocess.Popen(
            [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True
        ) as server,
    ):
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        folder = Path(place)
        (folder / "app.py").write_text(PROGRAM, "utf-8")
        http = {"url": url, "body": {"question": "{{prompt}}"}, "response": "$.out.text"}
        kinds: dict[str, tuple[dict[str, object], Callable[[], float]]] = {
            "python": ({"name": "c", "python": "app.py:answer"}, lambda: 0.0),
            "python, async": ({"name": "c", "python": "app.py:later"}, lambda: 0.0),
            "command": (
                {"name": "c", "command": ["echo", "{{prompt}}"]},
                lambda: asyncio.run(command_alone(**size)),
            ),
            "http": ({"name": "c", "http": http}, lambda: asyncio.run(http_alone(url, **size))),
        }
        echo: list[float] = []
        for _ in range(options.rounds):
            echo.append(run_ms(folder, {"name": "c", "model": "echo"}, **size))
            for kind, (candidate, own) in kinds.items():
                alone.setdefault(kind, []).append(own())
                whole.setdefault(kind, []).append(run_ms(folder, candidate, **size))
        server.terminate()
    print(f"echo: {statistics.median(echo):.2f} ms a trial, which is taken from the others")
    added = {
        kind: statistics.median(
            all_in - own - nothing
            for all_in, own, nothing in zip(times, alone[kind], echo, strict=True)
        )
        for kind, times in whole.items()
    }
    for kind, rest in added.items():
        bound = f" (limit {LIMITS_MS[kind]:g} ms)" if kind in LIMITS_MS else ""
        middle, own = statistics.median(whole[kind]), statistics.median(alone[kind])
        print(
            f"{kind}: {rest:.2f} ms added a trial{bound}; {middle:.2f} whole, {own:.2f} by itself"
        )
    return int(any(added[kind] > limit for kind, limit in LIMITS_MS.items()))


if __name__ == "__main__":
    sys.exit(main())
