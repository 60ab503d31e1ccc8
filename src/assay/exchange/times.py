"""Times as other programs write them, in ours: ISO 8601 in UTC with `Z`."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

_FIRST = 946_684_800  # the year 2000: what claims to be earlier is no time of an evaluation
_LAST = 4_102_444_800


@lru_cache(maxsize=4096)
def from_unix(seconds: float | None) -> str | None:
    """Seconds since 1970 as text; None for what cannot be the time of an evaluation (some servers send their uptime)."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not _FIRST <= seconds < _LAST:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: object) -> str | None:
    """An ISO 8601 time with a zone as UTC; None for anything else, also for a time whose zone is not said."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if found.tzinfo is None:
        return None
    return found.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
