"""Contents of a report, independent of its format; `app` creates them, and `page` and `text_tables`
write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.analysis.verdict_rates import VerdictRates
    from assay.domain.review import Approvals
    from assay.domain.run_choice import RunsRead
    from assay.domain.selection import Excluded
    from assay.report.charts.output import Drawing
    from assay.statistics.estimates import Estimate
    from assay.statistics.ranking import Ranking
    from assay.statistics.warnings import Caution


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionPart:
    """One criterion of a suite's rubric, with each candidate's mean; the mean is None if no trial
    counts.
    """

    suite: str
    name: str
    weight: float
    scale: tuple[float, float]
    guidance: str
    means: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """A run, as pairs of name and text; `models` has a row for each model that was asked."""

    id: str
    facts: tuple[tuple[str, str], ...]
    models: tuple[Mapping[str, str], ...]

    @property
    def model_rows(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(row.values()) for row in self.models)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPart:
    """A review decision, as text."""

    at: str
    about: str
    verb: str
    reviewer: str
    how: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContents:
    """All contents of a report.

    Attributes:
        about: the selection, in a sentence.
        read: the runs behind the results. Every caption is labelled if they differ in what they
            measure.
        rates: the rate of each verdict per candidate; None if the runs give no verdicts.
        verdicts: sentences with these rates, and sentences that compare the best candidate with
            every other one.
        criteria: the rubrics of the selected runs, with means in the order of `estimates`.
        behind: diagnostics as sentences, which are not part of the result.
        counted: number of trials that count.
        approvals: number of counted grades that people approved, by how each decision came about.
        how_reviewed: lines that state what the reviews achieved, and signs of careless reviewing.
        reviews: the newest decisions, sorted from oldest to newest; `reviews_left_out`: number of
            earlier decisions left out.
        runs: the newest runs, newest first; `runs_left_out`: number of older runs left out.
    """

    title: str
    written: str
    about: str
    read: RunsRead
    anonymised: bool
    estimates: tuple[Estimate, ...]
    ranking: Ranking
    rates: VerdictRates | None
    verdicts: tuple[str, ...]
    criteria: tuple[CriterionPart, ...]
    behind: tuple[str, ...]
    counted: int
    approvals: Approvals
    how_reviewed: tuple[str, ...]
    excluded: Excluded
    cautions: tuple[Caution, ...]
    drawings: tuple[Drawing, ...]
    reviews: tuple[ReviewPart, ...]
    reviews_left_out: int
    runs: tuple[RunPart, ...]
    runs_left_out: int
