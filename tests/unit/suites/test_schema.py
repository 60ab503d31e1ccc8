"""The JSON Schemas say what the reader does, as far as one value at a time can show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # its stubs are a package of their own
import pytest
from tests.unit.suites.test_loading import FULL
from tests.unit.suites.test_set_files import thing

from assay.suites.loading import problems_in
from assay.suites.located_yaml import read_yaml
from assay.suites.schema import set_json_schema, suite_json_schema
from assay.suites.starter import starter_files

SCHEMA = jsonschema.Draft202012Validator(suite_json_schema())
SETS = jsonschema.Draft202012Validator(set_json_schema())
TASK = "{id: a, expected: x, score: exact, snippets: {p: x}}"


def test_the_schemas_are_schemas() -> None:
    jsonschema.Draft202012Validator.check_schema(suite_json_schema())
    jsonschema.Draft202012Validator.check_schema(set_json_schema())


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        starter_files()["suites/first.yaml"],
        f"tasks: [{TASK}]",
        f"margin: 0.03\ntrials:\ntasks: [{TASK}]",
        f"candidates: [{{name: p}}]\ntasks: [{TASK}]",
        f"judge: [openai/a, {{model: openai/b}}]\ntasks: [{TASK}]",
        "tasks: {file: t.jsonl, map: {id: custom_id, prompt: body.messages, snippets: {a: x.y}}}",
        "tasks: [{id: a, expected: [1, x], score: {math: }, tags: one, snippets: {p: {files: [a.py]}, q: {folder: b}}}]",
    ],
)
def test_right_suites_are_right_by_the_schema(text: str) -> None:
    SCHEMA.validate(read_yaml(text).value)


MISTAKES = [
    f"taks: 1\ntasks: [{TASK}]",
    f"trials: 0\ntasks: [{TASK}]",
    f"trials: five\ntasks: [{TASK}]",
    f"review: maybe\ntasks: [{TASK}]",
    f"margin: 1.5\ntasks: [{TASK}]",
    f"margin: 3 percent\ntasks: [{TASK}]",
    f"parameters: {{temperatur: 1}}\ntasks: [{TASK}]",
    f"parameters: {{temperature: 3}}\ntasks: [{TASK}]",
    f"judge: {{mode: joint}}\ntasks: [{TASK}]",
    f"judge: {{model: openai/a, mode: jiont}}\ntasks: [{TASK}]",
    f"judge: []\ntasks: [{TASK}]",
    f"candidates: [{{base_url: 'http://x'}}]\ntasks: [{TASK}]",
    f"candidates: [{{model: openai/a, base_url: x}}]\ntasks: [{TASK}]",
    f"rubric: []\ntasks: [{TASK}]",
    f"rubric: [{{weight: 1}}]\ntasks: [{TASK}]",
    f"rubric: [{{name: a, scale: 10}}]\ntasks: [{TASK}]",
    f"rubric: [{{name: a, scale: [1, 2, 3]}}]\ntasks: [{TASK}]",
    "tasks: []",
    "name: x",
    "tasks: [{score: exact, expected: x, snippets: {p: x}}]",
    "tasks: [{id: a, score: exakt, expected: x, snippets: {p: x}}]",
    "tasks: [{id: a, score: {exact: {}, regex: {}}, expected: x, snippets: {p: x}}]",
    "tasks: [{id: a, score: exact, expected: [[a]], snippets: {p: x}}]",
    "tasks: [{id: a, score: exact, expected: x, weight: -1, snippets: {p: x}}]",
    "tasks: [{id: a, score: exact, expected: x, snippets: {}}]",
    "tasks: [{id: a, score: exact, expected: x, snippets: {p: ''}}]",
    "tasks: [{id: a, score: exact, expected: x, snippets: {p: {fil: x}}}]",
    "tasks: [{id: a, score: exact, expected: x, prompt: [{role: usr, content: x}], snippets: {p: x}}]",
    "tasks: {map: {id: x}}",
    "tasks: {file: t.jsonl, map: {idd: x}}",
]


@pytest.mark.parametrize("text", MISTAKES)
def test_typical_mistakes_are_wrong_by_schema_and_reader_alike(tmp_path: Path, text: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(text)
    assert problems_in(path)
    assert not SCHEMA.is_valid(read_yaml(text).value)


@pytest.mark.parametrize(
    "wrong", [{"thing": "x"}, thing(trialsNeeded=0), thing(snippets=[]), thing(extra=1), []]
)
def test_sets_have_a_schema_of_their_own(wrong: Any) -> None:
    SETS.validate([thing(trialsNeeded=5)])
    SETS.validate(thing())
    SETS.validate({"name": "A/B test", "things": [thing()]})
    assert not SETS.is_valid(wrong)
