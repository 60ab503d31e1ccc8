"""A judge measured, stamped, and demanded of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.app.calibration.calibration_request import CalibrationRequest
from assay.scoring import calibration_samples
from assay.scoring.calibration_samples import SAMPLES
from tests.journey.conftest import Command
from tests.support.model_server import Call, ModelServer
from tests.support.sets import write_set

JUDGE = "openai/judge-1"
DESERVED = {sample.response: sample.score for sample in SAMPLES if sample.response}


def grading(score: Callable[[str], float]) -> Callable[[Call], str]:
    """A judge that gives each shown text, found between its markers, what `score` says, on every
    criterion.
    """

    def answer(call: Call) -> str:
        schema = call.schema
        assert schema is not None
        labels = schema["properties"]["candidates"]["properties"]
        shown = {
            label: call.prompt.split(f'label="{label}">')[1].split("</candidate-")[0]
            for label in labels
        }
        grades = {
            label: {
                criterion: {
                    "evidence": [],
                    "reason": f"A plain point on {label} and {criterion}.",
                    "score": 10 * score(shown[label]),
                }
                for criterion in result["properties"]
            }
            for label, result in labels.items()
        }
        return json.dumps({"candidates": grades, "report": "All in all."})

    return answer


def deserved(known: Mapping[str, float] = DESERVED, *, off: float = 0.0) -> Callable[[str], float]:
    def score(shown: str) -> float:
        text = max((text for text in known if text.strip() in shown), key=len, default=None)
        return 0.5 if text is None else min(1.0, max(0.0, known[text] + off))

    return score


def test_the_built_in_references_cover_every_kind_and_give_every_figure(
    assay: Command, server: ModelServer
) -> None:
    server.answer = grading(deserved(off=0.02))
    done = assay("calibrate", JUDGE, "--json")
    assert done.code == 0, done.err
    document = done.document
    kinds = {
        "right",
        "wrong",
        "partial",
        "verbose",
        "empty",
        "irrelevant",
        "good_explanation",
        "mediocre_explanation",
    }
    assert kinds <= {one["kind"] for one in document["samples"]}
    assert len(document["samples"]) >= 12
    (empty,) = (one for one in document["samples"] if one["bypassed"])
    assert empty["kind"] == "empty"
    asked = [one for one in document["samples"] if not one["bypassed"]]
    assert document["n"] == len(asked)
    assert document["pass_rate"]["n"] + 1 == document["pass_rate_with_bypassed"]["n"]
    assert document["mae"]["value"] == pytest.approx(
        sum(abs(one["error"]) for one in asked) / len(asked)
    )
    assert document["position_flips"]["value"] == 0
    assert document["length_bias"]["n"] == 3
    assert document["repeat_sd"]["reason"] == "judged_once"
    assert document["self_preference"]["value"] is None
    assert document["tier"] == "good"
    assert document["tier_at_face_value"] == "excellent"
    assert document["version"] == 1
    assert (
        len(server.calls) == document["calls"] == len(asked) + 2 * document["position_flips"]["n"]
    )
    text = assay("calibrate", JUDGE)
    assert "Pearson" in text.out
    assert "version 2" in text.out


def test_own_references_replace_ours_and_repeats_show_spread(
    assay: Command, server: ModelServer, project: Path
) -> None:
    rows = [
        {"id": f"s{n}", "prompt": f"Say {n}.", "response": f"It is number {n}!", "score": n / 40}
        for n in range(40)
    ]
    (project / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    known = {row["response"]: float(row["score"]) for row in rows}  # type: ignore[arg-type]
    server.answer = grading(deserved(known))  # type: ignore[arg-type]
    document = assay(
        "calibrate", JUDGE, "--samples", "mine.jsonl", "--repeat", "2", "--json"
    ).document
    assert document["n"] == 40
    assert document["tier"] == "excellent"
    assert document["repeat_sd"] == {"value": 0.0, "ci95": None, "n": 40, "reason": None}
    assert len(server.calls) == 80
    both = assay("calibrate", JUDGE, "--samples", "mine.jsonl", "--built-in", "--json").document
    assert both["n"] == 40 + len(DESERVED)


def test_a_judge_that_favours_the_first_answer_is_caught(
    assay: Command, server: ModelServer
) -> None:
    def first_wins(call: Call) -> str:
        schema = call.schema
        assert schema is not None
        labels = schema["properties"]["candidates"]["properties"]
        grades: dict[str, Any] = {
            label: {
                "quality": {
                    "evidence": [],
                    "reason": f"Point on {label}.",
                    "score": 9 if label == "A" else 2,
                }
            }
            for label in labels
        }
        return json.dumps({"candidates": grades, "report": "All in all."})

    server.answer = first_wins
    document = assay("calibrate", JUDGE, "--json").document
    assert document["position_flips"]["value"] == 1.0
    assert document["first_place_bonus"]["value"] == pytest.approx(0.7)
    assert document["tier"] == "poor"


def test_grades_are_marked_until_the_judge_is_calibrated(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = grading(deserved())
    done = assay("run", write_set(project, things=1, trials=3), "--judge", JUDGE, "--json").document
    assert done["judges"] == [{"judge": JUDGE, "calibration": None}]
    rows = assay("review", "list", "--json").document["assessments"]
    assert [row["calibration"] for row in rows] == [None] * 3
    assay("review", "approve", rows[0]["id"], rows[1]["id"])
    assay("review", "correct", rows[2]["id"], "--score", "nora=0.2", "--reason", "it leaks")

    def warned() -> bool:
        result = assay("compare", "nora", "omar", "--json").document
        return "uncalibrated_judge" in {warning["code"] for warning in result["warnings"]}

    assert warned()
    assert "uncalibrated" in assay("review", "show", rows[0]["id"]).out
    document = assay("calibrate", JUDGE, "--json").document
    assert document["settings_of"].startswith("run ")
    assert document["corrections"] == {"n": 1, "from_other_settings": 0, "approved_as_judged": 2}
    corrected = [one for one in document["samples"] if one["source"] == "correction"]
    assert [(one["judged"], one["expected"]) for one in corrected] == [(0.5, 0.2)], (
        "nobody else's score was touched"
    )
    assert not warned()
    shown = assay("review", "show", rows[0]["id"], "--json").document
    assert shown["calibration"] == {"tier": document["tier"], "at": document["at"], "version": 1}
    listed = assay("calibrate", "--list", "--json").document["calibrations"]
    assert [(one["model"], one["version"], one["tier"]) for one in listed] == [
        (JUDGE, 1, document["tier"])
    ]
    assert JUDGE in assay("calibrate", "--list").out


def test_a_suite_that_demands_a_tier_does_not_run_before_it_is_shown(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = grading(deserved())
    suite = {
        "name": "picky",
        "judge": {"model": JUDGE, "mode": "each", "require_calibration": "good"},
        "tasks": [{"id": "one", "prompt": "Say it.", "snippets": {"nora": "it", "omar": "that"}}],
    }
    (project / "picky.yaml").write_text(yaml.safe_dump(suite), "utf-8")
    refused = assay("run", "picky.yaml")
    assert refused.code == 2
    assert f"assay calibrate {JUDGE} --suite picky.yaml" in refused.err
    assert not server.calls
    server.answer = grading(lambda shown: 0.1)
    assert assay("calibrate", JUDGE, "--suite", "picky.yaml", "--json").document["tier"] == "poor"
    refused = assay("run", "picky.yaml")
    assert refused.code == 2
    assert "poor" in refused.err
    server.answer = grading(deserved(off=0.01))
    assert assay("calibrate", JUDGE, "--suite", "picky.yaml", "--json").document["tier"] == "good"
    assert assay("run", "picky.yaml").code == 0
    suite["judge"] = {**suite["judge"], "temperature": 0.9}  # type: ignore[dict-item]
    (project / "picky.yaml").write_text(yaml.safe_dump(suite), "utf-8")
    assert assay("run", "picky.yaml").code == 2


@pytest.mark.slow
def test_a_judge_that_answers_nothing_is_not_measured_by_old_corrections(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = grading(deserved())
    assay("run", write_set(project, things=1, trials=10), "--judge", JUDGE)
    rows = assay("review", "list", "--json").document["assessments"]
    for place, row in enumerate(rows):
        assay(
            "review",
            "correct",
            row["id"],
            "--score",
            f"nora={0.4 + place / 100}",
            "--reason",
            "it leaks",
        )
    server.answer = lambda call: "no idea"
    done = assay("calibrate", JUDGE)
    assert done.code == 1
    assert f"{JUDGE}: scored none of 13 references, so no calibration was stored." in done.err
    assert "unparsable" in done.err
    assert assay("calibrate", "--list", "--json").document["calibrations"] == []
    document = assay("stats", "--json").document
    assert "uncalibrated_judge" in {warning["code"] for warning in document["warnings"]}


def test_a_grade_that_does_not_weigh_makes_no_reference(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = grading(lambda shown: 0.5)
    suite = {
        "name": "weighed",
        "judge": JUDGE,
        "rubric": [
            {"name": name, "weight": weight, "guidance": "Is it so?"}
            for name, weight in (("tone", 1), ("point", 1), ("aside", 0))
        ],
        "tasks": [
            {
                "id": "one",
                "prompt": "Say it.",
                "score": "judge",
                "snippets": {"nora": "it", "omar": "that"},
            }
        ],
    }
    (project / "weighed.yaml").write_text(yaml.safe_dump(suite), "utf-8")
    assert assay("run", "weighed.yaml").code == 0
    (row,) = assay("review", "list", "--json").document["assessments"]
    scores = ("nora/aside=0.1", "omar/tone=0.4", "omar/point=0.6")
    items = [part for score in scores for part in ("--score", score)]
    assert assay("review", "correct", row["id"], *items, "--reason", "so it is").code == 0
    document = assay("calibrate", JUDGE, "--json").document
    corrected = [one for one in document["samples"] if one["source"] == "correction"]
    assert [one["id"].partition("/")[2] for one in corrected] == ["omar"], (
        "two of omar's grades changed, though not the sum"
    )


def test_a_judge_that_cannot_be_read_is_a_miss_and_a_failure(
    assay: Command, server: ModelServer
) -> None:
    good = grading(deserved())
    server.answer = lambda call: "no idea" if "shortest year" in call.prompt else good(call)
    done = assay("calibrate", JUDGE, "--json")
    assert done.code == 1
    assert done.document["unread"] == 2
    assert {one["fault"] for one in done.document["failures"]} == {"judge"}


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        (
            "a.jsonl",
            '{"prompt": "p", "response": "r", "score": 1}\n{"prompt": "p", "response": "r"}',
            "a.jsonl:2: has no `score`.",
        ),
        ("b.jsonl", '{"prompt": "p", "respons": "r", "score": 1}', "Did you mean 'response'?"),
        ("c.csv", "prompt,response,score\np,r,7\n", "c.csv:2 score: is"),
        (
            "d.yaml",
            "- prompt: p\n  response: r\n  score: 0.5\n- 17\n",
            "d.yaml:4: is 17, expected a sample",
        ),
        ("e.json", "{}", "expected a list of samples"),
        ("f.jsonl", "{", "f.jsonl:1"),
        ("g.jsonl", "", "holds no sample"),
        (
            "h.yaml",
            "- {id: a, prompt: p, response: r, score: 1, twin_of: b}",
            "names no sample: 'b'",
        ),
        (
            "i.yaml",
            "- {id: a, prompt: p, response: r, score: 1}\n- {id: a, prompt: p, response: q, score: 7/10}",
            "as on line 1.",
        ),
    ],
)
def test_a_wrong_sample_file_is_told_by_line_and_field(
    assay: Command, server: ModelServer, project: Path, name: str, text: str, complaint: str
) -> None:
    (project / name).write_text(text, "utf-8")
    output = assay("calibrate", JUDGE, "--samples", name)
    assert output.code == 2
    assert complaint in output.err
    assert not server.calls


def test_recorded_judges_are_calibrated_without_a_network(assay: Command, project: Path) -> None:
    def line(sample: Any) -> str:
        reply = {
            "candidates": {
                "{{label:one}}": {"quality": {"reason": "So it is.", "score": 10 * sample.score}}
            }
        }
        return json.dumps(
            {"match": {"task": f"calibration/{sample.id}"}, "reply": {"text": json.dumps(reply)}}
        )

    pair = {
        "candidates": {
            f"{{{{label:{name}}}}}": {"quality": {"reason": name, "score": 5}}
            for name in ("one", "other")
        }
    }
    lines = [line(sample) for sample in SAMPLES]
    lines.append(json.dumps({"match": {"role": "judge"}, "reply": {"text": json.dumps(pair)}}))
    (project / "judge.jsonl").write_text("\n".join(lines), "utf-8")
    done = assay("calibrate", "replay/judge.jsonl", "--json")
    assert done.code == 0, done.err
    assert done.document["max_error"] == pytest.approx(0.0, abs=1e-9)
    assert done.document["position_flips"]["value"] == 0


def test_the_python_verbs_give_the_same_records(
    assay: Command, server: ModelServer, project: Path
) -> None:
    import assay as product

    server.answer = grading(deserved(off=0.01))
    outcome = product.calibrate(JUDGE)
    assert outcome.trust.tier is outcome.record.tier
    assert outcome.record.version == 1
    result = product.run(write_set(project, things=1, trials=1), judge=JUDGE)
    again = product.regrade(result.summary.id, judge="openai/judge-2")
    assert again.origin == result.summary.id
    assert (len(again.changed), again.unchanged) == (0, 4)


PRICED = {"prices": {JUDGE: {"input": 1.0, "output": 1.0}}}


def test_calibration_dry_run_shows_the_cost_and_asks_nothing(
    assay: Command, server: ModelServer, project: Path
) -> None:
    (project / "assay.yaml").write_text(yaml.safe_dump(PRICED), "utf-8")
    ahead = assay("calibrate", JUDGE, "--repeat", "2", "--dry-run", "--json").document
    assert not server.calls
    assert 0 < ahead["likely_usd"] < ahead["most_usd"]
    server.answer = grading(deserved())
    assay("calibrate", JUDGE, "--repeat", "2")
    assert len(server.calls) == ahead["calls"]
    assert "calls, about $" in assay("calibrate", JUDGE, "--dry-run").out


def test_calibration_keeps_its_budget_and_names_skipped_samples(
    assay: Command, server: ModelServer, project: Path
) -> None:
    unpriced = assay("calibrate", JUDGE, "--budget", "0.01")
    assert unpriced.code == 2
    assert "price" in unpriced.err
    (project / "assay.yaml").write_text(yaml.safe_dump(PRICED | {"concurrency": 1}), "utf-8")
    server.answer = grading(deserved())
    capped = assay("calibrate", JUDGE, "--budget", "0.015", "--json")
    assert capped.code == 1
    kinds = {one["kind"] for one in capped.document["failures"]}
    assert kinds == {"budget"}
    assert capped.document["cost_usd"] <= 0.015
    assert 0 < capped.document["n"] < len(SAMPLES) - 1


def test_failed_tries_of_a_calibration_are_kept_with_its_record(
    assay: Command, server: ModelServer
) -> None:
    items: list[str] = []
    good = grading(deserved())

    def once_prose(call: Call) -> str:
        items.append("I would rather not put a number on it." if not items else good(call))
        return items[-1]

    server.answer = once_prose
    done = assay("calibrate", JUDGE, "--json")
    assert done.code == 0
    (kept,) = assay("calibrate", "--list", "--json").document["calibrations"]
    (lost,) = kept["failed_tries"]
    assert lost["reply"] == items[0]
    assert (lost["kind"], lost["fault"], lost["try"]) == ("unparsable", "judge", 1)


def test_stopped_calibration_resumes_without_asking_twice(
    assay: Command, server: ModelServer, project: Path
) -> None:
    from assay.app.calibration import measure
    from assay.app.runs import stopper as stopper_
    from assay.app.workspace import Workspace
    from assay.domain.errors import Interrupted

    (project / "assay.yaml").write_text(yaml.safe_dump(PRICED | {"concurrency": 1}), "utf-8")
    good = grading(deserved())
    items: list[str] = []

    def once_prose(call: Call) -> str:
        items.append("No." if not items else good(call))
        return items[-1]

    server.answer = once_prose
    stopper = stopper_.Stopper()
    heard: list[tuple[int, int]] = []

    def answered(done: int, of: int) -> None:
        heard.append((done, of))
        if done == 5:
            stopper.stop()

    with Workspace.open(project) as workspace, pytest.raises(Interrupted) as stopped:
        measure.calibrate(
            workspace, JUDGE, CalibrationRequest(), stopper=stopper, answered=answered
        )
    assert "5 answers are kept" in str(stopped.value)
    assert assay("calibrate", "--list", "--json").document["calibrations"] == []
    before = len(server.calls)
    ahead = assay("calibrate", JUDGE, "--dry-run", "--json").document
    assert ahead["taken_over"] == 5
    assert heard[-1][1] == ahead["calls"]
    done = assay("calibrate", JUDGE, "--json").document
    assert done["taken_over"] == 5
    assert before in (6, 7), (
        "five answers, one that could not be read, and perhaps one that was dropped in flight"
    )
    assert len(server.calls) - before == ahead["calls"] - 5
    assert done["calls"] == ahead["calls"] + 1
    assert len(done["failed_tries"]) == 1
    again = assay("calibrate", JUDGE, "--json").document
    assert (again["taken_over"], again["version"]) == (0, 2), "what is stored is measured anew"
    assert again["mae"] == done["mae"]
    assert list((project / ".assay" / "calibrating").iterdir()) == []


@pytest.mark.slow
def test_a_calibration_that_was_killed_has_its_answers_on_disk(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = grading(deserved())
    server.delay_s = 0.15
    command = [sys.executable, "-m", "assay", "calibrate", JUDGE]
    environment = {**os.environ, "PYTHONPATH": str(Path(calibration_samples.__file__).parents[2])}
    with subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 30
        while len(server.calls) < 9 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
    (kept,) = (project / ".assay" / "calibrating").iterdir()
    with kept.open("ab") as file:
        file.write(b'{"at": "2')  # a line that a crash cut off
    server.delay_s = 0.0
    before = len(server.calls)
    done = assay("calibrate", JUDGE, "--json").document
    assert done["taken_over"] >= 3
    assert len(server.calls) - before == done["calls"] - done["taken_over"]
    assert done["n"] == len(DESERVED)


def test_answers_of_long_ago_are_asked_again(project: Path) -> None:
    from assay.app.calibration.answer_cache import PaidAnswers
    from assay.domain.calls import Reply

    class Clock:
        at = "2026-01-01T00:00:00.000Z"

        def now(self) -> str:
            return self.at

    clock: Any = Clock()
    path = project / "some" / "where.jsonl"
    first = PaidAnswers(path, clock)
    first.keep("q", Reply(text="a \ud800 b", cost_usd=0.5))
    soon = PaidAnswers(path, clock)
    soon.read()
    assert soon.replies == first.replies
    clock.at = "2026-01-02T00:00:01.000Z"
    late = PaidAnswers(path, clock)
    late.read()
    assert late.replies == {}
    assert path.stat().st_mode & 0o077 == 0


def test_the_bias_of_each_criterion_and_the_texts_are_kept(
    assay: Command, server: ModelServer
) -> None:
    server.answer = grading(deserved())
    document = assay("calibrate", JUDGE, "--json").document
    bias = document["by_criterion"]["quality"]
    assert bias["value"] == pytest.approx(0.0, abs=1e-9)
    assert bias["n"] == len(DESERVED)
    by_id = {one["id"]: one for one in document["samples"]}
    for sample in SAMPLES:
        assert by_id[sample.id]["response"] == sample.response
