"""Tools in suites: how they are written, what tasks take from the suite, and which mistakes are
explained.
"""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped] # its stubs are a package of their own
import pytest
import yaml
from tests.unit.suites.conftest import Load

from assay.app.suites import checks
from assay.domain.digest import JsonValue
from assay.domain.tools import CannedAnswer, Tool
from assay.store.database.codec import task_bytes, task_record
from assay.suites.loading import problems_in
from assay.suites.schema import suite_json_schema

SUITE = """\
score: tool_calls
candidates: [echo]
tool_turns: 4
tools:
  - name: look
    description: Looks at a thing.
    parameters: {type: object, properties: {at: {type: string}}}
    answers: [{arguments: {at: clock}, result: noon}, {arguments: {at: sun}, error: Too bright.}, {result: [1, {a: 2}]}]
  - {name: ring, answers: ding}
tasks:
  - {id: both, prompt: Go., expected: [look, {name: ring, arguments: {times: 2}}]}
  - {id: own, prompt: Go., expected: look, tools: [{name: look, answers: dark}], tool_turns: 1}
  - {id: named, prompt: Go., expected: [], tools: [ring]}
  - {id: none, prompt: Go., expected: x, score: exact, tools: []}
"""


def test_tasks_take_tools_from_the_suite(load: Load) -> None:
    both, own, named, none = load(SUITE).tasks
    look, ring = both.tools
    parameters: dict[str, JsonValue] = {"type": "object", "properties": {"at": {"type": "string"}}}
    assert look.tool == Tool(name="look", description="Looks at a thing.", parameters=parameters)
    assert look.answers == (
        CannedAnswer(text="noon", arguments={"at": "clock"}),
        CannedAnswer(text="Too bright.", arguments={"at": "sun"}, is_error=True),
        CannedAnswer(text='[1, {"a": 2}]'),
    )
    assert (ring.tool.parameters, ring.answers) == (
        {"type": "object", "properties": {}},
        (CannedAnswer(text="ding"),),
    )
    assert (own.tools[0].tool, own.tools[0].answers) == (look.tool, (CannedAnswer(text="dark"),))
    assert named.tools == (ring,)
    assert (none.tools, none.turns) == ((), ())
    assert [task.tool_turns for task in (both, own)] == [4, 1]
    assert json.loads(both.expected or "") == ["look", {"name": "ring", "arguments": {"times": 2}}]
    assert [own.expected, named.expected] == ["look", ""]
    assert len({task.digest for task in (both, own, named, none)}) == 4
    assert task_record(task_bytes(both)) == both


def test_the_json_schema_accepts_tools() -> None:
    jsonschema.validate(yaml.safe_load(SUITE), suite_json_schema())


TOOL = "tools: [{name: look, answers: dark}]"


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (
            "expected: look",
            "suite.yaml:3 tasks[0].score: is tool_calls, but the task offers no tools.",
        ),
        ("tools: [look]", "tasks[0].tools[0]: has no `answers`, and the suite has no tool 'look'."),
        ("tools: [{name: look at, answers: x}]", "is named 'look at', expected up to 64 letters"),
        (
            "tools: [{name: a, answers: x}, {name: a, answers: y}]",
            "tasks[0].tools[1]: is a second tool 'a'.",
        ),
        (
            "tools: [{name: a, answers: x, parameters: {type: array}}]",
            "parameters: is not of type object.",
        ),
        (
            "tools: [{name: a, answers: [{result: x, error: y}]}]",
            "answers[0]: must have either `result` or `error`.",
        ),
        (
            "tools: [{name: a, answers: [{argument: {}, result: x}]}]",
            "is an unknown key. Did you mean 'arguments'?",
        ),
        (
            f"{TOOL}, expected: lok",
            "names the tool 'lok', which is not offered. Did you mean 'look'?",
        ),
        (TOOL, "`expected` is missing"),
        (f"{TOOL}, expected: [{{tool: look}}]", "tasks[0].expected: `expected` has call 1 as"),
        (
            f"{TOOL}, expected: look, score: {{tool_calls: {{order: true}}}}",
            "has no option 'order'. Did you mean 'ordered'?",
        ),
        (f"{TOOL}, expected: look, tool_turns: 0", "expected a whole number"),
        (
            f"{TOOL}, expected: [{{name: look}}], score: exact",
            "which only `score: tool_calls` and `score: json`",
        ),
        (f"{TOOL}, expected: look, score: [judge, tool_calls]", "expected `judge` and the scorer"),
    ],
)
def test_wrong_tools_are_explained(tmp_path: Path, task: str, problem: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(
        f"score: tool_calls\ncandidates: [echo]\ntasks: [{{id: a, prompt: Go., {task}}}]\n", "utf-8"
    )
    assert problem in "\n".join(str(error) for error in problems_in(path, checks=checks()))
