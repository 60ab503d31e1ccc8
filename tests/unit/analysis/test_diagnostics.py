"""Diagnostics behind the numbers, each on columns made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assay.analysis.agreement import judges_against_people, judges_among_themselves
from assay.analysis.anytime import anytime_difference, anytime_mean, looks_reached
from assay.analysis.columns import STATES, ReviewColumns, TaskLabel
from assay.analysis.costs import trial_cost
from assay.analysis.coverage import coverages
from assay.analysis.diagnostics import diagnose_comparison
from assay.analysis.fair_play import fair_play
from assay.analysis.partial_review import ReviewDraw, partly_reviewed
from assay.analysis.review_tables import (
    as_judged,
    attempts,
    counts,
    rejected_as,
    table_of,
    with_rejected,
)
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState, RunState, TrialState
from assay.domain.selection import Excluded, RunSummary
from assay.domain.suite import PERSON
from assay.statistics import ScoreTable, compare, estimate, estimates

STATE = AssessmentState
Row = tuple[str, int, int, str, float | None, float | None]
"""task, trial, attempt, state, then ann's and bob's score as judged; None: no such row."""


def columns(
    rows: Sequence[Row],
    *,
    joint: bool = True,
    final: dict[tuple[int, str], float] | None = None,
    planned: int = 5,
) -> ReviewColumns:
    """Columns of two candidates; `final` holds what a person put in place of the judged score, by
    (trial, candidate).
    """
    tasks = sorted({row[0] for row in rows})
    flat: list[dict[str, Any]] = []
    key = 0
    for task, trial, attempt, state, ann, bob in rows:
        key += 1
        for place, score in enumerate((ann, bob)):
            if score is None:
                continue
            if not joint:
                key += 1
            put = (final or {}).get((trial, ("ann", "bob")[place]), score)
            flat.append(
                {
                    "task": tasks.index(task),
                    "trial": trial,
                    "attempt": attempt,
                    "candidate": place,
                    "key": key,
                    "state": STATES.index(STATE(state)),
                    "judged": score,
                    "final": put,
                }
            )

    def ints(name: str) -> Any:
        return np.array([row[name] for row in flat], dtype=np.int64)

    n = len(flat)
    return ReviewColumns(
        tasks=tuple(
            TaskLabel(suite="s", task=name, digest="d", thing=name, weight=1.0) for name in tasks
        ),
        candidates=("ann", "bob"),
        judges=("j",),
        task=ints("task"),
        candidate=ints("candidate"),
        judge=np.zeros(n, np.int64),
        trial=ints("trial"),
        assessment=ints("key"),
        attempt=ints("attempt"),
        state=ints("state"),
        judged=np.array([row["judged"] for row in flat], dtype=np.float64),
        final=np.array([row["final"] for row in flat], dtype=np.float64),
        joint=np.full(n, joint),
        by_model=np.ones(n, np.bool_),
        planned=np.full((2, len(tasks)), planned, np.int64),
    )


def counted(given: ReviewColumns) -> ScoreTable:
    return table_of(given, counts(given), given.final)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


# Fair play


def test_unequal_approval_rates_are_warned_about_when_graded_apart() -> None:
    rows: list[Row] = [("t", k, 1, "approved", 0.8, None) for k in range(12)]
    rows += [("t", 20 + k, 1, "rejected" if k < 6 else "approved", None, 0.7) for k in range(12)]
    result = fair_play(columns(rows, joint=False), rng=rng())
    assert [(one.candidate, one.approved, one.rejected) for one in result.rates] == [
        ("ann", 12, 0),
        ("bob", 6, 6),
    ]
    assert result.approval is not None
    # Fisher's exact test of 12/0 against 6/6
    assert result.approval.p_value == pytest.approx(0.0137, abs=1e-3)
    (warning,) = result.cautions
    assert warning.code == "unequal_approval"
    assert "6 of 12 of bob" in warning.text


def test_joint_trials_overturned_by_reviewers_are_warned_about() -> None:
    rows: list[Row] = []
    for task in range(4):
        for k in range(6):
            leads = k < 3
            rows.append(
                (
                    f"t{task}",
                    10 * task + k,
                    1,
                    "rejected" if leads else "approved",
                    0.6,
                    0.8 if leads else 0.5,
                )
            )
    result = fair_play(columns(rows), rng=rng())
    assert result.approval is None
    (pair,) = result.joint
    assert pair.test.excess == pytest.approx(-0.3)
    assert pair.p_holm is not None
    assert pair.p_holm < 0.001
    (warning,) = result.cautions
    assert warning.code == "selective_rejection"
    assert "Trials in which bob did well against ann" in warning.text
    assert "may favour ann" in warning.text


def test_rejecting_whatever_the_scores_is_no_cause_for_alarm() -> None:
    rows: list[Row] = [
        (
            f"t{task}",
            10 * task + k,
            1,
            "rejected" if k == task else "approved",
            0.6,
            0.5 + 0.01 * ((k * 5) % 6),
        )
        for task in range(5)
        for k in range(6)
    ]
    assert fair_play(columns(rows), rng=rng()).cautions == ()


def test_rates_of_reruns_are_counted_by_slot() -> None:
    rows: list[Row] = [
        ("t", 1, 1, "superseded", 0.1, 0.1),
        ("t", 1, 2, "approved", 0.5, 0.5),
        ("t", 2, 1, "approved", 0.5, 0.5),
    ]
    (ann, _) = fair_play(columns(rows), rng=rng()).rates
    assert (ann.n_judged, ann.n_decided, ann.rerun) == (2, 2, 1)


def test_grades_by_people_alone_are_not_corrections() -> None:
    rows: list[Row] = [("t", k, 1, "corrected", 0.5, 0.5) for k in (1, 2, 3)]
    of_judges = columns(rows)
    of_both = replace(
        of_judges, judges=("judge", PERSON), judge=(of_judges.trial == 1).astype(np.int64)
    )
    for given, by_person in ((of_judges, 0), (of_both, 1)):
        (ann, _) = fair_play(given, rng=rng()).rates
        assert (ann.n_decided, ann.corrected, ann.by_person) == (3, 3, by_person)


# The same numbers otherwise


def test_sensitivity_restores_rejected_trials_at_the_judge_s_score() -> None:
    rows: list[Row] = [
        ("t", 1, 1, "approved", 0.8, 0.8),
        ("t", 2, 1, "rejected", 0.2, 0.4),
        ("t", 3, 1, "pending", 0.0, 0.0),
        ("t", 4, 1, "superseded", 0.0, 0.0),
        ("t", 4, 2, "corrected", 0.6, 0.6),
    ]
    given = columns(rows, final={(4, "ann"): 1.0})
    assert estimate(counted(given), "ann").mean == pytest.approx(0.9)
    assert estimate(with_rejected(given), "ann").mean == pytest.approx((0.8 + 0.2 + 1.0) / 3)
    assert estimate(rejected_as(given, 0.0), "ann").mean == pytest.approx((0.8 + 0.0 + 1.0) / 3)
    assert estimate(rejected_as(given, 1.0), "ann").mean == pytest.approx((0.8 + 1.0 + 1.0) / 3)
    assert estimate(as_judged(given), "ann").mean == pytest.approx((0.8 + 0.0 + 0.6) / 3)
    twice = attempts(given)
    assert twice.n_rerun == 1
    assert estimate(twice.first, "ann").mean == pytest.approx((0.8 + 0.0) / 2)
    assert estimate(twice.final, "ann").mean == pytest.approx((0.8 + 1.0) / 2)


def test_a_conclusion_that_hangs_on_rejections_is_warned_of() -> None:
    rows: list[Row] = []
    for task in range(8):
        wobble = 0.01 * (task % 3)
        rows.append((f"t{task}", 10 * task, 1, "approved", 0.8 + wobble, 0.6))
        rows.append(
            (f"t{task}", 10 * task + 1, 1, "rejected", 0.3 + 0.2 * (task % 2), 0.5 + 3 * wobble)
        )
    given = columns(rows)
    table = counted(given)
    comparison = compare(table, "ann", "bob")
    beside = diagnose_comparison(
        table, comparison, given, margin=None, draw=ReviewDraw(), rng=rng()
    )
    assert comparison.decision == "better"
    assert beside.with_rejected.decision == "not_decided"
    assert beside.changes
    assert "rejected_would_change_decision" in {one.code for one in beside.cautions}


def test_coverage_counts_the_candidate_s_planned_trials() -> None:
    rows: list[Row] = [("t", 1, 1, "approved", 0.8, 0.8), ("u", 2, 1, "pending", 0.5, 0.5)]
    given = columns(rows, planned=2)
    (ann, _) = coverages(counted(given), given)
    assert (ann.n_counted, ann.n_planned, ann.rate) == (1, 4, 0.25)
    assert (ann.missing_as_zero, ann.missing_left_out) == pytest.approx((0.2, 0.8))


# Judges and people


def test_a_judge_is_set_against_people_only_where_someone_corrected_it() -> None:
    rows: list[Row] = [
        ("t", k, 1, "corrected" if k % 2 else "approved", 0.1 * k, 0.5) for k in range(1, 9)
    ]
    final = {(k, "ann"): 0.1 * k - 0.1 for k in (1, 3, 5, 7)}
    (result,) = judges_against_people(columns(rows, final=final))
    assert (result.judge, result.n_corrected, result.calibration.n) == ("j", 4, 16)
    assert result.calibration.bias == pytest.approx(0.4 / 16)
    assert judges_against_people(columns([("t", 1, 1, "approved", 0.5, 0.5)])) == ()
    assert judges_among_themselves(columns(rows), rng=rng()) is None


# Partial review


def half_reviewed(n_tasks: int) -> ReviewColumns:
    rows: list[Row] = [
        (
            f"t{task}",
            10 * task + k,
            1,
            "approved" if k < 2 else "pending",
            0.5 + 0.04 * task + 0.01 * k,
            0.4,
        )
        for task in range(n_tasks)
        for k in range(5)
    ]
    return columns(rows)


def test_the_calibrated_number_is_refused_unless_chance_chose() -> None:
    given = half_reviewed(6)
    result = estimates(counted(given))
    ann, bob = partly_reviewed(given, result, ReviewDraw(refused="not_random_review"))
    assert ann.n_waiting == bob.n_waiting == 18
    assert ann.review.calibrated.mean is None
    assert ann.review.calibrated.reason == "not_random_review"
    chosen, _ = partly_reviewed(given, result, ReviewDraw())
    # Each task had the same share of its trials reviewed, so the judge's scores of the rest tell
    # nothing new.
    assert (chosen.review.calibrated.method, chosen.review.calibrated.lam) == (
        "prediction_powered",
        0.0,
    )
    assert chosen.review.calibrated.mean == pytest.approx(chosen.review.vetted_only.mean)
    assert chosen.vetted.mean == pytest.approx(chosen.review.vetted_only.mean)


def test_a_few_reviews_calibrate_nothing() -> None:
    given = half_reviewed(4)
    ann, _ = partly_reviewed(given, estimates(counted(given)), ReviewDraw())
    assert ann.review.calibrated.reason == "too_few_human_reviews"


# Looking while it runs


def test_for_tasks_like_these_the_units_are_tasks() -> None:
    rows: list[Row] = [
        (f"t{t}", 10 * t + k, 1, "approved", 0.7 + 0.01 * t, 0.5 + 0.002 * k)
        for t in range(7)
        for k in range(2)
    ]
    table = counted(columns(rows))
    result = anytime_difference(table, compare(table, "ann", "bob"))
    assert (result.unit, result.n, result.reason) == ("task", 7, None)
    assert result.e_value is not None
    assert result.e_value > 20
    assert result.p == pytest.approx(1 / result.e_value)
    fixed = compare(table, "ann", "bob").ci95
    assert fixed is not None
    assert result.ci95 is not None
    assert result.ci95[0] < fixed[0] < fixed[1] < result.ci95[1]


def test_for_these_tasks_the_units_are_rounds_of_all_of_them() -> None:
    rows: list[Row] = [
        (f"t{t}", 10 * t + k, 1, "approved", 0.7 + 0.01 * ((t * 3 + k * 2) % 5), 0.5)
        for t in range(3)
        for k in range(6)
    ]
    table = counted(columns([*rows, ("t0", 9, 1, "approved", 0.9, 0.1)]))
    result = anytime_difference(table, compare(table, "ann", "bob"))
    assert (result.unit, result.n) == ("round", 6)
    mean = anytime_mean(table, estimate(table, "ann"))
    assert mean.e_value is None
    assert mean.ci95 is not None
    assert 0.0 <= mean.ci95[0] < mean.ci95[1] <= 1.0


def test_equal_differences_are_no_evidence_and_few_tasks_give_no_range() -> None:
    same: list[Row] = [(f"t{t}", t, 1, "approved", 0.7, 0.5) for t in range(7)]
    table = counted(columns(same))
    result = anytime_difference(table, compare(table, "ann", "bob"))
    assert (result.e_value, result.p, result.reason) == (1.0, 1.0, "zero_variance")
    nothing = counted(columns([("t", 1, 1, "pending", 0.5, 0.5)]))
    empty = anytime_difference(nothing, compare(nothing, "ann", "bob"))
    assert (empty.e_value, empty.n, empty.reason) == (None, 0, "no_approved_trials")


def test_planned_looks_are_reached_by_the_share_that_is_decided() -> None:
    assert looks_reached(5, decided=0, total=20).p_to_beat is None
    reached = looks_reached(5, decided=11, total=20)
    assert reached.reached == 2
    assert reached.p_to_beat == pytest.approx(0.0013, abs=1e-4)
    assert looks_reached(5, decided=20, total=20).reached == 5


# Costs


def a_run(cost: float | None, *, unpriced: int = 0, tokens: int = 100) -> RunSummary:
    return RunSummary(
        id=RunId("r"),
        suite="s",
        state=RunState.FINISHED,
        started="",
        finished=None,
        batch_id=None,
        candidates=("a", "b"),
        judges=("j",),
        trials={TrialState.APPROVED: 8, TrialState.REJECTED: 2, TrialState.FAILED: 1},
        assessments={STATE.APPROVED: 8, STATE.REJECTED: 2},
        input_tokens=tokens,
        output_tokens=0,
        cost_usd=cost,
        unpriced_calls=unpriced,
    )


def test_cost_per_trial_divides_all_calls_by_judged_trials() -> None:
    gone = Excluded(pending=0, rejected=2, failed=0, superseded=0)
    result = trial_cost([a_run(1.0)], gone, counted=8)
    assert (result.usd, result.reviews, result.kept, result.reason) == (0.1, 1.0, 0.8, None)
    assert result.usd_counted == pytest.approx(0.125)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (a_run(None), "price_unknown"),
        (a_run(1.0, unpriced=1), "price_unknown"),
        (a_run(0.0, tokens=0), "no_calls_recorded"),
    ],
)
def test_an_unknown_price_stays_unknown(run: RunSummary, reason: str) -> None:
    result = trial_cost([run], Excluded(pending=0, rejected=0, failed=0, superseded=0), counted=8)
    assert (result.usd, result.reason, result.usd_counted) == (None, reason, None)
