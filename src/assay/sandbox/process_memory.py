"""Measure and limit the memory of a process and its descendants.

Chromium's processes leave the first process's group, so Assay searches for them by parent process.
Shared pages of programs and libraries are not counted, because they take no additional memory.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_OWN_PAGES: Final = ("RssAnon:", "RssShmem:")


def tree_of(root: int) -> list[int]:
    """Return the ids of a process and its descendants, parents first; only the first id if the
    system cannot list processes.
    """
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    tree = [root]
    for pid in tree:
        tree.extend(children.get(pid, ()))
    return tree


def memory_of(pids: Iterable[int]) -> int:
    """Return how many bytes of unshared memory these processes take; 0 if the system does not
    report it.
    """
    return (
        _memory_by_ps(pids)
        if not sys.platform.startswith("linux")
        else sum(_status(pid, _OWN_PAGES) for pid in pids)
    )


def limit_growth(pids: Sequence[int], most: int) -> None:
    """Allow the data of each process to grow by at most `most` bytes from now on; only on Linux.

    `pids` lists parents before their children. New processes inherit their parent's limit, so a
    process may use as much memory as its largest descendant.
    """
    if not sys.platform.startswith("linux"):
        return
    resource = importlib.import_module("resource")
    parents = dict(_parents())
    data: dict[int, int] = {}
    for pid in reversed(pids):
        held = _status(pid, ("VmData:",))
        data[pid] = max(held, data.get(pid, 0))
        parent = parents.get(pid, 0)
        data[parent] = max(data[pid], data.get(parent, 0))
        # Not RLIMIT_AS: Chromium reserves address space of terabytes, which takes no memory.
        with suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (data[pid] + most, data[pid] + most))


def kill_all(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def _status(pid: int, names: tuple[str, ...]) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(names))
    return 0


def _parents() -> Iterator[tuple[int, int]]:
    if not sys.platform.startswith("linux"):
        for line in _ps("pid=,ppid="):
            pid, parent = line.split()
            yield int(pid), int(parent)
        return
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with suppress(OSError):
                # The name is in brackets and may contain anything; the state and the parent follow
                # it.
                yield (
                    int(entry),
                    int(Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()[1]),
                )


def _memory_by_ps(pids: Iterable[int]) -> int:
    wanted = set(pids)
    rows = (line.split() for line in _ps("pid=,rss="))
    return sum(int(kilobytes) * 1024 for pid, kilobytes in rows if int(pid) in wanted)


def _ps(columns: str) -> list[str]:
    with suppress(OSError, subprocess.SubprocessError):  # not on Windows
        done = subprocess.run(
            ["ps", "-axo", columns], capture_output=True, text=True, timeout=5, check=True
        )
        return done.stdout.splitlines()
    return []
