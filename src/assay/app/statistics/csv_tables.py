"""Write the tables of the statistics page as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.formats.csv_lines import CsvLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.analysis.diagnostics import ScoreDiagnostics, Split
    from assay.app.statistics.live_report import StatisticsDetails, StatisticsOverview

    Row = tuple[str | int | float | None, ...]

TABLES: Final = ("tasks", "criteria", "judges", "trials", "fairness", "attempts")
"""`tasks`: task by candidate. The next three: scores by criterion, by judge, and by trial number.
`fairness`: decisions on each candidate's assessments. `attempts`: scores over first and over final
attempts, and with rejected trials counted as 0, as judged, and as 1.
"""

_SPLIT: Final = ("candidate", "mean", "ci95_low", "ci95_high", "trials", "tasks")


_DECISIONS: Final = {"judged": "n_judged", "decided": "n_decided"} | {
    **{name: name for name in ("approved", "corrected", "rejected", "rerun")},
    "graded_by_person": "by_person",
}
"""Columns of the table `fairness`, and the fields shown in them."""


def needs_every_row(name: str) -> bool:
    """True if a table needs every row of the selection; other tables need only cached cells."""
    return name != "tasks"


def tasks_csv(overview: StatisticsOverview) -> str:
    """Return a CSV with the mean and number of trials of each task and candidate; the mean is empty
    without trials.
    """
    rows: list[Row] = []
    by_name = {
        str(estimate.candidate): {str(task.task): task for task in estimate.by_task}
        for estimate in overview.report.estimates
    }
    for name, label in overview.tasks.items():
        for candidate in (str(ranked.candidate) for ranked in overview.report.ranking.candidates):
            cell = by_name[candidate].get(name)
            mean, trials = (None, 0) if cell is None else (cell.mean, cell.n_trials)
            rows.append((label.suite, name, label.thing, label.weight, candidate, mean, trials))
    return _csv(("suite", "task", "thing", "weight", "candidate", "mean", "trials"), rows)


def details_csv(name: str, details: StatisticsDetails) -> str:
    """Return a CSV of any table in `TABLES` except `tasks`; these tables need every row."""
    diagnostics = details.standing.diagnostics
    assert diagnostics is not None  # details are always read with diagnostics
    match name:
        case "criteria":
            return _splits("criterion", diagnostics.by_criterion)
        case "judges":
            return _splits("judge", diagnostics.by_judge)
        case "trials":
            return _splits("trial", diagnostics.by_trial)
        case "fairness":
            header = ("candidate", *_DECISIONS)
            rates = diagnostics.fair_play.rates
            return _csv(
                header,
                [
                    (each.candidate, *(getattr(each, name) for name in _DECISIONS.values()))
                    for each in rates
                ],
            )
        case _:
            return _attempts(diagnostics)


def _attempts(diagnostics: ScoreDiagnostics) -> str:
    header = ("candidate", "first", "final", "rejected_as_0", "rejected_as_judged", "rejected_as_1")
    columns = (
        diagnostics.first_attempts,
        diagnostics.final_attempts,
        diagnostics.rejected_worst,
        diagnostics.with_rejected,
        diagnostics.rejected_best,
    )
    means = [{str(estimate.candidate): estimate.mean for estimate in of} for of in columns]
    names = list(dict.fromkeys(name for of in means for name in of))
    return _csv(header, [(name, *(of.get(name) for of in means)) for name in names])


def _splits(kind: str, splits: Sequence[Split]) -> str:
    rows: list[Row] = []
    for split in splits:
        for estimate in split.estimates:
            low, high = estimate.ci95 or (None, None)
            rows.append(
                (
                    split.name,
                    str(estimate.candidate),
                    estimate.mean,
                    low,
                    high,
                    estimate.n_trials,
                    estimate.n_tasks,
                )
            )
    return _csv((kind, *_SPLIT), rows)


def _csv(header: Sequence[str], rows: Sequence[Row]) -> str:
    lines: list[str] = []
    table = CsvLines(lines.append, header)
    for row in rows:
        table.row(row)
    return "".join(lines)
