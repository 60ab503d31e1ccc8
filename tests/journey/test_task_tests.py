"""`score: tests`: a task's own tests run in a sandbox against snippets and answers, and decide the
score.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from assay.sandbox.shells.choice import CONFINING, problem_of
from tests.journey.conftest import Command

SUITE = """
name: slugs
tasks:
  - id: slug
    language: python
    score: {tests: {file: checks/test_slug.py, answer: slug.py, seconds: 3}}
    snippets:
      right: "def slug(text):\\n    return '-'.join(text.lower().split())\\n"
      fenced: "Here it is:\\n```python\\ndef slug(text):\\n    return '-'.join(text.lower().split())\\n```\\nEnjoy."
      wrong: "def slug(text):\\n    return text\\n"
      broken: "def slug(:\\n"
      endless: "while True: pass\\n"
      quitter: "import os\\nos._exit(0)\\n"
"""
TESTS = """
import unittest
from slug import slug

class SlugTest(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slug("Hello World"), "hello-world")
"""


def _no_sandbox_works() -> bool:
    return all(asyncio.run(problem_of(kind())) is not None for kind in CONFINING)


@pytest.fixture
def suite(project: Path) -> Path:
    (project / "checks").mkdir()
    (project / "checks" / "test_slug.py").write_text(TESTS, "utf-8")
    (project / "slugs.yaml").write_text(SUITE, "utf-8")
    return project / "slugs.yaml"


def test_tests_decide_the_score_of_each_candidate(assay: Command, suite: Path) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    ran = assay("run", suite.name)
    assert ran.code == 0, ran.err
    means = {
        entry["candidate"]: entry["mean"]
        for entry in json.loads(assay("stats", "--json").out)["candidates"]
    }
    assert means == {
        "right": 1.0,
        "fenced": 1.0,
        "wrong": 0.0,
        "broken": 0.0,
        "endless": 0.0,
        "quitter": 0.0,
    }
    grades = {
        grade["candidate"]: grade["reason"]
        for assessment in json.loads(assay("show", "t1", "--json").out)
        for grade in assessment["grades"]
    }
    assert grades["right"].startswith("The tests pass.")
    assert "AssertionError" in grades["wrong"]
    assert "SyntaxError" in grades["broken"]
    assert grades["endless"].startswith("The tests were stopped after 3 s.")
    assert grades["quitter"].startswith(
        "The response ended the process before the tests were done."
    )


def test_a_file_without_tests_fails_the_trial(assay: Command, suite: Path, project: Path) -> None:
    (project / "checks" / "test_slug.py").write_text("import unittest\n", "utf-8")
    assert assay("run", suite.name, "--no-sandbox").code == 1
    assert (
        "tests_not_run (harness): The command found no tests"
        in assay("runs", "--json").out + assay("show", "t1").out
    )


def test_nothing_is_asked_where_no_sandbox_works(
    assay: Command, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.sandbox.shells.implementations._PYTHON", ("/nowhere/python",))
    for program in ("bubblewrap", "container_engine"):
        monkeypatch.setattr(f"assay.sandbox.shells.implementations.{program}", lambda: None)
    refused = assay("run", suite.name)
    assert refused.code == 2
    assert "sandbox: no sandbox works on this machine" in refused.err
    assert "--no-sandbox" in refused.err
    assert json.loads(assay("runs", "--json").out)["runs"] == []


@pytest.mark.parametrize(
    ("score", "problem"),
    [
        ("tests", "`tests` needs the test files, for example {tests: {file: test_slug.py}}."),
        ("{tests: {file: checks/none.py}}", "checks/none.py"),
        ("{tests: {file: ../outside.py}}", "outside.py"),
        ("{tests: {file: checks/test_slug.py, answer: ../slug.py}}", "`answer` is '../slug.py'"),
        ("{tests: {file: checks/test_slug.py, seconds: 0}}", "`seconds` is 0"),
        ("{tests: {file: checks/test_slug.py, tries: 2}}", "`tests` has no option 'tries'"),
    ],
)
def test_wrong_options_are_named(assay: Command, suite: Path, score: str, problem: str) -> None:
    good = "{tests: {file: checks/test_slug.py, answer: slug.py, seconds: 3}}"
    suite.write_text(SUITE.replace(good, score), "utf-8")
    refused = assay("validate", suite.name)
    assert refused.code == 2
    assert problem in refused.err
    assert "Traceback" not in refused.err


def test_a_project_cannot_turn_the_sandbox_off(assay: Command, suite: Path, project: Path) -> None:
    (project / "assay.yaml").write_text("sandbox: none\n", "utf-8")
    refused = assay("run", suite.name)
    assert refused.code == 2
    assert "sandbox" in refused.err
