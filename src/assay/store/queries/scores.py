"""Queries for statistics: columns of scores and reviews, and counts of excluded trials."""

from __future__ import annotations

from assay.store.queries.approvals import approvals, approvals_by_run, scripted, unreviewed
from assay.store.queries.not_counted import excluded, took_part
from assay.store.queries.pooled_runs import counted_by_run, pooled_runs
from assay.store.queries.reference_pairs import reference_graders, reference_pairs
from assay.store.queries.replaced_grades import replaced_grades
from assay.store.queries.review_columns import review_columns
from assay.store.queries.score_columns import candidate_names, criterion_moments
from assay.store.queries.snapshots import Queries, snapshot
from assay.store.queries.verdict_columns import chosen_columns, chosen_trials, verdict_columns


class ScoreQueries(Queries):
    """Queries about scores, which return columns and counts."""

    columns = snapshot(chosen_columns)
    candidates = snapshot(candidate_names)
    of_trials = snapshot(chosen_trials)
    verdicts = snapshot(verdict_columns)
    criterion_moments = snapshot(criterion_moments)
    review_columns = snapshot(review_columns)
    excluded = snapshot(excluded)
    approvals = snapshot(approvals)
    approvals_by_run = snapshot(approvals_by_run)
    scripted = snapshot(scripted)
    unreviewed = snapshot(unreviewed)
    took_part = snapshot(took_part)
    replaced = snapshot(replaced_grades)
    reference_graders = snapshot(reference_graders)
    pooled = snapshot(pooled_runs)
    counted_by_run = snapshot(counted_by_run)
    reference_pairs = snapshot(reference_pairs)
