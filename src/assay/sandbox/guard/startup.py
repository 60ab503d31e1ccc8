"""Python's start-up in a validation: imported as `sitecustomize` by each Python process, before any
code of the workspace.

Modules of Python and of tools win over files of the same name in the workspace. A process that
would run tests or a protected check is replaced by `runner.py`, which runs them in a child process
and counts the results.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
_TAKES_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_PYTEST = ("pytest", "py.test")


class ReservedFirst:
    """Finds modules of Python and of tools where they are installed, whatever stands before them on
    the path.
    """

    def __init__(self, names: dict[str, list[str]]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        places = self._names.get(name) if path is None else None
        return None if places is None else PathFinder.find_spec(name, places)


def settings() -> dict[str, Any]:
    with open(os.path.join(HERE, "settings.json"), encoding="utf-8") as file:
        return dict(json.load(file))


def command_line() -> list[str]:
    """The command line of this process, also before Python 3.10."""
    known = getattr(sys, "orig_argv", None)
    if known is None:
        with open("/proc/self/cmdline", encoding="utf-8", errors="surrogateescape") as file:
            known = file.read().split("\0")[:-1]
    return list(known)


def parsed(words: list[str]) -> tuple[list[str], str, list[str]]:
    """Return the options of the interpreter, the kind of what it runs (`-m`, `-c`, a script or
    nothing), and the rest.
    """
    options: list[str] = []
    rest = words[1:]
    while rest:
        word = rest[0]
        if word in _TAKES_VALUE:
            options += rest[:2]
            rest = rest[2:]
        elif word == "-" or not word.startswith("-"):
            return options, "script" if word != "-" else "stdin", rest
        elif word.startswith("--"):
            options.append(word)
            rest = rest[1:]
        else:
            for place, letter in enumerate(word[1:], 1):
                if letter in "mc":
                    options += [word[:place]] if place > 1 else []
                    inner = word[place + 1 :]
                    return options, f"-{letter}", ([inner] if inner else []) + rest[1:]
                if letter in "WX":
                    break
            options.append(word)
            rest = rest[1:]
    return options, "", []


def reserve(own: Sequence[str], reserved: Sequence[str]) -> None:
    """Give modules of Python and of tools precedence, except those that the fixture itself replaces
    (`own`).
    """
    library = os.path.dirname(os.__file__)
    standard = [library, os.path.join(library, "lib-dynload")]
    installed = [
        path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")
    ]
    names = dict.fromkeys(getattr(sys, "stdlib_module_names", ()), standard)
    names.update(dict.fromkeys(reserved, installed))
    for name in own:
        names.pop(name, None)
    place = next(
        (place for place, finder in enumerate(sys.meta_path) if finder is PathFinder),
        len(sys.meta_path),
    )
    sys.meta_path.insert(place, ReservedFirst(names))


def test_words(kind: str, rest: list[str], trusted: Sequence[str], root: str) -> list[str] | None:
    """Return the words for the runner if a process runs tests or a protected check, otherwise
    None.
    """
    if not rest:
        return None
    name, words = rest[0], rest[1:]
    if kind == "-m":
        if name in ("unittest", "unittest.__main__"):
            return ["unittest", *words]
        if name in ("pytest", "pytest.__main__", "py.test"):
            return ["pytest", *words]
        path = name.replace(".", "/")
        for each in (f"{path}.py", f"{path}/__main__.py"):
            if os.path.relpath(os.path.abspath(each), root) in trusted:
                return ["script", each, *words]
    if kind == "script":
        if os.path.basename(name) in _PYTEST and not os.path.abspath(name).startswith(
            root + os.sep
        ):
            return ["pytest", *words]
        if os.path.relpath(os.path.realpath(name), root) in trusted:
            return ["script", name, *words]
    return None


def start() -> None:
    told = settings()
    root = os.path.realpath(told["root"])
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    options, kind, rest = parsed(command_line())
    reserve(told["own"], told["reserved"])
    if kind == "script" and rest and os.path.dirname(os.path.abspath(rest[0])) == HERE:
        _add_folders_of_the_command()
        return
    words = test_words(kind, rest, told["trusted"], root)
    if words is not None:
        runner = os.path.join(HERE, "runner.py")
        os.execv(
            sys.executable, [sys.executable, "-I", "-S", "-B", runner, json.dumps(options), *words]
        )
    _run_next_sitecustomize()
    _add_folders_of_the_command()
    # In safe-path mode Python adds neither the folder of a script nor the current one. Modules that
    # are reserved come first all the same; before Python 3.10 the names of its modules are unknown,
    # and the folder comes last.
    place = os.path.dirname(os.path.realpath(rest[0])) if kind == "script" and rest else os.getcwd()
    if sys.version_info >= (3, 11):
        sys.path.insert(0, place)


def _add_folders_of_the_command() -> None:
    """Add the folders that the command put on PYTHONPATH, now that modules of Python have
    precedence over those in them.
    """
    named = os.environ.get("ASSAY_PYTHONPATH", "")
    sys.path[:0] = [os.path.abspath(folder) for folder in named.split(os.pathsep) if folder]


def _run_next_sitecustomize() -> None:
    """Import the start-up module that this one hides, for example that of a distribution."""
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if os.path.isabs(path)])
    if (
        spec is not None
        and spec.loader is not None
        and os.path.dirname(os.path.abspath(spec.origin or HERE)) != HERE
    ):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if __name__ == "sitecustomize":
    try:
        start()
    except Exception as error:  # a process that is not guarded must not run as if it were
        os.write(2, f"Assay could not prepare Python for this check: {error!r}\n".encode())
        os._exit(1)
