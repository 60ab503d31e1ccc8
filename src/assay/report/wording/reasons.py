"""A sentence for each reason code, which explains why a number is missing."""

from __future__ import annotations

from typing import Final

MISSING: Final = {
    "no_approved_trials": "No trials count yet, so there is no result.",
    "need_at_least_2_trials": "A single trial gives no range; at least two must count.",
    "need_at_least_2_tasks": "One task says nothing about other tasks of its kind.",
    "need_at_least_3_tasks": "Two tasks say nothing about other tasks of their kind; that needs at least three.",
    "need_at_least_4_families": "Fewer than four families of tasks say nothing about other tasks of their kind.",
    "narrower_than_these_tasks": "No range for tasks like these: the few tasks happen to agree so closely that it would be "
    "narrower than the range for exactly these tasks.",
    "wider_than_tasks_like_these": "No range for exactly these tasks: by chance it would be wider than the one for tasks "
    "like these.",
    "no_shared_tasks": "They share no task on which trials of both count, so their scores cannot be compared fairly.",
    "zero_variance": "The values behind the range do not vary, so it cannot be computed.",
    "all_ties": "Every task ended in a tie.",
    "no_weight": "Every task has weight 0.",
    "not_random_review": "not available: the trials reviewed first were not chosen at random.",
    "flagged_review": "not available: the reviewed grades were chosen because they have flags, so they say nothing about the "
    "others. Draw the reviewed part at random instead: review: {sample: 0.2}.",
    "too_few_human_reviews": "not available: fewer than 10 reviews so far.",
    "too_few_yes_or_no_reviews": "not available: with scores of 0 and 1 only, at least 15 reviews are needed.",
    "stratum_without_review": "not available: a run or a group of tasks has no review yet.",
    "too_many_candidates": "not available: more than 30 candidates.",
    "corrected_mean_out_of_range": "no range: the correction gives values outside 0 to 100.",
    "interval_not_finite_yet": "too early: this needs five tasks, or five trials of each task.",
    "unequal_weights": "not available: the tasks have different weights.",
}
"""Text for each reason why a number is missing; texts in lower case follow a name and a colon."""

WITHHELD: Final = frozenset(
    {"need_at_least_3_tasks", "need_at_least_4_families", "narrower_than_these_tasks", "wider_than_tasks_like_these"}
)
"""Reasons why the answer to the other question is withheld although it could be computed."""

SECOND_TRIALS: Final = "A range for exactly these tasks needs a second trial of each."
"""Text used for `need_at_least_2_trials` if there are several tasks."""


def why_no_difference(reason: str | None) -> str:
    """State why two candidates, or two runs, cannot be compared."""
    if reason == "no_approved_trials":
        return "At least one of the two has no trials that count, so there is no result."
    return MISSING.get(reason or "", "There is no result.")


def why_no_range(reason: str | None, n_tasks: int) -> str:
    """State why a score or a difference has no range."""
    if n_tasks > 1 and reason == "need_at_least_2_trials":
        return SECOND_TRIALS
    return MISSING.get(reason or "", "No range is available.")


def more_trials(run: str | None) -> str:
    """State the command that adds a trial to each task; `run` is None if several runs are possible."""
    return f"Add one with `assay extend {run or 'RUN'} --trials 1`."
