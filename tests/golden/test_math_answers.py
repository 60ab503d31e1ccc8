"""Final answers: pairs worked out by hand, Math-Verify's own pairs, and real answers of real models to published figures.

The real data is not part of this repository: it lies in `shared/data` beside it, or where ASSAY_SHARED says. The floors
are the rates measured when these tests were written.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from assay.domain.isolation import IsolatedRequest, Returned
from assay.scoring import mathematics
from assay.scoring.outcome import Score

pytest.importorskip("math_verify", reason="the extra `math` is not installed")

from assay.scoring import symbolic

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[3] / "shared")) / "data"
real = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real data is not at {DATA}; set ASSAY_SHARED to its folder")


def score(response: str, reference: str) -> float:
    """What `math` says; the child's part runs in this process, so that a failure shows where it comes from."""
    outcome = mathematics.begin(response, reference)
    if isinstance(outcome, IsolatedRequest):
        arguments: Any = outcome.arguments
        outcome = mathematics.finish(Returned(symbolic.same_answer(**arguments)))
    assert isinstance(outcome, Score), outcome
    return outcome.value


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / path).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("apple", "apple"), ("x + y", "y + x"), (r"\frac{1}{2}", "0.5"), ("2*x", "x*2"), ("2x", "2*x"), ("0.5", ".5"),
        ("60.", "60"), ("2^3", "8"), ("10", "10.0"), ("1e3", "1000"), (r"\sqrt{4}", "2"), (r"\infty", "oo"),
        (r"\sin^2 x+\cos^2 x", "1"), ("sin(x)**2 + cos(x)**2", "1"), ("uncountable", "Uncountable"),
        ("60", r"\(60\)"), ("$60$", "60"), (r"\boxed{60}", "60"), ("1,000", "1000"), ("50%", "0.5"), ("0.5", r"50\%"),
        ("x = 10", "10"), ("10", "x = 10"), ("{1,2}", "{2,1}"), ("2,1", "{1,2}"), (r"\{1,2\}", "2,1"), ("3 cm", "3"),
        ("exp(1)", "E"), ("I**2", "-1"), ("The answer is uncountable.", r"\(Uncountable\)"), ("−3", "-3"), ("2×3", "6"),
        (r"12\frac{3}{5}", "63/5"), ("5 1/2", "5.5"), ("[0,1)", "[0, 1)"), ("x=3 or x=5", "5, 3"), (r"\frac12", "0.5"),
        (r"\boxed{\frac{1}{\boxed{2}}}", "0.5"), (r"so \boxed{3}. No: \boxed{4}", "4"), (r"\boxed{x=\frac{a}{b}}", r"\frac{a}{b}"),
        (r"\[ 9 \]", "9"), (r"6 \text{ cm}^2", "6"), ("x^2+2x+1", "(x+1)^2"), (r"7\pi", "7pi"), ("4a-2", "-2+4a"),
        (r"2\sqrt{3}", "sqrt(12)"), (r"900,\!000,\!000", "900000000"), ("some work\n#### 1,234", "1234"), ("work\nA: 18", "18"),
        (r"\boxed{-2} \quad \text{and} \quad \boxed{1}", "1, -2"), ("(2+i)(2-i)", "5"), ("$12.50", "12.5"), ("(A)", "A"),
    ],
)  # fmt: skip
def test_the_same_answer_in_another_form(response: str, reference: str) -> None:
    assert score(response, reference) == 1


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("x + y", "x - y"), ("invalid[syntax", "x"), ("1/3", "0.333"), ("yes", "no"), ("A", "B"), ("(1,2)", "(2,1)"),
        ("[0,1)", "[0,1]"), ("3", "4"), ("x = 3", "4"), ("{1,2}", "{1,3}"), ("1,000", "1001"), ("3 cm", "3 km"), ("50%", "5"),
        ("50", "0.5"), ("-5", "5"), ("10-5", "-5"), ("x", "y"), ("2x", "x"), ("", "5"), ("{1,2}", "{1,2,2}"), ("2x=6", "6"),
        ("__import__('os').getcwd()", "5"), ("1234567", "1234568"), ("1234567.0", "1234568.0"), (r"\boxed{}", "0"),
    ],
)  # fmt: skip
def test_another_answer(response: str, reference: str) -> None:
    assert score(response, reference) == 0


def test_no_text_reaches_an_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    symbolic.warm_up()
    import builtins

    reached: list[object] = []
    monkeypatch.setattr(builtins, "eval", lambda *given: reached.append(given))
    for text in (
        "x+1",
        r"\frac{x}{2}",
        "9-4",
        "sqrt(16)",
        r"\sin(0)",
        "f(2)",
        r"x \in \{1,2\}",
        "abs(-5)",
        "lambda: 5",
    ):
        score(text, "y+5")
    assert reached == []


@real
def test_math_verifys_own_pairs() -> None:
    """81 of 83. The two: `1,22` is a list here and no 1.22, and boxes joined by prose are not one answer."""
    agreed = [
        score(row["pred"], row["gold"]) == row["expected"] for row in rows("math_latex/DERIVED_math_verify_pairs.jsonl")
    ]
    assert len(agreed) == 83
    assert sum(agreed) >= 81


@real
def test_sampled_completions_score_to_their_published_flags() -> None:
    """480 whole completions to 60 MATH problems, 444 of them correct, 16 of these written otherwise than the reference."""
    agreed = right = 0
    for row in rows("math_latex/math_cot_100.part1.jsonl"):
        for completion, flag in zip(row["code"], row["score"], strict=True):
            value = score(completion, row["gt"])
            right += value == 1
            agreed += (value == 1) is flag
    assert (right, agreed) == (444, 480)


@real
def test_gsm8k_solutions_score_to_the_published_accuracy() -> None:
    """Four models, 1,319 problems; every flag, and so 21.68%, 39.04%, 34.72% and 56.25%."""
    right: Counter[str] = Counter()
    differing = 0
    for row in rows("gsm8k/example_model_solutions.jsonl"):
        for model, solved in row.items():
            if model not in ("question", "ground_truth"):
                value = score(solved["solution"], row["ground_truth"])
                right[model] += value == 1
                differing += (value == 1) is not solved["is_correct"]
    assert differing == 0
    assert right == {
        "6b_finetuning": 286, "6b_verification": 515, "175b_finetuning": 458, "175b_verification": 742,
    }  # fmt: skip


@real
def test_every_reference_solution_of_math_is_its_own_answer() -> None:
    solutions = [row["solution"] for row in rows("math_latex/MATH_test.last2500.jsonl")]
    assert sum(score(solution, solution) == 1 for solution in solutions) == len(solutions) == 2500
