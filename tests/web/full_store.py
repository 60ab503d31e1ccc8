"""A store with something of everything in it, as people have after a while; and where to find
it.
"""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

from assay.app.runs.demo import content
from assay.scoring.calibration_samples import SAMPLES
from tests.support import forked
from tests.web.imported_store import MODELS, TASKS, write_exports
from tests.web.specialist_files import write_snapshot, write_template

if TYPE_CHECKING:
    from pathlib import Path

    from tests.web.conftest import Served

PAGE = """<!doctype html><html lang="en"><title>Clock</title><style>
body {{ margin: 0; min-height: 100vh; display: grid; place-items: center; font: 600 3rem/1.2 sans-serif; {colours} }}
small {{ display: block; font-size: 1rem; font-weight: 400 }}</style>
<main><span id="now">12:00</span><small>{said}</small></main>
<script>document.getElementById("now").textContent = "10:09"</script></html>"""

LOOKS = {
    "ada": {"colours": "background: #fdf6e3; color: #073642", "said": "A quiet clock"},
    "bruno": {"colours": "background: #14213d; color: #fca311", "said": "A loud clock"},
    "chiara": {"colours": "background: #fff; color: #999", "said": "Hard to read"},
}


REPLY = """Person {task} has five years in the trade.

- **For:** steady work, good references
- **Against:** no degree

My answer: {verdict}."""
VERDICTS = (("yes",) * 6, ("yes", "no") * 3, ("no",) * 6)
"""What three models answered to six requests."""


def furnish(folder: Path) -> Path:
    """Fill the store under `folder`: brought answers, a set wholly reviewed, the same half
    reviewed, pages for the arena; gives `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    given = {
        (model, task): REPLY.format(task=task, verdict=verdict)
        for model, verdicts in zip(MODELS, VERDICTS, strict=True)
        for task, verdict in zip(TASKS, verdicts, strict=True)
    }
    exports = write_exports(folder / "brought", given=given)
    _run(folder, "import", *map(str, exports))
    things = json.loads(content("architects.json").read_text("utf-8"))
    (folder / "architects.json").write_text(json.dumps(things), "utf-8")
    (folder / "assay.yaml").write_text("judge: replay/@demo\n", "utf-8")
    first = _run(folder, "run", "architects.json", "--batch-id", "spring")["run_id"]
    _decide(folder, first, every=1)
    once = _run(folder, "run", "architects.json", "--trials", "1")["run_id"]
    _decide(folder, once, every=1)
    second = _run(folder, "run", "architects.json", "--batch-id", "spring", "--trials", "3")[
        "run_id"
    ]
    _decide(folder, second, every=2)
    (folder / "clocks.json").write_text(
        json.dumps(
            [
                {
                    "id": f"clock-{place}",
                    "thing": thing,
                    "prompt": f"Make a page: {thing}.",
                    "score": "judge",
                    "snippets": {
                        name: f"```html\n{PAGE.format(**look)}\n```" for name, look in LOOKS.items()
                    },
                }
                for place, thing in enumerate(("A clock", "A clock for the night"))
            ]
        ),
        "utf-8",
    )
    suite = {
        "name": "clocks",
        "tasks": {"file": "clocks.json"},
        "judge": "human",
        "rubric": [{"name": "look"}],
    }
    (folder / "clocks-suite.json").write_text(json.dumps(suite), "utf-8")
    _run(folder, "run", "clocks-suite.json", "--trials", "3")
    _measure(folder)
    _add_specialists(folder)
    return folder


def _add_specialists(folder: Path) -> None:
    """A template with two snapshots, one of them thin, and a template with mistakes."""
    path = write_template(folder)
    write_snapshot(folder, (0.4, 0.65, 0.9), (0.6, 0.85, 1.0))
    write_snapshot(
        folder, (0.6, 0.65, 0.7), (0.85, 0.87, 0.83), models=("claude-sonnet-4.5", "gpt-4o")
    )
    path.with_name("vue-expert.json5").write_text(
        '{name: "@org/vue-expert", version: "one", persona: {}}', "utf-8"
    )


def _measure(folder: Path) -> None:
    """A recorded judge, measured: a little too mild, and wrong about one reference."""
    lines = []
    for place, sample in enumerate(SAMPLES):
        score = 10 - 10 * sample.score if place == 3 else min(10.0, 10 * sample.score + 0.4)
        grades = {"{{label:one}}": {"quality": {"reason": "So it is.", "score": score}}}
        reply = {"text": json.dumps({"candidates": grades})}
        lines.append(json.dumps({"match": {"task": f"calibration/{sample.id}"}, "reply": reply}))
    pair = {
        f"{{{{label:{name}}}}}": {"quality": {"reason": name, "score": 5}}
        for name in ("one", "other")
    }
    lines.append(
        json.dumps(
            {"match": {"role": "judge"}, "reply": {"text": json.dumps({"candidates": pair})}}
        )
    )
    (folder / "judge.jsonl").write_text("\n".join(lines), "utf-8")
    _run(folder, "calibrate", "replay/judge.jsonl")


def sit_down(served: Served) -> None:
    """Let two people decide some of what waits, on the page: half of it blind, one item by both."""
    half = next(
        run["run_id"] for run in served.get("/api/runs")["runs"] if run["suite"] == "architects"
    )
    _run(served.folder, "review", "protocol", half, "--set", "blind=0.5")
    for number, name in enumerate(("Ines", "Jon", "Ines", "Jon")):
        item = served.get(f"/api/review/next?desk=desk-{number}&run={half}&limit=1")["items"][0]
        if number == 0:
            _post(
                served,
                "/api/review/second",
                {"key": "second-0", "id": item["id"], "reviewer": name},
            )
        if item["blind"]:
            scores = [
                {"pane": pane, "criterion": criterion["name"], "score": 0.5 + 0.1 * pane}
                for pane in range(len(item["panes"]))
                for criterion in item["criteria"]
            ]
            verdict = {
                "key": f"verdict-{number}",
                "id": item["id"],
                "reviewer": name,
                "scores": scores,
            }
            _post(served, "/api/review/verdict", verdict)
        decision = {
            "key": f"decision-{number}",
            "id": item["id"],
            "verb": "approve",
            "reviewer": name,
            "active_ms": 41_000,
        }
        if not _decided(served, decision):
            # Items come in an order drawn anew for each store. One in which the judge left out a
            # score cannot be approved; without a decision on the page, Ines had no page of her own
            # and its address gave a 404.
            decision |= {
                "key": f"rejection-{number}",
                "verb": "reject",
                "reason": "It is incomplete or cut off",
            }
            assert _decided(served, decision)

    clocks = next(
        run["run_id"] for run in served.get("/api/runs")["runs"] if run["suite"] == "clocks"
    )
    for number in range(4):
        bout = served.get(f"/api/arena/{clocks}/next")["pair"]
        pair = {name: bout[name] for name in ("task", "trial", "pair", "reviewer")}
        choice = ("a", "b", "equal")[number % 3]
        _post(
            served,
            f"/api/arena/{clocks}/votes",
            {**pair, "choice": choice, "key": f"vote-number-{number}"},
        )


def _decided(served: Served, decision: dict[str, Any]) -> bool:
    """Send one decision; true if it was accepted."""
    return bool(_post(served, "/api/decisions", {"decisions": [decision]})["results"][0]["ok"])


def _post(served: Served, path: str, body: Any) -> Any:
    asked = urllib.request.Request(
        served.url + path,
        json.dumps(body).encode(),
        {"content-type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)


def _decide(folder: Path, run: str, *, every: int) -> None:
    """Decide every n-th assessment of a run: most are approved, one is corrected, one rejected, one
    judged again.
    """
    rows = _run(folder, "review", "list", "--run", run, "--state", "pending")["assessments"][
        ::every
    ]
    whole = [row for row in rows if None not in row["scores"].values()]
    corrected, rejected, rerun, *approved = whole
    who = corrected["candidates"][0]
    reviewer = ("--reviewer", "Ines")
    _run(
        folder,
        "review",
        "correct",
        corrected["id"],
        "--score",
        f"{who}=0.8",
        "--reason",
        "too mild",
        *reviewer,
    )
    _run(
        folder,
        "review",
        "reject",
        rejected["id"],
        "--reason",
        "It quotes text that does not exist",
        *reviewer,
    )
    again = _run(
        folder, "review", "rerun", rerun["id"], "--note", "Read the second class too", *reviewer
    )["id"]
    _run(folder, "review", "approve", again, *(row["id"] for row in approved), *reviewer)
    if lacking := [row["id"] for row in rows if row not in whole]:
        _run(
            folder,
            "review",
            "reject",
            *lacking,
            "--reason",
            "It is incomplete or cut off",
            *reviewer,
        )


def _run(folder: Path, *arguments: str) -> Any:
    done = forked.run(*arguments, "--json", folder=folder)
    assert done.returncode in (0, 1), done.stderr or done.stdout
    return json.loads(done.stdout)
