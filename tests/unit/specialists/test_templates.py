"""Templates: inheritance, violations with their paths, limits, and the choice among versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from assay.domain.errors import InputError, SuiteErrors, UnknownName
from assay.specialists.templates import (
    LARGEST_TEMPLATE,
    enriched_folder,
    find_template,
    home_of,
    most_enriched,
    read_schema,
    read_template,
)

SHORT = """{
  name: "@org/my-specialist", version: "1.0.0", // the spelling with `source`
  persona: {purpose: "Help users with shadcn/ui components", tech_stack: ["React", "TypeScript", "Tailwind CSS"]},
  capabilities: {tags: ["ui", "components", "react"]},
  preferred_models: ["anthropic/claude-3.5-sonnet"],
  documentation: [{source: "https://ui.shadcn.com/docs", type: "web"}],
}"""

LONG = """{
  schema_version: "0.0.1", name: "shadcn-specialist", displayName: "shadcn/ui Expert", version: "0.0.1", license: "MIT",
  availability: "public", maintainers: [{name: "Team", email: "team@example.com"}],
  persona: {purpose: "p", values: ["v"], attributes: ["a"], tech_stack: ["React 19"]},
  capabilities: {tags: ["radix-ui"], descriptions: {"radix-ui": "d"}, considerations: ["c"]},
  dependencies: {subscription: {required: false}, available_tools: ["git"], mcps: [{name: "m", version: "^1.0.0"}]},
  documentation: [
    {type: "official", url: "https://ui.shadcn.com/docs", description: "d", enrichment: {summary: "s", relevant_tags: []}},
    {type: "control", path: "./control/SETUP.md", description: "d"},
  ],
  preferred_models: [{model: "claude-sonnet-4.5", weight: 0.9, benchmarks: {setup: 1}}, {model: "gpt-4o"}],
  prompts: {
    default: {spawnerPrompt: "I am", project_setup: "Set up {framework}"},
    model_specific: {"claude-sonnet-4.5": {spawnerPrompt: "I am"}},
    figma_operations: {default: {systemPrompt: "You are"}},
    prompt_strategy: {fallback: "default", model_detection: "auto", interpolation: {style: "mustache", escape_html: false}},
  },
  spawnable_sub_agent_specialists: [],
}"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def minimal(**changes: str) -> str:
    parts = {
        "name": '"@org/a"',
        "version": '"1.0.0"',
        "persona": '{purpose: "p"}',
        "capabilities": '{tags: ["t"]}',
        **changes,
    }
    return "{" + ", ".join(f"{name}: {value}" for name, value in parts.items()) + "}"


@pytest.mark.parametrize(
    ("text", "name"), [(SHORT, "@org/my-specialist"), (LONG, "shadcn-specialist")]
)
def test_both_spellings_of_templates_are_accepted(tmp_path: Path, text: str, name: str) -> None:
    template = read_template(write(tmp_path / "t.json5", text))
    assert template.name == name
    assert template.preferred_models[0] in ("anthropic/claude-3.5-sonnet", "claude-sonnet-4.5")


def test_the_schema_is_a_valid_schema_of_its_dialect() -> None:
    Draft202012Validator.check_schema(read_schema("template"))
    assert read_schema("template")["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_all_violations_are_listed_with_their_paths(tmp_path: Path) -> None:
    text = minimal(
        version='"1.0"',
        persona="{}",
        personna="1",
        documentation='[{url: "https://a.b"}, {url: "nowhere"}, {url: "x://", path: "p"}]',
    )
    with pytest.raises(SuiteErrors) as raised:
        read_template(write(tmp_path / "t.json5", text))
    lines = [str(error).partition("t.json5 ")[2] for error in raised.value.errors]
    assert sorted(lines) == [
        'documentation[1].url: is "nowhere", expected an address such as https://example.com/docs.',
        'documentation[2].url: is "x://", expected an address such as https://example.com/docs.',
        'documentation[2]: is {"url": "x://", "path": "p"}, expected an object with exactly one of `source`, `url` and `path`.',
        "persona.purpose: is missing.",
        "personna: is unknown. Did you mean 'persona'?",
        'version: is "1.0", expected a version such as 1.0.0.',
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{name: ", "is not valid JSON5"),
        (b"[1]", "is not an object"),
        (b"\xff\xfe", "is not valid JSON5"),
        (b"[" * 5000 + b"]" * 5000, "is nested too deeply"),
        (b"{a: Infinity}", "is not valid JSON5"),
        (b'{a: "\\ud800"}', "is not valid JSON5"),
        (b" " * (LARGEST_TEMPLATE + 1), "has more than 500,000 bytes"),
        (b"{a: [" + b"1," * 240_000 + b"]}", "has more than 20,000 names, values and marks"),
        (
            b"{\n  name: 'x'\n  version: 1}",
            "'version' stands where , or } is expected, at line 3, column 3",
        ),
    ],
)
def test_a_file_that_is_no_template_gets_one_message(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "t.json5"
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem) as raised:
        read_template(path)
    assert "\n" not in str(raised.value)


def test_a_device_or_a_missing_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json5")
    for name in ("pipe.json5", "missing.json5"):
        with pytest.raises(InputError, match="is not a file"):
            read_template(tmp_path / name)


def test_a_child_overrides_its_parent_and_replaces_lists(tmp_path: Path) -> None:
    write(
        tmp_path / "base.json5",
        minimal(persona='{purpose: "p", values: ["a", "b"]}', license='"MIT"'),
    )
    child = write(
        tmp_path / "child.json5", '{from: "./base.json5", name: "child", persona: {values: ["c"]}}'
    )
    template = read_template(child)
    assert template.document == {
        "name": "child",
        "version": "1.0.0",
        "persona": {"purpose": "p", "values": ["c"]},
        "capabilities": {"tags": ["t"]},
        "license": "MIT",
    }


def test_a_parent_is_looked_up_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "templates" / "a.json5", minimal())
    child = write(tmp_path / "templates" / "b.json5", '{from: "@org/a@1.0.0", name: "b"}')
    assert read_template(child).version == "1.0.0"


def test_a_parent_may_lie_anywhere_in_the_folder_of_templates(tmp_path: Path) -> None:
    write(tmp_path / "templates" / "base" / "base.json5", minimal())
    write(tmp_path / "secret.json5", minimal())
    child = write(
        tmp_path / "templates" / "b" / "b.json5", '{from: "../base/base.json5", name: "b"}'
    )
    assert read_template(child).version == "1.0.0"
    write(child, '{from: "../../secret.json5", name: "b"}')
    with pytest.raises(InputError, match="lies outside"):
        read_template(child)


def test_cycles_and_parents_outside_of_the_folder_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.json5", '{from: "b.json5"}')
    write(tmp_path / "in" / "b.json5", '{from: "a.json5"}')
    write(tmp_path / "secret.json5", minimal())
    (tmp_path / "in" / "link.json5").symlink_to(tmp_path / "secret.json5")
    for name, problem in (
        ("a.json5", "leads back to"),
        ("c.json5", "lies outside"),
        ("d.json5", "lies outside"),
        ("e.json5", "lies outside"),
    ):
        write(tmp_path / "in" / "c.json5", '{from: "../secret.json5"}')
        write(tmp_path / "in" / "d.json5", '{from: "link.json5"}')
        write(tmp_path / "in" / "e.json5", f'{{from: "{tmp_path}/secret.json5"}}')
        with pytest.raises(InputError, match=problem):
            read_template(tmp_path / "in" / name)


def test_the_newest_enriched_version_comes_first(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json5", minimal(documentation='[{path: "d.md"}]'))
    assert most_enriched(path) == path
    copy = write(tmp_path / "a" / "1.0.0" / "a.json5", path.read_text())
    assert most_enriched(path) == copy
    enriched = minimal(documentation='[{path: "d.md", enrichment: {summary: "s"}}]')
    other = write(tmp_path / "enriched" / "1.0.0" / "enriched-001.json5", enriched)
    assert most_enriched(path) == other
    newest = write(enriched_folder(path, "1.0.0") / "enriched-012.json5", enriched)
    write(enriched_folder(path, "1.0.0") / "enriched-002.json5", enriched)
    write(enriched_folder(path, "2.0.0") / "enriched-099.json5", enriched)
    assert newest.parent == tmp_path / "a" / "enriched" / "1.0.0"
    assert most_enriched(path) == newest
    assert home_of(newest) == tmp_path


def test_enriched_versions_older_than_the_template_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a" / "a.json5", minimal(documentation='[{path: "d.md"}]'))
    place = enriched_folder(path, "1.0.0")
    assert place == tmp_path / "a" / "enriched" / "1.0.0", (
        "a template in a folder of its own name needs no other"
    )
    write(
        place / "enriched-001.json5",
        minimal(documentation='[{path: "d.md", enrichment: {summary: "s"}}]'),
    )
    assert most_enriched(path).name == "enriched-001.json5"
    write(path, minimal(documentation='[{path: "d.md"}]', persona='{purpose: "another"}'))
    assert most_enriched(path) == path


def test_a_template_is_looked_up_by_name_and_version(tmp_path: Path) -> None:
    for version in ("1.2.0", "1.10.0", "1.10.0-rc.1"):
        write(tmp_path / "a" / version / "a.json5", minimal(version=f'"{version}"'))
    assert find_template("@org/a", tmp_path).parent.name == "1.10.0"
    assert find_template("a@1.2.0", tmp_path).parent.name == "1.2.0"
    for wanted in ("@other/a", "@org/a@9.0.0", "missing"):
        with pytest.raises(UnknownName):
            find_template(wanted, tmp_path)
    with pytest.raises(InputError, match="expected a file, or a name"):
        find_template("../a", tmp_path)
