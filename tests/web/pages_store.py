"""A store with a run whose candidates wrote web pages, judged by a recorded code-arena judge, and a
way to ask its server.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from tests.support import forked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.web.conftest import Served

WRITERS = ("wilhelmina", "bartholomew", "casimira")
CRITERIA = ("visual_accuracy", "code_quality", "functionality", "responsiveness")
SCORES = {"wilhelmina": 9, "bartholomew": 6, "casimira": 3}
"""What the judge gives on every criterion, out of 10."""

SECRETS = re.compile(
    "|".join(
        (*WRITERS, "replay/", r"pages\.jsonl", "arena-judge", r"The \w+ shows", r"0\.[369]\b")
    ),
    re.I,
)
"""Names, models, the judge, its reasons and its scores."""


def page_by(writer: str, task: str, k: int = 1) -> str:
    """A page that does something, without a word of who wrote it."""
    shade = {"wilhelmina": "#1b5e20", "bartholomew": "#0d47a1", "casimira": "#b71c1c"}[writer]
    return (
        f"Here is the page.\n```html\n<!doctype html><title>Counter</title><style>body{{font:16px sans-serif;margin:2rem}}"
        f"button{{background:{shade};color:#fff;padding:.5rem 1rem}}</style><h1>Counter {task} {k}</h1>"
        f'<button onclick="this.textContent=++this.dataset.n" data-n=0>0</button>\n```\n'
    )


def pages_store(
    folder: Path,
    *,
    tasks: Sequence[str] = ("counter", "clock"),
    trials: int = 2,
    writers: Sequence[str] = WRITERS,
    given: Mapping[tuple[str, str], str] | None = None,
    review: str = "none",
    judged: bool = True,
) -> Path:
    """A store under `folder` with one run; `given` replaces a writer's answers to a task."""
    folder.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = []
    for writer in writers:
        for task in tasks:
            for k in range(1, trials + 1):
                text = (given or {}).get((writer, task)) or page_by(writer, task, k)
                match = {"role": "candidate", "candidate": writer, "task": task, "trial": k}
                lines.append({"match": match, "reply": {"text": text}})
        grades = {
            name: {"score": SCORES.get(writer, 5), "reason": f"The {name} shows.", "evidence": []}
            for name in CRITERIA
        }
        reply = {"candidates": {f"{{{{label:{writer}}}}}": grades}, "report": "A page."}
        lines.append(
            {"match": {"role": "judge", "candidate": writer}, "reply": {"text": json.dumps(reply)}}
        )
    (folder / "pages.jsonl").write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    model = f"replay/{folder / 'pages.jsonl'}"
    suite = {
        "name": "frontends",
        "trials": trials,
        "review": review,
        "parameters": {"seed": 7},
        "candidates": [{"name": writer, "model": model} for writer in writers],
        "judge": {"name": "arena-judge", "model": model} if judged else "human",
        "score": "code_arena" if judged else "judge",
        "tasks": [
            {"id": task, "thing": task.title(), "prompt": f"Build a {task} as one page."}
            for task in tasks
        ],
    }
    (folder / "frontends.json").write_text(json.dumps(suite), "utf-8")
    done = forked.run("run", "frontends.json", folder=folder, ASSAY_CHROMIUM="/nowhere/chromium")
    assert done.returncode in (0, 1), done.stderr
    return folder


def ask(
    served: Served, path: str, body: Mapping[str, Any] | None = None, *, reviewer: str | None = None
) -> tuple[int, Any]:
    """Status and document of a request; a refusal is an answer too.

    `reviewer`: as whom a browser would ask.
    """
    data = None if body is None else json.dumps(body).encode()
    by_name = {
        "content-type": "application/json",
        **({} if reviewer is None else {"cookie": f"assay_reviewer={reviewer}"}),
    }
    request = urllib.request.Request(served.url + path, data, by_name)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def pair_of(item: Mapping[str, Any], reviewer: str = "ann") -> dict[str, Any]:
    """A pair as a request names it."""
    return {
        "task": item["task"],
        "trial": item["trial"],
        "pair": item["pair"],
        "reviewer": reviewer,
    }
