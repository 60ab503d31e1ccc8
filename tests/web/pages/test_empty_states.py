"""Links that lead somewhere, and columns that hold something: a calibrated judge no run asked,
candidates of one name each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient
from tests.contract.stores import a_plan, a_task, grades, judged, planned, wait
from tests.contract.test_calibrations import RECORD

from assay.app import people
from assay.app.registry import candidates as names
from assay.app.workspace import Workspace
from assay.domain.lifecycle import AssessmentState
from assay.web.server import create_app

if TYPE_CHECKING:
    from pathlib import Path

HTML = {"accept": "text/html"}


def client_of(workspace: Workspace) -> TestClient:
    return TestClient(
        create_app(workspace), base_url="http://127.0.0.1:8000", follow_redirects=False
    )


def test_a_calibration_links_its_model_only_where_that_has_a_page(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        client = client_of(workspace)
        number = workspace.calibrations.keep(
            RECORD.__class__(
                identity=RECORD.identity,
                tier=RECORD.tier,
                at=RECORD.at,
                document={"n": 0, "samples": []},
            )
        ).number
        page = client.get(f"/calibration/{number}", headers=HTML)
        assert page.status_code == 200
        assert "/models/openai/judge" not in page.text
        for link in set(re.findall(r'<a href="(/[^"#]*)"', page.text.partition("<main")[2])):
            assert client.get(link, headers=HTML).status_code < 400, link
    (tmp_path / "assay.yaml").write_text("judge: openai/judge\n", "utf-8")
    with Workspace.open(tmp_path, environment={}) as workspace:
        client = client_of(workspace)
        assert (
            'href="/models/openai/judge"' in client.get(f"/calibration/{number}", headers=HTML).text
        )
        assert client.get("/models/openai/judge", headers=HTML).status_code == 200


def test_filters_of_an_empty_list_of_runs_show_a_page(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        client = client_of(workspace)
        for path in ("/runs?state=archived", "/runs?q=a", "/runs"):
            assert client.get(path, headers=HTML).status_code == 200, path


def test_alias_column_is_shown_only_if_a_candidate_has_aliases(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        plan = a_plan("20250101-000000-alpha-aaaa", suite="alpha", candidates=("ann", "bob"))
        workspace.journal.open_run(plan, planned(a_task("auth")))
        (trial,) = workspace.journal.claim(plan.id, limit=1)
        whole = grades({name: {"integrity": 0.2, "fitness": 0.2} for name in ("ann", "bob")})
        wait(workspace.journal.record(judged(trial, whole, state=AssessmentState.EXEMPT)))
        client = client_of(workspace)
        page = client.get("/candidates", headers=HTML).text
        assert "ann" in page
        assert page.count('<th scope="col"') == 4
        names.rename(workspace, "bob", "robert", reviewer="Ines", reason="")
        page = client.get("/candidates", headers=HTML).text
        assert "no reason given" in page
        assert "bob" in page


@pytest.mark.parametrize("role", ["owner", "viewer"])
def test_runs_that_wait_for_review_are_offered_for_comparison(tmp_path: Path, role: str) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        plan = a_plan("20250101-000000-alpha-aaaa", suite="alpha", candidates=("ann", "bob"))
        workspace.journal.open_run(plan, planned(a_task("auth")))
        (trial,) = workspace.journal.claim(plan.id, limit=1)
        wait(
            workspace.journal.record(
                judged(trial, grades({name: {"integrity": 0.2} for name in ("ann", "bob")}))
            )
        )
        with client_of(workspace) as client:
            if role == "viewer":
                client.get(
                    people.invite(
                        workspace.store, "vera", role=role, base="http://127.0.0.1:8000"
                    ).link
                )
            page = client.get("/compare", headers=HTML).text
    assert plan.id in page
    assert "There are no runs to compare yet." not in page


def test_statistics_details_name_the_next_step_when_no_trial_counts(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        client = client_of(workspace)
        for path in ("/statistics/trials", "/statistics/behind"):
            page = client.get(path, headers=HTML).text.partition("<main")[2]
            assert "No trials count yet." in page, path
            assert '<a href="/">' in page, path
            assert "<table" not in page, path
        page = client.get("/statistics/trials?trial=7", headers=HTML).text
        assert "No trial matches this selection." in page


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/audit?day=2020-99-99", 422, "Write a day as 2026-01-31"),
        ("/audit?day=2023-02-29", 422, "Write a day as 2026-01-31"),
        ("/audit?day=2024-02-29", 200, ""),
        ("/reviewers/zz/checks", 404, "No reviewer named"),
        ("/reviewers/zz/checks.json", 404, ""),
        ("/calibration/99999999999999999999", 404, "No calibration named"),
        ("/calibration/0.json", 404, ""),
        ("/calibration/4611686018427387904/chart.csv", 404, ""),
    ],
)
def test_missing_page_gets_its_own_message(
    tmp_path: Path, path: str, status: int, said: str
) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        answer = client_of(workspace).get(path, headers=HTML)
        assert answer.status_code == status
        assert said in answer.text


def test_single_trial_is_described_once(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, environment={}) as workspace:
        plan = a_plan("20250101-000000-alpha-aaaa", suite="alpha", candidates=("ann", "bob"))
        workspace.journal.open_run(plan, planned(a_task("auth")))
        (trial,) = workspace.journal.claim(plan.id, limit=1)
        whole = grades(
            {"ann": {"integrity": 0.2, "fitness": 0.2}, "bob": {"integrity": 0.5, "fitness": 0.5}}
        )
        wait(workspace.journal.record(judged(trial, whole, state=AssessmentState.EXEMPT)))
        page = client_of(workspace).get("/results", headers=HTML).text
        assert page.count("bob is 30.0 points ahead") == 1
        assert '<p class="lead">A single trial gives no range;' in page
        assert "<li>1 trial counts</li>" in page
