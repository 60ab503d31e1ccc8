"""Copy a fixture and compare two folders, without following links that an agent may have
created.
"""

from __future__ import annotations

import difflib
import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Final

from assay.domain.digest import bytes_digest, file_digest

IGNORED: Final = frozenset(
    {
        "node_modules",
        ".git",
        ".turbo",
        "dist",
        ".nx",
        ".pnpm-store",
        "__pycache__",
        ".venv",
        ".pytest_cache",
    }
)
"""Folders that are neither copied, compared nor kept, because they can be rebuilt."""

COMPILED: Final = (".pyc", ".pyo")
"""Endings of files that are treated like `IGNORED` folders: Python may run them in place of the
source beside them.
"""

LARGEST_FILE: Final = 256 << 10
"""Maximum bytes of a file whose content is stored and compared; for larger files, only sizes are
compared.
"""

LARGEST_DIFF: Final = 400_000
LARGEST_SNAPSHOT: Final = 64 << 20
"""Maximum characters of text that a snapshot holds; further files are compared by their digests."""
MAX_COMPARISONS: Final = 25_000_000
"""Maximum product of two files' line counts for a comparison by line; the time grows with it."""
MAX_PATHS: Final = 5_000


def copy_fixture(
    source: Path, target: Path, *, without: Collection[str] = ()
) -> tuple[dict[str, str], Snapshot]:
    """Copy the files and links of a fixture without the `IGNORED` folders; return the digest of
    each file, and a snapshot.

    The files in `without` are digested, but not copied. Times and extended attributes are left out,
    because `shutil.copytree` takes twice as long.
    """
    digests: dict[str, str] = {}
    snapshot = Snapshot()
    folder = ""
    for path, facts in walk(source):
        place = f"{target}/{path}"
        if path in without:
            if stat.S_ISREG(facts.st_mode):
                digests[path] = bytes_digest((source / path).read_bytes())
            continue
        if (parent := os.path.dirname(place)) != folder:
            os.makedirs(parent, exist_ok=True)
            folder = parent
        if stat.S_ISLNK(facts.st_mode):
            os.symlink(os.readlink(f"{source}/{path}"), place)
            snapshot.add(path, facts, _content_of(place, facts))
        elif stat.S_ISREG(facts.st_mode):
            content = (source / path).read_bytes()
            with os.fdopen(
                os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, facts.st_mode & 0o777), "wb", 0
            ) as file:
                file.write(content)
            digests[path] = bytes_digest(content)
            snapshot.add(path, facts, _text(content), digests[path])
    return digests, snapshot


def is_left_out(name: str, *, is_folder: bool, is_link: bool) -> bool:
    """True if an entry of a workspace can be rebuilt or could run code unseen, so that it is
    neither compared nor validated.
    """
    if name.casefold() == ".git":
        return True
    return name in IGNORED if is_folder or is_link else name.endswith(COMPILED)


def walk(folder: Path, left_out: list[str] | None = None) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each file and link below a folder, sorted by relative path; links are not followed.

    The paths of entries that `is_left_out` are added to `left_out`.
    """
    pending = [""]
    while pending:
        inner = pending.pop()
        try:
            entries = sorted(os.scandir(folder / inner), key=lambda entry: entry.name)
        except OSError:  # the agent may have removed its own permission
            continue
        folders = []
        for entry in entries:
            path = f"{inner}{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_left_out(entry.name, is_folder=is_folder, is_link=entry.is_symlink()):
                if left_out is not None:
                    left_out.append(path)
            elif is_folder:
                folders.append(f"{path}/")
            else:
                yield path, entry.stat(follow_symlinks=False)
        pending += reversed(folders)


def _content_of(place: str, facts: os.stat_result) -> str | None:
    """Return the content of a text file, or `link to …` for a link; None if it is special, too
    large, not text or gone.
    """
    try:
        if stat.S_ISLNK(facts.st_mode):
            return f"link to {os.readlink(place)}\n"
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE:
            return None
        with open_regular(place) as file:
            return _text(file.read(LARGEST_FILE + 1))
    except OSError:
        return None


def open_regular(place: str | Path) -> BufferedReader:
    """Open a regular file for reading; raises `OSError` for a link and for a special file, which
    could block forever.
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file", str(place))
    return open(descriptor, "rb")


def _text(content: bytes) -> str | None:
    return (
        None
        if b"\0" in content or len(content) > LARGEST_FILE
        else content.decode("utf-8", "replace")
    )


def _form_of(facts: os.stat_result) -> str:
    """Return the kind of a file, as the diff states it: only the owner's permission to run a file
    counts, as in Git.
    """
    if stat.S_ISLNK(facts.st_mode):
        return "link"
    if not stat.S_ISREG(facts.st_mode):
        return "special"
    return "program" if facts.st_mode & stat.S_IXUSR else "file"


def open_up(folder: Path) -> None:
    """Give this user back the permissions in a folder that an agent may have removed; links are not
    followed.
    """
    subprocess.run(["chmod", "-R", "u+rwX", "--", folder], check=False, capture_output=True)


def remove(folder: Path) -> None:
    """Delete as much of a folder as possible; Python's own function fails if an agent nested a
    thousand folders.
    """
    open_up(folder)
    subprocess.run(["rm", "-rf", "--", folder], check=False, capture_output=True)


class Snapshot:
    """Files of a folder at one time: the size and kind of each file, the content of text files, and
    what was left out.

    If the content of a file is not held as it is, `digest_of` reads the folder, which must not have
    changed since.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.sizes: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.forms: dict[str, str] = {}
        self.left_out: list[str] = []
        self._digests: dict[str, str] = {}
        self._folder = folder
        self._room = LARGEST_SNAPSHOT
        for path, facts in walk(folder, self.left_out) if folder is not None else ():
            self.add(
                path, facts, _content_of(f"{folder}/{path}", facts) if self._room > 0 else None
            )

    def add(self, path: str, facts: os.stat_result, text: str | None, digest: str = "") -> None:
        """Add a file; texts beyond `LARGEST_SNAPSHOT` characters are left out."""
        self.sizes[path] = facts.st_size
        self.forms[path] = _form_of(facts)
        if text is not None and self._room > 0:
            self._room -= len(text)
            self.texts[path] = text
        if digest and not self._is_exact(path):
            self._digests[path] = digest

    def _is_exact(self, path: str) -> bool:
        """True if the text holds each byte of a file; U+FFFD may stand for bytes that are not
        UTF-8.
        """
        text = self.texts.get(path)
        return text is not None and "\ufffd" not in text

    def digest_of(self, path: str) -> str:
        """Return the digest of a regular file that is not held as text; empty for others, and if it
        cannot be read.
        """
        if (
            path not in self._digests
            and self._folder is not None
            and self.forms.get(path) in ("file", "program")
        ):
            try:
                with open_regular(self._folder / path) as file:
                    self._digests[path] = file_digest(file)
            except OSError:
                return ""
        return self._digests.get(path, "")

    def same(self, path: str, other: Snapshot) -> bool:
        """True if both snapshots have the same file under this path, or none."""
        if (self.sizes.get(path), self.forms.get(path)) != (
            other.sizes.get(path),
            other.forms.get(path),
        ):
            return False
        if self.texts.get(path) != other.texts.get(path):
            return False
        return (
            self._is_exact(path)
            or path not in self.sizes
            or self.digest_of(path) == other.digest_of(path)
        )

    def kept(self, paths: Collection[str]) -> dict[str, str | None]:
        """Return the content of each path; None for a file that is absent or not text."""
        return {path: self.texts.get(path) for path in paths}


def changed_paths(base: Snapshot, now: Snapshot) -> list[str]:
    """Return the paths of all files that were added, changed or deleted, sorted."""
    return [
        path for path in sorted(base.sizes.keys() | now.sizes.keys()) if not base.same(path, now)
    ]


def difference(base: Snapshot, now: Snapshot, first: Collection[str] = ()) -> str:
    """Return a unified diff of two snapshots, `first` files first.

    For files that are not text, it states only that they differ.
    """
    return "".join(parts_of_difference(base, now, changed_paths(base, now), first))


def parts_of_difference(
    base: Snapshot, now: Snapshot, paths: Sequence[str], first: Collection[str] = ()
) -> list[str]:
    """Return the unified diff of each of these changed files, `first` files first."""
    return [
        _part(path, base, now) for path in sorted(paths, key=lambda path: (path not in first, path))
    ]


def _part(path: str, base: Snapshot, now: Snapshot) -> str:
    before, after = base.texts.get(path), now.texts.get(path)
    old, new = (
        (f"a/{path}" if path in base.sizes else "/dev/null"),
        (f"b/{path}" if path in now.sizes else "/dev/null"),
    )
    forms = base.forms.get(path), now.forms.get(path)
    became = (
        f"{old} was a {forms[0]} and {new} is a {forms[1]}\n"
        if None not in forms and forms[0] != forms[1]
        else ""
    )
    if forms[0] is None and forms[1] == "program":
        became = f"{new} is a program\n"
    compared = len(_lines(before)) * len(_lines(after)) <= MAX_COMPARISONS
    is_text = (path not in base.sizes or before is not None) and (
        path not in now.sizes or after is not None
    )
    if before == after and became and is_text:
        return became
    if not is_text or not compared or before == after:
        return f"{became}Binary or large files {old} and {new} differ ({now.sizes.get(path, 0):,} bytes)\n"
    lines = list(difflib.unified_diff(_lines(before), _lines(after), old, new))
    lines = lines or [f"--- {old}\n", f"+++ {new}\n"]  # an empty file, added or deleted
    return became + "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def within(parts: Sequence[str], most: int = LARGEST_DIFF) -> str:
    """Return the parts of a diff as one text, the longest parts cut so that all fit: every changed
    file is still named.
    """
    left, room = len(parts), most
    share = most
    for length in sorted(map(len, parts)):
        share = max(room // left, 200)
        if length > share:
            break
        room -= length
        left -= 1
    else:
        share = most
    return "".join(part if len(part) <= share else _cut(part, share) for part in parts)[:most]


def _cut(part: str, share: int) -> str:
    kept = part[: share - 60]
    return f"{kept}\n\\ {len(part) - len(kept):,} characters left out\n"


def _lines(text: str | None) -> list[str]:
    return [] if text is None else text.splitlines(keepends=True)


def restore(paths: Collection[str], source: Path, target: Path) -> None:
    """Restore files to their earlier content, replacing changed files, links and folders at the
    same paths.
    """
    for path in paths:
        place = target
        for step in Path(path).parent.parts:
            place /= step
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                place.unlink()
            place.mkdir(exist_ok=True)
        place = target / path
        if place.is_dir() and not place.is_symlink():
            remove(place)
        place.unlink(missing_ok=True)
        shutil.copy2(source / path, place, follow_symlinks=False)
