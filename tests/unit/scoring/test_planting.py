"""Planted checks are what a judge wrote, with one thing broken; nothing else changes."""

from __future__ import annotations

from assay.domain.assessment import Assessment, Grade
from assay.scoring.planting import KINDS, planted


def an_assessment(*, ann: float = 0.9, bob: float = 0.3) -> Assessment:
    grades = tuple(
        Grade(candidate=name, criterion=criterion, score=score, raw_score=10 * score, min_score=0, max_score=10,
              reason=f"{name} says {criterion}", evidence=("x = 1",))
        for name, score in (("ann", ann), ("bob", bob))
        for criterion in ("fit", "form")
    )  # fmt: skip
    return Assessment(
        grades=grades, scores={"ann": ann, "bob": bob}, weights={"fit": 1.0, "form": 1.0}, report="As said."
    )


def test_every_kind_of_break_occurs_and_says_where() -> None:
    real = an_assessment()
    found = [planted(real, seed=7, key=key) for key in range(60)]
    assert {one.how for one in found if one} == set(KINDS)
    for one in found:
        assert one is not None
        assert one.assessment != real
        assert one.assessment.report == real.report
        before = {(g.candidate, g.criterion): g for g in real.grades}
        after = {(g.candidate, g.criterion): g for g in one.assessment.grades}
        assert {place for place in before if before[place] != after[place]} == set(one.places)
        assert all(score is not None and 0 <= score <= 1 for score in one.assessment.scores.values())


def test_the_same_key_gives_the_same_break() -> None:
    assert planted(an_assessment(), seed=7, key=3) == planted(an_assessment(), seed=7, key=3)


def test_close_scores_are_not_swapped() -> None:
    found = [planted(an_assessment(ann=0.5, bob=0.55), seed=7, key=key) for key in range(60)]
    assert "swapped_scores" not in {one.how for one in found if one}


def test_what_lacks_a_score_is_not_planted() -> None:
    broken = Assessment(grades=an_assessment().grades, scores={"ann": None, "bob": 0.3})
    assert planted(broken, seed=7, key=3) is None
