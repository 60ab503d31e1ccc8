"""List, check and save suite files in the working folder."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.app.suites import problems, read_suite
from assay.domain.errors import InputError, Refused, SettingsError, SuiteError, UnknownName
from assay.domain.programs import KINDS
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.results_folder.atomic_files import AtomicFile
from assay.suites.files import whole_text
from assay.suites.located_yaml import UnreadableText, plain, read_json
from assay.suites.problems import SuiteErrors
from assay.suites.set_files import is_set
from assay.suites.tasks import slug

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.app.settings import Settings
    from assay.domain.suite import Suite
    from assay.providers.directory import Directory


SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl")


MAX_FILES: Final = 200
"""Maximum number of suites and sets in a list."""


LARGEST_TEXT: Final = 8 * 2**20
"""Maximum bytes of a set that a browser sends."""


# The start page waits for this search, and the server may be running in a home folder.
_MAX_LOOKED_AT: Final = 5_000


_DEEPEST: Final = 4


_HEAD: Final = 64 * 1024


# Only the beginnings of files are searched, because parsing every YAML and JSON file would delay
# the page.
_SUITE_LIKE: Final = re.compile(
    rb"""^tasks\s*:|"tasks"\s*:|"thingName"\s*:|"custom_id"\s*:""", re.M
)


_LEFT_OUT: Final = {"node_modules", "__pycache__", "venv", "dist", "build"}


SAVED_IN: Final = "suites"


_FIELDS: Final = {"candidate": "candidates"}
"""Form fields with a different name than the command-line option."""


def suite_files(settings: Settings) -> tuple[str, ...]:
    """Return the files below the working folder that look like suites or sets; files in upper
    folders come first.
    """
    root = settings.working_folder.resolve()
    # files that Assay wrote are not suites
    kept = root / str(settings.values["results"] or "results")
    suites = [
        path for path in _walked(root) if not path.is_relative_to(kept) and looks_like_a_suite(path)
    ]
    suites.sort(
        key=lambda path: (len(path.relative_to(root).parts), path.relative_to(root).as_posix())
    )
    return tuple(path.relative_to(root).as_posix() for path in suites[:MAX_FILES])


def check(
    settings: Settings, directory: Directory, name: str, text: str, *, at: Path | None = None
) -> tuple[Path, tuple[SuiteError, ...]]:
    """Return the path to which a suite or set would be saved, and the errors in its text.

    Files that the text refers to and that are not in the working folder yet are read from the
    folder of `at`.
    """
    if len(text.encode("utf-8", "replace")) > LARGEST_TEXT:
        raise InputError(
            "text",
            f"is larger than {LARGEST_TEXT // 2**20} MB.",
            remedy="Put the file into the folder.",
        )
    stem, dot, suffix = name.strip().rpartition(".")
    if not dot or f".{suffix.lower()}" not in SUFFIXES:
        stem, suffix = name.strip(), "json" if text.lstrip()[:1] in {"[", "{"} else "yaml"
    plain_name = slug(stem)
    if not plain_name:
        raise InputError("name", f"is {name!r}, expected a name with at least one letter or digit.")
    where = Path(SAVED_IN) / f"{plain_name[:80]}.{suffix.lower()}"
    wrong = problems(settings, at or _relative_to_here(settings.working_folder, where), text=text)
    return where, wrong or _refused_addresses(settings, directory, at or where, text)


def suite_of(settings: Settings, where: Path, text: str) -> Suite:
    """Return the suite or set in a text without errors; a suite may lack a judge."""
    place = _relative_to_here(settings.working_folder, where)
    try:
        return read_suite(settings, place, text=text)
    except SuiteErrors:
        return replace(read_suite(settings, place, judge="echo", text=text), judges=())


def _refused_addresses(
    settings: Settings, directory: Directory, where: Path, text: str
) -> tuple[SuiteError, ...]:
    # Most texts are sets without a program or address. A key may be spelled with escapes, which
    # contain a backslash.
    if not any(word in text for word in ("base_url", "\\", *KINDS)):
        return ()
    suite = suite_of(settings, where, text)
    models = [candidate.model for candidate in suite.candidates] + [
        judge.model for judge in suite.judges
    ]
    models += [] if suite.user is None else [suite.user.model]
    problems = []
    for model in models:
        if model is not None and (model.base_url is not None or model.program is not None):
            try:
                directory.check_address(model)
            except SettingsError as error:
                problems.append(
                    SuiteError(
                        f"{where.as_posix()} {error.where}", error.problem, remedy=error.remedy
                    )
                )
    return tuple(problems)


def save(
    settings: Settings,
    directory: Directory,
    name: str,
    text: str,
    *,
    title: str | None = None,
    as_version: bool = False,
) -> str:
    """Save a set or suite in the working folder and return its path there.

    A `title` that differs from the file name is written into the set. If a different file has this
    name, `as_version` saves the text under the next free number, such as `people-2.json`.

    Raises SuiteErrors for an invalid text, which is not saved, and Refused if a different file with
    this name exists.
    """
    where, wrong = check(settings, directory, name, text)
    if not wrong and title is not None and title != where.stem:
        text = _titled(text, title)
        wrong = problems(settings, _relative_to_here(settings.working_folder, where), text=text)
    if wrong:
        raise SuiteErrors(wrong)
    root = settings.working_folder.resolve()
    target = root / where
    try:
        target.parent.mkdir(exist_ok=True)
        # The folder `suites` may itself be a link.
        if not target.parent.resolve().is_relative_to(root):
            raise Refused(str(where.parent), "is outside the working folder.")
    except OSError as error:
        raise InputError(str(where), f"cannot be written: {error.strerror or error}.") from error
    try:
        with AtomicFile(target) as file:
            file.file.write(text.encode())
    except Refused:
        if (
            target.is_file()
            and not target.is_symlink()
            and target.read_text("utf-8", "replace") == text
        ):
            return where.as_posix()
        if as_version and (number := _next_version(target)) is not None:
            return save(
                settings,
                directory,
                f"{_unnumbered(where.stem)}-{number}{where.suffix}",
                text,
                as_version=True,
            )
        raise Refused(str(where), "already exists.", remedy="Choose another name.") from None
    except OSError as error:
        raise InputError(str(where), f"cannot be written: {error.strerror or error}.") from error
    return where.as_posix()


def text_of_set(settings: Settings, path: str) -> str:
    """Return the text of a set that can be edited in the browser; raises `InputError` for any other
    file.
    """
    where = suite_place(settings, path)
    text = whole_text(where)
    if not is_editable(suite_of(settings, where, text)):
        raise InputError(
            path,
            "cannot be edited here, because it is no JSON set with all its texts.",
            remedy="Use a text editor.",
        )
    return text


def is_editable(suite: Suite) -> bool:
    """True if the file is a JSON set that contains all its texts, as the browser writes them."""
    named = any(
        file.path for task in suite.tasks for snippet in task.snippets for file in snippet.files
    )
    try:
        return not named and is_set(read_json(suite.copy.text).value)
    except UnreadableText:
        return False


def save_table(folder: Path, table: Path) -> None:
    """Copy a table to the folder of suites; raises `Refused` if a different file has this name."""
    target = folder.resolve() / SAVED_IN / table.name
    target.parent.mkdir(exist_ok=True)
    if target.is_symlink() or (target.exists() and target.read_bytes() != table.read_bytes()):
        raise Refused(
            f"{SAVED_IN}/{table.name}",
            "already exists.",
            remedy="Rename the file and add it again.",
        )
    with AtomicFile(target, force=True) as file:
        file.file.write(table.read_bytes())


def _unnumbered(stem: str) -> str:
    return re.sub(r"-\d+$", "", stem)


def _next_version(file: Path) -> int | None:
    """Return the first free version number for a file name, from 2; None if all numbers below 1,000
    are used.
    """
    stem = _unnumbered(file.stem)
    free = (n for n in range(2, 1_000) if not file.with_name(f"{stem}-{n}{file.suffix}").exists())
    return next(free, None)


def field_of(error: InputError, path: str) -> str:
    """Return the field of a file that an error concerns, such as `rubric[0].weight`; empty for the
    whole file.
    """
    for named in (path, str(Path(path))):
        if error.where.startswith(named):
            match = re.fullmatch(r"(?::\d+)?(?: (.*))?", error.where.removeprefix(named))
            if match:
                return match[1] or ""
    if not error.where.startswith("--"):
        return error.where
    named, _, inner = error.where[2:].partition(" ")
    return _FIELDS.get(named, named) + (inner if not inner or inner[0] == "[" else f".{inner}")


def _titled(text: str, title: str) -> str:
    """Return a JSON set with its name changed to `title`; any other text is returned unchanged."""
    try:
        document = read_json(text)
    except UnreadableText:
        return text
    if not isinstance(document.value, list):
        return text
    return unescaped_json({"name": title, "things": plain(document.value)}, indent=2) + "\n"


def suite_place(settings: Settings, path: str) -> Path:
    """Return the path of a suite or set file named by a browser; raises `UnknownName` for a path
    outside the folder.
    """
    whole = visible_file(settings.working_folder, path, SUFFIXES)
    if whole is None:
        remedy = "Suites must be in the folder where `assay serve` was started."
        raise UnknownName("suite", path, suite_files(settings), remedy=remedy)
    return _relative_to_here(
        settings.working_folder, whole.relative_to(settings.working_folder.resolve())
    )


def visible_file(folder: Path, path: str, suffixes: tuple[str, ...]) -> Path | None:
    """Return the absolute path of a file named by a browser; None if it is hidden, outside the
    folder or of another type.
    """
    root = folder.resolve()
    try:
        whole = (root / path).resolve()
        inside = whole.is_relative_to(root) and not Path(path).is_absolute() and whole.is_file()
    except (OSError, ValueError):
        return None
    hidden = inside and any(part.startswith(".") for part in whole.relative_to(root).parts)
    return whole if inside and not hidden and whole.suffix.lower() in suffixes else None


def _relative_to_here(folder: Path, path: Path) -> Path:
    """Return the path relative to the current directory, which may differ from the folder of the
    server.
    """
    root = folder.resolve()
    return path if root == Path.cwd() else root / path


def _walked(root: Path) -> Iterator[Path]:
    """Yield files with the suffix of a suite, up to a depth limit; links to folders are skipped."""
    looked_at = 0
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        depth = len(here.relative_to(root).parts)
        folders[:] = sorted(
            name
            for name in folders
            if name[0] != "." and name not in _LEFT_OUT and depth < _DEEPEST
        )
        for name in sorted(files):
            looked_at += 1
            if looked_at > _MAX_LOOKED_AT:
                return
            path = here / name
            if (
                not name.startswith(".")
                and path.suffix.lower() in SUFFIXES
                and path.resolve().is_relative_to(root)
            ):
                yield path


def looks_like_a_suite(path: Path) -> bool:
    """True if the beginning of a file has a key of suites or sets."""
    try:
        with path.open("rb") as file:
            return _SUITE_LIKE.search(file.read(_HEAD)) is not None
    except OSError:
        return False
