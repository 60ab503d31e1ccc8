"""Replies of a judge under a rubric with verdicts: the parser and aggregation tables of the
pipeline that Assay replaces.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.domain.assessment import Assessment, FlagKind, Response
from assay.domain.calls import Reply
from assay.domain.model import ModelSpec
from assay.domain.suite import Criterion, JudgeMode, JudgeSpec, Rubric, Scoring, Task
from assay.domain.verdicts import Verdict, VerdictRules
from assay.scoring.evaluator import GradingAttempt, UnreadableReply
from assay.scoring.judge import EachJudge
from assay.scoring.structuring import read_structure
from assay.scoring.verification import with_verification

WORDS = (("Yes", 1.0), ("Partial", 0.5), ("No", 0.0))
FIVE = (
    "Problem Understanding",
    "Assumptions",
    "Logical Implications",
    "Results Formulae",
    "Rigor and Completeness",
)
LONG = "A justification that says why."
SAMPLE = """Some introductory text from the LLM.
```json
{
    "evaluation": {
        "Problem Understanding": {"score": "Yes", "justification": "Model correctly identified it.", "confidence": 0.9},
        "Results Formulae": {"Score": "no", "Justification": "Final answer was incorrect."},
        "Assumptions": {"score": "Partial", "justification": "Some assumptions were missed."}
    },
    "overall_comment": "Good start, but calculation error."
}
```

Some concluding text."""


def judged(
    text: str, *names: str, words: tuple[tuple[str, float], ...] = WORDS, **rules: Any
) -> Assessment:
    criteria = tuple(Criterion(name=name, low=0.0, high=1.0, labels=words) for name in names)
    rubric = Rubric(criteria=criteria, rules=VerdictRules(**rules))
    spec = JudgeSpec(
        name="judge", model=ModelSpec(provider="openai", name="some"), mode=JudgeMode.EACH
    )
    task = Task(id="t", thing="t", scoring=Scoring(method="judge"))
    grading = GradingAttempt(
        task=task, responses=(Response(candidate="m1", text="60"),), labels={"m1": "A"}
    )
    return EachJudge(spec, rubric).read(grading, (Reply(text=text),))


def evaluation(**grades: tuple[str, str]) -> str:
    return json.dumps(
        {"evaluation": {name: {"score": a, "justification": b} for name, (a, b) in grades.items()}}
    )


def kinds(assessment: Assessment) -> list[str]:
    return [flag.kind.value for flag in assessment.flags]


@pytest.mark.parametrize(
    ("grades", "verdict", "flags"),
    [
        ({"rigor": ("Yes", LONG), "result": ("YES", LONG + " Again.")}, Verdict.PASS, []),
        ({"rigor": ("Yes", LONG), "result": ("No", LONG + " Not.")}, Verdict.FAIL, []),
        (
            {"rigor": ("Yes", LONG), "result": ("No", "Wrong.")},
            Verdict.FAIL,
            ["trivial_justification"],
        ),
        (
            {"rigor": ("Yes", LONG), "result": ("Partial", "Short")},
            Verdict.PARTIAL,
            ["partial_score", "trivial_justification"],
        ),
        (
            {"rigor": ("Yes", LONG), "result": ("Partial", LONG + " Half.")},
            Verdict.PARTIAL,
            ["partial_score"],
        ),
        ({"rigor": ("Yes", LONG)}, Verdict.FAIL, ["missing_criterion", "aggregation_trouble"]),
        ({"rigor": ("No", LONG)}, Verdict.FAIL, ["missing_criterion"]),
        (
            {"rigor": ("Yes", LONG), "result": ("Maybe", LONG)},
            Verdict.FAIL,
            ["missing_criterion", "aggregation_trouble"],
        ),
    ],
)
def test_grades_give_the_verdict_and_flags_of_the_table(
    grades: dict[str, tuple[str, str]], verdict: Verdict, flags: list[str]
) -> None:
    assessment = judged(evaluation(**grades), "rigor", "result")
    assert assessment.verdicts == {"m1": verdict}
    assert [
        kind
        for kind in kinds(assessment)
        if kind in {*flags, "partial_score", "trivial_justification"}
    ] == flags


def test_each_rule_and_each_flag_can_be_switched_off() -> None:
    text = evaluation(rigor=("No", "Short"), result=("Partial", LONG))
    assert judged(text, "rigor", "result", fail_if_any_no=False).verdicts == {"m1": Verdict.PARTIAL}
    neither = judged(text, "rigor", "result", fail_if_any_no=False, partial_if_any_partial=False)
    assert neither.verdicts == {"m1": Verdict.FAIL}
    assert "aggregation_trouble" in kinds(neither)
    off = judged(
        text,
        "rigor",
        "result",
        partial_score=False,
        trivial_justification=False,
        aggregation_trouble=False,
    )
    assert not {"partial_score", "trivial_justification", "aggregation_trouble"} & set(kinds(off))
    assert "trivial_justification" not in kinds(judged(text, "rigor", "result", trivial_chars=3))
    yes = evaluation(rigor=("Yes", LONG), result=("Yes", LONG + " Too."))
    assert kinds(judged(yes, "rigor", "result", pass_if_all_yes=False)) == ["aggregation_trouble"]


def test_keys_of_any_case_are_read_in_the_sample() -> None:
    three = judged(SAMPLE, FIVE[0], FIVE[3], FIVE[1])
    assert {grade.criterion: grade.score for grade in three.grades} == {
        FIVE[0]: 1.0,
        FIVE[3]: 0.0,
        FIVE[1]: 0.5,
    }
    assert {grade.criterion: grade.reason for grade in three.grades}[
        FIVE[3]
    ] == "Final answer was incorrect."
    assert three.grades[0].confidence == 0.9
    assert three.verdicts == {"m1": Verdict.FAIL}
    five = judged(SAMPLE, *FIVE)
    assert five.scores == {"m1": None}
    assert sum(kind == "missing_criterion" for kind in kinds(five)) == 2


def test_names_without_capitals_and_unasked_criteria_do_no_harm() -> None:
    text = json.dumps(
        {"evaluation": {name.lower(): {"score": "Yes", "justification": LONG} for name in FIVE}}
    )
    assert judged(text, FIVE[0], FIVE[3]).verdicts == {"m1": Verdict.PASS}


@pytest.mark.parametrize(
    "text", ["", "   ", "This is a text without braces.", "This is not JSON { evaluation: ... }"]
)
def test_a_reply_without_grades_is_a_parse_error(text: str) -> None:
    with pytest.raises(UnreadableReply):
        judged(text, "rigor")


def test_other_allowed_words_replace_the_default_ones() -> None:
    text = evaluation(rigor=("Pass", LONG))
    assert judged(text, "rigor", words=(("Pass", 1.0), ("Fail", 0.0))).verdicts == {
        "m1": Verdict.PASS
    }
    other = judged(evaluation(rigor=("Excellent", LONG)), "rigor")
    assert (other.scores, other.verdicts) == ({"m1": None}, {"m1": None})
    assert "aggregation_trouble" in kinds(other)


@pytest.mark.parametrize(
    ("score", "verified", "message"),
    [
        (1.0, True, "Final answer matches."),
        (0.0, False, "Final answer does not match."),
        (None, None, "Verification skipped: empty."),
    ],
)
def test_a_verification_stands_beside_the_score(
    score: float | None, verified: bool | None, message: str
) -> None:
    before = judged(evaluation(rigor=("Yes", LONG)), "rigor")
    after = with_verification(before, "m1", score, scorer="math", problem="empty.")
    (verification,) = after.verifications
    assert (verification.verified, verification.message) == (verified, message)
    assert (after.scores, after.verdicts) == (before.scores, before.verdicts)
    assert (FlagKind.FAILED_VERIFICATION in {flag.kind for flag in after.flags}) is (
        verified is False
    )


def test_a_structure_is_read_from_fences_and_other_spellings() -> None:
    text = 'Here it is:\n```json\n{"Steps": ["a", 2], "Final Answer": "\\\\(60\\\\)", "format_notes": null, "x": 1}\n```'
    structure = read_structure(Reply(text=text))
    assert (structure.steps, structure.final_answer, structure.format_notes) == (
        ("a", "2"),
        "\\(60\\)",
        "",
    )
    with pytest.raises(UnreadableReply):
        read_structure(Reply(text='{"steps": []}'))
