"""Prompts of specialists: the task's type, the model's variant, variables, and the documents that
fit.
"""

from __future__ import annotations

from typing import Any

import pytest

from assay.domain.errors import InputError
from assay.domain.specialists import SpecialistTemplate
from assay.domain.suite import Message, Scoring, Task
from assay.specialists.prompts import (
    best_documents,
    filled,
    matching_model,
    specialist_prompt,
    task_type,
)


def template(**changes: Any) -> SpecialistTemplate:
    document: dict[str, Any] = {
        "name": "@org/react-expert",
        "version": "1.0.0",
        "persona": {"purpose": "Help with React", "tech_stack": ["React", "TypeScript"]},
        "capabilities": {"tags": ["ui"]},
        **changes,
    }
    return SpecialistTemplate(
        name=document["name"],
        version=document["version"],
        persona=document["persona"],
        capabilities=document["capabilities"],
        preferred_models=(),
        documentation=tuple(document.get("documentation", ())),
        prompts=document.get("prompts", {}),
        document=document,
    )


def task(text: str, *tags: str) -> Task:
    return Task(
        id="t",
        thing="T",
        prompt=(Message(role="user", content=text),),
        scoring=Scoring(method="exact"),
        tags=tags,
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Setup a new React project", "project_setup"),
        ("Create a button component", "component_generation"),
        ("Migrate to React 18", "migration"),
        ("Fix the login bug", "bug_fix"),
        ("Refactor the code", "refactoring"),
        ("Hello world", "default"),
        ("The prefix of each setupFile stays.", "default"),
        ("Fix the tests, then refactor the code.", "bug_fix"),
    ],
)
def test_the_first_telling_word_shows_the_type_of_a_task(text: str, kind: str) -> None:
    assert task_type(text) == kind


@pytest.mark.parametrize(
    ("key", "model", "matches"),
    [
        ("claude-sonnet-4.5", "anthropic/claude-sonnet-4.5", True),
        ("claude-sonnet-4.5", "claude-sonnet-4", True),
        ("claude-sonnet-4.5", "CLAUDE-SONNET-4.5", True),
        ("claude-sonnet-4.5", "claude-sonnet-4-5-20250929", True),
        ("claude-3.5-sonnet", "openrouter/anthropic/claude-3.5-sonnet", True),
        ("anthropic/claude-3.5-sonnet", "claude-3-5-sonnet-latest", True),
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o-mini", "gpt-4o", False),
        ("gpt-4", "gpt-4o", False),
        ("claude-sonnet-4.5", "claude-opus-4.5", False),
        ("gpt-4o", "", False),
    ],
)
def test_a_key_matches_other_versions_and_no_other_model(
    key: str, model: str, matches: bool
) -> None:
    assert matching_model([key], model) == (key if matches else None)


def test_an_exact_model_comes_before_a_longer_version() -> None:
    assert (
        matching_model(["claude-sonnet-4-5", "claude-sonnet-4"], "claude-sonnet-4")
        == "claude-sonnet-4"
    )


def test_variables_are_filled_in_once_and_lists_are_joined() -> None:
    values = {"a": ["x", "y"], "b": {"c": "{{a}}"}, "n": 3}
    assert (
        filled("{{a}} | {{ b.c }} | {{{n}}} | {{missing}} | {{b}} | {kept}", values)
        == "x, y | {{a}} | 3 |  |  | {kept}"
    )


def test_a_prompt_that_its_variables_swell_is_refused() -> None:
    with pytest.raises(InputError, match="more than 500,000 characters"):
        filled("{{a}}" * 10_000, {"a": "x" * 10_000})


def test_the_prompt_has_the_variants_of_the_model_and_the_task() -> None:
    prompts = {
        "default": {"spawnerPrompt": "General {{persona.purpose}}", "bug_fix": "Listed bug"},
        "model_specific": {
            "gpt-4o": {"spawnerPrompt": "General for {{model}}", "refactoring": "Listed for gpt"}
        },
        "migration": {
            "default": "Migrate",
            "model_specific": {"gpt-4o": {"systemPrompt": "Migrate, gpt"}},
        },
        "L2": "Own type: {{prompt}}",
        "prompt_strategy": {"fallback": "default"},
    }
    own = template(prompts=prompts)

    def prompt(text: str, model: str, *tags: str) -> str:
        return specialist_prompt(own, task(text, *tags), model)

    assert prompt("Migrate it", "openai/gpt-4o") == "General for openai/gpt-4o\n\nMigrate, gpt"
    assert prompt("Migrate it", "gpt-4o-mini") == "General Help with React\n\nMigrate"
    assert prompt("Refactor it", "gpt-4o") == "General for gpt-4o\n\nListed for gpt"
    assert prompt("Fix it", "other") == "General Help with React\n\nListed bug"
    assert (
        prompt("Hello {{name}}", "other", "L2")
        == "General Help with React\n\nOwn type: Hello {{name}}"
    )


def test_a_template_that_demands_a_prompt_for_the_model_is_refused() -> None:
    prompts = {
        "model_specific": {"gpt-4o": {"spawnerPrompt": "x"}},
        "prompt_strategy": {"fallback": "error"},
    }
    assert specialist_prompt(template(prompts=prompts), task("Hello"), "gpt-4o") == "x"
    with pytest.raises(
        InputError, match="has no prompt for the model 'gpt-4o-mini', only for gpt-4o"
    ):
        specialist_prompt(template(prompts=prompts), task("Hello"), "gpt-4o-mini")


def test_without_prompts_the_persona_makes_the_prompt() -> None:
    text = specialist_prompt(template(), task("Hello"), "")
    assert "Your purpose: Help with React" in text
    assert "Technologies: React, TypeScript" in text
    assert "Values" not in text


def test_the_best_five_enriched_documents_are_added() -> None:
    def document(name: str, summary: str, kind: str = "reference", **notes: Any) -> dict[str, Any]:
        return {
            "url": f"https://x.org/{name}",
            "type": kind,
            "enrichment": {"summary": summary, **notes},
        }

    documents = [
        {"url": "https://x.org/bare", "type": "official"},
        document("vue", "Vue in short", "official"),
        document("react", "React in short", key_concepts=["hooks"]),
        document("control", "Nothing that fits", "control"),
        *(document(f"n{n}", "TypeScript") for n in range(5)),
        document("tagged", "Buttons", "examples", relevant_tags=["ui-button"]),
    ]
    own = template(documentation=documents)
    best = best_documents(own, "Build a UI button in React with TypeScript", "default")
    chosen = [each["url"].rpartition("/")[2] for each in best]
    assert chosen == ["tagged", "react", "n0", "n1", "n2"], (
        "competing frameworks, bare and control documents are left out"
    )
    assert "* https://x.org/react: React in short Key concepts: hooks." in specialist_prompt(
        own, task("React hooks"), ""
    )
