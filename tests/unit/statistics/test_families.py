"""Tasks in families: families are the units of statements about tasks like these."""

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats  # type: ignore[import-untyped]  # SciPy ships no types

from assay import statistics as st
from assay.analysis.anytime import anytime_difference, anytime_mean
from assay.statistics.families import across, bell_mccaffrey
from assay.statistics.standard_error import across_tasks
from assay.statistics.superiority import superiority


def table_of(means: Any, family: Any, *, n_trials: int = 2, **more: Any) -> st.ScoreTable:
    """Scores of candidates A, B, … (rows of `means`) on tasks with these families; trials scatter
    by ±0.01.
    """
    rows = [
        (
            f"t{task:02}",
            "ABCDE"[who],
            trial,
            float(means[who][task]) + 0.01 * (trial - (n_trials - 1) / 2),
            family[task],
        )
        for who in range(len(means))
        for task in range(len(family))
        for trial in range(n_trials)
    ]
    task, candidate, trial, score, families = (list(column) for column in zip(*rows, strict=True))
    return st.ScoreTable.from_columns(
        task=task, candidate=candidate, trial=trial, score=score, family=families, **more
    )


def drawn(
    n_families: int, size: int, *, seed: int = 7, candidates: int = 2
) -> tuple[Any, list[str]]:
    rng = np.random.default_rng(seed)
    shared = rng.normal(0.0, 0.06, (candidates, n_families)).repeat(size, axis=1)
    means = np.clip(0.6 + shared + rng.normal(0.0, 0.05, shared.shape), 0.05, 0.95)
    return means, [f"f{task // size}" for task in range(n_families * size)]


def test_pair_over_equal_families_is_the_t_test_on_family_means() -> None:
    means, family = drawn(8, 6)
    comparison = st.compare(table_of(means, family), "A", "B")
    by_family = (means[0] - means[1]).reshape(8, 6).mean(axis=1)
    expected = scipy_stats.ttest_1samp(by_family, 0.0)
    assert comparison.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert comparison.df == pytest.approx(7.0)
    assert (comparison.n_tasks, comparison.n_families, comparison.method) == (
        48,
        8,
        "cr2_families_paired_t",
    )
    alone = st.compare(table_of(means, [""] * 48), "A", "B")
    assert alone.std_err is not None
    assert comparison.std_err is not None
    assert comparison.std_err > 1.3 * alone.std_err


def test_degrees_of_freedom_equal_those_of_the_matrix_form() -> None:
    weights = np.array([2.0, 3.0, 10.0, 4.0, 4.0, 7.0])
    share = weights / weights.sum()
    residual = np.eye(6) - np.outer(np.ones(6), share)
    adjust = np.diag(share / np.sqrt(np.diag(residual @ residual.T)))
    quadratic = residual.T @ adjust.T @ adjust @ residual
    expected = np.trace(quadratic) ** 2 / np.trace(quadratic @ quadratic)
    assert float(bell_mccaffrey(weights)) == pytest.approx(expected, rel=1e-12)


def test_degrees_of_freedom_lie_midway_between_kish_and_bell_mccaffrey() -> None:
    sizes = [2, 3, 10, 4, 4, 7]
    means, _ = drawn(sum(sizes), 1)
    family = [f"f{number}" for number, size in enumerate(sizes) for _ in range(size)]
    kish = sum(sizes) ** 2 / sum(size**2 for size in sizes) - 1
    expected = (kish + float(bell_mccaffrey(np.array(sizes, dtype=float)))) / 2
    assert st.compare(table_of(means, family), "A", "B").df == pytest.approx(expected, rel=1e-9)
    assert st.estimate(table_of(means, family), "A").df == pytest.approx(expected, rel=1e-9)
    assert kish < expected - 0.1 or kish > expected + 0.1


def test_families_of_one_task_change_nothing() -> None:
    means, _ = drawn(7, 1, candidates=3)
    with_column = table_of(means, [f"own {task}" for task in range(7)])
    without = table_of(means, [None] * 7)
    assert astuple(st.estimate(with_column, "A"))[:12] == astuple(st.estimate(without, "A"))[:12]
    assert repr(st.rank(with_column).pairs) == repr(st.rank(without).pairs)
    assert st.compare(with_column, "A", "B").n_families is None


def test_tasks_without_a_family_are_families_of_one() -> None:
    means, family = drawn(4, 3)
    family = [*family[:9], "", "", ""]
    assert st.compare(table_of(means, family), "A", "B").n_families == 6


@pytest.mark.parametrize("n_families", [1, 2, 3])
def test_below_four_families_nothing_is_said_about_other_tasks(n_families: int) -> None:
    means, family = drawn(n_families, 6)
    table = table_of(means, family)
    comparison, mean = st.compare(table, "A", "B"), st.estimate(table, "A")
    # Exactly these tasks can still be compared, and that is the headline.
    assert (comparison.scope, mean.scope) == ("these_tasks", "these_tasks")
    assert comparison.p_value is not None
    assert comparison.other_scope is not None
    assert (comparison.other_scope.p_value, comparison.other_scope.reason) == (
        None,
        "need_at_least_4_families",
    )
    assert "too_few_families" in {warning.code for warning in comparison.warnings}
    for asked in (
        st.compare(table, "A", "B", "tasks_like_these"),
        st.estimate(table, "A", "tasks_like_these"),
    ):
        assert (asked.ci95, asked.reason) == (None, "need_at_least_4_families")
    assert superiority(table, 0, 1, np.ones(len(family), dtype=bool)).ci95 is None
    (pair,) = st.rank(table, "tasks_like_these").pairs
    assert (pair.p_value, pair.decision) == (None, "not_decided")
    assert (anytime_difference(table, asked_comparison(table)).e_value) is None
    design = st.design_variances(table, "A", "B")
    assert design is not None
    plan = st.plan(design, detect=0.05)
    assert (plan.mde, plan.reason) == (None, "need_at_least_4_families")
    assert plan.families_needed is not None
    assert plan.families_needed >= 4


def asked_comparison(table: st.ScoreTable) -> st.Comparison:
    return st.compare(table, "A", "B", "tasks_like_these")


@pytest.mark.parametrize(
    ("n_families", "scope"), [(4, "these_tasks"), (5, "these_tasks"), (6, "tasks_like_these")]
)
def test_four_and_five_families_are_flagged(n_families: int, scope: str) -> None:
    comparison = st.compare(table_of(*drawn(n_families, 3)), "A", "B")
    assert comparison.scope == scope
    assert ("few_families" in {warning.code for warning in comparison.warnings}) == (n_families < 6)
    assert "few_tasks" not in {warning.code for warning in comparison.warnings}


def test_planned_families_decide_the_scope() -> None:
    means, family = drawn(4, 2)
    table = table_of(means, family, planned_tasks=16, planned_families=8)
    assert st.compare(table, "A", "B").scope == "tasks_like_these"


def test_sign_flips_turn_whole_families() -> None:
    means, family = drawn(7, 5)
    opinion = st.compare(table_of(means, family), "A", "B").second_opinion
    assert opinion is not None
    by_family = (means[0] - means[1]).reshape(7, 5).mean(axis=1)
    assert opinion.p_value == pytest.approx(st.sign_flip(by_family))


def test_families_that_tie_while_their_tasks_differ_are_no_ties() -> None:
    means = np.array([[0.6, 0.4] * 6, [0.4, 0.6] * 6])
    comparison = st.compare(table_of(means, [f"f{task // 2}" for task in range(12)]), "A", "B")
    assert (comparison.reason, comparison.p_value) == ("zero_variance", 1.0)


def test_share_of_variance_has_no_range_where_tasks_share_families() -> None:
    means, family = drawn(6, 4)
    alone = st.variance_components(table_of(means, [""] * 24), "A")
    grouped = st.variance_components(table_of(means, family), "A")
    assert alone.icc1_ci95 is not None
    assert (grouped.icc1, grouped.icc1_ci95) == (alone.icc1, None)


def test_friedman_ranks_families() -> None:
    means, family = drawn(6, 4, candidates=3)
    answer = st.friedman(table_of(means, family))
    expected = scipy_stats.friedmanchisquare(*means.reshape(3, 6, 4).mean(axis=2))
    assert answer.n_tasks == 6
    assert answer.p_value == pytest.approx(expected.pvalue)


def test_strengths_cluster_comparisons_by_family() -> None:
    means, family = drawn(24, 3, candidates=2)
    strengths = st.strengths(table_of(means, family, joint=True))
    assert strengths.n_tasks == 24


def test_partial_review_counts_families() -> None:
    rng = np.random.default_rng(3)
    task = np.repeat(np.arange(24), 3)
    judge = np.clip(0.6 + rng.normal(0, 0.1, 8).repeat(3)[task] + rng.normal(0, 0.05, 72), 0, 1)
    human = np.where(np.arange(72) % 3 == 0, np.clip(judge + 0.02, 0, 1), np.nan)
    alone = st.partial_review(task, judge, human, random=True)
    grouped = st.partial_review(task, judge, human, random=True, family=task // 3)
    assert grouped.calibrated.mean == pytest.approx(alone.calibrated.mean)
    assert alone.calibrated.df == pytest.approx(22.0)  # tuning the weight of the judge costs one
    assert grouped.calibrated.df == pytest.approx(6.0)
    few = st.partial_review(task, judge, human, random=True, family=task // 8)
    assert {few.vetted_only.reason, few.calibrated.reason} == {"need_at_least_4_families"}


def test_anytime_evidence_counts_families() -> None:
    means, family = drawn(9, 4, seed=11)
    table = table_of(means, family)
    comparison = st.compare(table, "A", "B")
    evidence = anytime_difference(table, comparison)
    assert (evidence.unit, evidence.n) == ("family", 9)
    by_family = (means[0] - means[1]).reshape(9, 4).mean(axis=1)
    t = float(by_family.mean() / (by_family.std(ddof=1) / 3))
    assert evidence.e_value == pytest.approx(st.e_value(t, 9).e_value)
    assert anytime_mean(table, st.estimate(table, "A")).unit == "family"
    # Families of unequal size have a range as well, where tasks of unequal weight have none.
    uneven = table_of(means, [*family[:-2], "f7", "f7"])
    assert anytime_difference(uneven, st.compare(uneven, "A", "B")).ci95 is not None


def test_plan_counts_new_families_and_not_new_tasks_of_old_ones() -> None:
    means, family = drawn(8, 5)
    design = st.design_variances(table_of(means, family), "A", "B")
    assert design is not None
    plan = st.plan(design, detect=0.02)
    alone = st.plan(st.DesignVariances(**{**vars_of(design), "n_families": None}), detect=0.02)
    assert plan.families_needed is not None
    assert alone.tasks_needed is not None
    assert plan.tasks_needed == 5 * plan.families_needed
    assert plan.tasks_needed > 1.5 * alone.tasks_needed
    assert plan.std_err == pytest.approx(
        st.compare(table_of(means, family), "A", "B").std_err, rel=1e-6
    )


def vars_of(design: st.DesignVariances) -> dict[str, Any]:
    return {name: getattr(design, name) for name in design.__dataclass_fields__}


def test_two_families_of_one_task_name_the_row() -> None:
    with pytest.raises(ValueError, match=r"row 1 .*family 'b' differs from 'a'"):
        st.ScoreTable.from_columns(
            task=["t", "t"], candidate=["A", "B"], trial=[1, 1], score=[0.1, 0.2], family=["a", "b"]
        )


def test_kept_cells_carry_families() -> None:
    means, family = drawn(8, 3, candidates=3)
    table = table_of(means, family)
    assert repr(st.report(st.kept_cells(table))) == repr(st.report(table))
    cells = st.Cells.from_codes(
        table.task_codes,
        table.candidate_codes,
        table.score,
        n_tasks=24,
        n_candidates=3,
        family=np.repeat(np.arange(8), 3),
    )
    assert st.compare(cells, 0, 1).p_value == pytest.approx(st.compare(table, "A", "B").p_value)


def test_equal_candidates_are_seldom_told_apart_in_families() -> None:
    """8 families of 6 tasks: the test over tasks called a false winner in 32 of 100 benchmarks."""
    rng = np.random.default_rng(20261122)
    shared = rng.normal(0.0, 1.0, (4000, 8)).repeat(6, axis=1)
    differences = shared + rng.normal(0.0, 1.0, shared.shape)
    weights, family = np.ones(48), np.repeat(np.arange(8), 6)

    def false_winners(moments: Any) -> float:
        t = moments.estimate / np.sqrt(moments.variance)
        return float((2 * scipy_stats.t.sf(np.abs(t), moments.df) <= 0.05).mean())

    # 0.05 plus three standard errors of a share from 4,000 benchmarks.
    assert false_winners(across(differences, weights, family)) <= 0.06
    assert false_winners(across_tasks(differences, weights)) > 0.25
