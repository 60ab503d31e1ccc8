"""`assay bench --specialist`: from a template to prompts, candidates, comparisons and received
runs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.app.runs.scenario_runs import scenario_suite
from assay.app.specialists.candidates import add_specialist, preferred_agents, specialist_template
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.domain.identifiers import RunId
from assay.domain.prompts import candidate_messages
from assay.domain.specialists import Specialist, specialist_of
from tests.journey.conftest import Command
from tests.journey.test_bench import bench, scenario
from tests.journey.test_task_tests import _no_sandbox_works
from tests.support.model_server import Call, ModelServer, Said
from tests.web.conftest import serving

__all__ = ["scenario"]

TEMPLATE = """{
  name: "@org/slugs", version: "1.2.0", persona: {purpose: "Mend slugs"}, capabilities: {tags: ["slugs"]},
  preferred_models: [PREFERRED],
  prompts: {default: {spawnerPrompt: "You know slugs. Column: {{thing}}"}, bug_fix: "Fix with care.",
            model_specific: {solver: {spawnerPrompt: "You are the solver's variant."}}},
}"""


def template(project: Path, preferred: str = '"openai/solver"') -> Path:
    path = project / "templates" / "slugs.json5"
    path.parent.mkdir(exist_ok=True)
    path.write_text(TEMPLATE.replace("PREFERRED", preferred), "utf-8")
    return path


@pytest.mark.slow
def test_the_preferred_model_gets_the_prompt_and_is_compared(
    assay: Command, server: ModelServer, project: Path, scenario: Path
) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    template(project)

    def answer(call: Call) -> Said | str:
        return "Mended."

    server.answer = answer
    document = bench(
        assay, "--specialist", "@org/slugs", "--baseline", "--tier", "L0", "--batch-id", "b1"
    )
    specialist = "openai/solver with @org/slugs 1.2.0"
    outcomes = {each["agent"]: each for each in document["agent_trials"]}
    assert set(outcomes) == {"openai/solver", specialist}
    assert outcomes["openai/solver"]["specialist"] is None
    assert outcomes[specialist]["specialist"]["name"] == "@org/slugs"
    systems = sorted(
        call.body["messages"][1]["content"]
        for call in server.calls
        if call.body["messages"][1]["role"] == "system"
    )
    assert systems == ["You are the solver's variant.\n\nFix with care."], (
        "the baseline has no prompt of the specialist"
    )
    with Workspace.open(project, environment={}) as opened:
        plan = opened.journal.plan_of(RunId(document["run_id"]))
    assert [specialist_of(candidate) is None for candidate in plan.candidates] == [True, False]


@pytest.mark.slow
def test_received_runs_of_a_specialist_name_it_once(
    assay: Command, project: Path, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    remote = tmp_path / "remote"
    remote.mkdir()
    path = template(project)
    with serving(remote) as server:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ASSAY_SERVER", f"http://127.0.0.1:{server.port}/")
        document = bench(
            assay,
            "--agent",
            "echo",
            "--specialist",
            str(path),
            "--baseline",
            "--tier",
            "L0",
            "--batch-id",
            "b7",
        )
        assert document["push"]["sent"] == 2, document["push"]
        received = server.get("/api/batches/b7")
        runs = [server.get(f"/api/runs/{run['run_id']}")["run"] for run in received["runs"]]
    assert sorted(each["candidate"] for each in received["candidates"]) == [
        "echo",
        "echo with @org/slugs 1.2.0",
    ]
    named = {
        run["candidates"][0]: (
            run["specialistEnabled"],
            run["specialistName"],
            run["specialistVersion"],
        )
        for run in runs
    }
    assert named == {
        "echo": (False, None, None),
        "echo with @org/slugs 1.2.0": (True, "@org/slugs", "1.2.0"),
    }
    with Workspace.open(remote, environment={}) as opened:
        (digest,) = {
            specialist.digest
            for run in runs
            for candidate in opened.journal.plan_of(RunId(run["runId"])).candidates
            if (specialist := specialist_of(candidate)) is not None
        }
    assert digest, "the server knows which template was used, not only its name"


def test_prompts_are_planned_for_each_task_and_shown_to_reviewers(
    project: Path, scenario: Path
) -> None:
    path = template(project)
    with Workspace.open(project, environment={}) as opened:
        own, file = specialist_template(opened.folder, str(path))
        suite = scenario_suite(
            opened.settings,
            "basics",
            ["fix-slug"],
            agents=["mine=cmd: ./agent --model openai/solver", "echo"],
        )
    assert file == path
    mine, echo = add_specialist(suite, own).candidates
    assert (mine.name, echo.name) == ("mine with @org/slugs 1.2.0", "echo with @org/slugs 1.2.0")
    task = next(iter(suite.tasks))
    assert (
        candidate_messages("", task, mine)[0].content
        == "You are the solver's variant.\n\nFix with care."
    )
    assert (
        candidate_messages("", task, echo)[0].content
        == "You know slugs. Column: Mend a slug function (L0)\n\nFix with care."
    )
    assert specialist_of(mine) == Specialist(name="@org/slugs", version="1.2.0", digest=own.digest)
    assert specialist_of(suite.candidates[0]) is None


def test_a_name_too_long_with_the_specialist_is_refused(project: Path, scenario: Path) -> None:
    with Workspace.open(project, environment={}) as opened:
        own, _ = specialist_template(opened.folder, str(template(project)))
        suite = scenario_suite(
            opened.settings, "basics", ["fix-slug"], agents=["cmd: " + "x" * 180]
        )
        with pytest.raises(InputError, match="Give it a name"):
            add_specialist(suite, own)


def test_agent_and_model_default_to_the_preferred_ones(project: Path) -> None:
    def agents(preferred: str, *given: str, model: str | None = None) -> tuple[str, ...]:
        with Workspace.open(project, environment={}) as opened:
            return preferred_agents(
                specialist_template(opened.folder, str(template(project, preferred)))[0],
                given,
                model,
            )

    both = '"anthropic/claude-3.5-sonnet", {model: "gpt-4o"}'
    assert agents(both) == ("anthropic/claude-3.5-sonnet",)
    assert agents(both, "openai") == ("openai/gpt-4o",)
    assert agents(both, "openai", model="o3") == ("openai",)
    assert agents(both, "claude-code", "echo") == ("claude-code --model claude-3.5-sonnet", "echo")
    assert agents(both, "openai/o3", "claude-code --model haiku") == (
        "openai/o3",
        "claude-code --model haiku",
    )
    assert agents('"claude-sonnet-4.5"') == ("anthropic/claude-sonnet-4.5",)
    assert agents('{model: "gpt-4o", specialist_enabled: false}, "claude-x"') == (
        "anthropic/claude-x",
    )
    assert agents('"replay/answers.jsonl"') == ("replay/answers.jsonl",), (
        "any known provider will do"
    )
    for preferred in ("", '"mystery-9"', '"mystery/9"'):
        with pytest.raises(InputError, match=r"Add --agent"):
            agents(preferred)


def test_a_starter_template_is_valid_and_never_overwritten(assay: Command, project: Path) -> None:
    made = assay("init", "--specialist", "@org/deps", "--json")
    assert made.code == 0, made.err
    (path,) = made.document["files"]
    assert path == "templates/deps.json5"
    assert assay("validate", path).out == f"{path}: valid\n"
    assert assay("init", "--specialist", "@org/deps").code == 2
    for name in ("../x", "@org/", "org/deps", "Deps"):
        assert "expected @ORG/NAME or NAME" in assay("init", "--specialist", name).err
    (project / path).write_text('{name: "x"}', "utf-8")
    refused: Any = json.loads(assay("validate", path, "--json").out)
    assert {each["where"].partition(" ")[2] for each in refused["files"][0]["problems"]} == {
        "version",
        "persona",
        "capabilities",
    }
    assert "version: is missing" in assay("bench", "a", "b", "--specialist", path).err
    assert (
        assay("validate", "--schema", "template").document["title"] == "Assay specialist template"
    )


def test_options_of_a_specialist_need_it(assay: Command, project: Path) -> None:
    assert "Add --specialist" in assay("bench", "a", "b", "--baseline").err
    assert (
        "there is no specialist '@org/missing'"
        in assay("bench", "a", "b", "--specialist", "@org/missing").err
    )
