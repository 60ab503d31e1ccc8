"""The JSON that commands and addresses write, compared with committed snapshots, so that no shape
changes unnoticed.

A snapshot is a document of a store with something of everything in it. Dates, ids, digests,
durations and what chance draws are masked, and of a long list only the beginning is kept.
`ASSAY_SNAPSHOTS=write` writes the snapshots anew: read the difference before you commit it, because
scripts and other programs depend on these documents.
"""

from __future__ import annotations

import functools
import io
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from assay.app.workspace import Workspace
from assay.cli.main import exit_code
from assay.domain.identifiers import shown_assessment
from assay.domain.lifecycle import AssessmentState, RunState
from assay.domain.selection import Selection
from assay.web.server import create_app
from tests.web.api.test_submitted_runs import RUN
from tests.web.conftest import serving
from tests.web.full_store import furnish, sit_down

if TYPE_CHECKING:
    from collections.abc import Mapping

SNAPSHOTS = Path(__file__).with_name("wire")
KEPT = 3
"""Items of a list that a snapshot keeps; the others have the same shape."""

COMMANDS = {
    "runs": "runs",
    "show-run": "show {reviewed}",
    "show-batch": "show spring",
    "show-assessment": "show {assessment}",
    "show-trial": "show {trial}",
    "review-list": "review list --run {reviewed} --limit 3",
    "review-show": "review show {assessment}",
    "review-approve": "review approve {pending}",
    "review-undo": "review undo {pending}",
    "review-correct": "review correct {pending} --score {name}=0.5 --reason mild",
    "review-reject": "review reject {waiting} --reason wrong",
    "review-rerun-trial": "review rerun {trial}",
    "review-protocol": "review protocol {half}",
    "stats": "stats --run {reviewed}",
    "stats-half": "stats --run {half}",
    "compare": "compare ada bruno --run {reviewed}",
    "compare-margin": "compare ada bruno --run {reviewed} --margin 0.05",
    "rank": "rank --run {reviewed}",
    "plan": "plan --detect 0.05 --run {reviewed}",
    "gate": "gate ada --against bruno --margin 0.05 --run {reviewed}",
    "chart": "chart scores --run {reviewed} --output {out}/chart.csv",
    "diff": "diff {reviewed} {once}",
    "trend": "trend architects",
    "candidates-rename": "candidates rename chiara Chiara",
    "candidates-list": "candidates list",
    "candidates-undo": "candidates undo n1",
    "export-csv": "export csv --run {reviewed} --all --output {out}/scores.csv",
    "export-results": "export results --run {reviewed} --output {out}/results",
    "calibrate": "calibrate replay/judge.jsonl",
    "calibrate-list": "calibrate --list replay/judge.jsonl",
    "calibrate-dry-run": "calibrate replay/judge.jsonl --dry-run --repeat 2",
    "run": "run architects.json --trials 1",
    "run-dry-run": "run architects.json --dry-run --show-prompt",
    "extend": "extend {once} --trials 1",
    "regrade": "regrade {once}",
    "regrade-dry-run": "regrade {reviewed} --dry-run",
    "import-again": "import brought",
    "import-table": "import table.csv",
    "import-rebuild": "import results --rebuild",
    "validate": "validate architects.json",
    "validate-wrong": "validate wrong.json",
    "config": "config",
    "error": "show nothing-of-this-name",
}

ADDRESSES = {
    "api-runs": "/api/runs",
    "api-run": "/api/runs/{reviewed}",
    "api-run-half": "/api/runs/{half}",
    "api-batch": "/api/batches/spring",
    "api-received-run": "/api/runs/{received}",
    "api-received-batch": "/api/batches/batch_1",
    "api-protocol": "/api/runs/{half}/protocol",
    "api-suites": "/api/suites",
    "api-suite": "/api/suites/read?path=architects.json",
    "api-suite-wrong": "/api/suites/read?path=wrong.json",
    "api-assessment": "/api/assessments/{assessment}",
    "api-assessment-pane": "/api/assessments/{assessment}/panes/0",
    "api-arena-next": "/api/arena/{clocks}/next",
    "api-calibration-jobs": "/api/calibrations/jobs",
    "api-evaluation": "/get_evaluation_result/{evaluation}",
    "api-evaluation-one": "/get_evaluation_result/{single}",
    "runs": "/runs.json",
    "start": "/start.json?suite=architects.json",
    "run-page": "/runs/{reviewed}.json",
    "trial-answers": "/runs/{brought}/trials/t1/answers.json",
    "assessment-page": "/assessments/{assessment}.json",
    "statistics": "/statistics.json?run={reviewed}",
    "statistics-details": "/statistics/behind.json?run={reviewed}",
    "statistics-trials": "/statistics/trials.json?run={reviewed}",
    "answers": "/compare.json",
    "answers-columns": "/compare.json?col={reviewed}~ada&col={reviewed}~bruno",
    "answers-agreement": "/compare/agreement.json?col={brought}~mistral-7b&col={brought}~llama-8b",
    "grades": "/compare/grades.json",
    "grades-people": "/compare/grades.json?run={reviewed}&by=people",
    "reviewers": "/reviewers.json",
    "reviewer-checks": "/reviewers/Ines/checks.json",
    "adjudication": "/adjudication.json",
    "calibrations": "/calibration.json",
    "calibration": "/calibration/1.json",
    "rubrics": "/criteria.json",
    "rubric": "/criteria/architects@1.json",
    "models": "/models.json",
    "model": "/models/replay%2F@demo.json",
    "registry-diff": "/registry/diff.json?a={reviewed}&b={once}",
    "trend": "/results/trend.json?suite=architects",
    "task-versions": "/results/task.json?suite=architects&task=rate-limiter",
    "batch": "/batches/spring.json",
    "candidates": "/candidates.json",
    "candidate": "/candidates/ada.json",
    "specialists": "/specialists.json",
    "record": "/runs/{reviewed}/record.json",
    "audit": "/audit.json",
    "audit-chain": "/audit/check.json",
    "arena": "/arena.json",
    "arena-bout": "/arena/{clocks}.json",
    "arena-ranking": "/arena/{clocks}/ranking.json",
    "problem": "/api/runs/nothing",
}

SENT = {
    "post-look": ("/api/start/look", {"suite": "architects.json"}),
    "post-look-wrong": ("/api/start/look", {"suite": "architects.json", "trials": -1}),
    "post-extend-look": ("/api/runs/{once}/extend", {"trials": 1, "only_look": True}),
    "post-regrade-look": ("/api/runs/{once}/regrade", {"only_look": True}),
    "post-protocol-look": ("/api/runs/{half}/protocol", {"blind": 0.2, "only_look": True}),
    "post-calibration-look": ("/api/calibrations/look", {"models": ["replay/judge.jsonl"]}),
    "post-suite": ("/api/suites", {"name": "mine", "text": "[]", "only_look": True}),
}
"""Documents that answer a request with a body; none of these changes the store."""

DRAWN = {
    "http-api-run-half",
    "http-api-assessment",
    "http-api-assessment-pane",
    "http-api-arena-next",
    "http-assessment-page",
    "http-batch",
    "http-reviewers",
    "http-rubric",
    "http-arena-bout",
    "http-arena-ranking",
    "http-audit",
    "cli-show-assessment",
    "cli-show-trial",
    "cli-review-show",
    "cli-stats-half",
    "cli-review-list",
}
"""Documents whose values depend on the order that a run draws; only their keys are compared."""

TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?|\d{4}-\d\d-\d\d(?= |$|[^\w-])"
)
RUN_ID = re.compile(r"\d{8}-\d{6}-([a-z0-9-]+?)-[0-9a-f]{4}\b|eval_[0-9a-f-]{36}")
STAMP = re.compile(r"\d{8}-\d{6}|\d{8}T\d{6}")
DIGEST = re.compile(r"\b[0-9a-f]{12,64}\b")
VEILED = re.compile(r"\br[0-9a-hjkmnp-tv-z]{8}\b")
CHANCE = {
    "seconds",
    "latency_s",
    "mean_latency_s",
    "duration_seconds",
    "duration_s",
    "req_per_sec",
    "durationMs",
    "left_s",
    "active_s",
    "seed",
    "python",
    "machine",
    "platform",
    "cpu",
    "memory",
    "packages",
    "versions",
    "endpoints",
    "assay",
    "assay_version",
    "git",
    "timestamp",
    "code_version",
    "pid",
    "hours",
    "minutes",
    "bytes",
    "config_digest",
    "newest_hash",
    "token",
}
"""Keys of what differs from machine to machine or from one time to the next."""

SENTENCES = {
    "text",
    "words",
    "verdict",
    "error",
    "message",
    "problem",
    "remedy",
    "description",
    "detail",
    "reason",
    "why",
    "note",
}
"""Keys of sentences, whose wording other tests check."""


@dataclass(frozen=True)
class RunContext:
    """A store with something of everything, and what to call its parts by."""

    folder: Path
    client: TestClient
    names: Mapping[str, str]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunContext]:
    folder = furnish(tmp_path_factory.mktemp("wire") / "bench")
    with serving(folder) as served:
        sit_down(served)
    (folder / "wrong.json").write_text(
        '{"name": "wrong", "tasks": [{"id": "a", "promt": "x"}]}', "utf-8"
    )
    (folder / "table.csv").write_text(
        "task,candidate,trial,score\na,x,1,0.5\na,y,1,1\nb,x,1,7\n", "utf-8"
    )
    with Workspace.open(folder, environment={}) as workspace:
        clocks, half, once, reviewed, *_, brought = (
            run.id for run in workspace.archive.runs.newest(limit=20)
        )
        rows = list(workspace.archive.assessments.matching(Selection(runs=(reviewed,))))
        opinions = workspace.observations.opinions_that_wait(Selection(runs=(half,)))
        # An item that awaits a second opinion refuses the same person, and chance draws which item
        # that is.
        with_opinion = {opinion.assessment for opinion in opinions}
        waiting = [
            row
            for row in workspace.archive.assessments.matching(Selection(runs=(half,)))
            if row.state is AssessmentState.PENDING
            and None not in row.assessment.scores.values()
            and row.key not in with_opinion
        ]
        decided = next(row for row in rows if row.state is AssessmentState.CORRECTED)
        with TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client:
            sent = [
                client.post("/submit_evaluation", json={**body, "judge": "human"}).json()
                for body in (THING,)
            ]
            sent.append(client.post("/submit_evaluation", json=RESPONSE).json())
            received = client.post("/api/runs", json=RUN).json()["run_id"]
            while any(
                run.state in {RunState.PLANNED, RunState.RUNNING}
                for run in workspace.archive.runs.newest(limit=5)
            ):
                time.sleep(0.05)  # the evaluations above are carried out by a thread of the server
            names = {
                "clocks": clocks,
                "half": half,
                "once": once,
                "reviewed": reviewed,
                "brought": brought,
                "received": received,
                "assessment": shown_assessment(decided.key),
                "trial": f"t{decided.trial}",
                "pending": shown_assessment(waiting[0].key),
                "waiting": shown_assessment(waiting[1].key),
                "name": next(iter(waiting[0].assessment.scores)),
                "evaluation": sent[0]["evaluation_id"],
                "single": sent[1]["evaluation_id"],
                "out": str(tmp_path_factory.mktemp("out")),
            }
            yield RunContext(folder=folder, client=client, names=names)


THING = {
    "thingName": "Rate limiter",
    "context": "At most 5 calls a second.",
    "trialsNeeded": 2,
    "snippets": [
        {"name": "ann", "content": "def allow(): ..."},
        {"name": "bob", "content": "class Limiter: ..."},
    ],
}
RESPONSE = {
    "prompt_id": "math_1",
    "prompt_content": "Which number follows 9, 5, 6?",
    "model_response_id": "resp-1",
    "model_name": "small-model",
    "model_response_text": "The next one is 60.",
    "correct_answer": "60",
    "judge_llm_model": "human",
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_address_writes_its_documented_shape(bench: RunContext, name: str) -> None:
    answer = bench.client.get(ADDRESSES[name].format(**bench.names))
    compare(f"http-{name}", answer.json(), bench)


@pytest.mark.parametrize("name", SENT)
def test_request_with_a_body_is_answered_in_its_shape(bench: RunContext, name: str) -> None:
    path, body = SENT[name]
    compare(f"http-{name}", bench.client.post(path.format(**bench.names), json=body).json(), bench)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_writes_its_documented_shape(bench: RunContext, name: str) -> None:
    """Runs after the tests of addresses, because some commands decide, rename and extend."""
    words = [word.format(**bench.names) for word in COMMANDS[name].split()]
    out = io.StringIO()
    with chdir(bench.folder), redirect_stdout(out):
        exit_code([*words, "--json"])
    compare(f"cli-{name}", json.loads(out.getvalue()), bench)


def compare(name: str, document: Any, bench: RunContext) -> None:
    """Compare a document, key order included, with its snapshot."""
    shown = shape(document) if name in DRAWN else masked(document, bench)
    text = json.dumps(shown, indent=1, ensure_ascii=False) + "\n"
    path = SNAPSHOTS / f"{name}.json"
    if os.environ.get("ASSAY_SNAPSHOTS") == "write":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def masked(value: Any, bench: RunContext, key: str = "") -> Any:
    """The document without what changes from one time to the next, its floats to six digits, its
    lists shortened.
    """
    if key in CHANCE and value is not None:
        return f"<{type(value).__name__}>"
    match value:
        case str() if key in SENTENCES and value:
            return "<text>"
        case dict():
            return {_text(name, bench): masked(part, bench, name) for name, part in value.items()}
        case list():
            more = [f"… {len(value) - KEPT} more"] if len(value) > KEPT else []
            return [masked(part, bench, key) for part in value[:KEPT]] + more
        case bool():
            return value
        case int() | float():
            return "<number>"
        case str():
            text = _text(value, bench)
            return text if len(text) < 50 and not re.search(r"[0-9]", text) else "<text>"
        case _:
            return value


def _text(text: str, bench: RunContext) -> str:
    text = text.replace(str(bench.folder), "<folder>").replace(bench.names["out"], "<out>")
    masks = (
        (RUN_ID, "<run>"),
        (TIMES, "<time>"),
        (STAMP, "<stamp>"),
        (DIGEST, "<digest>"),
        (VEILED, "<item>"),
    )
    for pattern, mask in masks:
        text = pattern.sub(mask, text)
    return text


def shape(value: Any) -> Any:
    """The keys of a document, with those of all items of a list in one, whatever was drawn for the
    values.
    """
    match value:
        case dict():
            return {name: shape(part) for name, part in value.items()}
        case [dict(), *_]:
            return [
                functools.reduce(united, (shape(item) for item in value if isinstance(item, dict)))
            ]
        case _:
            return "<value>"


def united(one: Any, other: Any) -> Any:
    """The shape that has the keys of both, because what one item lacks or hides another may
    show.
    """
    match one, other:
        case dict(), dict():
            keys = [*one, *(name for name in other if name not in one)]
            return {
                name: united(one.get(name, "<value>"), other.get(name, "<value>")) for name in keys
            }
        case [first], [second]:
            return [united(first, second)]
        case ((dict() | list()), _):
            return one
        case _:
            return other
