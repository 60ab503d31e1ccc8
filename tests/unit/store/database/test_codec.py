"""Bodies come back as they went in, whatever models, files and people wrote."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st
from tests.contract.stores import a_plan, a_task

from assay.app.calibration.answer_cache import question_of
from assay.domain.assessment import Assessment, Flag, FlagKind, Grade
from assay.domain.calls import ModelRequest, Purpose, Role
from assay.domain.errors import DamagedValue
from assay.domain.model import ModelSpec, Parameters, Price
from assay.domain.rounding import without_rounding_error
from assay.domain.suite import (
    CandidateSpec,
    Criterion,
    Image,
    JudgeMode,
    JudgeSpec,
    Message,
    Rubric,
    ToolMessage,
)
from assay.domain.tools import Tool, ToolCall
from assay.store.database import codec

ANY_TEXT = st.text(st.characters(exclude_categories=[]))  # lone surrogates too
SCORES = st.floats(0, 1)


@given(ANY_TEXT)
def test_texts_survive(text: str) -> None:
    assert codec.bytes_text(codec.text_bytes(text)) == text


@given(ANY_TEXT)
def test_short_texts_become_storable_in_every_database(text: str) -> None:
    kept = codec.plain(text)
    assert "\0" not in kept
    kept.encode("utf-8")
    assert codec.plain(kept) == kept


@given(name=ANY_TEXT, text=ANY_TEXT, weight=st.floats(0, 1e9), tags=st.lists(ANY_TEXT, max_size=3))
def test_tasks_survive(name: str, text: str, weight: float, tags: list[str]) -> None:
    task = replace(
        a_task(snippets={name: text, "b": "x"}, tags=tags, weight=weight, prompt=text),
        expected=text,
        trials=4,
        extra={"deep": [1, {"x": None}, text]},
    )
    assert codec.task_record(codec.task_bytes(task)) == task


@given(
    text=ANY_TEXT,
    score=SCORES | st.none(),
    confidence=SCORES | st.none(),
    kind=st.sampled_from(FlagKind),
)
def test_assessments_survive(
    text: str, score: float | None, confidence: float | None, kind: FlagKind
) -> None:
    grade = Grade(
        candidate=text,
        criterion="c",
        score=score,
        raw_score=score,
        min_score=0.0,
        max_score=10.0,
        reason=text,
        evidence=(text, ""),
        confidence=confidence,
    )
    assessment = Assessment(
        grades=(grade,),
        scores={text: score},
        weights={"c": 1.5},
        report=text,
        ranking=(text,),
        labels={text: "A"},
        flags=(Flag(kind=kind, detail=text, candidate=text),),
        raw=text,
    )
    as_read = replace(
        assessment, scores={text: None if score is None else without_rounding_error(score)}
    )
    assert codec.assessment_record(codec.assessment_bytes(assessment)) == as_read


def test_plans_survive_without_the_suites_text() -> None:
    model = ModelSpec(
        provider="vllm",
        name="m",
        base_url="http://127.0.0.1:1/v1",
        parameters=Parameters(stop=("a", "b"), seed=3),
        price=Price(input_usd=0.5, output_usd=1.5),
        context_tokens=8192,
        metadata=MappingProxyType({"x": [1, 2]}),
    )
    judge = JudgeSpec(
        name="j", model=model, mode=JudgeMode.EACH, prompt="Judge {task}", prompt_path="p.md"
    )
    plan = replace(
        a_plan(budget_usd=3.0, batch_id="b"),
        candidates=(
            CandidateSpec(name="m", model=model, metadata={"team": "x"}),
            CandidateSpec(name="alice"),
        ),
        judges=(judge,),
        rubric=Rubric(criteria=(Criterion(name="c", labels=(("good", 1.0), ("bad", 0.0))),)),
        benchmark=True,
        margin=0.03,
        environment={"python": "3.11"},
        protocol={"mode": "plain", "version": 1},
    )
    content = codec.plan_bytes(plan)
    assert plan.copy.text.encode() not in content
    assert codec.plan_record(content, suite_text=plan.copy.text) == plan


def test_fields_of_another_version_do_no_harm() -> None:
    content = codec.task_bytes(a_task()).replace(b'"trials":null,', b'"invented":1,')
    assert codec.task_record(content) == a_task()


@pytest.mark.parametrize("content", [b'{"a": 1', b'["a\x07"]', b"", b"\xff\xfe"])
def test_bytes_that_are_not_json_are_damage(content: bytes) -> None:
    with pytest.raises(
        DamagedValue,
        match=r"the store: is damaged: a value is not JSON .* Restore the store from a backup",
    ):
        codec.bytes_json(content)


@pytest.mark.parametrize("key", [b"ranking", b"grades", b"evidence", b"scores"])
def test_a_record_without_one_of_its_keys_is_damage(key: bytes) -> None:
    grade = Grade(
        candidate="a", criterion="b", score=1.0, raw_score=1.0, min_score=0.0, max_score=1.0
    )
    content = codec.json_bytes(Assessment(grades=(grade,), scores={"a": 1.0}, weights={"b": 1.0}))
    with pytest.raises(DamagedValue, match="a stored assessment cannot be read"):
        codec.assessment_record(content.replace(key, key[:-1] + b"?"))


def test_digests_of_requests_without_tools_stay_as_they_were() -> None:
    image = Image(media_type="image/png", data="aa")
    plain = ModelRequest(
        model=ModelSpec(provider="openai", name="m"),
        messages=(
            Message(role="user", content="q", images=(image,)),
            Message(role="assistant", content="a"),
        ),
        parameters=Parameters(max_tokens=10),
        purpose=Purpose(role=Role.CANDIDATE, task="t", trial=1),
    )
    # Both digests were computed before requests could have tools: stored calls and calibrations are
    # found by them.
    assert codec.request_digest(plain) == "92898001156a9f0c1995b960a58bee86"
    assert question_of(plain) == "730f702e1258c290f800773424284e15"
    tools = (Tool(name="look", description="", parameters={}),)
    call, other = (ToolCall(id="1", name="look", arguments={"at": at}) for at in ("clock", "cat"))
    asked = [
        replace(
            plain, tools=tools, messages=(ToolMessage(role="assistant", content="", calls=calls),)
        )
        for calls in ((), (call,), (other,))
    ]
    for digest in (codec.request_digest, question_of):
        assert (
            len({digest(request) for request in (plain, replace(plain, tools=tools), *asked)}) == 5
        )
