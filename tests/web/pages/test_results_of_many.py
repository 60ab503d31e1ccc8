"""The first screen of Results with many candidates and tasks: bytes on the wire, and no work for
tasks that it does not show.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from importlib import import_module
from unittest.mock import Mock, patch

import numpy as np
import pytest
from fastapi.testclient import TestClient

from assay.app.imports.importer import import_paths
from assay.app.workspace import Workspace
from assay.statistics.exact import sign_flip
from assay.web import server, templating
from assay.web.server import create_app

CANDIDATES, TASKS = 50, 120


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("many")
    chance = random.Random(1)
    rows = [
        f"task-{task:03},candidate-{one:02},1,{chance.random():.3f},rule,exempt"
        for task in range(TASKS)
        for one in range(CANDIDATES)
    ]
    (folder / "many.csv").write_text(
        "\n".join(["task,candidate,trial,score,judge,state", *rows, ""]), "utf-8"
    )
    with Workspace.open(folder, environment={}) as workspace:
        assert import_paths(workspace, [folder / "many.csv"]).assessments == len(rows)
        yield TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")


def test_the_first_screen_is_small_on_the_wire(client: TestClient) -> None:
    answer = client.get("/results")
    assert answer.status_code == 200
    assert len(gzip.compress(answer.content, 4)) <= 80_000


def test_means_are_computed_only_for_the_tasks_shown(client: TestClient) -> None:
    shown = client.get("/results").text.count("/statistics/trials?suite=many&amp;task=task-") // (
        CANDIDATES + 1
    )
    estimates = import_module("assay.statistics.estimates")
    with patch.object(estimates, "TaskEstimate", wraps=estimates.TaskEstimate) as made:
        assert client.get("/results").status_code == 200
    assert 0 < made.call_count <= max(shown, 20) * CANDIDATES < TASKS * CANDIDATES


def test_a_server_prepares_what_the_first_visit_needs() -> None:
    templating.templates.cache_clear()
    endpoints = Mock()
    with (
        patch.object(server, "shared_routes", return_value=(endpoints,)),
        patch("gc.freeze") as freeze,
    ):
        server._prepare_results_page()
    endpoints.matches.assert_called_once()
    freeze.assert_called_once()
    assert "statistics/results.html" in {name for _, name in templating.templates().cache or {}}


def test_random_signs_by_the_byte_agree_with_single_draws() -> None:
    rng = np.random.default_rng(3)
    differences, weights = rng.normal(0.15, 1, 61), rng.uniform(0.5, 2, 61)
    terms = weights / weights.max() * differences
    signs = rng.integers(0, 2, size=(40_000, 61)) * 2.0 - 1.0
    plain = float((np.abs(signs @ terms) >= abs(terms.sum()) - 1e-12).mean())
    drawn = sign_flip(differences, weights, rng=rng, draws=40_000)
    assert drawn is not None
    assert abs(drawn - plain) < 5 * (2 * plain * (1 - plain) / 40_000) ** 0.5
