"""Read JSON Lines files. A line that cannot be read yields a sentence with the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO, Any, Final

import orjson

from assay.formats.json_size import parsed_bytes

MAX_LINE_BYTES: Final = 32 << 20
"""Longer lines are skipped, to limit memory use for any file."""

MAX_ROW_BYTES: Final = 160 << 20
"""Maximum memory for the parsed values of one line."""

_CHUNK: Final = 1 << 20
_CONFLICT: Final = re.compile(rb"(<{7}|={7}|>{7}|\|{7})( |\r?$)")
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_MOJIBAKE: Final = (
    b"\xc3\xa2\xe2\x82\xac",  # the beginning of a curly quote or dash, decoded as Windows-1252
    b"\xc3\x83\xc2",  # an accented letter that was decoded as Latin-1 twice
    b"\xc3\x83\xc6\x92",
    b"\xc3\xb0\xc5\xb8",  # the beginning of an emoji
    b"\\u00e2\\u20ac",
    b"\\u00c3\\u00",
    b"\\u00f0\\u0178",
)
_ACCENTED: Final = re.compile(rb"\xc3\x83(?:\xc2[\xa0-\xbf]|\xe2\x80[\x9a-\xba]|\xc5[\x92-\xbe])")


class TooLong(bytes):
    """The first bytes of a line that is too long to read; `length` and `most` are its length and
    the limit, in bytes.
    """

    length: int = 0
    most: int = 0


def lines_of(stream: IO[bytes], *, most: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    r"""Yield lines without `\n` and without a byte order mark; a line longer than `most` is yielded
    as `TooLong`.
    """
    rest = stream.read(_CHUNK).removeprefix(b"\xef\xbb\xbf")
    while rest:
        chunk = stream.read(_CHUNK)
        if not chunk:
            yield from _complete(rest)
            return
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        yield from lines
        if len(rest) > most:
            long = TooLong(rest[:200])
            long.length, long.most = len(rest), most
            rest = b""
            while True:
                chunk = stream.read(_CHUNK)
                head, separator, tail = chunk.partition(b"\n")
                long.length += len(head)
                if separator or not chunk:
                    rest = tail
                    break
            yield long
            if not rest:
                rest = stream.read(_CHUNK)
        elif not rest:
            rest = stream.read(_CHUNK)


def _complete(rest: bytes) -> Iterator[bytes]:
    lines = rest.split(b"\n")
    if not lines[-1]:
        lines.pop()
    yield from lines


def rows_of_text(head: bytes, *, whole: bool, most: int) -> tuple[dict[str, Any], ...]:
    """Return the JSON objects on the first lines of a file; empty if the file is not JSON Lines."""
    rows: list[dict[str, Any]] = []
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not whole:
        lines.pop()
    failed = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            failed += 1
            if failed > 20 and not rows:
                return ()
            continue
        if isinstance(value, dict):
            rows.append(value)
            if len(rows) == most:
                break
        else:
            failed += 1
    return (
        tuple(rows) if len(rows) > failed else () if not rows else _unless_a_document(rows, lines)
    )


def _unless_a_document(
    rows: list[dict[str, Any]], lines: list[bytes]
) -> tuple[dict[str, Any], ...]:
    """Return the rows, or an empty tuple if they are parts of one document that spans several
    lines.
    """
    first = next((line for line in lines if line.strip()), b"")
    return () if first.strip() in (b"{", b"[", b"[{") else tuple(rows)


def row_of(line: bytes) -> dict[str, Any] | str:
    """Return the JSON object on a line, or a sentence with the reason why the line has no such
    object.
    """
    if isinstance(line, TooLong):
        return (
            f"is one line of {line.length / 1e6:.1f} MB, but Assay reads at most {line.most >> 20} MB per line. Is it a JSON "
            "document without line breaks?"
        )
    if len(line) > _CHUNK and parsed_bytes(line, most=MAX_ROW_BYTES) > MAX_ROW_BYTES:
        return f"is one line whose values would take more than {MAX_ROW_BYTES >> 20} MB of memory."
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return trouble(line, error)
    if isinstance(value, dict):
        return value
    return f"holds {_kind(value)}, not a JSON object."


def trouble(line: bytes, error: orjson.JSONDecodeError | None = None) -> str:
    stripped = line.strip()
    if _CONFLICT.match(stripped):
        return "is a Git conflict marker: the file was saved during a merge. Resolve the conflict and import the file again."
    if line.startswith(_LFS):
        return "is a Git LFS pointer, not the file itself. Fetch it with `git lfs pull`."
    if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "is UTF-16 text; save the file as UTF-8."
    if b"\0" in line:
        return "contains a NUL byte, which JSON does not allow. The file is damaged, or it is UTF-16 text."
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as wrong:
        return f"is not UTF-8 text: byte 0x{line[wrong.start]:02x} at column {wrong.start + 1}."
    message = "" if error is None else error.msg
    if "recursion" in message.lower() or deep(line):
        return "is nested too deeply to be read."
    odd = _odd_constant(line)
    if odd is not None:
        return f"contains {odd}, which is not a JSON number."
    if stripped[:1] in (b"{", b"[") and _is_cut(stripped):
        return "is cut off: the line ends in the middle of a JSON value."
    column = 0 if error is None else error.colno
    return f"is not JSON: {_reason(message)}" + (f" at column {column}." if column else ".")


def deep(content: bytes, *, levels: int = 900) -> bool:
    """True if brackets open more than `levels` deep.

    Brackets in strings count, so this quick check may overestimate.
    """
    depth = most = 0
    for bracket in re.finditer(rb"[\[{]|[\]}]", content):
        depth += 1 if bracket[0] in (b"[", b"{") else -1
        most = max(most, depth)
        if most > levels:
            return True
    return False


def file_trouble(head: bytes) -> str | None:
    """Return the reason why a file cannot contain results, judging by its first bytes; None if it
    may contain results.
    """
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        return "is empty."
    if head.startswith(_LFS):
        return "is a Git LFS pointer, not the file itself. Fetch it with `git lfs pull`."
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "is UTF-16 text; save the file as UTF-8."
    if any(
        _CONFLICT.match(line) for line in head[:65536].split(b"\n")[:2000] if line[:7] == b"<<<<<<<"
    ):
        return "contains Git conflict markers: it was saved during a merge. Resolve the conflict and import the file again."
    return None


def mojibake(content: bytes) -> str | None:
    """Return a piece of text that an earlier program decoded with the wrong encoding, or None.

    Examples are `Ã©` for `é` and `â€™` for `’`: UTF-8 bytes decoded as Windows-1252 or Latin-1.
    Assay only reports such text, because the right correction is unknown.
    """
    for sign in _MOJIBAKE:
        at = content.find(sign)
        if at >= 0:
            return content[at : at + 12].decode("utf-8", "ignore")
    match = _ACCENTED.search(content)
    return None if match is None else match[0].decode("utf-8", "ignore")


def _is_cut(line: bytes) -> bool:
    inside = False
    depth = 0
    skip = False
    for byte in line:
        if skip:
            skip = False
        elif inside:
            if byte == 0x5C:
                skip = True
            elif byte == 0x22:
                inside = False
        elif byte == 0x22:
            inside = True
        elif byte in (0x7B, 0x5B):
            depth += 1
        elif byte in (0x7D, 0x5D):
            depth -= 1
    return inside or depth > 0


def _odd_constant(line: bytes) -> str | None:
    seen: list[str] = []
    try:
        json.loads(line, parse_constant=seen.append)
    except (ValueError, RecursionError):
        return None
    return seen[0] if seen else None


def _reason(message: str) -> str:
    message = message.split(":")[0].strip().rstrip(".")
    return message[:1].lower() + message[1:] if message else "it cannot be parsed"


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "a list"
        case str():
            return "a text"
        case bool():
            return "true or false"
        case _:
            return "a number"
