"""`assay stats`, `compare`, `rank`, `gate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import common, filters, selection, workspace
from assay.cli.output import print_json, say, table

if TYPE_CHECKING:
    from assay.app.findings import Basis, Contrast, Ranks, Standing

EXIT_GATE_CLOSED = 3


def _scope(command: Any) -> Any:
    choices = click.Choice(["auto", "tasks-like-these", "these-tasks"])
    about = (
        "What the answer is about: new tasks of the kind, or exactly these again; auto decides by the number planned."
    )
    return click.option("--scope", type=choices, default="auto", help=about)(command)


def _margin(command: Any) -> Any:
    about = "The smallest difference that matters: 0.03, or 3pts. Without one nothing is called equivalent."
    return click.option("--margin", metavar="D", help=about)(command)


@click.command()
@filters
@common
def stats(store: str | None, as_json: bool, **chosen: Any) -> int:
    """Each candidate's mean over tasks, with its range, over approved trials only."""
    from assay.app import findings

    with workspace(store) as opened:
        found = findings.stats(opened, selection(chosen))
    if as_json:
        print_json(findings.standing_document(found))
        return 0
    say_standing(found)
    return 0


@click.command()
@click.argument("a")
@click.argument("b")
@_scope
@_margin
@filters
@common
def compare(a: str, b: str, scope: str, margin: str | None, store: str | None, as_json: bool, **chosen: Any) -> int:
    """Is A better than B, by how much, and how sure is that?"""
    from assay.app import findings

    with workspace(store) as opened:
        found = findings.compare(
            opened,
            selection(chosen),
            a,
            b,
            scope=findings.SCOPES[scope],
            margin=None if margin is None else findings.parsed_margin(margin),
        )
    document = findings.contrast_document(found)
    if as_json:
        print_json(document)
    else:
        _say_contrast(found, document)
    return 0


@click.command()
@_scope
@_margin
@filters
@common
def rank(scope: str, margin: str | None, store: str | None, as_json: bool, **chosen: Any) -> int:
    """All candidates with the ranks the data allow, and all pairs with Holm's correction."""
    from assay.app import findings

    with workspace(store) as opened:
        found = findings.rank(
            opened,
            selection(chosen),
            scope=findings.SCOPES[scope],
            margin=None if margin is None else findings.parsed_margin(margin),
        )
    document = findings.ranks_document(found)
    if as_json:
        print_json(document)
        return 0
    say_ranks(found)
    return 0


@click.command()
@click.argument("a")
@click.option("--against", "b", required=True, metavar="B", help="What A must not be worse than.")
@click.option("--margin", required=True, metavar="D", help="By how much A may be worse: 0.03, or 3pts.")
@filters
@common
def gate(a: str, b: str, margin: str, store: str | None, as_json: bool, **chosen: Any) -> int:
    """Exit 0 if A is shown not to be worse than B by more than D, else 3."""
    from assay.app import findings
    from assay.app.findings import wording

    with workspace(store) as opened:
        found = findings.gate(opened, selection(chosen), a, b, margin=findings.parsed_margin(margin))
    if as_json:
        print_json(findings.gate_document(found))
    else:
        points = wording.number(found.margin)
        shown = "is shown not to be" if found.passed else "is not shown not to be"
        say(f"{'passed' if found.passed else 'closed'}: {a} {shown} worse than {b} by more than {points} points.")
        say(found.contrast.verdict)
    return 0 if found.passed else EXIT_GATE_CLOSED


def say_standing(found: Standing) -> None:
    """The answer of `stats` as text."""
    from assay.app import findings
    from assay.app.findings import wording

    _say_basis(found.basis)
    for one in found.estimates:
        say(f"\n{one.candidate}: {wording.estimate_line(one)}")
        say(f"  {wording.estimate_sentence(one)}")
        for task in one.by_task:
            say(f"  {wording.task_line(task)}")
    _say_warnings(findings.standing_document(found))


def say_ranks(found: Ranks) -> None:
    """The answer of `rank` as text."""
    from assay.app import findings
    from assay.app.findings import wording

    _say_basis(found.basis)
    for one in found.ranking.candidates:
        say(f"{one.candidate}: {wording.estimate_line(one.estimate)}; {wording.rank_line(one)}")
    rows = [
        (f"{p.a} − {p.b}", "" if p.difference is None else wording.signed(p.difference),
         "" if p.ci95 is None else wording.difference_range(p.ci95), _p(p.p_value), _p(p.p_holm), p.decision)
        for p in found.ranking.pairs
    ]  # fmt: skip
    if rows:
        say()
        say(table(("pair", "points", "95% range", "p", "p (Holm)", "decision"), rows, numbers=frozenset({1, 3, 4})))
    if len(rows) > 1:
        say(f"{len(rows)} comparisons were made; the bar is raised so that even one false 'better' stays below 5%.")
    _say_warnings(findings.ranks_document(found))


def _say_contrast(found: Contrast, document: dict[str, Any]) -> None:
    from assay.app.findings import wording

    one = found.comparison
    say(found.verdict)
    _say_basis(found.basis)
    if one.difference is not None and one.mean_a is not None and one.mean_b is not None:
        say(f"{one.a} {wording.number(one.mean_a)}, {one.b} {wording.number(one.mean_b)} over {one.n_tasks} shared tasks "
            f"({one.n_trials_a} and {one.n_trials_b} trials)")  # fmt: skip
    if one.t is not None and one.df is not None and one.ci95 is not None:
        say(f"difference {wording.signed(one.difference or 0)} points, 95% range {wording.difference_range(one.ci95)}; "
            f"t = {one.t:.2f}, df = {one.df:.1f}, p = {_p(one.p_value)} ({one.method}, {one.scope})")  # fmt: skip
    if one.other_scope is not None and one.other_scope.ci95 is not None:
        say(f"about {one.other_scope.scope.replace('_', ' ')}: 95% range {wording.difference_range(one.other_scope.ci95)}, "
            f"p = {_p(one.other_scope.p_value)}")  # fmt: skip
    if one.second_opinion is not None and one.second_opinion.p_value is not None:
        say(f"second opinion ({one.second_opinion.method}): p = {_p(one.second_opinion.p_value)}")
    if one.prob_superiority is not None:
        say(f"on the same task, a random run of {one.a} beats a random run of {one.b} "
            f"{100 * one.prob_superiority:.0f} times in 100 (ties count half)")  # fmt: skip
    if one.d_total is not None:
        say(f"effect size d = {one.d_total:.2f} ({one.effect_label})")
    _say_warnings(document)


def _say_basis(basis: Basis) -> None:
    excluded = basis.excluded
    n_trials = len(set(basis.table.trial_codes.tolist()))
    say(f"{n_trials} trials count; not counted: {excluded.pending} pending, {excluded.rejected} rejected, "
        f"{excluded.failed} failed; {excluded.superseded} superseded attempts")  # fmt: skip
    shown = ", ".join(basis.runs[:3]) + (f" and {len(basis.runs) - 3} more" if len(basis.runs) > 3 else "")
    say(f"runs: {shown or 'none'}")


def _say_warnings(document: dict[str, Any]) -> None:
    for warning in document["warnings"]:
        say(f"! {warning['text']}")


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "<.0001" if value < 0.0001 else f"{value:.4f}"
