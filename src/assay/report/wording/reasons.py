"""A sentence for each reason code, which explains why a number is missing."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Final

SENTENCES_BY_CODE: Final[dict[str, dict[str, str]]] = tomllib.loads(
    (files(__package__) / "sentences.toml").read_text("utf-8")
)

MISSING: Final = SENTENCES_BY_CODE["missing"]
"""Text for each reason why a number is missing; texts in lower case follow a name and a colon."""

WITHHELD: Final = frozenset(
    {
        "need_at_least_3_tasks",
        "need_at_least_4_families",
        "narrower_than_these_tasks",
        "wider_than_tasks_like_these",
    }
)
"""Reasons why the result for the other scope is withheld although it could be computed."""

SECOND_TRIALS: Final = "A range for exactly these tasks needs a second trial of each."
"""Text used for `need_at_least_2_trials` if there are several tasks."""


def why_no_difference(reason: str | None) -> str:
    """State why two candidates, or two runs, cannot be compared."""
    if reason == "no_approved_trials":
        return "At least one of the two has no trials that count, so there is no result."
    return MISSING.get(reason or "", "There is no result.")


def why_no_range(reason: str | None, n_tasks: int) -> str:
    if n_tasks > 1 and reason == "need_at_least_2_trials":
        return SECOND_TRIALS
    return MISSING.get(reason or "", "No range is available.")


def more_trials(run: str | None) -> str:
    """State the command that adds a trial to each task; `run` is None if several runs are
    possible.
    """
    return f"Add one with `assay extend {run or 'RUN'} --trials 1`."
