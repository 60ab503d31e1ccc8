"""The files an import was read from, kept beside the store under their checksum."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.domain.digest import JsonValue

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A file that was imported, its SHA-256, and where its copy is; `copy` None when none was wished."""

    path: Path
    sha256: str
    copy: Path | None

    def as_json(self) -> dict[str, JsonValue]:
        """For the run's provenance; without the folder the file lay in."""
        return {"name": self.path.name, "sha256": self.sha256, "copy": None if self.copy is None else self.copy.name}

    def remove_original(self) -> None:
        """Delete the original once its copy, read again from disk, is the same byte for byte; raises `InputError` if not."""
        if self.copy is None or not self.path.exists() or self.copy.samefile(self.path):
            return
        if sha256_of(self.copy) != self.sha256 or sha256_of(self.path) != self.sha256:
            raise InputError(str(self.path), "differs from its copy, so it was not removed.", remedy="Compare the two.")
        self.path.unlink()


def keep_originals(paths: Sequence[Path], folder: Path, *, copy: bool) -> list[Original]:
    """Checksums of files, and copies under `folder`; what is there already is not copied again."""
    return [_kept(path, folder) if copy else Original(path=path, sha256=sha256_of(path), copy=None) for path in paths]


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _kept(path: Path, folder: Path) -> Original:
    digest = sha256_of(path)
    target = folder / f"{digest[:16]}-{_safe(path.name)}"
    if target.exists() and target.stat().st_size == path.stat().st_size:
        return Original(path=path, sha256=digest, copy=target)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{secrets.token_hex(6)}.partial"
    hashed = hashlib.sha256()
    try:
        with path.open("rb") as source, partial.open("xb") as copy:
            while chunk := source.read(_CHUNK):
                hashed.update(chunk)
                copy.write(chunk)
            copy.flush()
            os.fsync(copy.fileno())
        if hashed.hexdigest() != digest:
            raise InputError(str(path), "changed while it was being copied.", remedy="Import it once nobody writes it.")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return Original(path=path, sha256=digest, copy=target)


def _safe(name: str) -> str:
    """A name that is a plain file name everywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._")[-80:] or "file"
