"""Throughput of each deterministic scorer beside its library's own floor; the promise is within 2
x.

    PYTHONPATH=src python bench/scorers.py [--answers 20000] [--limit 2]

Both sides do the same answers in turns, and the median of the rounds counts. The floor is the
library called bare: Python's comparison for `exact`, that and RapidFuzz for `similarity`, RE2 for
`regex`, `re` and `float` for `numeric`, `in` for `boolean`, math-verify's parse and verify for
`math`. With `--limit`, exit 1 when one takes more than so many times its floor.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Callable
from importlib.util import find_spec
from time import process_time
from typing import Any

import re2  # type: ignore[import-untyped]  # it ships no types
from rapidfuzz.distance import Levenshtein

from assay.domain.isolation import IsolatedRequest
from assay.scoring import math_scorer, math_verify
from assay.scoring.scorers import SCORERS

NUMBER = re.compile(r"-?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
PATTERN = re2.compile(r"(?i)answer is\s+\d+")


def texts(count: int) -> list[str]:
    """Answers as models write them, each another."""
    return [
        f"We add {n} and {n + 1}, which makes {2 * n + 1:,}. The answer is {2 * n + 1}."
        for n in range(count)
    ]


def bare_exact(text: str) -> object:
    wanted = "The answer was 42, I am nearly sure of that, as we add 20 and 22."
    return text.strip() == wanted or text.strip().lower() == wanted.lower()


def bare_similarity(text: str) -> object:
    wanted = "The answer was 42, I am nearly sure of that, as we add 20 and 22."
    return (
        text == wanted
        or text.lower() == wanted.lower()
        or wanted in text
        or Levenshtein.distance(text, wanted)
    )


def bare_numeric(text: str) -> object:
    return min(abs(float(number.replace(",", "")) - 41.0) for number in NUMBER.findall(text))


def ours(method: str, reference: str) -> Callable[[str], object]:
    scorer = SCORERS[method]
    return lambda text: scorer(text, reference, {})


def our_math(text: str) -> object:
    outcome: Any = math_scorer.begin(text, "41")
    return (
        math_verify.same_answer(**outcome.arguments)
        if isinstance(outcome, IsolatedRequest)
        else outcome
    )


def bare_math() -> Callable[[str], object]:
    from math_verify import parse, verify  # type: ignore[import-untyped,unused-ignore]

    wanted = parse("41", parsing_timeout=None)
    return lambda text: verify(wanted, parse(text, parsing_timeout=None), timeout_seconds=None)


def measured(work: Callable[[str], object], answers: list[str]) -> float:
    began = process_time()
    for text in answers:
        work(text)
    return (process_time() - began) / len(answers)


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--answers", type=int, default=20_000)
    arguments.add_argument("--limit", type=float)
    asked = arguments.parse_args()
    wanted = "The answer was 42, I am nearly sure of that, as we add 20 and 22."
    pairs: list[tuple[str, Callable[[str], object], Callable[[str], object], int]] = [
        ("exact", ours("exact", wanted), bare_exact, asked.answers),
        ("similarity", ours("similarity", wanted), bare_similarity, asked.answers),
        ("regex", ours("regex", r"/answer is\s+\d+/i"), PATTERN.search, asked.answers),
        ("numeric", ours("numeric", "41"), bare_numeric, asked.answers),
        ("boolean", ours("boolean", "forty"), lambda text: "forty" in text.lower(), asked.answers),
    ]
    if find_spec("math_verify"):
        pairs.append(("math", our_math, bare_math(), asked.answers // 20))
    else:
        print("math: skipped, its extra is not installed", file=sys.stderr)
    missed = False
    for name, work, floor, count in pairs:
        answers = texts(count)
        rounds = [(measured(work, answers), measured(floor, answers)) for _ in range(5)]
        mine, bare = (statistics.median(side) for side in zip(*rounds, strict=True))
        missed = missed or (asked.limit is not None and mine > asked.limit * bare)
        promise = "" if mine <= 2 * bare else "   over the 2 x promised"
        print(
            f"{name:10} {1 / mine:10,.0f}/s   library alone {1 / bare:10,.0f}/s   {mine / bare:.2f} x its time{promise}"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
