"""Laws that hold for every table of scores, whatever is in it."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as some
from scipy import stats as scipy_stats  # type: ignore[import-untyped]  # SciPy ships no types

from assay import statistics as st

SCORES = some.one_of(
    some.floats(0.0, 1.0),
    some.sampled_from([0.0, 1.0]),
    some.integers(0, 20).map(lambda k: k / 20),
    some.sampled_from([0.8, 0.8 + 1e-15, 1e-300, 5e-324, 1.0 - 2**-53]),
)
WEIGHTS = some.one_of(
    some.none(),
    some.lists(
        some.sampled_from([0.0, 1.0, 2.0, 5.0, 1e-9, 1e-300, 1e300]), min_size=8, max_size=8
    ),
    some.lists(some.floats(0.0, 10.0), min_size=8, max_size=8),
)
SCOPES = some.sampled_from([None, "tasks_like_these", "these_tasks"])
MARGINS = some.sampled_from([None, 0.03, 0.5])
Rows = list[tuple[str, str, int, float]]


@some.composite
def rows(draw: some.DrawFn, *, most_tasks: int = 8, repeated_calls: bool = True) -> Rows:
    cells = draw(
        some.dictionaries(
            some.tuples(some.integers(0, most_tasks - 1), some.sampled_from("ABC")),
            some.lists(SCORES, min_size=1, max_size=5),
            max_size=20,
        )
    )
    items = [
        (f"t{task}", name, k, s)
        for (task, name), scores in cells.items()
        for k, s in enumerate(scores)
    ]
    if repeated_calls and items and draw(some.booleans()):
        items += draw(some.lists(some.sampled_from(items), max_size=4))
    return items


def table(
    found: Rows,
    weights: Sequence[float] | None = None,
    joint: Any = False,
    planned: int | None = None,
) -> st.ScoreTable:
    of_task = None if weights is None else [weights[int(task[1:])] for task, _, _, _ in found]
    return st.ScoreTable.from_columns(
        task=[row[0] for row in found],
        candidate=[row[1] for row in found],
        trial=[row[2] for row in found],
        score=[row[3] for row in found],
        weight=of_task,
        joint=joint,
        planned_tasks=planned,
    )


def numbers_in(value: object, where: str = "") -> list[tuple[str, float]]:
    """Every number in a result, its computed properties included, with the way to it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        names += [
            name for name, member in vars(type(value)).items() if isinstance(member, property)
        ]
        return [
            pair for name in names for pair in numbers_in(getattr(value, name), f"{where}.{name}")
        ]
    if isinstance(value, (tuple, list)):
        return [pair for i, one in enumerate(value) for pair in numbers_in(one, f"{where}[{i}]")]
    if isinstance(value, np.ndarray):
        return (
            [(where, float(one)) for one in value.reshape(-1)] if value.dtype.kind in "fiu" else []
        )
    if isinstance(value, (bool, str)) or value is None:
        return []
    return [(where, float(value))] if isinstance(value, (int, float)) else []


def assert_finite(value: object) -> None:
    wrong = [(where, number) for where, number in numbers_in(value) if not math.isfinite(number)]
    assert not wrong, wrong


def assert_reason_only_where_null(found: st.Comparison | st.Estimate) -> None:
    p_value = found.p_value if isinstance(found, st.Comparison) else 0.0
    missing = found.mean is None if isinstance(found, st.Estimate) else found.difference is None
    assert (found.reason is not None) == (missing or found.ci95 is None or p_value is None)


close = pytest.approx


@given(rows(), WEIGHTS, some.booleans(), some.none() | some.integers(0, 9), SCOPES, MARGINS)
def test_no_answer_holds_nan_or_infinity_and_none_raises(
    found: Rows,
    weights: list[float] | None,
    joint: bool,
    planned: int | None,
    scope: str | None,
    margin: float | None,
) -> None:
    scores = table(found, weights, joint, planned)
    kept = st.kept_cells(scores)
    rng = np.random.default_rng(1)
    for name in ("A", "B", "nobody"):
        one = st.estimate(scores, name, scope)
        assert_finite(one)
        assert_reason_only_where_null(one)
        assert_finite(st.variance_components(scores, name))
        assert_finite(st.coverage(scores, name, 5))
    for a, b in (("A", "B"), ("B", "C"), ("A", "nobody")):
        pair = st.compare(scores, a, b, scope, margin, rng=rng)
        assert_finite(pair)
        assert_reason_only_where_null(pair)
        assert_finite(st.compare(kept, a, b, scope, margin))
        assert_finite(st.effect_size(scores, a, b))
    assert_finite(st.report(scores, scope, margin))
    assert_finite(st.report(kept, scope, margin))
    assert_finite(st.friedman(scores))
    assert_finite(st.strengths(scores))


@given(rows(), WEIGHTS, some.booleans(), SCOPES, MARGINS)
def test_swapping_the_candidates_flips_signs_and_nothing_else(
    found: Rows, weights: list[float] | None, joint: bool, scope: str | None, margin: float | None
) -> None:
    scores = table(found, weights, joint)
    one, other = (
        st.compare(scores, "A", "B", scope, margin),
        st.compare(scores, "B", "A", scope, margin),
    )
    for name in ("difference", "t", "d_total"):
        value = getattr(other, name)
        assert getattr(one, name) == (None if value is None else close(-value, rel=1e-9, abs=1e-12))
    assert one.ci95 == (
        None if other.ci95 is None else close((-other.ci95[1], -other.ci95[0]), rel=1e-9, abs=1e-12)
    )
    for name in ("std_err", "df", "p_value"):
        assert getattr(one, name) == (
            None if getattr(other, name) is None else close(getattr(other, name), rel=1e-9)
        )
    for name in (
        "scope",
        "method",
        "reason",
        "effect_label",
        "significant",
        "n_tasks",
        "tasks_tied",
        "dropped_tasks",
    ):
        assert getattr(one, name) == getattr(other, name)
    assert (one.mean_a, one.n_trials_a, one.tasks_won) == (
        other.mean_b,
        other.n_trials_b,
        other.tasks_lost,
    )
    flipped = {"better": "worse", "worse": "better"}
    assert one.decision == flipped.get(other.decision, other.decision)
    if one.prob_superiority is not None and other.prob_superiority is not None:
        assert one.prob_superiority + other.prob_superiority == close(1.0)
    if one.equivalence is not None and other.equivalence is not None:
        assert one.equivalence.p_value == close(other.equivalence.p_value, rel=1e-6, abs=1e-12)


@given(rows(repeated_calls=False), WEIGHTS, some.booleans(), SCOPES, some.floats(0.01, 0.5))
def test_adding_a_constant_to_both_changes_no_difference(
    found: Rows, weights: list[float] | None, joint: bool, scope: str | None, shift: float
) -> None:
    halved = [(task, name, k, round(s / 2, 6)) for task, name, k, s in found]
    moved = [(task, name, k, s + shift) for task, name, k, s in halved]
    one, other = (
        st.compare(table(each, weights, joint), "A", "B", scope) for each in (halved, moved)
    )
    assert one.reason == other.reason
    for name in ("difference", "std_err", "p_value", "ci95"):
        value = getattr(other, name)
        assert getattr(one, name) == (None if value is None else close(value, rel=1e-6, abs=1e-9))


@given(rows(), WEIGHTS, some.booleans(), some.randoms(use_true_random=False))
def test_the_order_of_the_rows_is_irrelevant(
    found: Rows, weights: list[float] | None, joint: bool, mix: Any
) -> None:
    shuffled = list(found)
    mix.shuffle(shuffled)
    one, other = (st.report(table(each, weights, joint)) for each in (found, shuffled))
    assert_same(one, other)
    pair, again = (st.compare(table(each, weights, joint), "A", "B") for each in (found, shuffled))
    assert_same(pair, again)


@given(rows(), some.booleans(), some.permutations(range(8)))
def test_permuting_the_names_of_the_tasks_changes_nothing(
    found: Rows, joint: bool, names: list[int]
) -> None:
    renamed = [(f"t{names[int(task[1:])]}", name, k, s) for task, name, k, s in found]
    one, other = (st.compare(table(each, joint=joint), "A", "B") for each in (found, renamed))
    for name in (
        "difference",
        "ci95",
        "std_err",
        "p_value",
        "prob_superiority",
        "d_total",
        "decision",
        "reason",
    ):
        value = getattr(other, name)
        same = (
            value if value is None or isinstance(value, str) else close(value, rel=1e-9, abs=1e-12)
        )
        assert getattr(one, name) == same


def assert_same(one: object, other: object) -> None:
    first, second = numbers_in(one), numbers_in(other)
    assert [where for where, _ in first] == [where for where, _ in second]
    assert [number for _, number in first] == close(
        [number for _, number in second], rel=1e-7, abs=1e-10
    )


@given(rows(), WEIGHTS, some.booleans(), SCOPES)
def test_kept_cells_and_the_table_give_the_same_answers(
    found: Rows, weights: list[float] | None, joint: bool, scope: str | None
) -> None:
    scores = table(found, weights, joint)
    kept = st.kept_cells(scores)
    assert_same(st.report(scores, scope), st.report(kept, scope))
    one, other = st.compare(scores, "A", "B", scope), st.compare(kept, "A", "B", scope)
    for name in ("difference", "ci95", "std_err", "p_value", "d_total", "n_trials_a"):
        value = getattr(other, name)
        assert getattr(one, name) == (None if value is None else close(value, rel=1e-9, abs=1e-12))


def spread_out(*columns: Any) -> bool:
    return all(np.ptp(np.asarray(column)) > 1e-6 for column in columns)


@given(
    some.lists(some.floats(0, 1), min_size=2, max_size=12),
    some.lists(some.floats(0, 1), min_size=2, max_size=12),
)
def test_one_task_graded_apart_is_welch(a: list[float], b: list[float]) -> None:
    assume(spread_out(a, b))
    result = [("t0", "A", k, s) for k, s in enumerate(a)] + [
        ("t0", "B", k, s) for k, s in enumerate(b)
    ]
    one = st.compare(table(result), "A", "B")
    welch = scipy_stats.ttest_ind(a, b, equal_var=False)
    interval = welch.confidence_interval()
    assert one.p_value == close(welch.pvalue, rel=1e-7, abs=1e-12)
    assert one.ci95 == close((interval.low, interval.high), rel=1e-7, abs=1e-9)
    assert one.prob_superiority == close(
        scipy_stats.mannwhitneyu(np.round(a, 12), np.round(b, 12)).statistic / (len(a) * len(b))
    )


@given(some.lists(some.tuples(some.floats(0, 1), some.floats(0, 1)), min_size=2, max_size=12))
def test_one_task_graded_jointly_is_the_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    assume(spread_out([a - b for a, b in pairs]))
    items = [
        ("t0", name, k, pair[i]) for k, pair in enumerate(pairs) for i, name in enumerate("AB")
    ]
    one = st.compare(table(items, joint=True), "A", "B")
    paired = scipy_stats.ttest_rel(*zip(*pairs, strict=True))
    assert one.method == "paired_trials_t"
    assert one.p_value == close(paired.pvalue, rel=1e-6, abs=1e-12)


@given(some.lists(some.tuples(some.floats(0, 1), some.floats(0, 1)), min_size=6, max_size=14))
def test_equal_weights_over_tasks_are_the_paired_t_test_on_task_means(
    pairs: list[tuple[float, float]],
) -> None:
    d = np.array([a - b for a, b in pairs])
    assume(spread_out(d))
    items = [
        (f"t{task}", name, 0, pair[i])
        for task, pair in enumerate(pairs)
        for i, name in enumerate("AB")
    ]
    one = st.compare(table(items), "A", "B")
    assert one.method == "cr2_kish_paired_t"
    assert one.p_value == close(scipy_stats.ttest_1samp(d, 0.0).pvalue, rel=1e-6, abs=1e-12)
    flips = np.array(np.meshgrid(*[[1.0, -1.0]] * len(d))).reshape(len(d), -1)
    sums = np.abs(d @ flips)
    assert st.sign_flip(d) == close(
        float((sums >= abs(d.sum()) - 1e-12 * len(d)).mean()), abs=2.5 / 2 ** len(d)
    )


@given(some.lists(some.floats(1e-12, 1.0), min_size=1, max_size=30))
def test_holm_and_benjamini_hochberg_match_scipy_and_definition(p: list[float]) -> None:
    result = st.multiplicity(p)
    assert list(result.bh) == close(scipy_stats.false_discovery_control(p).tolist())
    order = np.argsort(p, kind="stable")
    stepped = [
        max(min(1.0, (len(p) - j) * p[order[j]]) for j in range(k + 1)) for k in range(len(p))
    ]
    assert [result.holm[i] for i in order] == close(stepped)


@given(some.integers(0, 12), some.integers(0, 12), some.integers(0, 12), some.integers(0, 12))
def test_two_rates_are_fishers_exact_test(a: int, b: int, c: int, d: int) -> None:
    assume(a + b and c + d)
    result = st.approval_rates(["A", "B"], [a, c], [a + b, c + d])
    assert result.p_value == close(
        scipy_stats.fisher_exact([[a, b], [c, d]]).pvalue, rel=1e-6, abs=1e-12
    )


@given(
    some.lists(some.tuples(some.integers(0, 6), SCORES), min_size=1, max_size=30),
    some.floats(0.1, 5),
    SCORES,
)
def test_interval_alpha_ignores_scale_shift_and_units_rated_once(
    ratings: list[tuple[int, float]], scale: float, lonely: float
) -> None:
    unit, score = [u for u, _ in ratings], [s for _, s in ratings]
    one = st.krippendorff_alpha(unit, score)
    assert_finite(one)
    moved = st.krippendorff_alpha([*unit, 99], [*(scale * s + 3 for s in score), lonely])
    pairable = [s for u, s in ratings if unit.count(u) > 1]
    if pairable and spread_out(pairable):
        assert (moved.alpha is None) == (one.alpha is None)
    if one.alpha is not None and moved.alpha is not None and spread_out(pairable):
        assert moved.alpha == close(one.alpha, rel=1e-5, abs=1e-5)


@given(
    some.lists(some.sampled_from(["left", "right", "tie"]), min_size=1, max_size=40), some.data()
)
def test_strengths_are_finite_or_named_as_separated(
    outcomes: list[str], data: some.DataObject
) -> None:
    pairs = some.sampled_from([("A", "B"), ("B", "A"), ("A", "C"), ("C", "B"), ("D", "E")])
    met = [data.draw(pairs) for _ in outcomes]
    tasks = [data.draw(some.integers(0, 3)) for _ in outcomes]
    result = st.bradley_terry([a for a, _ in met], [b for _, b in met], outcomes, task=tasks)
    assert_finite(result)
    for item, strength in zip(result.items, result.log_strength, strict=True):
        assert (strength is None) == (item in result.separated)
    assert (result.reason is None) == (not result.separated)
    for a in result.items:
        for b in result.items:
            if a != b:
                assert_finite(result.contrast(a, b))


@given(some.lists(some.tuples(SCORES, SCORES), max_size=12), some.lists(SCORES, max_size=15))
def test_calibration_and_correction_never_give_nan(
    pairs: list[tuple[float, float]], rest: list[float]
) -> None:
    judge, human = [a for a, _ in pairs], [b for _, b in pairs]
    assert_finite(st.calibration(judge, human))
    assert_finite(st.ppi(human, judge, rest))
    task = [k % 4 for k in range(len(judge) + len(rest))]
    seen = [*human, *[math.nan] * len(rest)]
    assert_finite(st.partial_review(task, [*judge, *rest], seen, random=True))
    assert_finite(
        st.cohen_kappa(
            [round(a, 1) for a in judge], [round(b, 1) for b in human], weights="quadratic"
        )
    )
    differences = [a - b for a, b in pairs]
    assert_finite(
        st.selective_rejection(
            [k % 3 for k in range(len(judge))], differences, [a > b for a, b in pairs]
        )
    )


RATINGS = some.lists(
    some.tuples(some.integers(0, 5), some.integers(0, 3), SCORES),
    max_size=24,
    unique_by=lambda rating: rating[:2],
)


@given(RATINGS)
def test_intraclass_correlations_are_finite(ratings: list[tuple[int, int, float]]) -> None:
    assert_finite(
        st.icc([u for u, _, _ in ratings], [r for _, r, _ in ratings], [s for _, _, s in ratings])
    )


@given(
    some.floats(0, 0.2),
    some.floats(0, 0.2),
    some.integers(0, 60),
    some.floats(1, 20),
    some.floats(0.001, 0.5),
    some.sampled_from(["tasks_like_these", "these_tasks"]),
)
@example(0.0, 0.0, 2, 1.0, 0.001, "tasks_like_these")
def test_plan_reaches_its_promised_power(
    interaction: float, trial: float, n_tasks: int, n_trials: float, detect: float, scope: str
) -> None:
    design = st.DesignVariances(
        interaction=interaction, trial=trial, n_tasks=n_tasks, n_trials=n_trials
    )
    plan = st.plan(design, detect=detect, scope=scope, cost_task=1.0, cost_trial=0.1)
    assert_finite(plan)
    if plan.tasks_needed is not None:
        wider = dataclasses.replace(design, n_tasks=plan.tasks_needed)
        assert (st.plan(wider, detect=detect, scope=scope).mde or 0.0) <= detect * (1 + 1e-9)
    if plan.trials_needed is not None:
        longer = dataclasses.replace(design, n_trials=float(plan.trials_needed))
        assert (st.plan(longer, detect=detect, scope=scope).mde or 0.0) <= detect * (1 + 1e-9)


WRONG: list[tuple[str, Callable[[], object]]] = [
    ("row 1", lambda: table([("t0", "A", 0, 0.5), ("t0", "A", 1, math.nan)])),
    ("row 0", lambda: table([("t0", "A", 0, 1.2)])),
    ("row 0", lambda: table([("t0", "A", 0, 0.5)], [-1.0] * 8)),
    ("row 0", lambda: table([("t0", "A", 0, 0.5)], [math.nan] * 8)),
    (
        "row 1",
        lambda: st.ScoreTable.from_columns(
            task=[1, 1], candidate=["A", "B"], trial=[1, 1], score=[0, 1], weight=[1, 2]
        ),
    ),
    (
        "the same length",
        lambda: st.ScoreTable.from_columns(
            task=[1], candidate=["A", "B"], trial=[1, 1], score=[0, 1]
        ),
    ),
    ("scope", lambda: st.estimate(table([("t0", "A", 0, 0.5)]), "A", "everything")),
    ("margin", lambda: st.compare(table([("t0", "A", 0, 0.5)]), "A", "B", margin=1.0)),
    ("different", lambda: st.compare(table([("t0", "A", 0, 0.5)]), "A", "A")),
]


@pytest.mark.parametrize(("said", "attempt"), WRONG)
def test_a_wrong_argument_is_refused_by_name(said: str, attempt: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=said):
        attempt()
