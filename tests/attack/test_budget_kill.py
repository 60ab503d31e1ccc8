"""Killed and concurrent processes on a run with a budget: the provider charges no more than the
budget and one call.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.journey.conftest import Command, start
from tests.support.model_server import Call, ModelServer, Said

pytestmark = pytest.mark.slow

BUDGET = 0.02
MAX_TOKENS = 50
SUITE = f"""\
name: paid
parameters: {{max_tokens: {MAX_TOKENS}}}
tasks:
  - {{id: one, prompt: Say one., score: exact, expected: one, trials: 500}}
candidates:
  - {{model: openai/small, price: {{input: 10, output: 10}}}}
"""


def test_killed_runs_do_not_pass_their_budget(
    assay: Command, server: ModelServer, project: Path
) -> None:
    (project / "paid.yaml").write_text(SUITE, "utf-8")
    charged = 0.0

    def answer(call: Call) -> Said:
        nonlocal charged
        # The provider charges what it wrote, whether or not the client lives to read it.
        charged += 10e-6 * (4 + MAX_TOKENS)
        return Said(text="one", input_tokens=4, output_tokens=MAX_TOKENS)

    server.answer = answer
    server.delay_s = 0.05
    dice = random.Random(15)
    arguments: tuple[object, ...] = ("run", "paid.yaml", "--budget", BUDGET)
    kills = 0
    for _ in range(30):
        before = server.served
        process = start(*arguments)
        wanted = before + dice.randint(1, 4)
        while process.poll() is None and server.served < wanted:
            time.sleep(0.005)
        if process.poll() is None:
            kills += 1
            process.kill()
        process.communicate()
        (run,) = assay("runs", "--json").document["runs"]
        arguments = ("resume", run["run_id"])
        if server.served == before:
            break
    last = assay("resume", run["run_id"], "--json").document
    one_call = 10e-6 * (4 + MAX_TOKENS)
    assert kills >= 3
    assert charged <= BUDGET + one_call
    assert charged <= last["budget"]["booked_usd"] + 1e-9
    assert last["paused"]["fault"] == "budget"


@pytest.mark.parametrize("steady", [0, 30, 100])
def test_processes_on_a_run_pass_its_budget_by_one_call(
    assay: Command, server: ModelServer, project: Path, steady: int
) -> None:
    """The server counts eight times the worst case from its first call on, or begins to while 20
    calls are in flight.
    """
    (project / "paid.yaml").write_text(SUITE.replace("500", "200"), "utf-8")
    charges: list[float] = []

    def answer(call: Call) -> Said:
        tokens = 4 if len(charges) < steady else 8 * 66
        charges.append(10e-6 * (tokens + MAX_TOKENS))
        return Said(text="one", input_tokens=tokens, output_tokens=MAX_TOKENS)

    server.answer = answer
    server.delay_s = 0.05
    first = start("run", "paid.yaml", "--budget", 0.1, "--concurrency", 20)
    while first.poll() is None and not server.served:
        time.sleep(0.005)
    (run,) = assay("runs", "--json").document["runs"]
    others = [start("resume", run["run_id"]) for _ in range(2)]
    for process in (first, *others):
        process.communicate()
    assert len(charges) > steady
    assert sum(charges) <= 0.1 + max(charges)
    (run,) = assay("runs", "--json").document["runs"]
    assert assay("resume", run["run_id"], "--json").document["budget"][
        "booked_usd"
    ] == pytest.approx(sum(charges))


AGENT = """\
import json, pathlib, time
with open("calls.txt", "a") as calls:
    calls.write("call\\n")
while pathlib.Path("hold").exists():
    time.sleep(0.01)
print(json.dumps({"text": "one", "cost": 0.01}))
"""
UNPRICED = """\
name: unpriced
tasks:
  - {id: one, prompt: Say one., score: exact, expected: one, trials: 40}
candidates:
  - {name: agent, command: {run: [PYTHON, agent.py], response: $.text, usage: {cost_usd: $.cost}}}
"""


def owners(project: Path) -> int:
    """Return the number of processes that work on trials."""
    with closing(sqlite3.connect(project / ".assay" / "assay.db")) as connection:
        return int(connection.execute("SELECT count(DISTINCT owner) FROM trial").fetchone()[0])


def test_unpriced_calls_of_processes_end_though_one_is_killed(
    assay: Command, project: Path
) -> None:
    """A first call without a price may cost $10, so under $5 each process waits for the calls of
    the others.
    """
    (project / "unpriced.yaml").write_text(UNPRICED.replace("PYTHON", sys.executable), "utf-8")
    (project / "agent.py").write_text(AGENT, "utf-8")
    hold, calls = project / "hold", project / "calls.txt"
    hold.touch()
    killed = start("run", "unpriced.yaml", "--budget", 5, "--concurrency", 2)
    while killed.poll() is None and not calls.exists():
        time.sleep(0.005)
    (run,) = assay("runs", "--json").document["runs"]
    others = [start("resume", run["run_id"]) for _ in range(3)]
    while owners(project) < 4:
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    hold.unlink()
    for process in others:
        process.communicate(timeout=120)
    last = assay("resume", run["run_id"], "--json").document
    assert last["trials"]["done"] == 40
    assert calls.read_text("utf-8").count("call") <= 40 + 1
    assert last["budget"]["booked_usd"] == pytest.approx(0.4)
