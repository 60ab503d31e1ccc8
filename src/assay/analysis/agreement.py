"""Agreement between judges and people, and between several judges, for diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.analysis.review_tables import in_state
from assay.domain.lifecycle import AssessmentState
from assay.statistics.agreement import Alpha, krippendorff_alpha
from assay.statistics.icc import IntraclassCorrelations, icc
from assay.statistics.judge_accuracy import Calibration, calibration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.analysis.columns import ReviewColumns

TOLERANCE = 0.05
"""Two scores that differ by at most this much count as agreeing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgainstPeople:
    """A judge's scores compared with the scores after review.

    Rejected assessments are left out because they have no score from a person. Reviewers saw the judge's score first, so this
    figure overestimates the true agreement.
    """

    judge: str
    n_corrected: int
    calibration: Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgesAmongThemselves:
    """Agreement between judges that scored the same responses."""

    judges: tuple[str, ...]
    alpha: Alpha
    icc: IntraclassCorrelations


def judges_against_people(columns: ReviewColumns, *, candidates: Sequence[str] | None = None) -> tuple[JudgeAgainstPeople, ...]:
    """Compare each judge with people over all approved and corrected assessments, for judges with at least one correction."""
    vetted = in_state(columns, AssessmentState.APPROVED, AssessmentState.CORRECTED) & columns.by_model
    vetted &= ~np.isnan(columns.judged) & ~np.isnan(columns.final) & _of(columns, candidates)
    corrected = in_state(columns, AssessmentState.CORRECTED)
    measured_judges = []
    for code, judge in enumerate(columns.judges):
        mine = vetted & (columns.judge == code)
        n_corrected = len(np.unique(columns.assessment[mine & corrected]))
        if n_corrected:
            measured = calibration(columns.judged[mine], columns.final[mine], tolerance=TOLERANCE)
            measured_judges.append(JudgeAgainstPeople(judge=judge, n_corrected=n_corrected, calibration=measured))
    return tuple(measured_judges)


def judges_among_themselves(
    columns: ReviewColumns, *, rng: np.random.Generator, candidates: Sequence[str] | None = None
) -> JudgesAmongThemselves | None:
    """Return the agreement between judges; None if no two judges graded the same response."""
    use = ~in_state(columns, AssessmentState.SUPERSEDED) & columns.by_model & ~np.isnan(columns.judged)
    rows = np.flatnonzero(use & _of(columns, candidates))
    unit = columns.trial[rows] * len(columns.candidates) + columns.candidate[rows]
    pair = unit * len(columns.judges) + columns.judge[rows]
    _, first = np.unique(pair, return_index=True)
    rows, unit = rows[first], unit[first]
    judges = np.unique(columns.judge[rows])
    if len(judges) < 2 or len(np.unique(unit)) == len(unit):
        return None
    score = columns.judged[rows]
    # The bootstrap draws at most about ten million ratings, unless 199 resamples need more.
    resamples = max(199, min(999, 100_000_000 // max(len(unit), 1) // 10))
    return JudgesAmongThemselves(
        judges=tuple(columns.judges[code] for code in judges),
        alpha=krippendorff_alpha(unit, score, tolerance=TOLERANCE, rng=rng, resamples=resamples),
        icc=icc(unit, columns.judge[rows], score),
    )


def _of(columns: ReviewColumns, candidates: Sequence[str] | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if candidates is None:
        return np.ones(len(columns.candidate), np.bool_)
    codes = [code for code, name in enumerate(columns.candidates) if name in candidates]
    return np.isin(columns.candidate, codes)
