"""Scores the share of the reference's words that a response contains."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.plugins import JsonValue


def words_present(response: str, reference: str, options: Mapping[str, JsonValue], /) -> object:
    """Return the share with a note."""
    words = reference.lower().split()
    present = [word for word in words if word in response.lower()]
    return (
        {"score": len(present) / len(words), "note": f"{len(present)} of {len(words)} words"}
        if words
        else None
    )
