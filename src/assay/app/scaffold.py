"""Create the files of a new project or scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.errors import InputError, Refused
from assay.exchange.results_folder.atomic_files import AtomicFile
from assay.suites.scenarios import KEBAB
from assay.suites.starter import example_scenario, starter_files, starter_specialist

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def start_project(folder: Path, *, rubric: str | None = None) -> tuple[Path, ...]:
    """Write the files of a new project and return their paths; raises `Refused` if one of the files
    exists.
    """
    files = {folder / name: text for name, text in starter_files(rubric).items()}
    # An existing .gitignore is kept as it is; it usually belongs to a repository around the
    # project.
    present = [path for path in files if path.exists() and path.name != ".gitignore"]
    if present:
        raise Refused(
            str(present[0]), "exists already.", remedy="Choose an empty folder: assay init my-bench"
        )
    return _write(folder, files)


def start_scenario(folder: Path, name: str, *, example: str) -> Path:
    """Write a copy of an example as the scenario `SUITE/NAME` below a project's folder, and return
    its folder.

    Writes nothing and raises InputError for an invalid name or an unknown example, or Refused if
    the folder exists.
    """
    suite, _, scenario = name.partition("/")
    if not (KEBAB.fullmatch(suite) and KEBAB.fullmatch(scenario)):
        remedy = "Use small letters, digits and hyphens: --scenario update-deps/flask-3"
        raise InputError("--scenario", f"is {name!r}, expected SUITE/NAME.", remedy=remedy)
    place = folder / "suites" / suite / "scenarios" / scenario
    files = example_scenario(example)
    if place.exists():
        raise Refused(
            str(place), "exists already.", remedy="Choose another name, or remove the folder first."
        )
    _write(place, {place / path: text for path, text in files.items()})
    return place


def start_specialist(folder: Path, name: str) -> Path:
    """Write a commented specialist template to `templates` below a project's folder, and return its
    path.

    Raises `InputError` for a name that is not `@org/name` or `name`, and `Refused` if the file
    exists.
    """
    scope, slash, short = name.rpartition("/")
    if not KEBAB.fullmatch(short) or (
        slash and not (scope[:1] == "@" and KEBAB.fullmatch(scope[1:]))
    ):
        remedy = "Use small letters, digits and hyphens: --specialist @org/react-expert"
        raise InputError("--specialist", f"is {name!r}, expected @ORG/NAME or NAME.", remedy=remedy)
    path = folder / "templates" / f"{short}.json5"
    if path.exists():
        raise Refused(
            str(path), "exists already.", remedy="Choose another name, or remove the file first."
        )
    _write(path.parent, {path: starter_specialist(name)})
    return path


def _write(folder: Path, files: Mapping[Path, str]) -> tuple[Path, ...]:
    made = []
    try:
        for path, text in files.items():
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                with AtomicFile(path) as file:
                    file.write(text)
                made.append(path)
    except OSError as error:
        raise Refused(str(folder), f"cannot be written: {error.strerror}.") from error
    return tuple(made)
