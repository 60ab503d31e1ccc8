"""Writes `task candidate score` on lines of plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.plugins import Exported

if TYPE_CHECKING:
    from assay.plugins import ExportRequest


def export_lines(request: ExportRequest, /) -> Exported:
    """Write every score that counts."""
    rows = 0
    with request.open_output() as output:
        for row in request.score_rows():
            output.write(f"{row.task} {row.candidate} {row.score}\n")
            rows += 1
    return Exported(format=request.format, output=request.output, rows=rows, unseen=None)
