"""Comparison of agents and tiers from graded trials."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.app.runs.agent_comparison import compare_agents
from assay.app.runs.push import finished_runs
from assay.app.runs.scenario_runs import AgentTrialDocument
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import RunState
from assay.domain.selection import RunSummary


def trials(
    agent: str, tier: str, *scores: tuple[str, float | None], cost: float | None = 0.5
) -> list[AgentTrialDocument]:
    return [
        AgentTrialDocument(
            id=f"{agent}{tier}{n}",
            scenario=scenario,
            tier=tier,
            agent=agent,
            trial=n,
            score=score,
            success=None if score is None else score >= 0.7,
            ended="done",
            seconds=2.0 * n,
            tool_calls=n,
            input_tokens=100,
            output_tokens=10,
            cost_usd=cost,
            reviewed=False,
            evaluators={},
            weights={},
        )
        for n, (scenario, score) in enumerate(scores, 1)
    ]


def test_an_agent_without_a_counted_trial_is_left_out() -> None:
    assert compare_agents(trials("a", "L0", ("x", None))).agents == ()


def test_repeated_success_and_telemetry_are_means_over_scenarios() -> None:
    scored = [("x", 1.0), ("x", 0.0), ("x", 0.8), ("y", 0.5), ("y", 0.9), ("y", None)]
    (agent,) = compare_agents(trials("a", "L0", *scored)).agents
    assert (agent.n_scenarios, agent.n_trials, agent.successes) == (2, 5, 3)
    assert agent.mean == pytest.approx((0.6 + 0.7) / 2)
    assert agent.pass_at == {"1": pytest.approx((2 / 3 + 1 / 2) / 2), "2": 1.0}, (
        "k ends with the fewest trials of a scenario"
    )
    assert agent.pass_all == {
        "1": pytest.approx((2 / 3 + 1 / 2) / 2),
        "2": pytest.approx((1 / 3 + 0) / 2),
    }
    assert (agent.seconds, agent.tool_calls, agent.cost_usd) == (6.0, 3.0, 0.5)
    unpriced = trials("a", "L0", ("x", 1.0)) + trials("a", "L0", ("y", 1.0), cost=None)
    assert compare_agents(unpriced).agents[0].cost_usd is None


def test_pairs_share_the_agent_or_the_tier() -> None:
    rows = [
        *trials("a", "L0", ("x", 0.2), ("y", 0.4)),
        *trials("a", "L3", ("x", 0.8), ("y", 1.0)),
        *trials("b", "L0", ("x", 0.1), ("y", 0.1)),
    ]
    compared = compare_agents(rows)
    assert [(agent.agent, agent.tier) for agent in compared.agents] == [
        ("a", "L3"),
        ("a", "L0"),
        ("b", "L0"),
    ]
    by_pair = {(pair.a, pair.b): pair for pair in compared.pairs}
    assert set(by_pair) == {("a L3", "a L0"), ("a L0", "b L0")}
    assert by_pair["a L3", "a L0"].difference == pytest.approx(0.6)
    assert by_pair["a L3", "a L0"].n_scenarios == 2


def test_sent_trial_keeps_its_id_when_another_agent_is_approved_later() -> None:
    """An id by position would send the second agent's trial again, and lose the first agent's as
    already there.
    """
    summary = RunSummary(
        id=RunId("r"),
        suite="s",
        state=RunState.FINISHED,
        started="2026-01-01T00:00:00Z",
        finished=None,
        batch_id=None,
        candidates=("b", "a"),
        judges=(),
        trials={},
        assessments={},
        input_tokens=0,
        output_tokens=0,
        cost_usd=None,
        unpriced_calls=0,
    )
    (a,), (b,) = (
        [replace(trial, id="t1") for trial in trials(agent, "L0", ("x", 1.0))]
        for agent in ("a", "b")
    )
    ids = [[row["runId"] for row in finished_runs(summary, sent)] for sent in ([b], [a, b])]
    assert ids[0] == ids[1][1:]
    assert len(set(ids[1])) == 2
