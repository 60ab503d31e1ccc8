"""A package with one part of each kind: installed from its own wheel, used, and removed."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient

from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.test_task_tests import _no_sandbox_works
from tests.support import example_plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.journey.conftest import Command

SOURCE = Path(example_plugin.__file__).parent

SUITE = """
name: plugged
candidates:
  - {name: loud, model: shout/any}
  - {name: kind, agent: greeter}
  - {name: odd, agent: {name: greeter, options: {greeting: Well}}}
tasks:
  - {id: a, prompt: say hello, expected: hello, score: words_present}
  - {id: b, prompt: say hello, score: {manners: {longest: 3}}}
"""

JUDGED = """
name: judged
candidates: [{name: loud, model: shout/any}]
judge: {model: lenient/any, mode: each}
tasks: [{id: c, prompt: say hello, score: judge}]
"""

SCENARIO = """
title: Write a note
validation: {commands: {test: "test -f note.txt"}}
evaluators:
  - {name: test, weight: 1}
  - {name: small_change, weight: 1, options: {most: 0, files: [README.md]}}
timeout_minutes: 1
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel in a copy of the package's folder."""
    source = tmp_path_factory.mktemp("source") / "package"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    place = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-c", build, str(place)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return place / built.stdout.strip().splitlines()[-1]


@pytest.fixture
def site(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Unpack the wheel into a folder on the path, as an installer does with a wheel of pure
    Python.
    """
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    importlib.invalidate_caches()
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "assay_example"]:
        del sys.modules[name]


@pytest.fixture
def installed(project: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOUT_KEY", "k")
    (project / "plugged.yaml").write_text(SUITE, "utf-8")
    (project / "t.tally").write_text("TALLY 1\nq1 | ada | 0.5\n", "utf-8")
    return site


def test_a_package_of_its_own_wheel_adds_every_kind(
    assay: Command, installed: Path, project: Path
) -> None:
    document = assay("run", "plugged.yaml", "--json").document
    assert document["trials"]["done"] == 2
    means = {
        row["candidate"]: row["by_task"] for row in assay("stats", "--json").document["candidates"]
    }
    scores = {name: {row["task"]: row["mean"] for row in rows} for name, rows in means.items()}
    # `manners`: 3 of 4 for an answer of at most three words, and 1 of 4 for a greeting.
    assert scores["loud"] == {"a": 1.0, "b": 0.75}
    assert scores["kind"] == {"a": 1.0, "b": 0.25}
    assert scores["odd"] == {"a": 1.0, "b": 0.0}
    assert assay("import", "t.tally", "--json").document["format"] == "tally"
    assert assay("export", "lines", "--output", "out.txt").code == 0
    assert "a kind 1.0" in (project / "out.txt").read_text("utf-8")


def test_its_judge_grades_and_a_person_decides(
    assay: Command, installed: Path, project: Path
) -> None:
    (project / "judged.yaml").write_text(JUDGED, "utf-8")
    assert assay("run", "judged.yaml", "--json").document["trials"]["done"] == 1
    (waiting,) = assay("review", "list", "--json").document["assessments"]
    assert (waiting["judge"], waiting["state"]) == ("lenient/any", "pending")
    assert {grade["score"] for grade in waiting["grades"]} == {1.0}


def test_its_agent_works_in_a_workspace(assay: Command, installed: Path, project: Path) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    folder = project / "suites" / "basics" / "scenarios" / "note"
    for name, text in {
        "scenario.yaml": SCENARIO,
        "prompts/L1-basic.md": "Write a note.",
        "repo-fixture/README.md": "A folder.\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    (trial,) = assay("bench", "basics", "note", "--agent", "scribe note.txt", "--json").document[
        "agent_trials"
    ]
    # The test passes; the evaluator of the package allows no changed line, and there is one.
    assert (trial["score"], trial["success"], trial["ended"]) == (0.5, False, "done")
    rules = folder / "scenario.yaml"
    rules.write_text(SCENARIO.replace("most: 0", "most: 1"), "utf-8")
    (trial,) = assay("bench", "basics", "note", "--agent", "scribe note.txt", "--json").document[
        "agent_trials"
    ]
    assert trial["score"] == 1.0
    sys.path.remove(str(installed))
    refused = assay("bench", "basics", "note", "--agent", "echo")
    assert refused.code == 2
    assert "small_change" in refused.err
    assert "is neither an evaluator nor the kind of a validation command" in refused.err


def test_its_page_is_shown_to_the_owner_and_as_json(
    assay: Command, installed: Path, project: Path
) -> None:
    assert assay("run", "plugged.yaml").code == 0
    with Workspace.open(project) as workspace:
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        page = client.get("/pages/means", headers={"accept": "text/html"})
        assert page.status_code == 200
        assert "<h1>Means</h1>" in page.text
        assert '<a href="/pages/means" aria-current="page">Means</a>' in page.text
        (section,) = client.get("/pages/means.json").json()["sections"]
        assert section["columns"] == ["Candidate", "Mean"]
        assert ["loud", 0.875] in section["rows"]
        missing = client.get("/pages/medians.json")
        assert (missing.status_code, "medians" in missing.text) == (404, True)


def test_a_page_that_fails_names_its_package_and_shows_no_traceback(
    assay: Command, installed: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError("<b>no candidates</b>")

    module = importlib.import_module("assay_example.page")
    monkeypatch.setattr(module, "means", fail)
    with Workspace.open(project) as workspace:
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        shown = client.get("/pages/means", headers={"accept": "text/html"})
        assert shown.status_code == 422
        assert "ZeroDivisionError: &lt;b&gt;no candidates" in shown.text
        assert "Traceback" not in shown.text


def test_its_command_stands_beside_those_of_assay(assay: Command, installed: Path) -> None:
    assert assay("run", "plugged.yaml").code == 0
    assert "best  " in assay("--help").out.partition("Commands of installed packages:")[2]
    assert "Print the best candidate" in assay("best", "--help").out
    assert assay("best").out == "loud\n"
    assert "There is no command" not in assay("bets").err
    assert "Did you mean 'best'?" in assay("bets").err
    refused = assay("best", "--nothing")
    assert (refused.code, "--nothing" in refused.err) == (2, True)
    broken = assay("best", "--boom")
    assert broken.code == 1
    assert broken.err == (
        "assay: the command 'best' from the package assay-example 1.0 failed: ZeroDivisionError: no candidates. "
        "ASSAY_DEBUG=1 shows where it happened; please report it to its authors.\n"
    )


def test_its_parts_are_listed_with_their_origin_and_options(
    assay: Command, installed: Path
) -> None:
    listed = {row["name"]: row for row in assay("plugins", "--json").document["plugins"]}
    assert listed["manners"] == {
        "kind": "grader",
        "name": "manners",
        "package": "assay-example",
        "version": "1.0",
        "about": "Return two criteria: `short` and `greets`.",
        "options": [
            {
                "name": "longest",
                "about": "the most words that a short answer has; 10 unless stated.",
            }
        ],
        "problem": None,
    }
    assert listed["greeter"]["options"] == [{"name": "greeting", "about": ""}]
    assert (listed["csv"]["package"], listed["csv"]["version"]) == (None, None)
    assert "any_of" in [option["name"] for option in listed["contains"]["options"]]
    text = assay("plugins", "--installed")
    assert text.code == 0
    assert "assay-example 1.0" in text.out
    assert "longest: the most words" in text.out
    assert "built in" not in text.out


@pytest.mark.parametrize(
    ("command", "name", "own"), [("export", "lines", "csv"), ("import", "tally", "inspect")]
)
def test_help_lists_its_format_beside_those_of_assay(
    assay: Command, installed: Path, command: str, name: str, own: str
) -> None:
    own_part, _, packages = assay(command, "--help").out.partition("Formats of installed packages:")
    assert own in own_part.partition("Formats:")[2]
    assert packages.split() == [name, "assay-example", "1.0"]


def test_removing_the_package_leaves_clear_messages(assay: Command, installed: Path) -> None:
    run = assay("run", "plugged.yaml", "--json").document["run_id"]
    sys.path.remove(str(installed))
    refused = assay("run", "plugged.yaml")
    assert refused.code == 2
    for message in (
        "unknown provider 'shout'",
        "is 'greeter', but no installed package offers this agent. Install its package.",
        "is 'words_present', expected exact",
        "is 'manners', expected exact",
        "If a package offers it, install that package.",
    ):
        assert message in refused.err, message
    regraded = assay("regrade", run)
    assert regraded.code == 2
    assert (
        "is `words_present`, which no installed package offers. Install the package that offers it."
        in regraded.err
    )
    extended = assay("extend", run, "--trials", "1")
    assert extended.code == 2
    assert "unknown provider 'shout'" in extended.err
    assert "If a package offers this provider, install that package." in extended.err
    assert "has no format that Assay recognises" in assay("import", "t.tally").err
    named = assay("import", "t.tally", "--format", "tally")
    assert named.code == 2
    assert "tally" in named.err
    exported = assay("export", "lines", "--output", "out.txt")
    assert exported.code == 2
    assert "lines" in exported.err
    assert assay("stats", "--json").document["candidates"]
