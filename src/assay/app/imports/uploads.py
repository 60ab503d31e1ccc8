"""Recognise and preview uploaded files, then import results or save suites.

A preview imports the results into a temporary store, which is deleted afterwards, so preview and
import share their code and their limits for archives and documents. Each upload also has a limit of
rows and of time, and only one upload is read at a time, so that the server keeps responding.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from statistics import mean
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from assay.app.imports.importer import import_paths
from assay.app.imports.options import Progress, import_document
from assay.app.runs import suite_files
from assay.app.table_suite import propose
from assay.app.wire import document
from assay.app.workspace import Workspace
from assay.domain.errors import AssayError, InputError, Refused
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.exchange.detection import recognise_format
from assay.exchange.parsing.input_files import input_file
from assay.suites.taskfiles import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.app.settings import Settings
    from assay.providers.directory import Directory
    from assay.store.opening import Store


MAX_ROWS: Final = 500_000
MAX_S: Final = 60.0
_LISTED: Final = 50
_SUITE_FORMATS: Final = (None, "set", "openai_batch_input")
_ONE_AT_A_TIME: Final = Lock()


@document
class UploadedCandidate:
    """A candidate in uploaded results; `mean` is the mean of all its scores (0 to 1), without any
    review.
    """

    name: str
    scores: int
    mean: float | None


@document
class UploadedRun:
    """A run that the import would store."""

    suite: str
    trials: int
    waiting: int
    candidates: tuple[UploadedCandidate, ...]


@document
class UploadedSuite:
    """An uploaded suite or set with its problems.

    If `exists`, saving it creates a new version of the stored suite.
    """

    file: str
    path: str
    exists: bool
    tasks: int
    candidates: tuple[str, ...]
    problems: tuple[str, ...]


@document
class UploadPreview:
    """Contents of uploaded files.

    Long lists are cut; `skipped_more` is the number of omitted lines.
    """

    formats: tuple[str, ...]
    runs: tuple[UploadedRun, ...]
    tasks: int
    responses: int
    known: dict[str, tuple[str, ...]]
    suites: tuple[UploadedSuite, ...]
    notes: tuple[str, ...]
    skipped: tuple[str, ...]
    skipped_more: int


def look(workspace: Workspace, uploads: Sequence[tuple[str, bytes]]) -> UploadPreview:
    """Describe the contents of files without storing them; raises `InputError` for files above the
    limits.
    """
    with _received(uploads) as (folder, results, suites):
        settings = {"store": str(folder / "preview.db"), "results": "off"}
        with Workspace.open(folder, environment={}, options=settings) as other:
            result = import_paths(other, list(results), progress=_bounded(), called=results)
            runs = _runs(other.store)
        known = {
            name: workspace.store.imports.known(digest) for name, digest in result.digests.items()
        }
        return UploadPreview(
            formats=tuple(result.formats),
            runs=tuple(runs[:_LISTED]),
            tasks=result.tasks,
            responses=result.responses,
            known={name: ids for name, ids in known.items() if ids is not None},
            suites=tuple(
                _suite(workspace.settings, workspace.directory, path, name)
                for path, name in suites.items()
            ),
            notes=tuple(f"{note.where}: {note.what}" for note in result.notes[:_LISTED]),
            skipped=tuple(f"{line.where}: {line.why}" for line in result.skipped[:_LISTED]),
            skipped_more=max(0, len(result.skipped) - _LISTED),
        )


def keep(workspace: Workspace, uploads: Sequence[tuple[str, bytes]]) -> dict[str, Any]:
    """Import results and save suites, and return the JSON of `assay import`; raises `InputError`
    for invalid or large files.
    """
    with _received(uploads) as (_, results, suites):
        saved = [_save(workspace.settings, workspace.directory, path) for path in suites]
        result = import_paths(workspace, list(results), progress=_bounded(), called=results)
    imported = Selection(runs=tuple(result.run_ids))
    waiting = (
        workspace.archive.assessments.tally(imported).get(AssessmentState.PENDING, 0)
        if result.run_ids
        else 0
    )
    return {**import_document(result), "suites": saved, "waiting": waiting}


@contextmanager
def _received(
    uploads: Sequence[tuple[str, bytes]],
) -> Iterator[tuple[Path, dict[Path, str], dict[Path, str]]]:
    """Write files to a temporary folder; yield (folder, names of results by path, names of suites
    by path).
    """
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise Refused(
            "files",
            "have to wait until another upload has been read.",
            remedy="Try again in a moment.",
        )
    try:
        with TemporaryDirectory(prefix="assay-") as place:
            results: dict[Path, str] = {}
            for name, content in uploads:
                parts = [
                    part[-150:]
                    for part in PurePosixPath(name.replace("\\", "/").replace("\0", "")).parts
                ]
                named = PurePosixPath(
                    *[part for part in parts if part not in {"/", ".", ".."}][-8:]
                )
                path = Path(place, "files", named)
                if path in results or not named.parts:
                    raise InputError(
                        "files",
                        f"contains a file without a name, or two files named {name!r}.",
                        remedy="Rename it.",
                    )
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                results[path] = str(named)
            formats = {path: _format(path) for path in results}
            suites = {
                path: name
                for path, name in results.items()
                if formats[path] in _SUITE_FORMATS and _is_suite(path)
            }
            if len(suites) < len(results):  # requests of a batch belong to its results
                suites = {
                    path: name
                    for path, name in suites.items()
                    if formats[path] != "openai_batch_input"
                }
            yield (
                Path(place),
                {path: name for path, name in results.items() if path not in suites},
                suites,
            )
    finally:
        _ONE_AT_A_TIME.release()


def _format(path: Path) -> str | None:
    """Return the format name of a results file; None if the file has no results, empty if its
    format is ambiguous.
    """
    try:
        reader = recognise_format(input_file(path).sample)
    except (AssayError, OSError, ValueError):
        return ""
    return None if reader is None else str(reader.NAME)


def _reads_as_suite(path: Path) -> bool:
    return path.suffix.lower() in suite_files.SUFFIXES and suite_files.looks_like_a_suite(path)


def _is_suite(path: Path) -> bool:
    if _reads_as_suite(path) or path.suffix.lower() not in TABLES:
        return _reads_as_suite(path)
    if path.suffix.lower() in suite_files.SUFFIXES:
        with suppress(InputError):
            return bool(propose(path).columns)
        return False
    return True


def _text_of(path: Path) -> tuple[Path | None, str]:
    """Return (None, text) of a suite; for a table, the path and text of a suite proposed for it."""
    if not _reads_as_suite(path):
        proposal = propose(path)
        return proposal.path, proposal.text()
    try:
        return None, path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(path.name, f"is not text: {error}.", remedy="Save it as UTF-8.") from error


def _suite(settings: Settings, directory: Directory, path: Path, name: str) -> UploadedSuite:
    where, suite, problems = Path(name), None, list[str]()
    try:
        at, text = _text_of(path)
        where, wrong = suite_files.check(settings, directory, (at or path).name, text, at=at)
        problems = [str(error).replace(f"{path.parent}/", "") for error in wrong]
        suite = None if wrong else suite_files.suite_of(settings, at or where, text)
    except InputError as error:
        problems = [str(error).replace(f"{path.parent}/", "")]
    return UploadedSuite(
        file=name,
        path=where.as_posix(),
        exists=(settings.working_folder / where).exists(),
        tasks=0 if suite is None else sum(1 for _ in suite.tasks),
        candidates=()
        if suite is None
        else tuple(candidate.name for candidate in suite.candidates[:_LISTED]),
        problems=tuple(problems[:_LISTED]),
    )


def _save(settings: Settings, directory: Directory, path: Path) -> str:
    """Save a suite in the working folder; a table is saved next to the suite proposed for it."""
    at, text = _text_of(path)
    if at is not None:
        suite_files.save_table(settings.working_folder, path)
    return suite_files.save(settings, directory, (at or path).name, text, as_version=True)


def _runs(store: Store) -> list[UploadedRun]:
    sums: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in store.archive.exports.score_rows(Selection(), everything=True):
        if row.score is not None and not row.criterion:
            sums[row.run_id, row.candidate].append(row.score)
    return [
        UploadedRun(
            suite=summary.suite,
            trials=sum(summary.trials.values()),
            waiting=summary.assessments.get(AssessmentState.PENDING, 0),
            candidates=tuple(
                UploadedCandidate(
                    name=name, scores=len(scores), mean=mean(scores) if scores else None
                )
                for name in summary.candidates[:_LISTED]
                for scores in [sums[summary.id, name]]
            ),
        )
        for summary in store.archive.runs.matching(Selection())
    ]


def _bounded() -> Progress:
    rows: Counter[str] = Counter()
    end = time.monotonic() + MAX_S

    def hear(name: str, n: int) -> None:
        rows["all"] += n - rows[name]
        rows[name] = n
        if rows["all"] > MAX_ROWS or time.monotonic() > end:
            problem = f"have more than {MAX_ROWS:,} rows, or take longer than {MAX_S:g} s to read."
            raise InputError(
                "files", problem, remedy="Import them in a terminal: assay import FILE"
            )

    return hear
