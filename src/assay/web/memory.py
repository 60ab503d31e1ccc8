"""Settings of the C library's allocator for a server with many threads, so that freed memory
returns to the system.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # from malloc.h of the GNU C library
_ARENAS: Final = 2
_LARGE: Final = 256 * 1024
"""Blocks of this many bytes or more are mapped one by one, and returned when they are freed."""


def bound_allocator() -> None:
    """Limit the memory that this process keeps after use; does nothing without the GNU C library.

    By default each thread gets an arena of its own, up to eight for each core, and each keeps the
    most it ever used. The threshold above which a block is returned rises with every large array
    that is freed.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    for parameter, value in (
        (_ARENA_MAX, _ARENAS),
        (_MMAP_THRESHOLD, _LARGE),
        (_TRIM_THRESHOLD, _LARGE),
    ):
        mallopt(parameter, value)
