"""Candidates that are programs, as suites name them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.domain.programs import Agent, Command, Function, WebService
from assay.suites.checks import ExternalChecks
from assay.suites.loading import load_suite, problems_in
from assay.suites.problems import SuiteErrors

if TYPE_CHECKING:
    from pathlib import Path

    from assay.domain.programs import Program

APP = "from json import dumps\nasync def answer(prompt): return prompt\nclass Bot: ...\nother = answer\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP, "utf-8")
    (tmp_path / "agent.sh").write_text("#!/bin/sh\n", "utf-8")
    return tmp_path


def written(folder: Path, *candidates: dict[str, Any], task: dict[str, Any] | None = None) -> Path:
    tasks = [{"id": "t", "prompt": "hello", "expected": "x", "score": "regex", **(task or {})}]
    path = folder / "s.json"
    path.write_text(json.dumps({"name": "s", "candidates": candidates, "tasks": tasks}), "utf-8")
    return path


def program(folder: Path, candidate: dict[str, Any], **checks: Any) -> Program | None:
    suite = load_suite(written(folder, {"name": "c", **candidate}), checks=ExternalChecks(**checks))
    (spec,) = suite.candidates
    assert spec.model is not None
    return spec.model.program


def test_each_kind_is_read_with_its_settings(folder: Path) -> None:
    function = program(folder, {"python": "app.py:answer", "timeout": 9, "offline": True})
    assert isinstance(function, Function)
    assert (function.target, function.timeout_s, function.offline) == ("app.py:answer", 9, True)
    assert list(function.files) == ["app.py"]
    assert function.folder == str(folder.resolve())
    bot = program(folder, {"python": {"function": "pkg.module:Bot", "options": {"style": "kind"}}})
    assert isinstance(bot, Function)
    assert (bot.target, bot.options, bot.files) == ("pkg.module:Bot", {"style": "kind"}, {})
    command = program(folder, {"command": ["./agent.sh", "{{prompt}}"]})
    assert isinstance(command, Command)
    assert (command.words, command.stdin, list(command.files)) == (
        ("./agent.sh", "{{prompt}}"),
        "none",
        ["./agent.sh"],
    )
    described = program(
        folder, {"command": {"run": ["cat", 3], "response": "$.a", "usage": {"cost_usd": "$.b"}}}
    )
    assert isinstance(described, Command)
    assert (described.words, described.stdin, described.response) == (("cat", "3"), "text", "$.a")
    assert described.usage == {"cost_usd": "$.b"}
    http = {
        "url": "https://app.example.com/x",
        "body": {"q": "{{prompt}}"},
        "response": "$.out.text",
    }
    service = program(folder, {"http": http})
    assert isinstance(service, WebService)
    assert (service.method, service.body, service.response) == (
        "POST",
        {"q": "{{prompt}}"},
        "$.out.text",
    )
    agent = program(
        folder, {"agent": {"name": "react", "options": {"steps": 3}}}, agents=("react",)
    )
    assert isinstance(agent, Agent)
    assert (agent.target, agent.options) == ("react", {"steps": 3})


def test_a_digest_follows_the_files_and_not_the_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = program(folder, {"python": "app.py:answer"})
    other = tmp_path_factory.mktemp("other")
    (other / "app.py").write_text(APP, "utf-8")
    moved = program(other, {"python": "app.py:answer"})
    (other / "app.py").write_text(f"{APP}# changed\n", "utf-8")
    changed = program(other, {"python": "app.py:answer"})
    assert before is not None
    assert moved is not None
    assert changed is not None
    assert before.digest == moved.digest != changed.digest


@pytest.mark.parametrize(
    ("candidate", "text"),
    [
        (
            {"name": "c", "python": "app.py:anser"},
            "names 'anser', which app.py does not have. Did you mean 'answer'?",
        ),
        ({"name": "c", "python": "nothing.py:answer"}, "names 'nothing.py', which does not exist"),
        (
            {"name": "c", "python": "app.py"},
            "is 'app.py', expected FILE.py:NAME or package.module:NAME.",
        ),
        ({"name": "c", "python": "../app.py:answer"}, "lies outside the suite's folder"),
        (
            {"name": "c", "command": "./agent.sh {{prompt}}"},
            "expected a list of the program and its arguments.",
        ),
        ({"name": "c", "command": []}, "expected a list of the program and its arguments."),
        ({"name": "c", "command": ["{{prompt}}"]}, "expected the name of a program."),
        (
            {"name": "c", "command": {"run": ["cat"], "response": "$..a"}},
            "is '$..a': '..a' is neither .name",
        ),
        (
            {"name": "c", "command": {"run": ["cat"], "stdin": "xml"}},
            "expected text, json or none.",
        ),
        (
            {"name": "c", "http": {"url": "ftp://x", "body": "{{prompt}}"}},
            "expected an address that starts with http://",
        ),
        (
            {"name": "c", "http": {"url": "https://x.org/", "body": "hello"}},
            'body: {question: "{{prompt}}"}',
        ),
        (
            {
                "name": "c",
                "http": {
                    "url": "https://x.org/{{prompt}}",
                    "headers": {"Authorization": "Bearer k"},
                },
            },
            "would store a key with every run.",
        ),
        (
            {"name": "c", "command": ["./ask", "--token", "abc", "{{prompt}}"]},
            "would store a key with every run, and show it in reports. Let the program read it from its environment",
        ),
        (
            {"name": "c", "command": {"run": ["./ask", "--api-key=abc"]}},
            "would store a key with every run",
        ),
        (
            {"name": "c", "command": ["sh", "-c", "curl -H 'Authorization: Bearer abcdef' x"]},
            "would store a key with every run",
        ),
        (
            {"name": "c", "agent": "react"},
            "is 'react', but no installed package offers this agent.",
        ),
        ({"python": "app.py:answer"}, "Give the candidate a name."),
        (
            {"name": "c", "python": "app.py:answer", "command": ["cat"]},
            "is given together with `python`",
        ),
        (
            {"name": "c", "python": "app.py:answer", "model": "echo"},
            "is given together with `python`",
        ),
        (
            {"name": "c", "command": ["cat"], "base_url": "http://x"},
            "describes a model, but the candidate is `command`",
        ),
        (
            {"name": "c", "model": "echo", "timeout": 3},
            "describes a program; add `python`, `agent`, `command` or `http`.",
        ),
        (
            {"name": "c", "command": ["cat", "{{topic}}"]},
            "has no column 'topic', which a prompt of candidate 'c' uses.",
        ),
        (
            {"name": "c", "command": ["cat", "{{expected}}"]},
            "the right answer, which a candidate must not see.",
        ),
    ],
)
def test_each_mistake_is_named(folder: Path, candidate: dict[str, Any], text: str) -> None:
    assert text in str(problems_in(written(folder, candidate))[0])


def test_a_suite_is_read_without_running_its_programs(folder: Path) -> None:
    (folder / "app.py").write_text("open('ran', 'w')\ndef answer(prompt): ...\n", "utf-8")
    program(folder, {"python": "app.py:answer"})
    assert not (folder / "ran").exists()


def test_columns_of_a_command_come_from_the_task(folder: Path) -> None:
    path = written(
        folder, {"name": "c", "command": ["cat", "{{topic}}"]}, task={"columns": {"topic": "tea"}}
    )
    assert not problems_in(path)
    with pytest.raises(SuiteErrors):
        load_suite(written(folder, {"name": "c", "command": ["cat", "{{topic}}"]}))
