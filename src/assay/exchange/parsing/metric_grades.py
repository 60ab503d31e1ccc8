"""Convert one response's metrics to assessments: one per grader, with a criterion per metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from assay.domain.import_records import FoundAssessment, FoundGrade, GradedBy, Noted
from assay.exchange.parsing.json_values import as_points, in_unit_range, shorten

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """One metric's value for one response.

    `value`: a number, true or false; any other value becomes a grade without a score. `worst`,
    `best`: ends of the metric's scale; 1 and 0 for an error rate. `criterion`: the criterion's
    name; empty for an overall score. `assumed`: True if the format does not state that a rule
    computed the value, so a model may have done so.
    """

    criterion: str
    value: object
    judge: str
    by: GradedBy
    worst: float = 0.0
    best: float = 1.0
    reason: str = ""
    assumed: bool = False


def outside_their_scale(values: Iterable[MetricValue]) -> set[str]:
    """Return the criteria with a value outside their scale; none of such a criterion's values can
    be a score.
    """
    return {
        value.criterion
        for value in values
        if (raw := as_points(value.value)) is not None
        and not min(value.worst, value.best) <= raw <= max(value.worst, value.best)
    }


class MetricGrades:
    """Builds assessments.

    Counts values without a known scale, and metrics whose grader is unknown.
    """

    def __init__(self, unscaled: Collection[str] = ()) -> None:
        self._without_scale = frozenset(unscaled)
        self._unscaled: Counter[str] = Counter()
        self._lower_is_better: dict[str, None] = {}
        self._assumed: dict[str, None] = {}

    def assessments(
        self, values: Iterable[MetricValue], *, task: str, candidate: str, trial: int, where: str
    ) -> Iterator[FoundAssessment]:
        """Yield one assessment for each grader of a response; a repeated criterion starts another
        assessment.
        """
        by_grader: dict[tuple[str, GradedBy, int], list[FoundGrade]] = {}
        again: Counter[tuple[str, GradedBy, str]] = Counter()
        for metric in values:
            raw = as_points(metric.value)
            score = None
            if raw is not None and metric.criterion not in self._without_scale:
                score = in_unit_range((raw - metric.worst) / (metric.best - metric.worst))
            if metric.worst > metric.best and score is not None:
                self._lower_is_better[metric.criterion] = None
            if raw is not None and score is None:
                self._unscaled[metric.criterion or metric.judge] += 1
            if metric.assumed:
                self._assumed[metric.judge] = None
            grade = FoundGrade(
                candidate=candidate,
                criterion=metric.criterion,
                score=score,
                raw_score=raw,
                min_score=None if score is None else metric.worst,
                max_score=None if score is None else metric.best,
                reason=metric.reason,
            )
            repeat = again[metric.judge, metric.by, metric.criterion]
            again[metric.judge, metric.by, metric.criterion] += 1
            by_grader.setdefault((metric.judge, metric.by, repeat), []).append(grade)
        for (judge, by, _), grades in by_grader.items():
            reasons = [grade.reason for grade in grades if grade.reason]
            yield FoundAssessment(
                task=task,
                trial=trial,
                judge=judge,
                by=by,
                where=where,
                grades=tuple(grades),
                reply="\n\n".join(dict.fromkeys(reasons)) or None if by is GradedBy.MODEL else None,
            )

    def notes(self, where: str) -> Iterator[Noted]:
        if self._unscaled:
            names = ", ".join(
                f"{name} ({count:,})" for name, count in self._unscaled.most_common(_SHOWN)
            )
            what = (
                f"{self._unscaled.total():,} values lie outside their metric's scale, or the file states no scale: {names}. "
                "Assay keeps them as raw scores, which no statistic counts."
            )
            yield Noted(where=where, what=what)
        if self._lower_is_better:
            names = shorten(", ".join(list(self._lower_is_better)[:_SHOWN]))
            what = f"lower is better for {names}, so Assay inverts these scores and keeps the values as raw scores."
            yield Noted(where=where, what=what)
        if self._assumed:
            names = ", ".join(list(self._assumed)[:_SHOWN])
            what = f"the file does not say whether a rule or a model computed these scores, so they await review: {shorten(names)}."
            yield Noted(where=where, what=what)
