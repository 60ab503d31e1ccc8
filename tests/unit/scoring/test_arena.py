"""The code-arena judge: what it asks for, in which order, and what it says where there is no
picture.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from assay.domain.assessment import Assessment, FlagKind, Response
from assay.domain.calls import ModelRequest, Reply
from assay.domain.model import ModelSpec, Parameters
from assay.domain.pages import PageRequest, Shots, Unseen
from assay.domain.suite import PERSON, Criterion, Image, JudgeSpec, Message, Rubric, Scoring, Task
from assay.scoring.arena import ArenaJudge, PageCodeJudge
from assay.scoring.evaluator import Answer, GradingAttempt, MoreRequests
from assay.scoring.evaluators import evaluators_for
from assay.scoring.reference_samples import identity_of, parameters_of
from assay.scoring.rubrics import ARENA_RUBRIC

TASK = Task(
    id="page",
    thing="Landing page",
    prompt=(Message(role="user", content="Build a landing page."),),
    scoring=Scoring(method="code_arena"),
)
SPEC = JudgeSpec(name="judge", model=ModelSpec(provider="openai", name="m"))
SHOTS = Shots(
    (
        Image(media_type="image/png", data="AA==", caption="Wide:"),
        Image(media_type="image/png", data="BB=="),
    )
)
GRADES = {"visual_accuracy": 9, "code_quality": 6, "functionality": 4, "responsiveness": 10}


def grading(text: str = "```html\n<main>Hello</main>\n```") -> GradingAttempt:
    return GradingAttempt(
        task=TASK, responses=(Response(candidate="ada", text=text),), labels={"ada": "A"}, seed=1
    )


def reply(*, blind: bool = False) -> Reply:
    grades = {
        name: {"score": score, "reason": f"because of {name}", "evidence": []}
        for name, score in GRADES.items()
    }
    return Reply(text=json.dumps({"candidates": {"A": grades}, "report": "fine"}), blind=blind)


def question(spec: JudgeSpec = SPEC, rendered: Answer = SHOTS) -> ModelRequest:
    more = ArenaJudge(spec, ARENA_RUBRIC).read(grading(), (rendered,))
    assert isinstance(more, MoreRequests)
    (request,) = more.requests
    assert isinstance(request, ModelRequest)
    return request


def test_the_page_is_rendered_before_the_judge_is_asked() -> None:
    (first,) = ArenaJudge(SPEC, ARENA_RUBRIC).ask(grading())
    assert isinstance(first, PageRequest)
    assert "<main>Hello</main>" in first.html
    assert {view.name for view in first.views} == {"desktop", "narrow"}
    request = question()
    assert request.messages[-1].images == SHOTS.images
    assert "Build a landing page." in request.messages[-1].content
    assert "<main>Hello</main>" in request.messages[-1].content


def test_the_weights_are_those_of_the_method() -> None:
    assert {one.name: one.weight for one in ARENA_RUBRIC.criteria} == {
        "visual_accuracy": 40,
        "code_quality": 30,
        "functionality": 20,
        "responsiveness": 10,
    }
    records = ArenaJudge(SPEC, ARENA_RUBRIC).read(grading(), (SHOTS, reply()))
    assert isinstance(records, Assessment)
    assert records.scores["ada"] == pytest.approx(0.4 * 0.9 + 0.3 * 0.6 + 0.2 * 0.4 + 0.1 * 1.0)
    assert records.flags == ()


def test_the_temperature_is_its_own_unless_the_suite_says_another() -> None:
    assert question().parameters.temperature == 0.3
    assert (
        question(replace(SPEC, parameters=Parameters(temperature=0.0))).parameters.temperature
        == 0.0
    )


def test_without_a_picture_the_code_is_judged_and_the_assessment_says_so() -> None:
    unseen = Unseen("The page was not rendered: there is no browser.")
    assert question(rendered=unseen).messages[-1].images == ()
    records = ArenaJudge(SPEC, ARENA_RUBRIC).read(grading(), (unseen, reply()))
    assert isinstance(records, Assessment)
    assert [flag.kind for flag in records.flags] == [FlagKind.NO_SCREENSHOT]
    assert "there is no browser" in records.flags[0].detail


def test_a_judge_that_cannot_see_is_flagged() -> None:
    records = ArenaJudge(SPEC, ARENA_RUBRIC).read(grading(), (SHOTS, reply(blind=True)))
    assert isinstance(records, Assessment)
    assert [flag.kind for flag in records.flags] == [FlagKind.NO_SCREENSHOT]


def test_a_response_without_a_page_scores_nothing_and_nobody_is_asked() -> None:
    empty = grading("I cannot build that.")
    assert ArenaJudge(SPEC, ARENA_RUBRIC).ask(empty) == ()
    records = ArenaJudge(SPEC, ARENA_RUBRIC).read(empty, ())
    assert isinstance(records, Assessment)
    assert records.scores == {"ada": 0.0}


def test_a_task_scored_by_code_arena_has_one_slot_a_candidate_and_judge() -> None:
    result = evaluators_for(TASK, (SPEC, replace(SPEC, name="second")), None)
    assert [type(one) for one in result] == [ArenaJudge, ArenaJudge]
    assert [slot.candidate for slot in result[0].slots(("ada", "bo"))] == ["ada", "bo"]


def test_an_estimate_counts_the_pictures() -> None:
    (request,) = ArenaJudge(SPEC, ARENA_RUBRIC).foreseen(grading())
    assert isinstance(request, ModelRequest)
    assert len(request.messages[-1].images) == 2


def test_pages_are_graded_by_the_rubric_of_the_run() -> None:
    rubric = Rubric(criteria=(Criterion(name="charm", guidance="Does it please?"),))
    (judge,) = evaluators_for(TASK, (SPEC,), rubric)
    (request,) = judge.foreseen(grading())
    assert isinstance(request, ModelRequest)
    assert "Does it please?" in request.messages[-1].content
    assert "visual_accuracy" not in request.messages[-1].content
    (default,) = evaluators_for(TASK, (SPEC,), None)
    (request,) = default.foreseen(grading())
    assert isinstance(request, ModelRequest)
    assert "visual_accuracy" in request.messages[-1].content


def test_people_get_a_form_for_pages_and_no_model_is_asked() -> None:
    human = replace(SPEC, model=ModelSpec(provider=PERSON, name=""))
    (judge,) = evaluators_for(TASK, (human,), ARENA_RUBRIC)
    assert judge.ask(grading()) == ()
    records = judge.read(grading(), ())
    assert isinstance(records, Assessment)
    assert [grade.criterion for grade in records.grades] == [
        one.name for one in ARENA_RUBRIC.criteria
    ]
    assert [slot.candidate for slot in judge.slots(("ada", "bo"))] == ["ada", "bo"]


def test_a_calibration_of_pages_uses_their_prompt_and_temperature() -> None:
    pages = replace(SPEC, pages=True)
    (request,) = PageCodeJudge(pages, ARENA_RUBRIC).ask(grading())
    asked = question().messages
    assert [message.content for message in request.messages] == [
        message.content for message in asked
    ]
    assert request.parameters == question().parameters
    assert parameters_of(pages).temperature == 0.3
    assert identity_of(pages, ARENA_RUBRIC).prompt != identity_of(SPEC, ARENA_RUBRIC).prompt
    assert PageCodeJudge(pages, ARENA_RUBRIC).read(grading(), (reply(),)).scores[
        "ada"
    ] == pytest.approx(0.72)
