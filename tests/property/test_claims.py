"""Whatever the records, every sentence of reports, pages and commands about them is true, and none
that is due is missing.
"""

from __future__ import annotations

import io
import json
import random
import re
from contextlib import redirect_stdout
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.contract.stores import WEIGHTS, a_decision, a_plan, a_task, grades, judged, planned, wait
from tests.support.claims import GradedTrial, missing, untrue

from assay.app.exports import reports
from assay.app.workspace import Workspace
from assay.cli.main import exit_code
from assay.domain.lifecycle import AssessmentState, RunState, Verb
from assay.domain.selection import Selection
from assay.web.server import create_app

NAMES = ("ann", "bob")
STATES = AssessmentState
REVIEWS = {
    "unseen": (STATES.EXEMPT,),
    "by rule": (STATES.NOT_REQUIRED,),
    "by people": (STATES.APPROVED,),
    "mixed": (STATES.APPROVED, STATES.EXEMPT, STATES.PENDING, STATES.REJECTED),
    "nothing": (STATES.PENDING, STATES.REJECTED),
}
LEVELS = ((0.5,), (0.0, 1.0), (0.2, 0.65, 0.7, 1.0))
"""Few levels, so that scores without spread come up often."""


def recorded(workspace: Workspace, review: str, seed: int) -> list[GradedTrial]:
    """Grade one or two small runs of a suite at random; return the records of their trials."""
    draw = random.Random(f"{review} {seed}")
    levels = draw.choice(LEVELS)
    steady = draw.random() < 0.4
    n_tasks, n_trials = draw.choice(((1, 1), (1, 4), (3, 1), (3, 3), (7, 2)))
    fixed = {f"t{n}": {name: draw.choice(levels) for name in NAMES} for n in range(n_tasks)}
    records: list[GradedTrial] = []
    decided: dict[int, Verb] = {}
    for run_id in ("20250101-000000-alpha-aaaa", "20250101-000000-alpha-bbbb")[: 1 + seed % 2]:
        plan = a_plan(run_id, suite="alpha", candidates=NAMES)
        workspace.journal.open_run(
            plan, planned(*(a_task(f"t{n}") for n in range(n_tasks)), trials=n_trials)
        )
        for trial in workspace.journal.claim(plan.id, limit=100):
            scores = (
                fixed[trial.task.id] if steady else {name: draw.choice(levels) for name in NAMES}
            )
            state = draw.choice(REVIEWS[review])
            first = STATES.PENDING if state in (STATES.APPROVED, STATES.REJECTED) else state
            whole = grades({name: dict.fromkeys(WEIGHTS, score) for name, score in scores.items()})
            wait(workspace.journal.record(judged(trial, whole, state=first)))
            decided[trial.key] = Verb.APPROVE if state is STATES.APPROVED else Verb.REJECT
            if state is first:
                del decided[trial.key]
            records.append(GradedTrial(task=trial.task.id, state=state, scores=scores))
        workspace.journal.set_state(plan.id, RunState.FINISHED)
    rows = workspace.archive.assessments.matching(Selection())
    decisions = [
        a_decision(decided[row.trial], row.key, reason="wrong")
        for row in rows
        if row.trial in decided
    ]
    if decisions:
        workspace.decisions.decide(decisions)
    return records


def printed(folder: Path, *command: str) -> str:
    """Return what a command prints about a store; a gate that does not pass exits 3."""
    with redirect_stdout(io.StringIO()) as out:
        code = exit_code([*command, "--store", str(folder / ".assay" / "assay.db")])
    assert code in ((0, 3) if command[0] == "gate" else (0,))
    return out.getvalue()


def texts_in(value: object) -> list[str]:
    """Return every text in a JSON document."""
    if isinstance(value, dict | list):
        return [
            text
            for item in (value.values() if isinstance(value, dict) else value)
            for text in texts_in(item)
        ]
    return [value] if isinstance(value, str) else []


COMPARED = {
    "stats": ("stats", "--all-runs"),
    "rank": ("rank", "--all-runs"),
    "compare": ("compare", "ann", "bob", "--all-runs"),
    "gate": ("gate", "ann", "--against", "bob", "--margin", "0.05", "--all-runs"),
    "plan": ("plan", "--detect", "0.1", "--all-runs"),
}


def parts(folder: Path) -> dict[str, str]:
    """Render what tells only a part of the results: documents for programs, the gate and the
    plan.
    """
    shown = {name: printed(folder, *COMPARED[name]) for name in ("gate", "plan")}
    for name, command in COMPARED.items():
        shown[f"{name} --json"] = "\n".join(
            texts_in(json.loads(printed(folder, *command, "--json")))
        )
    for more in (("--threshold", "0.5"), ("--against", "bob", "--margin", "0.05")):
        shown[f"junit {more[0]}"] = unescape(
            printed(folder, "export", "junit", *more, "--all-runs")
        )
    return shown


def surfaces(folder: Path) -> dict[str, str]:
    """Render the results of a store everywhere, as text without markup."""
    shown = {}
    for name in ("stats", "rank", "compare"):
        shown[name] = printed(folder, *COMPARED[name])
    with Workspace.open(folder, environment={}) as workspace:
        for kind in ("html", "markdown", "latex"):
            shown[kind] = reports.written(
                workspace.store, workspace.settings, kind, Selection(all_runs=True)
            ).partition("<footer>")[0]
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        page = client.get("/results?all_runs=1", headers={"accept": "text/html"}).text
        shown["page"] = page.partition("<main")[2].partition("</main")[0]
    return {name: unescape(re.sub(r"<[^>]*>", " ", text)) for name, text in shown.items()}


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
)
@pytest.mark.parametrize("review", REVIEWS)
def test_every_claim_is_true_of_its_records(tmp_path: Path, review: str, seed: int) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        records = recorded(workspace, review, seed)
    for surface, text in surfaces(tmp_path).items():
        assert untrue(text, records) == [], surface
        assert missing(text, records) == [], surface
    for surface, text in parts(tmp_path).items():
        assert untrue(text, records) == [], surface
