"""The order in which judges see candidates, and the labels that follow from it."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest

from assay.domain.model import ModelSpec
from assay.domain.suite import JudgeSpec
from assay.scoring.blinding import labels_in, letters, shown_order
from assay.scoring.label_matching import letter_of_label

NAMES = ("zoe", "ada", "bruno", "cy")


def test_labels_are_letters_by_place() -> None:
    assert [letters(place) for place in (0, 25, 26, 27, 701, 702)] == [
        "A",
        "Z",
        "AA",
        "AB",
        "ZZ",
        "AAA",
    ]
    assert labels_in(("zoe", "ada")) == {"zoe": "A", "ada": "B"}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("trials", [1, 2, 3, 4, 5, 8, 9, 16])
def test_positions_are_balanced_as_far_as_trials_allow(count: int, trials: int) -> None:
    names = NAMES[:count]
    for seed in range(20):
        orders = [shown_order(names, seed=seed, turn=turn) for turn in range(trials)]
        for position in range(count):
            times = Counter(dict.fromkeys(names, 0)) + Counter(order[position] for order in orders)
            shown = [times[name] for name in names]
            assert max(shown) - min(shown) <= 1
            assert sum(shown) == trials


def test_each_precedes_each_other_equally_often_in_two_blocks() -> None:
    for seed in range(20):
        orders = [shown_order(NAMES, seed=seed, turn=turn) for turn in range(2 * len(NAMES))]
        assert all(
            sum(order.index(a) < order.index(b) for order in orders) == 4
            for a, b in permutations(NAMES, 2)
        )


def test_the_order_given_has_no_effect_and_every_order_is_drawn() -> None:
    for seed in range(20):
        assert {shown_order(names, seed=seed, turn=1) for names in permutations(NAMES)} == {
            shown_order(NAMES, seed=seed, turn=1)
        }
    assert len({shown_order(NAMES[:3], seed=seed, turn=0) for seed in range(60)}) == 6
    assert len({shown_order(NAMES, seed=1, turn=turn) for turn in range(0, 400, 8)}) > 15, (
        "each square is drawn anew"
    )


def test_turns_of_a_rotating_judge_count_its_own_trials() -> None:
    judge = JudgeSpec(name="j", model=ModelSpec(provider="openai", name="m"), turn=(1, 3))
    assert [judge.turns_before(k) for k in range(1, 10) if judge.grades_trial(k)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "letter"),
    [
        ("Candidate A", "A"),
        ("candidate-b", "B"),
        ("The Response C", "C"),
        ("OptionD", "D"),
        ("e", "E"),
        ("Model AB", "AB"),
        ("ada", None),
        ("bo", None),
        ("Candidate 1", None),
        ("gpt-4o", None),
        ("Candidate", None),
        ("A team", None),
    ],
)
def test_names_that_read_like_labels_are_known(name: str, letter: str | None) -> None:
    assert letter_of_label(name) == letter


def test_no_label_repeats_the_letter_of_a_name() -> None:
    assert labels_in(("Candidate B", "Candidate A")) == {"Candidate B": "C", "Candidate A": "D"}
    assert labels_in(("Candidate B",), others=("Candidate A", "Candidate B")) == {
        "Candidate B": "C"
    }
    assert labels_in(("b", "ada", "D")) == {"b": "A", "ada": "C", "D": "E"}
