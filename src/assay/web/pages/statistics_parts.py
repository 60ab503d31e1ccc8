"""Texts and tables of the statistics pages, with numbers formatted by `report.wording`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from assay.app.spellings import in_http
from assay.app.statistics import charts
from assay.app.statistics.diagnostics import calibrated_lines
from assay.app.statistics.results import wording
from assay.domain.identifiers import shown_trial
from assay.web.formatting import plural, with_time_elements
from assay.web.texts import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.analysis.diagnostics import ScoreDiagnostics, Split
    from assay.app.statistics.live_report import CountedTrial, StatisticsDetails, StatisticsOverview
    from assay.domain.selection import TrialRow
    from assay.statistics.comparisons import Comparison
    from assay.statistics.estimates import Estimate
    from assay.statistics.ranking import RankedPair, Ranking
    from assay.statistics.warnings import Caution
    from assay.web.pages.statistics_query import StatisticsQuery

CELLS_SHOWN, TASKS_SHOWN = 600, 50
"""Maximum number of cells and of tasks on one page of the matrix, so that a page of 50 candidates
stays below 80 kB.
"""
PAIRS_SHOWN: Final = 20
"""Number of pairs shown, in the order of the ranking; the form and the CSV file offer the others.
"""

NOTHING: Final = "–"

_FACTS: Final = WORDS["statistics_facts"]

_PRESSURE: Final = WORDS["statistics_pressure"]
_GRADED: Final = frozenset({"needs_review", "approved", "rejected"})


def first_parts(overview: StatisticsOverview, asked: StatisticsQuery) -> Mapping[str, Any]:
    ranking, contrast = overview.report.ranking, overview.contrast
    undecided = _undecided(overview, asked)
    asked_pair = bool(asked.a or asked.b)
    headline, beneath = _headlines(overview, undecided, asked_pair=asked_pair)
    verdict = str(overview.verdict) if asked_pair and len(ranking.candidates) > 2 else ""
    pairs = ranking.compared
    axis, bars = _score_bars(ranking)
    pair_axis, pair_bars = _pair_bars(pairs[:PAIRS_SHOWN])
    p_value = None if contrast is None else contrast.p_value
    return {
        "headline": headline,
        "verdict_rates": ()
        if overview.rates is None
        else (*wording.verdict_lines(overview.rates), wording.verdict_level(overview.rates)),
        "provisional": _provisional(overview),
        "mixed": wording.mixed_runs(overview.read),
        "beneath": beneath,
        "no_range": _no_range(overview, beneath),
        "axis": axis,
        "pair_axis": pair_axis,
        "review_open": _review(overview, asked)
        if overview.excluded.awaiting_review + overview.excluded.partly
        else None,
        "results": asked.address("/results"),
        "behind": asked.address("/statistics/behind"),
        "matrix_trials": asked.address("/statistics/trials"),
        "runs_read": with_time_elements(
            wording.runs_line(overview.read, options=False),
            (run.started for run in overview.read.runs),
        ),
        "counting": wording.trials_that_count(overview.n_trials, overview.approvals),
        "left_out": [*_lacking(overview, asked), *_left_out(overview, asked)],
        "warnings": [_warning(caution) for caution in overview.cautions],
        "unfinished": overview.unfinished,
        "looks": None if overview.looks is None else wording.looks(overview.looks, p_value),
        "anytime": None
        if overview.anytime is None or contrast is None
        else wording.anytime_beside(overview.anytime, contrast),
        "protocols": [wording.protocol(protocol) for protocol in overview.protocols],
        "attention": wording.attention(overview.attention),
        "candidates": [
            {
                "name": str(candidate.candidate),
                "mean": _number(candidate.mean),
                "range": NOTHING
                if candidate.estimate.ci95 is None
                else wording.range_words(candidate.estimate.ci95),
                "bar": bar,
                "n": candidate.estimate.n_trials,
                "rank": wording.rank_range(candidate),
                "said": wording.estimate_sentence(candidate.estimate),
                "lacks": _lacks(
                    overview.incomplete.get(str(candidate.candidate), 0),
                    candidate.estimate.n_trials,
                ),
                "trials": asked.address("/statistics/trials", candidate=str(candidate.candidate)),
            }
            for candidate, bar in zip(ranking.candidates, bars, strict=True)
        ],
        "contrast": None if contrast is None else _contrast(contrast, verdict),
        "pairs": [
            {
                "a": str(pair.a),
                "b": str(pair.b),
                "points": _signed(pair.difference),
                "range": NOTHING if pair.ci95 is None else wording.difference_range(pair.ci95),
                "p": wording.probability(pair.p_holm),
                "decision": pair.decision,
                "word": pair.decision.replace("_", " "),
                "bar": bar,
                "open": asked.address("/results", a=str(pair.a), b=str(pair.b)),
            }
            for pair, bar in zip(pairs[:PAIRS_SHOWN], pair_bars, strict=True)
        ],
        "more_pairs": max(0, len(pairs) - PAIRS_SHOWN),
        "many": wording.comparisons_made(ranking),
    }


def _lacks(n: int, counted: int) -> str | None:
    """Describe a candidate's trials without a score that counts; None if every trial has such a
    score.
    """
    if not n:
        return None
    each = (
        plural(n, "trial has", "trials have"),
        plural(n, "it was", "they were"),
        plural(n, "awaits", "await"),
    )
    return f"{n} of its {n + counted} {each[0]} no score that counts, because {each[1]} rejected, failed or {each[2]} review."


def _contrast(comparison: Comparison, verdict: str) -> Mapping[str, object]:
    facts = []
    a, b = str(comparison.a), str(comparison.b)
    if (
        comparison.difference is not None
        and comparison.mean_a is not None
        and comparison.mean_b is not None
    ):
        facts.append(
            (
                "means",
                f"{a} {wording.number(comparison.mean_a)}, {b} {wording.number(comparison.mean_b)}",
            )
        )
        shown = NOTHING if comparison.ci95 is None else wording.difference_range(comparison.ci95)
        facts.append(("difference", f"{wording.signed(comparison.difference)} (95% range {shown})"))
    facts.append(("p", _p(comparison.p_value, comparison.method)))
    if comparison.other_scope is not None:
        other = comparison.other_scope
        if other.ci95 is None and other.reason in wording.WITHHELD:
            facts.append((f"other.{other.scope}", wording.MISSING[other.reason or ""]))
        else:
            shown = NOTHING if other.ci95 is None else wording.difference_range(other.ci95)
            facts.append(
                (f"other.{other.scope}", f"{shown}, p {wording.probability(other.p_value)}")
            )
    if comparison.second_opinion is not None and comparison.second_opinion.p_value is not None:
        facts.append(
            ("second", _p(comparison.second_opinion.p_value, comparison.second_opinion.method))
        )
    if comparison.equivalence is not None:
        held = "shown" if comparison.equivalence.holds else "not shown"
        facts.append(("equivalence", f"±{wording.number(comparison.equivalence.margin)}: {held}"))
    if (test := comparison.non_inferiority) is not None:
        facts.append(("non_inferiority", wording.not_worse(a, b, test.margin, shown=test.holds)))
    if comparison.d_total is not None:
        facts.append(
            ("effect", f"d {comparison.d_total:.2f} ({comparison.effect_label})".replace("-", "−"))
        )
    facts.append(
        (
            "tasks",
            f"{comparison.tasks_won} won, {comparison.tasks_lost} lost, {comparison.tasks_tied} tied",
        )
    )
    facts.append(("trials", f"{comparison.n_trials_a}, {comparison.n_trials_b}"))
    facts = [(_FACTS[name], value) for name, value in facts]
    return {"verdict": verdict, "decision": comparison.decision, "facts": facts}


def matrix_part(
    overview: StatisticsOverview, asked: StatisticsQuery, start: int
) -> Mapping[str, object]:
    """Return one page of the matrix of tasks and candidates, in which each cell links to its
    trials.
    """
    ranked = [str(each.candidate) for each in overview.report.ranking.candidates]
    labels = list(overview.tasks.items())
    shown = max(8, min(TASKS_SHOWN, CELLS_SHOWN // max(len(ranked), 1)))
    names = {name for name, _ in labels[start : start + shown]}
    by_name = {
        str(estimate.candidate): {str(task.task): task for task in estimate.on_tasks(names)}
        for estimate in overview.report.estimates
    }
    several = len({label.suite for _, label in labels}) > 1
    narrowed = {candidate: f"&{urlencode({'candidate': candidate})}" for candidate in ranked}
    rows = []
    for name, label in labels[start : start + shown]:
        trials = asked.address(
            "/statistics/trials", task=label.task, **({"suite": label.suite} if several else {})
        )
        cells = []
        for candidate in ranked:
            each = by_name[candidate].get(name)
            cells.append(
                {
                    "mean": NOTHING if each is None else wording.number(each.mean),
                    # One of ten classes, because the content policy forbids inline styles.
                    "shade": None if each is None else min(9, int(10 * each.mean)),
                    "said": "" if each is None else wording.task_line(each),
                    "n": 0 if each is None else each.n_trials,
                    "open": trials + narrowed[candidate],
                }
            )
        rows.append(
            {
                "thing": label.thing,
                "suite": label.suite if several else None,
                "version": label.digest[:6] if label.changed else None,
                "weight": label.weight,
                "cells": cells,
                "open": trials,
            }
        )
    return {
        "candidates": ranked,
        "rows": rows,
        "first": start + 1,
        "last": start + len(rows),
        "of": len(labels),
        "trials": asked.address("/statistics/trials"),
        "weighted": len({label.weight for _, label in labels}) > 1,
        "earlier": asked.address("/results", **{"from": max(start - shown, 0) or None})
        if start
        else None,
        "later": asked.address("/results", **{"from": start + shown})
        if start + shown < len(labels)
        else None,
    }


def behind_parts(
    first: StatisticsOverview, details: StatisticsDetails, asked: StatisticsQuery
) -> Mapping[str, object]:
    beside = details.standing.diagnostics
    assert beside is not None  # computed for this page
    names = [str(candidate.candidate) for candidate in first.report.ranking.candidates]
    contrast = details.contrast
    of_contrast = None if contrast is None else contrast.diagnostics
    cautions = [*beside.cautions, *(of_contrast.cautions if of_contrast is not None else ())]
    return {
        "since": details.since,
        "warnings": [_warning(caution) for caution in dict.fromkeys(cautions)],
        "names": names,
        "criteria": [
            _split(part, names, asked, "/results", criterion=part.name)
            for part in beside.by_criterion
        ],
        "judges": [
            _split(part, names, asked, "/results", judge=part.name) for part in beside.by_judge
        ],
        "trials": [
            _split(part, names, asked, "/statistics/trials", trial=part.name)
            for part in beside.by_trial
        ],
        "rates": [
            {
                "name": rate.candidate,
                "judged": rate.n_judged,
                "approved": _share(rate.approved + rate.corrected, rate.n_decided),
                "corrected": _share(
                    rate.corrected - rate.by_person, rate.n_decided - rate.by_person
                ),
                "graded": rate.by_person,
                "by_person": _share(rate.by_person, rate.n_decided),
                "rejected": _share(rate.rejected, rate.n_decided),
                "rerun": _share(rate.rerun, rate.n_judged),
            }
            for rate in sorted(beside.fair_play.rates, key=lambda rate: names.index(rate.candidate))
        ],
        "fair": _fair(beside.fair_play),
        "pressure": _pressure(beside, names),
        "trials_of": {name: asked.address("/statistics/trials", candidate=name) for name in names},
        "people": [
            *map(wording.judge_bias, beside.against_people),
            *map(wording.judge_agreement, beside.against_references),
        ],
        "positions": [wording.position_line(judge) for judge in beside.positions],
        "among": None if beside.among_judges is None else wording.agreement(beside.among_judges),
        "coverage": [wording.coverage_line(coverage) for coverage in beside.coverage],
        "partly": [
            {
                "name": str(estimate.vetted.candidate),
                "not_reviewed": wording.not_reviewed(estimate),
                "names": [name for name, _, _ in wording.partly_rows(estimate)],
                "cells": [(value, assumes) for _, value, assumes in wording.partly_rows(estimate)],
            }
            for estimate in sorted(
                beside.partly, key=lambda estimate: names.index(str(estimate.vetted.candidate))
            )
        ],
        "calibrated": calibrated_lines(beside),
        "sensitivity": _sensitivity(details),
        "variance": [
            {
                "name": str(parts.candidate),
                "task": _sd(parts.var_task),
                "trial": _sd(parts.var_trial),
                "judge": _sd(parts.var_judge),
                "icc": NOTHING if parts.icc1 is None else f"{parts.icc1:.2f}",
                "reason": ""
                if parts.reason is None
                else wording.MISSING.get(parts.reason, "Too little data."),
            }
            for parts in beside.variance
        ],
        "anytime": _anytime(details),
        "superiority": wording.superiority(contrast.comparison)
        if contrast is not None and contrast.comparison.prob_superiority is not None
        else None,
    }


def trial_parts(
    trials: Sequence[CountedTrial], asked: StatisticsQuery, candidate: str | None
) -> Mapping[str, Any]:
    """Return trials as table rows, with the scores that count and links to their assessments."""
    names = (
        [candidate]
        if candidate
        else list(dict.fromkeys(name for trial in trials for name in trial.scores))
    )
    rows = []
    for trial in trials:
        row, scores = trial.row, {name: trial.scores.get(name) for name in names}
        rows.append(
            {
                "id": shown_trial(row.key),
                "run": row.run_id,
                **{field: getattr(row, field) for field in ("suite", "task", "thing", "k", "of")},
                "state": str(row.state),
                "scores": scores,
                "words": list(map(_number, scores.values())),
                "open": _trial_address(row, candidate, asked)
                if str(row.state) in _GRADED
                else None,
                "opens": [
                    None if scores[name] is None else _trial_address(row, name, asked)
                    for name in names
                ],
            }
        )
    several = len({trial.row.suite for trial in trials}) > 1
    return {
        "candidates": names,
        "rows": rows,
        "candidate": candidate,
        "several": several,
        "filters": asked.pairs(),
    }


def _trial_address(row: TrialRow, candidate: str | None, asked: StatisticsQuery) -> str:
    """Return the address of a trial's assessment, of one candidate or judge if the page shows only
    that one.
    """
    judges = asked.filters["judge"]
    query = {"candidate": candidate, "judge": judges[0] if len(judges) == 1 else None}
    narrowed = urlencode({name: value for name, value in query.items() if value})
    return f"/runs/{row.run_id}/trials/{shown_trial(row.key)}" + (
        f"?{narrowed}" if narrowed else ""
    )


def _undecided(overview: StatisticsOverview, asked: StatisticsQuery) -> tuple[str, str] | None:
    """Return the headline for an undecided pair that was chosen by its scores; None for any other
    pair.
    """
    two = overview.contrast
    if two is None or (asked.a and asked.b):
        return None
    ranking = overview.report.ranking
    # The pair's unadjusted p-value could say "better" above a table that says "not decided".
    pair = next((each for each in ranking.pairs if {each.a, each.b} == {two.a, two.b}), None)
    n = len(ranking.candidates)
    return (
        None
        if pair is None
        else wording.undecided_among(two, pair, n_candidates=n, n_pairs=ranking.n_tested)
    )


def _provisional(overview: StatisticsOverview) -> str:
    """Return the warning before the headline of unfinished runs or reviews; empty if all are
    finished.
    """
    excluded = overview.excluded
    waiting = excluded.pending + excluded.partly
    if waiting and overview.n_trials:
        total = overview.n_trials + excluded.pending + excluded.rejected + excluded.failed
        return f"Provisional: {waiting:,} of {total:,} waiting."
    return "Provisional: a run is not finished." if overview.running and overview.n_trials else ""


def _headlines(
    overview: StatisticsOverview, undecided: tuple[str, str] | None, *, asked_pair: bool
) -> tuple[str, str]:
    """Return the headline about all candidates, and the sentences below it about the two best
    ones.
    """
    if overview.n_trials == 0:
        rule = "A score counts when a person has accepted the judge's grades, or when a rule produced it."
        return "No trials count yet.", rule
    ranking, contrast = overview.report.ranking, overview.contrast
    if contrast is None or overview.verdict is None:
        return wording.standings(ranking), ""
    if len(ranking.candidates) > 2:
        return wording.standings(ranking), "" if asked_pair else " ".join(
            undecided or (overview.verdict,)
        )
    if contrast.difference is None:
        return overview.verdict, ""
    rest = overview.verdict.removeprefix(wording.labelled(wording.verdict(contrast), overview.read))
    return wording.headline(contrast), wording.beneath_headline(contrast) + rest


def _no_range(overview: StatisticsOverview, beneath: str) -> str:
    """Explain why scores have no range; empty if all have one or `beneath` explains it already."""
    for candidate in overview.report.ranking.candidates:
        estimate = candidate.estimate
        if estimate.mean is not None and estimate.ci95 is None:
            sentence = wording.estimate_sentence(estimate)
            reason = sentence.removeprefix(
                f"{candidate.candidate} scores {wording.number(estimate.mean)}. "
            )
            return "" if reason.partition(";")[0] in beneath else reason
    return ""


def _score_bars(ranking: Ranking) -> tuple[Markup, list[Markup]]:
    cells = [
        charts.IntervalCell(
            low=None if candidate.estimate.ci95 is None else 100 * candidate.estimate.ci95[0],
            mean=None if candidate.mean is None else 100 * candidate.mean,
            high=None if candidate.estimate.ci95 is None else 100 * candidate.estimate.ci95[1],
            spoken=NOTHING
            if candidate.mean is None
            else f"{candidate.candidate}: {wording.number(candidate.mean)}, "
            f"{wording.range_or_none(candidate.estimate.ci95, candidate.estimate.n_tasks)}",
        )
        for candidate in ranking.candidates
    ]
    axis, drawn = charts.interval_cells(cells, within=(0, 100))
    return Markup(axis), [Markup(bar) for bar in drawn]  # our own drawings, with escaped names


def _pair_bars(pairs: Sequence[RankedPair]) -> tuple[Markup, list[Markup]]:
    cells = [
        charts.IntervalCell(
            low=None if pair.ci95 is None else 100 * pair.ci95[0],
            mean=None if pair.difference is None else 100 * pair.difference,
            high=None if pair.ci95 is None else 100 * pair.ci95[1],
            spoken=f"{pair.a} − {pair.b}: {_signed(pair.difference)} points, {pair.decision.replace('_', ' ')}",
        )
        for pair in pairs
    ]
    axis, drawn = charts.interval_cells(cells, within=(-100, 100), zero=True)
    return Markup(axis), [Markup(bar) for bar in drawn]  # our own drawings, with escaped names


def _left_out(overview: StatisticsOverview, asked: StatisticsQuery) -> list[Mapping[str, object]]:
    n, review = overview.excluded, _review(overview, asked)
    run = f"/runs/{overview.runs[0]}" if len(overview.runs) == 1 else None
    attempts = run and "/compare/grades?" + urlencode({"run": overview.runs[0], "by": "attempts"})
    rows = (
        ("partly", n.partly, f"{n.partly} of them with more grades awaiting review", review),
        ("pending", n.awaiting_review, f"{n.awaiting_review} awaiting review", review),
        ("not_started", n.not_started, f"{n.not_started} not started", run or "/runs"),
        ("under_way", n.under_way, f"{n.under_way} under way", run or "/runs"),
        ("rejected", n.rejected, f"{n.rejected} rejected", run),
        ("failed", n.failed, f"{n.failed} failed", run),
        (
            "superseded",
            n.superseded,
            f"{n.superseded} {plural(n.superseded, 'attempt', 'attempts')} replaced",
            attempts,
        ),
        (
            "not_graded",
            n.not_graded,
            f"{n.not_graded} {plural(n.not_graded, 'answer', 'answers')} not graded",
            run or "/runs",
        ),
    )
    return [
        {"name": name, "n": number, "word": word, "open": link} for name, number, word, link in rows
    ]


def _review(overview: StatisticsOverview, asked: StatisticsQuery) -> str:
    """Return the address of the review, narrowed to one run, suite, task and judge if possible."""
    query = {**asked.filters, "run": overview.runs if len(overview.runs) == 1 else ()}
    narrowed = {
        name: query[name][0] for name in ("run", "suite", "task", "judge") if len(query[name]) == 1
    }
    return "/review" + (f"?{urlencode(narrowed)}" if narrowed else "")


def _lacking(overview: StatisticsOverview, asked: StatisticsQuery) -> list[Mapping[str, object]]:
    if not overview.incomplete:
        return []
    low, high = min(overview.incomplete.values()), max(overview.incomplete.values())
    if not low:
        word = f"up to {high} of them incomplete for a candidate"
    else:
        each = f"{high}" if low == high else f"{low} to {high}"
        word = f"{each} of them incomplete for each candidate"
    return [
        {"name": "incomplete", "n": high, "word": word, "open": asked.address("/statistics/behind")}
    ]


def _warning(caution: Caution) -> dict[str, str]:
    mixed = "The selected runs were reviewed under different protocols. Use the filter “run” to look at one run at a time."
    match caution.code:
        case "mixed_protocols":
            text = mixed
        case "newest_not_counted":
            text = f"{caution.text.partition(';')[0]}."
        case "pooled_anyway":
            text = caution.text.replace("--pool-anyway pools", "The address (pool_anyway=1) pools")
        case _:
            text = in_http(caution.text)
    # The page links to calibrations instead of naming the command.
    return {"code": caution.code, "text": text.removesuffix("; see `assay calibrate`.")}


def _pressure(diagnostics: ScoreDiagnostics, names: Sequence[str]) -> list[Mapping[str, object]]:
    """Return each candidate's score over first attempts and with rejected trials; empty without
    reruns and rejections.
    """
    gone = any(rate.rejected for rate in diagnostics.fair_play.rates)
    if not (diagnostics.n_rerun or gone):
        return []
    columns: list[tuple[str, Sequence[Estimate]]] = []
    if diagnostics.n_rerun:
        columns += [("first", diagnostics.first_attempts), ("final", diagnostics.final_attempts)]
    if gone:
        columns += [
            ("lowest", diagnostics.rejected_worst),
            ("judged", diagnostics.with_rejected),
            ("highest", diagnostics.rejected_best),
        ]
    means = [
        (_PRESSURE[key], {str(each.candidate): each.mean for each in estimates})
        for key, estimates in columns
    ]
    return [
        {"name": name, "cells": [(title, _number(of.get(name))) for title, of in means]}
        for name in names
    ]


def _split(
    part: Split, names: Sequence[str], asked: StatisticsQuery, path: str, **filters: str
) -> Mapping[str, object]:
    """Return the table row of one criterion, judge or trial, with links to its results and to the
    trials behind each number.
    """
    by_name = {str(estimate.candidate): estimate for estimate in part.estimates}
    cells = []
    for estimate in (by_name[name] for name in names if name in by_name):
        link = asked.address("/statistics/trials", candidate=str(estimate.candidate), **filters)
        cells.append(
            {
                "mean": _number(estimate.mean),
                "range": "" if estimate.ci95 is None else wording.range_words(estimate.ci95),
                "open": link if estimate.n_trials else None,
            }
        )
    apart = {"a": None, "b": None} if path == "/results" else {}
    return {"name": part.name, "open": asked.address(path, **apart, **filters), "cells": cells}


def _fair(fair_play: Any) -> list[str]:
    lines = []
    for name, test in (("approval", fair_play.approval), ("rerun", fair_play.rerun)):
        if test is not None and test.p_value is not None:
            p = wording.p_value(test.p_value)
            lines.append(f"Do {name} rates differ between candidates? Exact test: {p}.")
    tested = [each for each in fair_play.joint if each.p_holm is not None]
    if tested:
        least = min(tested, key=lambda each: each.p_holm)
        p = wording.p_value(least.p_holm)
        if len(tested) == 1:
            lines.append(
                f"Were trials in which {least.a} or {least.b} leads rejected more often? {p}."
            )
        else:
            closest = (
                f"Of {len(tested)} pairs, {least.a} and {least.b} differ most clearly: {p} (Holm)."
            )
            lines.append(f"Were trials in which one candidate leads rejected more often? {closest}")
    return lines or ["Too few rejections and reruns for a test."]


def _sensitivity(details: StatisticsDetails) -> list[str]:
    from assay.app.statistics.diagnostics import contrast_lines

    contrast = details.contrast
    if contrast is None or contrast.diagnostics is None:
        return []
    biases = {wording.judge_bias(judge) for judge in contrast.diagnostics.against_people}
    return [
        line
        for line in contrast_lines(contrast.diagnostics, contrast.comparison)
        if line not in biases
    ]


def _anytime(details: StatisticsDetails) -> list[str]:
    lines: list[str] = []
    if details.contrast is not None and details.contrast.anytime is not None:
        lines += filter(
            None, [wording.anytime_beside(details.contrast.anytime, details.contrast.comparison)]
        )
    for estimate, now in zip(
        details.standing.estimates, details.standing.anytime or (), strict=False
    ):
        lines.append(wording.anytime_mean(str(estimate.candidate), now))
    return lines


def _number(value: float | None) -> str:
    return NOTHING if value is None else wording.number(value)


def _signed(value: float | None) -> str:
    return NOTHING if value is None else wording.signed(value)


def _p(value: float | None, method: str | None) -> str:
    text = wording.probability(value)
    return text if method is None else f"{text} ({wording.method_words(method)})"


def _share(k: int, n: int) -> str:
    return NOTHING if n == 0 else f"{100 * k / n:.0f}%"


def _sd(variance: float | None) -> str:
    return _number(None if variance is None else variance**0.5)
