"""An item of a rubric with rules: its verdict, the check of its final answer, and its structure
below the response.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from playwright.sync_api import expect
from tests.journey.test_rubric_pipeline import FINAL, RUBRIC, answer, raw
from tests.support import forked
from tests.support.model_server import ModelServer
from tests.web.accessibility import serious
from tests.web.conftest import Served, ready, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setitem(FINAL, "m1", "61")
    (tmp_path / "raw.json").write_text(json.dumps(raw()), "utf-8")
    (tmp_path / "rubric.yaml").write_text(yaml.safe_dump(RUBRIC), "utf-8")
    with ModelServer() as models:
        models.answer = answer
        reached = {"OPENAI_BASE_URL": models.url, "OPENAI_API_KEY": "sk-none"}
        done = forked.run(
            "run",
            "raw.json",
            "--rubric",
            "rubric.yaml",
            "--judge",
            "openai/judge",
            folder=tmp_path,
            **reached,
        )
    assert done.returncode in (0, 1), done.stderr
    with serving(tmp_path) as server:
        yield server


def test_verdict_check_and_structure_are_on_the_page(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    right = page.locator(".right:not(.behind)")
    expect(right.locator("tfoot .verdict")).to_have_text("Partial")
    expect(right.get_by_role("list", name="Final answers")).to_have_text(
        "✗Final answer does not match (math)"
    )
    structure = page.locator(".left:not(.behind) details.structure")
    expect(structure).to_have_count(1)
    structure.locator("summary").click()
    expect(structure.get_by_role("listitem")).to_have_text("Divide.")
    expect(structure).to_contain_text("61")
    assert serious(page) == []
    page.get_by_role("tab", name="Task").click()
    expect(page.get_by_text("Correct final answer")).to_be_visible()
    expect(page.get_by_text("The solution of 10")).to_be_visible()
