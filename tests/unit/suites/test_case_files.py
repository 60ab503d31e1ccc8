"""Test-case files: `scoringMethod: exact-match` keeps its partial credit, and problems name the
file's own keys.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.suites.loading import load_suite
from assay.suites.problems import SuiteErrors

CASES: list[dict[str, Any]] = [
    {
        "id": "capital",
        "prompt": "The capital of France?",
        "expectedOutput": "Paris",
        "scoringMethod": "exact-match",
        "weight": 2,
        "metadata": {"category": "facts", "difficulty": "easy", "tags": ["short"]},
    },
    {
        "id": "digits",
        "prompt": "A number?",
        "expectedOutput": r"/\d+/i",
        "scoringMethod": "regex-match",
        "weight": 1,
    },
    {
        "id": "half",
        "prompt": "10 / 2?",
        "expectedOutput": "5",
        "scoringMethod": "numeric-tolerance",
        "weight": 1,
    },
    {"id": "yes", "prompt": "Is it?", "expectedOutput": "yes", "scoringMethod": "boolean"},
    {"id": "why", "prompt": "Why is the sky blue?", "scoringMethod": "llm-judge", "metadata": {}},
]
FILE: dict[str, Any] = {
    "id": "suite-1",
    "name": "Cost suite",
    "description": "Simple questions",
    "systemPrompt": "Answer directly.",
    "createdAt": 100,
    "updatedAt": 100,
    "testCases": CASES,
}


def written(folder: Path, content: object) -> Path:
    path = folder / "cases.json"
    path.write_text(json.dumps(content, indent=1))
    return path


def problems(folder: Path, content: object) -> str:
    with pytest.raises(SuiteErrors) as caught:
        load_suite(written(folder, content), judge="openai/judge")
    return str(caught.value)


def test_methods_get_their_names_here(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, FILE), judge="openai/judge", candidates=("echo",))
    assert (suite.name, suite.system_prompt) == ("Cost suite", "Answer directly.")
    methods = [task.scoring.method for task in suite.tasks]
    assert methods == ["similarity", "regex", "closeness", "boolean", "judge"]
    capital = next(iter(suite.tasks))
    assert (capital.expected, capital.weight, capital.tags) == ("Paris", 2.0, ("short",))
    assert capital.extra == {"category": "facts", "difficulty": "easy"}


def test_the_judge_s_system_prompt_becomes_its_persona(tmp_path: Path) -> None:
    suite = load_suite(
        written(tmp_path, {**FILE, "judgeSystemPrompt": "Be strict."}), judge="openai/judge"
    )
    assert suite.judges[0].persona == "Be strict."


def test_a_bare_list_of_cases_is_a_suite(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, CASES[:1]), candidates=("echo",))
    assert [task.scoring.method for task in suite.tasks] == ["similarity"]
    assert suite.name == "cases"


def test_a_judge_is_needed_only_by_judged_cases(tmp_path: Path) -> None:
    with pytest.raises(SuiteErrors, match="--judge provider/name"):
        load_suite(written(tmp_path, FILE))
    assert load_suite(written(tmp_path, CASES[:4])).judges == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"scoringMethod": "exact"},
            "testCases[0].scoringMethod: is 'exact', expected exact-match",
        ),
        ({"expectedOutput": ""}, "testCases[0].expectedOutput: is empty, but `score: similarity`"),
        ({"metadata": {"tags": [True]}}, "testCases[0].metadata.tags[0]: is true, expected text."),
        ({"metadata": {"level": 3}}, "testCases[0].metadata.level: is an unknown key."),
        (
            {"expected": "x"},
            "testCases[0].expected: is an unknown key. Did you mean 'expectedOutput'?",
        ),
        ({"weight": -1}, "testCases[0].weight: is -1, expected a number of at least 0."),
        ({"id": "digits"}, "testCases[1].id: is 'digits', as testCases[0].id on line"),
    ],
)
def test_problems_name_the_keys_of_the_file(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    assert message in problems(
        tmp_path, {**FILE, "testCases": [{**CASES[0], **change}, *CASES[1:]]}
    )
