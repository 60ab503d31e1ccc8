"""Write files atomically: a file is written without a name, forced to disk, and only then gets its
name.

On Linux the file has no name at all until it is complete, so a killed process leaves nothing. Where
the system or the file system cannot do that, it leaves at most a hidden `.NAME.….part` next to the
target, which no reader mistakes for the file. An existing file is replaced only with `force`. Races
are safe too: a file gets its name by a hard link, which the system refuses if the name exists.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from assay.domain.errors import InputError, Refused

_NAMELESS: Final[int | None] = getattr(os, "O_TMPFILE", None)
_OPEN_FILES: Final = "/proc/self/fd"
_CANNOT: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT})
"""Errors of kernels and file systems that know no files without a name."""


class AtomicFile:
    """A file being written, for use in a `with` statement: it gets its name at the end; an
    exception removes it.

    `path`: the final path. `force`: replace an existing file. `lasting`: make the name survive a
    power failure, which takes time and is unnecessary for files that can be recreated.

    Raises:
        InputError: The folder does not exist or cannot be written.
        Refused: The file exists, and `force` is off.
    """

    def __init__(self, path: Path, *, force: bool = False, lasting: bool = True) -> None:
        self.path = path
        self._force = force
        self._lasting = lasting
        # a device or a pipe is written directly
        self._special = path.exists() and not path.is_file()
        if path.is_dir():
            raise InputError(str(path), "is a folder.", remedy="Choose a file.")
        if not path.parent.is_dir():
            raise InputError(
                str(path),
                f"there is no folder {str(path.parent)!r}.",
                remedy="Create it, or choose another.",
            )
        if not force and not self._special and os.path.lexists(path):
            raise taken(path)
        # In the same folder, because a rename is atomic only within one file system.
        self.beside = path if self._special else part_of(path)
        self._file: IO[bytes] | None = None
        self._nameless = False

    def __enter__(self) -> Self:
        try:
            descriptor = None if self._special else _without_name(self.path.parent)
            self._nameless = descriptor is not None
            if descriptor is not None:
                self._file = os.fdopen(descriptor, "wb")
            else:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        file = self.file
        if kind is not None or self._special:
            file.close()
            if not self._special:
                self.beside.unlink(missing_ok=True)
            return
        try:
            file.flush()
            # Before the file gets its name: after a power failure, the name must not belong to an
            # empty file.
            os.fsync(file.fileno())
            if self._nameless:
                self._link(file.fileno())
            file.close()
            if not self._nameless or self._force:
                give_name(self.beside, self.path, force=self._force)
            if self._lasting:
                force_folder(self.path.parent)
        except OSError as failure:
            raise InputError(str(self.path), f"cannot be written: {failure.strerror}.") from failure
        finally:
            file.close()
            self.beside.unlink(missing_ok=True)

    def _link(self, descriptor: int) -> None:
        """Name the file: the final name, or with `force` a hidden one, because a link replaces
        nothing.
        """
        try:
            # With `src_dir_fd`, Python follows the link in /proc; without it, it would link that
            # link.
            os.link(
                f"{_OPEN_FILES}/{descriptor}",
                self.beside if self._force else self.path,
                src_dir_fd=descriptor,
            )
        except FileExistsError as error:
            raise taken(self.path) from error


def part_of(path: Path) -> Path:
    """Return a new hidden name next to a file, for its unfinished content."""
    return path.parent / f".{path.name[:100]}.{secrets.token_hex(4)}.part"


def give_name(part: Path, path: Path, *, force: bool = False) -> None:
    """Give a complete file its name; raises `Refused` if another file has it, unless `force`
    replaces that.
    """
    if force:
        part.replace(path)
        return
    try:
        os.link(part, path)
    except FileExistsError as error:
        raise taken(path) from error
    except OSError:  # the file system has no links
        if os.path.lexists(path):
            raise taken(path) from None
        part.replace(path)
    else:
        part.unlink(missing_ok=True)


def _without_name(folder: Path) -> int | None:
    """Open a file without a name in a folder; None if the system cannot do that."""
    if _NAMELESS is None or not os.path.isdir(_OPEN_FILES):
        return None
    try:
        return os.open(folder, _NAMELESS | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in _CANNOT:
            return None
        raise


def taken(path: Path) -> Refused:
    return Refused(
        str(path), "exists already.", remedy="Choose another file, or use --force to replace it."
    )


def write_atomically(path: Path, text: str, *, lasting: bool = True) -> None:
    """Replace a file's content atomically."""
    with AtomicFile(path, force=True, lasting=lasting) as file:
        file.write(text)


def force_folder(folder: Path) -> None:
    """Force a folder's entries to disk, if the system allows it, so that new names survive a power
    failure.
    """
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
