"""JSON of a judge's agreement with imported human grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from assay.app.wire import document
from assay.domain.verdicts import Verdict

if TYPE_CHECKING:
    from assay.analysis.references import JudgeAgainstReferences

Range: TypeAlias = tuple[float, float]


@document
class ReferenceAgreementDocument:
    """JSON of a judge's agreement with imported human grades; `confusion` counts the judge's grades
    for each human verdict.
    """

    judge: str
    agreement: float | None
    ci95: Range | None
    n: int
    n_tasks: int
    kappa: float | None
    kappa_ci95: Range | None
    bias: float | None
    bias_ci95: Range | None
    on_verdicts: bool
    people_rates: dict[str, float]
    judge_rates: dict[str, float]
    confusion: dict[str, dict[str, int]]
    by_candidate: dict[str, float | None]
    reason: str | None


def reference_agreement(judge: JudgeAgainstReferences) -> ReferenceAgreementDocument:
    agreement = judge.agreement
    return ReferenceAgreementDocument(
        judge=judge.judge,
        agreement=agreement.mean,
        ci95=agreement.ci95,
        n=judge.calibration.n,
        n_tasks=agreement.n_tasks,
        kappa=judge.kappa.kappa,
        kappa_ci95=judge.kappa.ci95,
        bias=judge.calibration.bias,
        bias_ci95=judge.calibration.bias_ci95,
        on_verdicts=judge.on_verdicts,
        people_rates={str(verdict): rate for verdict, rate in judge.people_rates.items()},
        judge_rates={str(verdict): rate for verdict, rate in judge.judge_rates.items()},
        confusion={
            str(people): {
                str(verdict): judge.confusion.get((people, verdict), 0) for verdict in Verdict
            }
            for people in Verdict
        },
        by_candidate={str(each.candidate): each.mean for each in judge.by_candidate},
        reason=agreement.reason,
    )
