"""Runs tests or a protected check in a child process, and decides from outside whether all of them
passed.

    python -I -S -B runner.py INTERPRETER-OPTIONS (unittest | pytest | script) WORDS…

The child imports the graded code, so it may end early, print anything or change what it can reach.
Therefore this process reads the names of the tests from their source first, gives each test a token
when it begins, and demands the end of each test with its token. Output and exit code of the child
alone prove nothing. Exit codes: 0 all passed, 5 there are no tests, otherwise 1.
"""

from __future__ import annotations

import ast
import ctypes
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
_PR_SET_DUMPABLE = 4
_NO_TESTS = 5
_WITH_VALUE = (
    "-k",
    "-s",
    "-p",
    "-t",
    "--start-directory",
    "--pattern",
    "--top-level-directory",
    "--durations",
)
_SELECTING = (
    "-k",
    "-m",
    "--deselect",
    "--ignore",
    "--ignore-glob",
    "--lf",
    "--last-failed",
    "--sw",
    "--stepwise",
    "-p",
    "-c",
    "--rootdir",
)
_SKIPS = ("skip", "xfail", "expectedFailure", "importorskip")


class Expected:
    """Tests that must pass, by name, and those that may be skipped because their source says so."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.may_skip: set[str] = set()

    def add(self, name: str, may_skip: bool) -> None:
        self.names.add(name)
        if may_skip:
            self.may_skip.add(name)


def tests_in(source: str) -> Iterator[tuple[str, bool]]:
    """Yield the tests that a file is certain to contain, as `Class.method` or `function`, and True
    if it may skip them.
    """
    tree = ast.parse(source)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    skips_all = any(
        _mentions_skip(node)
        for node in tree.body
        if not isinstance(node, (ast.ClassDef, *functions, ast.ImportFrom))
    )
    for node in tree.body:
        if isinstance(node, functions) and node.name.startswith("test"):
            yield node.name, skips_all or _mentions_skip(node)
        if isinstance(node, ast.ClassDef):
            skips = skips_all or any(_mentions_skip(each) for each in node.decorator_list)
            skips = skips or any(
                _mentions_skip(each)
                for each in node.body
                if getattr(each, "name", "") in ("setUp", "setUpClass")
            )
            cases = any(_last_name(base).endswith("TestCase") for base in node.bases)
            plain = node.name.startswith("Test") and not node.bases
            for inner in node.body:
                if (
                    isinstance(inner, functions)
                    and inner.name.startswith("test")
                    and (cases or plain)
                ):
                    yield f"{node.name}.{inner.name}", skips or _mentions_skip(inner)


def is_case(source_name: str, source: str) -> bool:
    """True if a test is a method of a `unittest.TestCase`, as far as the source tells."""
    name = source_name.partition(".")[0]
    return any(
        isinstance(node, ast.ClassDef)
        and node.name == name
        and any(_last_name(base).endswith("TestCase") for base in node.bases)
        for node in ast.parse(source).body
    )


def _last_name(node: ast.expr) -> str:
    return (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )


def _mentions_skip(node: ast.AST) -> bool:
    names = (getattr(each, "attr", "") or getattr(each, "id", "") for each in ast.walk(node))
    return any(word in name for name in names for word in _SKIPS) or any(
        "SkipTest" in _last_name(each) for each in ast.walk(node) if isinstance(each, ast.expr)
    )


def _source_of(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            source = file.read()
        ast.parse(source)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    return source


def expected_of_unittest(words: list[str], trusted: set[str], root: str) -> Expected:
    """Return the tests that `python -m unittest` with these words runs, as far as the protected
    files tell.
    """
    expected = Expected()
    patterns: list[str] = []
    named: list[str] = []
    pattern, place, top = "test*.py", ".", ""
    discovers = False
    rest = list(words)
    while rest:
        word = rest.pop(0)
        key, has_value, value = word.partition("=")
        if key in _WITH_VALUE or word[:2] in ("-k", "-s", "-p", "-t"):
            if key not in _WITH_VALUE:
                key, value = word[:2], word[2:]
            elif not has_value:
                value = rest.pop(0) if rest else ""
            if key == "-k":
                patterns.append(value if "*" in value else f"*{value}*")
            elif key in ("-s", "--start-directory"):
                place, discovers = value, True
            elif key in ("-p", "--pattern"):
                pattern, discovers = value, True
            elif key in ("-t", "--top-level-directory"):
                top, discovers = value, True
        elif word == "discover" and not named:
            discovers = True
        elif not word.startswith("-"):
            named.append(word)
    if discovers or not named:
        place = named[0] if named else place
        pattern = named[1] if len(named) > 1 else pattern
        base = os.path.abspath(top or place)
        for path in sorted(trusted):
            full = os.path.join(root, path)
            if fnmatchcase(os.path.basename(path), pattern) and _is_found_below(
                full, os.path.abspath(place)
            ):
                module = os.path.relpath(full, base)[:-3].replace(os.sep, ".")
                _add_file(expected, full, module, patterns, cases_only=True)
    for name in named if not discovers else ():
        _add_named(expected, name, trusted, root, patterns)
    return expected


def _is_found_below(path: str, place: str) -> bool:
    """True if discovery in a folder finds a file: each folder in between is a package."""
    folder = os.path.dirname(path)
    while folder != place:
        if not folder.startswith(place + os.sep) or not os.path.isfile(
            os.path.join(folder, "__init__.py")
        ):
            return False
        folder = os.path.dirname(folder)
    return True


def _add_named(
    expected: Expected, name: str, trusted: set[str], root: str, patterns: list[str]
) -> None:
    """Add the tests of a module, class or method, given by its dotted name or the path of its
    file.
    """
    if name.endswith(".py"):
        name = os.path.relpath(os.path.abspath(name))[:-3].replace(os.sep, ".")
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        full = os.path.abspath(os.path.join(*parts[:length]) + ".py")
        if os.path.relpath(full, root) in trusted:
            within = ".".join(parts[length:])
            _add_file(
                expected, full, ".".join(parts[:length]), patterns, cases_only=True, within=within
            )
            return


def _add_file(
    expected: Expected,
    path: str,
    module: str,
    patterns: list[str],
    *,
    cases_only: bool,
    within: str = "",
) -> None:
    source = _source_of(path)
    if source is None or "load_tests" in source:
        return
    for name, may_skip in tests_in(source):
        full = f"{module}.{name}"
        if cases_only and not is_case(name, source):
            continue
        if within and name != within and not name.startswith(f"{within}."):
            continue
        if not patterns or any(fnmatchcase(full, pattern) for pattern in patterns):
            expected.add(full, may_skip)


def expected_of_pytest(words: list[str], trusted: set[str], root: str) -> tuple[Expected, bool]:
    """Return the tests that pytest runs with these words as `FILE::NAME`, and True if that is
    certain for all files.

    Options that select tests, and a configuration of the project, may leave files out. Then only
    the files are complete of which pytest runs at least one test.
    """
    expected = Expected()
    selects = any(
        word == each or word.startswith(f"{each}=") for word in words for each in _SELECTING
    )
    if selects:
        return expected, False
    configured = any(
        os.path.exists(os.path.join(root, name))
        for name in ("pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py")
    )
    configured = configured or any(
        marker in (_text_of(os.path.join(root, name)) or "")
        for name, marker in (
            ("pyproject.toml", "[tool.pytest"),
            ("setup.cfg", "[tool:pytest]"),
            ("tox.ini", "[pytest]"),
        )
    )
    named = [
        word
        for word in words
        if not word.startswith("-") and os.path.exists(word.partition("::")[0])
    ]
    places = [os.path.abspath(word.partition("::")[0]) for word in named] or [os.getcwd()]
    inner = [word.partition("::")[2].replace("::", ".") for word in named] or [""]
    for path in sorted(trusted):
        full = os.path.join(root, path)
        base = os.path.basename(path)
        for place, within in zip(places, inner):
            is_file = place == full
            is_below = full.startswith(place + os.sep) and (
                fnmatchcase(base, "test_*.py") or fnmatchcase(base, "*_test.py")
            )
            if is_file or is_below:
                _add_file(
                    expected,
                    full,
                    f"{path}:",
                    [],
                    cases_only=False,
                    within=within.partition("[")[0],
                )
    return expected, not configured


def _text_of(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


class TestReports:
    """Messages of the child about its tests; a message that fits no test in progress is a fault."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.skipped: set[str] = set()
        self.failed: set[str] = set()
        self.faults: list[str] = []
        self.code: int | None = None
        self._tokens: dict[str, str] = {}

    def answer(self, message: dict[str, Any]) -> str | None:
        """Take a message; return the token for a test that begins."""
        name = str(message.get("test", ""))
        kind = message.get("kind")
        if self.code is not None:
            self.faults.append("a message came after the end")
        elif kind == "begin":
            self._tokens[name] = secrets.token_hex(16)
            return self._tokens[name]
        elif kind in ("passed", "failed", "skipped"):
            token = self._tokens.pop(name, None)
            if token is None or not secrets.compare_digest(token, str(message.get("token"))):
                self.faults.append(f"the result of {name} came without its token")
            getattr(self, str(kind)).add(name)
        elif kind == "changed":
            self.faults.append(f"the code under test changed {name}")
        elif kind == "end":
            self.code = int(message["code"])
        else:
            self.faults.append("an unknown message came")
        return None

    def verdict(
        self, expected: Expected, *, complete: bool, needs_tests: bool
    ) -> tuple[int, list[str]]:
        """Return the exit code and the reasons for a failure."""
        reasons = [f"{fault}" for fault in self.faults[:5]]
        if self.code is None:
            reasons.append("the process of the tests ended before they were done")
        if self._tokens and self.code is not None:
            reasons.append(f"{_listed(self._tokens)} did not end")
        names = expected.names
        if not complete:
            began = self.passed | self.skipped | self.failed
            files = {name.partition(":")[0] for name in began}
            names = {name for name in names if name.partition(":")[0] in files}
        missing = names - self.passed - (self.skipped & expected.may_skip) - self.failed
        if missing:
            reasons.append(
                f"{len(names) - len(missing)} of {len(names)} expected tests ran; without a result: {_listed(missing)}"
            )
        unasked = {name for name in self.skipped if name in expected.names} - expected.may_skip
        if unasked:
            reasons.append(f"{_listed(unasked)} was skipped, and its source does not say so")
        if needs_tests and not reasons and not (self.passed or self.failed or self.skipped):
            return _NO_TESTS, ["no tests were found"]
        return (1 if self.failed or reasons or self.code != 0 else 0), reasons


def _listed(names: Any) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


def run(options: list[str], kind: str, words: list[str], told: dict[str, Any]) -> int:
    root, trusted = os.path.realpath(told["root"]), set(told["trusted"])
    expected, complete = Expected(), True
    if kind == "script":
        source = _source_of(words[0])
        if source is not None and "unittest.main(" in source:
            _add_file(expected, os.path.abspath(words[0]), "__main__", [], cases_only=True)
    elif kind == "unittest":
        expected = expected_of_unittest(words, trusted, root)
    else:
        expected, complete = expected_of_pytest(words, trusted, root)
    reading, theirs = os.pipe()
    ours, writing = os.pipe()
    for descriptor in (theirs, ours):
        os.set_inheritable(descriptor, True)
    safe = [] if sys.version_info < (3, 11) else ["-P"]
    child = subprocess.Popen(
        [
            sys.executable,
            *options,
            "-s",
            "-B",
            *safe,
            os.path.join(HERE, "child.py"),
            str(theirs),
            str(ours),
            kind,
            *words,
        ],
        close_fds=False,
    )
    os.close(theirs)
    os.close(ours)
    reports = TestReports()
    messages = open(reading, encoding="utf-8", errors="replace")  # noqa: SIM115 - closed below
    tokens = open(writing, "w", encoding="ascii")  # noqa: SIM115 - likewise
    with messages, tokens:
        for line in messages:
            try:
                token = reports.answer(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError):
                reports.faults.append("an unreadable message came")
                continue
            if token is not None:
                try:
                    tokens.write(f"{token}\n")
                    tokens.flush()
                except OSError:
                    break
    child.wait()
    code, reasons = reports.verdict(
        expected, complete=complete, needs_tests=kind != "script" or bool(expected.names)
    )
    if reasons:
        sys.stdout.flush()
        os.write(2, f"Assay: {'; '.join(reasons)}.\n".encode("utf-8", "replace"))
    return code


def main() -> int:
    if sys.platform == "linux":
        # The child has the same user; without this, it could read and write the memory of this
        # process.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    with open(os.path.join(HERE, "settings.json"), encoding="utf-8") as file:
        told = json.load(file)
    return run(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:], told)


if __name__ == "__main__":
    sys.exit(main())
