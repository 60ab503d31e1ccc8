"""Recognise files that Assay wrote from their content: files of a results folder, and exported
records.

These files belong to runs of a store. Importing them as foreign results would count the results
twice, and would write new files that the next import finds.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from assay.exchange.parsing.input_files import InputFile
from assay.exchange.parsing.json_values import JsonObject
from assay.exchange.results_folder.folder import RECORDS, REGISTRY

_RECORD: Final = b'{"kind":"run","format":'
_LOG: Final = re.compile(rb"run \S+ of [^\n]*, candidate [^\n]*\nstarted \d{4}-\d\d-\d\dT")
_EXPORT: Final = b'{"assay_export": '
_EXPORTED: Final = frozenset({"run_id", "trial", "grades", "counts", "not_counted"})
_ENDINGS: Final = (".jsonl", ".log")


def results_folder_of(source: InputFile) -> str | None:
    """Return the results folder that contains a file, for messages; None if Assay did not write the
    file.
    """
    if not _is_own(source):
        return None
    name = source.name
    if source.member:
        name = f"{name.removesuffix(f'#{source.member}')}/{source.member}"
    elif ".." in PurePosixPath(name).parts or len(PurePosixPath(name).parts) == 1:
        name = str(source.path.resolve())
    place = PurePosixPath(name)
    return str(place.parent if place.name == REGISTRY else place.parent.parent)


def has_records(source: InputFile) -> bool:
    """True if a file's folder, outside an archive, contains run records from which a store can be
    rebuilt.
    """
    if source.member:
        return False
    real = source.path.resolve().parent
    home = real if source.path.name == REGISTRY else real.parent
    return any((home / RECORDS).glob("*.jsonl"))


def is_exported(source: InputFile) -> bool:
    """True if a file is an export of whole assessments (`json`, `jsonl`)."""
    sample = source.sample
    rows = sample.rows
    return sample.head.startswith(_EXPORT) or (
        bool(rows) and all(row.keys() >= _EXPORTED for row in rows)
    )


def _is_own(source: InputFile) -> bool:
    sample = source.sample
    head = sample.head
    if not head:
        return _is_described(source)
    if head.startswith(_RECORD) or _LOG.match(head):
        return True
    if not head.startswith(b"{"):
        return False
    if sample.rows:
        return all(_is_answer(row) for row in sample.rows)
    return _is_description(sample.document) or _is_registry(sample.document)


def _is_answer(row: JsonObject) -> bool:
    about = row.get("assay")
    return "custom_id" in row and isinstance(about, dict) and "task" in about


def _is_described(source: InputFile) -> bool:
    """True if a file is empty because its candidate has no answers yet; its description is in the
    same folder.
    """
    name = source.member or source.path.name
    stem = next((name.removesuffix(ending) for ending in _ENDINGS if name.endswith(ending)), None)
    beside = None if stem is None else source.sibling(f"{PurePosixPath(stem).name}.meta.json")
    return beside is not None and _is_description(beside.sample.document)


def _is_description(document: object) -> bool:
    return (
        isinstance(document, dict)
        and "assay_run" in document
        and isinstance(document.get("execution"), dict)
    )


def _is_registry(document: object) -> bool:
    runs = document.get("runs") if isinstance(document, dict) else None
    return isinstance(runs, list) and any(
        isinstance(run, dict) and "assay_run" in run for run in runs
    )
