"""Suites whose candidates are models go the same way."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from tests.journey.conftest import Command
from tests.support.model_server import Mishap, ModelServer

SUITE = """
name: capitals
trials: 3
system_prompt: Answer with one word.
parameters: {temperature: 0.7, seed: 11}
candidates:
  - {name: big, model: openai/big}
  - {name: small, model: openai/small, parameters: {temperature: 0.2, presence_penalty: 0.5}}
tasks:
  - {id: france, prompt: What is the capital of France?, expected: Paris, score: exact}
  - {id: spain, prompt: What is the capital of Spain?, expected: Madrid, score: exact}
"""

JUDGED = (
    SUITE.replace(", score: exact", "")
    + "judge: {model: openai/judge, mode: each, temperature: 0.1}\n"
)


@pytest.fixture
def capitals(server: ModelServer) -> ModelServer:
    """`big` always knows; `small` knows France alone."""

    def answer(call: object) -> str:
        body = call.body  # type: ignore[attr-defined] # the server's own record of a request
        asked = body["messages"][-1]["content"]
        if body["model"] == "small" and "Spain" in asked:
            return "Barcelona"
        return "Paris" if "France" in asked else "Madrid"

    server.answer = answer
    return server


def test_each_model_is_asked_each_prompt_in_each_trial_and_scored_at_once(
    assay: Command, capitals: ModelServer, project: Path
) -> None:
    (project / "capitals.yaml").write_text(SUITE, "utf-8")
    document = assay("run", "capitals.yaml", "--json").document
    assert document["trials"] | {"total": 6, "done": 6, "failed": 0} == document["trials"]
    assert document["assessments"]["not_required"] == 12
    assert len(capitals.calls) == 12
    stats = {one["candidate"]: one for one in assay("stats", "--json").document["candidates"]}
    assert stats["big"]["mean"] == 1.0
    france, spain = stats["small"]["by_task"]
    assert france["mean"] == 1.0
    assert spain["mean"] < 0.3
    assert stats["small"]["mean"] == pytest.approx((1.0 + spain["mean"]) / 2)


def test_seeds_differ_by_trial_and_follow_the_run_seed(
    assay: Command, capitals: ModelServer, project: Path
) -> None:
    (project / "capitals.yaml").write_text(SUITE, "utf-8")
    assay("run", "capitals.yaml")
    first = sorted(call.body["seed"] for call in capitals.calls)
    assert len(set(first)) == 12
    capitals.forget()
    assay("run", "capitals.yaml")
    assert sorted(call.body["seed"] for call in capitals.calls) == first


def test_benchmark_mode_uses_temperature_zero_for_one_run_only(
    assay: Command, capitals: ModelServer, project: Path
) -> None:
    (project / "capitals.yaml").write_text(SUITE, "utf-8")
    assay("run", "capitals.yaml", "--benchmark")
    assert {
        (call.body["temperature"], call.body["presence_penalty"]) for call in capitals.calls
    } == {(0, 0)}
    capitals.forget()
    assay("run", "capitals.yaml")
    assert {
        (c.body["model"], c.body["temperature"], c.body["presence_penalty"]) for c in capitals.calls
    } == {("big", 0.7, 0), ("small", 0.2, 0.5)}


def test_a_lone_judge_grades_each_answer_and_every_grade_waits(
    assay: Command, server: ModelServer, project: Path
) -> None:
    (project / "judged.yaml").write_text(JUDGED, "utf-8")
    document = assay("run", "judged.yaml", "--json").document
    assert document["assessments"]["pending"] == 12
    assert len(server.calls) == 24
    rows = assay("review", "list", "--json").document["assessments"]
    assert {tuple(row["candidates"]) for row in rows} == {("big",), ("small",)}
    judge_calls = [call for call in server.calls if call.body["model"] == "judge"]
    assert {call.body["temperature"] for call in judge_calls} == {0.1}


def test_trial_counts_for_the_approved_candidate(
    assay: Command, server: ModelServer, project: Path
) -> None:
    (project / "judged.yaml").write_text(JUDGED, "utf-8")
    assay("run", "judged.yaml")
    rows = assay("review", "list", "--json").document["assessments"]
    big = [row for row in rows if row["candidates"] == ["big"]]
    assay("review", "approve", *(row["id"] for row in big))
    stats = {one["candidate"]: one for one in assay("stats", "--json").document["candidates"]}
    assert stats["big"]["n_trials"] == 6
    assert stats["big"]["mean"] == pytest.approx(
        mean(
            mean(r["scores"]["big"] for r in big if r["task"] == task)
            for task in ("france", "spain")
        )
    )
    assert stats.get("small", {"mean": None})["mean"] is None


def test_a_refused_answer_is_kept_apart_from_a_wrong_one(
    assay: Command, capitals: ModelServer, project: Path
) -> None:
    (project / "capitals.yaml").write_text(SUITE, "utf-8")
    capitals.script([Mishap.REFUSAL])
    document = assay("run", "capitals.yaml", "--concurrency", "1", "--json").document
    (failure,) = document["failures"]
    assert failure["fault"] == "refusal"
    assert len(capitals.calls) == 12


def test_a_new_candidate_joins_a_finished_run_and_only_it_is_asked(
    assay: Command, capitals: ModelServer, project: Path
) -> None:
    (project / "capitals.yaml").write_text(SUITE, "utf-8")
    run = assay("run", "capitals.yaml", "--json").document["run_id"]
    capitals.forget()
    extended = assay("extend", run, "--candidate", "openai/third", "--json").document
    assert extended["assessments"]["not_required"] == 18
    assert {call.body["model"] for call in capitals.calls} == {"third"}
    assert len(capitals.calls) == 6


def test_an_unset_key_is_said_before_anything_runs(assay: Command, project: Path) -> None:
    (project / "capitals.yaml").write_text(SUITE, "utf-8")
    refused = assay("run", "capitals.yaml")
    assert refused.code == 2
    assert "OPENAI_API_KEY" in refused.err
    assert assay("runs", "--json").document == {"runs": []}


def test_local_only_refuses_a_provider_elsewhere_before_a_byte_is_sent(
    assay: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.setenv("ASSAY_LOCAL_ONLY", "true")
    (project / "capitals.yaml").write_text(SUITE, "utf-8")
    refused = assay("run", "capitals.yaml")
    assert refused.code == 2
    assert "local_only" in refused.err


def test_a_joint_prompt_that_does_not_fit_is_found_before_the_run(
    assay: Command, server: ModelServer, project: Path
) -> None:
    snippet = "x = 1\n" * 200_000
    (project / "a.py").write_text(snippet, "utf-8")
    (project / "fits.yaml").write_text(
        "name: fits\njudge: openai/gpt-4o-mini\ntasks:\n  - {id: t, thing: T, snippets: {a: {file: a.py}, b: {file: a.py}}}\n",
        "utf-8",
    )
    refused = assay("run", "fits.yaml")
    assert refused.code == 2
    assert "tokens" in refused.err
    assert server.served == 0


def test_a_dry_run_shows_prompts_and_asks_nothing(
    assay: Command, server: ModelServer, project: Path
) -> None:
    (project / "judged.yaml").write_text(JUDGED, "utf-8")
    shown = assay("run", "judged.yaml", "--dry-run", "--show-prompt")
    assert shown.code == 0
    assert "What is the capital of France?" in shown.out
    assert "24 calls" in shown.out
    assert server.served == 0
    assert assay("runs", "--json").document == {"runs": []}
