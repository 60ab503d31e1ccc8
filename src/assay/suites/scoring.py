"""Reads how a task is scored: by a named method, a plug-in's scorer, or a function in a Python file
next to the suite.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.errors import did_you_mean
from assay.domain.suite import Scoring
from assay.suites.checks import METHODS, TOOL_CALLS
from assay.suites.grammar import Kind, ReadContext, Schema, one_of, read_free
from assay.suites.located_yaml import Value, shown
from assay.suites.problems import Path

_FILE_SCORER: Final = re.compile(r"(?P<file>[^:]+\.py):(?P<function>[A-Za-z_]\w*)")


def _read_score(value: Value, path: Path, context: ReadContext) -> Scoring | None:
    """Read the name of a method, `file.py:function`, or a mapping of either to its options."""
    if isinstance(value, list):
        return _read_judge_and_check(value, path, context)
    checks = context.checks
    options: dict[str, JsonValue] = {}
    inner = path
    if isinstance(value, dict):
        if len(value) != 1:
            problem = f"is a mapping of {len(value)} keys, expected one: the method, such as {{numeric: {{...}}}}."
            context.report(path, problem)
            return None
        (method, given), *_ = value.items()
        inner = (*path, method)
        if isinstance(given, dict):
            options = {
                name: read_free(option, (*inner, name), context) for name, option in given.items()
            }
        elif given is not None:
            context.report(inner, f"is {shown(given)}, expected a mapping of options.")
            return None
    elif isinstance(value, str):
        method = value
    else:
        context.report(
            path, f"is {shown(value)}, expected the name of a method: {one_of(checks.methods)}."
        )
        return None
    if match := _FILE_SCORER.fullmatch(method):
        source = _read_scorer(match["file"], match["function"], inner, context)
        return None if source is None else Scoring(method=method, options=options, source=source)
    if method == "tests" and not _read_tests(options, inner, context):
        return None
    if method not in checks.methods:
        problem = f"is {shown(method)}, expected {one_of(checks.methods)}.{did_you_mean(method, checks.methods)}"
        remedy = (
            ""
            if did_you_mean(method, checks.methods)
            else "If a package offers it, install that package."
        )
        context.report(inner, problem, remedy, at_key=isinstance(value, dict))
        return None
    for problem in checks.option_problems(method, options):
        context.report(inner, problem)
    return Scoring(method=method, options=options, plugin=method in checks.plugins)


def _read_judge_and_check(value: list[Value], path: Path, context: ReadContext) -> Scoring | None:
    """Read `[judge, math]`: the judge gives the score, and the scorer verifies the final answer."""
    scorings = [_read_score(item, (*path, place), context) for place, item in enumerate(value)]
    if None in scorings:
        return None
    judged, *others = (scoring for scoring in scorings if scoring is not None) if value else (None,)
    if (
        judged is None
        or not judged.judged
        or len(others) != 1
        or others[0].judged
        or others[0].method in ("tests", TOOL_CALLS)
    ):
        problem = f"is {shown(value)}, expected `judge` and the scorer that checks the final answers, as in [judge, math]."
        context.report(path, problem)
        return None
    return replace(judged, verify=others[0])


def _read_tests(options: dict[str, JsonValue], path: Path, context: ReadContext) -> bool:
    """Replace the list of test files with their texts, keyed by name in the workspace; return False
    if one cannot be read.
    """
    named = options.pop("files", None) if "files" in options else options.pop("file", None)
    if named is None:
        return True
    files = [named] if isinstance(named, str) else named
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        context.report((*path, "files"), f"is {shown(named)}, expected a list of files.")
        return False
    texts = {str(file): context.files.text(str(file), (*path, "files"), context) for file in files}
    if None in texts.values():
        return False
    options["files"] = {file.rpartition("/")[2]: text for file, text in texts.items()}
    return True


def _read_scorer(file: str, function: str, path: Path, context: ReadContext) -> str | None:
    """Return the text of a Python file that has this function; the file never runs in this
    process.
    """
    source = context.files.text(file, path, context)
    if source is None:
        return None
    try:
        # Parsed, not imported: importing would run code of the suite in this process.
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        context.report(path, f"names {file}, which is not valid Python: {error}.")
        return None
    names = [item.name for item in body if isinstance(item, ast.FunctionDef)]
    if function not in names:
        problem = f"names a function {function!r} that {file} does not have.{did_you_mean(function, names)}"
        context.report(path, problem)
        return None
    return source


_OPTIONS: Final[Schema] = {"type": ["object", "null"]}
_ONE_KEY: Final[Schema] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
_FILE_PATTERN: Final = r"^[^:]+\.py:[A-Za-z_]\w*$"
SCORE: Final = Kind(
    _read_score,
    {
        "anyOf": [
            {"enum": list(METHODS)},
            {"type": "array", "minItems": 2, "maxItems": 2},
            {**_ONE_KEY, "properties": dict.fromkeys(METHODS, _OPTIONS)},
            {"type": "string", "pattern": _FILE_PATTERN},
            {**_ONE_KEY, "patternProperties": {_FILE_PATTERN: _OPTIONS}},
        ]
    },
)
