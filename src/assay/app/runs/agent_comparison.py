"""Compare agents, and tiers of prompts, over the scenarios that both sides worked on."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean
from typing import TYPE_CHECKING, Final

from assay.app.statistics.statistics_documents import Range
from assay.app.wire import document
from assay.statistics.repeated_success import pass_all_k, pass_at_k
from assay.statistics.reports import report
from assay.statistics.table import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from assay.app.runs.scenario_runs import AgentTrialDocument

_MAX_TRIES: Final = 10
"""Largest k of pass@k and pass^k."""


@document
class AgentStandingDocument:
    """An agent's results at one tier of the prompts, over the trials that count.

    `mean` with `ci95` is the score over scenarios; `reason` says why one of them is null. `pass_at`
    and `pass_all` map k to the mean probability over scenarios that at least one of k trials, or
    all of them, succeed; k goes up to the fewest trials of a scenario. Seconds, tool calls, tokens
    and cost are means per trial, null if unknown for any trial.
    """

    agent: str
    tier: str
    mean: float | None
    ci95: Range | None
    reason: str | None
    n_scenarios: int
    n_trials: int
    successes: int
    pass_at: dict[str, float]
    pass_all: dict[str, float]
    seconds: float | None
    tool_calls: float | None
    input_tokens: float | None
    output_tokens: float | None
    cost_usd: float | None


@document
class AgentPairDocument:
    """Two agents at one tier, or two tiers of one agent; `p_holm` and `decision` are adjusted for
    all pairs.
    """

    a: str
    b: str
    difference: float | None
    ci95: Range | None
    p_holm: float | None
    decision: str
    n_scenarios: int
    reason: str | None


@document
class AgentComparisonDocument:
    """Agents and tiers from the highest mean to the lowest, and their pairs."""

    agents: tuple[AgentStandingDocument, ...]
    pairs: tuple[AgentPairDocument, ...]


def compare_agents(trials: Sequence[AgentTrialDocument]) -> AgentComparisonDocument:
    """Compare the agents of graded trials; a trial without a grade that counts is left out.

    All tiers use the same scenarios, so two tiers of an agent are compared scenario by scenario,
    like two agents.
    """
    grouped: dict[tuple[str, str], list[tuple[AgentTrialDocument, float]]] = defaultdict(list)
    for trial in trials:
        if trial.score is not None:
            grouped[trial.agent, trial.tier].append((trial, trial.score))
    if not grouped:
        return AgentComparisonDocument(agents=(), pairs=())
    rows = [(key, trial, score) for key, scored in grouped.items() for trial, score in scored]
    # labels of a table have no type of their own
    keys: dict[Hashable, tuple[str, str]] = {key: key for key in grouped}
    table = ScoreTable.from_columns(
        task=[trial.scenario for _, trial, _ in rows],
        candidate=[key for key, _, _ in rows],
        trial=[trial.id for _, trial, _ in rows],
        score=[score for _, _, score in rows],
    )
    ranking = report(table).ranking
    agents = []
    for ranked in ranking.candidates:
        estimate = ranked.estimate
        agent, tier = key = keys[ranked.candidate]
        own = [trial for trial, _ in grouped[key]]
        agents.append(
            AgentStandingDocument(
                agent=agent,
                tier=tier,
                mean=estimate.mean,
                ci95=estimate.ci95,
                reason=estimate.reason,
                n_trials=estimate.n_trials,
                n_scenarios=estimate.n_tasks,
                successes=sum(bool(trial.success) for trial in own),
                pass_at=_in_tries(own, pass_at_k),
                pass_all=_in_tries(own, pass_all_k),
                seconds=_mean([trial.seconds for trial in own]),
                tool_calls=_mean([trial.tool_calls for trial in own]),
                input_tokens=_mean([trial.input_tokens for trial in own]),
                output_tokens=_mean([trial.output_tokens for trial in own]),
                cost_usd=_mean([trial.cost_usd for trial in own]),
            )
        )
    tiers = len({tier for _, tier in grouped}) > 1
    pairs = []
    for pair in ranking.compared:
        (a, tier_a), (b, tier_b) = keys[pair.a], keys[pair.b]
        if a == b or tier_a == tier_b:
            pairs.append(
                AgentPairDocument(
                    a=f"{a} {tier_a}" if tiers else a,
                    b=f"{b} {tier_b}" if tiers else b,
                    difference=pair.difference,
                    ci95=pair.ci95,
                    p_holm=pair.p_holm,
                    decision=pair.decision,
                    n_scenarios=pair.n_tasks,
                    reason=pair.reason,
                )
            )
    return AgentComparisonDocument(agents=tuple(agents), pairs=tuple(pairs))


def _in_tries(
    trials: Sequence[AgentTrialDocument], probability: Callable[[int, int, int], float]
) -> dict[str, float]:
    """Return a probability's mean over scenarios, for each number of tries that every scenario
    has.
    """
    by_scenario: dict[str, list[bool]] = defaultdict(list)
    for trial in trials:
        by_scenario[trial.scenario].append(bool(trial.success))
    counts = [(len(own), sum(own)) for own in by_scenario.values()]
    fewest = min(_MAX_TRIES, *(n for n, _ in counts))
    return {str(k): mean(probability(n, won, k) for n, won in counts) for k in range(1, fewest + 1)}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known and len(known) == len(values) else None
