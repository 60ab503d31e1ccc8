#!/usr/bin/env python3
"""Check that the type checker sees misspelt names in `cli`, `web` and `app`.

The check misspells a sample of names of keyword arguments, each in a copy of the source, and asks
mypy once. A misspelling is seen if mypy reports an error inside the changed statement. Those that
it cannot see are values for templates of small pages, which fail when the page is drawn, and
constraints inside `Annotated`.

The check also counts places that name a field or an option in a string, where no misspelling is
seen, and parameters `**name: Any`. It exits 1 if a figure is worse than its limit:

* `field`: a field that a call names in a string, such as `getattr(run, "seed")`.
* `option`: a key of an untyped mapping of options, such as `how["budget"]` or
  `options.get("trials")`.

    python tools/check_types.py [--sample 300] [--seed 1] [--list]
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("cli", "web", "app")
LEAST_SEEN = 0.95
"""Smallest share of misspelt keywords that mypy must see."""
MAX_IN_STRINGS = 60
MAX_UNTYPED = 2
NAMING_FUNCTIONS = frozenset({"getattr", "hasattr", "attrgetter"})
READING_METHODS = frozenset({"get", "pop", "setdefault"})
SUFFIX = "_zz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name that may be misspelt: its kind, its text and place, and the lines of its statement
    (from 1, both included).
    """

    kind: str
    file: Path
    text: str
    line: int
    column: int
    first: int
    last: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=300, help="keywords to misspell (300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--list", action="store_true", help="also print every name that mypy does not check"
    )
    given = parser.parse_args()
    files = [file for room in ROOMS for file in sorted((ROOT / "src/assay" / room).rglob("*.py"))]
    names = [name for file in files for name in names_in(file)]
    keywords = [name for name in names if name.kind == "keyword"]
    in_strings = [name for name in names if name.kind != "keyword"]
    untyped = sum(map(untyped_keywords, files))
    drawn = sample(keywords, given.sample, random.Random(given.seed))
    seen = misspelt(drawn)
    print(
        f"types: mypy sees {len(seen)} of {len(drawn)} misspelt keywords, at least {LEAST_SEEN:.0%}"
    )
    print(f"types: {len(in_strings)} names in strings, at most {MAX_IN_STRINGS}")
    print(f"types: {untyped} parameters **name: Any, at most {MAX_UNTYPED}")
    for name in (*(name for name in drawn if name not in seen), *in_strings) if given.list else ():
        print(f"  not seen: {name.file.relative_to(ROOT)}:{name.line} {name.kind} {name.text}")
    return int(
        len(seen) < LEAST_SEEN * len(drawn)
        or len(in_strings) > MAX_IN_STRINGS
        or untyped > MAX_UNTYPED
    )


def names_in(file: Path) -> Iterator[Name]:
    """Yield all names of a file that may be misspelt."""
    tree = ast.parse(file.read_text("utf-8"))
    for statement in _statements(tree):
        for node in _own_nodes(statement):
            for kind, text, line, column in _names_of(node):
                yield Name(
                    kind=kind,
                    file=file,
                    text=text,
                    line=line,
                    column=column,
                    first=statement.lineno,
                    last=statement.end_lineno or statement.lineno,
                )


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements without a body of their own: an error inside one belongs to the names in
    it.
    """
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.stmt)
            and not hasattr(node, "body")
            and not isinstance(node, ast.Match)
        ):
            yield node


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    yield from ast.walk(statement)


def _names_of(node: ast.AST) -> Iterator[tuple[str, str, int, int]]:
    if isinstance(node, ast.Subscript) and _is_options(node.value):
        yield from _string("option", node.slice)
    if not isinstance(node, ast.Call):
        return
    called = _called(node)
    if called in NAMING_FUNCTIONS:
        for argument in node.args[0 if called == "attrgetter" else 1 :]:
            yield from _string("field", argument)
    if (
        called in READING_METHODS
        and isinstance(node.func, ast.Attribute)
        and _is_options(node.func.value)
    ):
        yield from _string("option", node.args[0]) if node.args else ()
    for keyword in node.keywords:
        if keyword.arg is not None:
            yield "keyword", keyword.arg, keyword.lineno, keyword.col_offset


def _string(kind: str, node: ast.expr) -> Iterator[tuple[str, str, int, int]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        yield kind, node.value, node.lineno, node.col_offset + 1


def _called(node: ast.Call) -> str:
    return (
        node.func.id
        if isinstance(node.func, ast.Name)
        else node.func.attr
        if isinstance(node.func, ast.Attribute)
        else ""
    )


def _is_options(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {
        "options",
        "how",
        "given",
        "more",
        "pair",
        "named",
        "candidates",
    }


def untyped_keywords(file: Path) -> int:
    """Count the parameters `**name: Any` of a file's functions."""
    functions = (
        node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if hasattr(node, "args")
    )
    taken = (getattr(node.args, "kwarg", None) for node in functions)
    return sum(
        kwarg is not None
        and kwarg.annotation is not None
        and ast.unparse(kwarg.annotation) == "Any"
        for kwarg in taken
    )


def sample(names: Sequence[Name], n: int, draw: random.Random) -> list[Name]:
    """Draw `n` names, no two of them in one statement."""
    shuffled = draw.sample(names, len(names))
    by_statement: dict[tuple[Path, int], Name] = {}
    for name in shuffled:
        by_statement.setdefault((name.file, name.first), name)
    return list(by_statement.values())[:n]


def misspelt(drawn: Sequence[Name]) -> set[Name]:
    """Return the names whose misspelling mypy sees, all in one run over a copy of the source."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("src", "pyproject.toml"):
            source = ROOT / part
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, copy / part)  # type: ignore[operator]
        if (ROOT / ".mypy_cache").exists():
            shutil.copytree(ROOT / ".mypy_cache", copy / ".mypy_cache")
        by_file: dict[Path, list[Name]] = defaultdict(list)
        for name in drawn:
            by_file[name.file].append(name)
        for file, names in by_file.items():
            lines = (copy / file.relative_to(ROOT)).read_text("utf-8").splitlines(keepends=True)
            for name in sorted(names, key=lambda name: (name.line, name.column), reverse=True):
                raw = lines[name.line - 1].encode()
                end = name.column + len(name.text.encode())
                lines[name.line - 1] = (raw[:end] + SUFFIX.encode() + raw[end:]).decode()
            (copy / file.relative_to(ROOT)).write_text("".join(lines), "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "src", "--no-error-summary"],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    errors = {
        (match[1], int(match[2]))
        for line in done.stdout.splitlines()
        if (match := re.match(r"(.+?):(\d+):(?:\d+:)? error", line))
    }
    return {
        name
        for name in drawn
        if any(
            (name.file.relative_to(ROOT).as_posix(), line) in errors
            for line in range(name.first, name.last + 1)
        )
    }


if __name__ == "__main__":
    sys.exit(main())
