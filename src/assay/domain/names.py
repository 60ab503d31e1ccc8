"""Validation rule for names of suites, tasks, candidates, judges, criteria, tags and batches."""

from __future__ import annotations

import re
from typing import Final

LONGEST_NAME: Final = 200

_NONCHARACTERS: Final = "".join(
    chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
# Control characters, line ends, lone surrogates, characters that reverse the direction of text, and
# code points that Unicode assigns to no character. They can control a terminal, mislead a reader,
# or crash a process that draws them. Joiners are allowed, because emoji and some scripts need them.
_MISLEADING: Final = re.compile(
    f"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]"
)


def name_problem(name: str) -> str | None:
    """Return the reason why a name is invalid, as the end of a sentence that begins with the name;
    None if valid.
    """
    if len(name) > LONGEST_NAME:
        return f"which has {len(name):,} characters; a name has at most {LONGEST_NAME}."
    if not name.isprintable() and _MISLEADING.search(name):
        return "expected a name on one line without control characters."
    return None
