"""Keys of scenarios as other harnesses write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # its stubs are a package of their own
import pytest
import yaml

from assay.domain.scenarios import Scenario
from assay.suites.problems import SuiteErrors
from assay.suites.scenarios import load_scenario
from assay.suites.schema import scenario_json_schema
from assay.suites.starter import example_scenario

SCHEMA = jsonschema.Draft202012Validator(scenario_json_schema())
REAL = """
id: nx-pnpm-monorepo
suite: update-deps
title: Update a monorepo
timeout_minutes: 45
workspace: {required: true, node: 20.11.0, manager: pnpm, managers_allowed: [pnpm]}
constraints:
  blocklist: [moment]
  namespace_migrations: [{from: "@testing-library/react-hooks", to: "@testing-library/react"}]
  companion_versions: [{main: react, companions: [{name: react-dom, rule: major must match}]}]
targets: {required: [{name: react, to: ^18.2.0}, {name: typescript, to: "5.4"}], optional: [{name: vite, to: "5"}]}
validation: {commands: {install: pnpm install, test: pnpm test, lint: pnpm lint}}
oracle: {answers_file: answers.json}
warmup: {enabled: true, type: scripted, commands: [{cmd: pnpm install, description: install}]}
rubric_overrides: {weights: {install: 1.5, test: 2.5, package-manager: 1, dependency_targets: 2, lint: 0, namespace_migration: 0.5}}
success_criteria: [everything builds]
hints: {L1: look at package.json}
tags: [deps]
"""


def loaded(folder: Path, text: str, **oracle: Any) -> Scenario:
    for name, content in {
        "scenario.yaml": text,
        "prompts/L0-minimal.md": "Update.",
        "repo-fixture/package.json": "{}",
        "answers.json": json.dumps(oracle),
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    scenario = load_scenario(folder, base=folder).tasks[0].scenario
    assert scenario is not None
    return scenario


def test_each_key_stands_for_its_evaluator_or_command(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, REAL, answers={"which manager": "pnpm"})
    assert {spec.name: (spec.weight, spec.options) for spec in scenario.evaluators} == {
        "install": (1.5, {}),
        "lint": (0, {}),
        "test": (2.5, {}),
        "dependency_targets": (
            2,
            {
                "required": [
                    {"name": "react", "to": "^18.2.0"},
                    {"name": "typescript", "to": "5.4"},
                ],
                "forbidden": ["moment"],
            },
        ),
        "namespace_migration": (0.5, {"from": ["@testing-library/react-hooks"]}),
        "companion_versions": (1, {"companions": {"react": ["react-dom"]}}),
        "package_manager": (1, {"allowed": ["pnpm"]}),
        "integrity_guard": (1, {}),
    }
    assert scenario.baseline == ("node --version | grep -q '^v20[.]'", "pnpm install")
    assert scenario.keep == ("package.json",), "the fixture has no requirements.txt"
    assert scenario.search == ("@testing-library/react-hooks",)
    assert scenario.answers == {"which manager": "pnpm"}


def test_oracle_gives_the_options_of_evaluators_without_any(tmp_path: Path) -> None:
    text = (
        REAL
        + "evaluators: [{name: dependency-proximity}, {name: file-structure}, {name: dependency-targets}]\n"
    )
    text = text.replace(REAL[REAL.index("rubric_") : REAL.index("success_")], "")
    scenario = loaded(
        tmp_path, text, expected={"dependencies": {"react": "18.2.0"}, "files": ["pnpm-lock.yaml"]}
    )
    options = {spec.name: spec.options for spec in scenario.evaluators}
    assert options["dependency_proximity"] == {"expected": {"react": "18.2.0"}}
    assert options["file_structure"] == {"required": ["pnpm-lock.yaml"]}
    assert len(options["dependency_targets"]) == 2
    assert len(options) == 3, "evaluators that are listed are the only ones"
    with pytest.raises(SuiteErrors, match=r"'dependency_proximity' needs `expected`"):
        loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("change", "problem", "by_schema"),
    [
        (("node: 20.11.0", "node: latest"), "a version such as 20.11.0", False),
        (("node: 20.11.0", 'node: "20\'; rm -rf /"'), "a version such as 20.11.0", False),
        (("rule: major must match", "rule: same"), "expected major must match", True),
        (("type: scripted", "type: agent"), "expected scripted", True),
        (("type: scripted", "working_dir: control"), "a copy of the fixture", True),
        (("type: scripted", "agent: {model: x}"), "Write commands instead", True),
        (("tags: [deps]", "artifact: {type: figma}"), "into the fixture", True),
        (("tags: [deps]", "reference_path: reference"), "config_accuracy", True),
        (("test: 2.5", "tests: 2.5"), "names tests, which no evaluator", False),
        (("test: 2.5", "test: -1"), "of at least 0", True),
        (("{name: react, to: ^18.2.0}", "{name: react}"), "has no `to`", True),
        (("blocklist:", "blacklist:"), "Did you mean 'blocklist'", True),
        (("answers.json", "../outside.json"), "outside", False),
        (("answers.json", "nothing.json"), "does not exist", False),
    ],
)
def test_wrong_and_unsupported_keys_are_refused(
    tmp_path: Path, change: tuple[str, str], problem: str, by_schema: bool
) -> None:
    text = REAL.replace(*change)
    assert text != REAL
    with pytest.raises(SuiteErrors) as caught:
        loaded(tmp_path, text)
    (error,) = caught.value.errors
    assert problem in str(error)
    assert "scenario.yaml:" in str(error)
    assert SCHEMA.is_valid(yaml.safe_load(text)) is not by_schema


def test_schema_accepts_the_examples_and_other_spellings() -> None:
    SCHEMA.check_schema(scenario_json_schema())
    SCHEMA.validate(yaml.safe_load(REAL))
    SCHEMA.validate(
        yaml.safe_load(
            "{name: a, evaluators: [{name: build, weight: 0.4}], validation_commands: [npm install]}"
        )
    )
    for name in ("minimal", "bug-fix", "dependency-update", "migration", "refactoring"):
        SCHEMA.validate(yaml.safe_load(example_scenario(name)["scenario.yaml"]))
    for wrong in (
        "{evaluators: [{weight: 1}]}",
        "{timeout_minutes: 0}",
        "{evaluatorz: []}",
        "{threshold: 2}",
    ):
        assert not SCHEMA.is_valid(yaml.safe_load(wrong))
