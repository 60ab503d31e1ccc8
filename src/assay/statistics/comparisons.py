"""Comparison of two candidates: difference, test, interval, and the data needed to decide it.

Theory. `contrasts` computes the results in both scopes. The caller, or the rule in `scopes`,
chooses the scope of the headline; the result in the second scope is in `other_scope`. Effect sizes,
second opinion and plan accompany the headline but never change its decision. Only a margin can turn
"not decided" into "equivalent".
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import comb

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Bools, Floats, Interval, Ints
from assay.statistics.cells import Cells
from assay.statistics.contrasts import Contrasts, LikeThese, ScopedDifference, TheseTasks
from assay.statistics.designs import variances_of
from assay.statistics.effects import EffectSizes, effect_sizes_from_moments
from assay.statistics.equivalence import (
    Equivalence,
    NonInferiority,
    checked_margin,
    not_worse,
    two_one_sided,
)
from assay.statistics.exact import FEWEST_FOR_FIVE_PERCENT, label_permutation, sign_flip
from assay.statistics.families import by_family
from assay.statistics.identical_tasks import identical_tasks
from assay.statistics.other_scope import why_withheld, wider_here, withheld
from assay.statistics.paired_trials import paired_rows
from assay.statistics.planning import Plan, plan
from assay.statistics.scopes import TASKS_LIKE_THESE, THIS_TASK_ONLY, checked_scope, default_scope
from assay.statistics.superiority import Superiority, superiority
from assay.statistics.table import ScoreTable
from assay.statistics.warnings import Caution, about_sample, caution, few_names

ALPHA = 0.05
# The number of tasks needed grows with 1 / difference², so a tiny observed difference would need
# absurd numbers.
SMALLEST_DIFFERENCE_WORTH_PLANNING = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondOpinion:
    """A permutation test that checks the t-test; `about` is the scope that it tests.

    Its p-value is None for one of these reasons: `permutation_cannot_reach_alpha` (too few
    observations), `needs_generator` (too many observations for an exact count, and no random
    generator was passed) or `needs_rows` (cells do not store single scores).
    """

    method: str
    p_value: float | None
    about: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDifference:
    """Both candidates' results on one shared task."""

    task: Hashable
    mean_a: float
    mean_b: float
    difference: float
    n_trials_a: int
    n_trials_b: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedColumns:
    """Results on shared tasks as arrays of shape (shared tasks,); `family` is None if tasks do not
    share families.
    """

    tasks: tuple[Hashable, ...]
    mean_a: Floats
    mean_b: Floats
    n_a: Floats
    n_b: Floats
    weight: Floats
    family: Ints | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Comparison of A with B on the tasks for which both have counted trials.

    `difference`: a - b, with scores between 0 and 1; `points` is 100 times that. `decision`: better
    or worse if p <= .05; else equivalent if a margin was set and the equivalence test passes; else
    not_decided. `reason`: set only if the interval or the p-value is None. `other_scope`: the
    result for new tasks if the headline is about these tasks, and vice versa. `to_decide`: the data
    needed to decide an undecided comparison.
    """

    a: Hashable
    b: Hashable
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    points: float | None = None
    ci95: Interval | None = None
    std_err: float | None = None
    t: float | None = None
    df: float | None = None
    p_value: float | None = None
    significant: bool = False
    decision: str = "not_decided"
    equivalence: Equivalence | None = None
    non_inferiority: NonInferiority | None = None
    prob_superiority: float | None = None
    prob_superiority_ci95: Interval | None = None
    d_total: float | None = None
    effect_label: str | None = None
    effects: EffectSizes | None = None
    tasks_won: int = 0
    tasks_lost: int = 0
    tasks_tied: int = 0
    n_tasks: int = 0
    n_families: int | None = None
    n_eff: float | None = None
    n_trials_a: int = 0
    n_trials_b: int = 0
    scope: str
    method: str | None = None
    reason: str | None
    warnings: tuple[Caution, ...] = ()
    other_scope: ScopedDifference | None = None
    second_opinion: SecondOpinion | None = None
    to_decide: Plan | None = None
    dropped_tasks: tuple[Hashable, ...] = ()
    columns: SharedColumns = field(repr=False, compare=False)

    @property
    def by_task(self) -> tuple[TaskDifference, ...]:
        """Return both candidates' results on each shared task, in label order."""
        columns = self.columns
        return tuple(
            TaskDifference(
                task=task,
                mean_a=float(columns.mean_a[i]),
                mean_b=float(columns.mean_b[i]),
                difference=float(columns.mean_a[i] - columns.mean_b[i]),
                n_trials_a=int(columns.n_a[i]),
                n_trials_b=int(columns.n_b[i]),
                weight=float(columns.weight[i]),
            )
            for i, task in enumerate(columns.tasks)
        )


def compare(
    scores: ScoreTable | Cells,
    a: Hashable,
    b: Hashable,
    scope: str | None = None,
    margin: float | None = None,
    *,
    rng: np.random.Generator | None = None,
) -> Comparison:
    """Compute the difference a - b with its test, interval, effect sizes and a plan to decide it.

    For new tasks of the same kind, it uses one difference per shared task, the CR2 variance and
    Kish degrees of freedom (with equal weights this is the paired t-test on task means). For reruns
    of the same tasks, it uses Welch's test on one task and a stratified t-test on several. If one
    judge call graded both candidates, it compares them trial by trial.

    Args:
        scores: a table, or cells (sums per task and candidate). Cells give no probability of
            superiority and no label permutation.
        a, b: labels; an unknown label gives the reason `no_approved_trials`.
        scope: `tasks_like_these`, `these_tasks`, or None for the rule in `scopes`.
        margin: smallest difference that matters, strictly between 0 and 1, chosen before seeing the
            data. Without a margin the decision is never "equivalent".
        rng: draws the second opinion's permutations if there are more than 32 tasks; without it
            that second opinion is None.

    Raises ValueError if a and b are the same, the scope is unknown, or the margin is out of range.

    Source: docs/explanation/statistics.md; checked against scipy.stats and statsmodels in
    tests/golden/test_statistics_reference.py.
    """
    if a == b:
        raise ValueError(f"compare takes two different candidates; both are {a!r}")
    asked, margin = checked_scope(scope), checked_margin(margin)
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    code_a, code_b = cells.candidate_code(a), cells.candidate_code(b)
    if code_a is None or code_b is None:
        return _incomparable(
            a, b, asked or default_scope(planned_units=cells.planned_units, repeated=False)
        )
    pair = Contrasts(scores, np.array([code_a]), np.array([code_b]))
    chosen = asked or default_scope(
        planned_units=cells.planned_units, repeated=bool(pair.repeated[0])
    )
    n_shared = int(pair.n_shared[0])
    if n_shared == 0:
        # No unpaired test is used: even on shared tasks it detects 5 points in only 1% of
        # benchmarks, while a paired test does so in 25%.
        return _incomparable(a, b, chosen, reason=_why_nothing_shared(cells, code_a, code_b))
    like, these = LikeThese(pair), TheseTasks(pair)
    by_scope = (like.scoped(0), these.scoped(0))
    # A single shared task says nothing about other tasks, however many were planned, so that scope
    # is used only if the caller asks for it.
    headline_is_like = chosen == TASKS_LIKE_THESE and (n_shared > 1 or asked is not None)
    headline, beside = by_scope if headline_is_like else by_scope[::-1]
    return _Assembly(scores, cells, pair, like, these, headline, beside).comparison(
        a, b, margin, rng
    )


class _Assembly:
    """Builds a `Comparison` from the headline result, the result in the other scope, and the
    additional figures.
    """

    def __init__(
        self,
        scores: ScoreTable | Cells,
        cells: Cells,
        pair: Contrasts,
        like: LikeThese,
        these: TheseTasks,
        headline: ScopedDifference,
        beside: ScopedDifference,
    ) -> None:
        self.scores, self.cells, self.pair, self.like, self.these = scores, cells, pair, like, these
        self.headline, self.beside = headline, beside
        self.one, self.other = int(pair.first[0]), int(pair.second[0])
        self.at = np.flatnonzero(pair.shared[0])
        same = headline.scope != TASKS_LIKE_THESE
        self.n_used = [n[0, self.at] for n in (these.n if same else pair.n)]
        self.task_difference = (these.task_difference if same else pair.difference)[0, self.at]

    def comparison(
        self, a: Hashable, b: Hashable, margin: float | None, rng: np.random.Generator | None
    ) -> Comparison:
        head, at = self.headline, self.at
        cells = self.cells
        equivalence, non_inferiority = against_margin(head, margin)
        effects = effect_sizes_from_moments(self._moments(0), self._moments(1), cells.weight[at])
        win = self._superiority()
        decision = decided(head, equivalence)
        opinion = self._second_opinion(rng)
        dropped = tuple(cells.tasks[i] for i in np.flatnonzero(self._dropped()))
        return Comparison(
            a=a,
            b=b,
            mean_a=head.mean_a,
            mean_b=head.mean_b,
            difference=head.difference,
            points=None if head.difference is None else 100.0 * head.difference,
            ci95=head.ci95,
            std_err=head.std_err,
            t=head.t,
            df=head.df,
            p_value=head.p_value,
            significant=head.p_value is not None and head.p_value <= ALPHA,
            decision=decision,
            equivalence=equivalence,
            non_inferiority=non_inferiority,
            prob_superiority=None if win is None else win.value,
            prob_superiority_ci95=None if win is None else win.ci95,
            d_total=effects.d_total,
            effect_label=effects.effect_label,
            effects=effects,
            tasks_won=int((self.task_difference >= NO_SPREAD).sum()),
            tasks_lost=int((self.task_difference <= -NO_SPREAD).sum()),
            tasks_tied=int((np.abs(self.task_difference) < NO_SPREAD).sum()),
            n_tasks=int(at.size),
            n_families=self._n_families(),
            n_eff=float(self.like.across.n_eff[0]),
            n_trials_a=int(self.n_used[0].sum()),
            n_trials_b=int(self.n_used[1].sum()),
            scope=head.scope,
            method=head.method,
            reason=head.reason,
            warnings=self._warnings(dropped, opinion),
            other_scope=self._other_scope()
            if at.size > 1 or head.scope == TASKS_LIKE_THESE
            else None,
            second_opinion=opinion,
            to_decide=self._to_decide(margin) if decision == "not_decided" else None,
            dropped_tasks=dropped,
            columns=self._columns(),
        )

    def _other_scope(self) -> ScopedDifference:
        reason = why_withheld(self.headline, self.beside, n_tasks=int(self.at.size))
        return self.beside if reason is None else withheld(self.beside, reason)

    def _n_families(self) -> int | None:
        return int(self.like.across.n_units[0]) if self.like.grouped else None

    def _moments(self, side: int) -> tuple[Floats, Floats, Floats]:
        pair = self.pair
        return pair.n[side][0, self.at], pair.mean[side][0, self.at], pair.m2[side][0, self.at]

    def _columns(self) -> SharedColumns:
        pair, at = self.pair, self.at
        mean_a = pair.mean[0][0, at]
        return SharedColumns(
            tasks=tuple(self.cells.tasks[i] for i in at),
            mean_a=mean_a,
            # For joint trials the difference is computed by trial, and the difference of the two
            # columns must equal the one that was tested.
            mean_b=mean_a - self.task_difference,
            n_a=self.n_used[0],
            n_b=self.n_used[1],
            weight=self.cells.weight[at],
            family=None if self.cells.family is None else self.cells.family[at],
        )

    def _superiority(self) -> Superiority | None:
        if not isinstance(self.scores, ScoreTable):
            return None
        return superiority(self.scores, self.one, self.other, self.pair.shared[0])

    def _dropped(self) -> Bools:
        counted = self.cells.counted
        return np.asarray(counted[self.one] ^ counted[self.other])

    def _second_opinion(self, rng: np.random.Generator | None) -> SecondOpinion:
        if self.at.size > 1:
            # The signs of task differences are permuted, not labels within tasks: label permutation
            # is about exactly these tasks. When used for tasks like these, it erred in 29% of
            # simulated benchmarks of 10 tasks with 5 trials.
            values, weight = self.pair.difference[0, self.at], self.cells.weight[self.at]
            # a family's tasks go together, so whole families are flipped
            if self.cells.family is not None:
                values, weight = by_family(values, weight, self.cells.family[self.at])
            return _flipped(values, weight, rng, about=TASKS_LIKE_THESE)
        if not isinstance(self.scores, ScoreTable):
            return SecondOpinion(
                method="permutation", p_value=None, about=THIS_TASK_ONLY, reason="needs_rows"
            )
        task = int(self.at[0])
        joint = paired_rows(self.scores, self.one, self.other, task)
        if joint is not None:
            return _flipped(joint[0] - joint[1], None, rng, about=THIS_TASK_ONLY)
        a, b = (
            self.scores.score[self.scores.rows_of(code, task)] for code in (self.one, self.other)
        )
        # With 3 trials against 3, the smallest possible p is 2/20, so the test could never reach
        # 5%.
        if (2 if a.size == b.size else 1) / comb(a.size + b.size, a.size) > ALPHA:
            return SecondOpinion(
                method="permutation",
                p_value=None,
                about=THIS_TASK_ONLY,
                reason="permutation_cannot_reach_alpha",
            )
        p_value = label_permutation(a, b, rng=rng)
        reason = None if p_value is not None else "needs_generator"
        return SecondOpinion(
            method="permutation", p_value=p_value, about=THIS_TASK_ONLY, reason=reason
        )

    def _warnings(
        self, dropped: tuple[Hashable, ...], opinion: SecondOpinion
    ) -> tuple[Caution, ...]:
        n_tasks = int(self.at.size)
        about = about_sample(n_tasks, self._n_families(), float(self.like.across.n_eff[0]))
        few = [warning for warning in about if "few" in warning.code]
        warnings = list(few)
        if n_tasks == 1 and (self.cells.planned_tasks > 1 or dropped):
            warnings.append(caution("one_shared_task"))
        warnings += [warning for warning in about if warning not in few]
        if dropped:
            warnings.append(
                caution("dropped_tasks", n=len(dropped), names=few_names(list(dropped)))
            )
        warnings += identical_tasks(self.cells)
        same = self.headline.scope != TASKS_LIKE_THESE
        if not same and (text := wider_here(self.headline, self.beside)) is not None:
            warnings.append(text)
        if same and self.headline.ci95 is not None and self.these.single[0]:
            warnings.append(caution("single_trial_tasks", n=int(self.these.single[0])))
        if same and self.pair.by_trial[0].any():
            held = sum(int(n[0, self.at].sum()) for n in self.pair.n)
            left_out = held - int(self.n_used[0].sum() + self.n_used[1].sum())
            if left_out:
                warnings.append(caution("unpaired_trials_left_out", n=left_out))
        if opinion.reason == "permutation_cannot_reach_alpha":
            warnings.append(caution("permutation_cannot_reach_alpha"))
        return tuple(warnings)

    def _to_decide(self, margin: float | None) -> Plan | None:
        design = variances_of(self.pair)
        if design is None or self.headline.difference is None:
            return None
        detect = max(
            abs(self.headline.difference), margin or 0.0, SMALLEST_DIFFERENCE_WORTH_PLANNING
        )
        return plan(design, detect=min(detect, 1.0), scope=self.headline.scope)


def decided(head: ScopedDifference, equivalence: Equivalence | None) -> str:
    if head.p_value is not None and head.difference is not None and head.p_value <= ALPHA:
        return "better" if head.difference > 0 else "worse"
    return "equivalent" if equivalence is not None and equivalence.holds else "not_decided"


def against_margin(
    head: ScopedDifference, margin: float | None
) -> tuple[Equivalence | None, NonInferiority | None]:
    """Test a difference against the margin; both results are None without a margin or a standard
    error.
    """
    if margin is None or head.difference is None or head.df is None or not head.std_err:
        return None, None
    return (
        two_one_sided(head.difference, head.std_err, head.df, margin=margin),
        not_worse(head.difference, head.std_err, head.df, margin=margin),
    )


def _flipped(
    differences: Floats, weight: Floats | None, rng: np.random.Generator | None, *, about: str
) -> SecondOpinion:
    if differences.size < FEWEST_FOR_FIVE_PERCENT:
        return SecondOpinion(
            method="signflip", p_value=None, about=about, reason="permutation_cannot_reach_alpha"
        )
    p_value = sign_flip(differences, weight, rng=rng)
    return SecondOpinion(
        method="signflip",
        p_value=p_value,
        about=about,
        reason=None if p_value is not None else "needs_generator",
    )


def equivalence(
    scores: ScoreTable | Cells, a: Hashable, b: Hashable, *, margin: float, scope: str | None = None
) -> Equivalence | None:
    """Test the difference from `compare` for equivalence.

    Returns None if the difference has no standard error.

    Raises ValueError as `compare` does.
    """
    return compare(scores, a, b, scope, margin).equivalence


def _why_nothing_shared(cells: Cells, code_a: int, code_b: int) -> str:
    has_rows = (cells.n[[code_a, code_b]] > 0).any(axis=1)
    if not has_rows.all():
        return "no_approved_trials"
    return "no_shared_tasks" if cells.counted[[code_a, code_b]].any(axis=1).all() else "no_weight"


def _incomparable(
    a: Hashable, b: Hashable, scope: str, *, reason: str = "no_approved_trials"
) -> Comparison:
    none = np.zeros(0)
    return Comparison(
        a=a,
        b=b,
        scope=scope,
        reason=reason,
        columns=SharedColumns(tasks=(), mean_a=none, mean_b=none, n_a=none, n_b=none, weight=none),
    )
