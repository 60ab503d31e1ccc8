"""Final answers: pairs worked out by hand, Math-Verify's own pairs, and real answers of real models
to published figures.

The real data is not part of this repository: it lies in `shared/data` beside it, or where
ASSAY_SHARED says. The floors are the rates measured when these tests were written.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from assay.domain.isolation import IsolatedRequest, Returned
from assay.scoring import math_scorer
from assay.scoring.scorer_result import Score

pytest.importorskip("math_verify", reason="the extra `math` is not installed")

from assay.scoring import math_verify

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[3] / "shared")) / "data"
real = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the real data is not at {DATA}; set ASSAY_SHARED to its folder"
)


def score(response: str, reference: str) -> float:
    """Return the verdict of `math`; the child's part runs in this process, so that a failure shows
    its cause.
    """
    outcome = math_scorer.begin(response, reference)
    if isinstance(outcome, IsolatedRequest):
        arguments: Any = outcome.arguments
        outcome = math_scorer.finish(Returned(math_verify.same_answer(**arguments)))
    assert isinstance(outcome, Score), outcome
    return outcome.value


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / path).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("apple", "apple"),
        ("x + y", "y + x"),
        (r"\frac{1}{2}", "0.5"),
        ("2*x", "x*2"),
        ("2x", "2*x"),
        ("0.5", ".5"),
        ("60.", "60"),
        ("2^3", "8"),
        ("10", "10.0"),
        ("1e3", "1000"),
        (r"\sqrt{4}", "2"),
        (r"\infty", "oo"),
        (r"\sin^2 x+\cos^2 x", "1"),
        ("sin(x)**2 + cos(x)**2", "1"),
        ("uncountable", "Uncountable"),
        ("60", r"\(60\)"),
        ("$60$", "60"),
        (r"\boxed{60}", "60"),
        ("1,000", "1000"),
        ("50%", "0.5"),
        ("0.5", r"50\%"),
        ("x = 10", "10"),
        ("10", "x = 10"),
        ("{1,2}", "{2,1}"),
        ("2,1", "{1,2}"),
        (r"\{1,2\}", "2,1"),
        ("3 cm", "3"),
        ("exp(1)", "E"),
        ("I**2", "-1"),
        ("The answer is uncountable.", r"\(Uncountable\)"),
        ("−3", "-3"),
        ("2×3", "6"),
        (r"12\frac{3}{5}", "63/5"),
        ("5 1/2", "5.5"),
        ("[0,1)", "[0, 1)"),
        ("x=3 or x=5", "5, 3"),
        (r"\frac12", "0.5"),
        (r"\boxed{\frac{1}{\boxed{2}}}", "0.5"),
        (r"so \boxed{3}. No: \boxed{4}", "4"),
        (r"\boxed{x=\frac{a}{b}}", r"\frac{a}{b}"),
        (r"\[ 9 \]", "9"),
        (r"6 \text{ cm}^2", "6"),
        ("x^2+2x+1", "(x+1)^2"),
        (r"7\pi", "7pi"),
        ("4a-2", "-2+4a"),
        (r"2\sqrt{3}", "sqrt(12)"),
        (r"900,\!000,\!000", "900000000"),
        ("some work\n#### 1,234", "1234"),
        ("work\nA: 18", "18"),
        (r"\boxed{-2} \quad \text{and} \quad \boxed{1}", "1, -2"),
        ("(2+i)(2-i)", "5"),
        ("$12.50", "12.5"),
        ("(A)", "A"),
    ],
)
def test_the_same_answer_in_another_form(response: str, reference: str) -> None:
    assert score(response, reference) == 1


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("x + y", "x - y"),
        ("invalid[syntax", "x"),
        ("1/3", "0.333"),
        ("yes", "no"),
        ("A", "B"),
        ("(1,2)", "(2,1)"),
        ("[0,1)", "[0,1]"),
        ("3", "4"),
        ("x = 3", "4"),
        ("{1,2}", "{1,3}"),
        ("1,000", "1001"),
        ("3 cm", "3 km"),
        ("50%", "5"),
        ("50", "0.5"),
        ("-5", "5"),
        ("10-5", "-5"),
        ("x", "y"),
        ("2x", "x"),
        ("", "5"),
        ("{1,2}", "{1,2,2}"),
        ("2x=6", "6"),
        ("__import__('os').getcwd()", "5"),
        ("1234567", "1234568"),
        ("1234567.0", "1234568.0"),
        (r"\boxed{}", "0"),
    ],
)
def test_another_answer(response: str, reference: str) -> None:
    assert score(response, reference) == 0


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("3 1/2", "7/2"),
        ("3\\frac12", "3.5"),
        ("1\\tfrac{1}{2}", "1.5"),
        ("2 \\frac{1}{3}", "\\frac{7}{3}"),
        ("45^\\circ", "45"),
        ("45°", "45 degrees"),
        ("90^{\\circ}", "90"),
        ("60 degrees", "60^\\circ"),
        ("\\text{Paris}", "Paris"),
        ("\\text{(B)}", "B"),
        ("\\textbf{(C)}", "(C)"),
        ("B", "(B)"),
        ("\\mathrm{cm}", "cm"),
        ("12\\text{ inches}", "12"),
        ("(-\\infty, 3)", "(-oo,3)"),
        ("(-\\infty,\\infty)", "(-\\infty, +\\infty)"),
        ("[2,\\infty)", "[2, ∞)"),
        ("(-inf, 5]", "(-\\infty,5]"),
        ("x < 3", "(-\\infty,3)"),
        ("x \\in [1,2]", "[1,2]"),
        ("(-\\infty,2)\\cup(3,\\infty)", "(3,\\infty)\\cup(-\\infty,2)"),
        ("\\left(-\\infty, 1\\right]", "(-\\infty,1]"),
        ("1 < x < 3", "(1,3)"),
        ("1\\le x\\le 3", "[1,3]"),
        ("x\\geq 2", "[2,\\infty)"),
        ("3 > x", "x<3"),
        ("25%", "1/4"),
        ("25\\%", "0.25"),
        ("\\frac{1}{4}", "25\\%"),
        ("12.5 percent", "0.125"),
        ("0.25", "25 %"),
        ("(1, 2)", "(1,2)"),
        ("\\left(1,2\\right)", "(1,2)"),
        ("(\\frac{1}{2},3)", "(0.5, 3)"),
        ("\\{3,1,2\\}", "{1,2,3}"),
        ("1, 2, 3", "3, 2, 1"),
        ("{1/2, 3}", "{3, 0.5}"),
        (
            "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}",
            "\\begin{bmatrix}1 & 2\\\\ 3 & 4\\end{bmatrix}",
        ),
        (
            "\\begin{pmatrix} 1/2 \\\\ 3 \\end{pmatrix}",
            "\\begin{pmatrix} 0.5 \\\\ 3 \\end{pmatrix}",
        ),
        ("[[1,2],[3,4]]", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"),
        ("10 = x", "x = 10"),
        ("10=x", "10"),
        ("y = 2x+1", "y=1+2x"),
        ("2x + 1 = y", "y = 2x + 1"),
        ("x+y=5", "y + x = 5"),
        ("x + y - 5 = 0", "x+y=5"),
        ("y=2x+1", "2x+1"),
        ("2x+1", "y = 2x + 1"),
        ("5 m/s", "5"),
        ("5\\,\\text{m/s}", "5 m/s"),
        ("\\$5", "5"),
        ("5 dollars", "$5"),
        ("5 USD", "5"),
        ("$5.00", "5"),
        ("5 km", "5 kilometers"),
        ("100 cm^2", "100"),
        ("3 \\text{ hours}", "3 h"),
        ("20 mph", "20"),
        ("9.8 m/s^2", "9.8"),
        ("9.8\\ \\mathrm{m/s^2}", "9.8"),
        ("\\pm 2", "2, -2"),
        ("x = \\pm 2", "{-2, 2}"),
        ("±2", "-2,2"),
        ("1 \\pm \\sqrt{2}", "1+\\sqrt{2}, 1-\\sqrt{2}"),
        ("x=2 or x=-2", "\\pm 2"),
        ("3±1", "2,4"),
        ("2\\cdot 3", "6"),
        ("\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt 2}"),
        ("\\frac{\\sqrt2}2", "sqrt(2)/2"),
        ("\\sqrt[3]{8}", "2"),
        ("e^{i\\pi}", "-1"),
        ("\\log_2 8", "3"),
        ("\\ln e", "1"),
        ("2^{10}", "1024"),
        ("5!", "120"),
        ("\\binom{5}{2}", "10"),
        ("1.5e3", "1500"),
        ("1.5 \\times 10^3", "1500"),
        ("1{,}500", "1500"),
        ("1\\,500", "1500"),
        ("1 500", "1500"),
        ("0.5", "\\frac{1}{2}"),
        ("-\\frac{1}{2}", "\\frac{-1}{2}"),
        ("\\frac{1}{-2}", "-0.5"),
        ("-(1/2)", "-0.5"),
        ("+5", "5"),
        ("5.0", "5"),
        ("05", "5"),
        ("0.333...", "1/3"),
        ("0.\\overline{3}", "1/3"),
        ("\\boxed{42}.", "42"),
        ("The answer is $\\boxed{42}$", "42"),
        ("**42**", "42"),
        ("Answer: 42", "42"),
        ("Final Answer: The final answer is $42$. I hope it is correct.", "42"),
        ("The final answer is: $\\boxed{42}$", "42"),
        ("#### 42", "42"),
        ("<answer>42</answer>", "42"),
        ("True", "true"),
        ("Yes.", "yes"),
        ("\\text{Yes}", "yes"),
        ("\\emptyset", "\\varnothing"),
        ("\\{\\}", "\\emptyset"),
        ("no solution", "No solution"),
        ("1:2", "1/2"),
        ("3:4", "3:4"),
        ("6:8", "3:4"),
        ("2023-01-01", "2023-01-01"),
        ("12:30", "12:30"),
        ("x^2 - 1", "(x-1)(x+1)"),
        ("a^2-b^2", "(a+b)(a-b)"),
        ("\\frac{x}{2}", "x/2"),
        ("0.5x", "x/2"),
        ("3x+2", "2+3x"),
        ("2\\pi r", "2 \\pi r"),
        ("2πr", "2\\pi r"),
        ("\\tan(x)", "sin(x)/cos(x)"),
        ("16_2", "16_2"),
        ("110_2", "110_{2}"),
        ("\\text{110}_2", "110_2"),
        ("3+4i", "4i+3"),
        ("i^2", "-1"),
        ("\\overline{AB}", "\\overline{AB}"),
        ("\\triangle ABC", "\\triangle ABC"),
        ("x\\ne 3", "x \\neq 3"),
        ("-0", "0"),
        ("\\frac{0}{5}", "0"),
        ("1/0", "1/0"),
        ("\\frac{12}{8}", "\\frac{3}{2}"),
        ("two", "2"),
        ("\\text{two}", "two"),
        ("30\\text{ degrees}", "30"),
        ("\\frac{\\pi}{2}", "pi/2"),
        ("π/2", "\\frac{\\pi}{2}"),
        ("90", "90^\\circ"),
        ("1,2,3", "(1,2,3)"),
        ("x=1, y=2", "(1,2)"),
        ("x = 1, y = 2", "x=1,y=2"),
        ("y=2, x=1", "x=1, y=2"),
        ("$x = 5$", "5"),
        ("x=5", "x = 5.0"),
        ("5 = 5", "5"),
        ("\\sqrt{12}", "2\\sqrt{3}"),
        ("2√3", "\\sqrt{12}"),
        ("√2", "\\sqrt{2}"),
        ("½", "0.5"),
        ("3½", "3.5"),
        ("¾", "0.75"),
        ("10^{-3}", "0.001"),
        ("10^-3", "0.001"),
        ("1/3", "0.333333333"),
        ("33\\frac{1}{3}\\%", "1/3"),
        ("33 1/3 %", "1/3"),
        ("5\\text{ or }7", "7, 5"),
        ("5 and 7", "5,7"),
        ("\\frac{5}{2}\\text{ cm}", "2.5"),
        ("$\\frac{5}{2}$ cm", "2.5 cm"),
        ("4\\sqrt{2}\\text{ units}", "4\\sqrt2"),
        ("6\\pi \\text{ cm}^2", "6\\pi"),
        ("approximately 5", "5"),
        ("≈ 3.14", "3.14"),
        ("\\approx 3.14", "3.14"),
        ("$1,000,000", "10^6"),
        ("1 million", "1000000"),
        ("10\\%", "10\\%"),
        ("x>3", "3<x"),
        ("(3,\\infty)", "x>3"),
        ("\\mathbb{R}", "(-\\infty,\\infty)"),
        ("|x|", "\\left|x\\right|"),
        ("x^{2}", "x^2"),
        ("x²", "x^2"),
        ("\\text{A, B}", "A, B"),
        ("A and B", "B and A"),
        ("A,C", "C, A"),
        ("-1 1/2", "-1.5"),
        ("-1\\frac{1}{2}", "-\\frac{3}{2}"),
        ("1 1/2", "1\\frac12"),
        ("2½", "2.5"),
        ("1-1/2", "0.5"),
        ("37°", "37^{\\circ}"),
        ("37 deg", "37"),
        ("37^o", "37^\\circ"),
        ("\\angle A = 37^\\circ", "37"),
        ("\\frac{\\pi}{4}", "π/4"),
        ("\\text{5 apples}", "5"),
        ("5\\text{ apples}", "5"),
        ("5 apples", "5 apples"),
        ("$5$ apples", "5"),
        ("\\text{Monday}", "monday"),
        ("\\text{ (E)}", "E"),
        ("E", "\\text{E}"),
        ("\\textbf{(A)}\\ 5", "(A) 5"),
        ("(-\\infty, -2] \\cup [2, \\infty)", "(-\\infty,-2]\\cup[2,+\\infty)"),
        ("x\\le-2 \\text{ or } x\\ge 2", "x \\geq 2 or x \\leq -2"),
        ("(-∞, 5)", "x<5"),
        ("x<5", "(-\\infty, 5)"),
        ("5 > x", "(-\\infty, 5)"),
        ("0\\leq x<1", "[0,1)"),
        ("x\\in(0,1)", "0<x<1"),
        ("(0,1)", "0<x<1"),
        ("[0, infinity)", "[0,\\infty)"),
        ("(-infinity, infinity)", "\\mathbb{R}"),
        ("]0,1[", "(0,1)"),
        ("50%", "\\frac12"),
        ("\\frac{1}{2}", "50%"),
        ("150%", "1.5"),
        ("0.1%", "0.001"),
        ("33.3%", "33.3"),
        ("75 percent", "3/4"),
        ("75", "75%"),
        ("75\\%", "75"),
        ("(3,-1)", "(3, -1)"),
        ("(x,y)=(3,-1)", "(3,-1)"),
        ("(x, y) = (1, 2)", "(1,2)"),
        ("(a,b,c) = (1,2,3)", "(1,2,3)"),
        ("x=3,y=-1", "(3,-1)"),
        ("\\{-1, 3\\}", "{3,-1}"),
        ("\\{1\\}", "1"),
        ("{5}", "5"),
        ("(5)", "5"),
        ("[5]", "5"),
        ("\\langle 1,2 \\rangle", "(1,2)"),
        ("<1,2>", "(1,2)"),
        ("\\begin{bmatrix}1&0\\\\0&1\\end{bmatrix}", "\\begin{pmatrix}1&0\\\\0&1\\end{pmatrix}"),
        (
            "\\left(\\begin{array}{cc}1&0\\\\0&1\\end{array}\\right)",
            "\\begin{pmatrix}1&0\\\\0&1\\end{pmatrix}",
        ),
        (
            "\\begin{pmatrix}-\\frac{1}{2}\\\\2\\end{pmatrix}",
            "\\begin{pmatrix}-0.5\\\\2\\end{pmatrix}",
        ),
        ("[[1, 0], [0, 1]]", "[[1,0],[0,1]]"),
        (
            "\\begin{pmatrix} 1 & 0 \\\\ 0 & 1 \\\\ \\end{pmatrix}",
            "\\begin{pmatrix} 1 & 0 \\\\ 0 & 1 \\end{pmatrix}",
        ),
        ("5=x", "x=5"),
        ("x = 5 or x = 7", "{5,7}"),
        ("x=5,7", "5,7"),
        ("x_1=5, x_2=7", "5,7"),
        ("x_1 = 5, x_2 = 7", "{7,5}"),
        ("y - 2x = 1", "y = 2x + 1"),
        ("2y=4x+2", "y=2x+1"),
        ("y = x", "x = y"),
        ("f(x) = x^2", "x^2"),
        ("f(x)=2x", "2x"),
        ("\\frac{dy}{dx} = 2x", "2x"),
        ("y'=2x", "2x"),
        ("A = \\pi r^2", "\\pi r^2"),
        ("3x - y = 2", "y = 3x - 2"),
        ("x^2+y^2=1", "y^2+x^2=1"),
        ("x^2+y^2=1", "x^2+y^2-1=0"),
        ("3+4=7", "7"),
        ("2*3=6", "6"),
        ("10 m", "10"),
        ("10\\ \\text{m}", "10 meters"),
        ("10 m^2", "10\\text{ m}^2"),
        ("10 square meters", "10"),
        ("\\$10", "10"),
        ("10 cents", "10"),
        ("£10", "10"),
        ("10€", "10"),
        ("1 hour", "1 hr"),
        ("10 kg", "10\\text{kg}"),
        ("60 mph", "60 miles per hour"),
        ("10 N", "10"),
        ("20 °C", "20"),
        ("20^\\circ\\text{C}", "20"),
        ("20°F", "20"),
        ("5 L", "5 liters"),
        ("6 \\times 10^{23}", "6e23"),
        ("3.0\\times10^8 m/s", "3e8"),
        ("10\\,\\mathrm{cm}^{3}", "10"),
        ("4 cm³", "4"),
        ("12 in", "12 inches"),
        ("12 in.", "12"),
        ("7 days", "7"),
        ("7 people", "7"),
        ("1,000 dollars", "1000"),
        ("\\pm\\sqrt{3}", "\\sqrt{3}, -\\sqrt{3}"),
        ("x=\\pm3", "-3, 3"),
        ("±5", "5, -5"),
        ("+/- 5", "\\pm 5"),
        ("+-5", "±5"),
        ("2 \\pm i", "2+i, 2-i"),
        ("\\frac{1 \\pm \\sqrt{5}}{2}", "\\frac{1+\\sqrt5}{2}, \\frac{1-\\sqrt5}{2}"),
        ("\\mp 2", "\\pm 2"),
        ("sqrt(2)", "\\sqrt{2}"),
        ("sqrt 2", "\\sqrt2"),
        ("2 sqrt(3)", "2\\sqrt3"),
        ("2^(1/2)", "\\sqrt{2}"),
        ("\\sqrt{0.25}", "0.5"),
        ("8^{1/3}", "2"),
        ("e^2", "\\exp(2)"),
        ("ln(2)", "\\ln 2"),
        ("log_2(8)", "3"),
        ("\\log_{10} 100", "2"),
        ("4!", "24"),
        ("\\binom{4}{2}", "6"),
        ("\\lfloor 3.7 \\rfloor", "3"),
        ("|−3|", "3"),
        ("abs(-3)", "3"),
        ("2^{-1}", "1/2"),
        ("10^{6}", "1,000,000"),
        ("1.2 million", "1,200,000"),
        ("3 hundred", "300"),
        ("1/2", "2/4"),
        ("-1/2", "1/-2"),
        ("\\frac{-1}{2}", "-\\frac12"),
        ("\\frac{1}{2}x", "\\frac{x}{2}"),
        ("x/(x+1)", "\\frac{x}{x+1}"),
        ("(x+1)/(x-1)", "\\frac{x+1}{x-1}"),
        ("1/(2x)", "\\frac{1}{2x}"),
        ("x^2/4 + y^2/9 = 1", "\\frac{x^2}{4}+\\frac{y^2}{9}=1"),
        ("\\dfrac{3}{4}", "0.75"),
        ("3/4", "0.75"),
        ("3 / 4", "\\frac{3}{4}"),
        ("\\frac{3}{4}", "3:4"),
        ("0.1\\overline{6}", "1/6"),
        ("0.\\bar{3}", "1/3"),
        ("0.1666...", "1/6"),
        ("0.333…", "\\frac13"),
        ("The final answer is 42.", "42"),
        ("So the answer is 42", "42"),
        ("Therefore, x = 42.", "42"),
        ("Thus the total is 42 apples.", "42"),
        ("ANSWER: 42", "42"),
        ("Answer: $42$.", "42"),
        ("**Answer: 42**", "42"),
        ("The answer is **42**.", "42"),
        ("Final Answer: \\boxed{42}", "42"),
        ("\\boxed{42}\n\nLet me know if you need help!", "42"),
        ("\\boxed{\\text{42}}", "42"),
        ("\\fbox{42}", "42"),
        ("$$\\boxed{42}$$", "42"),
        ("$\\boxed{\\frac{1}{2}}$", "0.5"),
        ("\\boxed{x = 42}", "42"),
        ("= 42", "42"),
        ("x = 6 * 7 = 42", "42"),
        ("42,", "42"),
        ("“42”", "42"),
        ("'42'", "42"),
        ("`42`", "42"),
        ("```\n42\n```", "42"),
        ("(42)", "42"),
        ("twelve", "12"),
        ("The answer is twelve.", "12"),
        ("Answer: B", "B"),
        ("The correct answer is (B).", "B"),
        ("The answer is B) 42", "B"),
        ("B.", "B"),
        ("B) Paris", "B"),
        ("Option B", "B"),
        ("(b)", "B"),
        ("**B**", "B"),
        ("B: Paris", "B"),
        ("no real solutions", "No real solutions"),
        ("none", "None"),
        ("DNE", "DNE"),
        ("undefined", "Undefined"),
        ("\\infty", "infinity"),
        ("-\\infty", "-oo"),
        ("+\\infty", "\\infty"),
        ("\\text{even}", "even"),
        ("x^2 + 2xy + y^2", "(x+y)^2"),
        ("\\sin 2x", "2\\sin x\\cos x"),
        ("\\tan^2 x + 1", "\\sec^2 x"),
        ("a(b+c)", "ab+ac"),
        ("x(x+1)", "x^2+x"),
        ("-x+1", "1-x"),
        ("2(x-1)", "2x-2"),
        ("\\frac{x^2-1}{x-1}", "x+1"),
        ("e^{x+1}", "e e^x"),
        ("x\\cdot y", "xy"),
        ("2a", "a \\times 2"),
        ("x*y", "y*x"),
        ("3n+1", "1+3n"),
        ("n(n+1)/2", "\\frac{n^2+n}{2}"),
        ("x^{-1}", "1/x"),
        ("3x^2", "3*x**2"),
        ("\\frac{1}{3}x^3 + C", "x^3/3 + C"),
        ("2x+c", "2x+C"),
    ],
)
def test_math_answers_a_person_would_call_equal_match(response: str, reference: str) -> None:
    assert score(response, reference) == 1


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("3 1/2", "31/2"),
        ("45^\\circ", "54"),
        ("(1,2)", "(2,1)"),
        ("(1,2)", "[1,2]"),
        ("(-\\infty,3)", "(-\\infty,3]"),
        ("(-oo,3)", "(3,oo)"),
        ("25%", "25.1%"),
        ("25", "0.25"),
        ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\4&3\\end{pmatrix}"),
        ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1&2\\end{pmatrix}"),
        ("y=2x+1", "y=2x-1"),
        ("x=10", "x=-10"),
        ("\\pm 2", "2"),
        ("2", "\\pm 2"),
        ("5 kg", "5 g"),
        ("5 km", "5 m"),
        ("x<3", "x>3"),
        ("x<3", "x\\le 3"),
        ("5/2", "2/5"),
        ("0.33", "1/3"),
        ("3.14", "\\pi"),
        ("\\sqrt{2}", "1.414"),
        ("2:1", "1:2"),
        ("A", "C"),
        ("{1,2}", "{1,2,3}"),
        ("1,2", "1,3"),
        ("(1,2,3)", "(1,2)"),
        ("x+1", "x-1"),
        ("sin x", "cos x"),
        ("e", "2.718"),
        ("yes", "not yes"),
        ("Paris", "London"),
        ("12:30", "12:45"),
        ("10", "100"),
        ("1.5", "15"),
        ("-3", "3"),
        ("3^2", "2^3"),
        ("i", "-i"),
        ("\\emptyset", "{0}"),
        ("110_2", "110_3"),
        ("5 hours", "5 minutes"),
        ("1/2 x", "2x"),
        ("not 5", "5"),
        ("y=10", "x=10"),
        ("2,2", "2"),
        ("1.0001", "1"),
        ("x=1, y=2", "x=2, y=1"),
        ("-1 1/2", "-0.5"),
        ("1 1/2", "11/2"),
        ("x<5", "x>5"),
        ("(0,1)", "[0,1]"),
        ("[0,1)", "(0,1]"),
        ("0<x<1", "0\\le x\\le 1"),
        ("50%", "5"),
        ("(3,-1)", "(-1,3)"),
        ("(1,2,3)", "(3,2,1)"),
        ("{1,2}", "(1,2,3)"),
        ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}"),
        ("y = 2x + 1", "y = 2x + 2"),
        ("2x+1=0", "2x+1"),
        ("x=5", "x=6"),
        ("x=5", "y=6"),
        ("10 m", "10 km"),
        ("10 kg", "10 lb"),
        ("1 hour", "60 hours"),
        ("±5", "5"),
        ("5, -5, 0", "±5"),
        ("2 \\pm i", "2+i"),
        ("\\sqrt{3}", "3"),
        ("\\sqrt{2}", "2^{1/3}"),
        ("1.2 million", "1.2"),
        ("0.333", "1/3"),
        ("0.\\overline{3}", "0.3"),
        ("0.666...", "0.66"),
        ("B", "b and c"),
        ("A and B", "A"),
        ("The answer is not 42", "43"),
        ("infinity", "-infinity"),
        ("x+y", "xy"),
        ("2x", "x^2"),
        ("\\sin x", "\\sin 2x"),
        ("x^2", "x^3"),
        ("a", "b"),
        ("1/x", "x"),
        ("3:4", "4:3"),
        ("12:30", "1230"),
        ("5!", "5"),
        ("|x|", "x"),
        ("10_2", "10_8"),
        ("\\mathbb{R}", "(0,\\infty)"),
        ("\\emptyset", "0"),
        ("6\\pi cm", "6\\pi km"),
        ("6\\pi", "6"),
        ("2\\pi r", "2\\pi"),
        ("100 cm", "100 mm"),
        ("12", "twelve hundred"),
        ("one", "2"),
        ("seven", "eight"),
    ],
)
def test_math_answers_a_person_would_call_different_differ(response: str, reference: str) -> None:
    assert score(response, reference) == 0


def test_no_text_reaches_an_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    math_verify.warm_up()
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


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("3,14", "3.14"),
        ("0,125", "0.125"),
        ("1000,5", "1000.5"),
        (r"\boxed{3}\boxed{7}", "3, 7"),
        (r"\boxed{2} apples and \boxed{5} pears", "2, 5"),
        (r"$\boxed{(1, 2)} \text{ for (a) and } \boxed{(3, 4)}$", "(1,2), (3,4)"),
        (r"\($a_1 = \boxed{3} \) and \( a_2 = \boxed{5} \)", "a_{1}=3, a_{2}=5"),
        ("a=1,b=2;a=3,b=4", "(1,2),(3,4)"),
        ("(1,2),(3,4),(1,2)", "(3,4),(1,2)"),
        ("f(x)=2orf(x)=-2", "f(n)=2 and f(n)=-2"),
        (r"It costs \boxed{20} at first. Final Answer: The final answer is $1,250$.", "1250"),
        ("We know $$x > 2$$ and $$y < 5$$. Therefore, the price rises by 40%.", "40%"),
        ("With $n = 3$ we are done. Thus there are 15 ways to do so. I hope it is correct.", "15"),
        (r"$a_n = \sum_{k=0}^{n} b_{n-k} c_k$", r"$a_n = \sum_{k=0}^{n} c_k b_{n-k}$"),
        (r"$\frac{1}{3} = \frac{2}{6}$", "2/6"),
    ],
)
def test_forms_that_math_verify_calls_equal(response: str, reference: str) -> None:
    assert score(response, reference) == 1


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("3,14", "314"),
        ("1,234", "1.234"),
        ("3,14", "3.15"),
        (r"\boxed{32, 349}", "32349"),
        ("13:00", "1:00"),
        ("(1,2),(1,2)", "(1,2)"),
        ("a=1,b=2;a=3,b=4", "(1,2),(4,3)"),
        ("a=1,b=2;b=3,a=4", "(1,2),(3,4)"),
        ("f(x)=2", "g(x)=2"),
        ("f(x)=x", "f(n)=n"),
        (r"\sum_{k=0}^{n} c_k", r"\sum_{k=1}^{n} c_k"),
        ("Thus 3 of the 15 ways are left. With $n=3$ we are done.", "15"),
        (r"1 + \frac{1}{e}", r"1 - \frac{1}{e}"),
    ],
)
def test_forms_near_them_differ(response: str, reference: str) -> None:
    assert score(response, reference) == 0


@real
def test_math_verifys_own_pairs() -> None:
    """83 of 83; of the 166 other pairs in the library's tests, which are not kept here, 162
    (decisions/0008-isolation.md).
    """
    agreed = [
        score(row["pred"], row["gold"]) == row["expected"]
        for row in rows("math_latex/DERIVED_math_verify_pairs.jsonl")
    ]
    assert len(agreed) == 83
    assert sum(agreed) == 83


@real
def test_sampled_completions_score_to_their_published_flags() -> None:
    """480 whole completions to 60 MATH problems, 444 of them correct, 16 of these written otherwise
    than the reference.
    """
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
        "6b_finetuning": 286,
        "6b_verification": 515,
        "175b_finetuning": 458,
        "175b_verification": 742,
    }


@real
def test_every_reference_solution_of_math_is_its_own_answer() -> None:
    solutions = [row["solution"] for row in rows("math_latex/MATH_test.last2500.jsonl")]
    assert sum(score(solution, solution) == 1 for solution in solutions) == len(solutions) == 2500
