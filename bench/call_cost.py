"""CPU time that `complete` adds to a bare aiohttp request, measured in turns against one loopback
server.

    PYTHONPATH=src:. python bench/call_cost.py [--calls 3000] [--concurrency 50] [--rounds 5]
    [--limit-ms 0.1]

Only this process's CPU counts; the server runs in another. Exit 1 when the median of what is added
is above the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import aiohttp

from assay.domain.calls import ModelRequest, Purpose, Role
from assay.domain.model import DEFAULTS, ModelSpec
from assay.domain.suite import Message
from assay.providers.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Ask = Callable[[int], Awaitable[object]]

PROMPT = "Reverse the words of this sentence and say nothing else: the quick brown fox jumps over the lazy dog."


async def in_flight(ask: Ask, *, calls: int, concurrency: int) -> tuple[float, float]:
    """CPU and wall milliseconds a call, with that many calls under way at once."""
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            await ask(number)

    cpu, wall = process_time(), perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())
    return (process_time() - cpu) * 1000 / calls, (perf_counter() - wall) * 1000 / calls


async def measure(url: str, *, calls: int, concurrency: int, rounds: int) -> dict[str, Any]:
    """Milliseconds a call, bare and through a provider, the two taking turns."""
    directory = Directory(
        {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-bench"}, base_folder=Path()
    )
    model = ModelSpec(provider="openai", name="gpt-4o-mini")
    provider = directory.provider(model)
    bare_body = {
        "model": model.name,
        "messages": [{"role": "user", "content": PROMPT}],
        **DEFAULTS.as_json(),
    }

    async def through_provider(number: int) -> object:
        return await provider.complete(
            ModelRequest(
                model=model,
                messages=(Message(role="user", content=PROMPT),),
                parameters=DEFAULTS,
                purpose=Purpose(role=Role.CANDIDATE, task="t", trial=number + 1),
            )
        )

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def bare(_: int) -> object:
            async with session.post(f"{url}/chat/completions", json=bare_body) as response:
                return (await response.json())["choices"][0]["message"]["content"]

        await in_flight(bare, calls=200, concurrency=concurrency)
        # loads the price list as well
        await in_flight(through_provider, calls=200, concurrency=concurrency)
        cpu: dict[str, list[float]] = {"bare": [], "provider": []}
        wall: dict[str, list[float]] = {"bare": [], "provider": []}
        for number in range(rounds):
            turn = [("bare", bare), ("provider", through_provider)]
            for name, ask in turn if number % 2 == 0 else reversed(turn):
                cpu_ms, wall_ms = await in_flight(ask, calls=calls, concurrency=concurrency)
                cpu[name].append(cpu_ms)
                wall[name].append(wall_ms)
    await directory.close()
    added = [
        with_us - without for with_us, without in zip(cpu["provider"], cpu["bare"], strict=True)
    ]
    return {
        "calls": calls,
        "concurrency": concurrency,
        "rounds": rounds,
        "cpu_ms": {name: round(statistics.median(values), 4) for name, values in cpu.items()},
        "wall_ms": {name: round(statistics.median(values), 4) for name, values in wall.items()},
        "added_cpu_ms": round(statistics.median(added), 4),
        "added_cpu_ms_range": [round(min(added), 4), round(max(added), 4)],
    }


def main() -> int:
    """Run the server beside, measure, print one JSON document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--limit-ms", type=float, default=0.1, help="the most CPU that may be added a call"
    )
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.model_server", "--port", "0", "--answer", "42"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip() + "/v1"
        costs = asyncio.run(
            measure(
                url, calls=options.calls, concurrency=options.concurrency, rounds=options.rounds
            )
        )
    finally:
        server.terminate()
        server.wait()
    print(json.dumps(costs, indent=2))
    return 0 if costs["added_cpu_ms"] <= options.limit_ms else 1


if __name__ == "__main__":
    sys.exit(main())
