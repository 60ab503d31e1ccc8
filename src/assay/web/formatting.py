"""Times and counts as text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Iterable


def when(at: str) -> str:
    """Return an ISO 8601 time as UTC date and time, to the minute."""
    return f"{at[:10]} {at[11:16]} UTC"


def time_element(at: str, precision: Literal["day", "minute", "second"] = "minute") -> Markup:
    """Return a UTC time as an HTML element, which the script `frame/times.js` converts to the
    reader's time zone.
    """
    text = {"day": at[:10], "minute": when(at), "second": f"{at[:10]} {at[11:19]} UTC"}[precision]
    return Markup('<time datetime="{}" title="{}" data-{}>{}</time>').format(
        at, when(at), precision, text
    )


def with_time_elements(text: str, times: Iterable[str]) -> Markup:
    """Return a sentence as HTML, with an element in place of each of these times that it states to
    the minute.
    """
    html = escape(text)
    # Two times in one minute are the same words; replacing them twice would put an element into an
    # element.
    for minute, at in {when(at): at for at in times}.items():
        html = html.replace(minute, time_element(at))
    return html


def ago(at: str, now: str) -> Markup:
    """Return the time since `at` as an HTML element, in minutes, hours or days; after a week, the
    date.
    """
    try:
        passed = (datetime.fromisoformat(now) - datetime.fromisoformat(at)).total_seconds()
    except (ValueError, TypeError):  # an imported log may state any time
        return time_element(at)
    for unit, length, most in (("minute", 60, 60), ("hour", 3600, 24), ("day", 86_400, 7)):
        number = int(passed // length)
        if number < most:
            text = f"{number} {plural(number, unit, unit + 's')} ago" if number > 0 else "just now"
            return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(
                at, when(at), text
            )
    return time_element(at, "day")


def seconds(value: float) -> str:
    """Return seconds with two or three significant digits."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def plural(number: int, singular: str, several: str) -> str:
    """Return the singular or plural form for a number. Templates use `ngettext` instead."""
    return singular if number == 1 else several
