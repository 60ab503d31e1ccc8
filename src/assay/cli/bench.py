"""`assay bench`."""

from __future__ import annotations

import sys
import time
from statistics import mean
from typing import TYPE_CHECKING

import click

from assay.cli.options import common, keys_over_http, without_sandbox, workspace
from assay.cli.output import counted, exit_of, print_json, say, say_result, say_table, tell
from assay.cli.parameters import argument, option
from assay.cli.progress import progress_on
from assay.cli.specialists import say_mint
from assay.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.runs.agent_comparison import AgentComparisonDocument
    from assay.app.runs.push import PushDocument
    from assay.app.runs.scenario_runs import AgentTrialDocument
    from assay.app.workspace import Workspace
    from assay.domain.identifiers import RunId


@click.command()
@argument("suite", metavar="SUITE")
@argument("scenarios", nargs=-1, required=True, metavar="SCENARIO…")
@option(
    "--tier",
    "tiers",
    multiple=True,
    metavar="L1",
    help="Only this tier of the prompts. May be repeated.",
)
@option(
    "--agent",
    "agents",
    multiple=True,
    metavar="AGENT",
    help="`echo` (default), `solution`, `claude-code`, provider/name, a vendor, `cmd: COMMAND…`; named: `my=cmd: …`.",
)
@option(
    "--model",
    metavar="NAME",
    help="Model for an agent that is a vendor, such as `anthropic`, or `claude-code`.",
)
@option(
    "--specialist",
    metavar="NAME|FILE",
    help="Template, as a file or @org/name[@version]; gives the agents its prompts.",
)
@option(
    "--no-enriched",
    is_flag=True,
    help="With --specialist: use the template, not its newest enriched version.",
)
@option("--baseline", is_flag=True, help="With --specialist: let each agent also work without it.")
@option(
    "--iterations",
    type=click.IntRange(min=1),
    metavar="N",
    help="Trials for each agent, scenario and tier; default 1.",
)
@option("--batch-id", metavar="ID", help="Label that groups runs; default: `batch_` and the time.")
@option(
    "--skip-warmup",
    is_flag=True,
    help="Start from the unchanged fixture, without the baseline commands.",
)
@option("--budget", type=float, metavar="USD", help="Maximum cost of the run.")
@option(
    "--mint-template",
    metavar="FILE",
    help="Mint a snapshot of this specialist from the batch; see `assay mint`.",
)
@option(
    "--mint-output",
    metavar="DIR",
    default="snapshots",
    show_default=True,
    help="Folder of that snapshot.",
)
@keys_over_http
@without_sandbox
@common
def bench(
    suite: str,
    scenarios: tuple[str, ...],
    tiers: tuple[str, ...],
    agents: tuple[str, ...],
    model: str | None,
    specialist: str | None,
    no_enriched: bool,
    baseline: bool,
    iterations: int | None,
    batch_id: str | None,
    skip_warmup: bool,
    budget: float | None,
    mint_template: str | None,
    mint_output: str,
    store: str | None,
    as_json: bool,
) -> int:
    """Let agents work on each SCENARIO of SUITE in sandboxed copies of its repository, and grade
    the results.

    Scenarios are folders: suites/SUITE/scenarios/SCENARIO. The run is like any other: `assay
    stats`, `compare`, `resume` apply.
    """
    from assay.app.runs import (
        agent_comparison,
        execution,
        preflight,
        run_documents,
        scenario_runs as scenario_runs,
    )
    from assay.app.runs.push import server_of
    from assay.app.specialists.mint import prepared
    from assay.app.specialists.waiting import mint_or_wait
    from assay.app.wire import to_json
    from assay.domain.observations import MintRequested
    from assay.domain.run import RunOptions

    if specialist is None and (no_enriched or baseline):
        raise InputError(
            "--no-enriched and --baseline",
            "need --specialist.",
            remedy="Add --specialist NAME-OR-FILE.",
        )
    with workspace(store, budget=budget) as opened:
        template = None
        if specialist is not None:
            from assay.app.specialists.candidates import (
                add_specialist,
                preferred_agents,
                specialist_template,
            )

            template, file = specialist_template(
                opened.folder, specialist, enriched=not no_enriched
            )
            tell(f"specialist: {template.name} {template.version} from {file}")
            agents = preferred_agents(template, agents, model)
        agents = tuple(_with_model(opened, agent, model, asks=not as_json) for agent in agents)
        of_agents = scenario_runs.scenario_suite(
            opened.settings,
            suite,
            scenarios,
            agents=agents or ("echo",),
            tiers=tiers,
            skip_warmup=skip_warmup,
        )
        if template is not None:
            of_agents = add_specialist(of_agents, template, baseline=baseline)
        batch_id = batch_id or f"batch_{time.time_ns() // 1_000_000}"
        # a wrong address or template stops the command before it costs anything
        server_of(opened.settings)
        snapshot = None
        if mint_template is not None:
            snapshot = prepared(
                opened.folder,
                MintRequested(template=mint_template, batch_id=batch_id, output=mint_output),
            )
        options = RunOptions(
            trials=iterations, batch_id=batch_id, budget_usd=opened.settings.values["budget"]
        )
        ahead = preflight.look_ahead(opened, of_agents, options)
        for note in ahead.notes:
            tell(f"note: {note}")
        tell(
            f"{suite}: {counted(len(of_agents.candidates), 'agent')}, {counted(ahead.trials, 'trial')}"
        )
        with progress_on(sys.stderr) as listener:
            result = execution.run(opened, of_agents, options, ahead=ahead, listener=listener)
        trials = scenario_runs.outcomes(opened.store, ahead.plan.id)
        pushed = push_results(opened, ahead.plan.id)
        minted = None if snapshot is None else mint_or_wait(opened, snapshot)
    comparison = agent_comparison.compare_agents(trials)
    summary = run_documents.run_result(result)
    if as_json:
        parts = {"agent_trials": list(map(to_json, trials)), "comparison": to_json(comparison)}
        ends = {
            "push": pushed and to_json(pushed),
            **({} if minted is None else {"mint": to_json(minted)}),
        }
        print_json({**to_json(summary), **parts, **ends})
        return exit_of(summary)
    say_trials(trials, planned=ahead.trials * len(of_agents.candidates))
    say_agents(comparison)
    say(f"batch {batch_id}; see `assay show {batch_id}`")
    say_result(result)
    if minted is not None:
        say_mint(minted)
    return exit_of(summary)


def push_results(opened: Workspace, run: RunId) -> PushDocument | None:
    """Send a run's graded trials to the server in the settings, if there is one, and report the
    outcome on stderr.
    """
    from assay.app.runs.push import push

    pushed = push(opened.store, opened.settings, run)
    if pushed is not None:
        tell(f"sent {counted(pushed.sent, 'trial')} to {pushed.server}")
        if pushed.problem:
            tell(
                f"warning: the server refused a trial: {pushed.problem}. Send the remaining trials: assay resume {run}"
            )
        if pushed.waiting:
            tell(
                f"note: {counted(pushed.waiting, 'trial')} await review; send them after the review: assay resume {run}"
            )
    return pushed


def say_trials(trials: Sequence[AgentTrialDocument], *, planned: int) -> None:
    """Print each graded trial and, if some of the planned trials have no score, the range of the
    average.
    """
    for trial in trials:
        score = "no score" if trial.score is None else f"{trial.score:.3f}"
        parts = ", ".join(
            f"{name} {'–' if value is None else f'{value:.2f}'}"
            for name, value in trial.evaluators.items()
        )
        success = {True: "success", False: "no success", None: "not reviewed"}[trial.success]
        say(
            f"{trial.id} {trial.scenario} {trial.tier} {trial.agent} trial {trial.trial}: {score}, {success} ({parts})"
        )
    scores = [trial.score for trial in trials if trial.score is not None]
    if scores:
        won = sum(bool(trial.success) for trial in trials)
        successes = "all" if won == len(trials) else won
        say(f"{counted(len(trials), 'trial')}, {successes} successful, average {mean(scores):.3f}")
        every = max(len(scores), planned)
        if missing := every - len(scores):
            low, high = sum(scores) / every, (sum(scores) + missing) / every
            say(
                f"{missing} without a score: the average is {low:.3f} if they scored 0, {high:.3f} if they scored 1"
            )


def _with_model(opened: Workspace, agent: str, model: str | None, *, asks: bool) -> str:
    """Return an agent with its model, which comes from the command, the person at the terminal or
    the vendor's default.
    """
    from assay.app.runs.model_list import default_model, list_models, vendor_of, with_model
    from assay.cli.models import choose_model

    vendor = vendor_of(agent)
    if model is None and vendor is not None:
        model = default_model(vendor)
        if asks and sys.stdin.isatty():
            model = choose_model(
                list_models(opened.store, opened.settings, f"{vendor}/"), vendor, model
            )
        tell(f"{agent}: {model}")
    return agent if model is None else with_model(agent, model)


def say_agents(comparison: AgentComparisonDocument) -> None:
    """Print a table of agents and tiers, and their pairs; nothing for a single trial."""
    if sum(agent.n_trials for agent in comparison.agents) < 2:
        return
    rows = []
    for agent in comparison.agents:
        tries = max(map(int, agent.pass_at), default=1)
        rows.append(
            (
                agent.agent,
                agent.tier,
                _shown(agent.mean, ".3f"),
                "–" if agent.ci95 is None else "{:.3f} to {:.3f}".format(*agent.ci95),
                f"{agent.successes} of {agent.n_trials}",
                f"{agent.pass_at[str(tries)]:.2f} / {agent.pass_all[str(tries)]:.2f} (k={tries})",
                _shown(agent.seconds, ",.1f"),
                _shown(agent.tool_calls, ",.1f"),
                "–"
                if agent.input_tokens is None
                else f"{agent.input_tokens:,.0f} + {agent.output_tokens or 0:,.0f}",
                _shown(agent.cost_usd, ".4f"),
            )
        )
    headings = (
        "agent",
        "tier",
        "mean",
        "95% range",
        "successes",
        "pass@k / pass^k",
        "seconds",
        "tool calls",
        "tokens",
        "USD",
    )
    say_table(headings, rows, numbers=frozenset({2, 6, 7, 8, 9}))
    for pair in comparison.pairs:
        if pair.difference is not None:
            interval = (
                ""
                if pair.ci95 is None
                else " ({:+.1f} to {:+.1f})".format(*(100 * end for end in pair.ci95))
            )
            say(
                f"{pair.a} − {pair.b}: {100 * pair.difference:+.1f} points{interval}, {pair.decision.replace('_', ' ')}"
            )


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
