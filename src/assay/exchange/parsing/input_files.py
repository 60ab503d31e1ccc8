"""Files to import: plain files, compressed files and archive members, opened under limits.

No file is unpacked to disk, so a member's name cannot lead out of a folder. The unpacked size is
limited, whatever size the header states. Archives inside archives are opened in memory, to a depth
of `DEEPEST_ARCHIVE`, with at most `MAX_MEMBERS` files over all levels.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final, Protocol, cast

import orjson

from assay.domain.errors import InputError
from assay.domain.import_records import Skipped
from assay.formats.json_lines import rows_of_text
from assay.formats.json_size import parsed_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import WriteableBuffer

    from assay.domain.digest import JsonValue
    from assay.exchange.parsing.json_values import JsonObject


class _ByteStream(Protocol):
    def read(self, size: int, /) -> bytes: ...


HEAD_BYTES: Final = 1 << 20
"""Bytes at the beginning of a file that are read to detect its format."""

MAX_DOCUMENT_BYTES: Final = 128 << 20
"""Maximum bytes of a JSON document that is parsed as a whole."""

MAX_PARSED_BYTES: Final = 320 << 20
"""Maximum bytes of memory for the values of one JSON document.

With the document itself, this stays below 600 MB.
"""

MAX_MEMBERS: Final = 100_000
DEEPEST_ARCHIVE: Final = 3
"""Maximum number of archives nested inside each other; a `.gz` counts as one."""

MAX_UNPACKED_BYTES: Final = 64 << 30

# A file may unpack to 64 MB regardless of its size, and otherwise to 100 times its size: anything
# more is a zip bomb.
_FREE_BYTES: Final = 64 << 20
_MAX_RATIO: Final = 100

_UNREADABLE: Final = (
    *(OSError, EOFError, RuntimeError, ValueError),
    *(zlib.error, zipfile.BadZipFile, tarfile.TarError, struct.error, lzma.LZMAError),
)
_KEPT_BYTES: Final = 32 << 20
_KEPT_SAMPLE: Final = 64 << 10
# tarfile reads a header of whatever length the archive claims, and zipfile reads the whole list of
# members.
_MAX_AT_ONCE: Final = 1 << 20
_MAX_LIST_BYTES: Final = 16 << 20
_ZIP: Final = b"PK\x03\x04"
_GZIP: Final = b"\x1f\x8b"
_CUT: Final = (
    "end-of-stream",
    "unexpected end of data",
    "unexpected end of file",
    "truncated",
    "incomplete",
)


class UnreadableFile(InputError):
    """Raised if a file cannot be opened or unpacked, or exceeds a safe unpacked size."""


_ENDINGS: Final = (
    ".gz",
    ".jsonl",
    ".ndjson",
    ".json",
    ".csv",
    ".tsv",
    ".parquet",
    ".log",
    ".txt",
    ".eval",
    ".yaml",
)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file or archive member that may contain results.

    Attributes:
        path: the file on disk.
        name: name of the file in messages: the path as given, followed by `#member` for an archive
            member.
        member: name within the archive, preceded by the names of inner archives
            (`inner.zip#a.json`); empty for a file on disk.
        packing: `plain`, `gzip`, `zip` (a member) or `tar` (a member).
        container: the inner archive or compressed file that contains this file; None if `path` is
            its only archive.
    """

    path: Path
    name: str
    member: str = ""
    packing: str = "plain"
    most_bytes: int = MAX_UNPACKED_BYTES
    container: InputFile | None = None
    # Holds the sample: the record is frozen, and `cached_property` needs a `__dict__`, which slots
    # omit.
    _sample: dict[str, FileSample] = field(default_factory=dict, repr=False, compare=False)
    _bytes: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    @property
    def stem(self) -> str:
        """Return the name without folders and known suffixes, for display; the name never
        determines the format.
        """
        last = PurePosixPath(self._entry.replace("\\", "/")).name if self.member else self.path.name
        for ending in _ENDINGS:
            last = last.removesuffix(ending)
        return last or "import"

    @property
    def folder(self) -> str:
        """Return the file's folder for messages; for a member, the archive and the member's
        folder.
        """
        if not self.member:
            return str(PurePosixPath(self.name).parent)
        return f"{self.name.removesuffix(self._entry)}{PurePosixPath(self._entry).parent}"

    @property
    def depth(self) -> int:
        """Return the number of archives that contain the file, one inside the other."""
        if self.container is not None:
            return self.container.depth + 1
        return 1 if self.member else 0

    @property
    def _entry(self) -> str:
        return (
            self.member
            if self.container is None
            else self.member.removeprefix(f"{self.container.member}#")
        )

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the unpacked bytes; raises `UnreadableFile`, sometimes only while they are read."""
        try:
            with self._opened() as stream:
                yield stream
        except UnreadableFile:
            raise
        except _UNREADABLE as error:
            raise UnreadableFile(self.name, damage(error)) from error

    @contextmanager
    def seekable(self) -> Iterator[IO[bytes]]:
        """Open the unpacked bytes so that a reader can seek in them, as archives require; raises
        `UnreadableFile`.
        """
        if self.packing == "plain":
            with self.open() as stream:
                yield stream
            return
        content = self._bytes.get("")
        if content is None:
            content = self.read()
            if len(content) <= _KEPT_BYTES:  # the archive's members are opened one by one
                self._bytes[""] = content
        yield io.BytesIO(content)

    @contextmanager
    def _archive(self) -> Iterator[IO[bytes]]:
        if self.container is None:
            with self.path.open("rb") as stream:
                yield stream
        else:
            with self.container.seekable() as stream:
                yield stream

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        match self.packing:
            case "zip":
                with (
                    self._archive() as packed,
                    open_zip(packed, self.name) as archive,
                    archive.open(self._entry) as stream,
                ):
                    yield self._bounded(stream, archive.getinfo(self._entry).compress_size)
            case "tar":
                with self._archive() as packed, _open_tar(packed, self.name) as tar:
                    member = tar.extractfile(self._entry)
                    if member is None:
                        raise UnreadableFile(self.name, "is not a file.")
                    with member:
                        yield self._bounded(member, _length(packed))
            case "gzip":
                with self._archive() as packed, gzip.open(packed) as stream:
                    yield self._bounded(stream, _length(packed))
            case _:
                with self.path.open("rb", buffering=1 << 20) as stream:
                    yield stream

    def _bounded(self, stream: _ByteStream, packed: int) -> IO[bytes]:
        most = min(self.most_bytes, max(_FREE_BYTES, packed * _MAX_RATIO))
        return io.BufferedReader(_Bounded(stream, most, self.name), 1 << 18)

    def read(self, *, most: int = MAX_DOCUMENT_BYTES) -> bytes:
        """Read the whole file, for formats that consist of one document.

        Raises UnreadableFile for more than `most` bytes, or if JSON values would take more than
        `MAX_PARSED_BYTES`.
        """
        with self.open() as stream:
            # One byte more than allowed, because the size in a header may be wrong on purpose.
            content = stream.read(most + 1)
        if len(content) > most:
            raise UnreadableFile(
                self.name,
                f"is one document of more than {most >> 20} MB, the most that Assay reads at once.",
            )
        if parsed_bytes(
            content, most=MAX_PARSED_BYTES
        ) > MAX_PARSED_BYTES and not content.startswith((_ZIP, _GZIP)):
            raise UnreadableFile(
                self.name,
                f"is one document whose values would take more than {MAX_PARSED_BYTES >> 20} MB of memory.",
                remedy="Split it, or save it as JSON Lines.",
            )
        return content

    @property
    def sample(self) -> FileSample:
        """Return the beginning of the file, which is read only once."""
        sample = self._sample.get("")
        if sample is None:
            sample = self._sample[""] = FileSample(self)
        return sample

    def sibling(self, name: str) -> InputFile | None:
        """Return a file in the same folder or archive by its relative name (without `..`); None if
        it does not exist.
        """
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts or "\0" in name:
            return None
        if self.packing in ("zip", "tar"):
            entry = str(PurePosixPath(self._entry).parent / relative)
            archive = self.container or InputFile(self.path, self._archive_name)
            return next((file for file in _entries(archive) if file._entry == entry), None)
        path = self.path.parent / relative
        if not path.is_file() or path.is_symlink():
            return None
        return input_file(path, str(PurePosixPath(self.name).parent / relative))

    @property
    def _archive_name(self) -> str:
        return self.name.removesuffix(f"#{self.member}")


class _Bounded(io.RawIOBase):
    """A stream that raises an error if more bytes are unpacked than is safe."""

    def __init__(self, stream: _ByteStream, most: int, name: str) -> None:
        self._stream = stream
        self._left = most
        self._most = most
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        buffer = memoryview(buffer)
        piece = self._stream.read(min(len(buffer), _MAX_AT_ONCE))
        self._left -= len(piece)
        if self._left < 0:
            raise UnreadableFile(
                self._name,
                f"unpacks to more than {self._most >> 20} MB, far more than its size allows.",
                remedy="If that is intended, unpack it and import the file.",
            )
        buffer[: len(piece)] = piece
        return len(piece)


class FileSample:
    """The beginning of a file; it is parsed once, when first needed."""

    def __init__(self, source: InputFile) -> None:
        self.source = source

    @cached_property
    def head(self) -> bytes:
        """Return the first megabyte, unpacked."""
        with self.source.open() as stream:
            return stream.read(HEAD_BYTES)

    @property
    def whole(self) -> bool:
        return len(self.head) < HEAD_BYTES

    @cached_property
    def text(self) -> str:
        """Return `head` as text without a byte order mark; bytes that are not UTF-8 become
        U+FFFD.
        """
        return self.head.decode("utf-8-sig", "replace")

    @cached_property
    def rows(self) -> tuple[JsonObject, ...]:
        """Return the JSON objects on the first 200 lines; empty if the file is not JSON Lines.

        Other lines are skipped, so that a damaged line does not hide the format.
        """
        return rows_of_text(self.head, whole=self.whole, most=200)

    @cached_property
    def document(self) -> JsonValue:
        """Return the file as parsed JSON; None if it is too large or not a single JSON document."""
        if self.whole:
            content = self.head
        else:
            # The three bytes are a byte order mark, which programs on Windows write.
            if self.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
                return None
            first, _, rest = self.head.lstrip().partition(b"\n")
            if first.rstrip().endswith(b"}") and rest.lstrip()[:1] == b"{":
                return None  # JSON Lines
            try:
                content = self.source.read()
            except UnreadableFile:
                return None
        try:
            document: JsonValue = orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))
        except orjson.JSONDecodeError:
            return None
        return document

    def forget_document(self) -> None:
        """Drop the parsed document after format detection, so that a folder of large documents does
        not fill the memory.
        """
        if len(self.head) > _KEPT_SAMPLE:
            self.__dict__.pop("document", None)

    @cached_property
    def archive_members(self) -> tuple[str, ...]:
        """Return the member names of a zip archive; empty for any other file."""
        if not self.head.startswith(_ZIP):
            return ()
        try:
            with self.source.seekable() as stream, open_zip(stream, self.source.name) as archive:
                return tuple(archive.namelist())
        except _UNREADABLE as error:
            raise UnreadableFile(self.source.name, damage(error)) from error


def input_file(path: Path, name: str | None = None) -> InputFile:
    """Return a file on disk as an `InputFile`, and detect gzip by its first bytes.

    `archive_members` opens archives.

    Raises UnreadableFile for a pipe or device, which may never end.
    """
    if path.exists() and not path.is_file():
        raise UnreadableFile(
            name or str(path), "is not a regular file.", remedy="Save its content as a file."
        )
    with path.open("rb") as stream:
        magic = stream.read(2)
    # Every gzip file begins with these two bytes (RFC 1952).
    return InputFile(path, name or str(path), packing="gzip" if magic == _GZIP else "plain")


def is_archive(source: InputFile) -> bool:
    """True if the content of a file is a zip or tar archive."""
    if source.depth == 0 and not source.path.is_file():
        return False
    try:
        if source.sample.head.startswith(_ZIP):
            return True
    except InputError:
        return False
    # with other bytes before its first member
    if source.packing == "plain" and zipfile.is_zipfile(source.path):
        return True
    return _is_tar(source)


def archive_members(path: Path, name: str) -> Iterator[InputFile]:
    """Yield the files in an archive on disk, in archive order, without folders, links and devices.

    Raises UnreadableFile if the archive is damaged or has too many members.
    """
    yield from _entries(input_file(path, name))


def unpacked(
    source: InputFile, keep: Callable[[InputFile], bool], skip: Callable[[Skipped], None]
) -> Iterator[InputFile]:
    """Yield the files in an archive and its inner archives, or the file itself if it is not an
    archive.

    `keep`: True if a reader reads an archive as a whole. `skip`: receives a message for each
    archive that is damaged, nested too deeply or too large; the remaining archives are still read.
    """
    left = [MAX_MEMBERS]
    yield from _unpacked(source, keep, skip, left)


def _unpacked(
    source: InputFile,
    keep: Callable[[InputFile], bool],
    skip: Callable[[Skipped], None],
    left: list[int],
) -> Iterator[InputFile]:
    try:
        if not is_archive(source) or keep(source):
            yield source
            return
        if source.depth >= DEEPEST_ARCHIVE:
            why = f"is nested in {source.depth} archives; Assay opens {DEEPEST_ARCHIVE} levels. Unpack it, then import it."
            skip(Skipped(where=source.name, why=why))
            return
        entries = list(_entries(source))
        if not entries:
            skip(Skipped(where=source.name, why="is an archive without files."))
        for entry in entries:
            left[0] -= 1
            if left[0] < 0:
                skip(
                    Skipped(
                        where=source.name,
                        why=f"and the archives in it hold more than {MAX_MEMBERS:,} files.",
                    )
                )
                return
            yield from _unpacked(_gunzipped(entry), keep, skip, left)
    except UnreadableFile as error:
        skip(Skipped(where=error.where, why=error.problem))


def _gunzipped(entry: InputFile) -> InputFile:
    try:
        if not entry.sample.head.startswith(_GZIP):
            return entry
    except UnreadableFile:
        return entry  # reported when the member is read
    return replace(entry, packing="gzip", container=entry, _sample={}, _bytes={})


def _entries(source: InputFile) -> Iterator[InputFile]:
    """Yield the files directly in an archive; raises `UnreadableFile`."""
    # an archive on disk is opened by its path, whatever its size
    container = None if source.depth == 0 else source
    files: list[tuple[str, str]] = []
    try:
        with source.seekable() if container is not None else source.path.open("rb") as stream:
            if not _is_tar(source):
                with open_zip(stream, source.name) as archive:
                    files = [
                        (info.filename, "zip") for info in archive.infolist() if not info.is_dir()
                    ]
            else:
                with _open_tar(stream, source.name) as tar:
                    # One entry at a time: a list of all members would be read in full before it
                    # could be found too long.
                    for entry in tar:
                        if entry.isfile():
                            files.append((entry.name, "tar"))
                        if len(files) > MAX_MEMBERS:
                            break
    except UnreadableFile:
        raise
    except _UNREADABLE as error:
        raise UnreadableFile(source.name, damage(error)) from error
    if len(files) > MAX_MEMBERS:
        raise UnreadableFile(source.name, f"holds more than {MAX_MEMBERS:,} files.")
    for member, packing in files:
        chain = f"{source.member}#{member}" if source.member else member
        yield InputFile(
            source.path,
            f"{source.name}#{member}",
            member=chain,
            packing=packing,
            container=container,
        )


class _Piecewise(io.RawIOBase):
    """A stream over an archive that refuses reads and positions beyond those of a genuine
    archive.
    """

    def __init__(self, stream: IO[bytes], name: str, *, most: int) -> None:
        self._stream = stream
        self._name = name
        self._most = most

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _MAX_AT_ONCE:
            raise UnreadableFile(
                self._name, f"is damaged: it has a header of more than {_MAX_AT_ONCE >> 20} MB."
            )
        return self._stream.read(size)

    def seek(self, place: int, whence: int = io.SEEK_SET, /) -> int:
        if place > self._most:
            raise UnreadableFile(
                self._name,
                f"unpacks to more than {self._most >> 20} MB, far more than its size allows.",
            )
        return self._stream.seek(place, whence)

    def tell(self) -> int:
        return self._stream.tell()


def _open_tar(stream: IO[bytes], name: str) -> tarfile.TarFile:
    """Open a tar archive, gzipped or not, without trusting the lengths in the archive's headers."""
    length = _length(stream)
    most = min(MAX_UNPACKED_BYTES, max(_FREE_BYTES, length * _MAX_RATIO))
    magic = stream.read(2)
    stream.seek(0)
    plain = cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if magic == _GZIP else stream
    return tarfile.open(fileobj=cast("IO[bytes]", _Piecewise(plain, name, most=most)), mode="r:")


def open_zip(stream: IO[bytes], name: str) -> zipfile.ZipFile:
    """Open a zip archive; raises `UnreadableFile` if its member list would fill the memory."""
    # Not in the module's documentation, but the only way to learn the length of the list before
    # reading it.
    end = getattr(zipfile, "_EndRecData", lambda _: None)(stream)
    if end is not None and end[5] > _MAX_LIST_BYTES:
        raise UnreadableFile(name, f"holds more than {MAX_MEMBERS:,} files.")
    return zipfile.ZipFile(stream)


def _length(stream: IO[bytes]) -> int:
    place = stream.tell()
    length = stream.seek(0, io.SEEK_END)
    stream.seek(place)
    return length


def damage(error: BaseException) -> str:
    """Describe, in one sentence, why a file or archive cannot be read."""
    reason = read_failure(error)
    # it begins like a zip archive, but the list of members at the end is missing
    if "not a zip file" in reason:
        return "is a zip archive that is cut off: its end is missing. Copy it again."
    if isinstance(error, EOFError) or any(sign in reason.lower() for sign in _CUT):
        return "is cut off: it ends too early. Copy it again."
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {reason}."
    return f"is damaged: {reason}. Copy it again."


def _is_tar(source: InputFile) -> bool:
    try:
        with source.open() as stream:
            head = stream.read(512)
    except InputError:
        return False
    # POSIX tar has its magic at byte 257.
    return len(head) == 512 and head[257:262] == b"ustar"


def files_in(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, sorted, without hidden files and without following links."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in sorted(files):
            path = Path(place) / file
            if not file.startswith(".") and not path.is_symlink() and path.is_file():
                yield path


def read_failure(error: BaseException) -> str:
    """Return the system's or library's error message without a full stop."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error) or type(error).__name__).rstrip(".")
