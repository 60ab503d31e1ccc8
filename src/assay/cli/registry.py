"""`assay runs` and `assay show`: list runs, and show what is stored under an id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from assay.cli.options import common, workspace
from assay.cli.output import answer, dollars, remaining_words, say, say_table
from assay.cli.parameters import argument, option
from assay.domain.errors import UnknownName
from assay.domain.identifiers import shown_trial
from assay.domain.selection import RunSummary, Selection, StartedFrom, TrialRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.registry.runs import RunInFull
    from assay.app.runs.scenario_runs import AgentTrialDocument
    from assay.domain.identifiers import RunId
    from assay.domain.review import Approvals

_DATED_LISTED: Final = 5


@click.command()
@option("--suite", "suites", multiple=True, help="Only runs of this suite.")
@option("--batch-id", "batch_ids", multiple=True, help="Only this batch.")
@common
def runs(
    suites: tuple[str, ...], batch_ids: tuple[str, ...], store: str | None, as_json: bool
) -> int:
    """List runs, newest first."""
    from assay.app.registry import runs as registry
    from assay.app.runs import run_documents

    with workspace(store) as opened:
        summaries = registry.runs(opened.store, Selection(suites=suites, batch_ids=batch_ids))
        by_run = opened.archive.scores.approvals_by_run([summary.id for summary in summaries])
    document = {
        "runs": [run_documents.run_summary(summary, by_run[summary.id]) for summary in summaries]
    }
    return answer(document, lambda: _say_runs(summaries, by_run), as_json=as_json)


def _say_runs(
    summaries: Sequence[RunSummary],
    by_run: Mapping[RunId, Approvals],
    trials: Sequence[AgentTrialDocument] = (),
    planned: int = 0,
) -> None:
    from assay.app.statistics.results import wording
    from assay.cli.bench import say_trials

    if summaries:
        say_table(
            ("run", "state", "trials", "waiting", "approved", "failed", "cost"),
            [_line(summary, by_run[summary.id]) for summary in summaries],
        )
        if dated := [
            summary.id for summary in summaries if summary.started_from is StartedFrom.FILE_DATE
        ]:
            shown = ", ".join(dated[:_DATED_LISTED]) + (" …" if len(dated) > _DATED_LISTED else "")
            say(f"start {wording.FILE_DATE}: {shown}")
    else:
        say("no runs are stored yet; `assay run SUITE` creates one, and `assay demo` shows how")
    say_trials(trials, planned=planned)


@click.command()
@argument("identifier", metavar="ID")
@common
def show(identifier: str, store: str | None, as_json: bool) -> int:
    """Show a run (or the newest: latest), a batch, a trial (t5) or an assessment (a17)."""
    from assay.app.calibration_status import CalibrationStatus
    from assay.app.registry import record_documents as registry_documents, runs as registry
    from assay.app.review import decisions, review_documents as review_documents
    from assay.app.review.double_review import opinions_shown
    from assay.app.runs import run_documents, scenario_runs as agent_runs
    from assay.app.wire import to_json
    from assay.cli.review_item import shown

    with workspace(store) as opened:
        if (failed := decisions.ungraded_trial(opened.store, identifier)) is not None:
            return _show_ungraded(
                failed, opened.archive.calls.program_logs(failed.key), as_json=as_json
            )
        if decisions.names_item(identifier):
            details, calibration_status = (
                decisions.shown_item(opened.store, identifier),
                CalibrationStatus(opened.store),
            )
            opinions = [opinions_shown(opened, detail) for detail in details]
            items = [
                review_documents.assessment_detail(
                    detail,
                    calibration_status.of(detail.row.run_id, detail.row.grader),
                    opinions=of_detail,
                )
                for detail, of_detail in zip(details, opinions, strict=True)
            ]
            text = "\n\n".join(map(shown, details, opinions))
            return answer(items if len(items) != 1 else items[0], text, as_json=as_json)
        if batch := [s for s in registry.runs(opened.store) if s.batch_id == identifier]:
            trials = [
                trial for s in reversed(batch) for trial in agent_runs.outcomes(opened.store, s.id)
            ]
            agents = {"agent_trials": list(map(to_json, trials))} if trials else {}
            by_run = opened.archive.scores.approvals_by_run([s.id for s in batch])
            document = {
                "batch_id": identifier,
                "runs": [run_documents.run_summary(s, by_run[s.id]) for s in batch],
                **agents,
            }
            planned = agent_runs.count_runs(opened.store, batch)
            return answer(
                document, lambda: _say_runs(batch, by_run, trials, planned), as_json=as_json
            )
        try:
            full = registry.run_in_full(opened.store, opened.directory, identifier)
        except UnknownName as error:
            raise UnknownName(
                "run, batch, trial or assessment", identifier, remedy=error.remedy
            ) from error
    return answer(registry_documents.run_document(full), lambda: _say_run(full), as_json=as_json)


def _show_ungraded(trial: TrialRow, logs: Mapping[str, str], *, as_json: bool) -> int:
    failure, why = trial.failure, None
    lines = [
        f"{shown_trial(trial.key)} · {trial.thing} · trial {trial.k} of {trial.of} · {trial.state}"
    ]
    if failure is not None:
        why = {"kind": failure.kind, "fault": failure.fault, "detail": failure.detail}
        lines.append(f"{failure.kind} ({failure.fault}): {failure.detail}")
    lines += [f"\nPrinted by {candidate}:\n{log.rstrip()}" for candidate, log in logs.items()]
    row = {"run_id": trial.run_id, "task": trial.task, "trial": trial.k, "state": trial.state}
    document = {"id": shown_trial(trial.key), **row, "failure": why, "logs": dict(logs)}
    return answer(document, "\n".join(lines), as_json=as_json)


def _say_run(full: RunInFull) -> None:
    from assay.app.registry import run_description
    from assay.app.statistics.statistics_documents import wording

    plan, summary = full.plan, full.summary
    say(f"run {summary.id}")
    judges = [
        f"{j.model.ref} ({stamp})"
        for j, stamp in zip(plan.judges, full.calibration_status, strict=True)
    ]
    names = (
        ("candidates", ", ".join(summary.candidates)),
        ("judges", ", ".join(judges or summary.judges) or "none"),
    )
    facts = (*names, *run_description.facts(full.provenance))
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        say(f"{name.ljust(width)}  {' '.join(value.split())[:300]}")
    for line in wording.how_reviewed((full.protocol,), full.attention):
        say(line)
    if full.pause is not None:
        say(f"\n{full.pause.sentence}\n{full.pause.remedy(summary.id, full.enough_usd)}")
    if full.remaining is not None and full.remaining.total_usd:
        say(remaining_words(full.remaining, plan.budget_usd))
    if full.causes:
        say()
        say_table(
            ("failed", "kind", "fault", "detail"),
            [(f"{c.trials:,}", c.kind, str(c.fault), c.detail) for c in full.causes],
        )
    if full.jobs:
        from assay.cli.batch import say_jobs

        say()
        say_jobs(full.jobs)
    models = run_description.models(full.provenance)
    if models:
        say()
        say_table(
            tuple(models[0]),
            [tuple(row.values()) for row in models],
            numbers=frozenset({4, 5, 6, 7, 8}),
        )
    say()
    rows = [
        (
            shown_trial(t.key),
            t.thing,
            f"{t.k} of {t.of}",
            str(t.state),
            f"{t.failure.kind} ({t.failure.fault}): {t.failure.detail}" if t.failure else "",
        )
        for t in full.trials[:200]
    ]
    say_table(("id", "thing", "trial", "state", "failure"), rows)
    if len(full.trials) > 200:
        say(f"… and {len(full.trials) - 200} more trials; --json lists them all")


def _line(summary: RunSummary, given: Approvals) -> tuple[str, ...]:
    from assay.app.review import review_documents as review_documents
    from assay.app.runs import counts as counts_
    from assay.app.statistics.results import wording

    trials = counts_.trial_counts(summary)
    counts = review_documents.assessment_counts(summary)
    return (
        summary.id,
        str(summary.state),
        f"{trials['done']} of {trials['total']}",
        str(counts["pending"]),
        wording.approvals_cell(given),
        str(trials["failed"]),
        dollars(summary.cost_usd, unpriced=summary.unpriced_calls),
    )
