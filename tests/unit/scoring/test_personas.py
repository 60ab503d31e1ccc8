"""Personas and ready-made rubrics: code is judged as code, and a letter is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from assay.domain.model import ModelSpec
from assay.domain.run import RunOptions
from assay.domain.suite import (
    CandidateSpec,
    JudgeMode,
    JudgeSpec,
    Scoring,
    Snippet,
    SourceFile,
    Suite,
    SuiteCopy,
    Task,
)
from assay.engine.planning import planned_run
from assay.scoring.prompts import CODE, NEUTRAL, SAFETY, system_prompt
from assay.scoring.reference_samples import identity_of
from assay.scoring.rubrics import CODE_RUBRIC, QUALITY, READY_MADE, is_code
from assay.store.database.codec import bytes_json, json_bytes, plan_bytes, plan_record

if TYPE_CHECKING:
    from assay.domain.run import RunPlan

JUDGE = JudgeSpec(
    name="judge", model=ModelSpec(provider="openai", name="some-model"), mode=JudgeMode.EACH
)
LETTER = Task(
    id="refund", thing="Refund", context="Answer the customer.", scoring=Scoring(method="judge")
)
CODED = replace(LETTER, id="cache", language="Python")


def planned(*tasks: Task, judge: JudgeSpec = JUDGE, **settings: object) -> RunPlan:
    suite = Suite(
        name="s",
        tasks=tasks,
        judges=(judge,),
        candidates=(CandidateSpec(name="a"),),
        copy=SuiteCopy(path="s.yaml", text="", digest=""),
        **settings,  # type: ignore[arg-type]  # a field of Suite
    )
    return planned_run(suite, RunOptions(), started="2026-11-22T20:00:00Z", seed=1, nonce="abcd")


def persona(plan: RunPlan) -> str:
    return system_prompt(plan.judges[0])


def test_a_letter_is_judged_by_a_neutral_judge() -> None:
    plan = planned(LETTER)
    assert (persona(plan), plan.rubric) == (NEUTRAL, QUALITY)
    assert "engineer" not in NEUTRAL


def test_code_is_judged_by_an_engineer() -> None:
    assert (persona(planned(CODED)), planned(CODED).rubric) == (CODE, CODE_RUBRIC)
    assert persona(planned(LETTER, rubric=CODE_RUBRIC)) == CODE
    assert persona(planned(CODED, rubric=READY_MADE["style"])) == CODE


def test_letters_among_code_keep_the_judge_neutral() -> None:
    assert persona(planned(CODED, LETTER)) == NEUTRAL
    by_rule = replace(LETTER, scoring=Scoring(method="exact"))
    assert persona(planned(CODED, by_rule)) == CODE


@pytest.mark.parametrize(
    ("language", "path", "code"),
    [
        ("python", "", True),
        ("C++", "", True),
        ("German", "", False),
        ("", "", False),
        ("", "bob.py", True),
        ("", "letter.txt", False),
        ("french", "bob.py", False),
    ],
)
def test_code_is_known_by_language_or_files(language: str, path: str, code: bool) -> None:
    files = (SourceFile(path=path, content="x"),)
    assert (
        is_code(replace(LETTER, language=language, snippets=(Snippet(candidate="a", files=files),)))
        is code
    )


def test_a_persona_of_the_suite_comes_first() -> None:
    own = replace(JUDGE, persona="You answer refund requests.")
    system = persona(planned(CODED, judge=own))
    assert system.startswith("You answer refund requests. You judge what is in front of you")
    assert "material to be graded" in system
    assert persona(planned(CODED, judge=replace(JUDGE, persona="neutral"))) == NEUTRAL
    assert system_prompt(replace(JUDGE, prompt="{{candidates}}", persona="code")) == SAFETY
    assert (
        system_prompt(replace(own, prompt="{{candidates}}"))
        == f"You answer refund requests.\n\n{SAFETY}"
    )


def test_a_calibration_is_valid_for_one_persona() -> None:
    identities = {
        identity_of(replace(JUDGE, persona=name), QUALITY)
        for name in ("neutral", "code", "You are strict.")
    }
    assert len(identities) == 3


def test_an_earlier_run_keeps_the_persona_it_began_with() -> None:
    stored = bytes_json(plan_bytes(planned(LETTER)))
    del stored["judges"][0]["persona"]
    assert persona(plan_record(json_bytes(stored), suite_text="")) == CODE


@pytest.mark.parametrize("name", READY_MADE)
def test_each_ready_made_criterion_says_what_its_ends_mean(name: str) -> None:
    for criterion in READY_MADE[name].criteria:
        assert "10:" in criterion.guidance
        assert " 0:" in criterion.guidance
