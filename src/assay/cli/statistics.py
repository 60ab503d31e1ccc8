"""`assay stats`, `compare`, `rank`, `plan` and `gate`: print statistics as text or JSON."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal

import click

from assay.cli.options import common, filters, margin_option, require_vetted_option, workspace
from assay.cli.output import answer, print_json, say, say_table
from assay.cli.parameters import Command, argument, option
from assay.domain.amounts import money

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.analysis.verdict_rates import VerdictComparison, VerdictRates
    from assay.app.statistics.basis import Basis, StillOpen
    from assay.app.statistics.power import PowerPlan, SampleSize
    from assay.app.statistics.results import (
        CandidateScores,
        ComparisonResult,
        GateResult,
        RankingResult,
    )
    from assay.app.statistics.statistics_documents import (
        ComparisonDocument,
        GateDocument,
        RankingDocument,
        StrengthsDocument,
    )
    from assay.domain.selection import Selection
    from assay.statistics.ranking import RankedPair
    from assay.statistics.warnings import Caution

EXIT_GATE_CLOSED = 3
EXIT_GATE_UNDECIDED = 4
_MAX_PAIRS: Final = 10
_MAX_DIAGNOSTICS: Final = 12


def _scope(command: Command) -> Command:
    choices = click.Choice(["auto", "tasks-like-these", "these-tasks"])
    about = "Generalise to new tasks of the same kind, or only to these tasks; auto decides by the number of planned tasks."
    return option("--scope", type=choices, default="auto", help=about)(command)


_MARGIN: Final = margin_option(
    "--margin",
    about="The smallest difference that matters: 0.03, or 3pts. Without it no pair is called equivalent.",
)


@click.command()
@option("--by-task", is_flag=True, help="Also list the score of each candidate on each task.")
@filters
@common
def stats(selection: Selection, by_task: bool, store: str | None, as_json: bool) -> int:
    """Show each candidate's mean over tasks with its interval, from the trials that count."""
    from assay.app.review.double_review import what_waits
    from assay.app.statistics import results, statistics_documents
    from assay.app.statistics.basis import basis_of

    with workspace(store) as opened:
        basis = basis_of(opened.store, opened.settings, selection)
        scores = results.stats(opened.store, opened.settings, selection, basis=basis)
        if as_json:
            print_json(statistics_documents.scores_document(scores))
        else:
            ranking = results.rank(opened.store, opened.settings, selection, basis=basis)
            waits = (
                what_waits(opened.store, opened.reviewer, basis.chosen.selection)
                if basis.excluded.awaiting_review and not basis.n_trials
                else ""
            )
            say_standing(
                scores,
                ranking,
                results.leading_verdict(opened.store, ranking),
                by_task=by_task,
                waits=waits,
            )
    return 0


@click.command()
@argument("a")
@argument("b")
@_scope
@_MARGIN
@filters
@common
def compare(
    selection: Selection,
    a: str,
    b: str,
    scope: str,
    margin: float | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Compare A and B: which is better, by how much, and how certain that is."""
    from assay.app.statistics import results, statistics_documents

    with workspace(store) as opened:
        compared = results.compare(
            opened.store,
            opened.settings,
            selection,
            a,
            b,
            scope=results.SCOPES[scope],
            margin=margin,
        )
    document = statistics_documents.comparison_document(compared)
    return answer(document, lambda: _say_contrast(compared, document), as_json=as_json)


@click.command()
@_scope
@_MARGIN
@filters
@common
def rank(
    selection: Selection, scope: str, margin: float | None, store: str | None, as_json: bool
) -> int:
    """Rank all candidates with the ranks that the data support, and compare all pairs with Holm's
    correction.
    """
    from assay.app.statistics import results, statistics_documents

    with workspace(store) as opened:
        ranking = results.rank(
            opened.store, opened.settings, selection, scope=results.SCOPES[scope], margin=margin
        )
    document = statistics_documents.ranking_document(ranking)
    return answer(document, lambda: _say_ranks(ranking, document), as_json=as_json)


@click.command()
@margin_option("--detect", required=True, about="Difference to detect: 0.03, or 3pts.")
@option("--power", default="0.8", metavar="P", help="Probability of detecting it; default 0.8.")
@_scope
@filters
@common
def plan(
    selection: Selection, detect: float, power: str, scope: str, store: str | None, as_json: bool
) -> int:
    """Estimate how many more tasks or trials would show a difference of D, with their cost and
    reviews.
    """
    from assay.app.statistics import power as planning, results, statistics_documents

    surely = planning.parsed_power(power)
    with workspace(store) as opened:
        needed = planning.plan(
            opened.store,
            opened.settings,
            selection,
            detect=detect,
            power=surely,
            scope=results.SCOPES[scope],
        )
    return answer(
        statistics_documents.power_plan_document(needed), lambda: _say_plan(needed), as_json=as_json
    )


@click.command()
@argument("a")
@option("--against", "b", metavar="B", help="Candidate that A is compared with.")
@option(
    "--baseline",
    metavar="RUN",
    help="Compare A with itself in an earlier run: a run, a batch, or latest:BATCH, the newest run of a batch.",
)
@option(
    "--on-undecided",
    type=click.Choice(["pass", "fail"]),
    default="pass",
    help="If the data are too few to tell: pass with a note (exit 0), or fail (exit 4).",
)
@margin_option(
    "--margin", about="How much worse A may be: 0.03, or 3pts; default: the margin of the runs."
)
@require_vetted_option
@filters
@common
def gate(
    selection: Selection,
    a: str,
    b: str | None,
    baseline: str | None,
    on_undecided: Literal["pass", "fail"],
    margin: float | None,
    vetted: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Exit 0 if A is shown to be at most D worse than B, or than A in earlier runs, and 3 if A is
    shown to be worse.

    If the data are too few to show either, exit 0 with a note, or 4 with `--on-undecided fail`.

    With --baseline, A is tested in the runs of --run, or in its newest run, and compared on the
    same tasks.
    """
    from assay.app.statistics import baseline as earlier, results, statistics_documents

    if (b is None) == (baseline is None):
        raise click.UsageError(
            "Give either --against B or --baseline RUN.", click.get_current_context()
        )
    with workspace(store) as opened:
        if baseline is not None:
            outcome = earlier.gate_baseline(
                opened, selection, a, baseline=baseline, margin=margin, vetted=vetted
            )
        else:
            outcome = results.gate(opened, selection, a, str(b), margin=margin, vetted=vetted)
    document = statistics_documents.gate_document(outcome, on_undecided)
    answer(document, lambda: _say_gate(outcome, document), as_json=as_json)
    if outcome.outcome == "undecided" and os.environ.get("GITHUB_ACTIONS") == "true":
        # GitHub shows this line on the page of the pull request. It reads both streams, and stdout
        # may be JSON.
        click.echo(f"::warning title=assay gate::{outcome.verdict}", err=True)
    if not outcome.blocks(on_undecided):
        return 0
    return EXIT_GATE_CLOSED if outcome.outcome == "worse" else EXIT_GATE_UNDECIDED


def _say_verdicts(rates: VerdictRates | None) -> None:
    """Print the rate of each verdict per candidate, the headline of runs that give verdicts."""
    from assay.app.statistics.results import wording

    if rates is None:
        return
    for line in wording.verdict_lines(rates):
        say(line, bold=True)
    say(wording.verdict_level(rates))


def _say_verdict_differences(comparison: VerdictComparison | None) -> None:
    from assay.app.statistics.results import wording

    if comparison is None or not comparison.differences:
        return
    for line in wording.verdict_difference_lines(comparison):
        say(line, bold=True)
    say(wording.verdict_level(comparison))


def _say_gate(outcome: GateResult, document: GateDocument) -> None:
    from assay.app.statistics.results import wording

    _say_runs(outcome.contrast.basis)
    colour = {"fine": "green", "worse": "red", "undecided": "yellow"}[outcome.outcome]
    say(outcome.verdict, colour=colour, bold=True)
    _say_verdict_differences(outcome.contrast.verdicts)
    say(outcome.contrast.verdict)
    if outcome.baseline is not None:
        _say_counts(outcome.contrast.basis)
    elif words := wording.approvals(outcome.contrast.basis.approvals):
        say(words)
    _say_warnings(document.comparison.warnings)


def say_standing(
    candidate_scores: CandidateScores,
    ranking_result: RankingResult,
    verdict: str,
    *,
    by_task: bool = False,
    waits: str = "",
) -> None:
    """Print the result of `assay stats`: scores, pairs, verdict, warnings and diagnostics.

    `waits`: what awaits review and for whom, printed if nothing counts yet.
    """
    from assay.app.statistics import statistics_documents
    from assay.app.statistics.diagnostics import standing_lines, verdict_lines
    from assay.app.statistics.results import wording

    basis = candidate_scores.basis
    _say_basis(basis)
    if not basis.n_trials:
        if waits:
            say(waits)
        _say_warnings(statistics_documents.scores_document(candidate_scores).warnings)
        return
    say()
    _say_verdicts(candidate_scores.verdicts)
    _say_scores(ranking_result)
    pairs = ranking_result.ranking.compared
    leader = ranking_result.ranking.candidates[0].candidate if pairs else None
    # Printing all pairs of 50 candidates would take 1,225 lines.
    shown = (
        pairs
        if len(pairs) <= _MAX_PAIRS
        else [pair for pair in pairs if leader in {pair.a, pair.b}]
    )
    _say_pairs(shown)
    if len(shown) < len(pairs):
        say(f"… and {len(pairs) - len(shown):,} more pairs; `assay rank` lists them all")
    if verdict:
        say()
        say(verdict, bold=True)
    if by_task:
        _say_tasks(candidate_scores)
    if candidate_scores.anytime is not None:
        say()
        _say_unfinished(
            basis.still_open,
            p_value=False,
            ranges=any(estimate.ci95 is not None for estimate in candidate_scores.estimates),
        )
        for estimate, now in zip(candidate_scores.estimates, candidate_scores.anytime, strict=True):
            say(f"  {wording.anytime_mean(str(estimate.candidate), now)}")
    if candidate_scores.looks is not None:
        say(wording.looks(candidate_scores.looks, None))
    _say_warnings(statistics_documents.scores_document(candidate_scores).warnings)
    if candidate_scores.diagnostics is not None:
        _say_diagnostics(standing_lines(candidate_scores.diagnostics))
    if candidate_scores.on_verdicts is not None:
        _say_diagnostics(verdict_lines(candidate_scores.on_verdicts))


def _say_ranks(ranking_result: RankingResult, document: RankingDocument) -> None:
    from assay.app.statistics.results import wording

    _say_basis(ranking_result.basis)
    say()
    _say_verdicts(ranking_result.verdicts)
    _say_scores(ranking_result)
    _say_pairs(ranking_result.ranking.compared)
    if made := wording.comparisons_made(ranking_result.ranking):
        say(made)
    if ranking_result.calibrated is not None and ranking_result.calibrated.candidates:
        say(wording.calibrated_ranks(ranking_result.calibrated))
    if document.preferences is not None:
        _say_preferences(document.preferences)
    _say_warnings(document.warnings)


def _say_scores(ranking_result: RankingResult) -> None:
    """Print a table of candidates, best first, and explain the intervals."""
    from assay.app.statistics.results import wording

    rows = []
    for ranked in ranking_result.ranking.candidates:
        estimate = ranked.estimate
        if estimate.mean is None:
            missing = wording.MISSING[estimate.reason or "no_approved_trials"]
            rows.append((str(ranked.candidate), "", "", missing, "", ""))
            continue
        ranged = wording.range_or_none(estimate.ci95, estimate.n_tasks).removeprefix("95% range ")
        n_tasks = wording.tasks_in_families(estimate.n_tasks, estimate.n_families)
        n_trials = wording.count(estimate.n_trials, "trial")
        rows.append(
            (
                str(ranked.candidate),
                wording.number(estimate.mean),
                "" if estimate.sd is None else wording.number(estimate.sd),
                ranged,
                wording.rank_range(ranked),
                f"{n_tasks}, {n_trials}",
            )
        )
    say_table(
        ("candidate", "score", "sd", "95% range", "rank", "from"), rows, numbers=frozenset({1, 2})
    )
    if about := wording.range_scope(
        [ranked.estimate for ranked in ranking_result.ranking.candidates]
    ):
        say(about)


def _say_pairs(pairs: Sequence[RankedPair]) -> None:
    from assay.app.statistics.results import wording

    rows = [
        (
            f"{p.a} − {p.b}",
            "" if p.difference is None else wording.signed(p.difference),
            "" if p.ci95 is None else wording.difference_range(p.ci95),
            wording.probability(p.p_value),
            wording.probability(p.p_holm),
            p.decision.replace("_", " "),
        )
        for p in pairs
    ]
    if rows:
        say()
        say_table(
            ("pair", "points", "95% range", "p", "p (Holm)", "decision"),
            rows,
            numbers=frozenset({1, 3, 4}),
        )


def _say_tasks(candidate_scores: CandidateScores) -> None:
    from assay.app.statistics.results import wording

    rows = [
        (
            str(task.task),
            str(estimate.candidate),
            wording.number(task.mean),
            "no range yet" if task.ci95 is None else wording.range_words(task.ci95),
            str(task.n_trials),
        )
        for estimate in candidate_scores.estimates
        for task in estimate.by_task
    ]
    say()
    say_table(
        ("task", "candidate", "score", "95% range", "trials"), rows, numbers=frozenset({2, 4})
    )


def _say_preferences(strengths: StrengthsDocument) -> None:
    """Print the strengths computed from pairwise choices; a candidate without a strength gets a
    reason.
    """
    rows = [
        (
            candidate.candidate,
            "" if candidate.share_won is None else f"{100 * candidate.share_won:.0f}%",
            "none" if candidate.strength is None else f"{candidate.strength:+.2f}",
            "none" if candidate.elo is None else f"{candidate.elo:.0f}",
        )
        for candidate in strengths.candidates
    ]
    say()
    say(f"how often each was preferred (Bradley-Terry over {strengths.comparisons:g} pairs)")
    say_table(("candidate", "pairs won", "strength", "Elo"), rows, numbers=frozenset({1, 2, 3}))
    if strengths.reason == "separation":
        say("none: the candidate never lost or never won, so its strength cannot be computed.")


def _say_contrast(comparison_result: ComparisonResult, document: ComparisonDocument) -> None:
    from assay.app.statistics.diagnostics import contrast_lines, verdict_lines
    from assay.app.statistics.results import wording

    comparison = comparison_result.comparison
    _say_runs(comparison_result.basis)
    _say_verdict_differences(comparison_result.verdicts)
    say(comparison_result.verdict, bold=True)
    _say_counts(comparison_result.basis)
    if (
        comparison.difference is not None
        and comparison.mean_a is not None
        and comparison.mean_b is not None
    ):
        means = f"{comparison.a} {wording.number(comparison.mean_a)}, {comparison.b} {wording.number(comparison.mean_b)}"
        trials = f"{wording.count(comparison.n_trials_a, 'trial')} and {wording.count(comparison.n_trials_b, 'trial')}"
        shared = wording.tasks_in_families(comparison.n_tasks, comparison.n_families)
        say(f"{means} over {shared.replace('task', 'shared task', 1)} ({trials})")
    if comparison.t is not None and comparison.df is not None and comparison.ci95 is not None:
        say(
            f"difference {wording.signed(comparison.difference or 0)} points, "
            f"95% range {wording.difference_range(comparison.ci95)}; "
            f"t = {comparison.t:.2f}, df = {comparison.df:.1f}, {wording.p_value(comparison.p_value)} "
            f"({comparison.method}, {comparison.scope})"
        )
    if other := wording.other_scope(comparison):
        say(other)
    if comparison.second_opinion is not None and comparison.second_opinion.p_value is not None:
        say(
            f"second opinion ({comparison.second_opinion.method}): {wording.p_value(comparison.second_opinion.p_value)}"
        )
    if comparison.prob_superiority is not None:
        say(wording.superiority(comparison))
    if comparison.d_total is not None:
        say(f"effect size d = {comparison.d_total:.2f} ({comparison.effect_label})")
    if comparison_result.anytime is not None:
        _say_unfinished(
            comparison_result.still_open,
            p_value=comparison.p_value is not None,
            ranges=comparison.ci95 is not None,
        )
        if evidence := wording.anytime_beside(comparison_result.anytime, comparison):
            say(evidence)
        if comparison_result.looks is not None:
            say(wording.looks(comparison_result.looks, comparison.p_value))
    _say_warnings(document.warnings)
    if comparison_result.diagnostics is not None:
        _say_diagnostics(contrast_lines(comparison_result.diagnostics, comparison))
    if comparison_result.on_verdicts is not None:
        _say_diagnostics(verdict_lines(comparison_result.on_verdicts))


def _say_plan(power_plan: PowerPlan) -> None:
    from assay.app.statistics import statistics_documents
    from assay.app.statistics.results import wording

    _say_basis(power_plan.basis)
    say(f"\n{power_plan.words}\n")
    rows = [
        (
            f"{pair.pair.a} − {pair.pair.b}",
            "" if pair.pair.difference is None else wording.signed(pair.pair.difference),
            pair.pair.decision.replace("_", " "),
            "" if pair.plan is None or pair.plan.mde is None else wording.number(pair.plan.mde),
            _sample_size(pair.more_tasks),
            _sample_size(pair.more_trials),
        )
        for pair in power_plan.pairs
    ]
    header = ("pair", "points", "decision", "shows now", "tasks needed", "or trials of each task")
    say_table(header, rows, numbers=frozenset({1, 3}))
    cost = power_plan.cost
    reviews = "" if cost.reviews is None else f", {cost.reviews:.1f} reviews"
    price = "price unknown" if cost.usd is None else f"about {money(cost.usd)}"
    say(
        f"\none trial of all candidates: {price}{reviews}; {100 * cost.kept:.0f}% of decided trials count"
    )
    _say_warnings(statistics_documents.warnings_of(power_plan.basis))


def _sample_size(size: SampleSize | None) -> str:
    from assay.app.statistics.results import wording

    if size is None:
        return "not enough"
    if size.needed > wording.TOO_MANY:
        return "more than is practical"
    if not size.trials:
        return "enough now"
    cost = "" if size.usd is None else f", {money(size.usd)}"
    return f"{size.needed:,} ({size.trials:,} trials to run{cost})"


def _say_unfinished(still_open: StillOpen, *, p_value: bool, ranges: bool) -> None:
    from assay.app.statistics.results import wording

    say(
        wording.unfinished(
            running=still_open.running, pending=still_open.waiting, p_value=p_value, ranges=ranges
        )
    )


def _say_diagnostics(lines: list[str]) -> None:
    if lines:
        say("\nbehind the numbers (diagnostics, not part of the result):")
        for line in lines[:_MAX_DIAGNOSTICS]:
            say(f"  {line}")
        if len(lines) > _MAX_DIAGNOSTICS:
            say(f"  … and {len(lines) - _MAX_DIAGNOSTICS} more; --json has them all")


def _say_basis(basis: Basis) -> None:
    _say_runs(basis)
    _say_counts(basis)


def _say_runs(basis: Basis) -> None:
    from assay.app.statistics.results import wording

    say(wording.runs_line(basis.read))
    if lacking := wording.not_in_runs(basis.read):
        say(lacking)


def _say_counts(basis: Basis) -> None:
    from assay.app.statistics.results import wording

    say(wording.what_counts(basis.n_trials, basis.excluded, basis.approvals))
    for line in wording.how_reviewed(basis.protocols, basis.attention):
        say(line)


def _say_warnings(warnings: Sequence[Caution]) -> None:
    for warning in warnings:
        say(f"! {warning.text}", colour="yellow")
