"""Read the members of a zip archive one at a time, under limits, for formats that spread one
document over many members.

No file is unpacked to disk, so a name cannot lead out of a folder. A member that unpacks to an
unsafe size is refused, whatever size the header states. Python reads Zstandard (method 93) from
3.14 on; earlier versions need the package `zstandard`.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Final, cast

from assay.exchange.parsing.input_files import (
    MAX_PARSED_BYTES,
    InputFile,
    UnreadableFile,
    damage,
    open_zip,
)
from assay.formats.json_size import parsed_bytes

MAX_MEMBER_BYTES: Final = 128 << 20
_FREE_BYTES: Final = 16 << 20
_MAX_RATIO: Final = 1000
# The method's number in PKWARE's APPNOTE; `zipfile` knows it from Python 3.14 on.
_ZSTANDARD: Final = 93
_LOCAL_HEADER: Final = struct.Struct("<4s5H3I2H")
# `S_IFLNK`, in the upper half of the attributes that Unix archives have.
_LINK: Final = 0o120000
_UNREADABLE: Final = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    zlib.error,
    zipfile.BadZipFile,
    struct.error,
)


class UnreadableMember(UnreadableFile):
    """Raised if a member cannot be unpacked, or unpacks to an unsafe size."""


class ZipMembers:
    """The members of a zip archive by name; if a name occurs twice, the later member counts."""

    def __init__(self, source: InputFile, *, most: int) -> None:
        """Open the archive, which may be a member of another archive.

        Raises UnreadableMember if it is damaged, not a zip archive, or has more than `most`
        members.
        """
        self.name = source.name
        with ExitStack() as opening:
            self._stream = opening.enter_context(source.seekable())
            try:
                self._archive = opening.enter_context(open_zip(self._stream, source.name))
            except UnreadableFile as error:
                raise UnreadableMember(error.where, error.problem) from error
            except _UNREADABLE as error:
                raise UnreadableMember(source.name, damage(error)) from error
            infos = self._archive.infolist()
            if len(infos) > most:
                raise UnreadableMember(
                    source.name, f"holds {len(infos):,} files; Assay reads at most {most:,}."
                )
            self._open = opening.pop_all()
        self._infos = {info.filename: info for info in infos if not info.is_dir()}

    def __enter__(self) -> ZipMembers:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __contains__(self, member: str) -> bool:
        return member in self._infos

    @property
    def names(self) -> tuple[str, ...]:
        """Return the members' names, in archive order."""
        return tuple(self._infos)

    def read(self, member: str) -> bytes:
        """Return a member's bytes; raises `UnreadableMember`."""
        info = self._infos[member]
        where = f"{self.name}#{member}"
        if info.external_attr >> 16 & 0o170000 == _LINK:
            raise UnreadableMember(where, "is a symbolic link, which Assay does not follow.")
        if info.flag_bits & 1:
            raise UnreadableMember(where, "is encrypted.")
        most = min(MAX_MEMBER_BYTES, max(_FREE_BYTES, info.compress_size * _MAX_RATIO))
        try:
            content = self._content(info, where, most + 1)
        except _UNREADABLE as error:
            raise UnreadableMember(where, damage(error)) from error
        if len(content) > most:
            raise UnreadableMember(
                where, f"unpacks to more than {most >> 20} MB, more than is safe for its size."
            )
        if parsed_bytes(content, most=MAX_PARSED_BYTES) > MAX_PARSED_BYTES:
            raise UnreadableMember(
                where,
                f"has values that would take more than {MAX_PARSED_BYTES >> 20} MB of memory.",
            )
        return content

    def _content(self, info: zipfile.ZipInfo, where: str, most: int) -> bytes:
        try:
            with self._archive.open(info) as stream:
                return stream.read(most)
        except NotImplementedError:
            if info.compress_type != _ZSTANDARD:
                raise
        content = _zstandard(self._packed(info), where, most)
        # `zipfile` checks the checksum only of data that it unpacks itself; a damaged block may
        # still unpack.
        if len(content) < most and zlib.crc32(content) != info.CRC:
            raise zipfile.BadZipFile("Bad CRC-32")
        return content

    def _packed(self, info: zipfile.ZipInfo) -> bytes:
        self._stream.seek(info.header_offset)
        header = _LOCAL_HEADER.unpack(self._stream.read(_LOCAL_HEADER.size))
        # The lengths of name and extra field in the local header, which may differ from those in
        # the directory.
        self._stream.seek(header[9] + header[10], io.SEEK_CUR)
        return self._stream.read(info.compress_size)


def _zstandard(packed: bytes, where: str, most: int) -> bytes:
    for name, opener in (("compression.zstd", "ZstdFile"), ("zstandard", "ZstdDecompressor")):
        try:
            module: Any = import_module(name)
        except ImportError:
            continue
        file = io.BytesIO(packed)
        try:
            if opener == "ZstdFile":
                return cast("bytes", module.ZstdFile(file).read(most))
            return cast(
                "bytes",
                module.ZstdDecompressor().stream_reader(file, read_across_frames=True).read(most),
            )
        except module.ZstdError as error:
            raise UnreadableMember(where, damage(zipfile.BadZipFile(str(error)))) from error
    raise UnreadableMember(
        where,
        "is packed with Zstandard, which this Python cannot read.",
        remedy="Install `zstandard`, use Python 3.14, or turn the log into JSON with `inspect log convert --to json`.",
    )
