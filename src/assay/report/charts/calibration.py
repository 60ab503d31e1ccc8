"""Calibration chart: a judge's scores plotted against the reference scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.report import wording
from assay.report.charts.chart import SPOKEN, Chart


def calibration(samples: Sequence[Mapping[str, Any]]) -> Chart:
    """Chart the judge's scores against reference scores: one circle for each pair of scores, larger
    if more references share it.

    `samples`: records with `id`, `expected` and `judged` (both between 0 and 1), and `passed`.
    """
    names_at: dict[tuple[float, float, bool], list[str]] = {}
    for sample in samples:
        place = (
            round(float(sample["expected"]), 3),
            round(float(sample["judged"]), 3),
            bool(sample["passed"]),
        )
        names_at.setdefault(place, []).append(str(sample["id"]))
    rows = tuple(
        {
            "deserved": 100 * deserved,
            "given": 100 * given,
            "n": len(names),
            "within": "within tolerance" if passed else "outside tolerance",
            "references": ", ".join(names[:12]) + (", …" if len(names) > 12 else ""),
            SPOKEN: f"deserved {wording.number(deserved)}, given {wording.number(given)}: "
            f"{wording.count(len(names), 'reference')}, {'within tolerance' if passed else 'outside tolerance'}",
        }
        for (deserved, given, passed), names in sorted(names_at.items())
    )
    return Chart(
        kind="calibration",
        title="Judge's scores against reference scores",
        about="Each mark is one pair of scores, larger if more references share it. On the dashed line, both scores are "
        "equal; above it, the judge's is higher.",
        rows=rows,
    )
