"""Content digests and derived seeds; the same content gives the same result on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from io import BufferedReader
from typing import TypeAlias

JsonValue: TypeAlias = "str | int | float | bool | None | list[JsonValue] | dict[str, JsonValue]"


def canonical(value: JsonValue) -> str:
    """Return a value as JSON with sorted keys and no spaces; digests are computed from this
    form.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: JsonValue) -> str:
    """Return the first 32 hexadecimal digits of SHA-256 over `canonical(value)`."""
    return text_digest(canonical(value))


def text_digest(text: str) -> str:
    """Return the first 32 hexadecimal digits of SHA-256 over UTF-8 text."""
    # Files from other programs may contain lone surrogates, which strict UTF-8 rejects.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def bytes_digest(content: bytes) -> str:
    """Return the first 32 hexadecimal digits of SHA-256 over bytes."""
    return hashlib.sha256(content).hexdigest()[:32]


def file_digest(file: BufferedReader) -> str:
    """Return the digest of an open file's bytes, as `bytes_digest` does, without holding them in
    memory.
    """
    return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def derived_seed(run_seed: int, task: str, trial: int, attempt: int, purpose: str = "call") -> int:
    """Return the seed (0 <= seed < 2**31) for an attempt at a trial; with equal seeds, trials would
    get equal answers.
    """
    # The separator distinguishes task "a1" with trial 2 from task "a" with trial 12.
    text = f"{run_seed}\x1f{task}\x1f{trial}\x1f{attempt}\x1f{purpose}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") & 0x7FFF_FFFF


def shuffled(names: Iterable[str], seed: int) -> tuple[str, ...]:
    """Return the names in a pseudo-random order that depends only on the seed and the set of
    names.
    """
    return tuple(
        sorted(names, key=lambda name: hashlib.sha256(f"{seed}\x1f{name}".encode()).digest())
    )
