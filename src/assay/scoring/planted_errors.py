"""Planted checks: copies of real assessments, either with one deliberate error or unaltered.

A planted check is made from a judge's real assessment, so that nothing but the error reveals it. It
records its kind of error. Unaltered copies measure false alarms, because a reviewer who suspects
everything finds every error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from assay.domain.assessment import Assessment, Flag, FlagKind, Grade, weighted_scores
from assay.domain.digest import shuffled
from assay.domain.protocol import chance

GOOD: Final = "known_good"
"""Kind of a planted check that contains no error."""

KINDS: Final = (
    "swapped_scores",
    "moved_score",
    "reason_against_score",
    "invented_quote",
    "other_task",
)
"""Kinds of deliberate errors."""

_CLOSE: Final = 0.25  # minimum difference between two candidates' scores for them to be swapped
# minimum difference (0 to 1) at which the reason for one grade contradicts the score of the other
_FAR: Final = 0.3
# distance (0 to 1) by which a score is moved: two to four points out of ten
_MOVED: Final = (0.2, 0.4)
_CALL: Final = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]{2,})\(")
_UNDERSCORED: Final = ("_checked", "_once", "_safely", "_locked", "_or_fail")
_CAMEL: Final = ("Checked", "Once", "Safely", "Locked", "OrFail")
_ELSEWHERE: Final = (
    "guard_once(key)",
    "payload.verify_checked()",
    "self.registry.flush_safely()",
    "drain_or_fail(queue)",
)
_LABEL: Final = re.compile(r"\b(?:Candidate|Response|Answer|Solution)\s+[A-Z]\b")
_CALLED: Final = re.compile(
    r"\b((?i:candidate|response|answer|solution|option|beats|ties with|loses to|decides against)\s+)([A-Z]{1,2})\b"
)
_BARE: Final = re.compile(r"()\b([A-Z]{1,2})\b")
_QUOTED: Final = re.compile(r"(“[^“”]*”|`[^`]*`)")
_BARE_IN: Final = (FlagKind.ORDER_DECIDES, FlagKind.CODE_CUT)
# in texts that do not name a candidate
_OF_THE_REPORT: Final = (FlagKind.QUOTE_NOT_FOUND, FlagKind.ADDRESSES_REVIEWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedAssessment:
    """The decided assessment from which a planted check is made.

    Attributes:
        assessment: the judge's assessment.
        responses: the text of each candidate's response, by name; an invented function call must
            not occur in any of them.
        other: the same judge's assessment of the same candidates by the same criteria on another
            task; None without one.
    """

    assessment: Assessment
    responses: Mapping[str, str] = field(default_factory=dict)
    other: Assessment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A copy of an assessment, its kind of error (or `known_good`), and the (candidate, criterion)
    pairs that the error affects.
    """

    assessment: Assessment
    how: str
    places: tuple[tuple[str, str], ...]


def planted(source: DecidedAssessment, *, seed: int, key: int) -> Plant | None:
    """Return a copy of an assessment with an error, chosen by `seed` and `key`; None if no error
    would look plausible.
    """
    if not _is_whole(source.assessment):
        return None
    for kind in shuffled(KINDS, int(chance(seed, "plant_kind", key) * 2**32)):
        broken = _BREAKS[kind](source, chance(seed, kind, key))
        if broken is not None:
            return broken
    return None


def unaltered(source: DecidedAssessment) -> Plant | None:
    """Return an unchanged copy; None if a score is missing, because a reviewer cannot approve such
    a copy.
    """
    if not _is_whole(source.assessment):
        return None
    return Plant(assessment=replace(source.assessment, raw=""), how=GOOD, places=())


def reordered(assessment: Assessment, *, seed: int, key: int) -> Assessment:
    """Return the assessment with its candidates in another order, and with the new labels in
    reasons and flags.

    The report and flags about the report are left out, because the report uses the old labels.
    """
    names = sorted(assessment.labels, key=lambda name: assessment.labels[name])
    if len(names) < 2:
        return assessment
    by = 1 + int(chance(seed, "order", key) * (len(names) - 1))
    turned = names[by:] + names[:by]
    labels = {name: assessment.labels[old] for old, name in zip(names, turned, strict=True)}
    now = {assessment.labels[name]: label for name, label in labels.items()}
    return replace(
        assessment,
        labels=labels,
        shown=tuple(turned) if assessment.shown else (),
        report="",
        raw="",
        grades=tuple(
            replace(grade, reason=_renamed_labels(grade.reason, now, _CALLED))
            for grade in assessment.grades
        ),
        flags=tuple(
            _turned(flag, now)
            for flag in assessment.flags
            if flag.candidate is not None or flag.kind not in _OF_THE_REPORT
        ),
    )


def _turned(flag: Flag, now: Mapping[str, str]) -> Flag:
    pattern = _BARE if flag.kind in _BARE_IN else _CALLED
    return replace(flag, detail=_renamed_labels(flag.detail, now, pattern))


def _renamed_labels(text: str, now: Mapping[str, str], pattern: re.Pattern[str]) -> str:
    """Replace the labels in a text, except in quotations."""
    parts = _QUOTED.split(text)
    return "".join(
        part
        if place % 2
        else pattern.sub(lambda match: match[1] + now.get(match[2], match[2]), part)
        for place, part in enumerate(parts)
    )


def _is_whole(assessment: Assessment) -> bool:
    return bool(assessment.grades) and all(
        score is not None for score in assessment.scores.values()
    )


def _swapped(source: DecidedAssessment, at: float) -> Plant | None:
    """Swap the scores of two candidates, but not their reasons."""
    assessment = source.assessment
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


def _moved(source: DecidedAssessment, at: float) -> Plant | None:
    """Move one score by two to four points out of ten; whole numbers stay whole, and the reason
    stays unchanged.
    """
    scored = [
        grade
        for grade in source.assessment.grades
        if grade.score is not None and grade.reason.strip()
    ]
    if not scored:
        return None
    grade = scored[int(at * len(scored))]
    before, low, high = grade.score or 0.0, grade.min_score, grade.max_score
    least, most = _MOVED
    by = least + (most - least) * ((at * 97) % 1)
    up = before + by <= 1 and (before - by < 0 or (at * 89) % 1 < 0.5)
    raw = low + (before + (by if up else -by)) * (high - low)
    if grade.raw_score is not None and float(grade.raw_score).is_integer():
        raw = float(round(raw))
    raw = round(min(max(raw, min(low, high)), max(low, high)), 2)
    after = (raw - low) / (high - low)
    if not least - 0.05 <= abs(after - before) <= most + 0.2:
        return None  # the scale is too coarse, or the score too close to its end, for such a move
    return _one(source.assessment, grade, replace(grade, raw_score=raw, score=after), "moved_score")


def _contradicting(source: DecidedAssessment, at: float) -> Plant | None:
    """Replace a reason by the reason of a far better or worse grade on the same criterion, unless
    it mentions a candidate.
    """
    grades, names = source.assessment.grades, source.assessment.scores
    fitting = [
        (grade, other)
        for grade in grades
        for other in grades
        if other.criterion == grade.criterion
        and grade.score is not None
        and other.score is not None
        and abs(other.score - grade.score) >= _FAR
        and other.reason.strip()
        and other.reason != grade.reason
        and not _LABEL.search(other.reason)
        and not any(name in other.reason for name in names)
    ]
    if not fitting:
        return None
    grade, other = fitting[int(at * len(fitting))]
    return _one(
        source.assessment, grade, replace(grade, reason=other.reason), "reason_against_score"
    )


def _invented(source: DecidedAssessment, at: float) -> Plant | None:
    """Add a quoted function call that no response contains to a reason: a real call with its name
    changed plausibly.
    """
    grades = source.assessment.grades
    quoting = [grade for grade in grades if grade.evidence] or [*grades]
    grade = quoting[int(at * len(quoting))]
    whole = "\n".join(source.responses.values())
    lines = [
        line.strip()
        for line in source.responses.get(grade.candidate, "").splitlines()
        if _CALL.search(line)
    ]
    ends = [int(at * 991 + step) for step in range(len(_CAMEL))]
    made = (
        [_renamed(lines[int((at * 83) % 1 * len(lines))], end % len(_CAMEL)) for end in ends]
        if lines
        else []
    )
    fresh = [
        line
        for line in (*made, *_ELSEWHERE[ends[0] % len(_ELSEWHERE) :], *_ELSEWHERE)
        if line not in whole
    ]
    if not fresh:
        return None
    broken = replace(grade, evidence=(fresh[0], *grade.evidence[1:]))
    return _one(source.assessment, grade, broken, "invented_quote")


def _renamed(line: str, end: int) -> str:
    """Rename the last function that a line calls, keeping to the style of the code."""
    called = [*_CALL.finditer(line)][-1]
    name = called[1]
    camel = "_" not in name and name != name.lower()
    return (
        f"{line[: called.end(1)]}{(_CAMEL if camel else _UNDERSCORED)[end]}{line[called.end(1) :]}"
    )


def _other_task(source: DecidedAssessment, at: float) -> Plant | None:
    """Replace an assessment with the judge's assessment of another task, if the two differ."""
    other, mine = source.other, source.assessment
    if other is None or not _is_whole(other) or set(other.scores) != set(mine.scores):
        return None
    reasons = {grade.reason for grade in mine.grades if grade.reason.strip()}
    if dict(other.weights) != dict(mine.weights) or any(
        grade.reason in reasons for grade in other.grades
    ):
        return None
    places = tuple((grade.candidate, grade.criterion) for grade in other.grades)
    return Plant(assessment=replace(other, raw=""), how="other_task", places=places)


_BREAKS: Final[Mapping[str, Callable[[DecidedAssessment, float], Plant | None]]] = {
    "swapped_scores": _swapped,
    "moved_score": _moved,
    "reason_against_score": _contradicting,
    "invented_quote": _invented,
    "other_task": _other_task,
}


def _one(assessment: Assessment, grade: Grade, broken: Grade, how: str) -> Plant:
    changed = [broken if each is grade else each for each in assessment.grades]
    return _plant(assessment, changed, how, [(grade.candidate, grade.criterion)])


def _plant(
    assessment: Assessment, grades: Sequence[Grade], how: str, places: Sequence[tuple[str, str]]
) -> Plant:
    weights = assessment.weights or {grade.criterion: 1.0 for grade in grades}
    scores = weighted_scores(assessment.scores, grades, weights)
    ranking = assessment.ranking
    # a ranking that contradicts the scores would reveal the error
    if how in ("swapped_scores", "moved_score"):
        ranking = tuple(sorted(ranking, key=lambda name: -(scores.get(name) or 0.0)))
    # A new flag would also reveal the error, so only the flags of the real assessment are kept.
    broken = replace(assessment, grades=tuple(grades), scores=scores, ranking=ranking, raw="")
    return Plant(assessment=broken, how=how, places=tuple(places))
