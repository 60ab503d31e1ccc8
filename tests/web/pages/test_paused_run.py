"""Page of a run that paused itself: the reason, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi.testclient import TestClient
from tests.contract.test_executions import RUN, paused_after

from assay.app.workspace import Workspace
from assay.web.server import create_app

if TYPE_CHECKING:
    from pathlib import Path


def test_page_of_a_paused_run_says_why_and_what_to_do(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        paused_after(workspace.store, "http_401")
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        page = client.get(f"/runs/{RUN}", headers={"accept": "text/html"})
        assert page.status_code == 200
        assert 'data-paused="http_401"' in page.text
        assert "The run paused because further calls would fail" in page.text
        assert "the agent ended." in page.text
        pause = client.get(f"/runs/{RUN}.json").json()["paused"]
        assert (pause["kind"], pause["detail"]) == ("http_401", "the agent ended.")
