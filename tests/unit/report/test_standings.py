"""The headline over all candidates names the best, and only separates those whose difference is
decided.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from assay.report.wording import standings, standings_line
from assay.statistics import ScoreTable, rank
from assay.statistics.ranking import Ranking


def headline(means: dict[str, float], *, n_tasks: int = 12) -> str:
    return standings(ranked(means, n_tasks=n_tasks))


def ranked(means: dict[str, float], *, n_tasks: int = 12) -> Ranking:
    rng = np.random.default_rng(3)
    rows = [
        (f"t{t}", name, f"{t}", mean + (0.0 if n_tasks == 1 else rng.normal(0, 0.05)))
        for name, mean in means.items()
        for t in range(n_tasks)
    ]
    task, candidate, trial, score = (list(column) for column in zip(*rows, strict=True))
    return rank(ScoreTable.from_columns(task=task, candidate=candidate, trial=trial, score=score))


@pytest.mark.parametrize(
    ("means", "pattern"),
    [
        (
            {"ada": 0.8, "bruno": 0.5, "chen": 0.5},
            "ada is best; (bruno and chen|chen and bruno) are not separated.",
        ),
        ({"ada": 0.8, "bruno": 0.6, "chen": 0.4}, "ada is best, then bruno, then chen."),
        ({"ada": 0.8, "bruno": 0.5}, "ada is better than bruno."),
        ({"ada": 0.5, "bruno": 0.5, "chen": 0.5}, "[a-z]+, [a-z]+ and [a-z]+ are not separated."),
        (
            {"ada": 0.7, "bruno": 0.7, "chen": 0.4},
            "[abdnoru]+ and [abdnoru]+ lead; which of them is best is not decided.",
        ),
        (
            {"ada": 0.8, "b": 0.5, "c": 0.5, "d": 0.5, "e": 0.5},
            "ada is best; the 4 others are not separated.",
        ),
        (
            {"ada": 0.8, "b": 0.65, "c": 0.45, "d": 0.45, "e": 0.45},
            "ada is best; some of the 4 others are not separated.",
        ),
    ],
)
def test_headline_names_the_best_and_the_undecided(means: dict[str, float], pattern: str) -> None:
    assert re.fullmatch(pattern, headline(means))


def test_one_candidate_is_summed_up_alone() -> None:
    assert headline({"ada": 0.8}).startswith("ada scores 79.5 (95% range ")


def test_one_task_decides_nothing() -> None:
    assert headline({"ada": 0.8, "bruno": 0.5}, n_tasks=1) == "ada and bruno are not separated."


def test_nothing_counted_says_so() -> None:
    empty = ScoreTable.from_columns(task=[], candidate=[], trial=[], score=[]).including(("ada",))
    assert standings(rank(empty)) == "No trials count yet."


@pytest.mark.parametrize(
    ("means", "pattern"),
    [
        ({"ada": 0.8, "bruno": 0.5}, r"ada is better than bruno by \d\d\.\d points\."),
        ({"ada": 0.52, "bruno": 0.5}, r"ada is \d\.\d points ahead of bruno, not decided\."),
        ({"ada": 0.8, "bruno": 0.5, "chen": 0.5}, "ada is best; .* are not separated."),
        ({"ada": 0.8}, r"ada scores \d\d\.\d .*"),
    ],
)
def test_a_line_of_a_list_states_the_difference_of_two(
    means: dict[str, float], pattern: str
) -> None:
    assert re.fullmatch(pattern, standings_line(ranked(means)))


def test_a_line_says_that_two_score_the_same() -> None:
    table = ScoreTable.from_columns(
        task=["t", "t", "u", "u"],
        candidate=["ada", "bruno"] * 2,
        trial=["1", "1", "2", "2"],
        score=[0.5, 0.5, 1.0, 1.0],
    )
    assert standings_line(rank(table)) == "ada and bruno score the same."
