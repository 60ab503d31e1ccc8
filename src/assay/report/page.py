"""The report as one HTML file that has no scripts, fetches nothing and prints well."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from assay.report import text_tables, wording
from assay.report.charts.colours import LIGHT

if TYPE_CHECKING:
    from assay.report.summary import ReportContents

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Content policy inside the file itself: even hostile content could neither run nor fetch anything.
"""


def html(report: ReportContents) -> str:
    """Write the whole document.

    All text is escaped; only Assay's own drawings are inserted as markup.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(str(resources.files("assay") / "report" / "templates"))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    tasks_header, tasks, tasks_left_out = text_tables.task_rows(report)
    criteria_header, criteria = text_tables.criterion_rows(report)
    # Assay's own drawings
    return environment.get_template("report.html").render(
        report=report,
        policy=_POLICY,
        wording=wording,
        count=wording.count,
        ranked=report.ranking.candidates,
        scores=text_tables.score_rows(report),
        pairs=[text_tables.pair_row(pair) for pair in report.ranking.compared],
        comparisons=wording.comparisons_made(report.ranking),
        pair_header=text_tables.PAIR_HEADER,
        tasks_header=tasks_header,
        tasks=tasks,
        tasks_left_out=tasks_left_out,
        criteria_header=criteria_header,
        criteria=criteria,
        guidance=[criterion for criterion in report.criteria if criterion.guidance],
        counts=text_tables.counts_sentence(report),
        drawings=[(drawing, Markup(drawing.svg)) for drawing in report.drawings],
        chart_colours={name.replace("_", "-"): colour for name, colour in LIGHT.items()},
    )
