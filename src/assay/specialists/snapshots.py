"""Snapshot files of specialists: schema, content address and signature.

A snapshot is JSON in exactly one layout. To detect a change to any byte, Assay writes the content
again and compares the bytes. Its number and the digest of the snapshot before it are part of the
content, and the path repeats number, version and specialist, so that a renamed, moved, replaced or
missing file is found.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

from assay.domain.digest import canonical
from assay.domain.errors import InputError
from assay.domain.specialists import short_name
from assay.domain.unescaped_json import unescaped_json
from assay.specialists.signatures import is_signed
from assay.specialists.templates import read_limited, violations

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from assay.specialists.comparison import Section
    from assay.specialists.signatures import SigningKey

LARGEST_SNAPSHOT: Final = 64_000_000

FORMAT: Final = 2
"""Format of the snapshots that Assay mints.

Format 1 states no format, number, predecessor or removed runs.
"""

OWN_SECTIONS: Final = ("benchmarks", "evidence", "validity", "snapshot_metadata", "integrity")
"""Sections that minting adds to the template's fields."""

_FILE_NAME: Final = re.compile(r"snapshot-([0-9]{1,9})\.json5")
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?")


def format_of(snapshot: Section) -> int:
    """Return the format of a snapshot that has the right schema; 1 if it states none."""
    return int(snapshot["snapshot_metadata"].get("format", 1))


def numbered(content: Mapping[str, Any], number: int, before: Path | None) -> Section:
    """Return the content of a snapshot with its format, its number and the digest of the file
    before it (None: there is none).
    """
    stated = None if before is None else {"number": number - 1, "file_sha256": file_digest(before)}
    own = {"format": FORMAT, "number": number, "predecessor": stated}
    return {**content, "snapshot_metadata": {**content["snapshot_metadata"], **own}}


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a snapshot file, as `sha256sum` prints it; raises `InputError` if the
    file cannot be read.
    """
    return hashlib.sha256(read_limited(path, LARGEST_SNAPSHOT)).hexdigest()


def misplaced(snapshot: Section, path: Path) -> list[str]:
    """Return how the path `NAME/VERSION/snapshot-NNN.json5` differs from a snapshot's own name,
    version and number.

    The folders count only if the inner one is named like a version, because a single file may be
    kept anywhere.
    """
    place = path.resolve()
    name, version, number = (
        short_name(snapshot["name"]),
        snapshot["version"],
        snapshot["snapshot_metadata"].get("number"),
    )
    problems = []
    file_name = _FILE_NAME.fullmatch(place.name)
    if number is not None and (file_name is None or int(file_name[1]) != number):
        problems.append(
            f"it was minted as snapshot-{number:03}.json5, but the file is named {place.name}"
        )
    if in_own_folders(path):
        if place.parent.name != version:
            problems.append(
                f"it has version {version}, but lies in a folder of version {place.parent.name}"
            )
        if place.parent.parent.name != name:
            problems.append(
                f"it is of the specialist {name}, but lies in a folder of {place.parent.parent.name}"
            )
    return problems


def in_own_folders(path: Path) -> bool:
    """True if a file lies in a folder that is named like a version, as minting names it."""
    return _VERSION.fullmatch(path.resolve().parent.name) is not None


def seal(content: Mapping[str, Any], key: SigningKey | None) -> Section:
    """Return a snapshot with its content address and, if there is a key, its signature; raises
    `InputError` if it is invalid.
    """
    named = {
        **content,
        "snapshot_metadata": {**content["snapshot_metadata"], "public_key": key and key.public},
    }
    digest = _address(named)
    sealed = {**named, "integrity": {"sha256": digest, "ed25519": key and key.sign(digest)}}
    if wrong := violations(sealed, "snapshot"):
        raise InputError(
            "snapshot", "; ".join(f"{where} {problem}" for where, problem in wrong[:5])
        )
    return sealed


def laid_out(snapshot: Mapping[str, Any]) -> str:
    """Return the text of a snapshot's file."""
    text = unescaped_json(snapshot, allow_nan=False, indent=2)
    return f"{text}\n".encode("utf-8", "backslashreplace").decode()


def read_snapshot(path: Path) -> tuple[Section, list[str]]:
    """Return a snapshot, and the reasons why it is not as minted: changed bytes, a violated schema,
    a wrong signature.

    If there is a reason, any field may be missing. Raises `InputError` if the file cannot be read.
    """
    content = read_limited(path, LARGEST_SNAPSHOT)
    try:
        snapshot = json.loads(content.decode())
        same = isinstance(snapshot, dict) and laid_out(snapshot).encode() == content
    except (ValueError, RecursionError):
        return {}, ["The file was changed: it is no longer JSON."]
    if not isinstance(snapshot, dict):
        return {}, ["The file is not a snapshot: it contains no JSON object."]
    problems = [] if same else ["The file was changed: it is not laid out as Assay writes it."]
    problems += [
        f"The schema is violated: {where} {problem}"
        for where, problem in violations(snapshot, "snapshot")
    ]
    return snapshot, problems or _unproven(snapshot)


def _unproven(snapshot: Section) -> list[str]:
    """Return why the content address or the signature of a valid snapshot does not fit its
    content.
    """
    integrity, public = snapshot["integrity"], snapshot["snapshot_metadata"]["public_key"]
    digest = _address({key: value for key, value in snapshot.items() if key != "integrity"})
    if digest != integrity["sha256"]:
        return [f"The content was changed: its SHA-256 is {digest}, not {integrity['sha256']}."]
    if (public is None) != (integrity["ed25519"] is None):
        return ["The signature or its public key was removed."]
    if public is not None and not is_signed(digest, integrity["ed25519"], public):
        return ["The signature is wrong: it was not made with the stated key for this content."]
    return []


def _address(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(dict(content)).encode("utf-8", "surrogatepass")).hexdigest()
