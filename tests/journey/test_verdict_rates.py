"""Verdicts count: their rates are the headline of every result, and `verdict` is a criterion."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from fastapi.testclient import TestClient

import assay as assay_api
from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.conftest import Command

HOME = {"Origin": "http://127.0.0.1:8000"}
RUBRIC: dict[str, Any] = {
    "criteria": ["steps", "result"],
    "scores": {"Yes": 1, "Partial": 0.5, "No": 0},
}
WORDS = {"Pass": ("Yes", "Yes"), "Partial": ("Yes", "Partial"), "Fail": ("Yes", "No")}
ALICE = ("Pass", "Pass", "Pass", "Partial", "Pass", "Fail")
BOB = ("Pass", "Fail", "Partial", "Fail", "Fail", "Fail")


def graded(verdict: str) -> dict[str, Any]:
    steps, result = WORDS[verdict]
    return {
        "steps": {"score": steps, "reason": "It follows."},
        "result": {"score": result, "reason": "It is checked here."},
    }


@pytest.fixture
def run_id(assay: Command, project: Path) -> str:
    """A run with six tasks, judged by a recording; nothing is reviewed yet."""
    lines = []
    for number, (alice, bob) in enumerate(zip(ALICE, BOB, strict=True)):
        candidates = {"{{label:alice}}": graded(alice), "{{label:bob}}": graded(bob)}
        reply = {"text": {"candidates": candidates, "report": "Done."}}
        lines.append(json.dumps({"match": {"role": "judge", "task": f"t{number}"}, "reply": reply}))
    (project / "judge.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    tasks = [
        {"id": f"t{n}", "prompt": f"Task {n}?", "snippets": {"alice": "a", "bob": "b"}}
        for n in range(len(ALICE))
    ]
    suite = {"name": "proofs", "judge": "replay/judge.jsonl", "rubric": RUBRIC, "tasks": tasks}
    (project / "proofs.yaml").write_text(yaml.safe_dump(suite), "utf-8")
    return str(assay("run", "proofs.yaml", "--json").document["run_id"])


@pytest.fixture
def approved(assay: Command, run_id: str) -> str:
    waiting = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    assert (
        assay("review", "approve", *(row["id"] for row in waiting), "--reviewer", "rita").code == 0
    )
    return run_id


def rates(document: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {
        row["candidate"]: {rate["verdict"]: round(rate["rate"], 4) for rate in row["rates"]}
        for row in document["verdicts"]["candidates"]
    }


def test_pending_verdicts_reach_no_rate(assay: Command, run_id: str) -> None:
    assert assay("stats", "--json").document["verdicts"] is None


def test_stats_and_rank_show_the_rate_of_each_verdict(assay: Command, approved: str) -> None:
    document = assay("stats", "--json").document
    assert document["verdicts"]["labels"] == ["Pass", "Partial", "Fail"]
    assert document["verdicts"]["level"] == pytest.approx(1 - 0.05 / 3)
    assert rates(document) == {
        "alice": {"Pass": 0.6667, "Partial": 0.1667, "Fail": 0.1667},
        "bob": {"Pass": 0.1667, "Partial": 0.1667, "Fail": 0.6667},
    }
    for row in document["verdicts"]["candidates"]:
        assert (row["n_trials"], row["n_tasks"]) == (6, 6)
        assert all(
            rate["interval"][0] < rate["rate"] < rate["interval"][1] for rate in row["rates"]
        )
    assert rates(assay("rank", "--json").document) == rates(document)
    for verb in ("stats", "rank"):
        shown = assay(verb).out
        assert "alice: Pass 66.7% (" in shown
        assert (
            "Ranges are 98.3% ranges, so that all 3 of a candidate hold at once in 95% of cases."
            in shown
        )
    assert assay("stats", "--criterion", "steps", "--json").document["verdicts"] is None


def test_comparison_and_gate_show_the_difference_of_each_rate(
    assay: Command, approved: str
) -> None:
    document = assay("compare", "alice", "bob", "--json").document["verdicts"]
    differences = {row["verdict"]: row["difference"] for row in document["differences"]}
    assert differences == {
        "Pass": pytest.approx(0.5),
        "Partial": pytest.approx(0),
        "Fail": pytest.approx(-0.5),
    }
    # Alice gets the better verdict on four tasks and the same one on two.
    assert document["win"]["value"] == pytest.approx((4 + 2 * 0.5) / 6)
    assert document["win"]["odds"] == pytest.approx(5.0)
    assert document["win"]["ci95"][0] < 5 / 6
    shown = assay("compare", "alice", "bob").out
    assert "Pass: alice 66.7%, bob 16.7%, difference +50.0 points (" in shown
    assert (
        "A random answer of alice gets a better verdict than one of bob 83 times in 100 (" in shown
    )
    gate = assay("gate", "alice", "--against", "bob", "--margin", "3pts", "--json").document
    assert gate["verdicts"]["differences"] == document["differences"]


def test_the_verdict_is_a_criterion(assay: Command, approved: str) -> None:
    document = assay("stats", "--criterion", "verdict", "--json").document
    means = {row["candidate"]: row["mean"] for row in document["candidates"]}
    assert means == {"alice": pytest.approx(4.5 / 6), "bob": pytest.approx(1.5 / 6)}
    compared = assay("compare", "alice", "bob", "--criterion", "verdict", "--json").document
    assert compared["difference"] == pytest.approx(0.5)
    assert (
        assay("rank", "--criterion", "verdict", "--json").document["candidates"][0]["candidate"]
        == "alice"
    )
    refused = assay("stats", "--criterion", "verdict", "--criterion", "steps")
    assert refused.code == 2
    assert "Use --criterion verdict alone." in refused.err
    export = assay("export", "csv", "--criterion", "verdict", "--output", "rows.csv")
    assert export.code == 2
    assert "assay export evaluations" in export.err


def test_gate_plan_and_chart_read_verdicts(assay: Command, approved: str) -> None:
    by_verdict = ("--criterion", "verdict", "--json")
    gate = assay("gate", "alice", "--against", "bob", "--margin", "3pts", *by_verdict).document
    assert gate["difference"] == pytest.approx(0.5)
    compared = assay("compare", "alice", "bob", "--margin", "3pts", *by_verdict).document
    assert gate["ci95"] == compared["ci95"]
    plan = assay("plan", "--detect", "10pts", *by_verdict)
    assert plan.code == 0, plan.err
    assert plan.document != assay("plan", "--detect", "10pts", "--json").document
    assert assay("chart", "ranks", "--output", "verdicts.csv", *by_verdict).code == 0
    rows = csv.DictReader(Path("verdicts.csv").read_text("utf-8").splitlines())
    assert {row["candidate"]: row["mean"] for row in rows} == {"alice": "75.0", "bob": "25.0"}


def test_a_corrected_grade_changes_the_verdict(assay: Command, run_id: str) -> None:
    rows = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    by_task = {row["task"]: row["id"] for row in rows}
    fixed = assay(
        "review",
        "correct",
        by_task["t5"],
        "--score",
        "alice/result=1",
        "--reason",
        "It holds.",
        "--reviewer",
        "rita",
    )
    assert fixed.code == 0, fixed.err
    assert (
        assay(
            "review",
            "approve",
            *(key for task, key in by_task.items() if task != "t5"),
            "--reviewer",
            "rita",
        ).code
        == 0
    )
    assert rates(assay("stats", "--json").document)["alice"] == {
        "Pass": 0.8333,
        "Partial": 0.1667,
        "Fail": 0.0,
    }
    rows = assay("review", "list", "--json").document["assessments"]
    verdicts = [row["verdicts"]["alice"] for row in rows]
    assert verdicts.count("Pass") == 5


def test_corrections_measure_the_judge_on_verdicts(assay: Command, run_id: str) -> None:
    rows = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    ids = {row["task"]: row["id"] for row in rows}
    fixed = (
        "--score",
        "alice/result=1",
        "--score",
        "bob/result=0.5",
        "--reason",
        "It holds.",
        "--reviewer",
        "rita",
    )
    assert assay("review", "correct", ids.pop("t5"), *fixed).code == 0
    assert assay("review", "approve", *ids.values(), "--reviewer", "rita").code == 0
    (measured,) = assay("stats", "--json").document["diagnostics"]["judge_against_people"]
    verdicts = measured["verdicts"]
    # The judge said Fail of both answers to t5, where the person says Pass and Partial.
    assert (verdicts["n"], verdicts["n_tasks"], verdicts["labels"]) == (
        12,
        6,
        ["Pass", "Partial", "Fail"],
    )
    assert verdicts["agreement"] == pytest.approx(10 / 12)
    assert verdicts["judge_rates"] == {
        "Pass": pytest.approx(5 / 12),
        "Partial": pytest.approx(2 / 12),
        "Fail": pytest.approx(5 / 12),
    }
    assert verdicts["people_rates"] == {"Pass": 0.5, "Partial": 0.25, "Fail": 0.25}
    assert verdicts["bias"] == pytest.approx(-1.5 / 12)
    assert verdicts["confusion"]["Pass"] == {"Pass": 5, "Partial": 0, "Fail": 1}
    by_chance = (5 * 6 + 2 * 3 + 5 * 3) / 144
    assert verdicts["kappa"] == pytest.approx((10 / 12 - by_chance) / (1 - by_chance))
    shown = assay("stats").out
    assert "gives people's verdict on 83.3% of 12 checked responses" in shown
    assert (
        "bias in verdicts: Pass 41.7% against people's 50.0%, Partial 16.7% against people's 25.0%"
        in shown
    )
    (of_pair,) = assay("compare", "alice", "bob", "--json").document["diagnostics"][
        "judge_against_people"
    ]
    assert of_pair["verdicts"]["agreement"] == pytest.approx(10 / 12)
    by_verdict = ("--criterion", "verdict")
    for verb in (("stats",), ("compare", "alice", "bob")):
        diagnostics = assay(*verb, *by_verdict, "--json").document["diagnostics"]
        (on_verdicts,) = diagnostics["judge_against_people"]
        assert on_verdicts["verdicts"] == verdicts
        assert (on_verdicts["n"], on_verdicts["n_corrected"]) == (12, 1)
        assert on_verdicts["bias"] == pytest.approx(-1.5 / 12)
        assert diagnostics["judge_against_references"] == []
        assert (
            "gives people's verdict on 83.3% of 12 checked responses"
            in assay(*verb, *by_verdict).out
        )


def test_words_of_a_single_criterion_are_verdicts(assay: Command, project: Path) -> None:
    reply = {
        "candidates": {"{{label:ann}}": {"clarity": {"score": "good", "reason": "Clear."}}},
        "report": "Done.",
    }
    (project / "judge.jsonl").write_text(
        json.dumps({"match": {"role": "judge"}, "reply": {"text": reply}}) + "\n", "utf-8"
    )
    suite = {
        "name": "texts",
        "judge": {"model": "replay/judge.jsonl", "mode": "each"},
        "review": "none",
        "rubric": [{"name": "clarity", "scale": ["bad", "fair", "good", "excellent"]}],
        "tasks": [{"id": f"t{n}", "prompt": f"{n}?", "snippets": {"ann": "a"}} for n in range(3)],
    }
    (project / "texts.yaml").write_text(yaml.safe_dump(suite), "utf-8")
    assert assay("run", "texts.yaml", "--json").code == 0
    document = assay("stats", "--json").document
    assert document["verdicts"]["labels"] == ["excellent", "good", "fair", "bad"]
    assert rates(document)["ann"]["good"] == 1.0


def test_report_begins_with_the_rates(assay: Command, approved: str, project: Path) -> None:
    for name in ("html", "markdown"):
        assert assay("export", name, "--output", f"report.{name}").code == 0
        text = (project / f"report.{name}").read_text("utf-8")
        assert "Pass 66.7%" in text


def test_latex_and_junit_have_the_rates(assay: Command, approved: str, project: Path) -> None:
    for criterion in ((), ("--criterion", "verdict")):
        assert assay("export", "latex", "--force", "--output", "report.tex", *criterion).code == 0
        tex = (project / "report.tex").read_text("utf-8")
        assert tex.index(r"\label{tab:assay-verdicts}") < tex.index(r"\label{tab:assay-scores}")
        assert "candidate & Pass & Partial & Fail & from" in tex
        assert "alice & 66.7 (" in tex
        assert (
            assay(
                "export",
                "junit",
                "--threshold",
                "0.5",
                "--force",
                "--output",
                "report.xml",
                *criterion,
            ).code
            == 0
        )
        suites = ElementTree.fromstring((project / "report.xml").read_text("utf-8")).findall(
            "testsuite"
        )
        for suite, rate in zip(suites, ("alice: Pass 66.7% (", "bob: Pass 16.7% ("), strict=True):
            properties = {
                each.get("name"): str(each.get("value")) for each in suite.iter("property")
            }
            assert properties["verdicts"].startswith(rate)
            assert "hold at once in 95% of cases." in properties["verdicts"]
            assert str(suite.findtext("system-out")).startswith(rate)
    assert (
        assay("export", "latex", "--force", "--output", "report.tex", "--criterion", "steps").code
        == 0
    )
    assert "assay-verdicts" not in (project / "report.tex").read_text("utf-8")


def test_results_in_python_have_the_rates(approved: str) -> None:
    verdicts = assay_api.stats().verdicts
    assert verdicts is not None
    assert [rate.verdict for rate in verdicts.candidates[0].rates] == ["Pass", "Partial", "Fail"]
    compared = assay_api.compare("alice", "bob").verdicts
    assert compared is not None
    assert compared.win is not None


def test_the_results_page_begins_with_the_rates(approved: str) -> None:
    with (
        Workspace.open() as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client,
    ):
        page = client.get("/results").text
        assert "alice: Pass 66.7% (" in page
        assert page.index("alice: Pass") < page.index("<h1>")
        assert "75.0" in client.get("/results?criterion=verdict").text
        assert client.get("/statistics.json?criterion=verdict").status_code == 200
        details = client.get(
            "/statistics/behind?criterion=verdict&suite=proofs", follow_redirects=False
        )
        assert (details.status_code, details.headers["location"]) == (
            303,
            "/statistics/behind?suite=proofs",
        )


def test_corrections_take_the_words_of_the_scale(
    assay: Command, run_id: str, project: Path
) -> None:
    rows = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    ids = {row["task"]: row["id"] for row in rows}

    def correct(task: str, score: str) -> Any:
        return assay(
            "review",
            "correct",
            ids[task],
            "--score",
            score,
            "--reason",
            "It holds.",
            "--reviewer",
            "rita",
            "--json",
        )

    assert correct("t5", "alice/result=yes").code == 0
    assert correct("t4", "bob=Partial").code == 2, "rules derive the verdict of a candidate"
    unknown = correct("t3", "alice/result=Maybe")
    assert unknown.code == 2
    assert "Write Yes, Partial, No, 0.7, or 7/10." in unknown.err
    assay_api.review.correct(
        ids["t3"], {"alice/result": "No", "bob/result": 0.5}, reason="No proof.", reviewer="rita"
    )
    with (
        Workspace.open() as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client,
    ):
        panes = client.get(f"/api/assessments/{ids['t2']}").json()["panes"]
        pane = next(place for place, each in enumerate(panes) if each["score"] == 1)
        about = {"id": ids["t2"], "verb": "correct", "reason": "No proof.", "reviewer": "rita"}
        for word, ok in (("Maybe", False), ("Partial", True)):
            corrections = [{"pane": pane, "criterion": "result", "score": word}]
            body = {"decisions": [{"key": f"key-{word}", **about, "corrections": corrections}]}
            (result,) = client.post("/api/decisions", json=body, headers=HOME).json()["results"]
            assert result["ok"] is ok, result
    after = {
        row["task"]: row["verdicts"]
        for row in assay("review", "list", "--json").document["assessments"]
    }
    assert after["t5"]["alice"] == "Pass"
    assert after["t3"] == {"alice": "Fail", "bob": "Partial"}
    assert after["t2"]["alice"] == "Partial"
