"""Grades in replies that are no JSON, or JSON of an odd shape: what a person can read off is read,
the rest is refused.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.domain.suite import Criterion, Rubric
from assay.scoring.evaluator import UnreadableReply
from assay.scoring.reply_parser import read_grading

LABELS = {"alice": "A", "bob": "B"}
RUBRIC = Rubric(criteria=(Criterion(name="integrity"), Criterion(name="clarity")))
MEANT = {
    ("alice", "integrity"): 7.0,
    ("alice", "clarity"): 8.5,
    ("bob", "integrity"): 3.0,
    ("bob", "clarity"): 4.0,
}
QUALITY = Rubric(criteria=(Criterion(name="quality"),))
WORKS = Rubric(
    criteria=(
        Criterion(name="works", high=1, labels=(("Yes", 1.0), ("Partial", 0.5), ("No", 0.0))),
    )
)
PASSES = Rubric(criteria=(Criterion(name="works", high=1, labels=(("pass", 1.0), ("fail", 0.0))),))

ODD: dict[str, str] = json.loads(
    Path(__file__).with_name("odd_replies.json").read_text(encoding="utf-8")
)
"""One grading in many shapes: broken JSON, tables, YAML, tags, lists, sentences."""


def read(reply: str, rubric: Rubric, labels: dict[str, str]) -> dict[tuple[str, str], float | None]:
    grades = read_grading(reply, labels=labels, rubric=rubric).grades
    return {key: grade.score.raw if grade.score else None for key, grade in grades.items()}


def read_one(reply: str, rubric: Rubric) -> float | None:
    ((_, score),) = read(reply, rubric, {"it": "A"}).items()
    return score


@pytest.mark.parametrize("shape", sorted(ODD))
def test_grades_are_read_in_whatever_shape_they_come(shape: str) -> None:
    assert read(ODD[shape], RUBRIC, LABELS) == MEANT


@pytest.mark.parametrize("shape", sorted(set(ODD) - {"twofix"}))
def test_a_reply_that_is_cut_off_anywhere_says_nothing_that_was_not_meant(shape: str) -> None:
    for end in range(1, len(ODD[shape]), 3):
        try:
            grades = read_grading(ODD[shape][:end], labels=LABELS, rubric=RUBRIC, cut=True).grades
        except UnreadableReply:
            continue
        wrong = {
            key: grade.score.raw
            for key, grade in grades.items()
            if grade.score and grade.score.raw not in (None, MEANT[key])
        }
        assert wrong == {}, ODD[shape][:end]


@pytest.mark.parametrize(
    "reply",
    [
        "I'd rate this 8 out of 10.",
        "The score is eight.",
        "Rating: eight out of ten",
        "<score>8</score>",
        "★★★★☆",
        "My overall assessment: 8.0/10.0",
        '{"quality": {"score": "eight"}}',
        "I give it an 8.",
        "This deserves a solid 8.",
        "Overall: 8. On a scale from 0 to 10.",
        "On a scale from 0 to 10, I'd give this an 8",
        "\\boxed{8}",
    ],
)
def test_a_lone_score_is_read_wherever_it_is_said(reply: str) -> None:
    assert read_one(reply, QUALITY) == 8


@pytest.mark.parametrize(
    "reply",
    [
        "between 7 and 9",
        "8-9",
        "Style is 7/10 and depth is 9/10.",
        "There are 3 bugs.",
        "I cannot give a number from 0 to 10.",
    ],
)
def test_text_without_a_single_score_is_refused(reply: str) -> None:
    with pytest.raises(UnreadableReply):
        read_one(reply, QUALITY)


@pytest.mark.parametrize(
    ("reply", "rubric", "meant"),
    [
        ('{"works": "partially"}', WORKS, 0.5),
        ('{"works": {"score": "Partially met"}}', WORKS, 0.5),
        ("Partially", WORKS, 0.5),
        ("The answer works: Yes, fully", WORKS, 1),
        ('{"works": "No, it crashes"}', WORKS, 0),
        ("✅", WORKS, 1),
        ("❌", WORKS, 0),
        ("Result: FAIL", PASSES, 0),
        ('{"works": "passed"}', PASSES, 1),
        ("Failed", PASSES, 0),
        ("This response passes.", PASSES, 1),
    ],
)
def test_words_are_read_in_the_forms_people_write_them(
    reply: str, rubric: Rubric, meant: float
) -> None:
    assert read_one(reply, rubric) == meant


def test_a_denied_word_is_refused() -> None:
    with pytest.raises(UnreadableReply):
        read_one("I would not say that it passes.", PASSES)


def test_a_number_that_counts_something_is_no_score() -> None:
    reply = "Candidate A: 3 bugs found.\n- Integrity: 7\n- Clarity: 8.5\nCandidate B: 2 bugs.\n- Integrity: 3\n- Clarity: 4"
    assert read(reply, RUBRIC, LABELS) == MEANT


def test_text_after_a_spoken_score_is_its_reason() -> None:
    reading = read_grading(
        "Candidate A\nIntegrity: 7 - validates its input\nClarity: 8\nCandidate B\nIntegrity: 3\nClarity: 4",
        labels=LABELS,
        rubric=RUBRIC,
    )
    assert reading.grades["alice", "integrity"].reason == "validates its input"
