"""The pages about models: what is known of each, a call to see whether one answers, and what
reviewers must not learn there.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from playwright.sync_api import expect
from tests.support.model_server import Mishap, ModelServer
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, serving

from assay.app.registry.models import Models
from assay.app.runs.plan_cache import Plans
from assay.app.workspace import Workspace
from assay.web.templating import static_content

if TYPE_CHECKING:
    from playwright.sync_api import Page


KEY = "sk-never-on-a-page-0123456789"
NASTY = "openai/<img src=x onerror=alert(1)>\u202e"
PAGE_BYTES = 30_000


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running_server:
        yield running_server


@pytest.fixture
def asked(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    """A folder with one run of two candidates and a judge, everything of which waits."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
    with Workspace.open(tmp_path, environment=environment) as workspace:
        run(workspace, tmp_path, "first")
        yield workspace


def run(workspace: Workspace, folder: Path, name: str) -> Any:
    from assay.app.runs import execution, preflight
    from assay.domain.run import RunOptions

    suite = {
        "name": name,
        "trials": 2,
        "judge": {"model": "openai/gpt-4o-mini"},
        "candidates": ["openai/gpt-4o", "openai/nonesuch"],
        "tasks": [{"id": "peru", "prompt": "Capital of Peru?", "score": "judge"}],
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(suite), "utf-8")
    return beside(execution.run, workspace, preflight.load(workspace.settings, path), RunOptions())


def beside(what: Callable[..., Any], *given: Any) -> Any:
    """Do it in another thread, since the browser's event loop may run in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(what, *given).result()


def checked(models: Models, ref: str) -> Any:
    return beside(models.check, ref)


def by_ref(models: Models, role: str) -> dict[str, Any]:
    return {one.ref: one for one in models.all() if one.role == role}


def test_model_calls_are_summed_by_role_and_unknown_costs_counted(asked: Workspace) -> None:
    models = Models(asked, Plans(asked.store))
    judges, candidates = by_ref(models, "judge"), by_ref(models, "candidate")
    assert set(judges) == {"openai/gpt-4o-mini"}
    assert set(candidates) == {"openai/gpt-4o", "openai/nonesuch"}
    assert candidates["openai/gpt-4o"].used.calls == 2
    assert candidates["openai/gpt-4o"].used.cost_usd > 0
    assert candidates["openai/gpt-4o"].price.source == "list"
    assert candidates["openai/nonesuch"].used.unpriced == 2
    assert candidates["openai/nonesuch"].price.source is None
    (summary,) = asked.archive.runs.matching()
    whole = [*judges.values(), *candidates.values()]
    assert sum(one.used.input_tokens for one in whole) == summary.input_tokens
    assert sum(one.used.cost_usd for one in whole) == pytest.approx(summary.cost_usd)


def test_only_new_calls_are_read_and_none_is_counted_twice(
    asked: Workspace, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models(asked, Plans(asked.store))
    models.all()
    began: list[int] = []
    calls = type(asked.archive.calls)
    whole: Any = calls.groups

    def noted(self: Any, after: int) -> Any:
        began.append(after)
        return whole(self, after)

    monkeypatch.setattr(calls, "groups", noted)
    server.script([Mishap.HTTP_500])
    run(asked, tmp_path, "second")
    again = by_ref(models, "candidate")
    models.all()
    assert began[0] > 0
    assert began[1] > began[0]
    every = [*again.values(), *by_ref(models, "judge").values()]
    assert sum(one.used.calls for one in every) == len(server.calls)
    assert sum(one.used.failed for one in every) == 1
    assert next(one for one in every if one.last_error).last_error.kind == "http_500"
    assert again["openai/gpt-4o"].used.runs == 2


def test_runs_of_a_model_are_listed_while_reviews_wait(asked: Workspace) -> None:
    models = Models(asked, Plans(asked.store))
    result = models.one("openai/gpt-4o")
    assert [one.run.suite for one in result.runs] == ["first"]
    assert result.latencies[0].n == 2
    assert 0 < result.latencies[0].p50 <= result.latencies[0].most


def test_model_check_is_one_call_and_lists_accepted_parameters(
    asked: Workspace, server: ModelServer
) -> None:
    models = Models(asked, Plans(asked.store))
    before = len(server.calls)
    result = checked(models, "openai/gpt-4o")
    assert len(server.calls) == before + 1
    assert result.ok
    assert result.latency_s is not None
    assert result.cost_usd is not None
    one = by_ref(models, "candidate")["openai/gpt-4o"]
    assert (one.takes.schema, one.takes.seed) == ("response_format", True)
    assert one.check_costs is not None
    assert result.cost_usd <= one.check_costs
    server.refuses = {"response_format"}
    assert checked(models, "openai/nonesuch").takes.schema == "in_words"
    assert one.used.calls == 2, "a check is no call of a run"


def test_a_check_that_fails_says_why_and_is_not_repeated(
    asked: Workspace, server: ModelServer
) -> None:
    models = Models(asked, Plans(asked.store))
    before = len(server.calls)
    server.script([Mishap.HTTP_401])
    result = checked(models, "openai/gpt-4o")
    assert len(server.calls) == before + 1
    assert not result.ok
    assert result.kind == "http_401"
    assert KEY not in json.dumps([result.detail, result.text])


@pytest.fixture
def served(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """A server in a folder whose settings name models of every sort."""
    settings = {
        "judge": "openai/gpt-4o-mini",
        "prices": {
            "openai/gpt-4o": {"input": 2, "output": 8},
            "vllm/own": {"input": 0, "output": 0},
            NASTY: {"input": 1, "output": 1},
            "anthropic/claude-sonnet-4-5": {"input": 3, "output": 15},
        },
        "local_only": True,
    }
    (tmp_path / "assay.yaml").write_text(yaml.safe_dump(settings), "utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    with serving(tmp_path) as served:
        yield served


def test_a_button_checks_and_the_outcome_is_said(
    page: Page, served: Served, server: ModelServer
) -> None:
    page.goto(served.url + "/models")
    page.get_by_role("button", name="Check openai/gpt-4o-mini").click()
    outcome = page.locator('[data-outcome="openai/gpt-4o-mini"]')
    outcome.filter(has_text="answered in").wait_for()
    assert len(server.calls) == 1
    text = page.locator("main").inner_text()
    assert "local_only" in text
    assert "from assay.yaml" in text
    expect(
        page.get_by_role("button", name="Check anthropic"), "local_only keeps it from being asked"
    ).to_have_count(0)
    assert KEY not in page.content()
    assert "key set" in text
    page.locator("th a", has_text="<img").click()
    assert page.locator("h1").inner_text().startswith("openai/<img")


def test_only_listed_models_are_asked(served: Served, server: ModelServer) -> None:
    for ref, status in (("openai/other", 404), ("anthropic/claude-sonnet-4-5", 409)):
        request = urllib.request.Request(
            f"{served.url}/api/models/check",
            data=json.dumps({"model": ref}).encode(),
            headers={"content-type": "application/json"},
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10)
        assert refused.value.code == status
    assert not server.calls


def test_json_twins_match_the_pages(served: Served) -> None:
    row = served.get("/models.json")["models"]
    assert {one["ref"] for one in row} >= {
        "openai/gpt-4o-mini",
        "vllm/own",
        "anthropic/claude-sonnet-4-5",
    }
    one = served.get("/models/vllm/own.json")
    assert one["model"] == "vllm/own"
    assert one["failures"] == []
    assert KEY not in json.dumps([row, one])


@pytest.mark.slow
def test_axe_finds_nothing_serious_and_nothing_is_clipped(page: Page, served: Served) -> None:
    for path in ("/models", "/models/vllm/own"):
        page.goto(served.url + path)
        assert serious(page) == [], path
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"


def test_the_page_is_small() -> None:
    names = (
        "frame/dom.js",
        "frame/keys.js",
        "frame/page.js",
        "judges/models.js",
        "statistics/statistics.css",
        "judges/judges.css",
    )
    assert sum(len(static_content(name)) for name in names) < PAGE_BYTES
