"""Pairs judged in both orders: what is asked, what a verdict is, and what becomes of two that
disagree.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from assay.domain.assessment import Assessment, FlagKind, Response
from assay.domain.calls import Reply
from assay.domain.model import ModelSpec
from assay.domain.suite import JudgeMode, JudgeSpec, Message, Scoring, Task
from assay.scoring.evaluator import GradingAttempt, MoreRequests, Request, UnreadableReply
from assay.scoring.evaluators import evaluators_for
from assay.scoring.pairwise import PairwiseJudge, meetings
from assay.scoring.rubrics import QUALITY

TASK = Task(
    id="poem",
    thing="Poem",
    prompt=(Message(role="user", content="Write a poem."),),
    scoring=Scoring(method="judge"),
)
SPEC = JudgeSpec(
    name="judge", model=ModelSpec(provider="openai", name="m"), mode=JudgeMode.PAIRWISE
)
LABELS = {"ada": "B", "bo": "A", "cy": "C"}


def grading(*names: str) -> GradingAttempt:
    return GradingAttempt(
        task=TASK,
        responses=tuple(Response(candidate=name, text=f"words of {name}") for name in names),
        labels={name: LABELS[name] for name in names},
        seed=3,
    )


def judged(asked: GradingAttempt, *verdicts: str) -> Assessment:
    """The assessment after these verdicts, each read as it comes."""
    judge = PairwiseJudge(SPEC, QUALITY)
    requests: tuple[Request, ...] = judge.ask(asked)
    replies: tuple[Reply, ...] = ()
    for place, verdict in enumerate(verdicts):
        assert len(requests) == 1
        replies = (
            *replies,
            Reply(text=json.dumps({"reason": f"point {place}", "verdict": verdict})),
        )
        outcome = judge.read(asked, replies)
        if isinstance(outcome, Assessment):
            assert place == len(verdicts) - 1
            return outcome
        requests = outcome.requests
    raise AssertionError("the judge asks for more")


def test_every_pair_is_asked_in_both_orders() -> None:
    order = meetings(grading("ada", "bo", "cy").responses)
    assert [(one.candidate, other.candidate) for one, other in order] == [
        ("ada", "bo"),
        ("bo", "ada"),
        ("ada", "cy"),
        ("cy", "ada"),
        ("bo", "cy"),
        ("cy", "bo"),
    ]
    foreseen = PairwiseJudge(SPEC, QUALITY).foreseen(grading("ada", "bo"))
    first, second = (request.messages[-1].content for request in foreseen)
    assert first.index("words of ada") < first.index("words of bo")
    assert second.index("words of bo") < second.index("words of ada")
    assert first != second.replace("words of", "")
    schema = foreseen[0].answer_schema
    assert schema is not None
    assert "['B', 'A', 'tie']" in str(schema.schema)


def test_names_stay_hidden_and_a_label_means_the_same_one_in_both_orders() -> None:
    for request in PairwiseJudge(SPEC, QUALITY).foreseen(grading("ada", "bo")):
        text = request.messages[-1].content
        assert 'label="ada"' not in text
        assert text.index('label="B"') < text.index("words of ada")
        assert request.purpose.labels == {"ada": "B", "bo": "A"}


def test_two_orders_that_agree_make_a_win() -> None:
    result = judged(grading("ada", "bo"), "B", "B")
    assert result.scores == {"ada": 1.0, "bo": 0.0}
    assert result.ranking == ("ada", "bo")
    assert result.flags == ()
    assert [grade.reason for grade in result.grades] == ["Beats A.", "Loses to B."]
    assert "point 0" in result.report
    assert "point 1" in result.report


def test_a_verdict_that_follows_the_order_is_a_tie_with_a_flag() -> None:
    result = judged(grading("ada", "bo"), "B", "A")
    assert result.scores == {"ada": 0.5, "bo": 0.5}
    assert [flag.kind for flag in result.flags] == [FlagKind.ORDER_DECIDES]
    assert "B is better with B shown first, A is better with A first" in result.flags[0].detail
    assert result.ranking == ()


def test_a_tie_in_both_orders_is_no_cause_for_a_flag() -> None:
    result = judged(grading("ada", "bo"), "tie", "Tie.")
    assert (result.scores, result.flags) == ({"ada": 0.5, "bo": 0.5}, ())


def test_among_several_a_score_is_the_share_of_pairs_won() -> None:
    result = judged(grading("ada", "bo", "cy"), "B", "B", "B", "C", "A", "A")
    assert result.scores == {"ada": 0.75, "bo": 0.5, "cy": 0.25}
    assert result.weights == {"preference": 1.0}
    assert result.ranking == ("ada", "bo", "cy")


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        ('{"verdict": "Candidate B", "reason": "x"}', 1.0),
        ("```json\n{'verdict': 'B',}\n```", 1.0),
        ("[[B]]", 1.0),
        ('{"winner": "B", "reason": "x"}', 1.0),
        ("Verdict: A", 0.0),
        ("**tie**", 0.5),
        ('{"reason": "uses \\frac{1}{2}", "verdict": "A"}', 0.0),
    ],
)
def test_verdicts_are_read_however_they_are_written(reply: str, share: float) -> None:
    records = PairwiseJudge(SPEC, QUALITY).read(
        grading("ada", "bo"), (Reply(text=reply), Reply(text=reply))
    )
    assert isinstance(records, Assessment)
    assert records.scores["ada"] == share


@pytest.mark.parametrize(
    "reply", ["Both have merits, and it depends.", '{"verdict": "C"}', "", '{"score": 7}']
)
def test_a_reply_that_names_neither_is_asked_again(reply: str) -> None:
    with pytest.raises(UnreadableReply):
        PairwiseJudge(SPEC, QUALITY).read(grading("ada", "bo"), (Reply(text=reply),))


def test_only_the_next_call_is_wished_for() -> None:
    more = PairwiseJudge(SPEC, QUALITY).read(
        grading("ada", "bo", "cy"), (Reply(text='{"verdict": "A"}'),)
    )
    assert isinstance(more, MoreRequests)
    assert len(more.requests) == 1


def test_judges_that_take_turns_grade_their_own_trials() -> None:
    first, second = (
        replace(SPEC, name=name, turn=(place, 2)) for place, name in enumerate(("one", "two"))
    )
    always = replace(SPEC, name="always")
    graders = [
        [e.grader for e in evaluators_for(TASK, (first, second, always), QUALITY, k=k)]
        for k in (1, 2, 3, 4)
    ]
    assert graders == [["one", "always"], ["two", "always"], ["one", "always"], ["two", "always"]]
    assert len(evaluators_for(TASK, (first, second, always), QUALITY)) == 3
