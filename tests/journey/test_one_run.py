"""A result reads one run, the newest, unless the user asks for more, and never pools runs that
measure different things.
"""

from __future__ import annotations

import html
import json
import random
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from fastapi.testclient import TestClient

import assay as assay_bench
from assay.app.registry import batch_matrix
from assay.app.registry.candidates import standings
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.web.server import create_app
from tests.contract.conftest import postgres as postgres  # the one server of a test session
from tests.journey.conftest import Command, Said
from tests.support.postgres import new_database

N_TASKS: Final = 12
STORES: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Answers of two candidates to numbered tasks; the references are 100, 101 and so on.

    `terse_right` and `long_right` are the shares of right numbers; `long` writes them in a
    sentence, which `exact` gives 0.
    """

    score: str
    terse_right: float
    long_right: float
    wording: str = "What is the number"


def suite_text(
    answers: Answers, *, name: str = "qa", candidates: Sequence[str] = ("terse", "long")
) -> str:
    tasks = []
    for number in range(N_TASKS):
        reference = 100 + number
        terse = reference if number < answers.terse_right * N_TASKS else 7
        long = reference if number < answers.long_right * N_TASKS else 7
        snippets = {"terse": str(terse), "long": f"The answer is {long}"}
        tasks.append(
            {
                "id": f"t{number}",
                "prompt": f"{answers.wording} {number}?",
                "expected": str(reference),
                "score": answers.score,
                "snippets": {candidate: snippets[candidate] for candidate in candidates},
            }
        )
    return json.dumps({"name": name, "trials": 2, "tasks": tasks})


def run(
    assay: Command,
    project: Path,
    answers: Answers,
    *,
    name: str = "qa",
    candidates: Sequence[str] = ("terse", "long"),
) -> str:
    path = project / f"{name}.json"
    path.write_text(suite_text(answers, name=name, candidates=candidates), "utf-8")
    done = assay("run", path, "--json")
    assert done.code == 0, done.err
    return str(done.document["run_id"])


TOO_STRICT: Final = Answers(score="exact", terse_right=0.5, long_right=1)
CORRECTED: Final = Answers(score="numeric", terse_right=0.5, long_right=1)


@pytest.fixture
def corrected(assay: Command, project: Path) -> tuple[str, str]:
    """A suite whose scorer was corrected before its second run: `exact` refuses every answer of
    `long`.
    """
    return run(assay, project, TOO_STRICT), run(assay, project, CORRECTED)


def first_line(said: Said) -> str:
    return said.out.splitlines()[0]


def test_compare_says_what_the_newest_run_alone_says(
    assay: Command, corrected: tuple[str, str]
) -> None:
    old, new = corrected
    output = assay("compare", "terse", "long")
    assert output.out == assay("compare", "terse", "long", "--run", "latest").out
    alone = assay("compare", "terse", "long", "--run", new, "--json").document
    document = assay("compare", "terse", "long", "--json").document
    assert (document["decision"], round(document["points"])) == ("worse", -50)
    assert (alone["decision"], alone["points"]) == ("worse", document["points"])
    assert (
        assay("compare", "terse", "long", "--run", old, "--json").document["decision"] == "better"
    )
    assert first_line(output).startswith(f"Run {new} of qa, 20")
    assert (
        "24 trials (the newest of 2 runs; --run ID reads another, --all-runs pools them)"
        in first_line(output)
    )
    assert (document["pooled"], document["runs"]) == (1, [new])
    (read,) = document["read"]["runs"]
    assert (read["run_id"], read["suite"], read["n_trials"]) == (new, "qa", 24)


@pytest.mark.parametrize(
    "command",
    [
        ("stats",),
        ("compare", "terse", "long"),
        ("rank",),
        ("gate", "terse", "--against", "long", "--margin", "3pts"),
        ("plan", "--detect", "3pts"),
        ("chart", "forest", "--output", "x.svg"),
        ("export", "markdown"),
    ],
    ids=lambda command: command[0],
)
def test_pooling_runs_with_different_scorers_is_refused(
    assay: Command, corrected: tuple[str, str], command: tuple[str, ...]
) -> None:
    old, new = corrected
    for asked in (("--all-runs",), ("--run", old, "--run", new)):
        refused = assay(*command, *asked)
        assert refused.code == 2
        assert f"the scorer (exact in {old}; numeric in {new})" in refused.err
        assert f"--run {new}" in refused.err
    newest = assay(*command)
    text = newest.err if command[0] == "export" else newest.out
    assert text.startswith(f"Run {new} of qa, ")


def test_pool_anyway_labels_the_verdict(assay: Command, corrected: tuple[str, str]) -> None:
    old, new = corrected
    document = assay("compare", "terse", "long", "--all-runs", "--pool-anyway", "--json").document
    difference = f"the scorer (exact in {old}; numeric in {new})"
    assert document["verdict"].startswith(f"Mixed runs, which differ in {difference}: ")
    assert document["warnings"][0]["code"] == "pooled_anyway"
    assert (document["pooled"], document["read"]["differences"]) == (2, difference)
    output = assay("stats", "--all-runs", "--pool-anyway")
    assert first_line(output).startswith("2 runs pooled, 20")
    assert f"{new} (24), {old} (24)" in first_line(output)


def test_show_and_diff_take_the_newest_run_as_latest(
    assay: Command, corrected: tuple[str, str]
) -> None:
    old, new = corrected
    assert assay("show", "latest", "--json").document["run_id"] == new
    assert assay("diff", old, "LATEST", "--json").document["after"] == new
    assert assay("diff", "latest", new).code == 2


def test_latest_of_an_empty_store_is_no_run(assay: Command) -> None:
    refused = assay("show", "latest")
    assert (refused.code, "Traceback" in refused.err) == (2, False)


def test_pool_anyway_labels_charts_and_captions(
    assay: Command, corrected: tuple[str, str], project: Path
) -> None:
    old, new = corrected
    label = f"Mixed runs, which differ in the scorer (exact in {old}; numeric in {new}): "
    pooled = ("--all-runs", "--pool-anyway")
    for kind in ("forest", "ranks", "pairs", "scores"):
        drawn = assay("chart", kind, *pooled, "--output", f"{kind}.svg")
        assert drawn.out.splitlines()[1].startswith(f"{kind}.svg: {label}")
        picture = html.unescape((project / f"{kind}.svg").read_text("utf-8"))
        assert f"<desc>{label}" in picture
        assert "Mixed runs, which differ in the scorer" in picture.partition("</desc>")[2]
        assert "Mixed runs" not in assay("chart", kind, "--output", f"{kind}.svg").out
    for format_ in ("html", "latex"):
        assert assay("export", format_, *pooled, "--output", f"report.{format_}").code == 0
    captions = re.findall(r"\\caption\{(.*)\}", (project / "report.latex").read_text("utf-8"))
    assert len(captions) == 2
    assert all(caption.startswith(label) for caption in captions)
    report = html.unescape((project / "report.html").read_text("utf-8"))
    figures = re.findall(r'<figcaption><h3>[^<]*</h3><p class="small soft">([^<]*)</p>', report)
    assert len(figures) == 4
    assert all(about.startswith(label) for about in figures)


def test_trend_names_the_scorer_at_the_run_that_changed_it(
    assay: Command, corrected: tuple[str, str], project: Path
) -> None:
    old, new = corrected
    (project / "qa.json").write_text(suite_text(CORRECTED), "utf-8")
    same = str(assay("run", project / "qa.json", "--json").document["run_id"])
    (project / "qa.json").write_text(
        suite_text(Answers(score="numeric", terse_right=1, long_right=1, wording="Say")), "utf-8"
    )
    edited = str(assay("run", project / "qa.json", "--json").document["run_id"])
    points = assay("trend", "qa", "--json").document["points"]
    changed = {
        point["run_id"]: point["changed"] for point in points if point["candidate"] == "long"
    }
    assert changed == {old: [], new: ["scorer"], same: [], edited: ["tasks"]}
    words = f"the scorer (exact in {old}; numeric in {new})"
    assert {point["differences"] for point in points if point["run_id"] == new} == {words}
    printed = assay("trend", "qa", "--output", "trend.svg").out
    assert printed.count("other scorer") == 2
    assert f"{new} differs from the run before in {words}, so a change of scores" in printed
    assert (
        f"before: {new} (scorer), {edited} (tasks)."
        in (project / "trend.svg").read_text("utf-8").partition("</desc>")[0]
    )
    with (
        Workspace.open(project, environment={}) as workspace,
        TestClient(create_app(workspace)) as client,
    ):
        client.headers["host"] = "127.0.0.1"
        page = html.unescape(
            client.get("/results/trend?suite=qa", headers={"accept": "text/html"}).text
        )
        assert page.count(f'<span title="{words}">different scorer</span>') == 2
        assert f"<li>{new} differs from the run before in {words}" in page
        assert client.get("/results/trend.json?suite=qa").json()["points"][2]["changed"] == [
            "scorer"
        ]


def test_trend_names_the_candidates_whose_run_before_differs(
    assay: Command, corrected: tuple[str, str], project: Path
) -> None:
    old, new = corrected
    (project / "qa.json").write_text(suite_text(TOO_STRICT), "utf-8")
    part = assay("run", project / "qa.json", "--candidate", "long", "--json").document["run_id"]
    (project / "qa.json").write_text(suite_text(CORRECTED), "utf-8")
    last = assay("run", project / "qa.json", "--json").document["run_id"]
    printed = assay("trend", "qa").out
    words = f"the scorer (exact in {part}; numeric in {last})"
    assert f"{last} differs from the run before of long in {words}, so" in printed
    assert f"{part} differs from the run before in" in printed
    assert f"{new} differs from the run before in the scorer (exact in {old};" in printed


def test_the_first_line_says_that_an_older_run_holds_more_trials(
    assay: Command, project: Path
) -> None:
    whole = run(assay, project, CORRECTED)
    assert assay("run", project / "qa.json", "--limit", "4").code == 0
    assert f"8 trials (the newest of 2 runs; {whole} holds 16 more trials; --run ID" in first_line(
        assay("stats")
    )
    assert "holds" not in first_line(assay("stats", "--run", whole))


def test_a_later_import_of_a_part_says_that_the_first_holds_more(
    assay: Command, project: Path
) -> None:
    rows = [
        f"t{n},{name},1,{score}" for n in range(6) for name, score in (("ada", 1), ("bo", n % 2))
    ]
    runs = []
    for part in (rows, rows[:4]):
        (project / "table.csv").write_text(
            "\n".join(["task,candidate,trial,score", *part]) + "\n", "utf-8"
        )
        runs += assay("import", "table.csv", "--json").document["run_ids"]
    line = first_line(assay("rank"))
    assert line.startswith(f"Run {runs[1]} of table, ")
    assert f"{runs[0]} holds 4 more trials; --run ID reads another, --all-runs pools them" in line


def test_runs_that_measure_the_same_are_pooled_on_request(assay: Command, project: Path) -> None:
    runs = [run(assay, project, CORRECTED) for _ in range(3)]
    assert assay("stats", "--json").document["runs"] == runs[-1:]
    pooled = assay("stats", "--all-runs", "--json").document
    assert (pooled["runs"], pooled["pooled"], pooled["read"]["n_trials"]) == (runs, 3, 72)
    assert assay("stats", "--run", runs[0], "--run", runs[1], "--json").document["runs"] == runs[:2]
    refused = assay("stats", "--all-runs", "--run", runs[0])
    assert (refused.code, "--all-runs: is given together with --run" in refused.err) == (2, True)


def test_changed_and_missing_tasks_are_differences(assay: Command, project: Path) -> None:
    run(assay, project, CORRECTED)
    run(
        assay,
        project,
        Answers(score="numeric", terse_right=0.5, long_right=1, wording="Which is the number"),
    )
    assert "the tasks (changed: t0, t1" in assay("rank", "--all-runs").err
    assert assay("run", project / "qa.json", "--limit", 6).code == 0
    refused = assay("rank", "--all-runs")
    assert (refused.code, "only in some of the runs: t6, t7" in refused.err) == (2, False)
    ids = [row["run_id"] for row in assay("runs", "--json").document["runs"]]
    refused = assay("rank", "--run", ids[0], "--run", ids[1])
    assert refused.code == 2
    assert "the tasks (only in some of the runs: t10, t11, t6, t7, t8 and 1 more)" in refused.err


def test_the_first_line_names_other_suites(assay: Command, project: Path) -> None:
    run(assay, project, CORRECTED, name="older")
    new = run(assay, project, CORRECTED, name="newer")
    assert first_line(assay("stats")).startswith(f"Run {new} of newer")
    assert first_line(assay("stats")).endswith("· other suites: older (--suite NAME)")
    of_older = assay("stats", "--suite", "older")
    assert " of older, " in first_line(of_older)
    assert "other suites" not in first_line(of_older)
    both = assay("rank", "--suite", "older", "--suite", "newer", "--json").document
    assert (both["read"]["choice"], both["pooled"]) == ("newest_of_suites", 2)


def test_a_batch_pools_its_runs(assay: Command, project: Path) -> None:
    path = project / "qa.json"
    path.write_text(suite_text(CORRECTED), "utf-8")
    for batch in ("one", "one", "two"):
        assert assay("run", path, "--batch-id", batch).code == 0
    document = assay("stats", "--batch-id", "one", "--json").document
    assert (document["read"]["choice"], document["pooled"]) == ("batch", 2)


def test_candidates_in_separate_runs_are_read_from_the_newest_run_of_each(
    assay: Command, project: Path
) -> None:
    run(assay, project, CORRECTED, candidates=("long",))
    long = run(assay, project, CORRECTED, candidates=("long",))
    terse = run(assay, project, CORRECTED, candidates=("terse",))
    document = assay("compare", "terse", "long", "--json").document
    assert (document["read"]["choice"], document["runs"]) == ("newest_of_each", [long, terse])
    assert round(document["points"]) == -50
    ranked = assay("rank")
    assert f"Not in this run: long (run {long})" in ranked.out.splitlines()[1]
    run(assay, project, TOO_STRICT, candidates=("terse",))
    refused = assay("compare", "terse", "long")
    assert (refused.code, "differ in the scorer" in refused.err) == (2, True)


def test_a_newer_run_without_one_of_the_candidates_is_named(assay: Command, project: Path) -> None:
    both = run(assay, project, CORRECTED)
    newer = run(assay, project, CORRECTED, candidates=("terse",))
    document = assay("compare", "terse", "long", "--json").document
    assert document["runs"] == [both]
    assert document["read"]["newer"] == newer
    assert next(warning["code"] for warning in document["warnings"]) == "newer_run"
    unknown = assay("compare", "terse", "bob")
    assert (unknown.code, "there is no candidate 'bob'" in unknown.err) == (2, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The answers of `compare a b` in one generated store: without an option, for the newest run,
    and for all runs.

    Attributes:
        page: the difference between the means on the pages of the candidates.
        differs: True if any two runs differ in scorer or tasks; `last_two_differ` compares the
            newest run with the one before.
        gate_code: exit code of `gate --baseline` for these two.
        matrix: True if the page of the batch pools the runs.
    """

    default: float | None
    newest: float | None
    pooled: float | None
    page: float
    differs: bool
    last_two_differ: bool
    gate_code: int
    matrix: bool


def _generated(assay: Command, project: Path, rng: random.Random) -> Store:
    """Make a store of two or three runs whose differences, scorers and tasks vary by chance."""
    runs = []
    wording = "What is the number"
    for _ in range(rng.choice((2, 3))):
        wording = rng.choice((wording, wording, "Which number is it"))
        answers = Answers(
            score=rng.choice(("exact", "numeric")),
            terse_right=rng.choice((0.0, 0.25, 0.5, 0.75, 1.0)),
            long_right=rng.choice((0.0, 0.25, 0.5, 0.75, 1.0)),
            wording=wording,
        )
        runs.append((run(assay, project, answers), answers.score, answers.wording))

    def points(*options: str) -> float | None:
        output = assay("compare", "terse", "long", *options, "--json")
        assert output.code in (0, 2), output.err
        return None if output.code else float(output.document["points"])

    with Workspace.open(project, environment={}) as workspace:
        of_terse, of_long = (
            standings(workspace.store, name, ["qa"])[0].estimate for name in ("terse", "long")
        )
        assert of_terse is not None
        assert of_long is not None
        page = 100 * (float(of_terse.mean or 0) - float(of_long.mean or 0))
        matrix = batch_matrix.matrix(workspace.store, workspace.archive.runs.matching())
    (pooled_trials,) = {n for line in matrix.lines for _, n in line.means.values()}
    assert pooled_trials == (2 if matrix.differences else 2 * len(runs))
    return Store(
        default=points(),
        newest=points("--run", runs[-1][0]),
        pooled=points("--all-runs"),
        page=page,
        differs=len({(score, words) for _, score, words in runs}) > 1,
        last_two_differ=runs[-1][1:] != runs[-2][1:],
        gate_code=assay(
            "gate", "terse", "--baseline", runs[-2][0], "--run", runs[-1][0], "--margin", "3pts"
        ).code,
        matrix=not matrix.differences,
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_verdict_differs_from_that_of_the_newest_run_without_refusal(
    assay: Command, project: Path
) -> None:
    rng = random.Random(28)
    stores = []
    for number in range(STORES):
        folder = project / str(number)
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            stores.append(_generated(assay, folder, rng))
    assert [store.default for store in stores] == [store.newest for store in stores]
    assert all(store.newest is not None for store in stores)
    assert [store.pooled is None for store in stores] == [store.differs for store in stores]
    assert [store.page for store in stores] == pytest.approx([store.newest for store in stores])
    assert [store.matrix for store in stores] == [not store.differs for store in stores]
    assert [store.gate_code == 2 for store in stores] == [store.last_two_differ for store in stores]
    # Seed 28 draws stores of both kinds: runs that differ, and runs that may be pooled.
    assert sum(store.differs for store in stores) >= STORES // 2
    assert sum(not store.differs for store in stores) >= 3


def test_python_reads_the_newest_run_and_refuses_to_pool(
    corrected: tuple[str, str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = corrected
    monkeypatch.chdir(project)
    assert assay_bench.compare("terse", "long").comparison.decision == "worse"
    assert (
        assay_bench.compare("terse", "long", assay_bench.Selection(runs=old)).comparison.decision
        == "better"
    )
    with pytest.raises(InputError, match=f"the scorer \\(exact in {old}; numeric in {new}\\)"):
        assay_bench.compare("terse", "long", assay_bench.Selection(all_runs=True))


def test_results_page_reads_the_newest_run_and_refuses_to_pool(
    corrected: tuple[str, str], project: Path
) -> None:
    old, new = corrected
    with (
        Workspace.open(project, environment={}) as workspace,
        TestClient(create_app(workspace)) as client,
    ):
        client.headers["host"] = "127.0.0.1"
        assert new in client.get("/statistics").text
        for address in ("/statistics", "/statistics.json"):
            refused = client.get(f"{address}?all_runs=1", headers={"accept": "text/html"})
            assert refused.status_code == 422
            assert "the scorer" in refused.text
            assert old in refused.text
        assert refused.json()["error"]["problem"].startswith(
            "the selected runs differ in the scorer"
        )
        page = client.get("/results?all_runs=1&suite=qa", headers={"accept": "text/html"})
        assert (page.status_code, page.headers["content-type"]) == (422, "text/html; charset=utf-8")
        assert "<h1>These runs cannot be pooled</h1>" in page.text
        links = [
            html.unescape(link)
            for link in re.findall(r'<a class="button[^"]*" href="([^"]*)"', page.text)
        ]
        alone, pooled = f"/results?run={new}", "/results?all_runs=1&suite=qa&pool_anyway=1"
        assert {alone, pooled} <= set(links)
        assert f"Run {new} of qa" in client.get(alone).text
        label = f"Mixed runs, which differ in the scorer (exact in {old}; numeric in {new}):"
        shown = html.unescape(client.get(pooled).text)
        assert f'<h1><span class="mixed">{label}</span> Not decided: ' in shown
        # It was glued to the sentence before it.
        assert not re.search(r"\w\.?Mixed runs", shown)
        assert shown.partition("</h1>")[2].count("Not decided: ") == 0
        for kind in ("forest", "pairs", "scores"):
            chart = client.get(
                f"/statistics/charts/{kind}.svg?all_runs=1&suite=qa&pool_anyway=1"
            ).text
            assert f"<desc>{label} " in html.unescape(chart)
        details = client.get("/statistics/behind?all_runs=1&suite=qa&pool_anyway=1").text
        assert f'<p class="soft small">{label} The score of every counted trial' in html.unescape(
            details
        )


def test_pages_of_candidates_and_batches_do_not_pool(assay: Command, project: Path) -> None:
    path = project / "qa.json"
    runs = []
    for answers in (TOO_STRICT, CORRECTED, CORRECTED):
        path.write_text(suite_text(answers), "utf-8")
        runs.append(str(assay("run", path, "--batch-id", "night", "--json").document["run_id"]))
    newest = assay("stats", "--json").document["candidates"]
    with (
        Workspace.open(project, environment={}) as workspace,
        TestClient(create_app(workspace)) as client,
    ):
        client.headers["host"] = "127.0.0.1"
        for candidate in newest:
            (mean,) = client.get(f"/candidates/{candidate['candidate']}.json").json()["means"]
            assert (mean["mean"], mean["ci95"]) == (candidate["mean"], candidate["ci95"])
            assert (mean["runs"], mean["of"], mean["open"]) == (
                [runs[2]],
                3,
                f"/results?run={runs[2]}",
            )
        assert "newest of 3 runs" in client.get("/candidates/long").text
        matrix = client.get("/batches/night.json").json()["matrix"]
        assert (
            matrix["differences"]
            == f"the scorer (exact in {runs[0]}; numeric in {runs[1]}, {runs[2]})"
        )
        assert {task["candidates"]["long"]["n_trials"] for task in matrix["tasks"]} == {2}
        assert {task["candidates"]["long"]["mean"] for task in matrix["tasks"]} == {1.0}
        assert matrix["differences"] in client.get("/batches/night?across=candidates").text
        assert matrix["differences"] not in client.get("/batches/night").text
        assert assay("delete", runs[0], "--yes").code == 0
        matrix = client.get("/batches/night.json").json()["matrix"]
        assert matrix["differences"] == ""
        assert {task["candidates"]["long"]["n_trials"] for task in matrix["tasks"]} == {4}


def test_results_name_their_run_in_python_words(corrected: tuple[str, str]) -> None:
    old, new = corrected
    for result in (
        assay_bench.compare("terse", "long"),
        assay_bench.gate("terse", "long", margin="3pts"),
    ):
        assert result.verdict in repr(result)
        assert f"Run {new} of qa, 20" in repr(result)
        assert "24 trials count" in repr(result)
        assert 'runs="ID" reads another, all_runs=True pools them' in repr(result)
        assert "--" not in repr(result)
    only = assay_bench.compare("terse", "long", assay_bench.Selection(runs=old))
    assert f"Run {old} of qa" in repr(only)


@pytest.mark.slow
def test_the_newest_run_decides_on_postgresql_too(
    assay: Command, project: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_STORE", new_database(postgres, f"onerun{secrets.token_hex(4)}"))
    old, new = run(assay, project, TOO_STRICT), run(assay, project, CORRECTED)
    assert assay("compare", "terse", "long", "--json").document["decision"] == "worse"
    assert (
        assay("compare", "terse", "long", "--run", old, "--json").document["decision"] == "better"
    )
    refused = assay("compare", "terse", "long", "--all-runs")
    assert refused.code == 2
    assert f"the scorer (exact in {old}; numeric in {new})" in refused.err
