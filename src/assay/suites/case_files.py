"""Test-case files: `{name, systemPrompt, testCases}`, or a list of cases with `expectedOutput` and
`scoringMethod`.

Their `exact-match` and `numeric-tolerance` give credit for near misses, so they are read as
`similarity` and `closeness`, which compute the same scores. Each case becomes a task; problems use
the field names of the case's file.
"""

from __future__ import annotations

from typing import Final

from assay.domain.suite import Task
from assay.suites.grammar import (
    FREE,
    NAME,
    TEXT,
    Keys,
    Kind,
    ReadContext,
    choice,
    key,
    list_of,
    made_of,
)
from assay.suites.located_yaml import Value
from assay.suites.problems import Location, Path, dotted
from assay.suites.tasks import TaskRules, read_task

METHOD_OF: Final = {
    "exact-match": "similarity",
    "regex-match": "regex",
    "numeric-tolerance": "closeness",
    "boolean": "boolean",
    "llm-judge": "judge",
}
"""Assay's scoring method for each name that a test case may use."""

_NAME_OF: Final = {"expected": "expectedOutput", "score": "scoringMethod"}
_IN_METADATA: Final = ("category", "difficulty", "tags")


class MetadataKeys(Keys):
    """The keys below `metadata`; `read_task` checks their values."""

    category = key(FREE)
    difficulty = key(FREE)
    tags = key(FREE)


class CaseKeys(Keys):
    """The keys of a test case; values that tasks also have are checked by `read_task`."""

    id = key(FREE)
    prompt = key(FREE, required="Write the question.")
    expected_output = key(FREE, name="expectedOutput")
    scoring_method = key(
        choice(tuple(METHOD_OF)),
        name="scoringMethod",
        required=f"Name one of {', '.join(METHOD_OF)}.",
    )
    weight = key(FREE)
    metadata = key(Kind(MetadataKeys.read, MetadataKeys.schema()))


_CASES: Final = list_of(
    made_of(CaseKeys, lambda keys: keys), empty="is an empty list, expected at least one test case."
)


class CaseFileKeys(Keys):
    """The keys of a test-case file; its id and times are not used."""

    id = key(FREE)
    created = key(FREE, name="createdAt")
    updated = key(FREE, name="updatedAt")
    name = key(NAME)
    description = key(TEXT)
    system_prompt = key(TEXT, name="systemPrompt")
    judge_system_prompt = key(TEXT, name="judgeSystemPrompt")
    test_cases = key(_CASES, name="testCases", required="Add a list of test cases.")


def _own_path(part: str | int) -> Path:
    return ("metadata", part) if part in _IN_METADATA else (_NAME_OF.get(str(part), part),)


def has_test_cases(value: Value) -> bool:
    """True if the content of a file is a test-case file, or a list of test cases."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], dict) and "scoringMethod" in value[0]
    return isinstance(value, dict) and "testCases" in value and "tasks" not in value


def read_case_file(value: Value, context: ReadContext) -> CaseFileKeys:
    """Return the keys of a test-case file; a bare list is read as `testCases`."""
    if isinstance(value, list):
        keys = CaseFileKeys()
        keys.test_cases = _CASES.read(value, (), context)
        return keys
    read = CaseFileKeys.read(value, (), context)
    assert read is not None  # `value` is a mapping
    return read


def tasks_of_cases(
    cases: list[tuple[Path, CaseKeys]], context: ReadContext, rules: TaskRules
) -> tuple[Task, ...]:
    def locate(path: Path, at_key: bool) -> Location:
        return context.locate(tuple(step for part in path for step in _own_path(part)), at_key)

    here = context.at(locate)
    tasks: dict[str, tuple[Path, Task]] = {}
    for path, case in cases:
        if case.scoring_method is None:
            continue
        written = case.node.values
        metadata = case.metadata.node.values if case.metadata else {}
        values: dict[str, Value] = {
            "id": written.get("id"),
            "prompt": written.get("prompt"),
            "expected": written.get("expectedOutput"),
            "score": METHOD_OF[case.scoring_method],
            "weight": written.get("weight"),
            **{name: metadata[name] for name in _IN_METADATA if name in metadata},
        }
        task = read_task(values, path, here, rules)
        if task is None:
            continue
        if task.id in tasks:
            first = (*tasks[task.id][0], "id")
            problem = f"is {task.id!r}, as {dotted(first)} on line {context.locate(first, False).line} is."
            context.report((*path, "id"), problem, "Give every test case its own id.")
        else:
            tasks[task.id] = (path, task)
    return tuple(task for _, task in tasks.values())
