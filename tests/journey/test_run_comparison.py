"""Two runs side by side, and one suite over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.statistics import ScoreTable, compare
from tests.journey.conftest import Command
from tests.support.model_server import ModelServer

FIRST = """
name: law
prompt_version: v1
trials: 3
system_prompt: |
  Be brief.
  Be right.
parameters: {temperature: 0.2}
candidates: [openai/model-a, openai/model-b]
judge: {model: openai/judge-1, mode: each}
review: none
rubric: [{name: right, weight: 2, guidance: Is it right?}]
tasks:
  - {id: sum, prompt: "What is 1 + 1?"}
  - {id: product, prompt: "What is 2 * 3?", weight: 2}
  - {id: gone, prompt: "What is 3?"}
"""
SECOND = (
    FIRST.replace("Be brief.", "Be thorough.")
    .replace("version: v1", "version: v2")
    .replace("0.2", "0.9")
    .replace("What is 1 + 1?", "What is 1 + 2?")
    .replace("id: gone", "id: new")
    .replace("openai/model-b]", "openai/model-c]")
    .replace("weight: 2, guidance", "weight: 3, guidance")
)


@pytest.fixture
def runs(assay: Command, server: ModelServer, project: Path) -> tuple[str, str]:
    items = []
    for name, text in (("first.yaml", FIRST), ("second.yaml", SECOND)):
        (project / name).write_text(text, "utf-8")
        items.append(assay("run", name, "--json").document["run_id"])
    return items[0], items[1]


def test_run_diff_names_only_the_settings_that_differ(
    assay: Command, runs: tuple[str, str]
) -> None:
    document = assay("diff", *runs, "--json").document
    by_name: dict[tuple[str, str], Any] = {
        (one["kind"], one["name"]): one for one in document["set_up"]
    }
    assert by_name["parameters", "temperature"]["before"] == 0.2
    assert by_name["parameters", "temperature"]["after"] == 0.9
    prompt = by_name["prompt", "system prompt"]["diff"]
    assert [line for line in prompt if line[0] in "+-" and line[:3] not in ("+++", "---")] == [
        "-Be brief.",
        "+Be thorough.",
    ]
    assert (by_name["prompt", "version"]["before"], by_name["prompt", "version"]["after"]) == (
        "v1",
        "v2",
    )
    assert by_name["criterion", "right"]["after"]["weight"] == 3
    assert by_name["candidate", "openai/model-b"]["after"] is None
    assert by_name["candidate", "openai/model-c"]["before"] is None
    assert by_name["task", "gone"]["after"] is None
    assert by_name["task", "new"]["before"] is None
    assert any("1 + 2" in line for line in by_name["task", "sum"]["diff"])
    assert ("task", "product") not in by_name
    assert {"judge", "version"} <= set(document["same"])
    assert document["shared_tasks"] == 1


def test_the_results_are_compared_over_tasks_that_did_not_change(
    assay: Command, runs: tuple[str, str]
) -> None:
    document = assay("diff", *runs, "--json").document
    (one,) = document["candidates"]
    assert one["candidate"] == "openai/model-a"
    rows = [
        (mark, row["trial"], row["scores"]["openai/model-a"])
        for mark, run in zip(("before", "after"), runs, strict=True)
        for row in assay("review", "list", "--run", run, "--json").document["assessments"]
        if row["task"] == "product" and "openai/model-a" in row["scores"]
    ]
    table = ScoreTable.from_columns(
        task=["product"] * len(rows),
        candidate=[mark for mark, _, _ in rows],
        trial=[f"{mark}{trial}" for mark, trial, _ in rows],
        score=[score for _, _, score in rows],
    )
    wanted = compare(table, "after", "before")
    assert len(rows) == 6
    assert one["difference"] == pytest.approx(wanted.difference)
    assert wanted.ci95 is not None
    assert one["ci95"] == pytest.approx(list(wanted.ci95))
    (task,) = one["by_task"]
    assert task["task"] == "product"
    assert (task["n_before"], task["n_after"]) == (3, 3)
    assert task["ci95"] == pytest.approx(one["ci95"])
    output = assay("diff", *runs)
    assert one["verdict"] in output.out
    assert "+Be thorough." in output.out


def test_a_run_is_not_compared_with_itself_nor_with_none(
    assay: Command, runs: tuple[str, str]
) -> None:
    assert assay("diff", runs[0], runs[0]).code == 2
    assert assay("diff", runs[0], "nope").code == 2


def test_trend_shows_the_statistics_of_each_run(
    assay: Command, runs: tuple[str, str], project: Path
) -> None:
    document = assay("trend", "law", "--output", "trend.csv", "--json").document
    assert document["runs"] == 2
    for point in document["points"]:
        stats = assay("stats", "--run", point["run_id"], "--json").document["candidates"]
        (same,) = [one for one in stats if one["candidate"] == point["candidate"]]
        assert (point["mean"], point["ci95"], point["n_trials"]) == (
            same["mean"],
            same["ci95"],
            same["n_trials"],
        )
    assert [(p["run_id"], p["same_tasks"]) for p in document["points"]] == [(runs[0], True)] * 2 + [
        (runs[1], False)
    ] * 2
    assert len((project / "trend.csv").read_text("utf-8").splitlines()) == 5
    assert (
        assay("trend", "law", "--candidate", "OPENAI/model-a", "--json").document["points"][0][
            "candidate"
        ]
        == "openai/model-a"
    )
    assert "other tasks" in assay("trend", "law").out
    assert assay("trend", "law", "--candidate", "nobody").code == 2
    assert assay("trend", "nope").code == 2
    assert assay("trend", "law", "--output", "trend.svg").code == 0
    assert "<svg" in (project / "trend.svg").read_text("utf-8")


def test_run_record_sums_calls_tokens_and_speed_by_model(
    assay: Command, server: ModelServer, runs: tuple[str, str]
) -> None:
    document = assay("show", runs[0], "--json").document
    rows = {(one["role"], one["name"]): one for one in document["answered"]}
    assert set(rows) == {
        ("candidate", "openai/model-a"),
        ("candidate", "openai/model-b"),
        ("judge", "openai/judge-1"),
    }
    assert rows["candidate", "openai/model-a"]["calls"] == 9
    assert rows["judge", "openai/judge-1"]["calls"] == 18
    assert sum(one["tokens"]["input"] for one in rows.values()) == document["tokens"]["input"]
    assert document["calls"] == 36
    assert document["calls_per_second"] == pytest.approx(36 / document["seconds"], abs=0.01)
    assert document["prompt_version"] == "v1"
    text = assay("show", runs[0]).out
    for fact in ("temperature 0.2", "Python", "machine", "model-a", document["suite_digest"][:16]):
        assert fact in text
