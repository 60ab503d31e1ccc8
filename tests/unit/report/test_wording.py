"""Each row of the wording table, and what no sentence may ever say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assay.analysis.agreement import JudgeAgainstPeople, JudgesAmongThemselves
from assay.analysis.anytime import Anytime, Looks, anytime_difference, anytime_mean
from assay.analysis.partial_review import PartlyReviewed
from assay.domain.identifiers import RunId
from assay.domain.review import Approvals
from assay.domain.selection import Excluded, ReplacedGrades
from assay.report import wording
from assay.report.wording.estimates import range_or_none
from assay.report.wording.reasons import MISSING, SECOND_TRIALS, why_no_range
from assay.statistics import (
    Comparison,
    DesignVariances,
    Estimate,
    Plan,
    ScoreTable,
    calibration,
    compare,
    coverage,
    design_variances,
    estimate,
    estimates,
    icc,
    krippendorff_alpha,
    partial_review,
    plan,
    rank,
)

Cells = Mapping[str, Mapping[str, Sequence[float]]]


def a_table(cells: Cells, *, joint: bool = False, planned_tasks: int | None = None) -> ScoreTable:
    """Scores by candidate and task; the k-th score is trial k."""
    rows = [
        (task, name, k, score)
        for name, of_task in cells.items()
        for task, scores in of_task.items()
        for k, score in enumerate(scores)
    ]
    task, candidate, trial, score = (
        (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    )
    return ScoreTable.from_columns(
        task=task,
        candidate=candidate,
        trial=[f"{t}{k}" for t, k in zip(task, trial, strict=True)],
        score=[float(one) for one in score],
        joint=joint,
        planned_tasks=planned_tasks,
    )


def spread(
    middle: float, tasks: int, *, by: float = 0.05, trials: int = 3, step: float = 0.01
) -> dict[str, list[float]]:
    return {
        f"t{t}": [
            min(max(middle + by * ((t % 3) - 1) + step * (k - 1), 0.0), 1.0) for k in range(trials)
        ]
        for t in range(tasks)
    }


def of(
    a: dict[str, list[float]], b: dict[str, list[float]], *, margin: float | None = None
) -> Comparison:
    return compare(a_table({"A": dict(a), "B": dict(b)}), "A", "B", margin=margin)


def alone(scores: dict[str, list[float]], scope: str | None = None) -> Estimate:
    return estimate(a_table({"A": dict(scores)}), "A", scope)


# Scores


def test_a_standard_deviation_is_called_one_and_a_range_is_called_one() -> None:
    line = wording.estimate_line(alone(spread(0.84, 12)))
    assert re.fullmatch(
        r"84\.0 ± \d\.\d sd, 95% range \d\d\.\d to \d\d\.\d, 12 tasks, 36 trials", line
    )


def test_a_mean_over_tasks_like_these_says_so() -> None:
    result = wording.estimate_sentence(alone(spread(0.78, 12)))
    assert result.startswith("A scores 78.")
    assert "On tasks of this kind its true score is plausibly" in result
    assert result.endswith("(95% range; 12 tasks, 36 trials).")


def test_a_mean_over_these_tasks_says_nothing_of_others() -> None:
    result = wording.estimate_sentence(alone(spread(0.78, 4)))
    assert "exactly these 4 tasks" in result
    assert "says nothing yet about other tasks" in result


def test_identical_scores_state_the_range_they_cannot_rule_out() -> None:
    result = wording.estimate_sentence(alone({"t": [1.0] * 5}))
    assert result == (
        "All 5 trials of A gave 100.0. 5 identical trial scores cannot rule out that up to about 45% of runs would score "
        "lower; the range is 54.9 to 100.0."
    )
    assert "would score higher" in wording.estimate_sentence(alone({"t": [0.0] * 5}))
    assert "would score differently" in wording.estimate_sentence(alone({"t": [0.5] * 5}))


def test_one_trial_gives_no_range_and_a_remedy() -> None:
    result = wording.estimate_sentence(alone({"t": [0.7]}))
    assert result == "A scores 70.0. A single trial gives no range; at least two must count."


def test_no_trial_gives_no_number() -> None:
    nothing = estimate(a_table({}), "A")
    assert not re.search(r"\d", wording.estimate_sentence(nothing) + wording.estimate_line(nothing))


# Two candidates


def test_a_shown_difference_is_told_with_range_chance_and_tally() -> None:
    result = wording.verdict(of(spread(0.84, 12), spread(0.78, 12, by=0.06)))
    assert result.startswith("A is better than B by 6.0 points on tasks of this kind (95% range ")
    assert "If the two were equally good, a gap this large would appear in" in result
    assert result.endswith("A won 12, lost 0, tied 0 of 12 tasks.")
    assert wording.verdict(of(spread(0.78, 12), spread(0.84, 12, by=0.06))).startswith(
        "A is worse than B by 6.0 points"
    )


def test_a_difference_on_few_tasks_is_not_carried_to_others() -> None:
    result = wording.verdict(of(spread(0.9, 3), spread(0.7, 3, by=0.06)))
    assert "on exactly these 3 tasks" in result
    assert result.endswith("3 tasks are too few to say this about other tasks.")
    one = wording.verdict(of(spread(0.9, 1), spread(0.7, 1)))
    assert one.endswith("One task is too few to say this about other tasks.")


def test_open_question_is_called_open_with_the_trials_needed() -> None:
    noisy = {f"t{t}": [0.3 + 0.06 * t, 0.9 - 0.05 * t] for t in range(7)}
    result = wording.verdict(
        of(
            noisy,
            {
                task: [x - 0.02 + 0.1 * (t % 2) - 0.04 for x in s]
                for t, (task, s) in enumerate(noisy.items())
            },
        )
    )
    assert result.startswith("Not decided: A is 1.7 points ahead, but anything from −")
    assert "fits the data" in result
    assert "you need about" in result


def test_equivalence_names_the_margin_that_was_set() -> None:
    result = wording.verdict(of(spread(0.8, 12), spread(0.8, 12, by=0.051), margin=0.03))
    assert result == (
        "A and B are practically equal on tasks of this kind: the difference lies within the margin of ±3 points."
    )


def test_no_shared_task_is_no_comparison() -> None:
    result = wording.verdict(of({"x": [0.5, 0.6]}, {"y": [0.5, 0.6]}))
    assert "share no task" in result
    assert not re.search(r"\d", result)


def test_an_undecided_gate_names_the_margin_that_the_data_could_pass() -> None:
    result = wording.gate_verdict(
        "A", "B", 0.03, outcome="undecided", smallest_margin=0.072, tasks_needed=140, tied=False
    )
    assert result == (
        "Gate undecided: too little data. A may be more than 3 points worse than B. The smallest margin that this data could "
        "pass is 7.2 points. About 140 tasks in all would show a difference as large as the one found."
    )
    worse = wording.gate_verdict(
        "A", "B", 0.03, outcome="worse", smallest_margin=None, tasks_needed=None, tied=False
    )
    assert (
        worse == "Gate failed: A is shown to be worse than B, and may be more than 3 points worse."
    )


def test_gate_wording_separates_shown_from_not_shown() -> None:
    assert (
        wording.not_worse("A", "B", 0.03, shown=True)
        == "A is not worse than B by more than 3 points."
    )
    assert (
        wording.not_worse("A", "B", 0.03, shown=False)
        == "A may be more than 3 points worse than B."
    )
    assert (
        wording.not_worse("A", "B", 0.025, shown=False)
        == "A may be more than 2.5 points worse than B."
    )


def test_superiority_is_told_in_runs_out_of_100() -> None:
    result = of(spread(0.84, 3), spread(0.78, 3))
    assert wording.superiority(replace(result, prob_superiority=0.731)) == (
        "On the same task, a random run of A beats a random run of B 73 times out of 100 (ties count half)."
    )


# What would decide it


def a_plan(
    detect: float = 0.03, *, scope: str = "tasks_like_these", **design: float | int | bool
) -> Plan:
    given: dict[str, float | int | bool] = {
        "interaction": 0.01,
        "trial": 0.01,
        "n_tasks": 7,
        "n_trials": 5.0,
        **design,
    }
    return plan(DesignVariances(**given), detect=detect, scope=scope)  # type: ignore[arg-type]  # fields by name


def test_more_tasks_than_anyone_will_run_are_not_counted_out() -> None:
    result = wording.what_would_decide(a_plan(0.0003))
    assert result == (
        "To show a difference of 0.0 points would take more tasks than is practical; more trials of the same tasks "
        "would not be enough."
    )
    assert "trials than is practical" in wording.what_would_decide(
        a_plan(0.0003, scope="these_tasks")
    )


def test_undecided_wording_names_both_ways_to_decide() -> None:
    result = wording.what_would_decide(a_plan(0.08, interaction=0.002))
    assert re.fullmatch(
        r"To show a difference of 8\.0 points you need about \d+ tasks like these \(now 7\) or about \d+ trials of each "
        r"task \(now 5\)\.",
        result,
    )


def test_where_no_task_has_two_trials_nothing_is_promised_of_trials() -> None:
    assert "unknown" in wording.what_would_decide(a_plan(0.08, split_known=False))


def test_a_plan_tells_a_manager_trials_reviews_and_dollars() -> None:
    result = wording.plan_sentence(
        "A", "B", a_plan(), more_tasks=(1200, 1200, 12.3), more_trials=None
    )
    assert result.startswith(
        "A and B: with 7 tasks of 5 counted trials each, only a difference of "
    )
    assert "in all (1,200 more trials to run, about 1,200 reviews, about $12.30)" in result
    assert result.endswith("more trials of the same tasks would not be enough.")
    unknown = wording.plan_sentence("A", "B", a_plan(), more_tasks=(1, 1, None), more_trials=None)
    assert "1 more trial to run, about 1 review, cost unknown" in unknown


def test_a_plan_that_is_met_says_so() -> None:
    result = wording.plan_sentence("A", "B", a_plan(0.9), more_tasks=(0, 0, 0.0), more_trials=None)
    assert (
        result
        == "A and B: 7 tasks of 5 counted trials each already show a difference of 90.0 points 4 times in 5."
    )


# Ranks


def test_a_rank_is_told_with_the_ranks_the_data_support() -> None:
    both = rank(a_table({"A": spread(0.8, 7), "B": spread(0.79, 7, by=0.08), "C": spread(0.1, 7)}))
    lines = {str(one.candidate): wording.rank_line(one) for one in both.candidates}
    assert lines["A"] == "rank 1; the data support any rank from 1 to 2"
    assert lines["C"] == "rank 3"
    assert "45 comparisons were made; p-values are adjusted" in wording.many_comparisons(45)


# While it runs


def test_looking_early_is_warned_of_and_answered() -> None:
    sentence = wording.unfinished(running=True, pending=1, p_value=True, ranges=True)
    assert sentence == (
        "A selected run is not finished and 1 trial awaits review. Until the run and the review are complete, the p-value "
        "and the 95% range above overstate certainty."
    )
    result = of(spread(0.84, 12), spread(0.78, 12, by=0.06))
    table = a_table({"A": spread(0.84, 12), "B": spread(0.78, 12, by=0.06)})
    sentence = wording.anytime_difference(anytime_difference(table, result))
    assert "enough to decide now" in sentence
    assert "stays valid however often you look" in sentence
    assert "too early" in wording.anytime_mean(
        "A", anytime_mean(table, alone(spread(0.8, 1, trials=2)))
    )


@pytest.mark.parametrize(
    ("p_value", "ranges", "words"),
    [
        (False, True, "the 95% ranges above overstate certainty."),
        (True, False, "the p-value above overstates certainty."),
        (False, False, "the scores above may change."),
    ],
)
def test_the_warning_of_unfinished_runs_names_only_what_the_result_has(
    p_value: bool, ranges: bool, words: str
) -> None:
    sentence = wording.unfinished(running=False, pending=2, p_value=p_value, ranges=ranges)
    assert sentence == f"2 trials await review. Until the review is complete, {words}"


def test_evidence_missing_for_the_verdicts_own_reason_is_not_repeated() -> None:
    missing = replace(
        of(spread(0.8, 4), spread(0.6, 4)), difference=None, reason="no_approved_trials"
    )
    none = Anytime(n=0, unit="task", reason="no_approved_trials")
    assert wording.anytime_difference(none).removeprefix("At any time: ") in wording.verdict(
        missing
    )
    assert wording.anytime_beside(none, missing) == ""
    other = Anytime(n=0, unit="task", reason="zero_variance")
    assert wording.anytime_beside(other, missing) == wording.anytime_difference(other)


def test_a_printed_range_of_differences_stops_where_scores_end() -> None:
    assert wording.difference_range((-1.332, 1.332)) == "−100.0 to +100.0"
    assert wording.difference_range((-0.332, 0.1)) == "−33.2 to +10.0"


def test_planned_looks_say_the_bar() -> None:
    result = wording.looks(Looks(planned=5, reached=2, p_to_beat=0.0013), 0.02)
    assert result == "Look 2 of 5: a claim needs p below 0.0013; it is 0.0200, which is not enough."
    assert "has not been reached" in wording.looks(
        Looks(planned=5, reached=0, p_to_beat=None), None
    )


def test_without_evidence_nothing_is_claimed() -> None:
    none = Anytime(e_value=None, p=None, ci95=None, n=0, unit="task", reason="no_approved_trials")
    assert "there is no result" in wording.anytime_difference(none)


# Judges and reviews


def test_judge_bias_is_shown_with_its_range_and_label() -> None:
    people = np.linspace(0.3, 0.8, 24)
    judged = people + 0.06 + 0.02 * np.where(np.arange(24) % 2, 1, -1)
    result = wording.judge_bias(
        JudgeAgainstPeople(judge="J", n_corrected=24, calibration=calibration(judged, people))
    )
    assert result.startswith(
        "J scores 6.0 points higher than people on average (plausible range +5."
    )
    assert "24 checked scores, 24 assessments corrected" in result
    assert "Fewer than 30 checked scores" in result
    mirrored = wording.judge_bias(
        JudgeAgainstPeople(judge="J", n_corrected=1, calibration=calibration(people, judged))
    )
    assert "6.0 points lower" in mirrored
    assert "1 assessment corrected" in mirrored


def test_agreement_is_told_with_its_range_and_the_plain_share() -> None:
    units = np.repeat(np.arange(40), 2)
    scores = np.repeat(np.linspace(0.2, 0.9, 40), 2) + np.tile([0.0, 0.02], 40)
    raters = np.tile(["x", "y"], 40)
    result = JudgesAmongThemselves(
        judges=("x", "y"),
        alpha=krippendorff_alpha(units, scores, tolerance=0.05, rng=np.random.default_rng(1)),
        icc=icc(units, raters, scores),
    )
    assert re.match(
        r"2 judges agree well \(alpha 1\.00, plausible range 0.99 to 1.00; 100% of pairs",
        wording.agreement(result),
    )


def test_coverage_gives_the_bracket() -> None:
    table = a_table({"A": {"t": [0.8, 0.8]}})
    assert wording.coverage_line(coverage(table, "A", {"t": 4})) == (
        "A: 2 of 4 planned trials count; mean 40.0 if the missing ones scored 0, 90.0 if 100, 80.0 without them"
    )
    assert wording.coverage_line(coverage(table, "A", {"t": 2})) == "A: 2 of 2 planned trials count"


def test_sensitivity_wording_states_the_result_with_rejected_trials() -> None:
    assert wording.put_back_sentence(3, 0.06, 0.03, changes=True) == (
        "With 3 rejected assessments counted at the judge's score the difference would be +3.0 instead of +6.0 points; the "
        "conclusion would change."
    )


def test_a_partial_review_gives_three_numbers_each_with_its_assumption() -> None:
    task = np.repeat([f"t{i}" for i in range(8)], 3)
    judge = np.linspace(0.4, 0.9, 24)
    human = np.where(np.arange(24) % 2 == 0, judge - 0.05, np.nan)
    result = PartlyReviewed(
        vetted=alone(spread(0.6, 8)),
        review=partial_review(task, judge, human, random=False),
        n_waiting=12,
    )
    lines = wording.partly(result)
    assert lines[0] == "A: 12 trials await review"
    assert "the only result" in lines[1]
    assert "that the judge is right" in lines[2]
    assert (
        lines[3]
        == "  calibrated: not available: the trials reviewed first were not chosen at random."
    )
    chosen = replace(result, review=partial_review(task, judge, human, random=True))
    assert re.search(r"calibrated: 6\d\.\d, 95% range", wording.partly(chosen)[3])
    assert "Assumes that the reviewed trials were chosen at random." in wording.partly(chosen)[3]


# What no sentence may say

NEVER = re.compile(
    r"no difference\b|\bproves?\b|95 ?% (probability|chance)|\bnan\b|\binf\b|None"
    r"|\b1 (tasks|trials|looks|reviews)\b|\b0 (task|trial)\b|  |\.\.|-\d"
)
SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.503, 0.9, 1.0]), min_size=1, max_size=4)


@given(
    st.lists(st.tuples(SCORES, SCORES), min_size=0, max_size=8),
    st.booleans(),
    st.sampled_from([None, 0.03, 0.5]),
    st.floats(0.001, 0.9),
)
def test_whatever_the_scores_the_sentences_are_sound(
    tasks: list[tuple[list[float], list[float]]], joint: bool, margin: float | None, detect: float
) -> None:
    cells: dict[str, dict[str, Sequence[float]]] = {"Ann": {}, "Bob": {}}
    for place, (one, other) in enumerate(tasks):
        cells["Ann"][f"t{place}"], cells["Bob"][f"t{place}"] = one, other
    table = a_table(cells, joint=joint).including(["Ann", "Bob"])
    comparison = compare(table, "Ann", "Bob", margin=margin)
    items = [
        wording.verdict(comparison),
        wording.anytime_difference(anytime_difference(table, comparison)),
    ]
    items += [
        line
        for one in estimates(table)
        for line in (wording.estimate_line(one), wording.estimate_sentence(one))
    ]
    items += [
        wording.anytime_mean(str(one.candidate), anytime_mean(table, one))
        for one in estimates(table)
    ]
    design = design_variances(table, "Ann", "Bob")
    if design is not None:
        for scope in ("tasks_like_these", "these_tasks"):
            wanted = plan(design, detect=detect, scope=scope, cost_trial=0.01)
            bill = (3, 3, 0.03)
            items += [wording.what_would_decide(wanted)]
            items += [
                wording.plan_sentence("Ann", "Bob", wanted, more_tasks=bill, more_trials=bill)
            ]
    for text in items:
        assert not NEVER.search(text), text
    if comparison.decision == "not_decided":
        assert "equal" not in wording.verdict(comparison).replace("equally good", "")


def _every_task_alike(n_tasks: int, trials: int) -> ScoreTable:
    rows = [
        (f"t{t}", name, k, score)
        for name, score in (("ann", 0.9), ("bob", 0.4))
        for t in range(n_tasks)
        for k in range(trials)
    ]
    task, candidate, trial, score = (list(column) for column in zip(*rows, strict=True))
    return ScoreTable.from_columns(task=task, candidate=candidate, trial=trial, score=score)


def test_constant_lead_is_explained() -> None:
    few = wording.verdict(compare(_every_task_alike(3, 2), "ann", "bob"))
    assert few.startswith("Not decided: ann is 50.0 points ahead on exactly these 3 tasks")
    assert "every repetition gave the same difference" in few
    single = wording.verdict(compare(_every_task_alike(3, 1), "ann", "bob"))
    assert "p = 0.2500" in single
    assert "six or more" in single
    assert compare(_every_task_alike(6, 1), "ann", "bob").decision == "better"


def test_no_sentence_about_a_score_calls_its_trials_approved() -> None:
    one = estimate(_every_task_alike(3, 2), "ann")
    assert wording.estimate_line(one).endswith("3 tasks, 6 trials")
    assert "approved" not in wording.estimate_sentence(one) + wording.task_line(one.by_task[0])


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (Approvals(), ""),
        (Approvals(shown=21, scripted=7), "28 approved: 21 read on screen, 7 by script"),
        (Approvals(imported=1_200), "1,200 approved: 1,200 imported"),
        (
            Approvals(scripted=4, scripted_allowed=True),
            "4 approved: 4 by script; the project's setting `count_scripted: true` accepts approvals by script",
        ),
        (Approvals(shown=2, scripted_allowed=True), "2 approved: 2 read on screen"),
    ],
)
def test_approvals_are_told_by_how_they_came_about(numbers: Approvals, words: str) -> None:
    assert wording.approvals(numbers) == words
    assert wording.approvals_cell(numbers).replace(":", " approved:", 1) == (words or "0")


def test_the_trials_that_count_are_told_with_the_approvals_they_rest_on() -> None:
    nothing = Excluded(pending=3, rejected=0, failed=0, superseded=0)
    result = wording.what_counts(14, nothing, Approvals(shown=21, scripted=7))
    assert result == "14 trials count (28 approved: 21 read on screen, 7 by script); 3 await review"
    assert wording.what_counts(14, nothing, Approvals()) == "14 trials count; 3 await review"


@pytest.mark.parametrize(
    ("replaced", "words"),
    [
        (Approvals(shown=1, scripted=2), "3 approved: 1 read on screen, 2 by script"),
        (Approvals(), "none approved by a person"),
    ],
)
def test_replaced_grades_are_told_with_their_approvals(replaced: Approvals, words: str) -> None:
    sentence = wording.regraded(
        ReplacedGrades(run=RunId("old"), newer=(RunId("new"),), trials=4, approvals=replaced)
    )
    assert f"The grades of 4 trials that counted in old ({words}) are replaced" in sentence


def test_trials_that_were_not_started_do_not_await_review() -> None:
    stopped = Excluded(pending=9, rejected=0, failed=0, superseded=0, not_started=6, under_way=2)
    assert (
        wording.what_counts(14, stopped, Approvals())
        == "14 trials count; 1 awaits review, 6 not started, 2 under way"
    )


@pytest.mark.parametrize(
    ("value", "words"), [(0.00002, "p < .0001"), (0.0093, "p = 0.0093"), (None, "p = –")]
)
def test_a_p_value_is_equal_or_below_and_never_both(value: float | None, words: str) -> None:
    assert wording.p_value(value) == words


def test_a_score_over_several_tasks_has_no_range_over_all_of_them() -> None:
    """Its tasks may have ranges, which stand below."""
    assert [range_or_none(None, n_tasks) for n_tasks in (1, 3)] == [
        "no range",
        "no range over all tasks",
    ]


def test_several_tasks_of_one_trial_need_a_second_trial_of_each() -> None:
    reasons = [why_no_range("need_at_least_2_trials", n_tasks) for n_tasks in (1, 3)]
    assert reasons == [MISSING["need_at_least_2_trials"], SECOND_TRIALS]
