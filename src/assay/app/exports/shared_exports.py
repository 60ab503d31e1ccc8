"""Exports of a server: each is written once for all clients, until the store changes.

An export of 100,000 trials reads every row, which takes seconds and 100 MB. Six clients that asked
at once took six times both. Written one at a time and for each client anew, beside busy readers of
pages, the last one waited for 79 s. HTML and Markdown show the same statistics, and are written
together.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from os import fstat, pread
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, Final

from cachetools import LRUCache

from assay.app.exports.exporters import exported_file, text_file
from assay.app.exports.reports import written_together
from assay.app.statistics.run_choice import choose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.app.workspace import Workspace
    from assay.domain.identifiers import RunId
    from assay.domain.lifecycle import RunState
    from assay.domain.selection import Selection

KEPT_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of all kept files together, which lie on the disk. A larger export is not kept."""

LEAST_BYTES: Final = 1024 * 1024
"""Size of small files in the count, so that at most `KEPT_BYTES / LEAST_BYTES` files are open."""

_CHUNK: Final = 1 << 16
_REPORTS: Final = ("html", "markdown")
"""Formats that are written together."""


@dataclass(frozen=True, slots=True)
class SharedFile:
    """An export that several clients read at once, each from its beginning.

    The last one to drop it closes the file.
    """

    _file: BinaryIO

    @property
    def size(self) -> int:
        return fstat(self._file.fileno()).st_size

    def chunks(self) -> Iterator[bytes]:
        place = 0
        while chunk := pread(self._file.fileno(), _CHUNK, place):
            place += len(chunk)
            yield chunk


@dataclass(frozen=True, slots=True)
class _State:
    """Everything that an export depends on; equal states give equal exports.

    `runs` contains the state of each chosen run, because no change is stored when the process of a
    run is killed.
    """

    changes: int
    runs: tuple[tuple[RunId, RunState], ...]


@dataclass(frozen=True, slots=True)
class _Begun:
    """The files of an export by format, and the state of the store before it was begun."""

    state: _State
    files: Future[Mapping[str, SharedFile]]


_Key = tuple[tuple[str, ...], "Selection"]


class SharedExports:
    """Writes the exports of one server. Thread-safe."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._turn = Lock()  # held while an export is written
        self._lock = Lock()  # protects the following
        self._waiting: dict[_Key, Future[Mapping[str, SharedFile]]] = {}
        self._begun: dict[_Key, _Begun] = {}
        self._kept: LRUCache[_Key, _Begun] = LRUCache(maxsize=KEPT_BYTES, getsizeof=_size)

    @property
    def kept_bytes(self) -> int:
        """Size of all kept files together."""
        return int(self._kept.currsize)

    def file(self, form: str, selection: Selection) -> SharedFile:
        """Return an export that contains every decision made before this call; raises `InputError`.

        It is an earlier one if nothing has changed since that was begun, and otherwise one that is
        begun after this call.
        """
        forms = _REPORTS if form in _REPORTS else (form,)
        key = (forms, selection)
        state = self._state(selection)
        with self._lock:
            current = self._current(key, state)
            files = self._waiting.get(key) if current is None else current
            is_first = files is None
            if files is None:
                files = self._waiting[key] = Future()
        if is_first:
            with self._turn:
                with self._lock:
                    del self._waiting[key]
                self._write(key, files)
        return files.result()[form]

    def _state(self, selection: Selection) -> _State:
        # Before the runs are chosen: a change in between then makes another state.
        changes = self._workspace.store.changes()
        runs = choose(self._workspace.store, selection).runs
        return _State(changes, tuple((run.id, run.state) for run in runs))

    def _current(self, key: _Key, state: _State) -> Future[Mapping[str, SharedFile]] | None:
        """Return the export that was begun in this state, finished or not; None without one."""
        known = self._begun.get(key) or self._kept.get(key)
        return known.files if known is not None and known.state == state else None

    def _write(self, key: _Key, files: Future[Mapping[str, SharedFile]]) -> None:
        forms, selection = key
        try:
            state = self._state(selection)
            with self._lock:
                current = self._current(key, state)
                if current is None:
                    self._begun[key] = _Begun(state, files)
            written = self._written(forms, selection) if current is None else current.result()
            files.set_result(written)
        except BaseException as error:
            files.set_exception(error)
        with self._lock:
            begun = self._begun.pop(key, None)
            if begun is not None:
                self._keep(key, begun)

    def _written(self, forms: tuple[str, ...], selection: Selection) -> Mapping[str, SharedFile]:
        workspace = self._workspace
        if forms == _REPORTS:
            texts = written_together(workspace.store, workspace.settings, forms, selection)
            return {form: SharedFile(text_file(text)) for form, text in texts.items()}
        return {form: SharedFile(exported_file(workspace, form, selection)) for form in forms}

    def _keep(self, key: _Key, begun: _Begun) -> None:
        # Files of an earlier state are of no use, and take up room.
        changes = begun.state.changes
        for old in [known for known, kept in self._kept.items() if kept.state.changes != changes]:
            del self._kept[old]
        if begun.files.exception() is None and _size(begun) <= KEPT_BYTES:
            self._kept[key] = begun


def _size(begun: _Begun) -> int:
    return sum(max(file.size, LEAST_BYTES) for file in begun.files.result().values())
