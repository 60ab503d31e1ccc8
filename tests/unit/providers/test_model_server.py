"""The scripted server's own answers: other tests build on them."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st
from tests.support.model_server import Call, generic_answer

from assay.domain.calls import AnswerSchema
from assay.domain.suite import Message
from assay.providers.protocol import with_schema

SCORE = {"type": "number", "minimum": 2, "maximum": 5}
LABELS = ["A", "B", "C"]


def answered(schema: dict[str, Any], *, prompt: str = "grade", seed: int = 0) -> Any:
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}},
    }
    return json.loads(
        generic_answer(Call(path="/v1/chat/completions", headers={}, body=body), seed=seed)
    )


def record(**properties: object) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@given(st.text(max_size=20), st.integers(min_value=0, max_value=9))
def test_numbers_stay_within_their_bounds(prompt: str, seed: int) -> None:
    result = answered(
        record(a=SCORE, b={"type": "integer", "minimum": 1, "maximum": 3}), prompt=prompt, seed=seed
    )
    assert 2 <= result["a"] <= 5
    assert result["b"] in (1, 2, 3)


@given(st.text(max_size=20))
def test_a_ranking_holds_every_label_once_and_agrees_with_the_scores(prompt: str) -> None:
    schema = record(
        grades=record(**{label: record(score=SCORE) for label in LABELS}),
        ranking={"type": "array", "items": {"type": "string", "enum": LABELS}},
    )
    result = answered(schema, prompt=prompt)
    assert sorted(result["ranking"]) == LABELS
    scores = [result["grades"][label]["score"] for label in result["ranking"]]
    assert scores == sorted(scores, reverse=True)


def test_a_list_of_grades_has_one_for_every_label_and_criterion() -> None:
    item = record(
        label={"type": "string", "enum": LABELS}, criterion={"enum": ["x", "y"]}, score=SCORE
    )
    row = answered(record(grades={"type": "array", "items": item}))["grades"]
    assert {(grade["label"], grade["criterion"]) for grade in row} == {
        (a, b) for a in LABELS for b in "xy"
    }


def test_references_unions_and_constants_are_followed() -> None:
    schema = {
        **record(
            a={"$ref": "#/$defs/score"},
            b={"anyOf": [{"type": "null"}, {"const": "fixed"}]},
            c={"type": ["string", "null"]},
        ),
        "$defs": {"score": SCORE},
    }
    result = answered(schema)
    assert 2 <= result["a"] <= 5
    assert result["b"] == "fixed"
    assert result["c"]


def test_a_schema_that_stands_in_the_prompt_is_answered_too() -> None:
    schema = AnswerSchema(name="s", schema=record(outer=record(score=SCORE)))
    (message,) = with_schema((Message(role="user", content='Grade {"this": 1}.'),), schema)
    body = {"messages": [{"role": "user", "content": message.content}]}
    document = json.loads(generic_answer(Call(path="/v1/chat/completions", headers={}, body=body)))
    assert 2 <= document["outer"]["score"] <= 5


def test_it_runs_as_a_program_and_prints_its_address() -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.support.model_server", "--port", "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    with program:
        assert program.stdout is not None
        address = program.stdout.readline().strip()
        with urllib.request.urlopen(f"{address}/v1/models", timeout=10) as answer:
            assert json.load(answer)["data"]
        program.communicate("")  # the end of its input ends it
    assert program.returncode == 0
