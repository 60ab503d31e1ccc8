"""Recognise files that Assay wrote: results folders, and exported tables of runs in the store."""

from __future__ import annotations

import shlex
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from assay.domain.errors import InputError
from assay.domain.import_records import Noted
from assay.exchange.parsing.input_files import InputFile, UnreadableFile
from assay.exchange.readers import score_table
from assay.exchange.results_folder.detection import has_records, results_folder_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.exchange.importers import Importer
    from assay.store.opening import Store


def without_own_files(
    sources: Sequence[InputFile], paths: Sequence[Path], forced: Importer | None, notes: list[Noted]
) -> list[InputFile]:
    """Leave out files in Assay's results folders, except files given with a format; raises
    `InputError` if no file is left.
    """
    named = {path for path in paths if path.is_file()}
    others: list[InputFile] = []
    folders: dict[str, InputFile] = {}
    for source in sources:
        folder = None
        if forced is None or source.path not in named:
            with suppress(UnreadableFile):
                folder = results_folder_of(source)
        if folder is None:
            others.append(source)
        else:
            folders.setdefault(folder, source)
    for folder, source in folders.items():
        if has_records(source):
            remedy = f"`assay import {shlex.quote(folder)} --rebuild` adds the folder's runs to this store."
        elif source.member:
            remedy = (
                "Unpack it and run `assay import FOLDER --rebuild` to add its runs to this store."
            )
        else:
            remedy = "The folder has no run records. To write them, run `assay export results` in the project that has the runs."
        # Other results in such a folder are imported. It is only an error if all paths name its own
        # files.
        if not others and len(named) == len(paths):
            what = f"was written by Assay and belongs to the results folder {folder}, so it is not another program's result."
            raise InputError(source.name, what, remedy=remedy)
        what = f"is a results folder that Assay wrote, so its files were not imported. {remedy}"
        notes.append(Noted(where=folder, what=what))
    return others


class StoredAssessments:
    """Look up an assessment in this store's runs, including imported runs; None for unknown
    runs.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._own: dict[str, frozenset[int] | None] = {}

    def __call__(self, run: str, number: int) -> bool | None:
        if run not in self._own:
            self._own[run] = self._store.imports.assessments_of(run)
        own = self._own[run]
        if own is not None:
            return number in own
        # None instead of False, because a run stored elsewhere may have grades that were never
        # imported.
        return number in self._imported.get(run, ()) or None

    @cached_property
    def _imported(self) -> dict[str, set[int]]:
        numbers: dict[str, set[int]] = {}
        for run in self._store.imports.runs_of_form(score_table.NAME):
            origins = self._store.journal.plan_of(run).environment.get(score_table.FROM_RUNS)
            for origin, text in origins.items() if isinstance(origins, dict) else ():
                numbers.setdefault(origin, set()).update(score_table.numbers_of(str(text)))
        return numbers
