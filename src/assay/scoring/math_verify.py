"""Compares two expressions from untrusted text by algebra, with math-verify.

Runs only in a child process.

Nothing is evaluated as Python. math-verify's own reader of plain expressions passes text to SymPy's
`parse_expr`, which evaluates it, so this module does not use that reader: it converts plain
expressions to LaTeX, and a grammar parses LaTeX. The grammar passes numerals to `parse_expr`, so
that function is replaced by a reader that accepts only numerals. No code path through the libraries
then reaches an evaluator.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NoReturn

from assay.domain.digest import JsonValue
from assay.scoring import final_answer

_FUNCTIONS: Final = "arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|ln"
_NUMERAL: Final = re.compile(r"[0-9]{1,1000}(?:\.[0-9]{0,1000})?|\.[0-9]{1,1000}")


def same_answer(*, given: str, wanted: str) -> JsonValue:
    """Compare two final answers by algebra; False if either cannot be read."""
    return bool(final_answer.same_answer(given, wanted, leaf=_same_expression))


def warm_up() -> None:
    """Import and compile in advance everything that the first comparison needs."""
    _same_expression("x+1", "1+x")
    _same_expression("\\frac{1}{2}", "x")


@lru_cache(maxsize=1)
def _library() -> tuple[Any, Any]:
    import math_verify.parser

    # this module calls `sympify` for its units when it is imported, and `simplify` imports it
    import sympy.physics.units
    from latex2sympy2_extended import latex2sympy2
    from math_verify import LatexExtractionConfig, parse, verify
    from sympy.parsing import sympy_parser

    for module in (sympy_parser, latex2sympy2, math_verify.parser):
        module.parse_expr = _numeral
    sympy_parser.eval_expr = _refuse
    assert sympy.physics.units
    config = [LatexExtractionConfig(boxed_match_priority=-1)]

    def read(latex: str) -> Any:
        return parse(
            f"${latex}$",
            extraction_config=config,
            fallback_mode="no_fallback",
            parsing_timeout=None,
        )

    def equal(wanted: Any, given: Any) -> bool:
        return bool(verify(wanted, given, timeout_seconds=None, allow_set_relation_comp=True))

    return read, equal


def _numeral(text: object, *_: object, **__: object) -> Any:
    """Parse a whole or decimal number in place of SymPy's evaluator; raises ValueError for all
    other text.
    """
    import sympy

    if not isinstance(text, str) or not _NUMERAL.fullmatch(text):
        raise ValueError("text is never evaluated as Python")
    return sympy.Integer(int(text)) if text.isdigit() else sympy.Float(text)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise ValueError("text is never evaluated as Python")


def _same_expression(given: str, wanted: str) -> bool:
    if "=" in given and "=" not in wanted:
        return False  # the library would use the right side of any equation, but 2x = 6 is not 6
    read, equal = _library()
    texts = [as_latex(text) for text in (given, wanted)]
    if any(
        len(text) > final_answer.MAX_ANSWER or final_answer.nesting(text) > final_answer.MAX_NESTING
        for text in texts
    ):
        return False
    expressions = [read(text) for text in texts]
    # SymPy sorts factors when it writes an expression; the library does not find a value of a sum
    # to compare. `zoo` is SymPy's value for both 12/0 and 1/0.
    written, other = (str(expression) for expression in expressions)
    same = written == other and not re.search("zoo|nan|oo", written)
    return all(expressions) and (same or equal(expressions[1], expressions[0]))


def as_latex(text: str) -> str:
    """Convert an expression in plain or program notation to LaTeX; LaTeX stays unchanged."""
    text = text.replace("**", "^")
    text = re.sub(r"(?<![A-Za-z\\])(?:oo|inf(?:inity)?)(?![A-Za-z])", r"\\infty ", text)
    text = re.sub(r"(?<![A-Za-z\\])pi(?![A-Za-z])", r"\\pi ", text)
    if "_" not in text:  # an `i` used as an index is not the imaginary unit
        text = re.sub(r"(?<![A-Za-z\\])[iI](?![A-Za-z])", "(I)", text)
    text = re.sub(r"(?<![A-Za-z\\])E(?![A-Za-z])", "e", text)
    text = re.sub(rf"(?<![A-Za-z\\])({_FUNCTIONS})(?![A-Za-z])", r"\\\1 ", text)
    for name, latex in (("sqrt", "\\sqrt"), ("exp", "e^"), ("abs", "\\abs")):
        text = _called(text, name, latex)
    text = re.sub(r"\\abs\{([^{}]*)\}", r"\\left|\1\\right|", text)
    text = re.sub(r"(?<![A-Za-z\\])sqrt\s*(\d+|[a-z]\b)", r"\\sqrt{\1}", text)
    text = _powers(text)
    text = re.sub(r"(?<=[\d)])\s*\*\s*|\s*\*\s*", r" \\cdot ", text)
    text = re.sub(r"(?<!\d)\.(?=\d)", "0.", text)
    return text.replace("$", "").replace("\n", " ").strip()


def _called(text: str, name: str, latex: str) -> str:
    """Convert `sqrt(x)` to `\\sqrt{x}`; an unclosed parenthesis leaves the text unchanged."""
    place = 0
    for _ in range(20):
        match = re.compile(rf"(?<![A-Za-z\\]){name}\s*\(").search(text, place)
        if match is None:
            break
        closing = _closing(text, match.end() - 1)
        place = match.end()
        if closing > 0:
            text = f"{text[: match.start()]}{latex}{{{text[match.end() : closing]}}}{text[closing + 1 :]}"
            place = match.start() + len(latex)
    return text


def _powers(text: str) -> str:
    """Put braces around the exponents of `x^10` and `x^(1/2)`."""
    text = re.sub(r"\^\s*(-?\d{2,}|-\d|[a-z]\b)", r"^{\1}", text)
    for _ in range(20):
        match = re.search(r"\^\s*\(", text)
        if match is None or (closing := _closing(text, match.end() - 1)) < 0:
            break
        text = f"{text[: match.start()]}^{{{text[match.end() : closing]}}}{text[closing + 1 :]}"
    return text


def _closing(text: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return -1
