"""Scope of statistical questions, refusals, and reasons given instead of a number."""

import pytest

from assay.statistics import ScoreTable, compare, estimate, rank


def table(cells: dict[tuple[str, str], list[float]], **more: object) -> ScoreTable:
    rows = [
        (task, who, k, score)
        for (task, who), scores in cells.items()
        for k, score in enumerate(scores)
    ]
    task, candidate, trial, score = (list(column) for column in zip(*rows, strict=True))
    return ScoreTable.from_columns(task=task, candidate=candidate, trial=trial, score=score, **more)  # type: ignore[arg-type]  # keywords passed through


def spread(tasks: int, trials: int = 3) -> dict[tuple[str, str], list[float]]:
    return {
        (f"t{t}", who): [
            round(0.5 + 0.01 * ((7 * t + 3 * k + shift) % 11), 3) for k in range(trials)
        ]
        for t in range(tasks)
        for who, shift in (("A", 0), ("B", 4))
    }


def codes(found: object) -> list[str]:
    return [one.code for one in found.warnings]  # type: ignore[attr-defined]  # estimates and comparisons alike


@pytest.mark.parametrize(
    ("tasks", "scope"),
    [(1, "this_task_only"), (2, "these_tasks"), (5, "these_tasks"), (6, "tasks_like_these")],
)
def test_the_default_scope_follows_the_number_of_tasks(tasks: int, scope: str) -> None:
    scores = table(spread(tasks))
    assert estimate(scores, "A").scope == scope
    assert compare(scores, "A", "B").scope == scope
    assert rank(scores).scope == scope


def test_planned_tasks_decide_the_scope_before_all_reviews_are_in() -> None:
    scores = table(spread(3), planned_tasks=8)
    comparison = compare(scores, "A", "B")
    assert comparison.scope == "tasks_like_these"
    assert "few_tasks" in codes(comparison)


def test_few_tasks_show_the_wide_answer_beside_the_narrow_one() -> None:
    comparison = compare(table(spread(4)), "A", "B")
    assert comparison.other_scope is not None
    assert comparison.other_scope.scope == "tasks_like_these"
    assert "few_tasks" in codes(comparison)


def test_few_tasks_with_nowhere_two_trials_speak_of_tasks_like_these() -> None:
    scores = table(spread(3, trials=1))
    assert compare(scores, "A", "B").scope == "tasks_like_these"
    assert estimate(scores, "A").scope == "tasks_like_these"


def test_one_shared_task_of_many_is_told_about_that_task_only() -> None:
    cells = spread(7)
    for t in range(1, 7):
        del cells[(f"t{t}", "B")]
    comparison = compare(table(cells), "A", "B")
    assert (comparison.scope, comparison.method) == ("this_task_only", "welch_t")
    assert {"one_shared_task", "dropped_tasks"} <= set(codes(comparison))
    assert comparison.dropped_tasks == tuple(f"t{t}" for t in range(1, 7))


def test_one_task_cannot_speak_for_others() -> None:
    scores = table(spread(1))
    result = estimate(scores, "A", "tasks_like_these")
    assert (result.ci95, result.reason) == (None, "need_at_least_2_tasks")
    assert result.other_scope is not None
    assert result.other_scope.scope == "this_task_only"
    assert compare(scores, "A", "B", "tasks_like_these").reason == "need_at_least_2_tasks"


def test_constant_cells_give_no_interval_for_these_tasks() -> None:
    scores = table(
        {
            ("t0", "A"): [0.8] * 3,
            ("t1", "A"): [0.6] * 3,
            ("t0", "B"): [0.7] * 3,
            ("t1", "B"): [0.9] * 3,
        }
    )
    one, pair = estimate(scores, "A"), compare(scores, "A", "B")
    assert one.mean == pytest.approx(0.7)
    assert (one.ci95, one.reason) == (None, "zero_variance")
    assert (pair.ci95, pair.p_value, pair.reason, pair.decision) == (
        None,
        None,
        "zero_variance",
        "not_decided",
    )


def test_ties_everywhere_are_no_difference_with_certainty_one() -> None:
    same = [0.5, 0.6, 0.7]
    scores = table({(f"t{t}", who): same for t in range(6) for who in "AB"})
    comparison = compare(scores, "A", "B")
    assert (comparison.difference, comparison.p_value, comparison.ci95, comparison.reason) == (
        0.0,
        1.0,
        None,
        "all_ties",
    )
    assert comparison.prob_superiority == 0.5


def test_identical_scores_get_a_bounded_interval_and_a_warning() -> None:
    result = estimate(table({("t0", "A"): [1.0] * 5}), "A")
    assert result.ci95 == pytest.approx((0.05 ** (1 / 5), 1.0))
    assert (result.reason, codes(result)) == (None, ["zero_variance"])


def test_a_weight_of_zero_leaves_the_task_out_and_none_left_is_no_weight() -> None:
    cells = spread(2)
    weight = [1.0 if task == "t0" else 0.0 for (task, _), scores in cells.items() for _ in scores]
    assert estimate(table(cells, weight=weight), "A").n_tasks == 1
    assert estimate(table(cells, weight=[0.0] * len(weight)), "A").reason == "no_weight"
    assert compare(table(cells, weight=[0.0] * len(weight)), "A", "B").reason == "no_weight"


def test_an_unknown_candidate_has_no_approved_trials() -> None:
    scores = table(spread(2))
    assert estimate(scores, "nobody").reason == "no_approved_trials"
    assert compare(scores, "A", "nobody").reason == "no_approved_trials"


def test_different_tasks_are_never_compared() -> None:
    comparison = compare(table({("t0", "A"): [0.5, 0.6], ("t1", "B"): [0.5, 0.6]}), "A", "B")
    assert (comparison.difference, comparison.reason) == (None, "no_shared_tasks")


def test_repeated_judge_calls_are_one_trial() -> None:
    scores = ScoreTable.from_columns(
        task=["t"] * 4, candidate=["A"] * 4, trial=[1, 1, 2, 2], score=[0.5, 0.7, 0.8, 0.8]
    )
    result = estimate(scores, "A")
    assert result.n_trials == 2
    assert result.mean == pytest.approx(0.7)


def test_a_joint_task_with_one_trial_borrows_the_noise_of_the_others() -> None:
    cells = {
        ("t0", "A"): [0.5, 0.6, 0.7],
        ("t0", "B"): [0.4, 0.6, 0.5],
        ("t1", "A"): [0.6],
        ("t1", "B"): [0.5],
    }
    comparison = compare(table(cells, joint=True), "A", "B", "these_tasks")
    # d = .1, 0, .2: s² = .01; c = W²/n + W²·ν/ν with W = 1/2.
    assert comparison.std_err == pytest.approx(((0.25 / 3 + 0.25) * 0.01) ** 0.5)
    assert comparison.df == pytest.approx(2.0)
    assert "single_trial_tasks" in codes(comparison)


def test_a_joint_trial_of_one_side_only_is_left_out_with_a_warning() -> None:
    cells = {("t0", "A"): [0.5, 0.6, 0.7, 0.9], ("t0", "B"): [0.4, 0.6, 0.5]}
    comparison = compare(table(cells, joint=True), "A", "B")
    assert (comparison.n_trials_a, comparison.method) == (3, "paired_trials_t")
    assert "unpaired_trials_left_out" in codes(comparison)


def test_undecided_comparison_states_the_trials_needed() -> None:
    comparison = compare(table(spread(8)), "A", "B")
    assert comparison.decision == "not_decided"
    assert comparison.to_decide is not None
    assert comparison.to_decide.tasks_needed is not None
    assert comparison.to_decide.tasks_needed > 8


def one_heavy(weight: float, *, family: bool = False) -> ScoreTable:
    cells = spread(10)
    weights = {f"t{t}": weight if t == 3 else 1.0 for t in range(10)}
    more: dict[str, object] = {
        "weight": [weights[task] for (task, _), scores in cells.items() for _ in scores]
    }
    if family:
        more["family"] = [int(task[1:]) // 2 for (task, _), scores in cells.items() for _ in scores]
    return table(cells, **more)


@pytest.mark.parametrize("family", [False, True])
@pytest.mark.parametrize("weight", [1e3, 1e12])
def test_one_task_with_nearly_all_the_weight_decides_nothing_about_others(
    weight: float, family: bool
) -> None:
    scores = one_heavy(weight, family=family)
    result = compare(scores, "A", "B", "tasks_like_these", margin=0.5)
    assert result.n_eff is not None
    assert result.n_eff < 2
    assert (result.decision, result.reason, result.p_value) == (
        "not_decided",
        "need_at_least_2_effective_tasks",
        None,
    )
    assert (result.equivalence, result.non_inferiority) == (None, None)
    assert f"one_{'family' if family else 'task'}_dominates" in codes(result)
    assert rank(scores, "tasks_like_these").pairs[0].reason == "need_at_least_2_effective_tasks"


def test_two_effective_tasks_are_enough_to_be_tested() -> None:
    result = compare(table(spread(2)), "A", "B", "tasks_like_these")
    assert result.n_eff == pytest.approx(2.0)
    assert result.p_value is not None
    assert compare(one_heavy(2.0), "A", "B").p_value is not None
