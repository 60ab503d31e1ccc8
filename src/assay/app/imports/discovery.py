"""Find the files to import and recognise their formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson

from assay.app.imports.options import ImportResult, Progress, ignore_progress
from assay.domain.errors import InputError
from assay.domain.import_records import Noted, Skipped
from assay.exchange.detection import recognise_format
from assay.exchange.file_groups import FileGroup
from assay.exchange.importers import Importer, LeavesArtifacts, ReadOptions
from assay.exchange.parsing.input_files import (
    InputFile,
    UnreadableFile,
    files_in,
    input_file,
    unpacked,
)
from assay.exchange.results_folder.detection import is_exported
from assay.formats.json_lines import file_trouble, mojibake, row_of

_NO_FORMAT: Final = "has no format that Assay recognises. Set one with `--format`, or describe one with `--map FILE`."


_EXPORT: Final = (
    "is an export for other programs, which Assay cannot import. Assay imports tables that `assay export csv` wrote, and "
    "`assay import FOLDER --rebuild` brings whole runs from a results folder."
)


def find_sources(
    paths: Sequence[Path],
    result: ImportResult,
    importer: Importer | None,
    called: Mapping[Path, str],
) -> Iterator[InputFile]:
    def keep(source: InputFile) -> bool:
        """True if a reader processes this archive as a whole, such as an Inspect log."""
        known = recognise_format(source.sample, None if importer is None else (importer,))
        return known is not None and source.sample.archive_members != ()

    seen: set[Path] = set()
    for given in paths:
        if "\0" in str(given) or not given.exists():
            raise InputError(str(given), "there is no such file or folder.")
        files = (
            [(path, str(path)) for path in files_in(given)]
            if given.is_dir()
            else [(given, called.get(given, str(given)))]
        )
        if not files:
            result.skipped.append(Skipped(where=str(given), why="is an empty folder."))
        for path, name in files:
            real = path.resolve()
            if real in seen:
                continue
            seen.add(real)
            try:
                yield from unpacked(input_file(path, name), keep, result.skipped.append)
            except UnreadableFile as error:
                result.skipped.append(
                    Skipped(where=error.where, why=f"{error.problem} {error.remedy}".strip())
                )
            except OSError as error:
                result.skipped.append(
                    Skipped(where=name, why=f"cannot be read: {error.strerror or error}.")
                )


def recognise_all(
    sources: Sequence[InputFile],
    forced: Importer | None,
    result: ImportResult,
    options: ReadOptions,
    progress: Progress = ignore_progress,
) -> Iterator[tuple[InputFile, Importer]]:
    named = {source.path for some in options.beside.values() for source in some}
    for source in sources:
        if source.path in named:
            continue
        progress(source.name, 0)
        try:
            importer = forced or recognise_format(source.sample)
            source.sample.forget_document()
            if importer is not None:
                yield source, importer
                continue
            why = file_trouble(source.sample.head) or _unknown(source)
        except UnreadableFile as error:
            why = error.problem
        result.skipped.append(Skipped(where=source.name, why=why))


def _unknown(source: InputFile) -> str:
    """Return why a file cannot be imported: the error in its JSON, otherwise that no known format
    fits.
    """
    sample = source.sample
    why = _NO_FORMAT
    if is_exported(source):
        return _EXPORT
    first = sample.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if first not in (b"{", b"["):
        return why
    if sample.rows or sample.document is not None:
        odd = mojibake(sample.head)
        return (
            why
            if odd is None
            else f"{why} Its text was decoded with the wrong encoding somewhere ({odd!r})."
        )
    if sample.whole:
        row = row_of(sample.head)
        return row if isinstance(row, str) else why
    if _ends_too_early(source):
        return "is cut off: it ends in the middle of a JSON value. Copy it again."
    line = sample.head.split(b"\n", 1)[0]
    if len(line) == len(sample.head):
        return "is a single line of more than 1 MB that matches no known format."
    row = row_of(line)
    return row if isinstance(row, str) else why


def _ends_too_early(source: InputFile) -> bool:
    """True if a large JSON document breaks off before its end; raises `UnreadableFile` for a file
    that is too large.
    """
    try:
        orjson.loads(source.read())
    except orjson.JSONDecodeError as error:
        return "unexpected end" in error.msg
    return False


def sum_up_artifacts(groups: Sequence[FileGroup], result: ImportResult) -> None:
    """Replace the messages about logs and artifacts in a benchmark program's folders with a single
    note.
    """
    for group in groups:
        left: set[str] = set()
        if not isinstance(group.importer, LeavesArtifacts):
            continue
        companions = group.options.beside.get("companions", ())
        for folder in group.importer.artifact_folders(group.source, companions):
            left |= {
                skip.where
                for skip in result.skipped
                if skip.why == _NO_FORMAT and _lies_in(skip.where, folder)
            }
        if left:
            result.skipped = [skip for skip in result.skipped if skip.where not in left]
            what = f"{len(left):,} other files in the folder are logs and artifacts; Assay did not import them."
            result.notes.append(Noted(where=group.source.name, what=what))


def _lies_in(name: str, folder: str) -> bool:
    """True if the file's name in messages is inside `folder`; an empty folder is the working
    folder.
    """
    return (
        name.replace("#", "/").startswith(f"{folder}/")
        if folder
        else not name.startswith(("/", "../"))
    )
