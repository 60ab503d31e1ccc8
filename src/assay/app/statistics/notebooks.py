"""Show results in notebooks as HTML without scripts or URLs, or as data frames.

All names are escaped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from assay.app.wire import to_json
from assay.domain.errors import InputError
from assay.report import wording

if TYPE_CHECKING:
    import pandas
    import polars

    from assay.statistics.comparisons import Comparison
    from assay.statistics.estimates import Estimate
    from assay.statistics.ranking import Ranking

FrameLibrary: TypeAlias = Literal["pandas", "polars"]
Frame: TypeAlias = "pandas.DataFrame | polars.DataFrame"
"""A data frame of the library that is asked for, imported or installed."""

FRAMES: Final[tuple[FrameLibrary, ...]] = ("pandas", "polars")
_MAX_ROWS: Final = 20
_HEIGHT: Final = 22
_LABELS: Final = 190
_WIDTH: Final = 640
_VALUES: Final = 150

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Characters that change the direction of text or are not allowed in documents."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One line of a drawing: a dot at `value`, and the interval if known."""

    label: str
    value: float | None
    ci95: tuple[float, float] | None
    words: str


def safe(text: object) -> str:
    """Escape text for HTML, and replace control characters and direction marks."""
    return escape(_UNSEEN.sub("\ufffd", str(text)))


def html_of(sentences: Sequence[str], *, picture: str = "", notes: Sequence[str] = ()) -> str:
    """Return HTML with sentences (the first in bold), a drawing, and notes in small print."""
    parts = [
        f"<p>{'<b>' if place == 0 else ''}{safe(text)}{'</b>' if place == 0 else ''}</p>"
        for place, text in enumerate(sentences)
    ]
    parts += [picture] if picture else []
    parts += [f"<p><small>{safe(note)}</small></p>" for note in notes]
    return f'<div class="assay">{"".join(parts)}</div>'


def drawing(marks: Sequence[Mark], *, low: float = 0.0, high: float = 1.0) -> str:
    """Return the marks as SVG on a scale from `low` to `high`; needs no optional package."""
    shown = marks[:_MAX_ROWS]
    if not shown:
        return ""
    span = _WIDTH - _LABELS - _VALUES
    ink = 'stroke="currentColor"'

    def x(value: float) -> str:
        return f"{_LABELS + span * (min(max(value, low), high) - low) / (high - low):.1f}"

    bottom = _HEIGHT * len(shown)
    lines = []
    for v in sorted({low, 0.0, high}):
        lines.append(
            f'<line x1="{x(v)}" x2="{x(v)}" y1="0" y2="{bottom}" {ink} stroke-opacity="0.25"/>'
        )
        lines.append(
            f'<text x="{x(v)}" y="{bottom + 14}" text-anchor="middle">{wording.number(v)}</text>'
        )
    for place, mark in enumerate(shown):
        y = _HEIGHT * place + _HEIGHT // 2
        label = mark.label if len(mark.label) <= 28 else f"{mark.label[:27]}…"
        lines.append(
            f'<text x="{_LABELS - 8}" y="{y + 4}" text-anchor="end"><title>{safe(mark.label)}</title>{safe(label)}</text>'
        )
        if mark.ci95 is not None:
            lines.append(
                f'<line x1="{x(mark.ci95[0])}" x2="{x(mark.ci95[1])}" y1="{y}" y2="{y}" {ink} stroke-width="2"/>'
            )
        if mark.value is not None:
            lines.append(f'<circle cx="{x(mark.value)}" cy="{y}" r="4"/>')
        lines.append(f'<text x="{_WIDTH - _VALUES + 10}" y="{y + 4}">{safe(mark.words)}</text>')
    if left_out := len(marks) - len(shown):
        lines.append(
            f'<text x="{_LABELS - 8}" y="{bottom + 14}" text-anchor="end">and {left_out} more</text>'
        )
    size = f'width="{_WIDTH}" height="{bottom + 20}" viewBox="0 0 {_WIDTH} {bottom + 20}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} fill="currentColor" font-size="12">{"".join(lines)}</svg>'


def estimate_marks(estimates: Sequence[Estimate]) -> list[Mark]:
    return [
        Mark(
            label=str(estimate.candidate),
            value=estimate.mean,
            ci95=estimate.ci95,
            words="no trial counts"
            if estimate.mean is None
            else _figures(estimate.mean, estimate.ci95),
        )
        for estimate in estimates
    ]


def difference_drawing(comparison: Comparison) -> str:
    if comparison.difference is None:
        return ""
    ends = (comparison.difference, *(comparison.ci95 or ()))
    reach = min(1.0, max(0.05, *(1.2 * abs(end) for end in ends)))
    words = wording.signed(comparison.difference)
    if comparison.ci95 is not None:
        words = f"{words} ({wording.difference_range(comparison.ci95)})"
    label = f"{comparison.a} − {comparison.b}"
    mark = Mark(label=label, value=comparison.difference, ci95=comparison.ci95, words=words)
    return drawing([mark], low=-reach, high=reach)


def estimate_rows(estimates: Sequence[Estimate]) -> list[dict[str, Any]]:
    return [
        {
            "candidate": str(estimate.candidate),
            "mean": estimate.mean,
            "sd": estimate.sd,
            "min": estimate.min,
            "max": estimate.max,
            "n_trials": estimate.n_trials,
            "n_tasks": estimate.n_tasks,
            "scope": estimate.scope,
            "method": estimate.method,
            "reason": estimate.reason,
            **_ends(estimate.ci95),
        }
        for estimate in estimates
    ]


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    return [{**to_json(task), "task": str(task.task)} for task in comparison.by_task]


def ranking_rows(ranking: Ranking) -> list[dict[str, Any]]:
    """Return a row for each candidate, highest rank first."""
    return [
        {
            "candidate": str(place.candidate),
            "mean": place.estimate.mean,
            **_ends(place.estimate.ci95),
            "rank": place.rank,
            "rank_low": place.rank_low,
            "rank_high": place.rank_high,
            "n_trials": place.estimate.n_trials,
        }
        for place in ranking.candidates
    ]


def frame_of(rows: Sequence[Row], library: FrameLibrary | None = None) -> Frame:
    """Return rows as a data frame of pandas or polars; raises `InputError` if the wanted library is
    not installed.

    Without `library`, it uses a library that the program has already imported, otherwise an
    installed one (pandas first).
    """
    if library is not None and library not in FRAMES:
        raise InputError("library", f"is {library!r}, expected pandas or polars.")
    wanted = FRAMES if library is None else (library,)
    installed = [name for name in wanted if name in sys.modules or find_spec(name) is not None]
    if not installed:
        raise InputError(
            "to_frame",
            f"needs {' or '.join(wanted)}, which is not installed.",
            remedy=f"Run: pip install {wanted[0]}",
        )
    chosen = next((name for name in installed if name in sys.modules), installed[0])
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    frame: Frame
    if chosen == "pandas":
        import pandas

        frame = pandas.DataFrame(columns)
    else:
        import polars

        frame = polars.DataFrame(columns)
    return frame


def _ends(ci95: tuple[float, float] | None) -> dict[str, float | None]:
    low, high = (None, None) if ci95 is None else ci95
    return {"ci95_low": low, "ci95_high": high}


def _figures(value: float, ci95: tuple[float, float] | None) -> str:
    return (
        wording.number(value)
        if ci95 is None
        else f"{wording.number(value)} ({wording.range_words(ci95)})"
    )
