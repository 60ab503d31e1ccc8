"""Estimates from a review sample: against other formulas, with rejected trials, and whether their
ranges cover.
"""

from __future__ import annotations

import numpy as np
import pytest

import assay.statistics as st
from assay.statistics.distributions import t_quantile
from assay.statistics.sampled_pairs import adjusted, more_reviews, sampled_difference
from assay.statistics.sampled_review import Influence, difference, influence, sampled_mean
from assay.statistics.standard_error import across_tasks

NAN = float("nan")


def one_trial_each(
    n_tasks: int = 60, *, seed: int = 5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Judge's scores, people's scores, and a sample of a fifth, of tasks with one trial."""
    rng = np.random.default_rng(seed)
    judge = rng.uniform(0.3, 0.9, n_tasks)
    human = np.clip(judge - 0.08 + rng.normal(0, 0.05, n_tasks), 0, 1)
    return judge, human, rng.permutation(n_tasks) < n_tasks // 5


def parts_of(
    judge: np.ndarray, human: np.ndarray, sampled: np.ndarray, kept: np.ndarray | None = None
) -> Influence:
    n = judge.shape[-1]
    return influence(
        judge,
        human,
        sampled,
        sampled if kept is None else kept & sampled,
        np.ones(n),
        np.arange(n),
        n_units=n,
    )


def test_tasks_that_nobody_reviewed_narrow_the_range() -> None:
    judge, human, sampled = one_trial_each()
    review = st.partial_review(np.arange(60), judge, np.where(sampled, human, NAN), random=True)
    calibrated, vetted = review.calibrated, review.vetted_only
    assert (calibrated.n_tasks, calibrated.n_reviewed, vetted.n_tasks) == (60, 12, 12)
    assert calibrated.method == "prediction_powered"
    assert calibrated.ci95 is not None
    assert vetted.ci95 is not None
    assert calibrated.ci95[1] - calibrated.ci95[0] < 0.7 * (vetted.ci95[1] - vetted.ci95[0])


def test_with_one_trial_a_task_the_estimate_is_that_of_one_pool() -> None:
    judge, human, sampled = one_trial_each()
    parts = parts_of(judge, human, sampled)
    result = sampled_mean(parts)
    # The pool weighs the judge's mean over unreviewed trials, this one over all, so that the
    # weights differ by a factor.
    pool = st.ppi(human[sampled], judge[sampled], judge[~sampled], lam=float(result.lam) * 48 / 60)
    assert pool.mean == pytest.approx(float(result.estimate))
    assert pool.std_err == pytest.approx(float(np.sqrt(result.variance)), rel=0.15)


def test_with_a_review_in_every_task_the_judge_is_corrected_per_task() -> None:
    rng = np.random.default_rng(1)
    task = np.repeat(np.arange(12), 4)
    judge = rng.uniform(0.2, 0.9, 48)
    human = np.clip(judge + rng.normal(-0.05, 0.1, 48), 0, 1)
    sampled = np.arange(48) % 4 == 0
    parts = influence(judge, human, sampled, sampled, np.ones(48), task, n_units=12)
    fixed = sampled_mean(parts, lam=1.0)
    corrected = judge.reshape(12, 4).mean(axis=1) + (human - judge)[sampled]
    expected = across_tasks(corrected, np.ones(12))
    assert float(fixed.estimate) == pytest.approx(float(expected.estimate))
    assert float(fixed.df) == pytest.approx(11.0)


def test_a_judge_that_says_nothing_gets_no_weight() -> None:
    rng = np.random.default_rng(2)
    human, sampled = rng.uniform(0, 1, 80), np.arange(80) < 20
    result = sampled_mean(parts_of(np.full(80, 0.7), human, sampled))
    assert float(result.lam) == 0.0
    assert float(result.estimate) == pytest.approx(human[sampled].mean())


def test_rejected_trials_stay_in_the_sample_and_leave_the_mean() -> None:
    rng = np.random.default_rng(3)
    judge = rng.uniform(0.2, 1.0, (400, 120))
    human = np.clip(judge - 0.1, 0, 1)
    kept = judge > 0.4  # the trials that people keep are those that the judge scores high
    sampled = rng.random((400, 120)).argsort(axis=1) < 40
    result = sampled_mean(parts_of(judge, human, sampled, kept))
    # Kept are scores of the judge from 0.4 to 1, less 0.1.
    assert result.estimate.mean() == pytest.approx(0.6, abs=0.005)


@pytest.mark.parametrize("share", [0.15, 0.4])
def test_ranges_of_means_and_pairs_cover(share: float) -> None:
    rng = np.random.default_rng(11)
    shape = (1500, 2, 70)
    human = np.clip(0.6 + 0.15 * rng.standard_normal(shape), 0, 1)
    judge = np.clip(human + 0.1 + 0.1 * rng.standard_normal(shape), 0, 1)
    sampled = rng.random((1500, 70)).argsort(axis=1) < round(share * 70)
    parts = [parts_of(judge[:, side], human[:, side], sampled) for side in (0, 1)]
    for result, truth in ((sampled_mean(parts[0]), 0.6), (sampled_mean(difference(*parts)), 0.0)):
        half = t_quantile(0.975, result.df) * np.sqrt(result.variance)
        covered = float((np.abs(result.estimate - truth) <= half).mean())
        # 1,500 benchmarks at 95% have a standard error of 0.6 points.
        assert 0.93 <= covered <= 0.975


def test_reviews_of_everything_need_no_judge() -> None:
    judge, human, _ = one_trial_each()
    everything = np.ones(60, np.bool_)
    result = sampled_mean(parts_of(judge, human, everything), lam=0.0)
    expected = across_tasks(human, np.ones(60))
    assert float(result.estimate) == pytest.approx(float(expected.estimate))
    assert float(result.variance) == pytest.approx(float(expected.variance))
    assert float(result.floor) == pytest.approx(float(result.variance))


def test_more_reviews_decide_where_the_reviews_are_the_bottleneck() -> None:
    judge, human, sampled = one_trial_each(300)
    # B is a little worse everywhere, and people scatter more than the judge says.
    rng = np.random.default_rng(9)
    other = np.clip(human - 0.03 + rng.normal(0, 0.12, 300), 0, 1)
    pair = sampled_difference(
        parts_of(judge, human, sampled), parts_of(judge, other, sampled), n_tasks=300
    )
    assert pair.difference is not None
    needed = more_reviews(pair, detect=0.04)
    assert needed is not None
    assert 0 < needed < 240
    assert more_reviews(pair, detect=0.5) == 0
    assert more_reviews(pair, detect=0.001) is None
    again = more_reviews(pair, detect=0.05)
    assert again is not None
    assert again < needed


def test_holm_decides_in_a_list_of_pairs() -> None:
    judge, human, sampled = one_trial_each()
    worse = np.clip(human - 0.02, 0, 1) + 0.02 * (np.arange(60) % 3)
    pair = sampled_difference(
        parts_of(judge, human, sampled), parts_of(judge, worse, sampled), n_tasks=60
    )
    assert pair.p_value is not None
    (alone,) = adjusted([pair])
    first = adjusted([pair] * 4)[0]
    assert alone.p_holm == pytest.approx(pair.p_value)
    assert first.p_holm == pytest.approx(min(1.0, 4 * pair.p_value))


@pytest.mark.parametrize(("n_families", "reason"), [(3, "need_at_least_4_families"), (4, None)])
def test_pairs_of_a_sample_need_four_families(n_families: int, reason: str | None) -> None:
    judge, human, sampled = one_trial_each()
    family = np.arange(60) % n_families

    def of(scores: np.ndarray) -> Influence:
        return influence(
            judge, scores, sampled, sampled, np.ones(60), family, n_units=n_families, by_family=True
        )

    pair = sampled_difference(of(human), of(human - 0.02 * (np.arange(60) % 7)), n_tasks=60)
    assert (pair.reason, pair.ci95 is None) == (reason, reason is not None)


def test_few_reviews_of_zeros_and_ones_are_refused() -> None:
    rng = np.random.default_rng(4)
    judge = (rng.random(60) < 0.7).astype(float)
    human = np.where(np.arange(60) < 12, judge, NAN)
    assert (
        st.partial_review(np.arange(60), judge, human, random=True).calibrated.reason
        == "too_few_yes_or_no_reviews"
    )


def test_a_stratum_without_a_review_is_refused() -> None:
    judge, human, _ = one_trial_each()
    review = st.partial_review(
        np.arange(60),
        judge,
        np.where(np.arange(60) < 20, human, NAN),
        random=True,
        stratum=np.arange(60) // 30,
    )
    assert (review.calibrated.mean, review.calibrated.reason) == (None, "stratum_without_review")


def test_strata_with_different_shares_do_not_bias() -> None:
    rng = np.random.default_rng(6)
    stratum = np.arange(80) // 40
    judge = np.where(stratum == 0, 0.8, 0.4) + rng.normal(0, 0.05, (500, 80))
    human = judge - np.where(stratum == 0, 0.2, 0.0)
    order = rng.random((500, 80))
    sampled = np.concatenate(
        [order[:, :40].argsort(axis=1) < 20, order[:, 40:].argsort(axis=1) < 6], axis=1
    )
    parts = influence(
        judge,
        human,
        sampled,
        sampled,
        np.ones(80),
        np.arange(80),
        n_units=80,
        stratum=stratum.astype(np.int64),
    )
    assert sampled_mean(parts).estimate.mean() == pytest.approx(0.5, abs=0.005)
