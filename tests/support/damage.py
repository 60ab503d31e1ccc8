"""Damage to files, drawn by Hypothesis: cuts, strange bytes, values of other types, repeated parts,
packing.
"""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from dataclasses import dataclass
from typing import Final, Literal

from hypothesis import strategies as st

_TOKEN: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?|[\w./-]+')
_ODD: Final = (
    b"",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b'""',
    b"[[[]]]",
    b"[null]",
    b'{"a":{}}',
    b"0",
    b"-1",
    b"1e999",
    b"-1e-999",
    b"NaN",
    b"Infinity",
    b"9" * 400,
    b"9223372036854775808",
    b"0x1f",
    b"1_000",
    b"2026-13-45",
    b'"2026-02-30T25:61:61Z"',
    b'"\\ud800"',
    b'"\\u0000"',
    b'"\xed\xa0\x80"',
    b'"%s"',
    b'"${HOME}"',
    b'"../../etc/passwd"',
    b'"/dev/zero"',
    b'"' + b"x" * 5000 + b'"',
    "\u0661\u0662".encode(),
    "\u2028".encode(),
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x00",
    b"\r",
    b"\n",
    b"\t",
    b'"',
    b"'",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"- ",
    b"? ",
    b"<<: ",
    b"&a ",
    b"*a",
    b"!!python/object:os.x ",
    b"!!binary ",
    b"!!timestamp ",
    b"|\n",
    b"#",
    b"---\n",
    b"[" * 3000,
    b'{"a":' * 3000,
    b"(" * 500,
    b"\\",
    b"^(a+)+$",
)
"""Contents of files that a person, a broken program or an attacker may leave."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of the bytes; `place` and `other` count tokens or bytes, modulo their number."""

    kind: Literal["replace", "insert", "cut", "drop", "repeat", "swap"]
    place: int
    other: int
    odd: bytes

    def apply(self, content: bytes) -> bytes:
        """Return the content after this change."""
        tokens = list(_TOKEN.finditer(content))
        length = len(content)
        start = self.place % (length + 1)
        end = min(length, start + self.other % 200)
        match self.kind:
            case "replace" if tokens:
                token = tokens[self.place % len(tokens)]
                return content[: token.start()] + self.odd + content[token.end() :]
            case "swap" if tokens:
                token, other = tokens[self.place % len(tokens)], tokens[self.other % len(tokens)]
                return content[: token.start()] + other[0] + content[token.end() :]
            case "cut":
                return content[:start]
            case "drop":
                return content[:start] + content[end:]
            case "repeat":
                return content[:end] + content[start:end] + content[end:]
            case _:
                return content[:start] + self.odd + content[start:]


_KINDS = ("replace", "replace", "replace", "swap", "insert", "cut", "drop", "repeat")
_PLACES = st.integers(0, 1 << 20)
EDITS = st.lists(
    st.builds(
        Edit,
        st.sampled_from(_KINDS),
        _PLACES,
        _PLACES,
        st.sampled_from(_ODD) | st.binary(max_size=6),
    ),
    min_size=1,
    max_size=3,
)


def damaged(content: bytes, edits: list[Edit]) -> bytes:
    """Return the content after all changes."""
    for edit in edits:
        content = edit.apply(content)
    return content


def packed(content: bytes, packing: Literal["gzip", "zip"]) -> bytes:
    """Return the content as a compressed file or in an archive."""
    if packing == "gzip":
        return gzip.compress(content, mtime=0)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo("inner.json"), content)
    return stream.getvalue()
