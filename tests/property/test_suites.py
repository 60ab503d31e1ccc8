"""Laws of reading suites: nothing but a suite or complaints comes out, and notation makes no
difference.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings, strategies as st
from tests.support.examples import examples

from assay.domain.suite import Suite, SuiteCopy
from assay.suites.loading import load_suite, problems_in
from assay.suites.located_yaml import UnreadableText, read_json, read_yaml
from assay.suites.problems import SuiteErrors
from assay.suites.tasks import slug

NO_COPY = SuiteCopy(path="", text="", digest="")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def outcome(path: Path) -> Suite | SuiteErrors:
    """The suite or its errors; whatever else is raised fails the test.

    Reads all tasks, and every message.
    """
    problems = problems_in(path)
    for problem in problems:
        str(problem).encode()
    try:
        suite = load_suite(path, default_judge="openai/gpt-4o-mini")
        list(suite.tasks)
    except SuiteErrors as errors:
        str(errors).encode()
        return errors
    assert not problems
    return suite


# --- anything at all ------------------------------------------------------------------------------

KEYS = st.sampled_from(
    [
        "name",
        "trials",
        "review",
        "parameters",
        "candidates",
        "judge",
        "model",
        "mode",
        "margin",
        "rubric",
        "scale",
        "weight",
        "tasks",
        "id",
        "prompt",
        "role",
        "content",
        "expected",
        "score",
        "numeric",
        "tags",
        "snippets",
        "file",
        "files",
        "folder",
        "map",
        "thingName",
        "trialsNeeded",
        "guidance",
        "price",
        "input",
        "metadata",
        "stop",
        "system_prompt",
    ]
)
WORDS = st.one_of(
    st.sampled_from(
        [
            "a",
            "exact",
            "judge",
            "joint",
            "echo",
            "openai/gpt-4o",
            "suite.txt",
            ".",
            "user",
            "3pts",
            "no",
            "",
        ]
    ),
    st.text(max_size=8),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS),
    lambda below: st.one_of(
        st.lists(below, max_size=4),
        st.dictionaries(st.one_of(KEYS, st.text(max_size=4)), below, max_size=6),
    ),
    max_leaves=30,
)
SUFFIXES = st.sampled_from([".yaml", ".json", ".jsonl", ".txt"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
    ),
    suffix=SUFFIXES,
)
@example(data=b"tasks: &a [*a]", suffix=".yaml")
@example(data=b"\xff\xfe\x00", suffix=".yaml")
@example(data=b'[{"thingName": "\\ud800"}]', suffix=".json")
def test_any_bytes_are_a_suite_or_complaints(folder: Path, data: bytes, suffix: str) -> None:
    path = folder / f"suite{suffix}"
    path.write_bytes(data)
    outcome(path)


@given(value=VALUES, suffix=SUFFIXES)
def test_any_value_is_a_suite_or_complaints(folder: Path, value: object, suffix: str) -> None:
    path = folder / f"suite{suffix}"
    path.write_text(json.dumps(value), "utf-8")
    outcome(path)


TASK_VALUES = st.dictionaries(
    st.sampled_from(
        [
            "id",
            "prompt",
            "expected",
            "score",
            "weight",
            "snippets",
            "tags",
            "trials",
            "category",
            "thing",
        ]
    ),
    VALUES,
)


@given(
    rest=st.dictionaries(KEYS, VALUES, max_size=4),
    tasks=st.one_of(
        st.lists(TASK_VALUES, max_size=4), st.fixed_dictionaries({"file": WORDS, "map": VALUES})
    ),
)
def test_any_tasks_are_a_suite_or_complaints(
    folder: Path, rest: dict[str, Any], tasks: object
) -> None:
    path = folder / "suite.yaml"
    path.write_text(json.dumps({**rest, "tasks": tasks}), "utf-8")
    outcome(path)


@given(value=VALUES)
def test_json_lines_of_every_path_are_within_the_text(value: object) -> None:
    text = json.dumps(value, indent=1)
    document = read_json(text)

    def walk(inner: object, path: tuple[str | int, ...]) -> None:
        assert 1 <= document.line_of(path, False) <= text.count("\n") + 1
        pairs = (
            inner.items()
            if isinstance(inner, dict)
            else enumerate(inner)
            if isinstance(inner, list)
            else ()
        )
        for key, below in pairs:
            walk(below, (*path, key))

    walk(value, ())


@given(text=st.text(alphabet="abc:-[]{}&*#|>'\"!?, \n\t<0.1~%@`", max_size=60))
def test_yaml_is_read_or_unreadable(text: str) -> None:
    with suppress(UnreadableText):
        assert read_yaml(text).line_of((), False) >= 1


# --- right suites ---------------------------------------------------------------------------------

LETTERS = st.characters(codec="utf-8", exclude_categories=["C", "Z"])
NAME = st.text(LETTERS, min_size=1, max_size=12)
PROSE = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn", "Zl", "Zp"]),
    min_size=1,
    max_size=40,
)
SAID = PROSE.filter(lambda text: bool(text.strip()))
NUMBER = st.one_of(st.integers(0, 50), st.floats(0, 50).map(lambda number: round(number, 3)))


def different(names: st.SearchStrategy[str], low: int, high: int) -> st.SearchStrategy[list[str]]:
    return st.lists(
        names,
        min_size=low,
        max_size=high,
        unique_by=lambda name: (name.casefold(), name.casefold().casefold()),
    )


@st.composite
def right_suites(draw: st.DrawFn) -> dict[str, Any]:
    """A suite in the file's own structure, with nothing wrong."""
    people = draw(different(NAME, 2, 4))
    judged = draw(st.booleans())
    tasks = []
    for task_id in draw(different(NAME, 1, 4)):
        task: dict[str, Any] = {
            "id": task_id,
            "snippets": {
                name: draw(SAID)
                for name in draw(st.permutations(people))[: draw(st.integers(2, len(people)))]
            },
            "weight": draw(st.one_of(st.just(1), st.integers(1, 5), st.floats(0.5, 9))),
        }
        if not judged or draw(st.booleans()):
            task["expected"] = draw(
                st.one_of(
                    SAID, st.integers(-99, 99), st.lists(st.integers(0, 9), min_size=1, max_size=3)
                )
            )
            task["score"] = draw(
                st.sampled_from(["exact", "boolean", {"numeric": {"tolerance": 0.01}}])
            )
        for key, values in {
            "thing": NAME,
            "context": PROSE,
            "tags": st.lists(NAME, max_size=3),
            "trials": st.integers(1, 9),
            "prompt": st.one_of(
                SAID,
                st.lists(
                    st.builds(lambda said: {"role": "user", "content": said}, PROSE),
                    min_size=1,
                    max_size=2,
                ),
            ),
            "language": NAME,
            "category": PROSE,
            "difficulty": NUMBER,
        }.items():
            if draw(st.booleans()):
                task[key] = draw(values)
        tasks.append(task)
    suite: dict[str, Any] = {"name": draw(NAME), "tasks": tasks}
    if judged:
        suite["judge"] = draw(
            st.sampled_from(
                ["openai/gpt-4o", {"model": "openai/gpt-4o", "mode": "each", "temperature": 0}]
            )
        )
    if draw(st.booleans()):
        suite["rubric"] = [
            {
                "name": name,
                "weight": draw(st.integers(1, 5)),
                "scale": draw(st.sampled_from([[0, 10], ["No", "Yes"]])),
            }
            for name in draw(different(NAME, 1, 3))
        ]
    if draw(st.booleans()):
        suite["margin"] = draw(st.sampled_from([0.03, "3pts", 0.5]))
    if draw(st.booleans()):
        suite["parameters"] = {
            "temperature": draw(st.floats(0, 2)),
            "seed": draw(st.integers(0, 2**31 - 1)),
        }
    return suite


class _Quoting(yaml.SafeDumper):
    """Quotes what may be a number: PyYAML writes by YAML 1.1, where the text `0E0` needs no quotes,
    and we read 1.2.
    """


_Quoting.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if text[:1] in tuple("0123456789+-.") else None
    ),
)


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow])
@given(suite=right_suites())
def test_yaml_and_json_say_the_same(folder: Path, suite: dict[str, Any]) -> None:
    in_json, in_yaml = folder / "suite.json", folder / "suite.yaml"
    in_json.write_text(json.dumps(suite), "utf-8")
    in_yaml.write_text(
        yaml.dump(suite, Dumper=_Quoting, allow_unicode=True, sort_keys=False), "utf-8"
    )
    one, other = outcome(in_json), outcome(in_yaml)
    assert isinstance(one, Suite), one
    assert isinstance(other, Suite), other
    assert replace(one, copy=NO_COPY) == replace(other, copy=NO_COPY)
    assert [task.id for task in one.tasks] == [task["id"].strip() for task in suite["tasks"]]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(suite=right_suites())
def test_tasks_in_a_file_are_those_of_the_list(folder: Path, suite: dict[str, Any]) -> None:
    (folder / "list.json").write_text(json.dumps(suite), "utf-8")
    (folder / "tasks.jsonl").write_text(
        "".join(json.dumps(task) + "\n" for task in suite["tasks"]), "utf-8"
    )
    (folder / "file.json").write_text(
        json.dumps({**suite, "tasks": {"file": "tasks.jsonl"}}), "utf-8"
    )
    listed, streamed = outcome(folder / "list.json"), outcome(folder / "file.json")
    assert isinstance(listed, Suite), listed
    assert isinstance(streamed, Suite), streamed
    assert tuple(streamed.tasks) == tuple(listed.tasks)
    assert replace(streamed, copy=NO_COPY, tasks=()) == replace(listed, copy=NO_COPY, tasks=())


@given(name=st.text())
def test_a_slug_is_lower_case_and_its_own_slug(name: str) -> None:
    made = slug(name)
    assert slug(made) == made
    assert not made.startswith("-")
    assert not made.endswith("-")
