"""A drawing surface that writes SVG, with axes, labels and estimates of text width.

All text from outside is escaped with `markupsafe.escape`. Colours are plain attributes, never style
attributes, so drawings work under the strictest content security policy. On a page, the colours are
`var(--chart-...)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Final
from unicodedata import combining, east_asian_width

from markupsafe import escape

from assay.report.junit import NOT_XML

SIZE: Final = 12.5
SMALL: Final = 11.5
BOLD: Final = 1.1
"""Width of bold text, relative to regular text."""
_TURNS: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NARROW_LETTERS: Final = frozenset("iIjlt.,:;|!'`()[]{}fr ")
_WIDE_LETTERS: Final = frozenset("mwMW@%")


class Canvas:
    """Collects the elements of one drawing. Coordinates are pixels, y grows downwards."""

    def __init__(self, width: float, colours: Mapping[str, str], *, links: bool = False) -> None:
        self.width = width
        self.height = 0.0
        self.colours = colours
        self.links = links
        self._parts: list[str] = []

    def add(
        self,
        element: str,
        spoken: str = "",
        href: str | None = None,
        **attributes: str | float | None,
    ) -> None:
        """Add an element; `spoken` is its tooltip and its text for screen readers, `href` a path on
        this server.
        """
        written = "".join(
            f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
            for name, value in attributes.items()
            if value is not None
        )
        inside = f"<title>{safe(spoken)}</title>" if spoken else ""
        drawn = f"<{element}{written}>{inside}</{element}>" if inside else f"<{element}{written}/>"
        if href is not None and self.links:
            drawn = f'<a href="{safe(href)}" aria-label="{safe(spoken)}">{drawn}</a>'
        self._parts.append(drawn)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        most: float | None = None,
        colour: str = "ink",
        size: float = SIZE,
        anchor: str | None = None,
        bold: bool = False,
        clear: bool = False,
    ) -> None:
        """Write text at its baseline, cut to `most` pixels (tooltip: whole text); with `clear`, it
        covers lines behind it.
        """
        shown = words if most is None else shortened(words, most / (BOLD if bold else 1), size)
        whole = f"<title>{safe(words)}</title>" if shown != words else ""
        anchored = "" if anchor is None else f' text-anchor="{anchor}"'
        style = ' font-weight="600"' if bold else ""
        if clear:
            style += f' paint-order="stroke" stroke="{self.colours["ground"]}" stroke-width="5" stroke-linejoin="round"'
        self._parts.append(
            f'<text x="{_value(x)}" y="{_value(y)}" font-size="{size}" fill="{self.colours[colour]}"{anchored}{style}>'
            f"{whole}{safe(shown)}</text>"
        )

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        colour: str = "grid",
        width: float = 1,
        dash: str | None = None,
    ) -> None:
        self.add(
            "line",
            x1=x1,
            y1=y1,
            x2=x2,
            y2=y2,
            stroke=self.colours[colour],
            stroke_width=None if width == 1 else width,
            stroke_dasharray=dash,
        )

    def bar(
        self, x1: float, x2: float, y: float, spoken: str, height: float = 8, colour: str = "band"
    ) -> None:
        """Draw a horizontal bar with round ends, centred on `y`; a bar of length 0 is visible
        too.
        """
        low, high = min(x1, x2), max(x1, x2)
        self.add(
            "rect",
            spoken,
            x=low,
            y=y - height / 2,
            width=max(high - low, 2),
            height=height,
            rx=height / 2,
            fill=self.colours[colour],
        )

    def dot(
        self,
        x: float,
        y: float,
        spoken: str,
        href: str | None = None,
        colour: str = "accent",
        r: float = 5,
    ) -> None:
        self.add("circle", spoken, href, cx=x, cy=y, r=r, fill=self.colours[colour])

    def mark(
        self,
        shape: str,
        x: float,
        y: float,
        r: float,
        spoken: str,
        href: str | None = None,
        **paint: str,
    ) -> None:
        """Draw a circle, diamond, square or triangle; all shapes have the same area."""
        if shape == "circle":
            self.add("circle", spoken, href, cx=x, cy=y, r=r, **paint)
            return
        r *= 1.2
        paths = {
            "diamond": f"M{_value(x)} {_value(y - r)}l{_value(r)} {_value(r)}l{_value(-r)} {_value(r)}l{_value(-r)} {_value(-r)}z",
            "square": f"M{_value(x - r * 0.75)} {_value(y - r * 0.75)}h{_value(1.5 * r)}v{_value(1.5 * r)}h{_value(-1.5 * r)}z",
            "triangle": f"M{_value(x)} {_value(y - r)}l{_value(r)} {_value(1.8 * r)}h{_value(-2 * r)}z",
        }
        self.add("path", spoken, href, d=paths[shape], **paint)

    def written(self) -> str:
        return "".join(self._parts)


class AxisScale:
    """Maps values to pixels, with round ticks that enclose all values."""

    def __init__(
        self,
        values: Sequence[float],
        start: float,
        end: float,
        *,
        most: int,
        within: tuple[float, float],
    ) -> None:
        """Choose at most about `most` ticks; the scale never extends beyond `within`."""
        self.ticks = nice_ticks(min(values), max(values), most, within)
        self._low, self._high = self.ticks[0], self.ticks[-1]
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        return self.start + (value - self._low) / (self._high - self._low) * (self.end - self.start)

    def words(self, tick: float, *, signed: bool = False) -> str:
        """Return a tick's label, with as many decimals as the step needs."""
        step = self.ticks[1] - self.ticks[0]
        places = 0 if step >= 1 else ceil(-log10(step) - 1e-9)
        text = f"{tick:{'+' if signed and abs(tick) > step / 2 else ''}.{places}f}"
        return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def nice_ticks(low: float, high: float, most: int, within: tuple[float, float]) -> list[float]:
    """Return round numbers at equal steps that enclose `low` and `high`; never fewer than two."""
    if high - low < 1e-9:
        low, high = low - 1, high + 1
    low, high = max(low, within[0]), min(high, within[1])
    rough = max(high - low, 1e-6) / max(most - 1, 1)
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [place * step for place in range(first, last + 1)]


def horizontal_axis(
    canvas: Canvas, scale: AxisScale, top: float, bottom: float, title: str, *, signed: bool = False
) -> float:
    """Draw vertical grid lines with labels and the title below; return the y position below
    them.
    """
    for tick in scale.ticks:
        canvas.line(scale(tick), top, scale(tick), bottom)
        words = scale.words(tick, signed=signed)
        canvas.text(scale(tick), bottom + 16, words, colour="soft", size=SMALL, anchor="middle")
    canvas.text(
        (scale.start + scale.end) / 2,
        bottom + 34,
        title,
        colour="soft",
        size=SMALL,
        anchor="middle",
    )
    return bottom + 42


def width_of(words: str, size: float = SIZE) -> float:
    """Estimate the width of a line in a sans-serif font, in pixels; the estimate errs on the wide
    side.
    """
    ems = 0.0
    for letter in words:
        if combining(letter):
            continue
        if east_asian_width(letter) in "WF":
            ems += 1.05
        elif letter in _NARROW_LETTERS:
            ems += 0.4
        elif letter in _WIDE_LETTERS:
            ems += 0.95
        else:
            ems += 0.7 if letter.isupper() else 0.6
    return ems * size


def shortened(words: str, most: float, size: float = SIZE) -> str:
    """Return the text, cut off with an ellipsis if it is wider than `most` pixels."""
    if width_of(words, size) <= most:
        return words
    kept, room = "", most - width_of("…", size)
    for letter in words:
        room -= width_of(letter, size)
        if room < 0:
            break
        kept += letter
    return f"{kept.rstrip()}…"


def safe(words: str) -> str:
    """Return escaped text, with U+FFFD in place of characters that XML forbids or that reverse the
    writing direction.
    """
    return str(escape(_TURNS.sub("\ufffd", NOT_XML.sub("\ufffd", words))))


def _value(value: str | float) -> str:
    return safe(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
