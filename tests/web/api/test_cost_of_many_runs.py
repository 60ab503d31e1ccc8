"""Cost of pages over many runs: they read the runs they show, with as many statements as over a
few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from starlette.testclient import TestClient
from tests.support.waiting_store import fill

from assay.app.workspace import Workspace
from assay.store.database import codec
from assay.store.queries import run_summaries
from assay.web.server import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUNS = 240
SHOWN = 80
"""A page of 50 runs, the one that says whether more follow, and the twenty whose plans say what is
in use.
"""

OFFERED = {"/compare/grades": 100, "/results?run=20250101-000001-waiting-abcd": 205}
"""Pages whose forms offer more."""

PAGES = {
    "/": 60,
    "/runs.json": 60,
    "/?before=20250101-000100-waiting-abcd": 60,
    "/review": 40,
    "/api/review/next?limit=5&desk=desk-1": 200,
    "/api/review/next?limit=5&desk=desk-1&suite=waiting-1": 220,
    "/api/review/next?limit=5&desk=desk-1&run=20250101-000001-waiting-abcd": 200,
    "/api/runs": 25,
    "/api/runs?status=finished": 30,
    "/runs/20250101-000001-waiting-abcd": 137,
    "/assessments/a7": 90,
    "/start": 130,
    "/compare": 180,
    "/compare/grades": 40,
    "/results?run=20250101-000001-waiting-abcd": 113,
    "/calibration": 150,
    "/models": 150,
    "/specialists": 20,
    "/runs?sort=waiting&state=waits": 60,
    "/arena": 450,
    "/audit": 60,
}
"""Statements that each may ask, of which none may be one a run of the store."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    fill(f"sqlite:///{folder}/assay.db", RUNS * 5, runs=RUNS, candidates=2, lines=5)
    return folder


@pytest.fixture
def client(many: Path) -> Iterator[TestClient]:
    options = {"store": f"sqlite:///{many}/assay.db"}
    with (
        Workspace.open(many, options=options, environment={}) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1") as client,
    ):
        yield client


class Counted:
    """Calls of a function or class, which does as before."""

    def __init__(self, what: Any) -> None:
        self.n = 0
        self._what = what

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.n += 1
        return self._what(*given, **named)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_summarises_no_more_runs_than_it_shows(
    client: TestClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    summaries = Counted(run_summaries.__dict__["RunSummary"])
    monkeypatch.setattr(run_summaries, "RunSummary", summaries)
    statements: list[str] = []

    def heard(_: Any, __: Any, statement: str, *___: Any) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", heard)
    try:
        assert client.get(path, headers={"accept": "text/html"}).status_code == 200
    finally:
        event.remove(Engine, "before_cursor_execute", heard)
    assert summaries.n <= OFFERED.get(path, SHOWN)
    assert len(statements) <= PAGES[path]


def test_first_queue_visit_reads_no_plan_of_a_fixed_order_run(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = Counted(codec.plan_record)
    monkeypatch.setattr("assay.store.queries.plans.plan_record", plans)
    assert len(client.get("/api/review/next?limit=5&desk=desk-first").json()["items"]) == 5
    assert 0 < plans.n <= 10  # those of the five items, for rubric and protocol
