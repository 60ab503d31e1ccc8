"""Agreement of judges with reference grades that people gave in the imported data, by verdict and
by score.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.analysis.verdict_agreement import ALL
from assay.domain.verdict_scales import VALUES
from assay.domain.verdicts import Verdict, verdict_of_score
from assay.statistics.estimates import Estimate, estimate
from assay.statistics.judge_accuracy import Calibration, calibration
from assay.statistics.kappa import Kappa, cohen_kappa
from assay.statistics.table import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assay.analysis.columns import ReferencePair


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgainstReferences:
    """A judge compared with people who graded the same responses independently.

    Attributes:
        agreement: share of responses with the same verdict, averaged over tasks. `by_candidate`:
            the same for each candidate.
        confusion: number of responses by (people's verdict, judge's verdict).
        calibration: compares the values of verdicts (Pass 1, Partial 0.5, Fail 0) if `on_verdicts`,
            otherwise the scores.
        people_rates, judge_rates: share of each verdict, over all responses.
    """

    judge: str
    agreement: Estimate
    by_candidate: tuple[Estimate, ...]
    confusion: Mapping[tuple[Verdict, Verdict], int]
    kappa: Kappa
    calibration: Calibration
    on_verdicts: bool
    people_rates: Mapping[Verdict, float]
    judge_rates: Mapping[Verdict, float]


def judges_against_references(pairs: Iterable[ReferencePair]) -> tuple[JudgeAgainstReferences, ...]:
    by_judge: dict[str, list[ReferencePair]] = {}
    for pair in pairs:
        by_judge.setdefault(pair.judge, []).append(pair)
    return tuple(_compared(judge, of_judge) for judge, of_judge in by_judge.items())


def _compared(judge: str, pairs: Sequence[ReferencePair]) -> JudgeAgainstReferences:
    # If people gave only pass or fail, a judge without verdicts passes a response from half of its
    # scale upwards.
    binary = all(pair.reference in (0.0, 1.0) for pair in pairs)
    people = [verdict_of_score(pair.reference) for pair in pairs]
    verdicts = [
        pair.verdict or verdict_of_score(float(pair.judged >= 0.5) if binary else pair.judged)
        for pair in pairs
    ]
    same = [float(a is b) for a, b in zip(people, verdicts, strict=True)]
    # A mean of criteria against a person's 0 or 1 would compare unlike things, so the bias of
    # verdicts is that of their values.
    on_verdicts = any(pair.verdict is not None for pair in pairs)
    judged = (
        [VALUES[verdict] for verdict in verdicts]
        if on_verdicts
        else [pair.judged for pair in pairs]
    )
    given = (
        [VALUES[verdict] for verdict in people]
        if on_verdicts
        else [pair.reference for pair in pairs]
    )
    tasks = [pair.task for pair in pairs]
    # Responses to one task are not independent, so the range is computed for a mean over tasks.
    whole = ScoreTable.from_columns(
        task=tasks,
        candidate=[ALL] * len(pairs),
        trial=[(pair.trial, pair.candidate) for pair in pairs],
        score=same,
    )
    each = ScoreTable.from_columns(
        task=tasks,
        candidate=[pair.candidate for pair in pairs],
        trial=[pair.trial for pair in pairs],
        score=same,
    )
    return JudgeAgainstReferences(
        judge=judge,
        agreement=estimate(whole, ALL),
        by_candidate=tuple(
            estimate(each, name) for name in dict.fromkeys(pair.candidate for pair in pairs)
        ),
        confusion=Counter(zip(people, verdicts, strict=True)),
        kappa=cohen_kappa(people, verdicts),
        calibration=calibration(judged, given),
        on_verdicts=on_verdicts,
        people_rates=_rates(people),
        judge_rates=_rates(verdicts),
    )


def _rates(verdicts: Sequence[Verdict]) -> dict[Verdict, float]:
    return {verdict: verdicts.count(verdict) / len(verdicts) for verdict in Verdict}
