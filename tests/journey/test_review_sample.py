"""Review a part that chance chose: in the suite, at the command line and in Python, and what it
gives.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import assay as api
from tests.journey.conftest import Command
from tests.support.model_server import Call, ModelServer

N_TASKS = 60


def suite(folder: Path, *, tasks: int = N_TASKS, **changed: Any) -> Path:
    """Two candidates, whose snippets say what they are worth; B is a little worse than A."""
    document = {
        "name": "works",
        "trials": 1,
        "parameters": {"seed": 7},
        "judge": {"model": "openai/judge-1"},
        "tasks": [
            {
                "id": f"t{n}",
                "context": f"Rule {n}.",
                "tags": ["short" if n % 3 else "long"],
                "snippets": {"ann": f"worth {4 + n % 5}.0", "bob": f"worth {3.5 + (n * 7) % 5}"},
            }
            for n in range(tasks)
        ],
        **changed,
    }
    path = folder / "works.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def by_worth(call: Call) -> str:
    worth = re.findall(r'label="(\w+)">\s*`{3,}\s*worth ([\d.]+)', call.prompt)
    assert call.schema is not None
    grades = {
        label: {
            name: {"evidence": [], "reason": "It is.", "score": float(value)}
            for name in call.schema["properties"]["candidates"]["properties"][label]["properties"]
        }
        for label, value in worth
    }
    return json.dumps({"candidates": grades, "report": ""})


def review(assay: Command, run: str, *, reject: int = 0) -> list[str]:
    """Approve what waits, after rejecting some; returns the tasks decided on."""
    rows = assay("review", "list", "--run", run, "--state", "pending", "--json").document[
        "assessments"
    ]
    for place, row in enumerate(rows):
        if place < reject:
            assay("review", "reject", row["id"], "--reason", "Wrong.", "--reviewer", "eva")
        elif place % 3:
            assay("review", "approve", row["id"], "--reviewer", "eva")
        else:
            lower = max(0.0, row["scores"]["ann"] - 0.1)
            assay(
                "review",
                "correct",
                row["id"],
                "--score",
                f"ann={lower}",
                "--reason",
                "Less.",
                "--reviewer",
                "eva",
            )
    return [row["task"] for row in rows]


def test_a_fifth_waits_and_the_rest_is_left_out_but_used(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    dry = assay("run", suite(project, review={"sample": 0.2}), "--dry-run")
    assert "12 reviews to do" in dry.out
    run = assay("run", suite(project, review={"sample": 0.2}), "--json").document
    assert (run["assessments"]["pending"], run["assessments"]["left_out"]) == (12, 48)
    assert (run["trials"]["done"], run["trials"]["left_out"]) == (60, 48)
    review(assay, run["run_id"], reject=1)
    stats = assay("stats", "--json").document
    assert [row["n_trials"] for row in stats["candidates"]] == [11, 11]
    assert (
        stats["excluded"]["left_out"],
        stats["excluded"]["pending"],
        stats["excluded"]["rejected"],
    ) == (48, 0, 1)
    for row in stats["diagnostics"]["partial_review"]:
        calibrated = row["calibrated"]
        assert (row["n_waiting"], row["n_left_out"]) == (0, 48)
        assert (calibrated["n_tasks"], calibrated["n_reviewed"]) == (60, 12)
        assert (calibrated["method"], calibrated["assumes"]) == (
            "prediction_powered",
            "random_review",
        )
        assert (
            calibrated["ci95"][1] - calibrated["ci95"][0]
            < row["vetted_only"]["ci95"][1] - row["vetted_only"]["ci95"][0]
        )
    pair = assay("compare", "ann", "bob", "--json").document["diagnostics"]["calibrated"]
    assert (pair["n_tasks"], pair["n_reviewed"], pair["n_trials"]) == (60, 12, 60)
    assert pair["ci95"] is not None
    ranks = assay("rank", "--json").document["calibrated"]
    assert [row["candidate"] for row in ranks["candidates"]] == ["ann", "bob"]
    assert ranks["pairs"][0]["difference"] == pytest.approx(pair["difference"])
    text = assay("stats").out
    assert "48 left out of the review by chance" in text
    assert "prediction-powered inference (12 of 60 trials reviewed" in text
    assert "Calibrated ranks: ann" in assay("rank").out
    assert "According to the review sample" in assay("plan", "--detect", "2pts").out
    assay("export", "html", "--output", project / "r.html")
    assert "prediction-powered inference" in (project / "r.html").read_text("utf-8")


def test_nobody_decides_on_what_chance_left_out(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    assay("run", suite(project, tasks=10), "--review", "sample:0.5", "--json")
    left_out = assay("review", "list", "--state", "left_out", "--json").document["assessments"]
    assert len(left_out) == 5
    refused = assay("review", "approve", left_out[0]["id"], "--reviewer", "eva")
    assert refused.code == 2
    assert "left its trial out of the review sample" in refused.err


def test_extending_and_rerunning_keep_the_sample(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    run = assay("run", suite(project, tasks=20), "--review", "sample:0.25", "--json").document[
        "run_id"
    ]

    def sampled(k: int) -> set[str]:
        rows = assay("review", "list", "--run", run, "--state", "pending", "--json").document[
            "assessments"
        ]
        return {row["task"] for row in rows if row["trial"] == k}

    first = sampled(1)
    assert len(first) == 5
    assay("extend", run, "--trials", "1")
    assert sampled(1) == first
    assert len(sampled(2)) == 5
    rows = assay("review", "list", "--run", run, "--json").document["assessments"]
    for state in ("left_out", "pending"):
        row = next(row for row in rows if row["state"] == state)
        again = assay(
            "review", "rerun", row["id"], "--note", "Look again.", "--reviewer", "eva", "--json"
        )
        assert again.code == 0
    assert sampled(1) == first


def test_a_sample_grows_and_keeps_its_part(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    document = suite(project, tasks=40, review={"sample": 0.2, "by": "tag"})
    run = assay("run", document, "--json").document["run_id"]
    before = set(review(assay, run))
    asked = len(server.calls)
    grown = assay("extend", run, "--review", "sample:0.5", "--json").document
    assert (
        grown["assessments"]["pending"],
        grown["assessments"]["left_out"],
        grown["trials"]["left_out"],
    ) == (12, 20, 20)
    assert len(server.calls) == asked
    waiting = assay("review", "list", "--run", run, "--state", "pending", "--json").document[
        "assessments"
    ]
    tasks = before | {row["task"] for row in waiting}
    assert (len(before), len(tasks)) == (8, 20)
    # Half of each tag, to within one: 14 of the 40 tasks have the tag `long`.
    assert abs(sum(int(task[1:]) % 3 == 0 for task in tasks) - 7) <= 1
    review(assay, run)
    assay("extend", run, "--trials", "1")
    stats = assay("stats", "--json").document
    assert (stats["excluded"]["pending"], stats["excluded"]["left_out"]) == (20, 40)
    assert "grew from 20%" in assay("stats").out
    assert stats["diagnostics"]["partial_review"][0]["calibrated"]["assumes"] == "random_review"


def test_a_sample_cannot_shrink_or_appear(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    run = assay("run", suite(project, tasks=10, review={"sample": 0.4}), "--json").document[
        "run_id"
    ]
    smaller = assay("extend", run, "--review", "sample:0.2")
    assert (smaller.code, "already has a share of 0.4 and cannot shrink" in smaller.err) == (
        2,
        True,
    ), smaller.err
    whole = assay("run", suite(project, tasks=10), "--json").document["run_id"]
    other = assay("extend", whole, "--review", "sample:0.2")
    assert (other.code, "has the review policy `every`" in other.err) == (2, True), other.err


def test_flagged_reviews_give_no_calibrated_number_and_say_why(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    assay("run", suite(project, tasks=12), "--review", "flagged")
    stats = assay("stats", "--json").document
    (ann, _) = stats["diagnostics"]["partial_review"]
    assert (ann["calibrated"]["mean"], ann["calibrated"]["reason"]) == (None, "flagged_review")
    waiting = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    assay("review", "approve", waiting[0]["id"], "--reviewer", "eva")
    assert "chosen because they have flags" in assay("stats").out
    assert assay("rank", "--json").document["calibrated"]["reason"] == "flagged_review"


def test_a_suite_in_python_takes_a_sample(server: ModelServer, project: Path) -> None:
    server.answer = by_worth
    document = yaml.safe_load(suite(project, tasks=20).read_text("utf-8"))
    run = api.run({**document, "review": {"sample": 0.25, "by": "tag"}}, folder=project)
    standing = run.stats()
    assert (standing.basis.excluded.pending, standing.basis.excluded.left_out) == (5, 15)
    assert standing.basis.protocols[0]["sample"] == {"share": 0.25, "by": "tag"}


def test_a_wrong_policy_is_refused_before_anything_is_asked(
    assay: Command, server: ModelServer, project: Path
) -> None:
    refused = assay("run", suite(project, tasks=2), "--review", "sample:2")
    assert (refused.code, server.calls) == (2, ())
    assert "--review: 'sample:2' is not a review policy" in refused.err
    in_file = assay("run", suite(project, tasks=2, review={"sample": 1.5}))
    assert in_file.code == 2
    assert "review.sample: is 1.5, expected a number from 0.001 to 0.999" in in_file.err
