"""Reads text files and images to which a suite refers, only within the allowed folders, and records
their digests.
"""

from __future__ import annotations

import base64
import codecs
import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path as FilePath
from typing import Final

from assay.domain.digest import digest, text_digest
from assay.domain.suite import Image
from assay.suites.located_yaml import UnreadableText, shown
from assay.suites.problems import Path, Problems

LARGEST_FILE: Final = 256 * 2**20
"""Maximum bytes of a file that is read at once."""

LARGEST_FOLDER: Final = 64 * 2**20
MAX_FILES: Final = 1000
"""Maximum bytes and files in a folder that is given as a snippet; a larger folder is most likely a
wrong path.
"""

LARGEST_IMAGE: Final = 4 * 2**20
_PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)
_LFS = b"version https://git-lfs.github.com/spec/"

SIGNATURES: Final = (
    b"%PDF",
    b"\x89PNG",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\x7fELF",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PAR1",
)
"""First bytes of binary files that people often give by mistake, by their kind."""

BINARY: Final = "is a binary file, expected text."


def whole_text(path: FilePath) -> str:
    """Return the text of a file without its byte-order mark; UTF-16 with such a mark is also
    accepted.

    Raises UnreadableText if the file does not exist, or is a folder, too large, binary, or not
    UTF-8.
    """
    try:
        if path.is_dir():
            raise UnreadableText(None, "is a folder, expected a file.")
        if not path.exists():
            raise UnreadableText(None, "does not exist.", _neighbour(path))
        if not path.is_file():
            raise UnreadableText(None, "is not a regular file.")
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise UnreadableText(
                None,
                f"has {size / 2**20:,.0f} MB, more than the {LARGEST_FILE / 2**20:,.0f} MB that Assay reads at once.",
                "Keep many tasks in a JSONL file and refer to it with `tasks: {file: ...}`, which is read line by line.",
            )
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableText(
            None, f"cannot be read: {(error.strerror or str(error)).lower()}."
        ) from error
    except ValueError as error:  # a path with a NUL character
        raise UnreadableText(None, "is not a path: it holds a NUL character.") from error
    return decoded(data)


def unreadable(path: FilePath) -> str | None:
    """Return why a file cannot be read line by line, or None."""
    try:
        if path.is_dir():
            return "is a folder"
        if not path.exists():
            return "does not exist"
        if not path.is_file():
            return "is not a regular file"
        with path.open("rb"):
            return None
    except OSError as error:
        return f"cannot be read: {(error.strerror or str(error)).lower()}"
    except ValueError:  # a path with a NUL character
        return "is not a path: it holds a NUL character"


def decoded(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 with a byte-order mark; raises UnreadableText for any other
    encoding.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise UnreadableText(
                None, "starts like UTF-16 text but is not valid.", "Save it as UTF-8."
            ) from error
    if data.startswith(_LFS):
        raise UnreadableText(
            None, "is a Git LFS pointer, not the file itself.", "Fetch it with `git lfs pull`."
        )
    if data.startswith(SIGNATURES) or b"\0" in data:
        raise UnreadableText(None, BINARY)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        raise UnreadableText(
            line,
            f"is not UTF-8 text: byte 0x{byte:02x} at offset {error.start}.",
            "Save it as UTF-8.",
        ) from error


def _neighbour(path: FilePath) -> str:
    """Return a hint about a file with a similar name in the same folder, or an empty text."""
    try:
        names = {entry.name for entry in os.scandir(path.parent)}
    except OSError:
        return ""
    near = {FilePath(name).stem: name for name in sorted(names)}
    stems = get_close_matches(path.stem, list(near), n=1, cutoff=0.7)
    return f"Did you mean {near[stems[0]]!r}?" if stems else ""


class NamedFiles:
    """Reads files relative to the suite's folder, and records the digest of every file that it
    reads.
    """

    def __init__(
        self,
        folder: FilePath,
        *,
        also: Iterable[FilePath] = (),
        texts: Mapping[str, str] | None = None,
        owner: str = "suite",
    ) -> None:
        """Read only below `folder` and `also`, because contents are sent to models.

        `texts`: texts of files in memory, by name. `owner`: the file that refers to the others, for
        messages.
        """
        self._owner = owner
        self._texts = texts or {}
        self.folder = folder
        self._roots = [_resolved(root) for root in (folder, *also)]
        self._digests: dict[str, str] = {}

    def within(self, named: str, path: Path, problems: Problems) -> bool:
        """True if a suite may use this file; reports at `path` a file that is hidden or outside the
        folders, even by a link.
        """
        try:
            place = _resolved(self.folder / named)
        except (
            OSError,
            ValueError,
        ):  # too long, or with a NUL character; the function that reads it reports this
            return True
        inside = [place.relative_to(root) for root in self._roots if place.is_relative_to(root)]
        if any(not _hidden(within) for within in inside):
            return True
        if inside:
            problems.report(
                path,
                f"names {shown(named)}, which is hidden; such files often hold keys, and it would be sent to models.",
                "Copy it to a name without a leading dot, or list its folder under `read_from` in assay.yaml.",
            )
            return False
        problems.report(
            path,
            f"names {shown(named)}, which lies outside the {self._owner}'s folder and the project's, and would be sent to models.",
            "Copy it there, or add its folder to ASSAY_READ_FROM.",
        )
        return False

    def text(self, named: str, path: Path, problems: Problems) -> str | None:
        if named in self._texts:
            self.record(named, text_digest(self._texts[named]))
            return self._texts[named]
        if not self.within(named, path, problems):
            return None
        try:
            content = whole_text(self.folder / named)
        except UnreadableText as error:
            line = f" (line {error.line})" if error.line else ""
            problems.report(
                path,
                f"names {named!r}, which {error.problem.rstrip('.')}{line}.",
                error.remedy or self._hint(),
            )
            return None
        self.record(named, text_digest(content))
        return content

    def image(self, named: str, path: Path, problems: Problems) -> Image | None:
        if not self.within(named, path, problems):
            return None
        try:
            data = (self.folder / named).read_bytes()
        except (OSError, ValueError) as error:
            why = (
                (error.strerror or str(error)).lower()
                if isinstance(error, OSError)
                else "it holds a NUL character"
            )
            problems.report(path, f"names {named!r}, which cannot be read: {why}.", self._hint())
            return None
        kind = next((kind for start, kind in _PICTURES if data.startswith(start)), None)
        if kind == "image/webp" and data[8:12] != b"WEBP":
            kind = None
        if kind is None or len(data) > LARGEST_IMAGE:
            what = (
                "is not a PNG, JPEG, GIF or WebP"
                if kind is None
                else f"has more than {LARGEST_IMAGE / 2**20:.0f} MB"
            )
            problems.report(path, f"names {named!r}, which {what}.")
            return None
        encoded = base64.b64encode(data).decode("ascii")
        self.record(named, text_digest(encoded))
        return Image(media_type=kind, data=encoded)

    def record(self, named: str, content_digest: str) -> None:
        self._digests[named] = content_digest

    def folder_texts(
        self, named: str, path: Path, problems: Problems
    ) -> list[tuple[str, str]] | None:
        """Return the text files below a folder as (path within it, content), sorted, without hidden
        files and caches.
        """
        if not self.within(named, path, problems):
            return None
        root = self.folder / named
        try:
            is_folder = root.is_dir()
        except (OSError, ValueError):  # too long, or with a NUL character
            is_folder = False
        if not is_folder:
            problems.report(path, f"names {shown(named)}, which is not a folder.", self._hint())
            return None
        inner = _below(root)
        if not inner:
            problems.report(path, f"names {named!r}, which holds no files.")
            return None
        if len(inner) > MAX_FILES:
            problems.report(
                path,
                f"names {named!r}, which holds more than {MAX_FILES:,} files.",
                "Name the files themselves.",
            )
            return None
        texts = []
        size = 0
        for name in inner:
            content = self.text(f"{named.rstrip('/')}/{name}", path, problems)
            if content is None:
                return None
            size += len(content)
            if size > LARGEST_FOLDER:
                limit = f"{LARGEST_FOLDER / 2**20:,.0f} MB"
                problems.report(
                    path,
                    f"names {named!r}, which holds more than {limit}.",
                    "Name the files themselves.",
                )
                return None
            texts.append((name, content))
        return texts

    def digest(self, text: str) -> str:
        return digest(
            [text_digest(text), [[name, self._digests[name]] for name in sorted(self._digests)]]
        )

    def _hint(self) -> str:
        return (
            f"Paths are relative to the {self._owner}'s folder ({self.folder})."
            if str(self.folder) != "."
            else ""
        )


def _resolved(path: FilePath) -> FilePath:
    try:
        return path.resolve()
    except RuntimeError as error:  # a link that leads to itself
        raise OSError(str(error)) from error


def _hidden(within: FilePath) -> bool:
    return any(part.startswith(".") for part in within.parts)


def _below(root: FilePath) -> list[str]:
    """Return the sorted paths of the files below a folder; stops shortly after MAX_FILES."""
    paths: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name != "__pycache__"
        )
        inner = FilePath(folder).relative_to(root)
        paths.extend((inner / name).as_posix() for name in names if not name.startswith("."))
        if len(paths) > MAX_FILES:
            break
    return sorted(paths)
