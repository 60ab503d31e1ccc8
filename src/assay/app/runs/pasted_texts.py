"""Create a run from pasted texts, which people grade; no API key is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.app.runs import execution, preflight
from assay.app.suites import problems
from assay.domain.errors import InputError, Refused, SettingsError
from assay.domain.identifiers import folded
from assay.domain.run import RunOptions
from assay.domain.suite import PERSON
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.results_folder.atomic_files import AtomicFile
from assay.suites.problems import SuiteErrors
from assay.suites.tasks import slug

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.runs.execution import RunResult
    from assay.app.workspace import Workspace

FOLDER: Final = "suites"
"""Folder of pasted texts, below the working folder."""

PLACE: Final = "the pasted texts"


def grade_pasted(
    workspace: Workspace,
    *,
    thing: str,
    context: str,
    snippets: Sequence[tuple[str, str]],
    trials: int = 1,
    rubric: Sequence[Mapping[str, Any]] | None = None,
) -> RunResult:
    """Save pasted texts as a suite with a rubric, and create a run of the suite for people to
    grade.

    Raises InputError if the Thing has no name, or if candidates are fewer than two, unnamed,
    without a text, or named twice. Raises SuiteErrors for an invalid rubric (nothing is saved), and
    SettingsError if the file cannot be written.
    """
    if not thing.strip():
        raise InputError("thing", "the Thing has no name.", remedy="Give it one.")
    given: list[tuple[str, str]] = []
    known: dict[str, int] = {}
    for place, (name, content) in enumerate(snippets):
        if not name.strip():
            raise InputError(
                f"snippets[{place}].name",
                f"candidate {place + 1} has no name.",
                remedy="Give it one.",
            )
        if not content.strip():
            where = f"snippets[{place}].content"
            raise InputError(where, f"candidate {place + 1} has no text.", remedy="Paste its text.")
        first = known.setdefault(folded(name.strip()), place)
        if first != place:
            problem = f"candidate {place + 1} has the same name as candidate {first + 1}, {name.strip()!r}."
            raise InputError(
                f"snippets[{place}].name", problem, remedy="Name the candidates differently."
            )
        given.append((name.strip(), content))
    if len(given) < 2:
        raise InputError(
            "snippets", f"at least two candidates are needed, but {len(given)} were given."
        )
    document = {
        "name": thing.strip(),
        "judge": PERSON,
        **({} if rubric is None else {"rubric": rubric}),
        "tasks": [
            {
                "id": slug(thing) or "pasted",
                "thing": thing.strip(),
                "context": context,
                "trials": trials,
                "snippets": dict(given),
            }
        ],
    }
    text = unescaped_json(document, indent=2) + "\n"
    if wrong := problems(workspace.settings, Path(PLACE), text=text):
        raise SuiteErrors(wrong)
    path = _kept(workspace.folder / FOLDER, thing, text)
    suite = preflight.load(workspace.settings, path)
    return execution.run(workspace, suite, RunOptions())


def _kept(folder: Path, thing: str, text: str) -> Path:
    """Write the text to a new file named after the Thing and return the file's path; never
    overwrites a file.
    """
    name = slug(thing)[:60] or "pasted"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, 1000):
            path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
            try:
                with AtomicFile(path) as file:
                    file.file.write(text.encode())
            except Refused:
                continue
            return path
    except (OSError, UnicodeEncodeError) as error:
        remedy = "Check the permissions of the folder."
        raise SettingsError(str(folder), f"cannot be written: {error}.", remedy=remedy) from error
    raise SettingsError(
        str(folder),
        f"already contains a thousand sets named {name}.",
        remedy="Give it another name.",
    )
