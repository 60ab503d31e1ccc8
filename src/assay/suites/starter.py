"""The files of a new project: settings, a suite that runs without a key, and a list of files that git ignores."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

_FILES: Final = files(__package__) / "starter_files"


def starter_files(rubric: str | None = None) -> dict[str, str]:
    """Return the contents of a new project's files by path, in the order of writing.

    `rubric` names a ready-made rubric; each has its own starter suite.
    """
    judged = {} if rubric is None else {f"suites/{rubric}.yaml": _text("judged.yaml").replace("{rubric}", rubric)}
    return {
        "assay.yaml": _text("assay.yaml"),
        "suites/first.yaml": _text("first.yaml"),
        "suites/people.json": _text("people.json"),
        **judged,
        ".gitignore": _text("gitignore.txt"),
    }


def _text(name: str) -> str:
    return (_FILES / name).read_text("utf-8")
