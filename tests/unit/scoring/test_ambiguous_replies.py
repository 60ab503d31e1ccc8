"""Replies that invite a guess: each is read as what it says outright, or refused."""

from __future__ import annotations

import pytest

from assay.domain.assessment import Response
from assay.domain.calls import Reply
from assay.domain.suite import Criterion, Rubric
from assay.scoring.evaluator import UnreadableReply
from assay.scoring.pairwise import heard_in
from assay.scoring.reply_parser import read_grading

FIVE = Rubric(criteria=(Criterion(name="quality", high=5),))
WORKS = Rubric(criteria=(Criterion(name="works", high=1, labels=(("pass", 1.0), ("fail", 0.0))),))
MEETING = (Response(candidate="ada", text="x"), Response(candidate="bo", text="y"))


def score_of(reply: str, rubric: Rubric = FIVE) -> float | None:
    ((_, grade),) = read_grading(reply, labels={"it": "A"}, rubric=rubric).grades.items()
    return grade.score.raw if grade.score else None


def better(reply: str, labels: str = "AB") -> str | None:
    return heard_in(Reply(text=reply), MEETING, {"ada": labels[0], "bo": labels[1]}).better


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("\\boxed{4}", 4),
        ("Score: 4/5", 4),
        ("I give it 4/5.", 4),
        ("4/5", 4),
        ("4 out of 5", 4),
        ("Overall: 4", 4),
        ("得分: 4 分", 4),
        ("得分：4分", 4),
        ("评分：4/5", 4),
        ("分数: 4", 4),
        ("我给这个回答打4分", 4),
        ("满分5分，得4分", 4),
        ("满分10分，得8分", 4),
        ("总分 4 分（满分 5 分）", 4),
        ("评分：8/10", 4),
        ("得分: 四分", 4),
        ("Step 3/4 is wrong. Score: 2", 2),
        ("The ratio is 1/2. I rate it 4.", 4),
        ("[[4]]", 4),
        ("Rating: [[4]]", 4),
        ("**4**", 4),
        ("★★★★☆", 4),
        ("Deduct 1 point. 4/5", 4),
        ("-1/5", -1),
        ("Score: 4/4", 5),
        ("Score: 40%", 2),
        ("\uff14\u5206\u3002\u5f97\u5206\uff1a4", 4),
    ],
)
def test_a_score_that_is_stated_is_read(reply: str, score: float) -> None:
    assert score_of(reply) == score


@pytest.mark.parametrize(
    "reply",
    [
        "The final answer 3/4 is correct; full credit",
        "The final answer is 3/4, which is correct. Full credit.",
        "The final answer is 4, which matches the reference.",
        "Final answer: 4",
        "The answer 4/5 is right.",
        "It passes 3 out of 5 tests.",
        "7 out of 10 test cases pass.",
        "The correct answer is \\boxed{4}.",
        "The response gets 4.",
        "The student gets 3, but the reference says 4.",
        "2 of the 5 steps are wrong.",
        "The result is 4.",
        "Result: 4",
        "4分",
        "点数: 4点",
        "スコア: 4",
        "평점: 4",
        "Puntuación: 4",
        "Note : 4/5",
        "Bewertung: 4 von 5",
        "Оценка: 4",
        "The grade is 3/4 done.",
        "3/4. That is right.",
        "I give it a 3. On reflection, I rate it 4.",
        "Full credit",
        "score 4 5",
        "Score: 4 or 5",
        "Score: 4-5",
        "I was torn between 3/5 and 4/5.",
        "Question 4: correct",
        "Not a 4.",
        "I would not give it a 4.",
        "I can't give this 5/5.",
        "This isn't worth 4/5.",
        "If it handled errors I'd give it 5/5.",
        "It deserves more than 3.",
        "at most 3/5",
        "Less than 3 out of 5",
        "Score: N/A (would be 4)",
        "Score: 4?",
        "4 stars",
        "minus 1 point",
        "10/10 would be perfect, but this is 3/10",
        "I scored 4 of these before.",
        "The score of the match was 3/4.",
        "The score in the game is 4.",
        "The final score of the game is 4.",
        "不是4分",
        "得分：3到4分",
        "如果修复错误，得5分",
        "扣1分",
        "得分点: 4",
    ],
)
def test_a_number_that_may_be_no_score_is_refused(reply: str) -> None:
    with pytest.raises(UnreadableReply):
        score_of(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "If it handled errors it would pass.",
        "It is hard to say whether it passes.",
        "The final answer is fail, as expected, though style could pass.",
    ],
)
def test_a_word_under_a_condition_is_refused(reply: str) -> None:
    with pytest.raises(UnreadableReply):
        score_of(reply, WORKS)


@pytest.mark.parametrize(
    ("reply", "labels", "winner"),
    [
        ("Output (a) is better", "AB", "ada"),
        ("Output (a) is better.", "AB", "ada"),
        ("Output (b) is better than Output (a).", "AB", "bo"),
        ("[[A>B]]", "AB", "ada"),
        ("[[A>>B]]", "AB", "ada"),
        ("[[B>A]]", "AB", "bo"),
        ("[[B>>A]]", "AB", "bo"),
        ("[[A=B]]", "AB", None),
        ("[[A<B]]", "AB", "bo"),
        ("My final verdict is tie: [[A=B]]", "AB", None),
        ("[[A]]", "AB", "ada"),
        ("A > B", "AB", "ada"),
        ("A is better than B", "AB", "ada"),
        ("B is worse than A", "AB", "ada"),
        ("Both are equal", "AB", None),
        ("A tie", "AB", None),
        ("Tie", "AB", None),
        ("A", "AB", "ada"),
        ("Answer A", "AB", "ada"),
        ("The better answer is A.", "AB", "ada"),
        ("I prefer B.", "AB", "bo"),
        ("A 更好", "AB", "ada"),
        ("B更好", "AB", "bo"),
        ("回答A更好", "AB", "ada"),
        ("更好的是 A", "AB", "ada"),
        ("平局", "AB", None),
        ("Assistant A is better", "AB", "ada"),
        ("Assistant B", "AB", "bo"),
        ("Model A wins", "AB", "ada"),
        ("A wins", "AB", "ada"),
        ("Verdict: A>B", "AB", "ada"),
        ("verdict: [[A>B]]", "AB", "ada"),
        ('{"verdict": "A>B"}', "AB", "ada"),
        ('{"verdict": "[[A>B]]"}', "AB", "ada"),
        ('{"verdict": "Output (a)"}', "AB", "ada"),
        ('{"verdict": "a"}', "AB", "ada"),
        ('{"winner":"(B)"}', "AB", "bo"),
        ("Between A and B, A is better.", "AB", "ada"),
        ("[[C>D]]", "CD", "ada"),
        ("[[D>>C]]", "CD", "bo"),
        ("Output (c) is better", "CD", "ada"),
        ("C > D", "CD", "ada"),
        ("D is better", "CD", "bo"),
    ],
)
def test_a_verdict_that_is_stated_is_read(reply: str, labels: str, winner: str | None) -> None:
    assert better(reply, labels) == winner


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        ("Output (a) is not better.", "AB"),
        ("[[C]]", "AB"),
        ("[[A>C]]", "AB"),
        ("[[C>D]]", "AB"),
        ("[[X>Y]]", "AB"),
        ("[[A>B]] or [[B>A]]", "AB"),
        ("Output (a) is better in style.", "AB"),
        ("Neither is better.", "AB"),
        ("[[1]]", "AB"),
        ("A, because B is wrong", "AB"),
        ("It's A. No wait, B.", "AB"),
        ("Candidate A is worse", "AB"),
        ("A is not better than B", "AB"),
        ("I don't think A is better", "AB"),
        ('{"verdict": "first"}', "AB"),
        ("A: 7, B: 9", "AB"),
        ("A or B", "AB"),
        ("It is hard to say whether A is better", "AB"),
        ("If B were shorter, B is better", "AB"),
        ("Which is better? A is better in style; B is better in content.", "AB"),
        ("Output (c) is better", "AB"),
        ("Output (a) and Output (b) are equally good", "AB"),
        ("[[A>B]]", "CD"),
        ("Output (a) is better", "CD"),
        ("A", "CD"),
        ("Candidate A", "CD"),
    ],
)
def test_a_verdict_that_would_be_a_guess_is_refused(reply: str, labels: str) -> None:
    with pytest.raises(UnreadableReply):
        better(reply, labels)


@pytest.mark.parametrize(
    "reply",
    [
        "Candidate A fixes 3/4 of the bugs. Candidate B fixes 1/4.",
        "Candidate A gets 3 of the 5 tests right, Candidate B gets 2 of them.",
        "A: 3/4 is correct. B: 1/2 is wrong.",
        "Candidate A would score 4 if it compiled; Candidate B: 2 or 3",
        "Candidate A: 4 of 5 tests pass.\nCandidate B: 3 of 5 tests pass.",
        "[[A>B]]",
    ],
)
def test_numbers_about_several_candidates_are_no_scores(reply: str) -> None:
    with pytest.raises(UnreadableReply):
        read_grading(reply, labels={"ada": "A", "bo": "B"}, rubric=FIVE)
