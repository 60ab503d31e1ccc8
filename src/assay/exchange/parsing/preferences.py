"""Convert a preference between two candidates to grades: 1 for the preferred one, 0 for the other,
0.5 each for a tie.

One joint assessment contains both grades, on the criterion `preference`, so that statistics can
distinguish preferences from scores and compute strengths (Bradley-Terry). An unreadable verdict
becomes two grades without a score.
"""

from __future__ import annotations

from typing import Final

from assay.domain.import_records import FoundAssessment, FoundGrade, GradedBy
from assay.domain.suite import Criterion

PREFERENCE: Final = Criterion(
    name="preference", low=0.0, high=1.0, guidance="1: preferred, 0.5: tie, 0: the other one."
)
PREFERENCE_KIND: Final = "preferences"
"""Value of `provenance["kind"]` for a run whose grades are preferences."""


def preference_assessment(
    first: str,
    second: str,
    points: float | None,
    *,
    task: str,
    judge: str,
    by: GradedBy,
    where: str,
    reason: str = "",
    reply: str | None = None,
) -> FoundAssessment:
    """Return the assessment of one comparison in trial 1.

    `points`: grade of `first`: 1 if preferred, 0.5 for a tie, 0 if not preferred, or a probability;
    None if unreadable. `reason`: the judge's explanation for both grades.
    """
    other_points = None if points is None else 1.0 - points
    return FoundAssessment(
        task=task,
        trial=1,
        judge=judge,
        by=by,
        where=where,
        # A joint judgement, so that a person decides on both together.
        joint=True,
        reply=reply,
        grades=tuple(
            FoundGrade(
                candidate=name,
                score=score,
                criterion=PREFERENCE.name,
                raw_score=score,
                min_score=0.0,
                max_score=1.0,
                reason=reason,
            )
            for name, score in ((first, points), (second, other_points))
        ),
    )
