"""Sentences about reviewing: which trials count, how far judges can be trusted, and which protocol
was used.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from assay.report.wording.approvals import NONE_APPROVED, approvals
from assay.report.wording.attention import attention
from assay.report.wording.numbers import (
    capitalise,
    count,
    difference_range,
    number,
    range_words,
    signed,
)
from assay.report.wording.reasons import MISSING
from assay.statistics.positions import LEAST_TASKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.analysis.agreement import JudgeAgainstPeople, JudgesAmongThemselves
    from assay.analysis.partial_review import CalibratedPair, CalibratedRanking, PartlyReviewed
    from assay.analysis.positions import JudgePositions
    from assay.analysis.references import JudgeAgainstReferences
    from assay.analysis.verdict_agreement import VerdictAgreement
    from assay.domain.attention import Attention
    from assay.domain.opinions import LeftToOthers
    from assay.domain.review import Approvals
    from assay.domain.selection import Excluded, ReplacedGrades
    from assay.statistics.bounds import Coverage
    from assay.statistics.kappa import Kappa
    from assay.statistics.sampled_pairs import SampledDifference

MIXED_PROTOCOLS: Final = "The selected runs were reviewed under different protocols. Look at each run separately with --run."

_SHARES: Final = (
    ("blind", "blind-first"),
    ("plants", "planted checks"),
    ("rereview", "repeats"),
    ("second", "double review"),
)
_WAYS: Final = (("blind", "blind"), ("by_two", "by two people"), ("in_order", "in the drawn order"))
# True of every decision: a script or a table showed its reviewer no score, and a blind item showed
# none before the reviewer's own.
_KEPT: Final = "Approving keeps the judge's score, so true agreement is at most this."
_MAX_PROTOCOLS: Final = 3
_MAX_NAMED: Final = 8
"""Maximum number of candidates that a sentence names."""

_POLICIES: Final = {
    "every": "every judge grade needs review",
    "flagged": "flagged grades need review",
    "none": "no grade needs review",
    "sample": "grades of the review sample need review",
}


def what_counts(n: int, excluded: Excluded, given: Approvals) -> str:
    """Summarise trials and the approvals that they rest on.

    For example, `58 trials count (28 approved: 21 read on screen, 7 by script); 3 await review, 2
    rejected, 1 failed`.
    """
    text = trials_that_count(n, given)
    if excluded.partly:
        text += f", {excluded.partly:,} of them with more grades awaiting review"
    parts = [
        f"{number_of:,} {words}"
        for number_of, words in (
            (
                excluded.awaiting_review,
                "awaits review" if excluded.awaiting_review == 1 else "await review",
            ),
            (excluded.not_started, "not started"),
            (excluded.under_way, "under way"),
            (excluded.rejected, "rejected"),
            (excluded.failed, "failed"),
            # These are not among the trials that await review, because nobody was asked to grade
            # them.
            (excluded.not_graded, "not graded"),
            (excluded.left_out, "left out of the review by chance"),
        )
        if number_of
    ]
    attempts = [count(excluded.superseded, "superseded attempt")] if excluded.superseded else []
    return "; ".join([text, *([", ".join(parts)] if parts else []), *attempts])


def trials_that_count(n: int, given: Approvals) -> str:
    """State how many trials count, and how many approvals they rest on."""
    if n == 0:
        return "No trials count yet"
    rests = f" ({approvals(given)})" if given.total else ""
    return f"{count(n, 'trial')} {'counts' if n == 1 else 'count'}{rests}"


def unfinished(*, running: bool, pending: int, p_value: bool, ranges: bool) -> str:
    """Warn that the numbers above overstate certainty, because a run or its review is unfinished.

    `p_value` and `ranges`: True if the result states a p-value, and 95% ranges. Without both, the
    scores alone may change.
    """
    reasons, ends = [], []
    if running:
        reasons.append("a selected run is not finished")
        ends.append("run")
    if pending:
        reasons.append(f"{count(pending, 'trial')} {'awaits' if pending == 1 else 'await'} review")
        ends.append("review")
    if p_value:
        warning = (
            "the p-value and the 95% range above overstate certainty"
            if ranges
            else "the p-value above overstates certainty"
        )
    else:
        warning = (
            "the 95% ranges above overstate certainty" if ranges else "the scores above may change"
        )
    are = "is" if len(ends) == 1 else "are"
    return f"{capitalise(' and '.join(reasons))}. Until the {' and the '.join(ends)} {are} complete, {warning}."


def switched_protocol(runs: str, n: int) -> str:
    """Warn that the protocol was switched after `n` decisions had been made under an earlier
    version.
    """
    return (
        f"The review protocol of {runs} was switched after reviewing had begun ({count(n, 'decision')} before the last "
        "switch). The numbers mix decisions made under several versions; nothing was reviewed again."
    )


def regraded(replaced: ReplacedGrades) -> str:
    """State which grades count after a regrade, which grades they replace, and how to see the
    replaced ones.
    """
    if replaced.references:
        people = (
            f"People's grades that came with the data of run {', '.join(replaced.newer)} count."
        )
        beside = f"The grades of {count(replaced.trials, 'trial')} in run {replaced.run} are compared with those grades"
        return f"{people} {beside} but do not count as well. To see only those of this run, use --run {replaced.run}."
    newer = f"{'Run' if len(replaced.newer) == 1 else 'Runs'} {', '.join(replaced.newer)}"
    again = f"{newer} regraded answers of run {replaced.run}."
    trials, given = count(replaced.trials, "trial"), approvals(replaced.approvals) or NONE_APPROVED
    hidden = f"The grades of {trials} that counted in {replaced.run} ({given}) are replaced by"
    return f"{again} {hidden} the newer grades, whatever their state. To see the replaced grades, use --run {replaced.run}."


def partly(partial: PartlyReviewed) -> list[str]:
    """List the three estimates of an unfinished review, each with its assumption."""
    return [
        f"{partial.vetted.candidate}: {not_reviewed(partial)}",
        *(
            f"  {name}: {value}{assumption and f' {assumption}'}"
            for name, value, assumption in partly_rows(partial)
        ),
    ]


def not_reviewed(partial: PartlyReviewed) -> str:
    """State how many of a candidate's trials are not reviewed: `12 trials await review, 80 left out
    by chance`.
    """
    wait = "awaits" if partial.n_waiting == 1 else "await"
    waiting = f"{count(partial.n_waiting, 'trial')} {wait} review"
    if not partial.n_left_out:
        return waiting
    left_out = f"{count(partial.n_left_out, 'trial')} left out by chance"
    return f"{waiting}, {left_out}" if partial.n_waiting else left_out


def partly_rows(partial: PartlyReviewed) -> tuple[tuple[str, str, str], ...]:
    """Return the name, value and assumption of the three estimates of an unfinished review."""
    vetted, judge, calibrated = (
        partial.vetted,
        partial.review.judge_as_it_is,
        partial.review.calibrated,
    )
    score = MISSING["no_approved_trials"]
    if vetted.mean is not None:
        score = number(vetted.mean) + (
            f", 95% range {range_words(vetted.ci95)}" if vetted.ci95 else ", no range"
        )
    assumption = ""
    if calibrated.mean is not None:
        assumption = _by_sample(
            calibrated.method,
            calibrated.n_reviewed or 0,
            calibrated.n_trials,
            calibrated.lam or 0.0,
        )
    return (
        ("vetted only", _full_stop(score), "Assumes nothing; this is the only result."),
        (
            "the judge as it is",
            _partial_mean(judge.mean, judge.ci95, judge.reason),
            "Assumes that the judge is right.",
        ),
        (
            "calibrated",
            _partial_mean(calibrated.mean, calibrated.ci95, calibrated.reason),
            assumption,
        ),
    )


_METHODS: Final = {
    "prediction_powered": "prediction-powered inference",
    "prediction_powered_stratified": "stratified prediction-powered inference",
}


def _by_sample(method: str | None, n_reviewed: int, n_trials: int, lam: float) -> str:
    part = f"{n_reviewed:,} of {count(n_trials, 'trial')} reviewed, judge weighted {lam:.2f}"
    return f"By {_METHODS.get(method or '', method)} ({part}). Assumes that the reviewed trials were chosen at random."


def calibrated_pair(pair: CalibratedPair) -> str:
    """State the difference of two candidates estimated from a review sample, and how many more
    reviews would decide it.
    """
    result, start = pair.result, f"{pair.a} − {pair.b}, calibrated"
    if result.difference is None:
        return f"{start}: {_full_stop(MISSING.get(result.reason or '', 'not available.'))}"
    points = f"{signed(result.difference)} points"
    if result.ci95 is None:
        return f"{start}: {points}, no range: {_full_stop(MISSING.get(result.reason or '', ''))}"
    text = f"{start}: {points}, plausible range {difference_range(result.ci95)}. "
    text += _by_sample(result.method, result.n_reviewed, result.n_trials, result.lam or 0.0)
    if (further := pair.more_reviews) is not None:
        text += f" If the difference stays as it is, about {count(further, 'more review')} would decide it (power 80%)."
    elif result.decision == "not_decided":
        text += " Reviewing every trial would not decide it; that takes more tasks or trials."
    return text


def reviews_planned(result: SampledDifference, further: int | None) -> str:
    """State how many more reviews of existing trials would show the planned difference, as a
    sentence to append to others.
    """
    present = f"{result.n_reviewed:,} of {count(result.n_trials, 'trial')} reviewed now"
    if further is None:
        return f" According to the review sample, reviewing every existing trial would not be enough ({present})."
    if further == 0:
        return f" According to the review sample, the existing reviews are enough ({present})."
    more = count(further, "more review")
    return f" According to the review sample, about {more} of the existing trials would be enough ({present})."


def calibrated_ranks(ranking: CalibratedRanking) -> str:
    """List the ranks estimated from a review sample: `ann 61.3 (rank 1 to 2), bob 55.0 (rank 1 to
    2)`.
    """
    if not ranking.candidates:
        return (
            f"Calibrated ranks: {_full_stop(MISSING.get(ranking.reason or '', 'not available.'))}"
        )
    parts = []
    for place in ranking.candidates:
        low, high = place.rank_low, place.rank_high
        parts.append(
            f"{place.candidate} {number(place.mean or 0.0)} (rank {low if low == high else f'{low} to {high}'})"
        )
    return f"Calibrated ranks: {', '.join(parts)}. Assumes that the reviewed trials were chosen at random."


def judge_bias(judge: JudgeAgainstPeople) -> str:
    """Compare a judge with people: verdicts if the rubric gives them, otherwise scores.

    The label for the agreement in scores is based on the lower end of its range.
    """
    if judge.verdicts is not None:
        return _judge_on_verdicts(judge.judge, judge.n_corrected, judge.verdicts)
    c = judge.calibration
    if c.bias is None:
        return f"{judge.judge}: no score has been checked by a person."
    # A smaller bias would be printed as 0.0 points.
    if abs(c.bias) < 5e-4:
        text = f"{judge.judge} scores neither higher nor lower than people on average"
    else:
        direction = "higher" if c.bias > 0 else "lower"
        text = (
            f"{judge.judge} scores {number(abs(c.bias))} points {direction} than people on average"
        )
    plausible = (
        f"plausible range {difference_range(c.bias_ci95)}, " if c.bias_ci95 is not None else ""
    )
    text += f" ({plausible}{count(c.n, 'checked score')}, {count(judge.n_corrected, 'assessment')} corrected)."
    if c.label is not None and c.concordance is not None and c.concordance_ci95 is not None:
        low, high = (f"{bound:.2f}" for bound in c.concordance_ci95)
        text += f" Agreement in value is {c.label} (concordance {c.concordance:.2f}, plausible range {low} to {high})."
    if c.n < c.pairs_advised:
        text += f" Fewer than {c.pairs_advised} checked scores: treat this with care."
    return f"{text} {_KEPT}"


def _judge_on_verdicts(judge: str, n_corrected: int, verdicts: VerdictAgreement) -> str:
    agreement, n = verdicts.agreement, verdicts.calibration.n
    if agreement.mean is None:
        return f"{judge}: no verdict has been checked by a person."
    plausible = (
        "no range" if agreement.ci95 is None else f"plausible range {range_words(agreement.ci95)}"
    )
    text = f"{judge} gives people's verdict on {number(agreement.mean)}% of {count(n, 'checked response')} ({plausible})"
    text += _beyond_chance(verdicts.kappa) + _bias_in_verdicts(
        verdicts.judge_rates, verdicts.people_rates
    )
    text += f"; {count(n_corrected, 'assessment')} corrected."
    if n < verdicts.calibration.pairs_advised:
        text += f" Fewer than {verdicts.calibration.pairs_advised} checked responses: treat this with care."
    return f"{text} {_KEPT}"


def _beyond_chance(kappa: Kappa) -> str:
    if kappa.kappa is None:
        return ""
    beyond = (
        ""
        if kappa.ci95 is None
        else f", plausible range {kappa.ci95[0]:.2f} to {kappa.ci95[1]:.2f}"
    )
    return f"; beyond chance, kappa is {kappa.kappa:.2f}{beyond}"


def _bias_in_verdicts(judge: Mapping[str, float], people: Mapping[str, float]) -> str:
    """State how often the judge and people give each verdict that either of them gave."""
    shares = [
        f"{verdict} {number(judge[verdict])}% against people's {number(people[verdict])}%"
        for verdict in judge
        if judge[verdict] or people[verdict]
    ]
    return f"; bias in verdicts: {', '.join(shares)}"


def judge_agreement(judge: JudgeAgainstReferences) -> str:
    """State how often a judge gives the same verdict as people who graded the responses without
    seeing its grades.
    """
    agreement, c = judge.agreement, judge.calibration
    if agreement.mean is None:
        return f"{judge.judge}: no response was graded by people."
    plausible = (
        "no range" if agreement.ci95 is None else f"plausible range {range_words(agreement.ci95)}"
    )
    text = f"{judge.judge} agrees with people on {number(agreement.mean)}% of {count(c.n, 'response')} ({plausible})"
    text += _beyond_chance(judge.kappa)
    if judge.on_verdicts:
        text += _bias_in_verdicts(
            {str(verdict): rate for verdict, rate in judge.judge_rates.items()},
            {str(verdict): rate for verdict, rate in judge.people_rates.items()},
        )
    elif c.bias is not None and abs(c.bias) >= 5e-4:
        text += f"; it scores {number(abs(c.bias))} points {'higher' if c.bias > 0 else 'lower'} on average"
    each = [f"{e.candidate} {number(e.mean)}%" for e in judge.by_candidate if e.mean is not None]
    if len(each) > 1:
        text += f". By candidate: {', '.join(each[:_MAX_NAMED])}{', …' if len(each) > _MAX_NAMED else ''}"
    verdicts = [
        f"{people} judged {verdict} {n:,}"
        for (people, verdict), n in sorted(judge.confusion.items())
        if people != verdict
    ]
    return f"{text}. Disagreements: {', '.join(verdicts)}." if verdicts else f"{text}."


def position_line(positions: JudgePositions) -> str:
    """State how a candidate's position in a joint prompt changes the judge's scores, with a range
    for each position.
    """
    start = f"{positions.judge}, effect of position"
    first = positions.effects[0]
    if first.effect is None:
        return f"{start}: not measured. Every candidate kept its position; more trials or tasks are needed."
    parts = []
    for effect in positions.effects:
        plausible = (
            "no range"
            if effect.ci95 is None
            else f"plausible range {difference_range(effect.ci95)}"
        )
        parts.append(f"{effect.position}. {signed(effect.effect or 0.0)} ({plausible})")
    why = ""
    if first.reason == "zero_variance":
        why = (
            " There is no range, because candidate and position explain every score without a rest."
        )
    elif first.ci95 is None:
        why = f" A range needs at least {LEAST_TASKS} tasks, or families of tasks, with different orders."
    return f"{start}, in points compared with the mean of all positions: {', '.join(parts)}.{why}"


def agreement(panel: JudgesAmongThemselves) -> str:
    alpha = panel.alpha
    within = 0.0 if alpha.agreement is None else alpha.agreement
    share = f"{100 * within:.0f}% of pairs within {number(alpha.tolerance, 0)} points"
    judges = count(len(panel.judges), "judge")
    if alpha.alpha is None:
        return (
            f"{judges}: the scores do not vary, so agreement beyond chance is not defined; {share}."
        )
    plausible = (
        ""
        if alpha.ci95 is None
        else f", plausible range {alpha.ci95[0]:.2f} to {alpha.ci95[1]:.2f}"
    )
    words = {"reliable": "well", "tentative": "moderately"}.get(
        alpha.reading or "", "too little to rely on"
    )
    care = "" if alpha.reading == "reliable" else ": treat small differences with care"
    return f"{judges} agree {words} (alpha {alpha.alpha:.2f}{plausible}; {share}){care}."


def coverage_line(coverage: Coverage) -> str:
    """State how many planned trials count, and the lowest and highest mean that the missing trials
    allow.
    """
    if coverage.n_planned == 0:
        return f"{coverage.candidate}: no trials were planned"
    counted = f"{coverage.n_counted:,} of {count(coverage.n_planned, 'planned trial')}"
    text = f"{coverage.candidate}: {counted} {'counts' if coverage.n_counted == 1 else 'count'}"
    low, high, without = (
        coverage.missing_as_zero,
        coverage.missing_as_one,
        coverage.missing_left_out,
    )
    if low is None or high is None or without is None or coverage.n_counted >= coverage.n_planned:
        return text
    return f"{text}; mean {number(low)} if the missing ones scored 0, {number(high)} if 100, {number(without)} without them"


def put_back_sentence(n: int, now: float | None, then: float | None, *, changes: bool) -> str:
    """Compare a difference with the difference that results if rejected trials count with the
    judge's scores.
    """
    if n == 0:
        return "No rejected trial could be counted again."
    rejected = f"With {count(n, 'rejected assessment')} counted at the judge's score"
    if now is None or then is None:
        return f"{rejected} there is nothing to compare."
    end = "the conclusion would change" if changes else "the conclusion would be the same"
    return (
        f"{rejected} the difference would be {signed(then)} instead of {signed(now)} points; {end}."
    )


def protocol(in_use: Mapping[str, Any]) -> str:
    """Summarise how a run is reviewed: what the review achieved, the plan, the policy and the
    version of the protocol.

    Example: `0 of 8 blind, 0 of 8 by two people; planned: all; every judge grade needs review
    (version 1)`.
    """
    policy = _POLICIES.get(str(in_use.get("policy")), str(in_use.get("policy")))
    order = ", in random order" if in_use.get("order") == "random" else ""
    if grown := (in_use.get("sample") or {}).get("grown_from"):
        order += f", which grew from {', then '.join(f'{100 * share:g}%' for share in grown)}"
    switches = in_use.get("switched") or []
    before = (
        f"; {switches[-1]['decided_before']} decided under an earlier version" if switches else ""
    )
    return f"{checks(in_use)}; {policy}{order} (version {in_use.get('version', 1)}{before})"


def how_reviewed(protocols: Sequence[Mapping[str, Any]], signs: Attention) -> tuple[str, ...]:
    """State how the selected runs were reviewed, one line for each protocol and one for signs of
    careless reviewing.

    Every text that shows a result takes these lines from here, so that none can print the plan of a
    review alone.
    """
    lines = [f"review: {protocol(in_use)}" for in_use in protocols[:_MAX_PROTOCOLS]]
    if len(protocols) > _MAX_PROTOCOLS:
        lines.append(f"review: {count(len(protocols) - _MAX_PROTOCOLS, 'more protocol')}")
    if stated := attention(signs):
        lines.append(f"attention: {stated}")
    return tuple(lines)


def checks(in_use: Mapping[str, Any]) -> str:
    """State what a review achieved against what its protocol plans: `0 of 8 blind, 0 of 8 by two
    people; planned: all`.
    """
    shares = {name: float(in_use.get(name) or 0) for name, _ in _SHARES}
    ordered = in_use.get("order") == "random"
    achieved = (
        _achieved(in_use["achieved"], shares, ordered=ordered) if "achieved" in in_use else ""
    )
    planned = _planned(shares)
    if not planned:
        return achieved or "no extra checks"
    return f"{achieved}; planned: {planned}" if achieved else f"planned: {planned}"


def what_waits(others: LeftToOthers, *, reviewer: str, is_part_done: bool) -> str:
    """State what awaits review, and for whom.

    For example, `Your part is done. 4 items await the opinion of a person other than ann: …`.
    `is_part_done`: True if the reviewer can decide nothing.
    """
    if not others.total:
        return "Review them first: `assay review`, or `assay serve`."
    lines = [
        "Your part is done."
        if is_part_done
        else "Review yours first: `assay review`, or `assay serve`."
    ]
    if others.second:
        wait = f"{count(others.second, 'item')} {'awaits' if others.second == 1 else 'await'}"
        where = "on the review page, or with `assay review` under their own login"
        lines.append(f"{wait} the opinion of a person other than {reviewer}: {where}.")
    if others.disputed:
        disputed = (
            f"{count(others.disputed, 'item')} {'is' if others.disputed == 1 else 'are'} disputed"
        )
        lines.append(f"{disputed}: a third person settles it at /adjudication (`assay serve`).")
    if others.own_work:
        graded = f"{count(others.own_work, 'item')} {'grades' if others.own_work == 1 else 'grade'}"
        lines.append(
            f"{graded} the work of {reviewer}: another reviewer must decide {'it' if others.own_work == 1 else 'them'}."
        )
    return " ".join(lines)


def _achieved(
    achieved: Mapping[str, int | None], shares: Mapping[str, float], *, ordered: bool
) -> str:
    waiting = achieved["waiting_for_second"] or 0
    n = (achieved["decisions"] or 0) + waiting
    planned_ways = (
        "blind" if shares["blind"] else "",
        "by_two" if shares["second"] else "",
        "in_order" if ordered else "",
    )
    ways = [(name, words) for name, words in _WAYS if name in planned_ways or achieved[name]]
    if not ways:
        return ""
    if n == 0:
        return "nothing decided yet"
    parts = [f"{achieved[name] or 0:,} of {n:,} {words}" for name, words in ways]
    if waiting:
        parts.append(f"{waiting:,} {'awaits' if waiting == 1 else 'await'} another person")
    return ", ".join(parts)


def _planned(shares: Mapping[str, float]) -> str:
    wanted = [(share, words) for name, words in _SHARES if (share := shares[name])]
    # A whole is written as a word: "100% double review" beside a result reads as if it had
    # happened.
    if wanted and all(share == 1 for share, _ in wanted):
        return "all"
    return ", ".join(
        f"{'all' if share == 1 else f'{round(100 * share, 1):g}%'} {words}"
        for share, words in wanted
    )


def _partial_mean(mean: float | None, ci95: tuple[float, float] | None, reason: str | None) -> str:
    if mean is None:
        return _full_stop(MISSING.get(reason or "", "not available."))
    ranged = "no range" if ci95 is None else f"95% range {range_words(ci95)}"
    return f"{number(mean)}, {ranged} (tasks like these)."


def _full_stop(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def changed_since_baseline(tasks: tuple[str, ...]) -> str:
    """List the tasks that a gate leaves out because their text differs from the baseline's."""
    shown = ", ".join(tasks[:5]) + (f" and {len(tasks) - 5} more" if len(tasks) > 5 else "")
    return f"{shown}: the text of the task has changed since the baseline, so it is not compared."


def lower_is_better(metrics: Sequence[str]) -> str:
    """State that the scores of these metrics are inverted because lower is better."""
    names = ", ".join(metrics)
    return f"Lower is better for {names}. The scores are reversed, so that higher is better in every number here."


def mixed_metrics(runs_by_metric: Mapping[str, Sequence[str]], shared: Sequence[str]) -> str:
    """State that scores are means over different metrics, and which metrics all runs have."""
    counts = "; ".join(
        f"{metric} counts only in {', '.join(runs)}" for metric, runs in runs_by_metric.items()
    )
    options = " ".join(f"--criterion {shlex.quote(name)}" for name in shared)
    remedy = (
        f"Use {options} to compare only what all runs have"
        if shared
        else "Import the files with a --map that takes the same metrics from each"
    )
    return f"The scores are means over different metrics, so they are not comparable: {counts}. {remedy}, or compare other runs."
