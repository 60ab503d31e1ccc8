"""Texts and tables of the statistics pages; `report.wording` formats the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from assay.app.statistics import charts
from assay.app.statistics.diagnostics import calibrated_lines
from assay.app.statistics.results import wording
from assay.domain.identifiers import shown_trial
from assay.web.formatting import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.analysis.diagnostics import ScoreDiagnostics
    from assay.app.statistics.live_report import CountedTrial, StatisticsDetails, StatisticsOverview
    from assay.domain.selection import TrialRow
    from assay.statistics.comparisons import Comparison
    from assay.statistics.estimates import Estimate
    from assay.statistics.ranking import RankedPair, Ranking
    from assay.statistics.warnings import Caution
    from assay.web.pages.statistics_query import StatisticsQuery

CELLS_SHOWN, TASKS_SHOWN = 600, 50
"""Maximum number of cells and of tasks on one page of the matrix, so that a page of 50 candidates stays below 80 kB."""
PAIRS_SHOWN: Final = 20
"""Number of pairs shown, in the order of the ranking; the form and the CSV file offer the others."""

NOTHING: Final = "–"

_DECISIONS: Final = {"better": "better", "worse": "worse", "equivalent": "equivalent", "not_decided": "not decided"}

_FACTS: Final = {
    "means": "Means over shared tasks",
    "difference": "Difference, points",
    "p": "p",
    "other.tasks_like_these": "For new tasks of this kind",
    "other.these_tasks": "For exactly these tasks",
    "other.this_task_only": "For this task",
    "second": "Second test, p",
    "equivalence": "Equivalent within the margin",
    "non_inferiority": "Not worse by more than the margin",
    "effect": "Effect size",
    "tasks": "Tasks",
    "trials": "Trials per candidate",
}

_PRESSURE: Final = {
    "first": "First attempts",
    "final": "Same trials, as they count now",
    "lowest": "Rejected trials count as 0",
    "judged": "Rejected trials count at the judge's score",
    "highest": "Rejected trials count as 100",
}
_GRADED: Final = frozenset({"needs_review", "approved", "rejected"})


def first_parts(statistics_overview: StatisticsOverview, asked: StatisticsQuery) -> Mapping[str, object]:
    """Return the parts of the page that change with each decision."""
    ranking = statistics_overview.report.ranking
    undecided = _undecided(statistics_overview, asked)
    counting = wording.trials_in_words(statistics_overview.n_trials, approved=statistics_overview.approved)
    asked_pair = bool(asked.a or asked.b)
    headline, beneath = _headlines(statistics_overview, undecided, asked_pair=asked_pair)
    pairs = statistics_overview.report.ranking.compared
    axis, bars = _score_bars(ranking)
    pair_axis, pair_bars = _pair_bars(pairs[:PAIRS_SHOWN])
    return {
        "headline": headline,
        "provisional": _provisional(statistics_overview),
        "beneath": beneath,
        "no_range": _no_range(statistics_overview, beneath),
        "axis": axis,
        "pair_axis": pair_axis,
        "review_open": _review(statistics_overview, asked)
        if statistics_overview.excluded.pending + statistics_overview.excluded.partly
        else None,
        "results": asked.address("/results"),
        "behind": asked.address("/statistics/behind"),
        "matrix_trials": asked.address("/statistics/trials"),
        "counting": plural(statistics_overview.n_trials, (f"{counting} counts"), f"{counting} count"),
        "left_out": [*_lacking(statistics_overview, asked), *_left_out(statistics_overview, asked)],
        "runs": list(statistics_overview.runs),
        "warnings": [_warning(caution) for caution in statistics_overview.cautions],
        "unfinished": statistics_overview.unfinished,
        "looks": None
        if statistics_overview.looks is None
        else wording.looks(
            statistics_overview.looks,
            None if statistics_overview.contrast is None else statistics_overview.contrast.p_value,
        ),
        "anytime": None
        if statistics_overview.anytime is None
        else wording.anytime_difference(statistics_overview.anytime),
        "protocols": [wording.protocol(protocol) for protocol in statistics_overview.protocols],
        "candidates": [
            {
                "name": str(candidate.candidate),
                "mean": NOTHING if candidate.mean is None else wording.number(candidate.mean),
                "range": NOTHING if candidate.estimate.ci95 is None else wording.range_words(candidate.estimate.ci95),
                "bar": bar,
                "n": candidate.estimate.n_trials,
                "rank": wording.rank_range(candidate),
                "said": wording.estimate_sentence(candidate.estimate, approved=statistics_overview.approved),
                "lacks": plural(
                    n,
                    (
                        f"1 of its {n + candidate.estimate.n_trials} trials has no score that counts: it was "
                        "rejected, failed or awaits review."
                    ),
                    f"{n} of its {n + candidate.estimate.n_trials} trials have no score that counts: they were "
                    "rejected, failed or await review.",
                )
                if (n := statistics_overview.incomplete.get(str(candidate.candidate), 0))
                else None,
                "trials": asked.address("/statistics/trials", candidate=str(candidate.candidate)),
            }
            for candidate, bar in zip(ranking.candidates, bars, strict=True)
        ],
        "contrast": None
        if statistics_overview.contrast is None
        else contrast_part(
            statistics_overview.contrast,
            str(statistics_overview.verdict) if asked_pair and len(ranking.candidates) > 2 else "",
        ),
        "pairs": [
            {
                "a": str(pair.a),
                "b": str(pair.b),
                "points": _signed(pair.difference),
                "range": NOTHING if pair.ci95 is None else wording.difference_range(pair.ci95),
                "p": wording.probability(pair.p_holm),
                "decision": pair.decision,
                "word": _DECISIONS[pair.decision],
                "bar": bar,
                "open": asked.address("/results", a=str(pair.a), b=str(pair.b)),
            }
            for pair, bar in zip(pairs[:PAIRS_SHOWN], pair_bars, strict=True)
        ],
        "more_pairs": max(0, len(pairs) - PAIRS_SHOWN),
        "many": wording.comparisons_made(ranking),
        "newest": statistics_overview.newest,
    }


def contrast_part(comparison: Comparison, verdict: str) -> Mapping[str, object]:
    """Return the comparison of two candidates: its sentence and the facts behind it."""
    facts = []
    if comparison.difference is not None and comparison.mean_a is not None and comparison.mean_b is not None:
        facts.append(
            (
                "means",
                f"{comparison.a} {wording.number(comparison.mean_a)}, {comparison.b} {wording.number(comparison.mean_b)}",
            )
        )
        shown = NOTHING if comparison.ci95 is None else wording.difference_range(comparison.ci95)
        facts.append(("difference", f"{wording.signed(comparison.difference)} ({'95% range'} {shown})"))
    facts.append(("p", _p(comparison.p_value, comparison.method)))
    if comparison.other_scope is not None:
        other = comparison.other_scope
        if other.ci95 is None and other.reason in wording.WITHHELD:
            facts.append((f"other.{other.scope}", wording.MISSING[other.reason or ""]))
        else:
            shown = NOTHING if other.ci95 is None else wording.difference_range(other.ci95)
            facts.append((f"other.{other.scope}", f"{shown}, p {wording.probability(other.p_value)}"))
    if comparison.second_opinion is not None and comparison.second_opinion.p_value is not None:
        facts.append(("second", _p(comparison.second_opinion.p_value, comparison.second_opinion.method)))
    if comparison.equivalence is not None:
        facts.append(
            ("equivalence", f"±{wording.number(comparison.equivalence.margin)}: {_held(comparison.equivalence.holds)}")
        )
    if comparison.non_inferiority is not None:
        margin = comparison.non_inferiority.margin
        sentence = wording.not_worse(
            str(comparison.a), str(comparison.b), margin, shown=comparison.non_inferiority.holds
        )
        facts.append(("non_inferiority", sentence))
    if comparison.d_total is not None:
        facts.append(("effect", f"d {comparison.d_total:.2f} ({comparison.effect_label})".replace("-", "−")))
    facts.append(("tasks", f"{comparison.tasks_won} won, {comparison.tasks_lost} lost, {comparison.tasks_tied} tied"))
    facts.append(("trials", f"{comparison.n_trials_a}, {comparison.n_trials_b}"))
    return {
        "a": str(comparison.a),
        "b": str(comparison.b),
        "verdict": verdict,
        "decision": comparison.decision,
        "facts": [(_FACTS[name], value) for name, value in facts],
        "decide": None if comparison.to_decide is None else wording.what_would_decide(comparison.to_decide),
    }


def matrix_part(statistics_overview: StatisticsOverview, asked: StatisticsQuery, start: int) -> Mapping[str, object]:
    """Return a page of the matrix of tasks and candidates; each cell links to its trials. With several suites, each is named."""
    ranked = [str(each.candidate) for each in statistics_overview.report.ranking.candidates]
    labels = list(statistics_overview.tasks.items())
    shown = max(8, min(TASKS_SHOWN, CELLS_SHOWN // max(len(ranked), 1)))
    names = {name for name, _ in labels[start : start + shown]}
    by_name = {
        str(estimate.candidate): {str(task.task): task for task in estimate.on_tasks(names)}
        for estimate in statistics_overview.report.estimates
    }
    several = len({label.suite for _, label in labels}) > 1
    rows = []
    for name, label in labels[start : start + shown]:
        its_own = {"task": label.task, **({"suite": label.suite} if several else {})}
        cells = []
        for candidate in ranked:
            each = by_name[candidate].get(name)
            cells.append(
                {
                    "mean": NOTHING if each is None else wording.number(each.mean),
                    # One of ten classes, because the content policy forbids inline styles.
                    "shade": None if each is None else min(9, int(10 * each.mean)),
                    "said": "" if each is None else wording.task_line(each, approved=statistics_overview.approved),
                    "n": 0 if each is None else each.n_trials,
                    "open": asked.address("/statistics/trials", **its_own, candidate=candidate),
                }
            )
        rows.append(
            {
                "name": name,
                "thing": label.thing,
                "suite": label.suite if several else None,
                "version": label.digest[:6] if label.changed else None,
                "weight": label.weight,
                "cells": cells,
                "open": asked.address("/statistics/trials", **its_own),
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
        "earlier": asked.address("/results", **{"from": max(start - shown, 0) or None}) if start else None,
        "later": asked.address("/results", **{"from": start + shown}) if start + shown < len(labels) else None,
    }


def behind_parts(
    first: StatisticsOverview, statistics_details: StatisticsDetails, asked: StatisticsQuery
) -> Mapping[str, object]:
    """Return the parts of the page that are computed from all rows."""
    beside = statistics_details.standing.diagnostics
    assert beside is not None  # computed for this page
    names = [str(candidate.candidate) for candidate in first.report.ranking.candidates]
    ours, contrast = (
        statistics_details.contrast,
        None if statistics_details.contrast is None else statistics_details.contrast.diagnostics,
    )
    shown = [*beside.cautions, *(contrast.cautions if contrast is not None else ())]
    return {
        "since": statistics_details.since,
        "read_at": statistics_details.read_at,
        "warnings": [_warning(fromkey) for fromkey in dict.fromkeys(shown)],
        "names": names,
        "criteria": [
            _split(criterion.name, criterion.estimates, names, asked, criterion=criterion.name)
            for criterion in beside.by_criterion
        ],
        "judges": [
            _split(criterion.name, criterion.estimates, names, asked, judge=criterion.name)
            for criterion in beside.by_judge
        ],
        "trials": [
            _split(
                criterion.name,
                criterion.estimates,
                names,
                asked,
                open_=asked.address("/statistics/trials", trial=criterion.name),
                trial=criterion.name,
            )
            for criterion in beside.by_trial
        ],
        "rates": [
            {
                "name": criterion.candidate,
                "judged": criterion.n_judged,
                "decided": criterion.n_decided,
                "approved": _share(criterion.approved + criterion.corrected, criterion.n_decided),
                "corrected": _share(
                    criterion.corrected - criterion.by_person, criterion.n_decided - criterion.by_person
                ),
                "graded": criterion.by_person,
                "by_person": _share(criterion.by_person, criterion.n_decided),
                "rejected": _share(criterion.rejected, criterion.n_decided),
                "rerun": _share(criterion.rerun, criterion.n_judged),
            }
            for criterion in sorted(beside.fair_play.rates, key=lambda criterion: names.index(criterion.candidate))
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
        "coverage": [wording.coverage_line(criterion) for criterion in beside.coverage],
        "partly": [
            {
                "name": str(criterion.vetted.candidate),
                "not_reviewed": wording.not_reviewed(criterion),
                "names": [name for name, _, _ in wording.partly_rows(criterion)],
                "cells": [(value, assumes) for _, value, assumes in wording.partly_rows(criterion)],
            }
            for criterion in sorted(beside.partly, key=lambda criterion: names.index(str(criterion.vetted.candidate)))
        ],
        "calibrated": calibrated_lines(beside),
        "sensitivity": _sensitivity(statistics_details),
        "variance": [
            {
                "name": str(criterion.candidate),
                "task": _sd(criterion.var_task),
                "trial": _sd(criterion.var_trial),
                "judge": _sd(criterion.var_judge),
                "icc": NOTHING if criterion.icc1 is None else f"{criterion.icc1:.2f}",
                "reason": "" if criterion.reason is None else wording.MISSING.get(criterion.reason, "Too little data."),
            }
            for criterion in beside.variance
        ],
        "anytime": _anytime(statistics_details),
        "superiority": wording.superiority(ours.comparison)
        if ours is not None and ours.comparison.prob_superiority is not None
        else None,
    }


def trial_parts(trials: Sequence[CountedTrial], asked: StatisticsQuery, candidate: str | None) -> Mapping[str, object]:
    """Return trials with their counted scores, or the reason why none counts."""
    names = [candidate] if candidate else list(dict.fromkeys(name for trial in trials for name in trial.scores))
    rows = []
    for trial in trials:
        row = trial.row
        rows.append(
            {
                "id": shown_trial(row.key),
                "run": row.run_id,
                "suite": row.suite,
                "task": row.task,
                "thing": row.thing,
                "k": row.k,
                "of": row.of,
                "state": str(row.state),
                "scores": {name: trial.scores.get(name) for name in names},
                "words": [
                    NOTHING if trial.scores.get(name) is None else wording.number(trial.scores[name]) for name in names
                ],
                "open": _trial_address(row, candidate, asked) if str(row.state) in _GRADED else None,
                "opens": [
                    None if trial.scores.get(name) is None else _trial_address(row, name, asked) for name in names
                ],
            }
        )
    several = len({trial.row.suite for trial in trials}) > 1
    return {"candidates": names, "rows": rows, "candidate": candidate, "several": several, "filters": asked.pairs()}


def _trial_address(row: TrialRow, candidate: str | None, asked: StatisticsQuery) -> str:
    """Return the address of the assessment behind a candidate's number; if filtered by judge, of that judge's assessment."""
    judges = asked.filters["judge"]
    query = {"candidate": candidate, "judge": judges[0] if len(judges) == 1 else None}
    narrowed = urlencode({name: value for name, value in query.items() if value})
    return f"/runs/{row.run_id}/trials/{shown_trial(row.key)}" + (f"?{narrowed}" if narrowed else "")


def _undecided(statistics_overview: StatisticsOverview, asked: StatisticsQuery) -> tuple[str, str] | None:
    """Return the text for a pair that was picked by its scores and is not decided; None if it is decided."""
    two = statistics_overview.contrast
    if two is None or (asked.a and asked.b):
        return None
    ranking = statistics_overview.report.ranking
    # The pair's unadjusted p-value could say "better" above a table that says "not decided".
    pair = next((each for each in ranking.pairs if {each.a, each.b} == {two.a, two.b}), None)
    n = len(ranking.candidates)
    return None if pair is None else wording.undecided_among(two, pair, n_candidates=n, n_pairs=ranking.n_tested)


def _provisional(statistics_overview: StatisticsOverview) -> str:
    """Return the words that precede the headline until the runs and their reviews are finished, then an empty string."""
    excluded = statistics_overview.excluded
    waiting = excluded.pending + excluded.partly
    if waiting and statistics_overview.n_trials:
        total = statistics_overview.n_trials + excluded.pending + excluded.rejected + excluded.failed
        return f"Provisional: {waiting:,} of {total:,} waiting."
    return "Provisional: a run is not finished." if statistics_overview.running and statistics_overview.n_trials else ""


def _headlines(
    statistics_overview: StatisticsOverview, undecided: tuple[str, str] | None, *, asked_pair: bool
) -> tuple[str, str]:
    """Return the headline about all candidates, and the sentences below it about the two highest in rank."""
    if statistics_overview.n_trials == 0:
        return (
            "No trials count yet.",
            "A score counts when a person has accepted the judge's grades, or when a rule produced it.",
        )
    ranking, contrast = statistics_overview.report.ranking, statistics_overview.contrast
    if contrast is None or statistics_overview.verdict is None:
        return wording.standings(ranking), ""
    if len(ranking.candidates) > 2:
        return wording.standings(ranking), "" if asked_pair else " ".join(undecided or (statistics_overview.verdict,))
    if contrast.difference is None:
        return statistics_overview.verdict, ""
    rest = statistics_overview.verdict.removeprefix(wording.verdict(contrast))
    return wording.headline(contrast), wording.beneath_headline(contrast) + rest


def _no_range(statistics_overview: StatisticsOverview, beneath: str) -> str:
    """Explain once why candidates have a score without a range, unless the sentences below the headline already do."""
    for candidate in statistics_overview.report.ranking.candidates:
        estimate = candidate.estimate
        if estimate.mean is not None and estimate.ci95 is None:
            sentence = wording.estimate_sentence(estimate, approved=statistics_overview.approved)
            reason = sentence.removeprefix(f"{candidate.candidate} scores {wording.number(estimate.mean)}. ")
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
            spoken=f"{pair.a} − {pair.b}: {_signed(pair.difference)} points, {_DECISIONS[pair.decision]}",
        )
        for pair in pairs
    ]
    axis, drawn = charts.interval_cells(cells, within=(-100, 100), zero=True)
    return Markup(axis), [Markup(bar) for bar in drawn]  # our own drawings, with escaped names


def _left_out(statistics_overview: StatisticsOverview, asked: StatisticsQuery) -> list[Mapping[str, object]]:
    excluded = statistics_overview.excluded
    links = {"pending": _review(statistics_overview, asked), "partly": _review(statistics_overview, asked)}
    numbers = {
        "partly": excluded.partly,
        "pending": excluded.pending,
        "rejected": excluded.rejected,
        "failed": excluded.failed,
        "superseded": excluded.superseded,
        "not_graded": excluded.not_graded,
    }
    if len(statistics_overview.runs) == 1:
        links["rejected"] = links["failed"] = f"/runs/{statistics_overview.runs[0]}"
        links["superseded"] = "/compare/grades?" + urlencode({"run": statistics_overview.runs[0], "by": "attempts"})
    links["not_graded"] = f"/runs/{statistics_overview.runs[0]}" if len(statistics_overview.runs) == 1 else "/runs"
    return [
        {"name": name, "n": n, "word": _left_out_words(name, n), "open": links.get(name)} for name, n in numbers.items()
    ]


def _left_out_words(name: str, number: int) -> str:
    """State the number of trials that are left out for one reason."""
    words = {
        "pending": f"{number} awaiting review",
        "partly": f"{number} of them with more grades awaiting review",
        "not_graded": plural(number, "1 answer not graded", f"{number} answers not graded"),
        "rejected": f"{number} rejected",
        "failed": f"{number} failed",
        "superseded": plural(number, "1 attempt replaced", f"{number} attempts replaced"),
    }
    return words[name]


def _review(statistics_overview: StatisticsOverview, asked: StatisticsQuery) -> str:
    """Return the address for reviewing pending items, narrowed to one run, suite, task and judge if possible."""
    query = {**asked.filters, "run": statistics_overview.runs if len(statistics_overview.runs) == 1 else ()}
    narrowed = {name: query[name][0] for name in ("run", "suite", "task", "judge") if len(query[name]) == 1}
    return "/review" + (f"?{urlencode(narrowed)}" if narrowed else "")


def _lacking(statistics_overview: StatisticsOverview, asked: StatisticsQuery) -> list[Mapping[str, object]]:
    """State the number of trials in which a candidate lacks a counted score although another candidate has one."""
    if not statistics_overview.incomplete:
        return []
    low, high = min(statistics_overview.incomplete.values()), max(statistics_overview.incomplete.values())
    if not low:
        word = f"up to {high} of them incomplete for a candidate"
    else:
        each = f"{high}" if low == high else f"{low} to {high}"
        word = f"{each} of them incomplete for each candidate"
    return [{"name": "incomplete", "n": high, "word": word, "open": asked.address("/statistics/behind")}]


def _warning(caution: Caution) -> dict[str, str]:
    own = (
        (
            "The selected runs were reviewed under different protocols. Use the filter “run” to "
            "look at one run at a time."
        )
        if caution.code == "mixed_protocols"
        else caution.text
    )
    # The page links to calibrations instead of naming the command.
    return {"code": caution.code, "text": own.removesuffix("; see `assay calibrate`.")}


def _pressure(score_diagnostics: ScoreDiagnostics, names: Sequence[str]) -> list[Mapping[str, object]]:
    """Return each candidate's score over first attempts only, and with rejected trials set to their bounds; may be empty."""
    gone = any(rate.rejected for rate in score_diagnostics.fair_play.rates)
    if not (score_diagnostics.n_rerun or gone):
        return []
    columns: list[tuple[str, Sequence[Estimate]]] = []
    if score_diagnostics.n_rerun:
        columns += [("first", score_diagnostics.first_attempts), ("final", score_diagnostics.final_attempts)]
    if gone:
        columns += [
            ("lowest", score_diagnostics.rejected_worst),
            ("judged", score_diagnostics.with_rejected),
            ("highest", score_diagnostics.rejected_best),
        ]
    means = {
        column: {str(estimate.candidate): estimate.mean for estimate in estimates} for column, estimates in columns
    }
    return [
        {
            "name": name,
            "cells": [
                (_PRESSURE[column], NOTHING if (mean := column_means.get(name)) is None else wording.number(mean))
                for column, column_means in means.items()
            ],
        }
        for name in names
    ]


def _split(
    name: str,
    estimates: Sequence[Estimate],
    names: Sequence[str],
    asked: StatisticsQuery,
    *,
    open_: str = "",
    **part: str,
) -> Mapping[str, object]:
    """Return one row of a table split by tag, language or criterion; the name links to its statistics, numbers to their trials."""
    by_name = {str(estimate.candidate): estimate for estimate in estimates}
    return {
        "name": name,
        "open": open_ or asked.address("/results", a=None, b=None, **part),
        "cells": [
            {
                "mean": NOTHING if each.mean is None else wording.number(each.mean),
                "range": "" if each.ci95 is None else wording.range_words(each.ci95),
                "n": each.n_trials,
                "open": asked.address("/statistics/trials", candidate=str(each.candidate), **part)
                if each.n_trials
                else None,
            }
            for each in (by_name[name] for name in names if name in by_name)
        ],
    }


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
        lines.append(
            plural(
                len(tested),
                f"Were trials in which {least.a} or {least.b} leads rejected more often? {p}.",
                (
                    f"Were trials in which one candidate leads rejected more often? Of {len(tested)} pairs, {least.a} "
                    f"and {least.b} come closest: {p} (Holm)."
                ),
            )
        )
    return lines or ["Too few rejections and reruns for a test."]


def _sensitivity(statistics_details: StatisticsDetails) -> list[str]:
    from assay.app.statistics.diagnostics import contrast_lines

    contrast = statistics_details.contrast
    if contrast is None or contrast.diagnostics is None:
        return []
    return [
        contrast_line
        for contrast_line in contrast_lines(contrast.diagnostics, contrast.comparison)
        if contrast_line not in {wording.judge_bias(other) for other in contrast.diagnostics.against_people}
    ]


def _anytime(statistics_details: StatisticsDetails) -> list[str]:
    lines = []
    if statistics_details.contrast is not None and statistics_details.contrast.anytime is not None:
        lines.append(wording.anytime_difference(statistics_details.contrast.anytime))
    for estimate, now in zip(
        statistics_details.standing.estimates, statistics_details.standing.anytime or (), strict=False
    ):
        lines.append(wording.anytime_mean(str(estimate.candidate), now))
    return lines


def _signed(value: float | None) -> str:
    return NOTHING if value is None else wording.signed(value)


def _p(value: float | None, method: str | None) -> str:
    text = wording.probability(value)
    return text if method is None else f"{text} ({wording.method_words(method)})"


def _held(holds: bool) -> str:
    return "shown" if holds else "not shown"


def _share(k: int, n: int) -> str:
    return NOTHING if n == 0 else f"{100 * k / n:.0f}%"


def _sd(variance: float | None) -> str:
    return NOTHING if variance is None else wording.number(variance**0.5)
