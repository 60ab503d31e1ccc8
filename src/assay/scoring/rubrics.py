"""Ready-made rubrics from `rubrics.toml`: defaults for suites without a rubric, and rubrics that a
suite may select by name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from assay.domain.suite import Criterion, Rubric, Task

_FILE: Final = files(__package__) / "rubrics.toml"

_BUILT_IN: Final = {
    name: Rubric(criteria=tuple(Criterion(**criterion) for criterion in criteria))
    for name, criteria in tomllib.loads(_FILE.read_text("utf-8")).items()
}

ARENA_RUBRIC: Final = _BUILT_IN.pop("page")
"""Rubric for web pages in the arena."""

WORKSPACE_RUBRIC: Final = _BUILT_IN.pop("workspace")
"""Rubric for the changes that an agent made to a repository."""

READY_MADE: Final[Mapping[str, Rubric]] = MappingProxyType(_BUILT_IN)
"""Rubrics by the name that a suite may give: `rubric: helpfulness`."""

CODE_RUBRIC: Final = READY_MADE["code"]
"""Rubric for code that several candidates wrote for one task, as a senior architect would review
it.
"""

QUALITY: Final = READY_MADE["quality"]
"""Rubric for answers on any subject."""

SOLUTION_CRITERIA: Final = (
    "problem_understanding",
    "assumptions",
    "logical_implications",
    "results_formulae",
    "rigor_and_completeness",
)
"""Criteria for worked solutions, used by a rubric with verdicts that does not name any criteria."""

_LANGUAGES: Final = frozenset(
    """
    ada assembly asm awk bash c c# c++ clojure cobol cpp csharp css cuda d dart elixir elm erlang f# fortran fsharp go
    golang groovy haskell html java javascript js jsx julia kotlin lean lisp lua matlab nim objective-c ocaml pascal
    perl php powershell prolog python py r racket ruby rust scala scheme sh shell solidity sql swift tcl terraform tsx
    ts typescript verilog vhdl zig
    """.split()  # noqa: SIM905 - as a list it would take a line for each
)
"""Programming languages, as named in a task's `language`; tasks may also name a language that
people speak.
"""

_SUFFIXES: Final = frozenset(
    """
    .c .cc .cpp .cs .css .dart .ex .go .h .hs .html .java .jl .js .jsx .kt .lua .m .ml .php .pl .ps1 .py .r .rb .rs
    .scala .sh .sql .swift .ts .tsx .zig
    """.split()  # noqa: SIM905 - as a list it would take a line for each
)


def is_code(task: Task) -> bool:
    """True if a task is about code, judged by its language or, without one, by the names of its
    files.
    """
    if task.language:
        return task.language.strip().lower() in _LANGUAGES
    paths = [file.path for snippet in task.snippets for file in snippet.files]
    return (
        bool(paths)
        and all(path[path.rfind(".") :].lower() in _SUFFIXES for path in paths if path)
        and any(paths)
    )


def default_rubric(task: Task) -> Rubric:
    """Return the default rubric for a suite without one: the rubric for code, or the one for
    answers on any subject.
    """
    return CODE_RUBRIC if is_code(task) else QUALITY


_LINE_OF_CODE: Final = re.compile(
    r"[;{}]\s*$|^\s*[)\]}]+[;,]?\s*$|[\w\])]\s*(?:[-+*/|]?=|:=|=>|->)\s*\S|^\s*[\w.]+\([^)]*\)\s*$|^\s*(?:#include|//|<\w+[ >])"
    r"|^\s*(?:import|package|return)\s+\S+\s*(?:$|as\b|[-+*/%]\s)"
    r"|^\s*(?:async |export |public |private )*(?:class|def|else|except|finally|fn|for|func|function|if|import|from|package|return"
    r"|try|while|with|SELECT|INSERT|UPDATE|CREATE)\b.*(?:[(,]\s*$|:\s*(?:pass|return.*)?$|\bimport\b|[\"'`([])"
)
_LINES_READ: Final = 200
_PROSE_WORDS: Final = 25
"""A text with at least this many words that is not code is a written answer; shorter texts are
mostly facts or labels.
"""


def looks_like_code(text: str) -> bool:
    """True if most lines of a text are code, or if most of the text is in code fences."""
    fenced = re.split(r"^```[^\n]*\n?", text, flags=re.MULTILINE)[1::2]
    if sum(map(len, fenced)) > len(text) / 2:
        return True
    lines = [line[:400] for line in text.splitlines() if line.strip()][:_LINES_READ]
    return 2 * sum(_LINE_OF_CODE.search(line) is not None for line in lines) > len(lines)


def proposed_rubric(texts: Iterable[str]) -> str:
    """Return the name of the ready-made rubric for most of these answers: the one for code, for
    prose, or for anything else.
    """
    kinds = [
        "code"
        if looks_like_code(text)
        else "helpfulness"
        if len(text.split()) >= _PROSE_WORDS
        else "quality"
        for text in texts
        if text.strip()
    ]
    return next(
        (kind for kind in ("code", "helpfulness") if 2 * kinds.count(kind) > len(kinds)), "quality"
    )
