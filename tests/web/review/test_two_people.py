"""Two invited people give an opinion on one item, each in a browser of their own, and the result
says so.
"""

from __future__ import annotations

import re
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect
from tests.support import forked
from tests.web.conftest import (
    Served,
    Watch,
    decided,
    eventually,
    judged_store,
    new_context,
    ready,
    serving,
    write_judge,
)

from assay.app import people
from assay.app.workspace import Workspace

if TYPE_CHECKING:
    from playwright.sync_api import Page, Response

FIRST, SECOND = "annabel", "beatrice"
OF_THE_FIRST = re.compile(rf"\b0\.3\b|{FIRST}")
"""The grade that the first person gives everywhere, and their name."""


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two") / "store"
    folder.mkdir()
    judge = write_judge(folder, missing_in=None)
    return judged_store(
        folder, things=1, trials=1, judge=judge, protocol={"second": 1.0, "blind": 1.0}
    )


@pytest.fixture
def served(of_two: Path, tmp_path: Path) -> Iterator[Served]:
    """A server over a store whose only item needs two people, who grade it before they see the
    judge's grades.
    """
    with serving(shutil.copytree(of_two, tmp_path / "store")) as server:
        yield server


@pytest.fixture
def browser_of(
    chromium: Browser, served: Served, watch: Watch
) -> Iterator[Callable[[str], tuple[Page, list[str]]]]:
    """Open the review page in a new browser by a person's invitation; the page, and what the server
    sends about items.
    """
    contexts = []

    def opened(name: str) -> tuple[Page, list[str]]:
        with Workspace.open(served.folder, environment={}) as workspace:
            invitation = people.invite(workspace.store, name, role="reviewer", base=served.url)
        contexts.append(new_context(chromium))
        page = contexts[-1].new_page()
        watch.on(page, served)
        received: list[str] = []

        def read(response: Response) -> None:
            if response.ok and "application/json" in response.headers.get("content-type", ""):
                received.append(response.text())

        page.on("response", read)
        page.goto(invitation.link)
        ready(page)
        return page, received

    yield opened
    for context in contexts:
        context.close()


def grade_all(page: Page, grade: str) -> None:
    """Give the own verdict: the same grade for every criterion and candidate."""
    page.wait_for_selector(".ways")
    for field in page.locator('[data-field]:not([data-field^="-1."])').all():
        field.fill(grade)
    page.keyboard.press("Control+Enter")
    eventually(
        lambda: "Your verdict is saved. Now approve" in (page.locator("#said").text_content() or "")
    )
    ready(page)


def result_of(served: Served) -> tuple[str, str]:
    """Return the text of `assay stats` and the Results page of the owner."""
    stats = forked.run("stats", folder=served.folder)
    assert stats.returncode == 0, stats.stderr
    with urllib.request.urlopen(f"{served.url}/results", timeout=30) as answer:
        return stats.stdout, answer.read().decode()


@pytest.mark.slow
def test_two_invited_people_decide_one_item_without_seeing_each_other(
    served: Served, browser_of: Callable[[str], tuple[Page, list[str]]]
) -> None:
    page, received = browser_of(FIRST)
    assert received
    assert not [text for text in received if re.search(r"\b0\.3\b", text)], (
        "the grade would prove nothing"
    )
    grade_all(page, "3")
    assert [text for text in received if re.search(r"\b0\.3\b", text)], (
        "the first person's own page has the grade"
    )
    decided(page, "a")
    eventually(
        lambda: "needs another reviewer" in (page.locator("#empty-lines").text_content() or "")
    )
    for text in result_of(served):
        assert "0 of 1 by two people, 1 awaits another person" in text

    page, received = browser_of(SECOND)
    expect(page.locator("#heading")).to_contain_text("needs two reviewers", use_inner_text=True)
    grade_all(page, "6")
    assert received
    assert not [text for text in received if OF_THE_FIRST.search(text)]
    assert FIRST not in page.content()
    decided(page, "a")
    eventually(lambda: served.states() == {"approved": 1})
    for text in result_of(served):
        assert "1 of 1 blind, 1 of 1 by two people; planned: all" in text
        assert "1 approved: 1 read on screen" in text
