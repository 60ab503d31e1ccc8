"""Ready-made rubrics: the defaults for suites that have none, and those that a suite may name."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from assay.domain.suite import Criterion, Rubric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.domain.suite import Task

CODE_RUBRIC: Final = Rubric(
    criteria=(
        Criterion(
            name="integrity",
            weight=2.0,
            guidance=(
                "Does the design hold under what the task demands? Look at boundaries and invariants, at errors, "
                "concurrency and security where they matter, and at what happens to state when something fails half-way. "
                "10: nothing the rules ask for can be broken through ordinary use; 5: the main path holds, an ordinary "
                "failure or input breaks it; 0: it does not do what the rules ask."
            ),
        ),
        Criterion(
            name="data_flow",
            guidance=(
                "Can one follow each value from where it enters to where it is used? Look at validation at the edges, hidden "
                "or shared mutable state, conversions done twice, results that are ignored. "
                "10: every value has one owner and one path; 5: traceable with effort; 0: cannot be followed."
            ),
        ),
        Criterion(
            name="maintainability",
            guidance=(
                "What does the next change cost? Look at names, size and cohesion of units, duplication, how it can be "
                "tested, and what a newcomer must know that the code does not say. "
                "10: a likely change touches one place; 5: several places that are easy to find; 0: nobody would dare."
            ),
        ),
        Criterion(
            name="fitness",
            guidance=(
                "Is the amount of machinery right for the need? Take points off for layers, options and abstractions that "
                "nothing here uses, and just as much for a shortcut that the stated need has already outgrown. "
                "10: nothing to add and nothing to take away; 5: noticeably too much or too little; 0: the wrong tool."
            ),
        ),
    )
)
"""Rubric for code of several candidates for one task, as a senior architect reviews it."""

QUALITY: Final = Rubric(
    criteria=(
        Criterion(
            name="quality",
            guidance=(
                "How well does the answer do what was asked? Correctness first, then completeness, then clarity; length "
                "earns nothing. With a reference answer, an answer that says the same in other words is as good as it. "
                "10: right and complete; 5: right in part, or right with a serious gap; 0: wrong, empty or beside the point."
            ),
        ),
    )
)
"""Rubric for answers of any subject."""


def _criterion(name: str, guidance: str, *, weight: float = 1.0) -> Criterion:
    return Criterion(name=name, guidance=guidance, weight=weight)


SOLUTION_CRITERIA: Final = (
    "problem_understanding",
    "assumptions",
    "logical_implications",
    "results_formulae",
    "rigor_and_completeness",
)
"""Criteria for worked solutions, of a rubric with verdicts that names none."""

READY_MADE: Final[Mapping[str, Rubric]] = MappingProxyType(
    {
        "correctness": Rubric(
            criteria=(
                _criterion(
                    "correctness",
                    "Does the answer say what the reference answer says? Other words, order and units are as good if they "
                    "mean the same; what it adds must not contradict the reference. "
                    "10: the same in every point that matters; 5: some of the points, nothing false; 0: contradicts the "
                    "reference, or does not answer.",
                ),
            )
        ),
        "helpfulness": Rubric(
            criteria=(
                _criterion(
                    "does_what_was_asked",
                    "Does the answer do everything that was asked, within the limits that were set, and nothing against them? "
                    "10: everything; 5: the main part; 0: something else.",
                    weight=2.0,
                ),
                _criterion(
                    "usable",
                    "Can the person who asked act on it at once? Look for missing steps, vague advice and unanswered "
                    "follow-up questions. 10: nothing more is needed; 5: usable after some work; 0: of no use.",
                ),
                _criterion(
                    "honest",
                    "Does it say what it does not know, and claim nothing it cannot know? "
                    "10: always; 5: one claim too many; 0: misleading.",
                ),
            )
        ),
        "faithfulness": Rubric(
            criteria=(
                _criterion(
                    "supported",
                    "Is every statement of the answer supported by the sources that the task shows? Knowledge from elsewhere "
                    "does not support it, even if it is true. "
                    "10: every statement; 5: the main ones, but details are invented; 0: the answer contradicts the sources.",
                    weight=2.0,
                ),
                _criterion(
                    "complete",
                    "Does the answer use what the sources say on the question, or say that they are silent? "
                    "10: all of it; 5: half; 0: none.",
                ),
            )
        ),
        "style": Rubric(
            criteria=(
                _criterion(
                    "clear",
                    "Is each sentence understood at first reading, and does the order help? "
                    "10: throughout; 5: with effort in places; 0: hard to follow.",
                ),
                _criterion(
                    "concise",
                    "Does every sentence earn its place? 10: nothing to cut; 5: a third could go; 0: mostly filler.",
                ),
                _criterion(
                    "fits_the_reader",
                    "Do tone and form suit the reader and the occasion that the task describes? "
                    "10: fully; 5: mostly, with slips; 0: wrong for them.",
                ),
            )
        ),
        "code": CODE_RUBRIC,
        "quality": QUALITY,
    }
)
"""Rubrics by the name that a suite may give: `rubric: helpfulness`."""

_LANGUAGES: Final = frozenset(
    """
    ada assembly asm awk bash c c# c++ clojure cobol cpp csharp css cuda d dart elixir elm erlang f# fortran fsharp go
    golang groovy haskell html java javascript js jsx julia kotlin lean lisp lua matlab nim objective-c ocaml pascal
    perl php powershell prolog python py r racket ruby rust scala scheme sh shell solidity sql swift tcl terraform tsx
    ts typescript verilog vhdl zig
    """.split()  # noqa: SIM905 - as a list it would take a line for each
)
"""Languages of code, as `language` names them; tasks may also name a language that people speak."""

_SUFFIXES: Final = frozenset(
    """
    .c .cc .cpp .cs .css .dart .ex .go .h .hs .html .java .jl .js .jsx .kt .lua .m .ml .php .pl .ps1 .py .r .rb .rs
    .scala .sh .sql .swift .ts .tsx .zig
    """.split()  # noqa: SIM905 - as a list it would take a line for each
)


def is_code(task: Task) -> bool:
    """True if the work on a task is code: by its language, else by the names of the files it brings."""
    if task.language:
        return task.language.strip().lower() in _LANGUAGES
    paths = [file.path for snippet in task.snippets for file in snippet.files]
    return bool(paths) and all(path[path.rfind(".") :].lower() in _SUFFIXES for path in paths if path) and any(paths)


def default_rubric(task: Task) -> Rubric:
    """Return the default rubric of a suite without one: the rubric for code, or the one for answers on any subject."""
    return CODE_RUBRIC if is_code(task) else QUALITY


_LINE_OF_CODE: Final = re.compile(
    r"[;{}]\s*$|^\s*[)\]}]+[;,]?\s*$|[\w\])]\s*(?:[-+*/|]?=|:=|=>|->)\s*\S|^\s*[\w.]+\([^)]*\)\s*$|^\s*(?:#include|//|<\w+[ >])"
    r"|^\s*(?:import|package|return)\s+\S+\s*(?:$|as\b|[-+*/%]\s)"
    r"|^\s*(?:async |export |public |private )*(?:class|def|else|except|finally|fn|for|func|function|if|import|from|package|return"
    r"|try|while|with|SELECT|INSERT|UPDATE|CREATE)\b.*(?:[(,]\s*$|:\s*(?:pass|return.*)?$|\bimport\b|[\"'`([])"
)
_LINES_READ: Final = 200
_PROSE_WORDS: Final = 25
"""A text with so many words that is not code is a written answer; shorter ones are mostly facts or labels."""


def looks_like_code(text: str) -> bool:
    """True if most lines of a text are code, or most of it is in code fences."""
    fenced = re.split(r"^```[^\n]*\n?", text, flags=re.MULTILINE)[1::2]
    if sum(map(len, fenced)) > len(text) / 2:
        return True
    lines = [line[:400] for line in text.splitlines() if line.strip()][:_LINES_READ]
    return 2 * sum(_LINE_OF_CODE.search(line) is not None for line in lines) > len(lines)


def proposed_rubric(texts: Iterable[str]) -> str:
    """Return the name of the ready-made rubric that fits most of some answers: for code, for prose, or for all else."""
    kinds = [
        "code" if looks_like_code(text) else "helpfulness" if len(text.split()) >= _PROSE_WORDS else "quality"
        for text in texts
        if text.strip()
    ]
    return next((kind for kind in ("code", "helpfulness") if 2 * kinds.count(kind) > len(kinds)), "quality")
