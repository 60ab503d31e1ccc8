"""Write files atomically: a file is written under a temporary name, forced to disk, and only then renamed.

A killed process leaves at most a hidden `.NAME.….part` next to the target, which no reader mistakes for the file. An existing
file is replaced only with `force`. Races are safe too: a file gets its name by a hard link, which the system refuses if the
name exists.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from assay.domain.errors import InputError, Refused


class AtomicFile:
    """A file being written, for use in a `with` statement: it gets its name at the end; an exception removes it.

    `path`: the final path. `force`: replace an existing file. `lasting`: make the name survive a power failure, which takes
    time and is unnecessary for files that can be recreated.

    Raises:
        InputError: The folder does not exist or cannot be written.
        Refused: The file exists, and `force` is off.
    """

    def __init__(self, path: Path, *, force: bool = False, lasting: bool = True) -> None:
        self.path = path
        self._force = force
        self._lasting = lasting
        self._special = path.exists() and not path.is_file()  # a device or a pipe is written directly
        if path.is_dir():
            raise InputError(str(path), "is a folder.", remedy="Choose a file.")
        if not path.parent.is_dir():
            raise InputError(str(path), f"there is no folder {str(path.parent)!r}.", remedy="Create it, or choose another.")
        if not force and not self._special and os.path.lexists(path):
            raise taken(path)
        # In the same folder, because a rename is atomic only within one file system.
        self.beside = path if self._special else path.parent / f".{path.name[:100]}.{secrets.token_hex(4)}.part"
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._file = self.beside.open("wb" if self._special else "xb")
        except OSError as error:
            raise InputError(str(self.path), f"cannot be written: {error.strerror}.") from error
        return self

    @property
    def file(self) -> IO[bytes]:
        """Return the open file, for writers that need a file object."""
        if self._file is None:
            raise ValueError("the file is not open")
        return self._file

    def write(self, text: str) -> None:
        """Add text as UTF-8; a lone surrogate, which UTF-8 cannot hold, is written as `\\udc80`."""
        try:
            self.file.write(text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise InputError(str(self.path), f"cannot be written: {error.strerror}.") from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        file = self.file
        if kind is not None or self._special:
            file.close()
            if not self._special:
                self.beside.unlink(missing_ok=True)
            return
        try:
            file.flush()
            # Before the file gets its name: after a power failure, the name must not belong to an empty file.
            os.fsync(file.fileno())
            file.close()
            self._name()
            if self._lasting:
                _force_folder(self.path.parent)
        except OSError as failure:
            raise InputError(str(self.path), f"cannot be written: {failure.strerror}.") from failure
        finally:
            file.close()
            self.beside.unlink(missing_ok=True)

    def _name(self) -> None:
        if self._force:
            self.beside.replace(self.path)
            return
        try:
            os.link(self.beside, self.path)
        except FileExistsError as error:
            raise taken(self.path) from error
        except OSError:  # the file system has no links
            if os.path.lexists(self.path):
                raise taken(self.path) from None
            self.beside.replace(self.path)


def taken(path: Path) -> Refused:
    return Refused(str(path), "exists already.", remedy="Choose another file, or use --force to replace it.")


def write_atomically(path: Path, text: str, *, lasting: bool = True) -> None:
    """Replace a file's content atomically."""
    with AtomicFile(path, force=True, lasting=lasting) as file:
        file.write(text)


def _force_folder(folder: Path) -> None:
    """Force a folder's entries to disk, if the system allows it, so that new names survive a power failure."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
