"""The navigation: five places, the settings, and *New run*, by role; every page marks its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient

from assay.app import people
from assay.app.workspace import Workspace
from assay.web.server import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page
    from tests.web.conftest import Served

HOME = "http://127.0.0.1:8000"
SECRET = "a-s3cret-of-any-length"
PLACES = ["Runs", "Review", "Results", "Compare", "Arena"]
SETTINGS = ["Rubrics", "Judges", "Models", "Candidates", "Specialists", "Reviewers", "Audit log"]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path, environment={}) as opened:
        yield opened


def links(html: str, label: str) -> list[tuple[str, bool]]:
    """The links of a navigation, each with True if it marks the page as its own."""
    part = re.search(rf'<nav[^>]* aria-label="{label}">(.*?)</nav>', html, re.DOTALL)
    if part is None:
        return []
    return [
        (text, "aria-current" in given)
        for given, text in re.findall(r"<a ([^>]*)>([^<]*)</a>", part[1])
    ]


def page_of(workspace: Workspace, path: str, *, invited: str | None = None) -> str:
    with TestClient(create_app(workspace, token=SECRET), base_url=HOME) as client:
        client.post("/api/signin", json={"token": invited or SECRET})
        return client.get(path, headers={"accept": "text/html"}).text


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/", "Runs"),
        ("/runs", "Runs"),
        ("/review", "Review"),
        ("/results", "Results"),
        ("/compare", "Compare"),
        ("/compare/grades", "Compare"),
        ("/arena", "Arena"),
    ],
)
def test_a_page_marks_one_of_five_places(workspace: Workspace, path: str, place: str) -> None:
    html = page_of(workspace, path)
    assert links(html, "Main") == [(name, name == place) for name in PLACES]
    assert links(html, "Settings") == []
    assert re.search(
        r'class="button small go" href="/start">New run</a>\s*</div>\s*</header>', html
    )


@pytest.mark.parametrize(
    ("path", "tab"),
    [
        ("/criteria", "Rubrics"),
        ("/calibration", "Judges"),
        ("/models", "Models"),
        ("/candidates", "Candidates"),
        ("/specialists", "Specialists"),
        ("/reviewers", "Reviewers"),
        ("/adjudication", "Reviewers"),
        ("/audit", "Audit log"),
    ],
)
def test_a_page_of_the_settings_marks_its_tab(workspace: Workspace, path: str, tab: str) -> None:
    html = page_of(workspace, path)
    assert [name for name, marked in links(html, "Main") if marked] == []
    assert links(html, "Settings") == [(name, name == tab) for name in SETTINGS]
    assert '<a class="set" href="/criteria" aria-current="true">Settings</a>' in html


def test_a_reviewer_sees_review_and_a_viewer_results(workspace: Workspace) -> None:
    reviewer = people.invite(workspace.store, "Rea", role="reviewer", base=HOME)
    viewer = people.invite(workspace.store, "Vic", role="viewer", base=HOME)
    html = page_of(workspace, "/review", invited=reviewer.token)
    assert links(html, "Main") == [("Review", True), ("My decisions", False), ("My figures", False)]
    assert "Settings" not in html
    assert "New run" not in html
    html = page_of(workspace, "/candidates", invited=viewer.token)
    assert [name for name, _ in links(html, "Main")] == ["Runs", "Results", "Compare"]
    assert links(html, "Settings") == [("Rubrics", False), ("Candidates", True)]
    assert "New run" not in html


def test_all_places_fit_on_a_phone_without_a_menu(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/runs", "/models", f"/review?run={served.run_id}"):
        page.goto(served.url + path)
        seen = page.evaluate(
            """() => [...document.querySelectorAll('header.top a:not(.run-link), header.top button')].map(e => {
                 const at = e.getBoundingClientRect();
                 return [at.left >= 0 && at.right <= innerWidth && at.height >= 24 && at.width >= 24, e.outerHTML];
               }).filter(([fits]) => !fits)"""
        )
        assert seen == [], path
        rows = page.evaluate(
            "new Set([...document.querySelectorAll('.top nav a')].map(e => e.offsetTop)).size"
        )
        assert rows == 1, path
