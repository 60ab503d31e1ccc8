#!/usr/bin/env python3
"""Check that names and docstrings follow the English rules of this project.

Four rules, each broken by what a newcomer has to read twice:

* `first-line`: a docstring begins with a noun phrase or a verb, not with What, Whether, Those, How
  many or Who.
* `local-name`: a local variable is named for what it holds, never `found`, `said`, `its` or `one`.
* `class-name`: a public class name is unique in the source.
* `test-name`: a test's name is shorter than 70 characters.

`tools/words_allowed.json` holds the number of breaches that a file had when the rule came in. A
file may not go above its number; `--lower` writes the present numbers where they are lower. New
files have no allowance.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = ROOT / "tools" / "words_allowed.json"
FIRST_WORDS = re.compile(r"(What|Whether|Those|How many|Who)\b")
VAGUE_NAMES = frozenset({"found", "said", "its", "one"})
LONGEST_TEST_NAME = 69
NOT_OURS = frozenset({"demo", "migrations"})
"""Folders that hold code as data, and files whose names Alembic gives."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One place that breaks a rule."""

    rule: str
    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem} [{self.rule}]"


def breaches(root: Path) -> list[Breach]:
    """Return every breach below a project folder, in the order of files and lines."""
    places: list[Breach] = []
    classes: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path in sorted((root / "src").rglob("*.py")):
        if NOT_OURS.isdisjoint(path.parts):
            tree, name = ast.parse(path.read_text("utf-8")), path.relative_to(root).as_posix()
            places.extend(first_lines(tree, name))
            places.extend(vague_locals(tree, name))
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    classes[node.name].append((name, node.lineno))
    for name, uses in classes.items():
        for file, line in uses[1:]:
            places.append(
                Breach("class-name", file, line, f"class {name} exists already in {uses[0][0]}")
            )
    for path in sorted((root / "tests").rglob("*.py")):
        tree, name = ast.parse(path.read_text("utf-8")), path.relative_to(root).as_posix()
        places.extend(long_test_names(tree, name))
        places.extend(vague_locals(tree, name, VAGUE_NAMES - {"one"}))
    return sorted(places, key=lambda place: (place.file, place.line))


def first_lines(tree: ast.Module, file: str) -> Iterator[Breach]:
    """Yield docstrings whose first word promises a riddle."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            if match := FIRST_WORDS.match(text):
                line = node.body[0].lineno
                yield Breach(
                    "first-line",
                    file,
                    line,
                    f"a docstring begins with {match[1]!r}: name the thing or the act",
                )


def vague_locals(
    tree: ast.Module, file: str, vague: frozenset[str] = VAGUE_NAMES
) -> Iterator[Breach]:
    """Yield assignments to names that say nothing of their content."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in vague:
            yield Breach(
                "local-name",
                file,
                node.lineno,
                f"a local is named {node.id!r}: name it for what it holds",
            )


def long_test_names(tree: ast.Module, file: str) -> Iterator[Breach]:
    """Yield tests whose names are longer than a line of a report."""
    for node in ast.walk(tree):
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if is_function and node.name.startswith("test_") and len(node.name) > LONGEST_TEST_NAME:
            problem = f"{node.name} has {len(node.name)} characters: at most {LONGEST_TEST_NAME}"
            yield Breach("test-name", file, node.lineno, problem)


def main(arguments: list[str]) -> int:
    """Print breaches above the allowance and return 1 if there are any; with `--lower`, lower the
    allowance.
    """
    places = breaches(ROOT)
    counts = Counter((place.rule, place.file) for place in places)
    allowed: dict[str, dict[str, int]] = (
        json.loads(ALLOWED.read_text("utf-8")) if ALLOWED.exists() else {}
    )
    if "--lower" in arguments:
        lowered: dict[str, dict[str, int]] = defaultdict(dict)
        for (rule, file), count in sorted(counts.items()):
            if number := min(
                count, allowed.get(rule, {}).get(file, 0) if ALLOWED.exists() else count
            ):
                lowered[rule][file] = number
        ALLOWED.write_text(json.dumps(lowered, indent=1) + "\n", "utf-8")
    above = {key for key, count in counts.items() if count > allowed.get(key[0], {}).get(key[1], 0)}
    for place in places:
        if (place.rule, place.file) in above:
            print(place)
    for rule, file in sorted(above):
        print(
            f"{file}: {counts[rule, file]} breaches of {rule}, {allowed.get(rule, {}).get(file, 0)} allowed"
        )
    return 1 if above and "--lower" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
