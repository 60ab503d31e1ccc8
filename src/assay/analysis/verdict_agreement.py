"""Agreement of a judge with people on the same responses, by verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.statistics.estimates import Estimate, estimate
from assay.statistics.judge_accuracy import Calibration, calibration
from assay.statistics.kappa import Kappa, cohen_kappa
from assay.statistics.table import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

ALL: Final = ""
"""Name of the estimate over all candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictAgreement:
    """A judge's verdicts compared with people's verdicts on the same responses.

    Attributes:
        labels: the verdicts, best first.
        agreement: share of responses with the same verdict, averaged over tasks.
        kappa: agreement beyond chance.
        calibration: compares the values of the verdicts; its `bias` is the judge's value minus
            people's.
        confusion: number of responses by (people's verdict, judge's verdict).
        people_rates, judge_rates: share of each verdict, over all responses.
    """

    labels: tuple[str, ...]
    agreement: Estimate
    kappa: Kappa
    calibration: Calibration
    confusion: Mapping[tuple[str, str], int]
    people_rates: Mapping[str, float]
    judge_rates: Mapping[str, float]


def verdict_agreement(
    scale: Mapping[str, float],
    *,
    task: Sequence[Hashable],
    response: Sequence[Hashable],
    people: Sequence[str],
    judge: Sequence[str],
) -> VerdictAgreement:
    """Compare verdicts of people and of a judge, given in the same order.

    Args:
        scale: value of each verdict between 0 and 1, best first.
        task: the task of each response; responses to one task are not independent.
        response: what distinguishes the responses to one task.
    """
    same = [float(given == judged) for given, judged in zip(people, judge, strict=True)]
    table = ScoreTable.from_columns(
        task=task, candidate=[ALL] * len(same), trial=response, score=same
    )
    return VerdictAgreement(
        labels=tuple(scale),
        agreement=estimate(table, ALL),
        kappa=cohen_kappa(people, judge),
        calibration=calibration(
            [scale[verdict] for verdict in judge], [scale[verdict] for verdict in people]
        ),
        confusion=Counter(zip(people, judge, strict=True)),
        people_rates={label: people.count(label) / len(people) for label in scale},
        judge_rates={label: judge.count(label) / len(judge) for label in scale},
    )
