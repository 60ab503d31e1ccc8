"""Keep the workspaces of the newest trials for people to look at: disarmed, and within limits on
number and size.

An agent may leave files that programs of the user run unasked: Git runs `core.fsmonitor` of any
`.git` folder that a prompt looks into, and editors run tasks. So a workspace is disarmed as soon as
its trial ends, and that of a killed process by the next trial.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from assay.agents.files import is_left_out, open_up, remove

MAX_KEPT: Final = 20
DEFAULT_GB: Final = 2.0
_IN_USE: Final = "in-use"
_SIZE: Final = "size"
_ARMED: Final = frozenset(
    {".githooks", ".husky", ".envrc", ".direnv", ".vscode", ".idea", ".devcontainer", ".mise.toml"}
)
"""Files and folders that shells, Git and editors run or obey when somebody enters the folder or
opens it.
"""


class KeptWorkspaces:
    """The folder of all workspaces of a project.

    Args:
        folder: the folder, which may not exist yet.
        most_bytes: the total size of kept workspaces; the oldest are removed first. Workspaces in
            use do not count.
    """

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self.folder = folder
        self._most_bytes = most_bytes

    @asynccontextmanager
    async def place(self, name: str) -> AsyncIterator[Path]:
        """Yield a new folder for one trial; afterwards it is disarmed, and old ones are removed."""
        place = self.folder / f"{name}-{secrets.token_hex(4)}"
        place.mkdir(parents=True)
        with (place / _IN_USE).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield place
            finally:
                await asyncio.shield(asyncio.to_thread(self._put_away, place))

    def _put_away(self, place: Path) -> None:
        _finish(place)
        self.prune()

    def prune(self) -> None:
        """Disarm what killed processes left, and remove workspaces beyond the limits, oldest
        first.
        """
        left = self._most_bytes
        for number, place in enumerate(sorted(self._places(), key=_ended_at, reverse=True)):
            with _unused(place) as is_unused:
                if not is_unused:
                    continue
                size = _size_of(place)
                left -= size
                if number >= MAX_KEPT or left < 0:
                    remove(place)

    def total_bytes(self) -> tuple[int, int]:
        """Return the number of kept workspaces and their size; those of killed processes count when
        they are disarmed.
        """
        sizes = [
            int(text) for place in self._places() if (text := _text_of(place / _SIZE)).isdecimal()
        ]
        return len(sizes), sum(sizes)

    def _places(self) -> list[Path]:
        with suppress(OSError):
            return [
                Path(entry.path)
                for entry in os.scandir(self.folder)
                if entry.is_dir(follow_symlinks=False)
            ]
        return []


def _finish(place: Path) -> None:
    size = disarm(place)
    (place / _SIZE).write_text(str(size), "utf-8")
    (place / _IN_USE).unlink(missing_ok=True)


def _ended_at(place: Path) -> float:
    with suppress(OSError):
        return (place / _SIZE).stat().st_mtime
    with suppress(OSError):
        return place.stat().st_mtime
    return 0.0


@contextmanager
def _unused(place: Path) -> Iterator[bool]:
    """Yield False if a trial works in a folder; its lock ends with its process."""
    try:
        lock = (place / _IN_USE).open("rb")
    except OSError:
        yield True
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


def _size_of(place: Path) -> int:
    """Return the size of an unused workspace, which is disarmed first if that did not happen."""
    text = _text_of(place / _SIZE)
    if not text.isdecimal():
        _finish(place)
        text = _text_of(place / _SIZE)
    return int(text or 0)


def _text_of(path: Path) -> str:
    with suppress(OSError):
        return path.read_text("utf-8", "replace").strip()
    return ""


def disarm(folder: Path) -> int:
    """Remove what programs could run unasked, and what can be rebuilt; return the bytes that are
    left.

    Removed are ignored folders and compiled files, `.git` in any form, folders and files of
    `_ARMED`, the file `HEAD` without which Git sees no repository, special files, links that lead
    out of the folder, and permissions to run as another user.
    """
    if os.geteuid():
        open_up(folder)
    size = 0
    pending = [str(folder)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            is_folder, is_link = entry.is_dir(follow_symlinks=False), entry.is_symlink()
            name = entry.name.casefold()
            if (
                is_left_out(entry.name, is_folder=is_folder, is_link=is_link)
                or name in _ARMED
                or name == "head"
            ):
                remove(Path(entry.path))
            elif is_folder:
                pending.append(entry.path)
            elif is_link:
                if _leads_out(entry.path, folder):
                    os.unlink(entry.path)
            else:
                size += _size_after(entry.path, entry.stat(follow_symlinks=False))
    return size


def _leads_out(link: str, folder: Path) -> bool:
    target = os.readlink(link)
    place = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return os.path.isabs(target) or not place.startswith(f"{folder}{os.sep}")


def _size_after(path: str, facts: os.stat_result) -> int:
    """Remove a special file, and the permission of any other to run as another user; return its
    size.
    """
    if not stat.S_ISREG(facts.st_mode):
        os.unlink(path)
        return 0
    if facts.st_mode & (stat.S_ISUID | stat.S_ISGID):
        os.chmod(path, facts.st_mode & 0o777)
    return facts.st_blocks * 512
