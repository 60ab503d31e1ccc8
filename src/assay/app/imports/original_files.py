"""Copy imported files to a folder next to the store, under names that contain their checksum."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.domain.digest import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalFile:
    """An imported file, its SHA-256, and the path of its copy (None if the user wanted no copy)."""

    path: Path
    sha256: str
    copy: Path | None

    def as_json(self) -> dict[str, JsonValue]:
        """Return the file's entry for the run's provenance, with the file name but not its
        folder.
        """
        return {
            "name": self.path.name,
            "sha256": self.sha256,
            "copy": None if self.copy is None else self.copy.name,
        }

    def remove_original(self) -> None:
        """Delete an original file; raises `InputError` unless the file and its copy still have the
        imported content.
        """
        if self.copy is None or not self.path.exists() or self.copy.samefile(self.path):
            return
        if sha256_of(self.copy) != self.sha256 or sha256_of(self.path) != self.sha256:
            raise InputError(
                str(self.path),
                "differs from its copy, so it was not removed.",
                remedy="Compare the two.",
            )
        self.path.unlink()


class OriginalCopies:
    """Copies the original files during the import; `finish` waits for the copies and verifies
    them.
    """

    def __init__(self, paths: Sequence[Path], folder: Path, *, copy: bool) -> None:
        self.originals: list[OriginalFile] = []
        self._copies: list[Future[None]] = []
        self._threads = ThreadPoolExecutor(1, "assay-copy")
        for path in paths:
            digest = sha256_of(path)
            # The name contains the checksum, so an existing file has the same content and is not
            # copied again.
            target = folder / f"{digest[:16]}-{_safe(path.name)}" if copy else None
            self.originals.append(OriginalFile(path=path, sha256=digest, copy=target))
            if target is not None and not target.exists():
                self._copies.append(self._threads.submit(_copy, path, target, digest))

    def finish(self) -> None:
        """Wait for all copies; raises `InputError` if a copy differs from the imported content, or
        `OSError`.
        """
        for copy in self._copies:
            copy.result()
        self._threads.shutdown()

    def give_up(self) -> None:
        """Cancel copies that have not started, so that no incomplete copy remains."""
        self._threads.shutdown(cancel_futures=True)


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _copy(path: Path, target: Path, digest: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.parent / f".{secrets.token_hex(6)}.partial"
    try:
        shutil.copyfile(path, partial)
        with partial.open("rb+") as copied:
            if hashlib.file_digest(copied, "sha256").hexdigest() != digest:
                raise InputError(
                    str(path),
                    "changed while it was imported.",
                    remedy="Import it again when no program is writing to it.",
                )
            # With `--move`, the original is deleted next, so the copy must be on disk instead of
            # only in a cache.
            os.fsync(copied.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._")[-80:] or "file"
