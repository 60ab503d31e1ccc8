"""The page of a run with many trials of a task, on narrow screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.web.conftest import Served, judged_store

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One task, more trials than fit beside each other."""
    return judged_store(tmp_path_factory.mktemp("many") / "store", things=1, trials=14)


@pytest.mark.parametrize("width", [340, 390])
def test_the_matrix_of_a_run_scrolls_in_its_place_and_widens_no_page(
    page: Page, served: Served, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{served.url}/runs/{served.run_id}")
    page.wait_for_selector(".scroll[data-wide] .matrix")
    over = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert over <= 0
