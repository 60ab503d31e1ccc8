"""The statistics page over a store: the same numbers as the commands, at once after each decision,
and nothing it must not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assay.app.statistics import charts, results, statistics_documents
from assay.app.statistics.live_report import LiveReports, trials_behind
from assay.app.wire import plain
from assay.app.workspace import Workspace
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.selection import Selection
from assay.web.server import create_app
from tests.contract.stores import a_decision, a_plan
from tests.journey.test_statistics import fill

EVERYTHING = Selection()
RUN = "20250101-000000-alpha-aaaa"


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    """Seven tasks of four trials: half decided, one rejected, one corrected by nobody."""
    with Workspace.open(project) as opened:
        fill(
            opened,
            a_plan(RUN),
            [["approve", "approve", "wait", "reject" if n == 3 else "wait"] for n in range(7)],
        )
        yield opened


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url="http://127.0.0.1") as opened:
        yield opened


def waiting(workspace: Workspace) -> list[AssessmentKey]:
    pending = frozenset({AssessmentState.PENDING})
    return [row.key for row in workspace.archive.assessments.matching(EVERYTHING, states=pending)]


def test_statistics_page_matches_the_commands_at_every_decision(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.app.statistics.live_report.AT_ONCE_S", 1e9)
    overviews = LiveReports(workspace.store, workspace.settings)
    for key in [None, *waiting(workspace)[:3]]:
        if key is not None:
            workspace.decisions.decide((a_decision(Verb.APPROVE, key),))
        result, behind = overviews.of(EVERYTHING), overviews.behind(EVERYTHING)
        anew = results.stats(workspace.store, workspace.settings, EVERYTHING)
        for one, other in zip(result.report.estimates, anew.estimates, strict=True):
            assert one.candidate == other.candidate
            assert one.mean == pytest.approx(other.mean)
            assert one.n_trials == other.n_trials
            assert one.ci95 == pytest.approx(other.ci95)
        assert result.n_trials == anew.basis.n_trials
        assert result.excluded == anew.basis.excluded
        assert result.contrast is not None
        contrast = results.compare(
            workspace.store,
            workspace.settings,
            EVERYTHING,
            str(result.contrast.a),
            str(result.contrast.b),
        )
        assert result.verdict == contrast.verdict
        assert result.anytime is not None
        assert contrast.anytime is not None
        assert result.anytime.e_value == pytest.approx(contrast.anytime.e_value)
        assert result.anytime.ci95 == pytest.approx(contrast.anytime.ci95)
        assert plain(statistics_documents.scores_document(behind.standing)) == plain(
            statistics_documents.scores_document(anew)
        )
        assert behind.since == 0


def test_slow_statistics_details_are_loaded_later_and_announced(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.app.statistics.live_report.AT_ONCE_S", -1.0)
    monkeypatch.setattr("assay.app.statistics.live_report.PATIENCE", 1e9)
    overviews = LiveReports(workspace.store, workspace.settings)
    first = overviews.behind(EVERYTHING)
    workspace.decisions.decide(
        tuple(a_decision(Verb.APPROVE, key) for key in waiting(workspace)[:2])
    )
    again = overviews.behind(EVERYTHING)
    assert (again.newest, again.since) == (first.newest, 2)
    assert overviews.of(EVERYTHING).n_trials == 16


def test_pairs_are_read_from_the_top(workspace: Workspace) -> None:
    result = LiveReports(workspace.store, workspace.settings).of(EVERYTHING)
    (pair,) = result.report.ranking.pairs
    assert [pair.a, pair.b] == [one.candidate for one in result.report.ranking.candidates]
    assert pair.difference is not None
    assert pair.difference >= 0
    assert pair.ci95 is not None
    assert pair.ci95[0] <= pair.difference <= pair.ci95[1]


@pytest.mark.slow
def test_every_page_has_its_twin_and_its_state_in_the_address(client: TestClient) -> None:
    page = client.get("/results?run=20250101&scope=these-tasks&margin=3pts&a=bob&b=alice")
    assert page.status_code == 200
    assert "12 approved trials" not in page.text
    assert "14 trials count (14 approved: " in page.text
    assert "bob" in page.text
    twin = re.search(r'<link rel="alternate" type="application/json" href="([^"]+)"', page.text)
    assert twin is not None
    document: dict[str, Any] = client.get(twin[1].replace("&amp;", "&")).json()
    assert document["compare"]["a"] == "bob"
    assert document["compare"]["scope"] == "these_tasks"
    assert document["compare"]["equivalence"]["margin"] == 0.03
    assert document["filters"] == {"run": ["20250101"]}
    assert document["stats"]["excluded"]["pending"] == 13
    assert {one["candidate"] for one in document["rank"]["candidates"]} == {"alice", "bob"}
    for address in set(re.findall(r'href="(/[^"]*)"', page.text)):
        assert client.get(address.replace("&amp;", "&")).status_code == 200, address


def test_a_number_leads_to_its_trials_and_these_to_their_assessments(
    workspace: Workspace, client: TestClient
) -> None:
    page = client.get("/statistics/trials?task=t3&candidate=alice")
    assert "Trials of alice" in page.text
    document = client.get("/statistics/trials.json?task=t3").json()
    assert [one["state"] for one in document["trials"]] == [
        "approved",
        "approved",
        "needs_review",
        "rejected",
    ]
    assert [
        one["scores"] != dict.fromkeys(document["candidates"]) for one in document["trials"]
    ] == [True, True, False, False]
    counted = document["trials"][0]
    assert client.get(counted["open"]).url.path.startswith("/assessments/")
    assert client.get(f"/statistics/trials/{counted['id']}").url.path.startswith("/assessments/")
    assert client.get("/statistics/trials/t999999").status_code == 404
    rows, more = trials_behind(workspace.store, EVERYTHING, start=2, limit=5)
    assert (len(rows), more) == (5, True)


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/results?run=nowhere", 404, "nowhere"),
        ("/results?a=nobody", 404, "nobody"),
        ("/results?a=alice&b=alice", 422, "compared with itself"),
        ("/results?scope=moon", 422, "moon"),
        ("/results?margin=7", 422, "7"),
        ("/statistics/charts/pie.svg", 404, "pie"),
        ("/statistics/charts/forest.exe", 404, "forest.exe"),
    ],
)
def test_an_address_that_means_nothing_is_answered_with_a_sentence(
    client: TestClient, address: str, status: int, said: str
) -> None:
    answer = client.get(address, headers={"accept": "text/html"})
    assert answer.status_code in ({400, 422} if status == 422 else {status})
    assert said in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.slow
def test_only_png_needs_the_charts_extra(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ending, begins in (
        ("svg", b"<svg"),
        ("png", b"\x89PNG"),
        ("csv", b"candidate,"),
        ("json", b"{"),
    ):
        answer = client.get(f"/statistics/charts/forest.{ending}")
        assert answer.content.startswith(begins)
        assert "attachment" in answer.headers["content-disposition"]
    monkeypatch.setattr(charts, "can_draw", lambda: False)
    page = client.get("/results").text
    assert "assay-bench[charts]" not in page
    assert '<svg class="interval"' in page
    assert "charts/forest.svg" in page
    assert "charts/forest.png" not in page
    details = client.get("/statistics/behind").text
    assert 'href="/statistics/trials/t' in details
    assert "var(--chart-accent)" in details


def test_the_old_address_leads_to_results(client: TestClient) -> None:
    answer = client.get("/statistics?run=a&task=b", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/results?run=a&task=b")


def test_results_open_on_the_newest_run_never_on_all(workspace: Workspace) -> None:
    fill(workspace, a_plan("20250301-000000-beta-bbbb", suite="beta"), [["approve", "approve"]] * 4)
    with TestClient(create_app(workspace), base_url="http://127.0.0.1") as client:
        page = client.get("/results").text
        assert "8 trials count (8 approved: " in page
        assert 'href="/results?suite=arithmetic"' in page
        assert "/statistics.json?suite=beta" in page
        assert re.search(r"Run 20250301-000000-beta-bbbb of beta, <time [^>]*>2025-", page)
        assert "14 trials count (14 approved: " in client.get("/results?suite=arithmetic").text


def test_a_visit_without_a_new_decision_ranks_nothing_again(workspace: Workspace) -> None:
    overviews = LiveReports(workspace.store, workspace.settings)
    first = overviews.of(EVERYTHING)
    assert overviews.of(EVERYTHING).report is first.report
    workspace.decisions.decide((a_decision(Verb.APPROVE, waiting(workspace)[0]),))
    assert overviews.of(EVERYTHING).n_trials == first.n_trials + 1


def test_headline_says_what_is_provisional(client: TestClient) -> None:
    heading = re.search(r"<h1>(.*?)</h1>", client.get("/results").text, re.S)
    assert heading is not None
    assert '<span class="provisional">Provisional: 13 of 28 waiting.</span>' in heading[1]


def test_a_store_without_anything_that_counts_says_so(project: Path) -> None:
    with Workspace.open(project) as workspace:
        with TestClient(create_app(workspace), base_url="http://127.0.0.1") as client:
            assert "No trials count yet" in client.get("/results").text
            assert client.get("/statistics.json").json()["compare"] is None
            assert client.get("/statistics/behind").status_code == 200
        fill(workspace, a_plan(RUN), [["wait", "wait"]] * 3)
        with TestClient(create_app(workspace), base_url="http://127.0.0.1") as client:
            assert "No trials count yet" in client.get("/results").text
            assert client.get("/statistics/behind").status_code == 200
            assert client.get("/statistics/charts/forest.svg").status_code == 200
