"""`assay bench`."""

from __future__ import annotations

import sys
from typing import Any

import click

from assay.cli.options import common, keys_over_http, without_sandbox, workspace
from assay.cli.output import counted, print_json, say, say_result, tell
from assay.cli.progress import progress_on


@click.command()
@click.argument("suite", metavar="SUITE")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO…")
@click.option("--tier", "tiers", multiple=True, metavar="L1", help="Only this tier of the prompts. May be repeated.")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="AGENT",
    help="`echo` (default), `solution`, a model as provider/name, or `cmd: COMMAND…`; named: `mine=cmd: ./a.sh`. Repeatable.",
)
@click.option("--iterations", type=int, metavar="N", help="Trials of each agent on each scenario and tier; default 1.")
@click.option("--batch-id", metavar="ID", help="Label that groups runs.")
@click.option("--skip-warmup", is_flag=True, help="Start from the fixture as it is, without the baseline commands.")
@click.option("--budget", type=float, metavar="USD", help="Maximum cost of the run.")
@keys_over_http
@without_sandbox
@common
def bench(
    suite: str,
    scenarios: tuple[str, ...],
    tiers: tuple[str, ...],
    agents: tuple[str, ...],
    iterations: int | None,
    batch_id: str | None,
    skip_warmup: bool,
    budget: float | None,
    store: str | None,
    as_json: bool,
    **_: Any,
) -> int:
    """Let agents work on each SCENARIO of SUITE in sandboxed copies of its repository, and grade what they leave.

    Scenarios are folders: suites/SUITE/scenarios/SCENARIO. The run is like any other: `assay stats`, `compare`, `resume` apply.
    """
    from assay.app.runs import bench as scenario_runs, documents, execution, preflight
    from assay.app.wire import to_json
    from assay.domain.run import RunOptions

    with workspace(store, budget=budget) as opened:
        of_agents = scenario_runs.scenario_suite(
            opened, suite, scenarios, agents=agents or ("echo",), tiers=tiers, skip_warmup=skip_warmup
        )
        options = RunOptions(trials=iterations, batch_id=batch_id, budget_usd=opened.settings.values["budget"])
        ahead = preflight.look_ahead(opened, of_agents, options)
        for note in ahead.notes:
            tell(f"note: {note}")
        tell(f"{suite}: {counted(len(of_agents.candidates), 'agent')}, {counted(ahead.trials, 'trial')}")
        with progress_on(sys.stderr) as listener:
            result = execution.run(opened, of_agents, options, ahead=ahead, listener=listener)
        trials = scenario_runs.outcomes(opened, ahead.plan.id)
    summary = documents.run_result(result)
    if as_json:
        print_json({**to_json(summary), "agent_trials": [to_json(trial) for trial in trials]})
        return int(bool(summary.failures))
    for trial in trials:
        score = "no score" if trial.score is None else f"{trial.score:.3f}"
        parts = ", ".join(f"{name} {'–' if value is None else f'{value:.2f}'}" for name, value in trial.evaluators.items())
        success = "success" if trial.success else "no success"
        say(f"{trial.id} {trial.scenario} {trial.tier} {trial.agent} trial {trial.trial}: {score}, {success} ({parts})")
    scores = [trial.score for trial in trials if trial.score is not None]
    if scores:
        won = sum(bool(trial.success) for trial in trials)
        say(f"{counted(len(trials), 'trial')}, {won} successful, average {sum(scores) / len(scores):.3f}")
        every = max(len(scores), ahead.trials * len(of_agents.candidates))
        if missing := every - len(scores):
            low, high = sum(scores) / every, (sum(scores) + missing) / every
            say(f"{missing} without a score: the average is {low:.3f} if they scored 0, {high:.3f} if they scored 1")
    say_result(result)
    return int(bool(summary.failures))
