"""JSON documents of calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from assay.analysis.figures import Figure
from assay.analysis.judge_errors import Swap
from assay.app.runs.run_documents import CostEstimateDocument, TokensDocument, cost_estimate
from assay.app.wire import Absent, Json, document, inlined, optional
from assay.domain.calibration_record import JudgeIdentity

if TYPE_CHECKING:
    from assay.analysis.judge_errors import Trust
    from assay.app.calibration.setup import Calibrated, Foreseen
    from assay.domain.calibration_record import CalibrationRecord
    from assay.domain.digest import JsonValue

Range: TypeAlias = tuple[float, float]


@document
class TrustDocument:
    """JSON of a judge's trust tier and of the figures that determine it."""

    tier: str
    tier_at_face_value: str
    n: int
    unread: int
    pass_rate: Figure
    pass_rate_with_bypassed: Figure
    mae: Figure
    max_error: float | None
    bias: Figure
    pearson: Figure
    spearman: Figure
    position_flips: Figure
    first_place_bonus: Figure
    length_bias: Figure
    self_preference: Figure
    repeat_sd: Figure
    more_samples_advised: int


@document
class PassedDocument:
    """JSON of the number of references of one type, and of how many the judge passed."""

    passed: int
    asked: int


@document
class CorrectionsDocument:
    """JSON of the number of human decisions that the figures include."""

    n: int
    from_other_settings: int
    approved_as_judged: int


@document
class JudgedReferenceDocument:
    """JSON of one reference: shortened texts and the judge's score.

    For a corrected grade, the assessment contains the texts.
    """

    prompt: str | Absent = optional()
    response: str | Absent = optional()
    reference_answer: str | None | Absent = optional()
    id: str
    kind: str
    expected: float
    judged: float | None
    error: float | None
    tolerance: float
    passed: bool | None
    bypassed: bool
    repeats: tuple[float, ...]
    source: str


@document
class MeasuredDocument:
    """JSON of a stored calibration."""

    trust: TrustDocument = inlined()
    judge: str
    settings_of: str
    identity: JudgeIdentity
    samples_digest: str
    repeat: int
    model_versions: tuple[str, ...]
    by_kind: Mapping[str, PassedDocument]
    corrections: CorrectionsDocument
    by_criterion: Mapping[str, Figure]
    samples: tuple[JudgedReferenceDocument, ...]
    pairs: tuple[Swap, ...]
    failed_tries: tuple[Json, ...]
    calls: int
    tokens: TokensDocument
    cost_usd: float | None


@document
class PlannedCalibrationDocument:
    """The document of `calibrate --dry-run`."""

    estimate: CostEstimateDocument = inlined()
    judge: str
    settings_of: str
    references: int
    taken_over: int


def planned_calibration(foreseen: Foreseen) -> PlannedCalibrationDocument:
    setting = foreseen.setting
    return PlannedCalibrationDocument(
        estimate=cost_estimate(foreseen.estimate),
        judge=setting.judge.model.ref,
        settings_of=setting.source,
        references=len(foreseen.references),
        taken_over=foreseen.taken_over,
    )


def trust_document(measured: Trust) -> TrustDocument:
    return TrustDocument(
        tier=measured.tier,
        tier_at_face_value=measured.tier_at_face_value,
        n=measured.n,
        unread=measured.unread,
        pass_rate=measured.pass_rate,
        pass_rate_with_bypassed=measured.pass_rate_with_bypassed,
        mae=measured.mae,
        max_error=measured.max_error,
        bias=measured.bias,
        pearson=measured.pearson,
        spearman=measured.spearman,
        position_flips=measured.position_flips,
        first_place_bonus=measured.first_place_bonus,
        length_bias=measured.length_bias,
        self_preference=measured.self_preference,
        repeat_sd=measured.repeat_sd,
        more_samples_advised=measured.more_pairs,
    )


def calibration_document(calibrated: Calibrated) -> dict[str, JsonValue]:
    return {
        **record_document(calibrated.record),
        "taken_over": calibrated.taken_over,
        "failures": [
            {"sample": name, "kind": failure.kind, "fault": failure.fault, "detail": failure.detail}
            for name, failure in calibrated.failures
        ],
    }


def record_document(record: CalibrationRecord) -> dict[str, JsonValue]:
    """Return a stored calibration as JSON.

    Calibrations from older versions may lack fields of `MeasuredDocument`.
    """
    return {
        **record.document,
        "model": record.identity.model,
        "tier": record.tier.value,
        "at": record.at,
        "version": record.version,
    }
