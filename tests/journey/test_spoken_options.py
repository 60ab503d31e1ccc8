"""Refusals of Python functions and of the HTTP API name parameters and fields, not options of the
command line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from fastapi.testclient import TestClient

import assay as assay_bench
from assay import InputError, RunOptions, Selection
from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.journey.test_one_run import CORRECTED, TOO_STRICT, run

_COMMAND: Final = re.compile(r"`assay [^`]*`|assay [a-z]+ .*")
_OPTION: Final = re.compile(r"--[a-z]")

REFUSED: Final[dict[str, Callable[[str], object]]] = {
    "compare": lambda _: assay_bench.compare("terse", "long", Selection(all_runs=True)),
    "stats": lambda run_id: assay_bench.stats(Selection(runs=run_id, all_runs=True)),
    "rank": lambda _: assay_bench.rank(Selection(all_runs=True)),
    "plan": lambda _: assay_bench.plan("3pts", Selection(all_runs=True)),
    "plan power": lambda _: assay_bench.plan("3pts", power=2),
    "gate": lambda _: assay_bench.gate("terse", "long"),
    "gate itself": lambda run_id: assay_bench.gate("terse", baseline=run_id, margin="3pts"),
    "gate nobody": lambda run_id: assay_bench.gate("nobody", baseline=run_id, margin="3pts"),
    "criterion": lambda _: assay_bench.stats(Selection(criteria=["verdict", "other"])),
    "export junit": lambda _: assay_bench.export("junit", output="x.xml"),
    "export junit margin": lambda _: assay_bench.export("junit", output="x.xml", against="long"),
    "export rule": lambda _: assay_bench.export("html", output="x.html", threshold=0.5),
    "export everything": lambda _: assay_bench.export("html", output="x.html", everything=True),
    "export again": lambda _: assay_bench.export("html", output="qa.json"),
    "resume": lambda run_id: assay_bench.resume(run_id, budget_usd=-1),
    "extend nothing": assay_bench.extend,
    "extend trials": lambda run_id: assay_bench.extend(run_id, trials=-1),
    "extend approved": lambda run_id: assay_bench.extend(run_id, until_approved=10_001),
    "extend candidate": lambda run_id: assay_bench.extend(run_id, candidates="gpt"),
    "extend review": lambda run_id: assay_bench.extend(run_id, review="sample:2"),
    "regrade judge": lambda run_id: assay_bench.regrade(run_id, judge="gpt"),
    "regrade score": lambda run_id: assay_bench.regrade(run_id, score="nonsense"),
    "import": lambda _: assay_bench.import_results("missing.json"),
    "calibrate": lambda _: assay_bench.calibrate("gpt"),
    "calibrate samples": lambda _: assay_bench.calibrate("openai/gpt-5-mini", samples="qa.json"),
    "load": lambda _: assay_bench.load_suite("judged.json"),
    "load judge": lambda _: assay_bench.load_suite("judged.json", judge="gpt"),
    "run budget": lambda _: assay_bench.run("qa.json", options=RunOptions(budget_usd=-1)),
    "run trials": lambda _: assay_bench.run("qa.json", options=RunOptions(trials=10**9)),
    "run concurrency": lambda _: assay_bench.run("qa.json", options=RunOptions(concurrency=0)),
    "run limit": lambda _: assay_bench.run("qa.json", options=RunOptions(limit=0)),
    "submit": lambda _: assay_bench.submit_batch("qa.json", options=RunOptions(limit=0)),
    "collect": lambda _: assay_bench.collect_batch("nope"),
    "approve": lambda _: assay_bench.review.approve("a1"),
    "reject": lambda _: assay_bench.review.reject("a1", reason=""),
    "correct": lambda _: assay_bench.review.correct("a1", {"terse": 7}, reason=""),
    "rerun": lambda _: assay_bench.review.rerun("a1", reason=""),
}

ADDRESSES: Final = (
    "/statistics.json?all_runs=1",
    "/statistics.json?run={run}&all_runs=1",
    "/statistics.json?margin=7",
    "/statistics.json?criterion=verdict&criterion=other",
    "/results/report.csv?all_runs=1&run={run}",
    "/results/trend.json",
)
BODIES: Final[tuple[tuple[str, dict[str, object]], ...]] = (
    ("/api/runs/{run}/extend", {"trials": -1}),
    ("/api/runs/{run}/extend", {"until_approved": 10_001}),
    ("/api/runs/{run}/extend", {"candidates": ["gpt"]}),
    ("/api/runs/{run}/regrade", {"judge": "gpt"}),
    ("/api/runs/{run}/steer", {"wish": "resume", "budget": -1}),
    ("/api/runs/nope/delete", {"reason": ""}),
    ("/api/assessments/a1/reject", {"reason": ""}),
    ("/api/start", {"path": "qa.json", "budget": -1}),
    ("/api/start", {"path": "qa.json", "limit": 0, "trials": 10**9}),
    ("/api/evaluations", {"budget": -1}),
)


@pytest.fixture
def newest(assay: Command, project: Path) -> str:
    """The newest of two runs that may not be pooled, beside a suite that needs a judge."""
    tasks = [{"id": "t", "prompt": "Why?", "snippets": {"terse": "So.", "long": "So it is."}}]
    (project / "judged.json").write_text(json.dumps({"name": "judged", "tasks": tasks}), "utf-8")
    run(assay, project, TOO_STRICT)
    return run(assay, project, CORRECTED)


def options_in(text: str) -> list[str]:
    return _OPTION.findall(_COMMAND.sub("", text))


def test_refusals_of_python_functions_name_parameters(newest: str) -> None:
    accepted, wrong = [], {}
    for name, call in REFUSED.items():
        try:
            call(newest)
        except assay_bench.AssayError as error:
            parts = (error.where, error.problem, error.remedy, str(error))
            if any(map(options_in, parts)):
                wrong[name] = parts
        else:
            accepted.append(name)
    assert not accepted
    assert not wrong
    with pytest.raises(InputError) as refused:
        assay_bench.compare("terse", "long", Selection(all_runs=True))
    assert f'Read one run with runs="{newest}", or add pool_anyway=True' in str(refused.value)
    with pytest.raises(InputError) as both:
        assay_bench.stats(Selection(runs=newest, all_runs=True))
    assert str(both.value) == "all_runs=True: is given together with `runs`. Use one of them."


def test_refusals_over_http_name_fields_and_parameters(newest: str, project: Path) -> None:
    with (
        Workspace.open(project, environment={}) as workspace,
        TestClient(create_app(workspace)) as client,
    ):
        client.headers["host"] = "127.0.0.1"
        answers = [client.get(address.format(run=newest)) for address in ADDRESSES]
        answers += [client.post(path.format(run=newest), json=body) for path, body in BODIES]
        pages = [
            client.get(address.format(run=newest), headers={"accept": "text/html"})
            for address in ADDRESSES
        ]
        for answer in (*answers, *pages):
            assert 400 <= answer.status_code < 500, (answer.url, answer.text)
            assert not options_in(re.sub(r"<style.*?</style>|<!--", "", answer.text)), (
                str(answer.url),
                answer.text,
            )
        error = answers[0].json()["error"]
        assert (
            error["remedy"]
            == f"Read one run with run={newest}, or add pool_anyway=1 for a verdict that is labelled as mixed."
        )
        assert answers[1].json()["error"]["problem"] == "is given together with `run`."
