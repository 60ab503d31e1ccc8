"""Planted checks: a real assessment with one thing broken on purpose, which a careful reviewer finds.

A plant is made of what a judge really wrote, so that nothing but the break gives it away. What was broken is said beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from assay.domain.assessment import Assessment, weighted_score
from assay.domain.protocol import chance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.assessment import Grade

KINDS: Final = ("swapped_scores", "invented_quote", "score_against_reason")
_FAR: Final = 0.4  # on 0 to 1: a score this far from where it was no longer fits what its reason says
_CLOSE: Final = 0.25  # scores of two candidates closer than this are no use to swap
_INVENTED: Final = (
    "if (attempts > MAX_RETRY) return cached.value;",
    "assert payload.verified is True",
    "self._registry.flush(force=True)",
    "await queue.drain(timeout=30)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A broken copy, how it was broken, and at which (candidate, criterion) places."""

    assessment: Assessment
    how: str
    places: tuple[tuple[str, str], ...]


def planted(assessment: Assessment, *, seed: int, key: int) -> Plant | None:
    """A broken copy of an assessment; None where it has nothing that could be broken believably.

    Args:
        seed, key: decide which break is tried first and where; the same always give the same.
    """
    if not assessment.grades or any(score is None for score in assessment.scores.values()):
        return None
    first = int(chance(seed, "plant_kind", key) * len(KINDS))
    for kind in (*KINDS[first:], *KINDS[:first]):
        found = _BREAKS[kind](assessment, chance(seed, kind, key))
        if found is not None:
            return found
    return None


def _swapped(assessment: Assessment, at: float) -> Plant | None:
    """Two candidates' scores change places, their reasons do not."""
    names = sorted(assessment.scores, key=lambda name: assessment.scores[name] or 0)
    low, high = names[0], names[-1]
    if (assessment.scores[high] or 0) - (assessment.scores[low] or 0) < _CLOSE:
        return None
    by_place = {(grade.candidate, grade.criterion): grade for grade in assessment.grades}
    other = {low: high, high: low}
    changed: list[Grade] = []
    places: list[tuple[str, str]] = []
    for grade in assessment.grades:
        twin = by_place.get((other.get(grade.candidate, ""), grade.criterion))
        if twin is not None and twin.score != grade.score:
            changed.append(replace(grade, score=twin.score, raw_score=twin.raw_score))
            places.append((grade.candidate, grade.criterion))
        else:
            changed.append(grade)
    return _plant(assessment, changed, "swapped_scores", places) if places else None


def _invented(assessment: Assessment, at: float) -> Plant | None:
    """A reason quotes a line that stands in no response."""
    quoting = [place for place, grade in enumerate(assessment.grades) if grade.evidence] or [
        *range(len(assessment.grades))
    ]
    chosen = quoting[int(at * len(quoting))]
    line = _INVENTED[int(at * 997) % len(_INVENTED)]
    grade = assessment.grades[chosen]
    broken = replace(grade, evidence=(line, *grade.evidence[1:]))
    changed = [broken if place == chosen else one for place, one in enumerate(assessment.grades)]
    return _plant(assessment, changed, "invented_quote", [(grade.candidate, grade.criterion)])


def _against_reason(assessment: Assessment, at: float) -> Plant | None:
    """A score lies far from what its reason says."""
    scored = [
        place for place, grade in enumerate(assessment.grades) if grade.score is not None and grade.reason.strip()
    ]
    if not scored:
        return None
    chosen = scored[int(at * len(scored))]
    grade = assessment.grades[chosen]
    before = grade.score or 0.0
    after = before - _FAR if before >= 0.5 else before + _FAR
    low, high = grade.min_score, grade.max_score
    raw = min(max(float(round(low + after * (high - low))), low), high)
    broken = replace(grade, raw_score=raw, score=(raw - low) / (high - low))
    if abs((broken.score or 0.0) - before) < _FAR / 2:
        return None  # a scale too coarse to say it
    changed = [broken if place == chosen else one for place, one in enumerate(assessment.grades)]
    return _plant(assessment, changed, "score_against_reason", [(grade.candidate, grade.criterion)])


_BREAKS: Final = {"swapped_scores": _swapped, "invented_quote": _invented, "score_against_reason": _against_reason}


def _plant(assessment: Assessment, grades: Sequence[Grade], how: str, places: Sequence[tuple[str, str]]) -> Plant:
    weights = assessment.weights or {grade.criterion: 1.0 for grade in grades}
    scores = {
        name: weighted_score({grade.criterion: grade.score for grade in grades if grade.candidate == name}, weights)
        for name in assessment.scores
    }
    ranking = (
        tuple(sorted(assessment.ranking, key=lambda name: -(scores.get(name) or 0.0)))
        if how != "invented_quote"
        else (assessment.ranking)
    )
    # A flag would say at once what is broken; what flags a real assessment has are kept.
    broken = replace(assessment, grades=tuple(grades), scores=scores, ranking=ranking, raw="")
    return Plant(assessment=broken, how=how, places=tuple(places))
