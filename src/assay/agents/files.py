"""Copy a fixture and compare two folders, without following links that an agent may have created."""

from __future__ import annotations

import difflib
import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from assay.domain.digest import bytes_digest

IGNORED: Final = frozenset(
    {"node_modules", ".git", ".turbo", "dist", ".nx", ".pnpm-store", "__pycache__", ".venv", ".pytest_cache"}
)
"""Folders that are neither copied nor compared, because they can be rebuilt."""

LARGEST_FILE: Final = 256 << 10
"""Maximum bytes of a file whose content is stored and compared; for larger files, only sizes are compared."""

LARGEST_DIFF: Final = 400_000
LARGEST_SNAPSHOT: Final = 64 << 20
"""Maximum characters of text that a snapshot holds; only the sizes of further files are compared."""
MOST_COMPARISONS: Final = 25_000_000
"""Maximum product of two files' line counts for a comparison by line; the time grows with it."""
MOST_PATHS: Final = 5_000


def copy_fixture(source: Path, target: Path) -> tuple[dict[str, str], Snapshot]:
    """Copy the files and links of a fixture without the `IGNORED` folders; return the digest of each file, and a snapshot.

    Times and extended attributes are left out, because `shutil.copytree` takes twice as long.
    """
    digests: dict[str, str] = {}
    snapshot = Snapshot()
    folder = ""
    for path, facts in walk(source):
        place = f"{target}/{path}"
        if (parent := os.path.dirname(place)) != folder:
            os.makedirs(parent, exist_ok=True)
            folder = parent
        if stat.S_ISLNK(facts.st_mode):
            os.symlink(link := os.readlink(f"{source}/{path}"), place)
            snapshot.add(path, facts.st_size, f"link to {link}\n")
        elif stat.S_ISREG(facts.st_mode):
            content = (source / path).read_bytes()
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, facts.st_mode & 0o777), "wb", 0) as file:
                file.write(content)
            digests[path] = bytes_digest(content)
            snapshot.add(path, len(content), _text(content))
    return digests, snapshot


def walk(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each file and link below a folder, sorted by relative path; links are not followed."""
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
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in IGNORED:
                    folders.append(f"{path}/")
            else:
                yield path, entry.stat(follow_symlinks=False)
        pending += reversed(folders)


def _content_of(place: str, facts: os.stat_result) -> str | None:
    """Return the content of a text file, or `link to …` for a link; None if it is special, too large, not text or gone."""
    try:
        if stat.S_ISLNK(facts.st_mode):
            return f"link to {os.readlink(place)}\n"
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE:
            return None
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            content = os.read(descriptor, LARGEST_FILE + 1)
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return _text(content)


def _text(content: bytes) -> str | None:
    return None if b"\0" in content or len(content) > LARGEST_FILE else content.decode("utf-8", "replace")


def open_up(folder: Path) -> None:
    """Give this user back the permissions in a folder that an agent may have removed; links are not followed."""
    subprocess.run(["chmod", "-R", "u+rwX", "--", folder], check=False, capture_output=True)


def remove(folder: Path) -> None:
    """Delete as much of a folder as possible; Python's own function fails if an agent nested a thousand folders."""
    open_up(folder)
    subprocess.run(["rm", "-rf", "--", folder], check=False, capture_output=True)


class Snapshot:
    """Files of a folder at one time: the size of each file, and the content of text files."""

    def __init__(self, folder: Path | None = None) -> None:
        self.sizes: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self._room = LARGEST_SNAPSHOT
        for path, facts in walk(folder) if folder is not None else ():
            self.add(path, facts.st_size, _content_of(f"{folder}/{path}", facts) if self._room > 0 else None)

    def add(self, path: str, size: int, text: str | None) -> None:
        """Add a file; texts beyond `LARGEST_SNAPSHOT` characters are left out."""
        self.sizes[path] = size
        if text is not None and self._room > 0:
            self._room -= len(text)
            self.texts[path] = text

    def kept(self, paths: Collection[str]) -> dict[str, str | None]:
        """Return the content of each path; None for a file that is absent or not text."""
        return {path: self.texts.get(path) for path in paths}


def difference(base: Snapshot, now: Snapshot, first: Collection[str] = ()) -> str:
    """Return a unified diff of two snapshots, `first` files first. For files that are not text, it states only that they differ."""
    parts = []
    for path in sorted(base.sizes.keys() | now.sizes.keys(), key=lambda path: (path not in first, path)):
        before, after = base.texts.get(path), now.texts.get(path)
        if before == after and base.sizes.get(path) == now.sizes.get(path):
            continue
        old, new = ((f"a/{path}" if path in base.sizes else "/dev/null"), (f"b/{path}" if path in now.sizes else "/dev/null"))
        compared = len(_lines(before)) * len(_lines(after)) <= MOST_COMPARISONS
        if (path in base.sizes and before is None) or (path in now.sizes and after is None) or not compared:
            parts.append(f"Binary or large files {old} and {new} differ ({now.sizes.get(path, 0):,} bytes)\n")
            continue
        lines = list(difflib.unified_diff(_lines(before), _lines(after), old, new))
        lines = lines or [f"--- {old}\n", f"+++ {new}\n"]  # an empty file, added or deleted
        parts += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join(parts)


def _lines(text: str | None) -> list[str]:
    return [] if text is None else text.splitlines(keepends=True)


def restore(paths: Collection[str], source: Path, target: Path) -> None:
    """Restore files to their earlier content, replacing changed files, links and folders at the same paths."""
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
