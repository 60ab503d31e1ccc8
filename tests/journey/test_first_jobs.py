"""Ten jobs of a newcomer, from an empty folder, with the commands and files of
docs/how-to/first-jobs.md and no others.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.batch_server import BatchServer
from tests.support.model_server import generic_answer
from tests.support.terminal import terminal

if TYPE_CHECKING:
    from tests.journey.conftest import Command
    from tests.support.model_server import Call, ModelServer

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs/how-to/first-jobs.md").read_text("utf-8")
MAX_STEPS: Final = 6
CITIES: Final = {
    "Peru": "Lima",
    "France": "Paris",
    "Norway": "Oslo",
    "Italy": "Rome",
    "Chad": "N'Djamena",
    "Cuba": "Havana",
    "Spain": "Madrid",
    "Japan": "Tokyo",
}
BOT: Final = f"CITIES = {CITIES!r}\n\n\ndef answer(prompt):\n    return 'It is ' + CITIES[prompt.rstrip('?').split()[-1]]\n"
_SAVED: Final = re.compile(r"[Ss]ave as `([^`]+)`")

Step = tuple[str, str]
"""A file to save, as (name, text), or a command, as ("$", words)."""


def steps_of(title: str) -> list[Step]:
    """Return the steps of one job; a block of code without a file name before it is shown and not
    carried out.
    """
    (section,) = [part for part in PAGE.split("\n## ")[1:] if part.startswith(f"{title}\n")]
    steps: list[Step] = []
    pieces = section.split("```")
    for words, block in zip(pieces[::2], pieces[1::2], strict=False):
        kind, _, text = block.partition("\n")
        if kind == "console":
            steps += [("$", line[2:]) for line in text.splitlines() if line.startswith("$ ")]
        else:
            (name,) = _SAVED.findall(words)
            steps.append((name, text))
    return steps


def write_material(project: Path) -> None:
    rows = [f"What is the capital of {country}?,{city}" for country, city in CITIES.items()]
    (project / "rows.csv").write_text("\n".join(["question,answer", *rows, ""]), "utf-8")
    (project / "terse.txt").write_text("Answer in one word.", "utf-8")
    (project / "long.txt").write_text("Think step by step, then answer.", "utf-8")


def capital(text: str) -> str:
    return next((city for country, city in CITIES.items() if country in text), "unknown")


def sensible(call: Call) -> str:
    """Short and wrong if one word is asked for; chatty and right if the candidate may think; fair
    as a judge.
    """
    if call.schema is not None:
        return generic_answer(call, seed=1)
    asked = json.dumps(call.body["messages"])
    return (
        f"Good question! It is **{capital(call.prompt)}**, I am sure."
        if "step by step" in asked
        else "Bonn"
    )


@pytest.fixture
def walk(assay: Command, project: Path) -> Callable[..., list[str]]:
    """Carry out the steps of a job and return the outputs of its commands."""
    write_material(project)

    def carry_out(steps: list[Step], **replaced: str) -> list[str]:
        assert 1 < len(steps) <= MAX_STEPS
        outputs = []
        for name, text in steps:
            if name != "$":
                (project / name).write_text(text, "utf-8")
                continue
            words = [replaced.get(word, word) for word in text.split()]
            if words[0] == "assay":
                answer = assay(*words[1:])
                assert answer.code in (0, 1, 3), answer.err  # 1: paused; 3: a gate failed
                outputs.append(answer.out)
                continue
            environment = {
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            }
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, check=False, cwd=project
            )
            outputs.append(done.stdout + done.stderr)
        return outputs

    return carry_out


@pytest.fixture
def answering(server: ModelServer) -> ModelServer:
    server.answer = sensible
    return server


def test_two_prompts_on_a_table(walk: Callable[..., list[str]], answering: ModelServer) -> None:
    outputs = walk(steps_of("Compare two prompts on a table"))
    assert "terse is worse than long by 100.0 points" in outputs[-1]


@pytest.mark.slow
def test_a_script(walk: Callable[..., list[str]], answering: ModelServer) -> None:
    outputs = walk(steps_of("Compare in a script or a notebook"))
    assert "terse is worse than long by 100.0 points" in outputs[-1]


@pytest.mark.slow
def test_two_programs(walk: Callable[..., list[str]], project: Path) -> None:
    (project / "old.py").write_text(f"import sys\n{BOT}print(answer(sys.argv[1]))\n", "utf-8")
    (project / "new.py").write_text("print('It is Lima.')\n", "utf-8")
    outputs = walk(steps_of("Compare two programs"))
    assert "old is better than new by 87.5 points" in outputs[-1]


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["question"]
        text = f"Well, {capital(question) if self.path == '/v1' else 'Lima'} it is."
        reply = json.dumps({"out": {"text": text}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def service() -> Iterator[int]:
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield serving.server_port
    serving.shutdown()
    serving.server_close()


def test_two_web_services(walk: Callable[..., list[str]]) -> None:
    with service() as port:
        steps = [
            (name, text.replace(":8080", f":{port}"))
            for name, text in steps_of("Compare two web services")
        ]
        outputs = walk(steps)
    assert "v1 is better than v2 by 87.5 points" in outputs[-1]


@pytest.mark.slow
def test_a_bot_with_pytest(walk: Callable[..., list[str]], project: Path) -> None:
    (project / "bot.py").write_text(BOT, "utf-8")
    steps = steps_of("Test a bot with pytest")
    assert len(steps) <= MAX_STEPS
    on_main = walk(steps[:2])
    assert "1 passed" in on_main[-1]
    # Eight ties cannot show that the bot lost at most 10 points, so the gate passes with a note.
    assert "The smallest margin that this data could pass is 31.2 points" in walk(steps[2:])[-1]
    (project / "bot.py").write_text(BOT.replace("'It is '", "'It is not '"), "utf-8")
    (tested,) = walk([steps[0], steps[2]])
    assert "bot scores 0.0, below 80.0." in tested
    assert "Gate failed: bot is shown to be worse" in walk([steps[0], steps[3]])[-1]


@pytest.mark.parametrize("ending", ["answer column", "assistant's answer"])
def test_conversations(
    walk: Callable[..., list[str]], answering: ModelServer, project: Path, ending: str
) -> None:
    with (project / "chats.jsonl").open("w", encoding="utf-8") as file:
        for country, city in CITIES.items():
            talk = [
                {"role": "user", "content": "I like maps."},
                {"role": "assistant", "content": "So do I!"},
            ]
            talk.append({"role": "user", "content": f"What is the capital of {country}?"})
            row: dict[str, object] = {"messages": talk, "answer": city}
            if ending != "answer column":
                row = {"messages": [*talk, {"role": "assistant", "content": city}]}
            file.write(json.dumps(row) + "\n")
    outputs = walk(steps_of("Compare on conversations"))
    assert "terse is worse than long by 100.0 points" in outputs[-1]
    assert all(call.body["messages"][-1]["role"] == "user" for call in answering.calls)


@pytest.mark.slow
def test_a_sorted_table_on_a_budget(
    walk: Callable[..., list[str]], answering: ModelServer, assay: Command, project: Path
) -> None:
    """In the first rows `terse` is right and `long` wrong, and in the other 95% the other way
    round.
    """

    def answer(call: Call) -> str:
        number = int(call.prompt.split()[1].rstrip(":"))
        chatty = "step by step" in json.dumps(call.body["messages"])
        return f"It is {number}." if chatty == (number >= 100) else "It is -1."

    answering.answer = answer
    steps = steps_of("Compare on 10,000 rows with a budget")
    rows = "\n".join(
        ["question,answer", *(f"Number {n}: which number?,{n}" for n in range(2_000)), ""]
    )
    (project / "rows.csv").write_text(rows, "utf-8")
    assert len(steps) <= MAX_STEPS
    walk([*steps[:1], ("$", "assay validate rows.yaml")])
    small = {"5": "0.0045", "12": "0.0048"}
    paused, _ = walk(steps[1:3], **small)
    assert "paused, because the budget is reached" in paused
    first = assay("compare", "terse", "long", "--json").document
    assert first["difference"] < 0
    (run,) = re.findall(r"assay resume (\S+)", paused)
    walk(steps[3:], RUN=run, **small)
    then = assay("compare", "terse", "long", "--json").document
    assert then["difference"] < 0
    assert then["n_tasks"] > first["n_tasks"]


@pytest.mark.slow
def test_two_reviewers(
    walk: Callable[..., list[str]],
    answering: ModelServer,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = steps_of("Let two people review")
    assert len(steps) <= MAX_STEPS
    walk(steps[:2])
    reviews = [re.fullmatch(r"ASSAY_REVIEWER=(\w+) assay review", words) for _, words in steps[2:4]]
    for review, closing in zip(
        reviews, ("8 items wait for a second person", "see `assay stats`"), strict=True
    ):
        assert review is not None
        monkeypatch.setenv("ASSAY_REVIEWER", review[1])
        with terminal("review", folder=project, rows=40) as screen:
            for place in range(1, len(CITIES) + 1):
                screen.expect(
                    f"{place} of {len(CITIES)}" if place < len(CITIES) else "[q]uit [?] help"
                )
                screen.type("a")
            assert screen.end() == 0
            assert closing in screen.output
    (result,) = walk([steps[0], steps[-1]])
    assert "8 trials count (8 approved: 8 read on screen)" in result
    assert "8 of 8 by two people" in result


def test_sharing(
    walk: Callable[..., list[str]],
    answering: ModelServer,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = walk(steps_of("Compare two prompts on a table"))[-1]
    steps = steps_of("Share results")
    walk(steps[:2])
    assert "long is better than terse by 100.0 points" in (project / "report.html").read_text(
        "utf-8"
    )
    colleague = project / "colleague"
    colleague.mkdir()
    (project / "shared").rename(colleague / "shared")
    monkeypatch.chdir(colleague)
    assert walk(steps[2:])[-1] == first


def test_a_batch(
    walk: Callable[..., list[str]], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BatchServer() as server:
        server.answer = sensible
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-seen")
        monkeypatch.setenv("ASSAY_BATCH_INTERVAL", "0.05")
        _, _, collected, compared = walk(steps_of("Ask through a batch API"))
    assert "long, row-2: 100 for: Good question! It is **Lima**" in collected
    assert "terse is worse than long by 100.0 points" in compared
