"""Agreement between judges and people, and between several judges, for diagnostics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from assay.analysis.review_tables import in_state
from assay.analysis.verdict_agreement import VerdictAgreement, verdict_agreement
from assay.domain.lifecycle import AssessmentState
from assay.statistics.agreement import Alpha, krippendorff_alpha
from assay.statistics.icc import IntraclassCorrelations, icc
from assay.statistics.judge_accuracy import Calibration, calibration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from assay.analysis.columns import ReviewColumns

TOLERANCE = 0.05
"""Two scores that differ by at most this much count as agreeing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgainstPeople:
    """A judge's scores compared with the scores after review.

    Rejected assessments are left out because they have no score from a person. Approving keeps the
    judge's score, so this figure overestimates the true agreement.

    Attributes:
        calibration: compares scores.
        verdicts: compares verdicts; None if the rubric gives none.
    """

    judge: str
    n_corrected: int
    calibration: Calibration
    verdicts: VerdictAgreement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgesAmongThemselves:
    """Agreement between judges that scored the same responses."""

    judges: tuple[str, ...]
    alpha: Alpha
    icc: IntraclassCorrelations


def judges_against_people(
    columns: ReviewColumns, *, candidates: Sequence[str] | None = None
) -> tuple[JudgeAgainstPeople, ...]:
    """Compare each judge with people over all approved and corrected assessments, for judges with
    at least one correction.
    """
    vetted = (
        in_state(columns, AssessmentState.APPROVED, AssessmentState.CORRECTED) & columns.by_model
    )
    vetted &= ~np.isnan(columns.judged) & ~np.isnan(columns.final) & _of(columns, candidates)
    corrected = in_state(columns, AssessmentState.CORRECTED)
    measured_judges = []
    for code, judge in enumerate(columns.judges):
        mine = vetted & (columns.judge == code)
        n_corrected = len(np.unique(columns.assessment[mine & corrected]))
        if n_corrected:
            measured = calibration(columns.judged[mine], columns.final[mine], tolerance=TOLERANCE)
            verdicts = _on_verdicts(columns, code, candidates)
            measured_judges.append(
                JudgeAgainstPeople(
                    judge=judge, n_corrected=n_corrected, calibration=measured, verdicts=verdicts
                )
            )
    return tuple(measured_judges)


def judges_on_verdicts(
    columns: ReviewColumns, *, candidates: Sequence[str] | None = None
) -> tuple[JudgeAgainstPeople, ...]:
    """Compare each judge's verdicts with people's, as `judges_against_people` compares scores; bias
    and error are of verdicts.
    """
    return tuple(
        replace(measured, calibration=measured.verdicts.calibration)
        for measured in judges_against_people(columns, candidates=candidates)
        if measured.verdicts is not None
    )


def _on_verdicts(
    columns: ReviewColumns, judge: int, candidates: Sequence[str] | None
) -> VerdictAgreement | None:
    reviewed = columns.verdicts
    if reviewed is None:
        return None
    rows = np.flatnonzero(
        (reviewed.judge == judge) & _named(columns, reviewed.candidate, candidates)
    )
    if not len(rows):
        return None
    values = np.array(reviewed.values)
    judged, final = (
        [reviewed.labels[np.abs(values - value).argmin()] for value in column[rows]]
        for column in (reviewed.judged, reviewed.final)
    )
    return verdict_agreement(
        dict(zip(reviewed.labels, reviewed.values, strict=True)),
        task=reviewed.task[rows].tolist(),
        response=list(
            zip(reviewed.trial[rows].tolist(), reviewed.candidate[rows].tolist(), strict=True)
        ),
        people=final,
        judge=judged,
    )


def judges_among_themselves(
    columns: ReviewColumns, *, rng: np.random.Generator, candidates: Sequence[str] | None = None
) -> JudgesAmongThemselves | None:
    """Return the agreement between judges; None if no two judges graded the same response."""
    use = (
        ~in_state(columns, AssessmentState.SUPERSEDED)
        & columns.by_model
        & ~np.isnan(columns.judged)
    )
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


def _of(columns: ReviewColumns, candidates: Sequence[str] | None) -> NDArray[np.bool_]:
    return _named(columns, columns.candidate, candidates)


def _named(
    columns: ReviewColumns, rows: NDArray[np.int64], candidates: Sequence[str] | None
) -> NDArray[np.bool_]:
    """Return for each row, given by its candidate's code, True if the candidate is among the named
    ones.
    """
    if candidates is None:
        return np.ones(len(rows), np.bool_)
    codes = [code for code, name in enumerate(columns.candidates) if name in candidates]
    return np.isin(rows, codes)
