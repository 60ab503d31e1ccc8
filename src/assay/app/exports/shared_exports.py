"""Exports of a server: one is written at a time, and clients that wait for the same one share it.

An export of 100,000 trials reads every row, which takes seconds and 100 MB. Six clients that asked
at once took six times both.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from os import pread
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, Final

from assay.app.exports.exporters import exported_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.app.workspace import Workspace
    from assay.domain.selection import Selection

_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class SharedFile:
    """An export that several clients read at once, each from its beginning.

    The last one to drop it closes the file.
    """

    _file: BinaryIO

    def chunks(self) -> Iterator[bytes]:
        place = 0
        while chunk := pread(self._file.fileno(), _CHUNK, place):
            place += len(chunk)
            yield chunk


class SharedExports:
    """Writes the exports of one server. Thread-safe."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._turn = Lock()  # held while an export is written
        self._lock = Lock()  # protects the dictionary
        self._waiting: dict[tuple[str, Selection], Future[SharedFile]] = {}

    def file(self, form: str, selection: Selection) -> SharedFile:
        """Return an export that was begun after this call, so that it contains every decision made
        before; raises `InputError`.
        """
        key = (form, selection)
        with self._lock:
            export = self._waiting.get(key)
            is_first = export is None
            if export is None:
                export = self._waiting[key] = Future()
        if is_first:
            with self._turn:
                with self._lock:
                    del self._waiting[key]
                self._write(export, form, selection)
        return export.result()

    def _write(self, export: Future[SharedFile], form: str, selection: Selection) -> None:
        try:
            export.set_result(SharedFile(exported_file(self._workspace, form, selection)))
        except BaseException as error:
            export.set_exception(error)
