"""Words for signs of careless reviewing, for every surface that prints a result of reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.attention import FASTEST_WPM, LONG_RUN, TOO_QUICK_S
from assay.report.wording.numbers import count

if TYPE_CHECKING:
    from assay.domain.attention import Attention


def attention(signs: Attention) -> str:
    """State the share of decisions that were too quick, and other signs; empty if nothing was
    decided on a screen.

    Example: `41 of 107 decisions took under 1 s, 63 were faster than their answers can be read (600
    words per minute)`.
    """
    parts = [*_times(signs), *_runs(signs), *_planted(signs)]
    return "; ".join(parts)


def _times(signs: Attention) -> list[str]:
    if not signs.decisions:
        return []
    if not signs.timed:
        return [f"time not measured for {count(signs.decisions, 'decision')}"]
    unread = "was" if signs.unread == 1 else "were"
    timed = [
        f"{signs.too_quick:,} of {count(signs.timed, 'decision')} took under {TOO_QUICK_S:g} s",
        f"{signs.unread:,} {unread} faster than the answers can be read ({FASTEST_WPM:,} words per minute)",
    ]
    lacking = [f"time not measured for {signs.not_timed:,}"] if signs.not_timed else []
    return [", ".join(timed), *lacking]


def _runs(signs: Attention) -> list[str]:
    if signs.longest_run < LONG_RUN:
        return []
    return [f"{signs.longest_run:,} approvals in a row by one reviewer"]


def _planted(signs: Attention) -> list[str]:
    if not signs.planted:
        return []
    return [f"{signs.missed:,} of {count(signs.planted, 'planted error')} missed"]
