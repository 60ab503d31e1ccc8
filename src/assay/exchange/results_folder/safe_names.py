"""Make safe file and folder names for candidates, suites and runs, whose names may contain any
character.

A safe name has at most 100 characters: lower-case ASCII letters, digits, `.`, `_` and `-`, with a
letter or digit at both ends. It is not reserved on any system. `/` becomes `--`. After any other
change, ten digits of a digest are appended, so that two names never share a file.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path
from typing import Final

from assay.domain.errors import InputError
from assay.domain.identifiers import folded

LONGEST: Final = 100

_ODD: Final = re.compile(r"[^a-z0-9._-]+")
# A name that only looks as if it had a digest gets one too; otherwise it could be chosen to hit
# another name's file.
_DIGESTED: Final = re.compile(r"-[0-9a-f]{10}\Z")
# Devices of Windows, which reserves these names whatever their ending.
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|com[0-9]|lpt[0-9])\Z")
_OURS: Final = frozenset({"metadata.json"})


def safe_name(text: str) -> str:
    """Return a safe file or folder name; two texts get the same name only if they are equal apart
    from case.
    """
    same = folded(text)
    plain = _ODD.sub(
        "-",
        unicodedata.normalize("NFKD", same).encode("ascii", "ignore").decode().replace("/", "--"),
    )
    plain = plain.strip("._-")
    kept = (
        plain != ""
        and plain.replace("--", "/") == same
        and len(plain) <= LONGEST
        and not _DIGESTED.search(plain)
    )
    if kept and not _RESERVED.match(plain.split(".")[0]) and plain not in _OURS:
        return plain
    digest = hashlib.sha256(same.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    if _RESERVED.match(plain.split(".")[0]):
        plain = f"x-{plain}"
    return f"{plain[: LONGEST - 11].strip('._-') or 'x'}-{digest}"


def inside(folder: Path, *parts: str) -> Path:
    """Return a path below a folder; raises `InputError` if a link leads out of it."""
    path = folder.joinpath(*parts)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            str(path),
            "is a link that leads out of the results folder.",
            remedy="Remove the link, or choose another folder.",
        )
    return path
