"""Calibrate a judge on references with known scores and on grades that people corrected.

Calls go through the engine's Asker, so retries and recordings work as in a run. The calibration is
valid only for the same model, prompt, rubric and parameters. Until it is complete, `answer_cache`
keeps every answer, so that it can be continued.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from assay.analysis.judge_errors import JudgedReference, bias_by_criterion, by_kind, trust
from assay.app.calibration.answer_cache import FOLDER, PaidAnswers
from assay.app.calibration.calibration_documents import (
    CorrectionsDocument,
    JudgedReferenceDocument,
    MeasuredDocument,
    PassedDocument,
    trust_document,
)
from assay.app.calibration.reference_replies import ReferenceReplies
from assay.app.calibration.setup import (
    MAX_OF_A_TEXT,
    MAX_REPEATS,
    Calibrated,
    Foreseen,
    JudgeSetting,
    _plans,
    _question,
    setting_of,
)
from assay.app.runs import stopper as stopper_
from assay.app.runs.cost_estimate import Tally, check_cap
from assay.app.runs.run_documents import tokens_document
from assay.app.wire import ABSENT, plain
from assay.domain.assessment import Assessment
from assay.domain.calibration_record import CalibrationRecord
from assay.domain.digest import digest
from assay.domain.errors import InputError, Interrupted, Unanswered
from assay.domain.failure import Failure
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.selection import Selection
from assay.domain.suite import JudgeMode, Task
from assay.scoring.calibration_samples import SAMPLES
from assay.scoring.judge import prompt_text
from assay.scoring.reference_samples import (
    ReferenceSample,
    alone,
    family,
    identity_of,
    pairs,
    side_by_side,
)

R = TypeVar("R")

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path

    from assay.app.calibration.calibration_request import CalibrationRequest
    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.store.opening import Store

_SAME = 1e-9


def foreseen(workspace: Workspace, model: str, request: CalibrationRequest) -> Foreseen:
    """Return the planned calls and cost of `calibrate`, with the same arguments and errors, without
    calling the judge.
    """
    repeat = request.repeat
    if not 1 <= repeat <= MAX_REPEATS:
        raise InputError("--repeat", f"is {repeat}, but must be between 1 and {MAX_REPEATS}.")
    references = tuple(
        _references(workspace.store, request.samples, with_built_in=request.with_built_in)
    )
    setting = setting_of(workspace.store, workspace.settings, model, suite=request.suite)
    if setting.judge.mode is JudgeMode.PAIRWISE:
        problem = f"makes {setting.judge.name} compare pairs, but a calibration measures scores."
        remedy = "Calibrate with a suite whose judge has `mode: joint` or `each`."
        raise InputError(setting.source, problem, remedy=remedy)
    problems = workspace.directory.problems([], judges=[setting.judge.model])
    if problems:
        raise problems[0]
    tally = Tally(workspace.directory)
    for sample in references:
        if not sample.bypassed:
            tally.add(_question(setting, alone(sample, repeat=1)), times=repeat)
    for left, right in pairs(references):
        # The judge is asked in both orders, because only the pair of answers shows how often the
        # verdict follows the order.
        tally.add(_question(setting, side_by_side(left, right, swapped=False)), times=2)
    estimate = tally.estimate()
    cap = workspace.settings.cap_usd(request.budget_usd)
    check_cap(estimate, cap)
    paid = _paid(workspace.store, workspace.settings, setting, references, repeat=repeat)
    return Foreseen(
        setting=setting,
        references=references,
        estimate=estimate,
        cap_usd=cap,
        taken_over=len(paid.replies),
    )


def _paid(
    store: Store,
    settings: Settings,
    setting: JudgeSetting,
    references: Sequence[ReferenceSample],
    *,
    repeat: int,
) -> PaidAnswers:
    identity = identity_of(setting.judge, setting.rubric)
    name = digest(
        [
            [identity.model, identity.prompt, identity.rubric, identity.parameters],
            _samples_digest(references),
            repeat,
        ]
    )
    stored = [
        record.at
        for record in store.calibrations.records(model=identity.model)
        if record.identity == identity
        and record.document.get("samples_digest") == _samples_digest(references)
    ]
    folder = settings.folder / ".assay" / FOLDER
    paid = PaidAnswers(folder / f"{name}.jsonl", store.clock, since=max(stored, default=""))
    paid.read()
    return paid


def _samples_digest(references: Sequence[ReferenceSample]) -> str:
    return digest(
        [[s.id, s.prompt, s.response, s.score, s.tolerance, s.expected] for s in references]
    )


def calibrate(
    workspace: Workspace,
    model: str,
    request: CalibrationRequest,
    *,
    stopper: stopper_.Stopper | None = None,
    answered: Callable[[int, int], None] | None = None,
) -> Calibrated:
    """Calibrate a judge and store the result.

    Args:
        model: `provider/name`.
        stopper: stops the calibration from another thread, as Ctrl-C does.
        answered: called after every answer with (answers so far, answers in total).

    Raises:
        InputError: an invalid reference, file or number, or a model that cannot be called.
        Interrupted: the calibration was stopped. All answers are kept, and the same call continues
            the calibration.
        Unanswered: the judge scored no reference. The calibration is not stored, because corrected
            grades alone do not show how the judge grades with its current settings.
    """
    repeat = request.repeat
    ahead = foreseen(workspace, model, request)
    setting, references = ahead.setting, ahead.references
    paid = _paid(workspace.store, workspace.settings, setting, references, repeat=repeat)
    replies = ReferenceReplies(
        workspace=workspace,
        setting=setting,
        paid=paid,
        cap_usd=ahead.cap_usd,
        expected=ahead.estimate.calls,
        answered=answered,
    )
    try:
        judged, swaps = asyncio.run(_stoppable(replies.judge(references, repeat=repeat), stopper))
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        problem = f"was stopped; {len(paid.replies)} answers are kept for a day."
        raise Interrupted(
            "calibrate", problem, remedy="Run the same command again to continue."
        ) from error
    # Without this check, corrected grades alone gave a tier to a judge whose every call had failed.
    if all(reference.judged is None or reference.bypassed for reference in judged):
        raise _unanswered(setting, references, replies.failures)
    corrected, elsewhere, approved = _corrections(workspace.store, setting)
    everything = (*judged, *corrected)
    measured = trust(everything, swaps)
    identity = identity_of(setting.judge, setting.rubric)
    texts = {sample.id: sample for sample in references}
    document = MeasuredDocument(
        trust=trust_document(measured),
        judge=setting.judge.model.ref,
        settings_of=setting.source,
        identity=identity,
        samples_digest=_samples_digest(references),
        repeat=repeat,
        model_versions=tuple(sorted(replies.versions)),
        by_kind={
            kind: PassedDocument(passed=passed, asked=asked)
            for kind, (passed, asked) in by_kind(everything).items()
        },
        corrections=CorrectionsDocument(
            n=len(corrected), from_other_settings=elsewhere, approved_as_judged=approved
        ),
        by_criterion=bias_by_criterion(replies.by_criterion(references)),
        samples=tuple(
            _sample_document(reference, texts.get(reference.id)) for reference in everything
        ),
        pairs=tuple(swaps),
        failed_tries=tuple(paid.tries),
        calls=replies.calls,
        tokens=tokens_document(replies),
        cost_usd=replies.cost_usd,
    )
    record = workspace.calibrations.keep(
        CalibrationRecord(
            identity=identity,
            tier=measured.tier,
            at=workspace.clock.now(),
            document=plain(document),
        )
    )
    # Only now, so that a crash before this line loses no paid answer.
    paid.done()
    return Calibrated(
        setting=setting,
        trust=measured,
        judged=everything,
        record=record,
        failures=tuple(replies.failures),
        calls=replies.calls,
        approved=approved,
        taken_over=replies.taken_over,
    )


def _unanswered(
    setting: JudgeSetting,
    references: Sequence[ReferenceSample],
    failures: Sequence[tuple[str, Failure]],
) -> Unanswered:
    asked = sum(not sample.bypassed for sample in references)
    first = (
        f" The first failure: {failures[0][1].kind}: {failures[0][1].detail}" if failures else ""
    )
    return Unanswered(
        setting.judge.model.ref,
        f"scored none of {asked} references, so no calibration was stored.{first}",
    )


async def _stoppable(work: Coroutine[Any, Any, R], stopper: stopper_.Stopper | None) -> R:
    if stopper is None:
        return await work
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    # The stopper is called from another thread, and `Task.cancel` is not thread-safe.
    stopper.holds(lambda: loop.call_soon_threadsafe(task.cancel))
    try:
        return await task
    finally:
        stopper.holds(None)


def records(store: Store, *, model: str | None = None) -> tuple[CalibrationRecord, ...]:
    """Return the stored calibrations, newest first."""
    return tuple(store.calibrations.records(model=model))


def _corrections(store: Store, setting: JudgeSetting) -> tuple[list[JudgedReference], int, int]:
    """Return this model's corrected grades, the number of corrections made under other settings,
    and the number of approvals.

    Only candidates whose score a person changed are included; the other scores come from the judge.
    Corrections that a regrade repeated are left out, because the same decision would count twice.
    """
    ref = setting.judge.model.ref
    identity = identity_of(setting.judge, setting.rubric)
    corrections: list[JudgedReference] = []
    elsewhere = approved = 0
    for plan in _plans(store, having=AssessmentState.CORRECTED):
        names = {judge.name: judge for judge in plan.judges if judge.model.ref == ref}
        if not names:
            continue
        models = {c.name: c.model for c in plan.candidates if c.model is not None}
        selection = Selection(runs=(plan.id,))
        states = frozenset({AssessmentState.CORRECTED, AssessmentState.APPROVED})
        for row in store.archive.assessments.matching(selection, states=states):
            if row.grader not in names:
                continue
            if row.state is AssessmentState.APPROVED:
                approved += 1
                continue
            detail = store.archive.assessments.detail(row.key)
            last = detail.events[-1].decision if detail.events else None
            if (
                last is not None
                and last.verb is Verb.CORRECT
                and (last.key or "").startswith("kept:")
            ):
                continue
            same = identity_of(names[row.grader], plan.rubric) == identity
            # Otherwise, scores that nobody changed would be used as references and confirm the
            # judge by themselves.
            rescored = _rescored(detail.judged, row.assessment)
            for name, reference in row.assessment.scores.items():
                judged = detail.judged.scores.get(name)
                if reference is None or judged is None or name not in rescored:
                    continue
                elsewhere += not same
                model = models.get(name)
                corrections.append(
                    JudgedReference(
                        id=f"a{row.key}/{name}",
                        kind="correction",
                        source="correction",
                        reference=reference,
                        tolerance=0.10,
                        judged=judged,
                        own_family=None if model is None else family(model) == family(ref),
                    )
                )
    return corrections, elsewhere, approved


def _rescored(judged: Assessment, counted: Assessment) -> set[str]:
    grades = {(grade.candidate, grade.criterion): grade.score for grade in judged.grades}
    weighing = (grade for grade in counted.grades if judged.weights.get(grade.criterion, 1.0) > 0)
    changed = {
        each.candidate
        for each in weighing
        if _differ(each.score, grades.get((each.candidate, each.criterion)))
    }
    return changed | {
        name for name, score in counted.scores.items() if _differ(score, judged.scores.get(name))
    }


def _differ(score: float | None, other: float | None) -> bool:
    if score is None or other is None:
        return score is not other
    return abs(score - other) > _SAME


def _references(
    store: Store, path: Path | None, *, with_built_in: bool
) -> tuple[ReferenceSample, ...]:
    if path is None:
        return SAMPLES
    from assay.suites.samples import load_samples

    own = load_samples(path) if path.suffix or path.exists() else _of_run(store, str(path))
    if not with_built_in:
        return own
    taken = {sample.id for sample in SAMPLES}
    return (*SAMPLES, *(replace(s, id=f"own-{s.id}") if s.id in taken else s for s in own))


def _of_run(store: Store, run: str) -> tuple[ReferenceSample, ...]:
    """Return an imported run's responses, each with the median of the imported human grades."""
    (summary,) = store.archive.runs.matching(Selection(runs=(run,)))
    people = store.archive.scores.reference_graders(summary.id)
    if not people:
        raise InputError("--samples", f"run {summary.id} has no imported human grades.")
    given: dict[str, tuple[Task, str, list[float]]] = {}
    selection = Selection(runs=(summary.id,), judges=tuple(people))
    for detail, _ in store.archive.exports.assessments(selection):
        texts = {response.candidate: response.text for response in detail.responses}
        for name, score in detail.row.assessment.scores.items():
            if score is not None and name in texts:
                place = f"{detail.row.task}/{name}/{detail.row.k}"
                given.setdefault(place, (detail.task, texts[name], []))[2].append(score)
    return tuple(
        ReferenceSample(
            id=place,
            kind="reference",
            prompt=prompt_text(task),
            response=text,
            score=median(scores),
            expected=task.reference or task.ideal,
            context=task.context,
        )
        for place, (task, text, scores) in given.items()
    )


def _sample_document(
    judged: JudgedReference, sample: ReferenceSample | None
) -> JudgedReferenceDocument:
    expected = None if sample is None else sample.expected
    return JudgedReferenceDocument(
        prompt=ABSENT if sample is None else sample.prompt[:MAX_OF_A_TEXT],
        response=ABSENT if sample is None else sample.response[:MAX_OF_A_TEXT],
        reference_answer=ABSENT
        if sample is None
        else expected
        if expected is None
        else expected[:MAX_OF_A_TEXT],
        id=judged.id,
        kind=judged.kind,
        expected=judged.reference,
        judged=None if judged.bypassed else judged.judged,
        error=None if judged.bypassed else judged.error,
        tolerance=judged.tolerance,
        passed=judged.passed,
        bypassed=judged.bypassed,
        repeats=judged.repeats,
        source=judged.source,
    )
