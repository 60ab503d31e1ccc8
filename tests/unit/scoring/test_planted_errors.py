"""Planted checks are what a judge wrote, with one thing broken or nothing; nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.domain.assessment import Assessment, Flag, FlagKind, Grade, Response
from assay.domain.suite import Rubric, Scoring, Task
from assay.scoring.flags import flags_of
from assay.scoring.planted_errors import (
    GOOD,
    KINDS,
    DecidedAssessment,
    Plant,
    planted,
    reordered,
    unaltered,
)
from assay.scoring.reply_parser import Reading
from assay.scoring.score_parsing import ReadGrade


def an_assessment(*, ann: float = 0.9, bob: float = 0.3) -> Assessment:
    grades = tuple(
        Grade(
            candidate=name,
            criterion=criterion,
            score=score,
            raw_score=10 * score,
            min_score=0,
            max_score=10,
            reason=f"{name} says {criterion}",
            evidence=("x = 1",),
        )
        for name, score in (("ann", ann), ("bob", bob))
        for criterion in ("fit", "form")
    )
    return Assessment(
        grades=grades,
        scores={"ann": ann, "bob": bob},
        weights={"fit": 1.0, "form": 1.0},
        report="As said.",
    )


CODE = "def ann(key):\n    self.lock.acquire()\n    return fetch_row(key)\n"


def a_source(**scores: float) -> DecidedAssessment:
    other = an_assessment(ann=0.6, bob=0.7)
    other = replace(
        other, grades=tuple(replace(one, reason=f"elsewhere {one.reason}") for one in other.grades)
    )
    mine = an_assessment(**scores)
    reasons = {0.9: "It holds the lock.", 0.3: "It lets two in at once."}
    mine = replace(
        mine,
        grades=tuple(
            replace(one, reason=reasons.get(one.score or 0, one.reason) + one.criterion)
            for one in mine.grades
        ),
    )
    return DecidedAssessment(
        assessment=mine, responses={"ann": CODE, "bob": CODE.replace("ann", "bob")}, other=other
    )


def made(source: DecidedAssessment, n: int = 400) -> list[Plant]:
    return [
        one for one in (planted(source, seed=7, key=key) for key in range(n)) if one is not None
    ]


def test_every_kind_of_break_occurs_as_often_and_says_where() -> None:
    source = a_source()
    real, result = source.assessment, made(source)
    counts = {kind: sum(one.how == kind for one in result) for kind in KINDS}
    assert len(result) == 400
    # 80 each; five standard deviations are 40
    assert all(50 <= n <= 115 for n in counts.values()), counts
    for one in result:
        assert one.assessment != real
        assert one.assessment.raw == ""
        assert one.assessment.flags == real.flags
        assert all(
            score is not None and 0 <= score <= 1 for score in one.assessment.scores.values()
        )
        if one.how == "other_task":
            assert source.other is not None
            assert one.assessment.grades == source.other.grades
            continue
        assert one.assessment.report == real.report
        before = {(g.candidate, g.criterion): g for g in real.grades}
        after = {(g.candidate, g.criterion): g for g in one.assessment.grades}
        assert {place for place in before if before[place] != after[place]} == set(one.places)


def test_each_planted_error_breaks_its_own_field() -> None:
    source = a_source()
    before = {(g.candidate, g.criterion): g for g in source.assessment.grades}
    for one in made(source, 200):
        after = {(g.candidate, g.criterion): g for g in one.assessment.grades}
        for place in one.places:
            was, now = before[place], after[place]
            if one.how == "moved_score":
                assert was.raw_score is not None
                assert now.raw_score is not None
                assert 2 <= abs(now.raw_score - was.raw_score) <= 4
                assert float(now.raw_score).is_integer()
                assert (now.reason, now.evidence) == (was.reason, was.evidence)
            elif one.how == "reason_against_score":
                far = next(g for g in before.values() if g.reason == now.reason)
                assert (now.score, now.evidence) == (was.score, was.evidence)
                assert far.criterion == was.criterion
                assert abs((far.score or 0) - (was.score or 0)) >= 0.3
            elif one.how == "invented_quote":
                assert (now.score, now.reason) == (was.score, was.reason)
                assert "(" in now.evidence[0]
                assert all(now.evidence[0] not in text for text in source.responses.values())


def test_an_invented_call_is_made_of_the_code_s_own() -> None:
    quotes = {
        one.assessment.grades[0].evidence[0]
        for one in made(a_source())
        if one.places == (("ann", "fit"),) and one.how == "invented_quote"
    }
    assert quotes
    assert all(
        quote.startswith(("def ann", "self.lock.acquire", "return fetch_row")) for quote in quotes
    )


def test_good_planted_check_is_the_judge_s_own_text() -> None:
    source = a_source()
    good = unaltered(source)
    assert good is not None
    assert (good.how, good.places, good.assessment) == (GOOD, (), source.assessment)


def test_the_same_key_gives_the_same_break() -> None:
    assert planted(a_source(), seed=7, key=3) == planted(a_source(), seed=7, key=3)


def test_planted_errors_leave_close_scores_alone() -> None:
    hows = {one.how for one in made(a_source(ann=0.5, bob=0.55))}
    assert hows == {"moved_score", "invented_quote", "other_task"}


def test_another_task_said_alike_is_no_break() -> None:
    source = a_source()
    assert "other_task" not in {one.how for one in made(replace(source, other=source.assessment))}


def test_on_a_coarse_scale_a_score_still_moves_far_enough_or_not_at_all() -> None:
    grades = tuple(
        replace(one, max_score=1, raw_score=one.score)
        for one in an_assessment(ann=1.0, bob=0.0).grades
    )
    source = DecidedAssessment(
        assessment=Assessment(
            grades=grades, scores={"ann": 1.0, "bob": 0.0}, weights={"fit": 1.0, "form": 1.0}
        )
    )
    assert "moved_score" not in {one.how for one in made(source)}


def test_assessment_without_a_score_is_not_planted() -> None:
    broken = DecidedAssessment(
        assessment=Assessment(grades=an_assessment().grades, scores={"ann": None, "bob": 0.3})
    )
    assert planted(broken, seed=7, key=3) is None
    assert unaltered(broken) is None


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_repeat_comes_in_another_order_with_the_same_grades(n: int) -> None:
    names = ("ann", "bob", "cy", "di", "ed")[:n]
    real = replace(
        an_assessment(), labels={name: "ABCDE"[place] for place, name in enumerate(names)}
    )
    for key in range(20):
        again = reordered(real, seed=1, key=key)
        assert again.labels != real.labels
        assert set(again.labels.values()) == set(real.labels.values())
        assert (again.grades, again.report) == (real.grades, "")


def test_reordered_check_is_flagged_in_its_own_order() -> None:
    names = ("ann", "bob", "cy")
    grades = tuple(
        Grade(
            candidate=name,
            criterion="fit",
            score=0.5,
            raw_score=5,
            min_score=0,
            max_score=10,
            reason="Better than Candidate A, says `Candidate A`."
            if name == "ann"
            else "The same words of both.",
            evidence=("drop(candidate B)",) if name == "cy" else (),
        )
        for name in names
    )
    reading = Reading(grades={(name, "fit"): ReadGrade(score=None) for name in names}, ranking=())
    responses = tuple(Response(candidate=name, text="x = 1") for name in names)
    task = Task(id="t", thing="t", language="python", scoring=Scoring(method="judge"))

    def flags(labels: dict[str, str]) -> tuple[Flag, ...]:
        return flags_of(
            reading,
            grades=grades,
            scores={},
            rubric=Rubric(criteria=()),
            labels=labels,
            task=task,
            responses=responses,
            token_limit_hit=False,
        )

    labels = {"ann": "B", "bob": "C", "cy": "A"}
    about_the_report = Flag(
        kind=FlagKind.QUOTE_NOT_FOUND, detail="Named in the report, but nowhere: “x”."
    )
    real = Assessment(
        grades=grades, scores={}, labels=labels, flags=(*flags(labels), about_the_report)
    )
    assert {flag.kind for flag in real.flags} >= {
        FlagKind.DUPLICATE_REASON,
        FlagKind.QUOTE_NOT_FOUND,
    }
    for key in range(6):
        again = reordered(real, seed=1, key=key)
        assert again.flags == flags(dict(again.labels)), (
            "as they would be said of a real assessment in this order"
        )
        reason = next(grade.reason for grade in again.grades if grade.candidate == "ann")
        assert reason == f"Better than Candidate {again.labels['cy']}, says `Candidate A`."
