"""Colours of charts by name, in three versions: light, dark, and as CSS variables that a page
defines.
"""

from __future__ import annotations

from typing import Final

LIGHT: Final = {
    "ink": "#23201c",
    "soft": "#6a6258",
    "grid": "#e5dfd2",
    "ground": "#fffefb",
    "accent": "#8a4f12",
    "band": "#e3c48f",
    "better": "#1d6b47",
    "worse": "#a2331f",
    "open": "#6a6258",
    "equal": "#8a5300",
    "fix": "#26608a",
    "better_fill": "#e6f2e9",
    "worse_fill": "#fae9e4",
    "open_fill": "#f5f1e8",
    "equal_fill": "#fdf2dc",
}

DARK: Final = {
    "ink": "#ebe6dc",
    "soft": "#a59d90",
    "grid": "#35312b",
    "ground": "#1e1c1a",
    "accent": "#e3ac60",
    "band": "#6b4f22",
    "better": "#67c398",
    "worse": "#f08e78",
    "open": "#a59d90",
    "equal": "#e8ad55",
    "fix": "#7ab6e2",
    "better_fill": "#1c2f26",
    "worse_fill": "#3a2019",
    "open_fill": "#191816",
    "equal_fill": "#33280f",
}

PAGE: Final = {name: f"var(--chart-{name.replace('_', '-')})" for name in LIGHT}
"""Colours for drawings inside a page, which work in light and in dark mode."""
