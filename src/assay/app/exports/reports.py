"""Write reports in HTML, Markdown, LaTeX and JUnit."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.analysis import diagnostics
from assay.analysis.verdict_rates import verdict_rates
from assay.app.exports.pseudonyms import Anonymiser, names_for
from assay.app.provenance import provenance
from assay.app.registry import run_description
from assay.app.statistics import charts
from assay.app.statistics.basis import Basis, basis_from
from assay.app.statistics.diagnostics import standing_lines
from assay.app.statistics.results import RankingResult, gate_outcome, smallest_margin
from assay.app.statistics.review_draw import draw_of
from assay.app.statistics.run_choice import choose
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import folded, shown_assessment
from assay.domain.lifecycle import DECIDED
from assay.domain.review import ReviewEvent, Via, reviewer_words
from assay.report import page, text_tables, wording
from assay.report.junit import Case, junit
from assay.report.summary import CriterionPart, ReportContents, ReviewPart, RunPart
from assay.statistics.comparisons import Comparison, compare
from assay.statistics.estimates import Estimate, estimates
from assay.statistics.ranking import Ranking, rank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from assay.analysis.diagnostics import ScoreDiagnostics
    from assay.analysis.verdict_rates import VerdictRates
    from assay.app.settings import Settings
    from assay.domain.run import RunPlan
    from assay.domain.run_choice import ChosenRuns
    from assay.domain.selection import AssessmentRow, RunSummary, Selection
    from assay.ports import Clock
    from assay.store.opening import Store

FORMATS: Final = ("html", "markdown", "latex", "junit")

MAX_REVIEWS: Final = 500
MAX_RUNS: Final = 25
MAX_VERDICTS: Final = 6

_SEED: Final = 20240607


def written(
    store: Store,
    settings: Settings,
    format: str,  # noqa: A002 # the contract's word for it
    selection: Selection | ChosenRuns,
    *,
    anonymise: bool = False,
    threshold: float | None = None,
    against: str | None = None,
    margin: float | None = None,
) -> str:
    """Return a report in one of `FORMATS`.

    `threshold`, `against` and `margin` set the JUnit rule (see `report.junit`).
    """
    graded = _graded_runs(store, settings, selection, anonymise=anonymise)
    if format == "junit":
        return _junit(
            store.clock,
            graded.basis,
            _verdict_rates(store, graded.selection, graded.names),
            threshold=threshold,
            against=against,
            margin=margin,
            names=graded.names,
        )
    return _RENDERERS[format](_report(store, graded))


def written_together(
    store: Store, settings: Settings, formats: Iterable[str], selection: Selection | ChosenRuns
) -> dict[str, str]:
    """Return one report in several of `FORMATS` except JUnit, for the time of one: nearly all of it
    goes into the statistics.
    """
    report = _report(store, _graded_runs(store, settings, selection))
    return {format: _RENDERERS[format](report) for format in formats}  # noqa: A001


_RENDERERS: Final[dict[str, Callable[[ReportContents], str]]] = {
    "html": page.html,
    "markdown": text_tables.markdown,
    "latex": text_tables.latex,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _GradedRuns:
    """The chosen runs of a report, with their counted scores under the names that it shows."""

    selection: Selection
    summaries: tuple[RunSummary, ...]
    plans: list[RunPlan]
    names: Anonymiser
    basis: Basis


def _graded_runs(
    store: Store, settings: Settings, selection: Selection | ChosenRuns, *, anonymise: bool = False
) -> _GradedRuns:
    chosen = choose(store, selection)
    summaries = store.archive.runs.matching(chosen.selection)
    plans = [store.journal.plan_of(summary.id) for summary in summaries]
    names = names_for(plans, summaries) if anonymise else Anonymiser()
    columns = store.archive.scores.columns(chosen.selection)
    # Renamed before anything is computed, so that no sentence or drawing below can contain a real
    # name.
    columns = replace(
        columns,
        candidates=tuple(names.candidate(name) for name in columns.candidates),
        kept_apart=tuple(
            (names.candidate(name), names.candidate(label)) for name, label in columns.kept_apart
        ),
    )
    return _GradedRuns(
        selection=chosen.selection,
        summaries=summaries,
        plans=plans,
        names=names,
        basis=basis_from(store, settings, chosen, columns),
    )


def _report(store: Store, graded: _GradedRuns) -> ReportContents:
    selection, basis, names = graded.selection, graded.basis, graded.names
    summaries = graded.summaries
    candidates = estimates(basis.table)
    ranking = rank(basis.table, None, basis.margin)
    columns = store.archive.scores.review_columns(selection)
    beside = diagnostics.diagnose_scores(
        basis.table,
        candidates,
        replace(columns, candidates=tuple(names.candidate(name) for name in columns.candidates)),
        store.archive.scores.criterion_moments(selection),
        draw=draw_of(store, basis.runs),
        rng=np.random.default_rng(_SEED),
    )
    reviews, left_out = _reviews(store, selection, names)
    rates = _verdict_rates(store, selection, names)
    suites = tuple(dict.fromkeys(summary.suite for summary in summaries))
    cautions = {
        caution.text: caution
        for group in (
            basis.cautions,
            ranking.warnings,
            *(e.warnings for e in candidates),
            beside.cautions,
        )
        for caution in group
    }
    return ReportContents(
        title=", ".join(suites[:3])
        + (f" and {len(suites) - 3} more suites" if len(suites) > 3 else "")
        or "No run",
        written=store.clock.now(),
        about=f"{wording.runs_line(basis.read)}. {_about(selection, summaries)}",
        read=basis.read,
        anonymised=names.active,
        estimates=candidates,
        ranking=ranking,
        rates=rates,
        verdicts=(*_in_words(rates), *_verdicts(basis, ranking)),
        criteria=_criteria(graded.plans, candidates, beside),
        behind=tuple(standing_lines(beside)),
        counted=basis.n_trials,
        approvals=basis.approvals,
        how_reviewed=wording.how_reviewed(basis.protocols, basis.attention),
        excluded=basis.excluded,
        cautions=tuple(cautions.values()),
        drawings=charts.standard_drawings(RankingResult(ranking=ranking, basis=basis))
        if basis.n_trials
        else (),
        reviews=reviews,
        reviews_left_out=left_out,
        runs=tuple(_run(store, summary, names) for summary in summaries[:MAX_RUNS]),
        runs_left_out=max(0, len(summaries) - MAX_RUNS),
    )


def _verdict_rates(store: Store, selection: Selection, names: Anonymiser) -> VerdictRates | None:
    """Return the rates of verdicts per candidate; None if the runs give no verdicts."""
    columns = store.archive.scores.verdicts(selection)
    if columns is None or not len(columns.scores.score):
        return None
    shown = tuple(names.candidate(name) for name in columns.scores.candidates)
    return verdict_rates(replace(columns, scores=replace(columns.scores, candidates=shown)))


def _in_words(rates: VerdictRates | None) -> tuple[str, ...]:
    return () if rates is None else (*wording.verdict_lines(rates), wording.verdict_level(rates))


def _about(selection: Selection, summaries: tuple[RunSummary, ...]) -> str:
    filters = [
        f"{key.removesuffix('s').replace('_', ' ')} {', '.join(values)}"
        for key, values in selection.filters().items()
    ]
    runs = wording.count(len(summaries), "run")
    when = ""
    if summaries:
        first, last = summaries[-1].started[:10], summaries[0].started[:10]
        when = f", {first}" if first == last else f", {first} to {last}"
    return f"{runs}{when}{'; only ' + '; '.join(filters) if filters else ''}."


def _verdicts(basis: Basis, ranking: Ranking) -> tuple[str, ...]:
    """Return sentences that compare the leader with each other candidate, best first; empty if only
    one candidate has a score.

    Each sentence covers one pair. If the correction for all pairs changes the decision, the
    sentence states that.
    """
    names = [candidate.candidate for candidate in ranking.candidates if candidate.rank is not None]
    taken_back = {
        frozenset((pair.a, pair.b))
        for pair in ranking.pairs
        if pair.decision != pair.decision_alone
    }
    sentences = []
    for other in names[1 : MAX_VERDICTS + 1]:
        comparison = compare(
            basis.table, names[0], other, None, basis.margin, rng=np.random.default_rng(_SEED)
        )
        text = wording.verdict(comparison)
        text = (
            f"{text} {wording.TAKEN_BACK}" if frozenset((names[0], other)) in taken_back else text
        )
        sentences.append(wording.labelled(text, basis.read))
    return tuple(sentences)


def _criteria(
    plans: list[RunPlan], estimates: tuple[Estimate, ...], beside: ScoreDiagnostics
) -> tuple[CriterionPart, ...]:
    means = {
        split.name: {str(estimate.candidate): estimate.mean for estimate in split.estimates}
        for split in beside.by_criterion
    }
    parts: dict[tuple[str, str], CriterionPart] = {}
    for plan in plans:
        for criterion in plan.rubric.criteria:
            if criterion.name not in means:
                continue  # no grade on the criterion counts
            parts.setdefault(
                (plan.suite, criterion.name),
                CriterionPart(
                    suite=plan.suite,
                    name=criterion.name,
                    weight=criterion.weight,
                    scale=(criterion.low, criterion.high),
                    guidance=criterion.guidance,
                    means=tuple(means[criterion.name].get(str(e.candidate)) for e in estimates),
                ),
            )
    return tuple(parts.values())


def _run(store: Store, summary: RunSummary, names: Anonymiser) -> RunPart:
    record = provenance(store, summary)
    facts = run_description.facts(record)
    models = run_description.models(record)
    if names.active:
        facts = tuple(
            (name, value if name == "suite" else names.text(value)) for name, value in facts
        )
        hidden = {"model": "", "answered": ""}
        models = tuple(
            {**row, "name": names.candidate(row["name"]), **hidden}
            if row["role"] == "candidate"
            else row
            for row in models
        )
    return RunPart(id=summary.id, facts=facts, models=models)


def _reviews(
    store: Store, selection: Selection, names: Anonymiser
) -> tuple[tuple[ReviewPart, ...], int]:
    # Events come oldest first, and a store may hold millions: only the newest stay in memory.
    newest: deque[tuple[AssessmentRow, ReviewEvent]] = deque(maxlen=MAX_REVIEWS)
    total = 0
    for pair in store.archive.exports.events(selection):
        newest.append(pair)
        total += 1
    return tuple(_review(row, event, names) for row, event in newest), total - len(newest)


def _review(row: AssessmentRow, event: ReviewEvent, names: Anonymiser) -> ReviewPart:
    decision = event.decision
    changed = [
        f"{names.candidate(name)}{'' if criterion is None else f' on {criterion}'}: {wording.number(value)}"
        for (name, criterion), value in decision.corrections.items()
    ]
    words = [names.text(text) for text in (decision.reason, decision.note) if text]
    seen = "shown" if decision.displayed else "not shown"
    return ReviewPart(
        at=event.at[:19].replace("T", " "),
        about=f"{shown_assessment(row.key)} {row.thing} {row.k}/{row.of}",
        verb=event.after.value
        if decision.verb in DECIDED
        else f"{decision.verb.value}, then {event.after.value}",
        reviewer=reviewer_words(
            names.reviewer(decision.reviewer),
            decision.stated_by and names.reviewer(decision.stated_by),
        ),
        how=f"{decision.via.value}, {seen}"
        if decision.via is not Via.SCRIPT
        else decision.via.value,
        reason="; ".join([*changed, *words]),
    )


def _junit(
    clock: Clock,
    basis: Basis,
    rates: VerdictRates | None,
    *,
    threshold: float | None,
    against: str | None,
    margin: float | None,
    names: Anonymiser,
) -> str:
    if (threshold is None) == (against is None):
        remedy = "Use --threshold 0.7 (or 70pts), or --against NAME with --margin 3pts."
        raise InputError("junit", "needs a rule to decide whether a task passes.", remedy=remedy)
    candidates = estimates(basis.table)
    if threshold is not None:
        rule = f"mean of counted trials at least {wording.number(threshold)} out of 100"
        cases = tuple(
            case for estimate in candidates for case in _by_threshold(estimate, basis, threshold)
        )
    else:
        other, limit = (
            _other(basis, names, str(against)),
            basis.margin if margin is None else margin,
        )
        if limit is None:
            raise InputError(
                "junit",
                "--against needs a margin, but the runs set none.",
                remedy="Use --margin 3pts.",
            )
        rule = (
            f"mean on the task not lower than that of {other} by more than {wording.number(limit)} points; "
            f"as a whole: fails if shown worse, skipped if the data do not show it to be within the margin"
        )
        cases = tuple(
            case
            for estimate in candidates
            if str(estimate.candidate) != other
            for case in _by_other(
                estimate, compare(basis.table, estimate.candidate, other, None, limit), basis, limit
            )
        )
    notes = tuple(caution.text for caution in basis.cautions)
    verdicts = {} if rates is None else _verdicts_by_candidate(rates)
    given = wording.approvals(basis.approvals) or wording.NONE_APPROVED
    return junit(
        title="assay",
        rule=rule,
        approvals=given,
        cases=cases,
        notes=notes,
        verdicts=verdicts,
        written=clock.now(),
    )


def _verdicts_by_candidate(rates: VerdictRates) -> dict[str, str]:
    lines = zip(rates.candidates, wording.verdict_lines(rates), strict=True)
    return {
        candidate.candidate: f"{line}. {wording.verdict_level(rates)}" for candidate, line in lines
    }


def _by_threshold(estimate: Estimate, basis: Basis, threshold: float) -> Iterator[Case]:
    name, low = str(estimate.candidate), f"below {wording.number(threshold)}"
    by_task = {str(task.task): task for task in estimate.by_task}
    for task in map(str, basis.table.tasks):
        mine = by_task.get(task)
        if mine is None:
            yield _case(name, task, None, threshold, "no trials of this task count")
        else:
            yield _case(name, task, mine.mean, threshold, f"{wording.task_line(mine)}; {low}")
    text = wording.MISSING["no_approved_trials"]
    if estimate.mean is not None:
        text = f"{wording.estimate_line(estimate)}; {low}"
    yield _case(name, "as a whole", estimate.mean, threshold, text)


def _by_other(
    estimate: Estimate, comparison: Comparison, basis: Basis, margin: float
) -> Iterator[Case]:
    name = str(estimate.candidate)
    shared = {str(task.task): task.difference for task in comparison.by_task}
    for task in map(str, basis.table.tasks):
        difference, text = shared.get(task), "this task has no counted trials of both candidates"
        if difference is not None:
            text = f"{wording.signed(difference)} points against {comparison.b}; at least {wording.signed(-margin)} is required"
        yield _case(name, task, difference, -margin, text)
    outcome = gate_outcome(comparison, margin)
    gate = wording.gate_verdict(
        name,
        str(comparison.b),
        margin,
        outcome=outcome,
        smallest_margin=smallest_margin(comparison),
        tasks_needed=None,
        tied=comparison.reason == "all_ties",
    )
    text = wording.labelled(f"{gate} {wording.verdict(comparison)}", basis.read)
    yield Case(
        candidate=name,
        name="as a whole",
        failure=text if outcome == "worse" else None,
        skipped=text if outcome == "undecided" else None,
    )


def _case(name: str, task: str, value: float | None, limit: float, text: str) -> Case:
    """Return a test case: skipped if `value` is None, failed if it is below the limit.

    `text` explains both.
    """
    if value is None:
        return Case(candidate=name, name=task, skipped=text)
    # A mean may be too low by its last binary digit.
    return Case(candidate=name, name=task, failure=None if value >= limit - 1e-12 else text)


def _other(basis: Basis, names: Anonymiser, against: str) -> str:
    wanted = folded(names.candidate(against) if names.active else against)
    known = {folded(str(name)): str(name) for name in basis.table.cells.candidates}
    if wanted not in known:
        raise UnknownName("candidate", against, known.values())
    return known[wanted]
