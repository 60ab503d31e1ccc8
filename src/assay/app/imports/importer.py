"""Import files: find them, recognise their formats, group them, and store their runs.

A run appears only when it is complete.
"""

from __future__ import annotations

import csv
import gc
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from assay.app.imports.assay_files import StoredAssessments, without_own_files
from assay.app.imports.checked_records import checked
from assay.app.imports.discovery import find_sources, recognise_all, sum_up_artifacts
from assay.app.imports.options import (
    PORTION,
    ImportOptions,
    ImportResult,
    Progress,
    ignore_progress,
    paths_of,
)
from assay.app.imports.original_files import OriginalCopies
from assay.app.imports.run_writer import PartlyKnown, RunIdTaken, RunWriter
from assay.domain.digest import JsonValue, text_digest
from assay.domain.errors import AssayError, InputError
from assay.domain.identifiers import RunId
from assay.domain.import_identity import is_poorer
from assay.domain.import_records import FoundTask, Noted, Skipped
from assay.domain.names import name_problem
from assay.exchange.file_groups import FileGroup, group_files
from assay.exchange.importers import ReadOptions, importer_named, role_of
from assay.exchange.parsing.input_files import InputFile, UnreadableFile, input_file
from assay.exchange.parsing.off_scale import WrongScale
from assay.exchange.readers import mapped_columns
from assay.formats.json_lines import mojibake
from assay.scoring.fields import reading_of
from assay.store.imports.import_runs import ImportedMeanwhile
from assay.suites.files import whole_text
from assay.suites.located_yaml import UnreadableText, plain, read_yaml

if TYPE_CHECKING:
    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.domain.extraction import ExtractionSpec
    from assay.store.opening import Store


DAMAGED: Final = (
    *(
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ),
    *(csv.Error, lzma.LZMAError, zipfile.BadZipFile, zlib.error),
)
"""Errors that unexpected file content may cause in a reader; the import of other files continues.
"""


def import_paths(
    workspace: Workspace,
    paths: Sequence[Path],
    options: ImportOptions | None = None,
    *,
    progress: Progress = ignore_progress,
    called: Mapping[Path, str] | None = None,
) -> ImportResult:
    """Import files and folders; the result lists the files and rows that were left out.

    Each results file becomes visible once it is stored completely; if the process is killed, the
    current file is not stored. `called` maps paths to the file names that the user knows. Raises
    `InputError` for a wrong path, format or option.
    """
    options = options or ImportOptions()
    result = ImportResult()
    named = _read_options(options)
    reading = None if options.fields is None else _reading(options.fields)
    importer = None if options.format == "auto" else importer_named(options.format)
    if options.mapping is not None:
        importer = importer_named("map")
    sources = without_own_files(
        list(find_sources(paths, result, importer, called or {})), paths, importer, result.notes
    )
    files = list(recognise_all(sources, importer, result, named, progress))
    # A killed import leaves invisible rows in the state `importing`, which the next import removes.
    workspace.store.imports.sweep()
    groups, rest = group_files(files, named)
    formats = {group.importer.NAME for group in groups}
    groups.sort(key=lambda group: any(is_poorer(group.importer.NAME, form) for form in formats))
    sum_up_artifacts(groups, result)
    names: dict[str, str] = {}
    with _without_collecting():
        for group in groups:
            _import_group(workspace, group, options, result, names, progress, reading)
    # Requests without answers come last, because results in the same import may name their dataset.
    for group in rest:
        if role_of(group.importer) == "input":
            _import_tasks(
                workspace.store, workspace.settings, group, options, result, names, progress
            )
        else:
            _report_only(group, result)
    replaced = {each.run for each in result.replaced}
    result.run_ids = [run for run in result.run_ids if run not in replaced]
    for run in result.run_ids:
        workspace.results.adopt(RunId(run))
    for event in workspace.store.run_removal.events() if replaced else ():
        if event.run_id in replaced and event.stands:
            workspace.results.set_aside(event)
    return result


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Switch off garbage collection, which takes 10% of the time although imported rows contain no
    cycles.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


# --- options --------------------------------------------------------------------------------------


def _read_options(options: ImportOptions) -> ReadOptions:
    beside: dict[str, tuple[InputFile, ...]] = {}
    for role, paths in (("input", paths_of(options.inputs)), ("log", paths_of(options.logs))):
        for path in paths:
            if not path.is_file():
                raise InputError(str(path), "there is no such file.")
        if paths:
            beside[role] = tuple(input_file(path) for path in paths)
    for option in ("run_name", "candidate", "dataset"):
        name = getattr(options, option)
        if problem := name_problem(name or ""):
            raise InputError(f"--{option.replace('_', '-')}", f"is {name!r}, {problem}")
    mapping = None if options.mapping is None else _mapping_of(options.mapping)
    if mapping is not None and (problem := mapped_columns.problem_of(mapping)) is not None:
        raise InputError(
            str(options.mapping), problem, remedy="See docs/how-to/import-results.md for examples."
        )
    return ReadOptions(
        candidate=options.candidate,
        dataset=options.dataset,
        criteria=None if options.criteria is None else _text_of(options.criteria),
        model_info={} if options.model_info is None else _mapping_of(options.model_info),
        mapping=mapping,
        beside=beside,
    )


def _reading(path: str | Path) -> ExtractionSpec:
    """Return the fields to extract from answers and inputs; raises `InputError` with the first
    problem.
    """
    try:
        return reading_of(_mapping_of(path))
    except ValueError as error:
        remedy = "See docs/how-to/import-results.md for an example."
        raise InputError(str(path), str(error).split("\n")[0], remedy=remedy) from error


def _text_of(path: str | Path) -> str:
    """Return the text of an option's file; raises `InputError` if the file is missing, too large,
    binary or not a regular file.
    """
    try:
        return whole_text(Path(path))
    except UnreadableText as error:
        raise InputError(str(path), error.problem, remedy=error.remedy) from error


def _mapping_of(path: str | Path) -> dict[str, JsonValue]:
    text = _text_of(path)
    try:
        document = read_yaml(text)
    except UnreadableText as error:
        where = f"{path}:{error.line}" if error.line else str(path)
        raise InputError(where, error.problem, remedy=error.remedy) from error
    for misuse in document.misuses:
        where = f"{path}:{document.line_of(misuse.path, False)}"
        raise InputError(
            where, f"{'.'.join(map(str, misuse.path))} {misuse.problem}", remedy=misuse.remedy
        )
    content = plain(document.value)
    if not isinstance(content, dict):
        raise InputError(str(path), "must contain a mapping of names to values.")
    return content


# --- one group ------------------------------------------------------------------------------------


def _import_group(
    workspace: Workspace,
    group: FileGroup,
    options: ImportOptions,
    result: ImportResult,
    names: dict[str, str],
    progress: Progress,
    reading: ExtractionSpec | None,
    without: frozenset[int] = frozenset(),
) -> None:
    """Import one group of files, without the responses of the runs in `without`, because the store
    already has them.
    """
    source, importer = group.source, group.importer
    imports = workspace.store.imports
    keeping = OriginalCopies(
        _files_of(group), _folder(workspace.settings), copy=options.copy or options.move
    )
    originals = keeping.originals
    content = originals[0].sha256
    # another file in the folder changes the content
    if companions := group.options.beside.get("companions"):
        content = "\x1f".join(
            sorted(original.sha256 for original in originals)
            + sorted(file.member for file in companions)
        )
    digest = result.digests[source.name] = _digest(group, content, options)
    known = imports.known(digest)
    if known is not None:
        keeping.give_up()
        result.unchanged[source.name] = known
        return
    messages: tuple[list[Any], ...] = (result.held, result.skipped, result.notes, result.replaced)
    before = [len(kind) for kind in messages]

    def start_again(without: frozenset[int]) -> None:
        target.abandon()
        keeping.give_up()
        for kind, length in zip(messages, before, strict=True):
            del kind[length:]
        result.unchanged.pop(source.name, None)
        _import_group(workspace, group, options, result, names, progress, reading, without)

    if (odd := mojibake(source.sample.head)) is not None:
        what = f"its text was decoded with the wrong encoding somewhere ({odd!r}). Assay imported the text unchanged."
        result.notes.append(Noted(where=source.name, what=what))
    suite = _suite(workspace.store, group, options, names)
    writing = RunWriter(
        workspace, group, options, originals, suite, result, progress, reading, without
    )
    target = imports.begin(
        digest=digest, name=source.name, form=importer.NAME, dataset=group.dataset
    )
    try:
        records = importer.read(
            source, replace(group.options, holds=StoredAssessments(workspace.store))
        )
        ids = writing.stream(target, checked(records, source=source.name, suite=suite))
        if not ids:
            target.abandon()
            if writing.rows or len(result.held) > before[0]:
                keeping.give_up()
                return
            why = f"contains no results that can be imported as {importer.NAME}."
            result.skipped.append(Skipped(where=source.name, why=why))
            return
        keeping.finish()
        done = target.finish()
    except PartlyKnown as error:
        start_again(without | {run.run_key for run in error.runs})
        what = f"some of the responses are already in {', '.join(run.id for run in error.runs)} and were left out."
        result.notes.append(Noted(where=source.name, what=what))
        return
    except ImportedMeanwhile:
        start_again(without)
        return
    except (RunIdTaken, WrongScale) as error:
        target.abandon()
        keeping.give_up()
        if isinstance(error, WrongScale):
            del result.skipped[before[1] :]  # one message for each score out of range
        result.skipped.append(
            Skipped(where=error.where, why=f"{error.problem} {error.remedy}".strip())
        )
        return
    except AssayError:
        target.abandon()
        keeping.give_up()
        raise
    except OSError as error:
        target.abandon()
        result.skipped.append(
            Skipped(where=source.name, why=f"cannot be copied: {error.strerror or error}.")
        )
        return
    except DAMAGED as error:
        target.abandon()
        if os.environ.get("ASSAY_DEBUG"):
            raise
        why = f"could not be read as {importer.NAME}: {type(error).__name__}: {error}. Nothing was imported from it."
        result.skipped.append(Skipped(where=source.name, why=why))
        return
    # Ctrl-C must not leave a half-written run either.
    except BaseException:
        target.abandon()
        raise
    result.formats[importer.NAME] = result.formats.get(importer.NAME, 0) + 1
    result.runs += done.runs
    result.tasks += done.tasks
    result.responses += done.responses
    result.assessments += done.assessments
    result.run_ids += ids
    result.copies += [original for original in originals if original.copy is not None]
    if options.move:
        # Only now, after the rows are committed and the copies verified.
        for original in originals:
            original.remove_original()


def _import_tasks(
    store: Store,
    settings: Settings,
    group: FileGroup,
    options: ImportOptions,
    result: ImportResult,
    names: dict[str, str],
    progress: Progress,
) -> None:
    """Store the tasks of requests without answers, for a later import of answers with the same
    dataset.
    """
    from assay.exchange.file_groups import dataset_digest

    imports = store.imports
    source = group.source
    keeping = OriginalCopies([source.path], _folder(settings), copy=options.copy or options.move)
    originals = keeping.originals
    digest = _digest(group, originals[0].sha256, options)
    if imports.known(digest) is not None:
        result.unchanged[source.name] = ()
        return
    try:
        dataset = dataset_digest(source)
    except UnreadableFile as error:
        keeping.give_up()
        result.skipped.append(Skipped(where=error.where, why=error.problem))
        return
    suite = (
        options.dataset or imports.suite_of_dataset(dataset) or names.get(dataset) or source.stem
    )
    names.setdefault(dataset, suite)
    target = imports.begin(
        digest=digest, name=source.name, form=group.importer.NAME, dataset=dataset
    )
    waiting: list[FoundTask] = []
    kept = rows = 0
    for record in checked(group.importer.read(source, group.options), source=source.name):
        if isinstance(record, FoundTask):
            waiting.append(record)
            rows += 1
            if len(waiting) == PORTION:
                kept += target.keep_tasks(suite, waiting)
                waiting.clear()
                progress(source.name, rows)
        elif isinstance(record, Skipped):
            result.skipped.append(record)
    kept += target.keep_tasks(suite, waiting) if waiting else 0
    if not rows:
        result.skipped.append(Skipped(where=source.name, why="holds no requests."))
        return
    keeping.finish()
    target.finish(suite=suite)
    result.tasks += kept
    result.formats[group.importer.NAME] = result.formats.get(group.importer.NAME, 0) + 1
    if options.move:
        originals[0].remove_original()


def _report_only(group: FileGroup, result: ImportResult) -> None:
    """Keep only a file's messages, because the file should complete other results but matches
    none.
    """
    for record in group.importer.read(group.source, group.options):
        if isinstance(record, Noted):
            result.skipped.append(Skipped(where=record.where, why=record.what))
        elif isinstance(record, Skipped):
            result.skipped.append(record)


def _files_of(group: FileGroup) -> list[Path]:
    """Return the files of a group; the results file comes first."""
    beside = chain.from_iterable(
        files for role, files in group.options.beside.items() if role != "shared_input"
    )
    return list(dict.fromkeys([group.source.path, *(file.path for file in beside)]))


def _digest(group: FileGroup, content: str, options: ImportOptions) -> str:
    """Return a digest of content and options, by which a repeated import is recognised."""
    mapping = (
        ""
        if group.options.mapping is None
        # YAML keys may be numbers and values may be dates; JSON has neither.
        else orjson.dumps(
            group.options.mapping, default=str, option=orjson.OPT_NON_STR_KEYS
        ).decode()
    )
    how = [
        group.importer.NAME,
        content,
        group.source.member,
        mapping,
        options.candidate or "",
        options.dataset or "",
    ]
    return text_digest("\x1f".join(how))


def _suite(
    store: Store, group: FileGroup, options: ImportOptions, names: dict[str, str]
) -> str | None:
    """Return the suite name, the same in every import of a dataset; None if the importer chooses
    the name.
    """
    if options.dataset is not None or group.dataset is None:
        return options.dataset
    known = store.imports.suite_of_dataset(group.dataset) or names.get(group.dataset)
    name = known or group.input_stem or group.source.stem
    names.setdefault(group.dataset, name)
    return name


def _folder(settings: Settings) -> Path:
    """Return the folder for original files: next to a SQLite store, otherwise in `.assay` in the
    working folder.
    """
    url = settings.store_url
    if url.startswith("sqlite:///"):
        return Path(url.removeprefix("sqlite:///")).parent / "imports"
    return settings.working_folder / ".assay" / "imports"
