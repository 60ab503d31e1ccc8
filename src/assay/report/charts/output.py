"""Output of charts as SVG, PNG, Vega-Lite and CSV.

SVG is drawn here without any package. PNG and Vega-Lite need the extra `charts` (Altair and vl-convert). Light and dark
specifications differ only in their config. vl-convert draws in a child process, and its settings forbid network access.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from assay.domain.digest import JsonValue
from assay.domain.errors import InputError
from assay.report.charts.chart import DRAWING_ONLY, Chart
from assay.report.charts.colours import DARK, LIGHT, PAGE
from assay.report.charts.kinds import DRAWN
from assay.report.charts.renderer import shared_renderer
from assay.report.charts.svg.drawing import draw_file, draw_for_page
from assay.report.charts.vega import ROW_HEIGHT, WIDTH, configured
from assay.report.junit import NOT_XML

FORMATS: Final = ("svg", "png", "csv", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart for a page or a report. `svg`: HTML with a wide and a narrow version, without styles, scripts or outside URLs."""

    kind: str
    title: str
    about: str
    svg: str


def drawing(chart: Chart) -> Drawing:
    """Draw a chart for a page; the page's style defines `--chart-ink` and so on, and hides one of the `.drawn` versions."""
    return Drawing(kind=chart.kind, title=chart.title, about=chart.about, svg=draw_for_page(chart, PAGE))


def can_draw() -> bool:
    """True if Altair and vl-convert are installed, which PNG and Vega-Lite need; imports neither package."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def as_csv(chart: Chart) -> str:
    """Write all rows as a table, even if only some of them are drawn."""
    target = io.StringIO()
    names = [name for name in chart.rows[0] if name not in DRAWING_ONLY] if chart.rows else []
    writer = csv.DictWriter(target, names, lineterminator="\n")
    writer.writeheader()
    for row in chart.rows if chart.every is None else chart.every():
        writer.writerow({name: _safe_cell(row[name]) for name in names})
    return target.getvalue()


def specification(chart: Chart, *, dark: bool = False) -> dict[str, JsonValue]:
    """Return the chart as Vega-Lite; needs Altair."""
    alt = _altair()
    colours = DARK if dark else LIGHT
    if not chart.rows:
        drawn = alt.Chart(alt.Data(values=[{"text": "No trials count yet."}])).mark_text(size=14, color=colours["soft"])
        drawn = drawn.encode(text="text:N").properties(width=WIDTH, height=2 * ROW_HEIGHT)
    else:
        drawn = DRAWN[chart.kind](alt, chart, colours)
    title = alt.TitleParams(chart.title, subtitle=_wrapped(chart.about, 100 if chart.kind != "pairs" else 64))
    spec: dict[str, Any] = configured(drawn.properties(title=title), colours).to_dict()
    spec["description"] = chart.about
    return spec


def as_json(chart: Chart, *, dark: bool = False) -> str:
    return json.dumps(specification(chart, dark=dark), ensure_ascii=False, allow_nan=False, indent=1)


def as_svg(chart: Chart, *, dark: bool = False) -> str:
    """Draw the chart as an SVG file with its title; needs no extra."""
    return draw_file(chart, DARK if dark else LIGHT)


def as_png(chart: Chart, *, dark: bool = False, scale: float = 2.0) -> bytes:
    """Draw the chart as PNG, without network access."""
    if find_spec("vl_convert") is None:
        raise _lacking("vl-convert-python")
    return shared_renderer().draw(_drawable(specification(chart, dark=dark)), scale=scale)


def _drawable(value: JsonValue) -> JsonValue:
    """Return a specification with U+FFFD in place of characters that XML forbids, which would make vl-convert abort."""
    match value:
        case str():
            return NOT_XML.sub("\ufffd", value)
        case list():
            return [_drawable(inner) for inner in value]
        case dict():
            return {str(_drawable(key)): _drawable(inner) for key, inner in value.items()}
    return value


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap the text to as few lines as possible, of similar length, so that no line has only one word."""
    n_lines = -(-len(text) // width)
    width = min(width, len(text) // n_lines + 8)
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _safe_cell(value: str | float | None) -> str | float | None:
    """Return the cell with a leading quote if a spreadsheet would run it as a formula."""
    # A negative number begins like a formula but must stay a number.
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and not _is_number(value) else value


def _is_number(text: str) -> bool:
    return text.lstrip("+−-").replace(".", "", 1).isdigit()


def _altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise _lacking("altair") from error
    return altair


def _lacking(package: str) -> InputError:
    return InputError(
        "chart",
        f"PNG and Vega-Lite need {package}, which is not installed.",
        remedy='Install the extra: pip install "assay-bench[charts]". SVG and CSV need no extra: --output FILE.svg.',
    )
