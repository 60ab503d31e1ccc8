"""PNG pictures read far enough to tell a colour."""

from __future__ import annotations

import struct
import zlib


def pixel(png: bytes, x: int, y: int) -> tuple[int, ...]:
    """Red, green and blue of one pixel of an 8-bit picture without interlacing."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8
    assert kind in (2, 6)
    step = 3 if kind == 2 else 4
    assert x < width
    assert y < height
    data = zlib.decompress(b"".join(content for name, content in _chunks(png) if name == b"IDAT"))
    row = bytes(width * step)
    for line in range(y + 1):
        start = line * (width * step + 1)
        row = _unfiltered(data[start], data[start + 1 : start + 1 + width * step], row, step)
    return tuple(row[x * step : x * step + 3])


def size(png: bytes) -> tuple[int, int]:
    """Width and height."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def _chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    result, place = [], 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        result.append((png[place + 4 : place + 8], png[place + 8 : place + 8 + length]))
        place += 12 + length
    return result


def _unfiltered(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    row = bytearray(line)
    for place in range(len(row)):
        left = row[place - step] if place >= step else 0
        up = above[place]
        corner = above[place - step] if place >= step else 0
        row[place] = (
            row[place] + (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]
        ) & 255
    return bytes(row)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))
