"""Files to start from: a project with settings and a suite that runs without a key, and scenarios
for agents.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

from assay.domain.errors import InputError

_FILES: Final = files(__package__) / "starter_files"


def starter_files(rubric: str | None = None) -> dict[str, str]:
    """Return a new project's files by path, in the order of writing.

    Each ready-made `rubric` has its own starter suite.
    """
    judged = (
        {}
        if rubric is None
        else {f"suites/{rubric}.yaml": _text("judged.yaml").replace("{rubric}", rubric)}
    )
    return {
        "assay.yaml": _text("assay.yaml"),
        "suites/first.yaml": _text("first.yaml"),
        "suites/people.json": _text("people.json"),
        **judged,
        ".gitignore": _text("gitignore.txt"),
    }


def example_scenario(name: str) -> dict[str, str]:
    """Return the contents of an example scenario's files by path; raises `InputError` if it does
    not exist.

    Each example is a single text in which a line `-- PATH --` begins a file, because tools would
    take its code for ours.
    """
    names = sorted(file.name.removesuffix(".txt") for file in (_FILES / "scenarios").iterdir())
    if name not in names:
        raise InputError("--example", f"is {name!r}.", remedy=f"Examples: {', '.join(names)}.")
    _, *parts = re.split(r"^-- (.+) --\n", _text(f"scenarios/{name}.txt"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def starter_specialist(name: str) -> str:
    """Return a commented template of a specialist."""
    return _text("specialist.json5").replace("{name}", name)


def _text(name: str) -> str:
    return (_FILES / name).read_text("utf-8")
