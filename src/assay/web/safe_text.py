"""Make invisible and direction-changing characters visible."""

from __future__ import annotations

import re
from typing import Final

# Direction marks make code look different from what it does (Trojan Source, CVE-2021-42574). Tabs
# and line ends stay.
_UNSEEN: Final = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """Replace each invisible or direction-changing character by its code point."""
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
