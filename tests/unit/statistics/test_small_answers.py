"""Single answers whose right value can be worked out by hand or taken from a printed table."""

import math

import numpy as np
import pytest

from assay.statistics import (
    BradleyTerry,
    ScoreTable,
    approval_rates,
    bradley_terry,
    coverage,
    effect_label,
    icc,
    krippendorff_alpha,
    partial_review,
    planned_looks,
    ppi,
    selective_rejection,
    sensitivity,
    strengths,
    variance_components,
)


@pytest.mark.parametrize(
    ("d", "label"),
    [
        (0.0, "negligible"),
        (-0.199, "negligible"),
        (0.2, "small"),
        (-0.5, "medium"),
        (0.8, "large"),
        (None, None),
    ],
)
def test_effect_labels_have_half_open_bands(d: float | None, label: str | None) -> None:
    assert effect_label(d) == label


@pytest.mark.parametrize(
    ("looks", "pocock", "obrien_fleming"),
    [
        (1, 1.960, 1.960),
        (2, 2.178, 1.977),
        (3, 2.289, 2.004),
        (4, 2.361, 2.024),
        (5, 2.413, 2.040),
        (10, 2.555, 2.087),
    ],
)
def test_planned_looks_meet_the_printed_constants(
    looks: int, pocock: float, obrien_fleming: float
) -> None:
    from scipy.stats import norm  # type: ignore[import-untyped]  # SciPy ships no types

    result = planned_looks(looks)
    assert norm.isf(result.pocock_nominal_p / 2) == pytest.approx(pocock, abs=6e-4)
    assert norm.isf(result.obf_nominal_p[-1] / 2) == pytest.approx(obrien_fleming, abs=6e-4)


def test_three_rates_are_tested_by_listing_all_tables() -> None:
    # Worked by hand: 3 of 3, 0 of 3, 0 of 3; 84 ways to place 3 hits in 9, and 3 tables as unlikely
    # as this one.
    result = approval_rates(["A", "B", "C"], [3, 0, 0], [3, 3, 3])
    assert result.p_value == pytest.approx(3 / 84)
    assert result.warning == "unequal_approval"


def test_many_rates_need_a_generator_and_then_agree_with_the_exact_answer() -> None:
    names = [str(i) for i in range(12)]
    assert approval_rates(names, [20] * 12, [40] * 12).reason == "needs_generator"
    result = approval_rates(names, [20] * 12, [40] * 12, rng=np.random.default_rng(1))
    assert result.p_value == pytest.approx(1.0, abs=0.01)


def test_rejections_of_whoever_was_ahead_are_found() -> None:
    rng = np.random.default_rng(4)
    task = np.repeat(np.arange(10), 6)
    difference = rng.normal(0.0, 0.1, 60)
    review = selective_rejection(task, difference, rng.random(60) < 0.3, rng=rng)
    selective = selective_rejection(task, difference, difference < -0.05, rng=rng)
    assert review.warning is None
    assert selective.warning == "selective_rejection"
    assert selective.excess is not None
    assert selective.excess < 0


def test_rejected_trials_counted_again_can_change_the_conclusion() -> None:
    score = {"A": [0.8, 0.82, 0.81, 0.79, 0.8], "B": [0.7, 0.72, 0.69, 0.71, 0.7]}
    rows = [(who, k, s) for who, scores in score.items() for k, s in enumerate(scores)]
    more = [*rows, *(("B", 5 + k, 0.95) for k in range(4))]
    tables = [
        ScoreTable.from_columns(
            task=["t"] * len(one),
            candidate=[r[0] for r in one],
            trial=[r[1] for r in one],
            score=[r[2] for r in one],
        )
        for one in (rows, more)
    ]
    result = sensitivity(tables[0], tables[1], "A", "B")
    assert (result.counted.decision, result.with_rejected.decision, result.changes) == (
        "better",
        "not_decided",
        True,
    )


def test_the_bracket_of_missing_trials_runs_from_zero_to_one() -> None:
    table = ScoreTable.from_columns(
        task=["a", "a", "b"], candidate=["A"] * 3, trial=[1, 2, 1], score=[0.8, 0.6, 0.9]
    )
    result = coverage(table, "A", {"a": 4, "b": 1, "c": 5})
    assert (result.n_counted, result.n_planned, result.n_tasks_planned) == (3, 10, 3)
    assert result.missing_as_zero == pytest.approx((0.7 * 2 / 4 + 0.9) / 3)
    assert result.missing_as_one == pytest.approx(((0.7 * 2 + 2) / 4 + 0.9 + 1) / 3)
    assert result.missing_left_out == pytest.approx(0.8)


def test_judge_calls_within_trials_are_told_from_trials() -> None:
    rng = np.random.default_rng(2)
    tasks, trials, calls = 60, 6, 4
    base = (
        rng.normal(0.5, 0.1, tasks)[:, None, None]
        + rng.normal(0, 0.04, (tasks, trials))[:, :, None]
    )
    score = base + rng.normal(0, 0.03, (tasks, trials, calls))
    at = np.indices(score.shape).reshape(3, -1)
    table = ScoreTable.from_columns(
        task=at[0], candidate=["A"] * score.size, trial=at[1], score=score.reshape(-1)
    )
    result = variance_components(table, "A")
    assert result.var_judge == pytest.approx(0.03**2, rel=0.1)
    assert result.var_trial == pytest.approx(0.04**2, rel=0.2)
    assert result.var_task == pytest.approx(0.1**2, rel=0.4)


def test_a_few_reviews_or_chosen_ones_are_refused() -> None:
    human, judge = [0.5, 0.6, 0.7], [0.6, 0.7, 0.7]
    assert ppi(human, judge, [0.5, 0.6]).reason == "too_few_human_reviews"
    assert ppi(human * 5, judge * 5, [0.5, 0.6], random=False).reason == "not_random_review"
    task = [k % 5 for k in range(30)]
    seen = [0.5 + 0.01 * k if k < 15 else float("nan") for k in range(30)]
    chosen = partial_review(task, [0.6 + 0.01 * (k % 7) for k in range(30)], seen, random=False)
    assert (chosen.calibrated.mean, chosen.calibrated.reason) == (None, "not_random_review")
    assert chosen.vetted_only.mean is not None


def test_a_biased_judge_is_corrected_per_task() -> None:
    rng = np.random.default_rng(7)
    task = np.repeat(np.arange(12), 10)
    truth = np.clip(0.6 + rng.normal(0, 0.1, 12)[task] + rng.normal(0, 0.05, 120), 0, 1)
    judge = np.clip(truth + 0.15 + rng.normal(0, 0.03, 120), 0, 1)
    seen = np.where(np.arange(120) % 10 < 2, truth, np.nan)
    result = partial_review(task, judge, seen, random=True)
    assert result.judge_as_it_is.mean == pytest.approx(truth.mean() + 0.15, abs=0.02)
    assert result.calibrated.mean == pytest.approx(truth.mean(), abs=0.02)


def test_joint_rankings_give_strengths_clustered_by_task() -> None:
    rng = np.random.default_rng(5)
    rows = [
        (t, who, k, q + rng.normal(0, 0.1))
        for t in range(20)
        for k in range(3)
        for who, q in zip("ABC", (0.7, 0.5, 0.3), strict=True)
    ]
    table = ScoreTable.from_columns(
        task=[r[0] for r in rows],
        candidate=[r[1] for r in rows],
        trial=[r[2] for r in rows],
        score=np.clip([r[3] for r in rows], 0, 1),
        joint=True,
    )
    result = strengths(table)
    assert result.method == "sandwich_t"
    assert result.n_tasks == 20
    assert result.contrast("A", "C").win_probability is not None
    assert list(result.borda) == sorted(result.borda, key=lambda share: -(share or 0.0))


def one_pair(outcomes: list[str], n_tasks: int) -> tuple[BradleyTerry, BradleyTerry]:
    """The same outcomes on each of `n_tasks` tasks: clustered by task, and taken for
    independent.
    """
    result = outcomes * n_tasks
    left, right = ["A"] * len(result), ["B"] * len(result)
    task = [n // len(outcomes) for n in range(len(result))]
    return bradley_terry(left, right, result, task=task), bradley_terry(left, right, result)


def width(found: BradleyTerry) -> float:
    low, high = found.contrast("A", "B").ci95 or (math.nan, math.nan)
    return high - low


def test_a_few_tasks_that_agree_by_chance_do_not_make_a_range_collapse() -> None:
    clustered, independent = one_pair(["left", "right", "tie", "left", "right", "left"], 3)
    assert clustered.method == "sandwich_t"
    assert width(clustered) == pytest.approx(width(independent), rel=1e-9)
    one, other = clustered.contrast("A", "B"), independent.contrast("A", "B")
    assert one.p_value == pytest.approx(other.p_value)
    assert one.p_value is not None
    # ten and a half of eighteen: a collapsed range would have called this certain
    assert one.p_value > 0.3


def test_interval_width_follows_agreement_between_tasks() -> None:
    left = ["A"] * 280
    alike = (["left", "right", "tie", "left", "right", "left", "tie"] * 39) + [
        "left",
        "right",
        "tie",
        "left",
        "right",
        "tie",
        "tie",
    ]
    result = bradley_terry(left, ["B"] * 280, alike, task=[n // 7 for n in range(280)])
    assert 0 < width(result) < width(bradley_terry(left, ["B"] * 280, alike))
    at_odds = ["left"] * 6 + ["right"] * 6 + ["left"] * 6 + ["right"] * 6
    tasks = [n // 6 for n in range(24)]
    result = bradley_terry(["A"] * 24, ["B"] * 24, at_odds, task=tasks)
    assert width(result) > width(bradley_terry(["A"] * 24, ["B"] * 24, at_odds))


@pytest.mark.parametrize("n_tasks", [40, 60, 79])
def test_equal_outcomes_on_every_task_are_no_certainty(n_tasks: int) -> None:
    clustered, _ = one_pair(["left", "left", "right", "left"], n_tasks)
    difference = clustered.contrast("A", "B")
    assert (difference.reason, difference.ci95, difference.p_value) == ("zero_variance", None, None)


def test_islands_are_not_compared() -> None:
    result = bradley_terry(
        ["A", "B", "C", "D"], ["B", "A", "D", "C"], ["left", "left", "left", "left"]
    )
    assert result.reason == "disconnected"
    assert result.contrast("A", "C").difference is None


def test_alpha_of_a_bootstrap_reads_from_the_lower_end() -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(80)
    unit = np.tile(np.arange(80), 2)
    score = np.concatenate([truth, truth + rng.normal(0, 0.12, 80)])
    result = krippendorff_alpha(unit, score, rng=rng, tolerance=0.1)
    assert result.alpha is not None
    assert result.ci95 is not None
    assert result.ci95[0] < result.alpha < result.ci95[1]
    assert result.agreement == pytest.approx(float((np.abs(score[80:] - score[:80]) <= 0.1).mean()))


def test_the_interval_of_absolute_agreement_meets_the_printed_example() -> None:
    # Shrout & Fleiss' six targets and four judges; ICC(2,1) .29 with 95% interval .02 to .76
    # (McGraw & Wong's form).
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    unit = [u for u in range(6) for _ in range(4)]
    result = icc(unit, [0, 1, 2, 3] * 6, [score for row in ratings for score in row])
    assert result.icc_a1 == pytest.approx(0.2898, abs=1e-4)
    assert result.icc_a1_ci95 == pytest.approx((0.0188, 0.7611), abs=2e-3)
    assert result.icc_1_ci95 == pytest.approx((-0.1329, 0.7226), abs=2e-3)


def test_interval_of_alpha_does_not_depend_on_the_order_of_units() -> None:
    rng = np.random.default_rng(14)
    unit, score = np.repeat(np.arange(40), 3), rng.random(120).round(2)
    renamed = rng.permutation(40)[unit]
    first, second = (
        krippendorff_alpha(units, score, rng=np.random.default_rng(1)) for units in (unit, renamed)
    )
    assert first.ci95 is not None
    assert second.ci95 == pytest.approx(first.ci95, abs=1e-12)
