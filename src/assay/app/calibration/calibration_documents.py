"""JSON documents of calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from assay.app.runs.run_documents import CostEstimateDocument, TokensDocument, cost_estimate
from assay.app.wire import Absent, Json, document, inlined, optional, source

if TYPE_CHECKING:
    from assay.app.calibration.setup import Calibrated, Foreseen
    from assay.domain.calibration_record import CalibrationRecord
    from assay.domain.digest import JsonValue

Range: TypeAlias = tuple[float, float]


@document
class FigureDocument:
    """JSON of a figure with its interval and count, or of the reason that it is missing."""

    value: float | None
    ci95: Range | None
    n: int
    reason: str | None


@document
class TrustDocument:
    """JSON of a judge's trust tier and of the figures that determine it."""

    tier: str
    tier_at_face_value: str
    n: int
    unread: int
    pass_rate: FigureDocument
    pass_rate_with_bypassed: FigureDocument
    mae: FigureDocument
    max_error: float | None
    bias: FigureDocument
    pearson: FigureDocument
    spearman: FigureDocument
    position_flips: FigureDocument
    first_place_bonus: FigureDocument
    length_bias: FigureDocument
    self_preference: FigureDocument
    repeat_sd: FigureDocument
    more_samples_advised: int = source("more_pairs")


@document
class IdentityDocument:
    """JSON of the model, prompt, rubric and parameters for which a calibration is valid."""

    model: str
    prompt: str
    rubric: str
    parameters: str


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
    expected: float = source("reference")
    judged: float | None
    error: float | None
    tolerance: float
    passed: bool | None
    bypassed: bool
    repeats: tuple[float, ...]
    source: str


@document
class SwapDocument:
    """JSON of a pair of answers that was judged in both orders."""

    id: str
    lead: float | None
    lead_swapped: float | None


@document
class MeasuredDocument(TrustDocument):
    """JSON of a stored calibration."""

    judge: str
    settings_of: str
    identity: IdentityDocument
    samples_digest: str
    repeat: int
    model_versions: tuple[str, ...]
    by_kind: Mapping[str, PassedDocument]
    corrections: CorrectionsDocument
    by_criterion: Mapping[str, FigureDocument]
    samples: tuple[JudgedReferenceDocument, ...]
    pairs: tuple[SwapDocument, ...]
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
