"""Analysis of a rubric criterion: grade distribution, agreement between judge and people, and
drift.

Agreement is measured only on verdicts from people who had not yet seen the judge's grade. A person
who sees a grade first tends to approve it, so approvals measure acceptance and not agreement
(Shankar et al. 2024, on criteria that drift during grading). Every share has a range; with too few
cases it is None and has a reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.analysis.figures import Figure, difference_of_shares, share, student_mean
from assay.statistics.agreement import krippendorff_alpha

if TYPE_CHECKING:
    from assay.domain.criteria import BlindGrade, CriterionFacts, GradeCount
    from assay.domain.suite import Criterion

MAX_STEPS: Final = 20
"""A scale of whole numbers with at most this many steps is shown step by step; any other scale is
shown in tenths.
"""

TOLERANCE: Final = 0.1
"""Two grades (0 to 1) that differ by at most this much agree."""

LEAST_OF_A_HALF: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleStep:
    """One step of a scale, from raw value `low` to `high`, with its number of counted grades."""

    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionReport:
    """Results for one criterion.

    Grades are between 0 and 1; a change above 0 means that people gave a higher grade.

    Attributes:
        n: number of counted grades. `mean`, `spread`: mean and spread of these grades, None without
            grades.
        steps: number of grades on each step of the scale.
        lowest, highest: assessments with the lowest and the highest counted grade, with that grade.
        alpha: Krippendorff's alpha between judge and person on blind-first verdicts. `alike`: share
            of those verdicts that differ by at most a tenth. `apart`: mean of judge minus person.
        acceptance: among decided assessments whose reviewer saw the judge's grade first, the share
            that left it unchanged.
        corrected: share of decided assessments in which a person changed the grade.
        change: mean change of the changed grades. `up`, `down`: number of grades that were raised
            and lowered.
        first_half, second_half: share of grades changed in each half of the decisions. `drift`:
            second minus first.
    """

    criterion: str
    n: int
    mean: float | None
    spread: float | None
    steps: tuple[ScaleStep, ...]
    lowest: tuple[int, float] | None
    highest: tuple[int, float] | None
    alpha: Figure
    alike: Figure
    apart: Figure
    acceptance: Figure
    decided: int
    corrected: Figure
    change: Figure
    up: int
    down: int
    first_half: Figure
    second_half: Figure
    drift: Figure


def analyse_criterion(
    criterion: Criterion, facts: CriterionFacts, *, rng: np.random.Generator
) -> CriterionReport:
    """Analyse one criterion; `rng` is used for the range of alpha."""
    name = criterion.name
    counted = [count for count in facts.counted if count.criterion == name]
    changes = [change for change in facts.corrected if change.criterion == name]
    blind = [grade for grade in facts.blind if grade.criterion == name]
    touched = {change.assessment for change in changes}
    graded = bool(facts.graded.get(name))
    stood = [key for key, rejected in facts.decided if not rejected] if graded else []
    seen_first = [
        (key, rejected) for key, rejected in facts.decided if key not in facts.blind_assessments
    ]
    outcomes = [key in touched for key in stood]
    # Drift compares the halves in the order of the decisions, not in the order of the run.
    half = len(outcomes) // 2
    n, mean, spread = _moments(counted)
    enough = half >= LEAST_OF_A_HALF
    return CriterionReport(
        criterion=name,
        n=n,
        mean=mean,
        spread=spread,
        steps=steps(criterion, counted),
        lowest=(counted[0].assessment, counted[0].thousandths / 1000) if counted else None,
        highest=(counted[-1].assessment, counted[-1].thousandths / 1000) if counted else None,
        alpha=_alpha(blind, rng),
        alike=share([abs(grade.judge - grade.person) <= TOLERANCE + 1e-9 for grade in blind]),
        apart=_mean([(grade.assessment, grade.judge - grade.person) for grade in blind]),
        acceptance=share(
            [not rejected and key not in touched for key, rejected in seen_first] if graded else []
        ),
        decided=len(stood),
        corrected=share(outcomes),
        change=_mean([(change.assessment, change.change) for change in changes]),
        up=sum(change.change > 0 for change in changes),
        down=sum(change.change < 0 for change in changes),
        first_half=share(outcomes[:half]) if enough else _few(len(outcomes)),
        second_half=share(outcomes[half:]) if enough else _few(len(outcomes)),
        drift=difference_of_shares(outcomes[half:], outcomes[:half])
        if enough
        else _few(len(outcomes)),
    )


def steps(criterion: Criterion, counted: Sequence[GradeCount]) -> tuple[ScaleStep, ...]:
    """Count the grades on each step of the scale.

    A scale of whole numbers has one step for each number, or for each half number, if all grades
    are on such steps. Otherwise the scale is cut into ten parts; each includes its lower end, and
    the last includes both ends.
    """
    span = criterion.high - criterion.low
    whole = (
        float(span).is_integer() and float(criterion.low).is_integer() and 1 <= span <= MAX_STEPS
    )
    given: Counter[int] = Counter()
    for parts in (int(span), 2 * int(span)) if whole else ():
        if all(_is_step(count.thousandths, parts) for count in counted):
            for count in counted:
                given[round(count.thousandths / 1000 * parts)] += count.n
            places = [criterion.low + span * place / parts for place in range(parts + 1)]
            return tuple(
                ScaleStep(low=at, high=at, n=given[place]) for place, at in enumerate(places)
            )
    for count in counted:
        given[min(count.thousandths // 100, 9)] += count.n
    ends = [criterion.low + span * place / 10 for place in range(11)]
    return tuple(
        ScaleStep(low=ends[place], high=ends[place + 1], n=given[place]) for place in range(10)
    )


def _is_step(thousandths: int, parts: int) -> bool:
    """True if a value that was rounded to thousandths can be one of `parts` equal steps."""
    place = thousandths / 1000 * parts
    # Rounding to thousandths moves a value by up to 0.0005 of the scale; the rest is tolerance for
    # floating-point errors.
    return abs(place - round(place)) <= parts * 0.00051


def _moments(counted: Sequence[GradeCount]) -> tuple[int, float | None, float | None]:
    n = sum(count.n for count in counted)
    if not n:
        return 0, None, None
    mean = sum(count.n * count.thousandths for count in counted) / n
    squares = sum(count.n * (count.thousandths - mean) ** 2 for count in counted)
    # One division of whole numbers, so that the mean is rounded once.
    exact = sum(count.n * count.thousandths for count in counted) / (1000 * n)
    return n, exact, (squares / (n - 1)) ** 0.5 / 1000 if n > 1 else None


def _alpha(blind: Sequence[BlindGrade], rng: np.random.Generator) -> Figure:
    if not blind:
        return Figure(reason="no_blind_verdict")
    units = [f"{grade.assessment}/{grade.candidate}" for grade in blind]
    agreement = krippendorff_alpha(
        [*units, *units],
        [*(grade.person for grade in blind), *(grade.judge for grade in blind)],
        tolerance=TOLERANCE,
        rng=rng,
    )
    return Figure(
        value=agreement.alpha, ci95=agreement.ci95, n=agreement.n_units, reason=agreement.reason
    )


def _mean(values: Sequence[tuple[int, float]]) -> Figure:
    """Average within each assessment and then over assessments, because grades in one assessment
    are not independent.
    """
    within: dict[int, list[float]] = defaultdict(list)
    for key, value in values:
        within[key].append(value)
    return student_mean([mean(own) for own in within.values()])


def _few(n: int) -> Figure:
    return Figure(n=n, reason="too_few_decisions")
