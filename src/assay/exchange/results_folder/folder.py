"""The results folder as files: its lock, its registry, a file set per candidate and run, and the
record of each run.

    results/ metadata.json                                 the registry of all runs
      qwen-3-4b/batch_5k_20241028_143300.jsonl      one candidate's answers, one line per request,
      as batch output qwen-3-4b/batch_5k_20241028_143300.log        times, speed and failures of its
      run qwen-3-4b/batch_5k_20241028_143300.meta.json  one candidate of one run; from these the
      registry can be rebuilt _assay/20241028-143300-batch_5k-1f2e.jsonl    a whole run, from which
      the store can be rebuilt _assay/deleted/20241028-…/                    all files of a run that
      was deleted or replaced, and why; not rebuilt

House rules. Files that other programs read are written atomically (`atomic_files`) and under the
lock. Only records are appended to; lines after a record's last `mark` do not count, so a truncated
record is not mistaken for a complete one. Entries of other programs stay in the registry.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any, Final

from assay.domain.errors import InputError
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.results_folder.atomic_files import AtomicFile, write_atomically
from assay.exchange.results_folder.safe_names import inside, safe_name

REGISTRY: Final = "metadata.json"
RECORDS: Final = "_assay"
DELETED: Final = "deleted"
REASON: Final = "reason.json"
PATIENCE_S: Final = 10.0
"""Seconds to wait for another process that writes to the folder; after that, the next update
catches up.
"""

_TAIL: Final = 8192

Document = dict[str, Any]
"""A JSON object built by `app.results_folder`; this module only stores it."""


class FolderBusy(Exception):
    """Raised if another process has locked the folder for too long."""


@contextmanager
def locked(
    folder: Path, run: str | None = None, *, patience_s: float = PATIENCE_S
) -> Iterator[None]:
    """Lock the registry, or a run's files; raises `FolderBusy` after waiting `patience_s` seconds.

    Each run has a separate lock, because writing a large run may take minutes.
    """
    path = folder / ".lock" if run is None else inside(folder, RECORDS, f".{safe_name(run)}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        deadline = monotonic() + patience_s
        while not _try_lock(held):
            if monotonic() > deadline:
                raise FolderBusy(str(folder))
            sleep(0.02)
        yield
    finally:
        os.close(held)


def _try_lock(held: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(held, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def stem_of(folder: Path, *, model: str, dataset: str, at: str, run: str) -> Path:
    """Return the path of one candidate's files in a run, without file endings; the path is unique.

    `at`: start of the run, ISO 8601 in UTC. `run`: the run's id, added to the name if another run
    started in the same second.
    """
    stamp = f"{at[:10].replace('-', '')}_{at[11:19].replace(':', '')}"
    home = inside(folder, safe_name(model))
    stem = home / f"{safe_name(dataset)}_{stamp}"
    owner = document(Path(f"{stem}.meta.json"))
    if owner is not None and owner.get("assay_run") != run:
        stem = home / f"{stem.name}-{safe_name(run)[-15:].strip('._-')}"
    return inside(folder, home.name, stem.name)


def record_of(folder: Path, run: str) -> Path:
    return inside(folder, RECORDS, f"{safe_name(run)}.jsonl")


def aside_of(folder: Path, run: str) -> Path:
    """Return the folder for the files of a run that was deleted or replaced."""
    return inside(folder, RECORDS, DELETED, safe_name(run))


def runs_aside(folder: Path) -> list[str]:
    """Return the ids of the runs whose files were moved to the folder of deleted runs."""
    reasons = (
        document(path) or {} for path in sorted((folder / RECORDS / DELETED).glob(f"*/{REASON}"))
    )
    return [str(reason["run_id"]) for reason in reasons if "run_id" in reason]


def move(path: Path, home: Path) -> None:
    """Move a file into a folder, if the file exists."""
    if path.exists():
        home.mkdir(parents=True, exist_ok=True)
        path.replace(home / path.name)


def write_document(path: Path, document: Document) -> None:
    """Write a JSON file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Its name need not survive a power failure, because the file can be created again from the
    # store.
    write_atomically(
        path, unescaped_json(document, indent=2, allow_nan=False) + "\n", lasting=False
    )


def write_record(
    path: Path, lines: Iterable[Document], *, also: Callable[[Document], None]
) -> None:
    """Write a whole record atomically; `also` is called with each line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with AtomicFile(path, force=True) as file:
        for line in lines:
            also(line)
            file.write(_line(line))


def add_to_record(path: Path, lines: Iterable[Document]) -> bool:
    """Append lines that end with a mark and force them to disk; return False if there are no
    lines.
    """
    text = "".join(_line(line) for line in lines)
    if not text:
        return False
    # Without O_CREAT, because lines without a first line would be an unreadable record.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        written = memoryview(text.encode("utf-8", "backslashreplace"))
        while written:
            # The system may write less than it is given, for example when the disk fills up.
            written = written[os.write(descriptor, written) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def last_event(path: Path) -> int | None:
    """Return the number of the last decision in a record; None if the record is missing or
    incomplete.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            tail = file.read().split(b"\n")
    except OSError:
        return None
    # A last line without its end was cut off, by a kill or a full disk.
    if tail[-1] != b"" or len(tail) < 2:
        return None
    with suppress(ValueError):
        line = json.loads(tail[-2])
        if isinstance(line, dict) and line.get("kind") == "mark":
            return int(line["last_event"])
    return None


def records(folder: Path) -> list[Path]:
    """Return the records of a folder, in the order of the runs' starts."""
    # Hidden files are locks, or unfinished files that a killed process left behind.
    return sorted(
        path for path in (folder / RECORDS).glob("*.jsonl") if not path.name.startswith(".")
    )


def record_lines(path: Path) -> Iterator[Document]:
    """Yield a record's valid lines: the last line of each trial up to the last mark, then that
    mark.

    Raises InputError if a line above the last mark is damaged, or the record has no mark.
    """
    last: dict[int, int] = {}
    pending: dict[int, int] = {}
    end: tuple[int, Document] | None = None
    with path.open("rb") as file:
        for place, raw in _raw_lines(file):
            line = _parsed(raw)
            if line is None:
                # a line below the last mark does not count; above it, the second pass reports the
                # line
                continue
            if line.get("kind") == "trial":
                pending[line["key"]] = place
            elif line.get("kind") == "mark":
                last |= pending
                pending.clear()
                end = (place, line)
        if end is None:
            raise InputError(
                str(path),
                "is incomplete because writing it was interrupted, so nothing in it counts.",
            )
        file.seek(0)
        for place, raw in _raw_lines(file):
            if place >= end[0]:
                break
            line = _parsed(raw)
            if line is None:
                raise InputError(
                    f"{path}, byte {place}", "is damaged.", remedy="Restore the file from a copy."
                )
            if line["kind"] == "mark" or (line["kind"] == "trial" and last[line["key"]] != place):
                continue
            yield line
        yield end[1]


def text_of(body: str | dict[str, str]) -> str:
    """Return a text from a record, which contains base64 for texts with lone surrogates."""
    return (
        body
        if isinstance(body, str)
        else base64.b64decode(body["base64"]).decode("utf-8", "surrogatepass")
    )


def registry(folder: Path) -> Document:
    """Return the content of `metadata.json`, or a new registry.

    An unreadable file is renamed and replaced.
    """
    path = inside(folder, REGISTRY)
    content = document(path)
    if content is None and path.exists():
        path.replace(path.with_name(f"{REGISTRY}.unreadable-{os.getpid()}"))
    content = content or {}
    if not isinstance(content.get("runs"), list):
        content["runs"] = []
    for key in ("datasets", "models"):
        if not isinstance(content.get(key), dict):
            content[key] = {}
    return content


def metas(folder: Path) -> Iterator[tuple[Path, Document]]:
    for path in sorted(folder.glob("*/*.meta.json")):
        description = document(path)
        if description is not None and not path.name.startswith("."):
            yield path, description


def _raw_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    place = file.tell()
    for raw in file:
        if raw.endswith(b"\n"):
            yield place, raw
        place += len(raw)


def _parsed(raw: bytes) -> Document | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _line(document: Document) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def document(path: Path) -> Document | None:
    """Return the JSON object in a file; None if it cannot be read."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
