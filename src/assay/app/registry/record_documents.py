"""JSON of a stored run: the output of `assay show`, and the run's registry record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.app.recorded_settings import (
    RecordedSettings,
    graded_rubric,
    recorded_settings,
    run_parameters,
)
from assay.app.review.attention import AttentionDocument, attention_document
from assay.app.runs import run_documents as run_documents
from assay.app.runs.causes import Cause
from assay.app.wire import Json, document, inlined
from assay.domain.identifiers import shown_trial
from assay.domain.remaining_cost import RemainingCost

if TYPE_CHECKING:
    from assay.app.provenance import Provenance
    from assay.app.registry.run_origin import Source
    from assay.app.registry.run_record import Dossier
    from assay.app.registry.runs import RunInFull
    from assay.domain.selection import TrialRow


@document
class SuiteCopyDocument:
    """JSON of the suite file as it was at the start of the run."""

    path: str
    digest: str
    text: str


@document
class TrialDocument:
    """JSON of one trial in a run."""

    id: str
    task: str
    thing: str
    trial: int
    trials: int
    state: str
    failure: run_documents.FailedTrialDocument | None


@document
class CallsDocument:
    """JSON of a run's duration and calls."""

    seconds: float | None
    calls: int
    calls_per_second: float | None
    answered: tuple[run_documents.CallTotalsDocument, ...]


@document
class RunDocument:
    """JSON of `assay show RUN`."""

    row: run_documents.RunSummaryDocument = inlined()
    calls: CallsDocument = inlined()
    settings: RecordedSettings = inlined()
    seed: int
    parameters: Mapping[str, Json]
    benchmark: bool
    concurrency: int
    budget_usd: float | None
    margin: float | None
    review: str
    protocol: Mapping[str, Json]
    attention: AttentionDocument
    environment: Mapping[str, Json]
    suite_copy: SuiteCopyDocument
    rubric: tuple[run_documents.CriterionDocument, ...]
    models: Mapping[str, str]
    judge_models: Mapping[str, str]
    trial_list: tuple[TrialDocument, ...]
    jobs: tuple[run_documents.BatchJobDocument, ...]
    causes: tuple[Cause, ...]
    paused: run_documents.PauseDocument | None
    remaining: RemainingCost | None


@document
class SourceDocument:
    """JSON of a run's origin."""

    kind: str
    from_: str | None
    format: str | None


@document
class StoredFileDocument:
    """JSON of one file of a run in the results folder."""

    path: str
    bytes: int


@document
class DossierDocument:
    """JSON of a run's registry record: the fields of its row in `assay runs`, and more."""

    row: run_documents.RunSummaryDocument = inlined()
    calls: CallsDocument = inlined()
    asked_with: Mapping[str, Json]
    judged_with: Mapping[str, Json]
    judge_prompts: Mapping[str, str | None]
    environment: Mapping[str, Json]
    seeds: Mapping[str, Json]
    parameters: Mapping[str, Json]
    config_digest: str
    code_version: str | None
    source: SourceDocument
    system_prompt: str
    prompt_version: str | None
    rubric_digest: str
    rubric: tuple[run_documents.GuidedCriterionDocument, ...]
    suite_digest: str
    review: str
    protocols: tuple[Mapping[str, Json], ...]
    achieved: Mapping[str, Json]
    attention: AttentionDocument
    files: tuple[StoredFileDocument, ...]


def run_document(full: RunInFull) -> RunDocument:
    plan = full.plan
    copy = plan.copy
    return RunDocument(
        row=run_documents.run_summary(full.summary, full.provenance.approvals),
        calls=_calls(full.provenance),
        settings=recorded_settings(plan),
        seed=plan.seed,
        benchmark=plan.benchmark,
        concurrency=plan.concurrency,
        budget_usd=plan.budget_usd,
        margin=plan.margin,
        environment=plan.environment,
        protocol={**plan.protocol, "achieved": full.protocol["achieved"]},
        attention=attention_document(full.attention),
        parameters=run_parameters(plan).as_json(),
        review=plan.policy,
        suite_copy=SuiteCopyDocument(path=copy.path, digest=copy.digest, text=copy.text),
        rubric=tuple(
            guided.criterion for guided in run_documents.criteria(graded_rubric(plan, full.summary))
        ),
        models={
            candidate.name: candidate.model.ref
            for candidate in plan.candidates
            if candidate.model is not None
        },
        judge_models={judge.name: judge.model.ref for judge in plan.judges},
        trial_list=tuple(_trial(trial) for trial in full.trials),
        jobs=tuple(map(run_documents.job_document, full.jobs)),
        causes=full.causes,
        paused=None
        if full.pause is None
        else run_documents.pause_document(full.pause, full.summary.id, full.enough_usd),
        remaining=full.remaining,
    )


def dossier_document(dossier: Dossier) -> DossierDocument:
    provenance = dossier.provenance
    plan, summary = provenance.plan, provenance.summary
    settings = recorded_settings(plan)
    return DossierDocument(
        row=run_documents.run_summary(summary, provenance.approvals),
        calls=_calls(provenance),
        asked_with=settings.asked_with,
        judged_with=settings.judged_with,
        seeds=settings.seeds,
        prompt_version=settings.prompt_version,
        rubric_digest=settings.rubric_digest,
        suite_digest=settings.suite_digest,
        judge_prompts={judge.name: judge.prompt for judge in plan.judges},
        environment=plan.environment,
        parameters=run_parameters(plan).as_json(),
        config_digest=dossier.config,
        code_version=dossier.code,
        source=source_document(dossier.source),
        system_prompt=plan.system_prompt,
        rubric=run_documents.criteria(graded_rubric(plan, summary)),
        review=str(plan.policy),
        protocols=tuple(
            {
                **version.protocol.as_json(),
                "at": version.at or None,
                "reviewer": version.reviewer or None,
            }
            for version in dossier.protocols
        ),
        achieved=dossier.achieved.as_json(),
        attention=attention_document(dossier.attention),
        files=tuple(StoredFileDocument(path=file.path, bytes=file.size) for file in dossier.files),
    )


def _calls(provenance: Provenance) -> CallsDocument:
    rate = provenance.calls_per_s
    return CallsDocument(
        seconds=provenance.seconds,
        calls=provenance.calls,
        calls_per_second=None if rate is None else round(rate, 4),
        answered=run_documents.answered(provenance),
    )


def source_document(origin: Source) -> SourceDocument:
    return SourceDocument(
        kind=origin.kind, from_=origin.detail or None, format=origin.format or None
    )


def _trial(trial: TrialRow) -> TrialDocument:
    failure = run_documents.failed_trial(trial) if trial.failure else None
    return TrialDocument(
        id=shown_trial(trial.key),
        task=trial.task,
        thing=trial.thing,
        trial=trial.k,
        trials=trial.of,
        state=trial.state,
        failure=failure,
    )
