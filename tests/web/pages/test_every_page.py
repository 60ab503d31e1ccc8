"""Each page of the web app, over a store with data of every kind; a new page fails the first test
until it is listed here.

With `ASSAY_PICTURES=FOLDER` (`make pictures`), each page is saved as pictures for the
documentation: three widths, light and dark.
"""

from __future__ import annotations

import base64
import html as html_module
import os
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import expect
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, Watch, ready, serving
from tests.web.full_store import furnish, sit_down

from assay.app.workspace import Workspace
from assay.domain.identifiers import shown_assessment
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.web import api, pages
from assay.web.server import routers

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ZOOMED = (340, 250)
"""A desktop window of 1360 by 1000 pixels at 400%."""

PAGES = {
    "runs": "/runs",
    "start": "/start",
    "start-suite": "/start?suite=architects.json",
    "run": "/runs/{reviewed}",
    "run-waiting": "/runs/{half}",
    "run-brought": "/runs/{brought}",
    "answers": "/runs/{brought}/trials/t1/answers",
    "review": "/review?run={half}",
    "assessment": "/assessments/{assessment}",
    "statistics": "/results?run={reviewed}",
    "statistics-behind": "/statistics/behind?run={reviewed}",
    "statistics-trials": "/statistics/trials?run={reviewed}",
    "compare": "/compare",
    "compare-columns": "/compare?col={reviewed}~ada&col={reviewed}~bruno",
    "compare-agreement": "/compare/agreement?col={reviewed}~ada&col={reviewed}~bruno",
    "grades": "/compare/grades",
    "grades-people": "/compare/grades?run={reviewed}&by=people",
    "reviewers": "/reviewers",
    "reviewer": "/reviewers/Ines",
    "reviewer-checks": "/reviewers/Ines/checks",
    "reviewer-decisions": "/reviewers/Ines/decisions",
    "adjudication": "/adjudication",
    "calibration": "/calibration",
    "calibration-one": "/calibration/1",
    "criteria": "/criteria",
    "rubric": "/criteria/architects@1",
    "models": "/models",
    "model": "/models/replay%2F@demo",
    "diff": "/registry/diff?a={reviewed}&b={once}",
    "trend": "/results/trend?suite=architects",
    "task-versions": "/results/task?suite=architects&task=rate-limiter",
    "batch": "/batches/spring",
    "candidates": "/candidates",
    "candidate": "/candidates/ada",
    "specialists": "/specialists",
    "record": "/runs/{reviewed}/record",
    "audit": "/audit",
    "arena": "/arena",
    "arena-bout": "/arena/{clocks}",
    "arena-ranking": "/arena/{clocks}/ranking",
    "signin": "/signin",
}
"""A name for the picture, and an address of each page."""

NO_PAGES = {
    "/health",
    "/get_evaluation_result/{evaluation_id}",
    "/runs/{run_id}/suite",
    "/statistics/charts/{name}",
    "/preview/{token}",
    "/",  # the page of /runs
    "/registry",
    "/registry/trend",
    "/registry/task",
    "/runs/compare",
    "/runs/latest",  # these lead on to other pages
    "/statistics",  # leads on to the results
    "/runs/{run_id}/trials/{trial_id}",
    "/statistics/trials/{trial_id}",  # these lead on to an assessment
    "/docs",  # described in the HTTP reference
    "/pages/{name}",  # the page of a package, in tests/journey/test_plugin_package.py
}
"""Addresses of things that are not pages of ours."""

FAULTS = Path(__file__).with_name("layout_faults.js").read_text("utf-8")


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(furnish(tmp_path_factory.mktemp("furnished") / "bench")) as server:
        sit_down(server)
        yield server


@pytest.fixture(scope="module")
def addresses(furnished: Served) -> dict[str, str]:
    clocks, half, once, reviewed, *_, brought = (
        run["run_id"] for run in furnished.get("/api/runs")["runs"]
    )
    with Workspace.open(furnished.folder, environment={}) as workspace:
        rows = list(workspace.archive.assessments.matching(Selection(runs=(reviewed,))))
    decided = next(row for row in rows if row.state is AssessmentState.CORRECTED)
    ids = {
        "clocks": clocks,
        "half": half,
        "once": once,
        "reviewed": reviewed,
        "brought": brought,
        "assessment": shown_assessment(decided.key),
    }
    return {name: path.format(**ids) for name, path in PAGES.items()}


def test_each_page_has_an_address_here() -> None:
    paths = {
        route.path.replace(":path}", "}")
        for router in routers(api, pages)
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ())
    }
    addresses = {
        path
        for path in paths - NO_PAGES
        if not path.startswith("/api/") and "." not in path.rsplit("/", 1)[-1]
    }
    assert {"/runs", "/review", "/results"} <= addresses, "the pages are found at all"
    given = [path.partition("?")[0] for path in PAGES.values()]
    assert {path for path in addresses if not any(_fits(path, one) for one in given)} == set()


def test_the_gallery_shows_each_page_at_each_width_light_and_dark() -> None:
    docs = Path(__file__).parents[3] / "docs"
    gallery = (docs / "reference" / "pages.md").read_text("utf-8")
    shown = set(re.findall(r"pictures/pages/([\w-]+)\.webp", gallery))
    wanted = {
        f"{name}-{width}-{theme}"
        for name in PAGES
        for width, _ in WIDTHS
        for theme in ("light", "dark")
    }
    assert shown == wanted
    assert {file.stem for file in (docs / "pictures" / "pages").glob("*.webp")} == wanted


def _fits(route: str, path: str) -> bool:
    ours, theirs = route.strip("/").split("/"), path.strip("/").split("/")
    return len(ours) == len(theirs) and all(
        a.startswith("{") or a == b for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PAGES if name != "signin"])
def test_a_page_prints_times_for_the_script_and_counts_in_english(
    furnished: Served, addresses: dict[str, str], name: str
) -> None:
    with urllib.request.urlopen(furnished.url + addresses[name], timeout=60) as answer:
        html = answer.read().decode()
    words = re.sub(
        r"(?s)<(time|script|pre|code|blockquote|title)\b.*?</\1>|<option[^>]* data-at=.*?</option>",
        " ",
        html,
    )
    words = html_module.unescape(re.sub(r"<[^>]*>", " ", words))
    assert re.findall(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.{20}|.{20}\bNone\b.{20}", words) == []
    assert (
        re.findall(
            r"(?<![\d.,])1 (?:[a-z]+ed )?(?:runs|tasks|trials|assessments|grades|scores|decisions|calls|items)\b",
            words,
        )
        == []
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "theme", ["light", "dark"] if os.environ.get("ASSAY_PICTURES") else ["light"]
)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_whole_and_accessible(
    chromium: Browser,
    furnished: Served,
    addresses: dict[str, str],
    watch: Watch,
    theme: Any,
    name: str,
) -> None:
    context = chromium.new_context(color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    watch.on(page, furnished)
    page.goto(furnished.url + addresses[name])
    page.wait_for_load_state("load")
    if name in {"review", "assessment"}:
        ready(page)
    faults = []
    for width, height in (*WIDTHS, ZOOMED):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(50)
        over = page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        if over > 0:
            faults.append(f"{width}: {over} px too wide")
        faults += [f"{width}: {fault}" for fault in page.evaluate(FAULTS)]
        if (width, height) != ZOOMED:
            _keep(page, f"{name}-{width}-{theme}")
    assert faults == []
    expect(page.locator("h1:visible")).to_have_count(1)
    assert serious(page) == []
    context.close()


def _keep(page: Page, name: str) -> None:
    """Save a picture for the documentation if `ASSAY_PICTURES` names a folder."""
    if folder := os.environ.get("ASSAY_PICTURES"):
        page.wait_for_timeout(250)
        size = page.viewport_size or {"width": 0, "height": 0}
        bar = page.locator(
            "footer.actions"
        ).count()  # stays at the window's lower edge, wherever that is
        bar = bar or (size["width"] < 861 and page.locator(".go-part").count())
        # in a window as high as the page, it stands at the end
        if not bar and page.locator(".save-row").count():
            page.set_viewport_size(
                {**size, "height": page.evaluate("() => document.documentElement.scrollHeight")}
            )
        whole = page.evaluate("() => Math.min(document.documentElement.scrollHeight, 1600)")
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": size["height"] if bar else max(whole, 500),
            "scale": 1,
        }
        session = page.context.new_cdp_session(page)
        taken = session.send(
            "Page.captureScreenshot",
            {"format": "webp", "quality": 45, "clip": clip, "captureBeyondViewport": True},
        )
        # a server in this process has changed the working directory
        target = Path(__file__).parents[3] / folder
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{name}.webp").write_bytes(base64.b64decode(taken["data"]))
