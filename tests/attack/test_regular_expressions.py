"""Every regular expression in the source is searched in time that grows with the length of the
text, not with its square.

The expressions are collected from the syntax of all modules, so that a new one is tested without
being listed. RE2's are left out: its matcher is linear. So are those of the `regex` package, whose
searches have a time limit.
"""

from __future__ import annotations

import ast
import heapq
import importlib
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.attack import figures

import assay
from assay.scoring import final_answer, spoken_verdicts

SOURCE: Final = Path(assay.__file__).parent
VERBS: Final = {
    "search": 2,
    "match": 2,
    "fullmatch": 2,
    "findall": 2,
    "finditer": 2,
    "split": 3,
    "sub": 4,
    "subn": 4,
}
"""Functions of `re`, and the place of the flags among their arguments."""
ALPHABETS: Final = (
    *(
        "1",
        "1,",
        "1.",
        "1 ",
        " 1",
        "-1",
        "a",
        "a ",
        "A ",
        "a1",
        "a.",
        "a-",
        "a_",
        "a=",
        "a:",
        "a/",
        "a@",
        "é",
        "分",
        "\u2014",
    ),
    *(
        " ",
        "\n",
        "\t",
        "\r",
        " \n",
        "\n\n\n ",
        "a\n",
        ".\n",
        "\xa0",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "((",
        "[[",
        "{{",
    ),
    *(
        "()",
        "[]",
        "{}",
        "](",
        "[{",
        "a(",
        "<a",
        "<a ",
        "</",
        "<!--",
        '"',
        "'",
        "`",
        '"a',
        '"a"',
        "'a'",
        '\\"',
        "\\",
        "\\{",
    ),
    *(
        "\\frac",
        "/",
        "//",
        "*",
        "**",
        "_",
        "-",
        "- ",
        "---\n",
        "|",
        "| ",
        "|-",
        "#",
        "# ",
        "> ",
        "=",
        "$",
        "%",
        "&",
        "!",
        "?",
    ),
    *(
        "+",
        "~",
        "@",
        "^",
        ".",
        ",",
        ";",
        ":",
        ": ",
        "“",
        '{"a":1,',
        "```\n",
        "://",
        "the ",
        "is ",
        "not ",
    ),
)
SHORT, LONG = 1_000, 8_000
NOISE_S: Final = 0.02
"""Less time than this for the long text is never too much: a quadratic search takes 0.3 s."""
QUICK_S: Final = 0.000_15
"""A short text that takes less is not tried longer: a quadratic search of it takes 0.4 ms or more.
"""
MIXTURES: Final = 40
SLOWEST: Final = 8
"""Texts of each expression that are the slowest when short, among which the slowest long one is
looked for.
"""
BOUNDED: Final = {
    "assay.scoring.final_answer._JOINING": 120,
    "assay.scoring.final_answer._NUMBER": final_answer.MAX_NUMERAL,
    "assay.scoring.math_verify.text": final_answer.MAX_ANSWER,
    "assay.scoring.reply_parser.value": 2_000,
}
"""Expressions whose texts the source cuts to so many characters; such a text must take less than
0.1 s.
"""


def _count(method: Callable[[Any], Iterable[object]], text: object) -> int:
    return sum(1 for _ in method(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A regular expression of the source, and the methods that it is searched with."""

    place: str
    pattern: re.Pattern[Any]
    verbs: tuple[str, ...]

    def uses(self) -> Iterator[Callable[[Any], object]]:
        """Return functions of a text that search as the source does."""
        empty = b"" if isinstance(self.pattern.pattern, bytes) else ""
        for verb in self.verbs:
            method = getattr(self.pattern, verb)
            match verb:
                case "sub" | "subn":
                    yield partial(method, empty)
                case "finditer":
                    yield partial(_count, method)
                case _:
                    yield method

    def texts(self) -> Iterator[tuple[str, str]]:
        """Return beginnings and units to repeat: the alphabets, the expression's own literals, and
        mixtures of both.
        """
        raw = self.pattern.pattern
        raw = raw.decode("latin-1") if isinstance(raw, bytes) else raw
        plain = re.sub(r"\\[A-Za-z]|\(\?[aiLmsux-]+|\(\?P<\w+>", "|", raw)
        literals = (
            re.findall(r"[^\W\d_]{2,}", plain)[:12]
            + re.findall(r"[^\w\\()\[\]?*+{}|^$.\s]{1,4}", plain)[:8]
        )
        own = list(dict.fromkeys(literals))
        yield from (
            ("", unit)
            for unit in (*ALPHABETS, *(word + end for word in own for end in ("", " ", "\n")))
        )
        chance = random.Random(15)
        for _ in range(MIXTURES if own else 0):
            mixed = chance.choice(own) + chance.choice(("", " ", ": "))
            unit = chance.choice(ALPHABETS)
            yield (mixed, unit) if chance.random() < 0.6 else ("", mixed + unit)

    def takes(
        self,
        use: Callable[[Any], object],
        text: tuple[str, str],
        length: int,
        much_s: float = NOISE_S,
    ) -> float:
        """Return the processor time of a search of a text of about this length; the least of three
        if it is much.
        """
        written = text[0] + text[1] * (length // len(text[1])) + "\0"
        read = written.encode() if isinstance(self.pattern.pattern, bytes) else written
        least = 1e9
        for _ in range(3):
            began = time.process_time()
            use(read)
            least = min(least, time.process_time() - began)
            if least < much_s:
                break
        return least

    def too_slow(self) -> str | None:
        """Return the first text whose time grows faster than its length, in words; None if there is
        none.
        """
        for use in self.uses():
            for text in self.texts():
                if self.place in BOUNDED:
                    if self.takes(use, text, BOUNDED[self.place]) > 5 * NOISE_S:
                        return f"{self.place}: {text[0]!r} and many {text[1]!r}"
                    continue
                # The short text comes first, so that the test of a cubic search ends too.
                short = self.takes(use, text, SHORT)
                if short < QUICK_S:
                    continue
                long = self.takes(use, text, LONG) if short < 5 * NOISE_S else 1e9
                if long > NOISE_S and long > 4 * short * LONG / SHORT:
                    return f"{self.place}: {text[0]!r} and many {text[1]!r}"
        return None


@cache
def expressions() -> tuple[Expression, ...]:
    """Return every regular expression that a call of `re` in the source names."""
    return tuple(_expressions())


def _expressions() -> Iterator[Expression]:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    everywhere = _methods(trees.values())
    for path, tree in trees.items():
        calls = [
            (node, verb)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and (verb := _verb_of_re(node))
        ]
        if calls and path.name != "__main__.py":
            name = ".".join(
                ("assay", *path.relative_to(SOURCE).with_suffix("").parts)
            ).removesuffix(".__init__")
            methods = _methods([tree])
            names, assigned = vars(importlib.import_module(name)), _assigned(tree)
            others = frozenset(
                verb
                for base, verbs in methods.items()
                if base not in assigned.values()
                for verb in verbs
            )
            for call, verb in calls:
                source = _value(call.args[0], names)
                if source is None or isinstance(source, re.Pattern):
                    continue
                variable = assigned.get(id(call), "")
                used = methods.get(variable) or everywhere.get(variable) or others or {"search"}
                flags = [
                    keyword.value for keyword in call.keywords if keyword.arg == "flags"
                ] or call.args[VERBS.get(verb, 1) :][:1]
                pattern = re.compile(source, _value(flags[0], names) if flags else 0)
                yield Expression(
                    place=f"{name}.{variable or call.lineno}",
                    pattern=pattern,
                    verbs=tuple(sorted(used)) if verb == "compile" else (verb,),
                )
    for pattern, _ in spoken_verdicts._Pair("A", "B")._statements:
        yield Expression(
            place="assay.scoring.spoken_verdicts._Pair", pattern=pattern, verbs=("finditer",)
        )


def _methods(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """Return the methods that are called on each variable, or on what it holds."""
    methods: dict[str, set[str]] = {}
    nodes = [node for tree in trees for node in ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in VERBS:
            for name in _held(node.value) - {"re"}:
                methods.setdefault(name, set()).add(node.attr)
    for _ in range(2):  # a variable that is given what a function returned, and then given on
        for node in nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name) and target.id in methods:
                    for name in _held(node.value) - {target.id}:
                        methods.setdefault(name, set()).update(methods[target.id])
    return methods


def _held(node: ast.expr) -> set[str]:
    """Return the variables and functions that an expression takes its value from, unchanged."""
    match node:
        case ast.Name():
            return {node.id}
        case ast.Subscript():
            return _held(node.value)
        case ast.IfExp():
            return _held(node.body) | _held(node.orelse)
        case ast.Dict():
            return set().union(*map(_held, node.values))
        case ast.Call(func=ast.Name()):
            return _held(node.func)
        case _:
            return set()


def _assigned(tree: ast.Module) -> dict[int, str]:
    """Return the variable that each call's value, or a collection with it, is assigned to."""
    assigned: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                assigned.update((id(part), target.id) for part in ast.walk(node.value))
        if isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
            assigned[id(node.body[-1].value)] = node.name
    return assigned


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return the value of an expression; a candidate's name stands for a local variable in an
    f-string, else None.
    """
    if isinstance(node, ast.JoinedStr):
        return "".join(str(_value(part, names)) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        value = _value(node.value, names)
        return "alice" if value is None else value
    try:
        return eval(compile(ast.Expression(node), "<source>", "eval"), names)
    except NameError:
        return None


def _verb_of_re(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=verb) if (
            verb == "compile" or verb in VERBS
        ):
            return verb
        case _:
            return None


@pytest.mark.slow
@pytest.mark.timeout(900)  # many hundred searches; quadratic ones take hours
def test_no_expression_takes_time_that_grows_faster_than_the_text() -> None:
    tested = expressions()
    # the number in the documentation, which a new expression does not change
    assert len(tested) >= 300
    suspects = [expression for expression in tested if expression.too_slow()]
    # On a busy machine some search may take long by chance, but not twice.
    slow = [reason for expression in suspects if (reason := expression.too_slow())]
    assert not slow, "\n".join(slow)
    figures.publish(
        "regular expression of the source with texts that keep it busy", tried=300, through=0
    )


@pytest.mark.parametrize(
    ("source", "slow"),
    [
        (r"\d+x", True),
        (r"(?<!\d)\d+x", False),
        (r"\s*\n\s*x", True),
        (r"<[^>]*>", True),
        ("(“[^”]*”|`[^`]*`)", True),
    ],
)
def test_a_search_in_squared_time_is_recognised(source: str, slow: bool) -> None:
    expression = Expression(place="here", pattern=re.compile(source), verbs=("search",))
    assert bool(expression.too_slow()) is slow


@pytest.mark.slow
@pytest.mark.timeout(1800)  # several hundred searches; quadratic ones take hours
def test_a_megabyte_of_the_slowest_text_is_searched_in_linear_time() -> None:
    for expression in expressions():
        if expression.place not in BOUNDED:
            for use in expression.uses():
                # A long search of each text would take most of the time of this test; of the
                # slowest few it is enough.
                few = heapq.nlargest(
                    SLOWEST, expression.texts(), key=lambda text: expression.takes(use, text, SHORT)
                )
                slowest = max(few, key=lambda text: expression.takes(use, text, LONG))
                short, long = (
                    expression.takes(use, slowest, 20_000),
                    expression.takes(use, slowest, 200_000),
                )
                assert long < max(10 * NOISE_S, 40 * short), (expression.place, slowest)
                most = max(50 * NOISE_S, 20 * long)
                assert expression.takes(use, slowest, 1_000_000, most) < most, (
                    expression.place,
                    slowest,
                )
