"""Snapshot files of specialists: schema, content address and signature.

A snapshot is JSON in exactly one layout. To detect a change to any byte, Assay writes the content again and compares the bytes.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from assay.domain.digest import canonical
from assay.domain.errors import InputError
from assay.specialists.signatures import is_signed
from assay.specialists.templates import read_limited, violations

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from assay.specialists.comparison import Section
    from assay.specialists.signatures import SigningKey

LARGEST_SNAPSHOT: Final = 64_000_000


def seal(content: Mapping[str, Any], key: SigningKey | None) -> Section:
    """Return a snapshot with its content address and, if there is a key, its signature; raises `InputError` if it is invalid."""
    named = {**content, "snapshot_metadata": {**content["snapshot_metadata"], "public_key": key and key.public}}
    digest = _address(named)
    sealed = {**named, "integrity": {"sha256": digest, "ed25519": key and key.sign(digest)}}
    if wrong := violations(sealed, "snapshot"):
        raise InputError("snapshot", "; ".join(f"{where} {problem}" for where, problem in wrong[:5]))
    return sealed


def laid_out(snapshot: Mapping[str, Any]) -> str:
    """Return the text of a snapshot's file."""
    text = json.dumps(snapshot, ensure_ascii=False, allow_nan=False, indent=2)
    return f"{text}\n".encode("utf-8", "backslashreplace").decode()


def read_snapshot(path: Path) -> tuple[Section, list[str]]:
    """Return a snapshot, and the reasons why it is not as minted: changed bytes, a violated schema, a wrong signature.

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
    problems += [f"The schema is violated: {where} {problem}" for where, problem in violations(snapshot, "snapshot")]
    return snapshot, problems or _unproven(snapshot)


def _unproven(snapshot: Section) -> list[str]:
    """Return why the content address or the signature of a valid snapshot does not fit its content."""
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
