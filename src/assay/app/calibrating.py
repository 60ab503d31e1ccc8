"""The verb `calibrate`: a judge against references whose score is known, and against what people corrected.

Calls go through the engine's Asker, so that retries and recordings work as in a run. What is measured is kept as a
record that holds for exactly this model, these words, this rubric and these parameters. Until it is stored, every answer is in a
file (`paid_answers`), and the same calibration started again goes on from there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from assay.analysis.calibration import Figure, Judged, Swap, Trust, bias_by_criterion, by_kind, trust
from assay.app import running
from assay.app.estimating import Tally, check_cap
from assay.app.paid_answers import FOLDER, PaidAnswers, question_of
from assay.domain.assessment import Assessment
from assay.domain.calibration import CalibrationRecord
from assay.domain.digest import digest
from assay.domain.errors import InputError, Interrupted, Unanswered
from assay.domain.events import nobody
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import RunId, TrialKey
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.run import RunOptions
from assay.domain.selection import Selection
from assay.domain.suite import PERSON, JudgeMode, JudgeSpec
from assay.engine.asking import Asker, GaveUp
from assay.engine.planning import planned_run
from assay.scoring.calibration import FIRST, SECOND, Sample, alone, family, identity_of, pairs, side_by_side
from assay.scoring.calibration_samples import SAMPLES
from assay.scoring.judge import EachJudge, JointJudge
from assay.scoring.rubrics import QUALITY

R = TypeVar("R")

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from pathlib import Path

    from assay.app.wiring import Workspace
    from assay.domain.calls import ModelRequest, Reply
    from assay.domain.model import ModelSpec
    from assay.domain.run import Entry, RunPlan
    from assay.domain.suite import Rubric, Suite
    from assay.engine.estimate import Estimate
    from assay.scoring.evaluator import Sitting

MOST_REPEATS = 50
MOST_OF_A_REPLY = 2_000
"""Characters of a failed try's reply that are kept."""
MOST_OF_A_TEXT = 4_000
"""Characters of a reference's prompt, answer and expected answer that are kept with the record."""
_SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The judge to be calibrated, as it grades: `source` says where rubric and words come from."""

    judge: JudgeSpec
    rubric: Rubric
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A calibration: the figures, what they rest on, and the stored record.

    `calls` counts all answers that were paid for, `taken_over` those of them that an interrupted attempt had asked already.
    """

    setting: Setting
    trust: Trust
    judged: tuple[Judged, ...]
    record: CalibrationRecord
    failures: tuple[tuple[str, Failure], ...]
    calls: int
    approved: int
    taken_over: int = 0


def setting_of(workspace: Workspace, model: str, *, suite: Path | None = None) -> Setting:
    """The judge as a suite has it; else as the newest run it graded had it; else as Assay's own defaults have it.

    Raises:
        InputError: the model is no reference, or the suite is wrong.
    """
    from assay.app.suites import model_candidate

    spec = model_candidate(workspace, model).model
    if spec is None:
        raise InputError("MODEL", f"{model!r} is no model.", remedy="Write provider/name.")
    if spec.provider == PERSON:
        raise InputError("MODEL", f"{model!r} is a person, and models are calibrated.", remedy="Write provider/name.")
    if suite is not None:
        loaded = _loaded(workspace, suite, model, spec.ref)
        judge = next((j for j in loaded.judges if j.model.ref == spec.ref), loaded.judges[0])
        plan = planned_run(loaded, RunOptions(), started=workspace.clock.now(), seed=0, nonce="")
        return Setting(judge=judge, rubric=plan.rubric, source=f"suite {loaded.name}")
    for plan in _plans(workspace):
        for judge in plan.judges:
            if judge.model.ref == spec.ref:
                return Setting(
                    judge=replace(judge, model=_reachable(judge.model, spec)),
                    rubric=plan.rubric,
                    source=f"run {plan.id}",
                )
    return Setting(
        judge=JudgeSpec(name=spec.ref, model=spec, mode=JudgeMode.EACH), rubric=QUALITY, source="the defaults"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """A calibration before its first call. `estimate` is of the whole; `taken_over`: answers of it that are paid for."""

    setting: Setting
    references: tuple[Sample, ...]
    estimate: Estimate
    taken_over: int = 0


def foreseen(
    workspace: Workspace,
    model: str,
    *,
    samples: Path | None = None,
    with_built_in: bool = False,
    suite: Path | None = None,
    repeat: int = 1,
    budget_usd: float | None = None,
) -> Foreseen:
    """What a calibration would ask; for arguments and what is refused see `calibrate`. Asks and stores nothing."""
    if not 1 <= repeat <= MOST_REPEATS:
        raise InputError("--repeat", f"is {repeat}, and must lie between 1 and {MOST_REPEATS}.")
    references = tuple(_references(samples, with_built_in=with_built_in))
    setting = setting_of(workspace, model, suite=suite)
    if setting.judge.mode is JudgeMode.PAIRWISE:
        raise InputError(
            setting.source,
            f"has {setting.judge.name} judge pairs, and a calibration measures scores.",
            remedy="Calibrate with a suite whose judge has `mode: joint` or `each`.",
        )
    problems = workspace.directory.problems([], judges=[setting.judge.model])
    if problems:
        raise problems[0]
    tally = Tally(workspace)
    for sample in references:
        if not sample.bypassed:
            tally.add(_question(setting, alone(sample, repeat=1)), times=repeat)
    for one, other in pairs(references):
        tally.add(_question(setting, side_by_side(one, other, swapped=False)), times=2)
    estimate = tally.estimate()
    check_cap(estimate, budget_usd)
    paid = _paid(workspace, setting, references, repeat=repeat)
    return Foreseen(setting=setting, references=references, estimate=estimate, taken_over=len(paid.replies))


def _paid(workspace: Workspace, setting: Setting, references: Sequence[Sample], *, repeat: int) -> PaidAnswers:
    """What an interrupted calibration of the same judge over the same references has asked already."""
    identity = identity_of(setting.judge, setting.rubric)
    name = digest([list(_identity(identity).values()), _samples_digest(references), repeat])
    stored = [
        one.at
        for one in workspace.calibrations.records(model=identity.model)
        if one.identity == identity and one.document.get("samples_digest") == _samples_digest(references)
    ]
    folder = workspace.settings.folder / ".assay" / FOLDER
    paid = PaidAnswers(folder / f"{name}.jsonl", workspace.clock, since=max(stored, default=""))
    paid.read()
    return paid


def _samples_digest(references: Sequence[Sample]) -> str:
    return digest([[s.id, s.prompt, s.response, s.score, s.tolerance, s.expected] for s in references])


def _question(setting: Setting, sitting: Sitting) -> ModelRequest:
    (request,) = _evaluator(setting, sitting).ask(sitting)
    return request


def _evaluator(setting: Setting, sitting: Sitting) -> EachJudge | JointJudge:
    return (EachJudge if len(sitting.responses) == 1 else JointJudge)(setting.judge, setting.rubric)


def calibrate(
    workspace: Workspace,
    model: str,
    *,
    samples: Path | None = None,
    with_built_in: bool = False,
    suite: Path | None = None,
    repeat: int = 1,
    budget_usd: float | None = None,
    stopper: running.Stopper | None = None,
    answered: Callable[[int, int], None] | None = None,
) -> Calibrated:
    """Measure a judge and keep what was found.

    Args:
        model: `provider/name`.
        samples: a file of references used in place of ours; with `with_built_in`, beside them.
        suite: whose rubric, prompt and parameters the judge is measured with.
        repeat: how often each reference is judged; above 1 the spread between repeats is measured.
        budget_usd: hard cap on what it may cost; references the cap leaves unasked are left out of the figures. What an
            interrupted attempt has spent is part of it.
        stopper: stops it from another thread as Ctrl-C does.
        answered: told after every answer how many of how many are there.

    Raises:
        InputError: a wrong reference, file or number, or a model that cannot be asked.
        Interrupted: somebody stopped it. Every answer so far is on disk, and the same call goes on from there.
        Unanswered: the judge scored none of the references. Nothing is stored: corrected grades alone do not say how
            the judge grades as it is set up now.
    """
    ahead = foreseen(
        workspace,
        model,
        samples=samples,
        with_built_in=with_built_in,
        suite=suite,
        repeat=repeat,
        budget_usd=budget_usd,
    )
    setting, references = ahead.setting, ahead.references
    paid = _paid(workspace, setting, references, repeat=repeat)
    bench = _Bench(workspace, setting, paid, cap_usd=budget_usd, expected=ahead.estimate.calls, answered=answered)
    try:
        judged, swaps = asyncio.run(_stoppable(bench.judge(references, repeat=repeat), stopper))
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Interrupted(
            "calibrate",
            f"was stopped; {len(paid.replies)} answers are kept for a day.",
            remedy="The same command goes on from there.",
        ) from error
    if all(one.judged is None or one.bypassed for one in judged):
        raise _unanswered(setting, references, bench.failures)
    corrected, elsewhere, approved = _corrections(workspace, setting)
    everything = (*judged, *corrected)
    found = trust(everything, swaps)
    identity = identity_of(setting.judge, setting.rubric)
    texts = {sample.id: sample for sample in references}
    document: dict[str, Any] = {
        "judge": setting.judge.model.ref,
        "settings_of": setting.source,
        "identity": _identity(identity),
        "samples_digest": _samples_digest(references),
        "repeat": repeat,
        "model_versions": sorted(bench.versions),
        **figures_document(found),
        "by_kind": {kind: {"passed": passed, "asked": asked} for kind, (passed, asked) in by_kind(everything).items()},
        "corrections": {"n": len(corrected), "from_other_settings": elsewhere, "approved_as_judged": approved},
        "by_criterion": {
            name: figure(found) for name, found in bias_by_criterion(bench.by_criterion(references)).items()
        },
        "samples": [_sample_document(one, texts.get(one.id)) for one in everything],
        "pairs": [{"id": one.id, "lead": one.lead, "lead_swapped": one.lead_swapped} for one in swaps],
        "failed_tries": list(paid.tries),
        "calls": bench.calls,
        "tokens": {"input": bench.input_tokens, "output": bench.output_tokens},
        "cost_usd": bench.cost_usd,
    }
    record = workspace.calibrations.keep(
        CalibrationRecord(identity=identity, tier=found.tier, at=workspace.clock.now(), document=document)
    )
    paid.done()
    return Calibrated(
        setting=setting,
        trust=found,
        judged=everything,
        record=record,
        failures=tuple(bench.failures),
        calls=bench.calls,
        approved=approved,
        taken_over=bench.taken_over,
    )


def _unanswered(setting: Setting, references: Sequence[Sample], failures: Sequence[tuple[str, Failure]]) -> Unanswered:
    asked = sum(not sample.bypassed for sample in references)
    first = f" The first failure: {failures[0][1].kind}: {failures[0][1].detail}" if failures else ""
    return Unanswered(
        setting.judge.model.ref, f"scored none of {asked} references, so nothing was measured or stored.{first}"
    )


async def _stoppable(work: Coroutine[Any, Any, R], stopper: running.Stopper | None) -> R:
    """The work's result, which a stopper may cut off."""
    if stopper is None:
        return await work
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    stopper.holds(lambda: loop.call_soon_threadsafe(task.cancel))
    try:
        return await task
    finally:
        stopper.holds(None)


def records(workspace: Workspace, *, model: str | None = None) -> tuple[CalibrationRecord, ...]:
    """Stored calibrations, newest first."""
    return tuple(workspace.calibrations.records(model=model))


@dataclass(slots=True)
class _Bench:
    """Asks the judge; implements `ports.Ledger`: failed tries go into the record of the calibration."""

    workspace: Workspace
    setting: Setting
    paid: PaidAnswers
    cap_usd: float | None = None
    expected: int = 0
    answered: Callable[[int, int], None] | None = None
    held_usd: float = 0.0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    versions: set[str] = field(default_factory=set)
    failures: list[tuple[str, Failure]] = field(default_factory=list)
    taken_over: int = 0
    done: int = 0
    grades: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)

    async def judge(self, samples: Sequence[Sample], *, repeat: int) -> tuple[list[Judged], list[Swap]]:
        """Every sample alone, then those of one prompt side by side in both orders."""
        self._take_over()
        slots = asyncio.Semaphore(int(str(self.workspace.settings.values["concurrency"])))
        asker = Asker(
            run=RunId("calibration"),
            budget=self.cap_usd is not None,
            journal=self,
            directory=self.workspace.directory,
            clock=self.workspace.clock,
            listener=nobody,
        )

        async def score(sitting: Sitting) -> Assessment | Failure:
            async with slots:
                return await self._ask(asker, sitting)

        async def alone_many(sample: Sample) -> Judged:
            if sample.bypassed:
                return _judged(sample, [0.0])
            found = [await score(alone(sample, repeat=k)) for k in range(1, repeat + 1)]
            self.grades[sample.id] = [_grades(one) for one in found if isinstance(one, Assessment)]
            return _judged(sample, [one.scores.get(FIRST) for one in found if isinstance(one, Assessment)])

        async def both_orders(one: Sample, other: Sample) -> Swap:
            leads = [_lead(await score(side_by_side(one, other, swapped=swapped))) for swapped in (False, True)]
            return Swap(id=f"{one.id} / {other.id}", lead=leads[0], lead_swapped=leads[1])

        try:
            async with asyncio.TaskGroup() as group:
                judged = [group.create_task(alone_many(sample)) for sample in samples]
                swaps = [group.create_task(both_orders(one, other)) for one, other in pairs(samples)]
            lost = {name for name, failure in self.failures if failure.fault is not Fault.JUDGE}
            # What the wire lost says nothing about the judge; what the judge left unreadable does.
            kept = [one for task in judged if (one := task.result()).judged is not None or one.id not in lost]
            return kept, [task.result() for task in swaps]
        finally:
            await self.workspace.directory.close()

    def by_criterion(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        """By how much the judge is off on each criterion, a number a reference: the mean over its repeats."""
        found: dict[str, list[float]] = {}
        for sample in samples:
            given: dict[str, list[float]] = {}
            for one in self.grades.get(sample.id, ()):
                for name, value in one.items():
                    given.setdefault(name, []).append(value)
            for name, values in given.items():
                found.setdefault(name, []).append(sum(values) / len(values) - sample.score)
        return found

    def _take_over(self) -> None:
        """Count what an interrupted attempt has spent, so that the cap and the record hold for the whole."""
        for reply in self.paid.unusable:
            self._count(reply)
            self.held_usd += reply.cost_usd or 0.0
        for reply in self.paid.replies.values():
            self.held_usd += reply.cost_usd or 0.0

    async def _ask(self, asker: Asker, sitting: Sitting) -> Assessment | Failure:
        judge = _evaluator(self.setting, sitting)
        (request,) = judge.ask(sitting)
        question = question_of(request)

        def read(reply: Reply) -> Assessment:
            self._count(reply)
            return judge.read(sitting, (reply,))

        try:
            known = self.paid.replies.get(question)
            if known is not None:
                self.taken_over += 1
                return read(known)
            answer = await asker.answer(request, read, trial=TrialKey(0))
            self.paid.keep(question, answer.reply)
            return answer.read
        except GaveUp as gave_up:
            self.failures.append((sitting.task.id.removeprefix("calibration/"), gave_up.failure))
            return gave_up.failure
        finally:
            self.done += 1
            if self.answered is not None:
                self.answered(self.done, self.expected)

    def _count(self, reply: Reply) -> None:
        self.calls += 1
        self.input_tokens += reply.usage.input_tokens or 0
        self.output_tokens += reply.usage.output_tokens or 0
        known = self.cost_usd is not None and reply.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (reply.cost_usd or 0.0) if known else None
        if reply.model_version:
            self.versions.add(reply.model_version)

    async def record(self, entry: Entry, /) -> None:
        """A failed try, which goes into the record; the failure that ends the asking is kept by `_ask`."""
        for call in entry.calls:
            if call.failure is None:
                continue
            if call.reply is not None and not call.reply.text:  # an empty answer was paid for, and read by nobody
                self._count(call.reply)
            self.paid.keep_try(
                {
                    "id": call.request.purpose.task.removeprefix("calibration/"), "try": call.number, "at": call.started,
                    "kind": call.failure.kind, "fault": str(call.failure.fault), "detail": call.failure.detail,
                    "reply": "" if call.reply is None else call.reply.text[:MOST_OF_A_REPLY],
                    "cost_usd": None if call.reply is None else call.reply.cost_usd,
                },
                call.reply,
            )  # fmt: skip

    async def reserve(self, run: RunId, usd: float, /) -> bool:
        if self.cap_usd is not None and self.held_usd + usd > self.cap_usd:
            return False
        self.held_usd += usd
        return True

    async def settle(self, run: RunId, reserved_usd: float, spent_usd: float, /) -> None:
        self.held_usd += spent_usd - reserved_usd


def _judged(sample: Sample, scores: Sequence[float | None]) -> Judged:
    read = tuple(score for score in scores if score is not None)
    return Judged(
        id=sample.id,
        kind=sample.kind,
        source="sample",
        reference=sample.score,
        tolerance=sample.tolerance,
        judged=sum(read) / len(read) if read else None,
        repeats=() if sample.bypassed else read,
        bypassed=sample.bypassed,
        twin_of=sample.twin_of,
    )


def _grades(found: Assessment) -> dict[str, float]:
    """A lone candidate's grades on 0 to 1, by criterion."""
    return {one.criterion: one.score for one in found.grades if one.candidate == FIRST and one.score is not None}


def _lead(found: Assessment | Failure) -> float | None:
    if isinstance(found, Failure):
        return None
    one, other = found.scores.get(FIRST), found.scores.get(SECOND)
    return None if one is None or other is None else one - other


def _corrections(workspace: Workspace, setting: Setting) -> tuple[list[Judged], int, int]:
    """What people made of this model's grades: corrected ones, how many of them under other settings, and approvals.

    Of a corrected assessment only the candidates count whose score a person had a part in: the others' is the judge's own.
    Corrections that a regrade took over are left out: the same decision would count twice.
    """
    ref = setting.judge.model.ref
    identity = identity_of(setting.judge, setting.rubric)
    found: list[Judged] = []
    elsewhere = approved = 0
    for plan in _plans(workspace, having=AssessmentState.CORRECTED):
        names = {judge.name: judge for judge in plan.judges if judge.model.ref == ref}
        if not names:
            continue
        models = {c.name: c.model for c in plan.candidates if c.model is not None}
        selection = Selection(runs=(plan.id,))
        states = frozenset({AssessmentState.CORRECTED, AssessmentState.APPROVED})
        for row in workspace.archive.assessments(selection, states=states):
            if row.grader not in names:
                continue
            if row.state is AssessmentState.APPROVED:
                approved += 1
                continue
            detail = workspace.archive.assessment(row.key)
            if any(
                e.decision.verb is Verb.CORRECT and (e.decision.key or "").startswith("kept:")
                for e in detail.events[-1:]
            ):
                continue
            same = identity_of(names[row.grader], plan.rubric) == identity
            rescored = _rescored(detail.judged, row.assessment)
            for name, reference in row.assessment.scores.items():
                judged = detail.judged.scores.get(name)
                if reference is None or judged is None or name not in rescored:
                    continue
                elsewhere += not same
                model = models.get(name)
                found.append(
                    Judged(
                        id=f"a{row.key}/{name}",
                        kind="correction",
                        source="correction",
                        reference=reference,
                        tolerance=0.10,
                        judged=judged,
                        own_family=None if model is None else family(model) == family(ref),
                    )
                )
    return found, elsewhere, approved


def _rescored(judged: Assessment, counted: Assessment) -> set[str]:
    """Candidates whose own score a person changed, or a grade that weighs in it."""
    grades = {(one.candidate, one.criterion): one.score for one in judged.grades}
    weighing = (one for one in counted.grades if judged.weights.get(one.criterion, 1.0) > 0)
    changed = {one.candidate for one in weighing if _differ(one.score, grades.get((one.candidate, one.criterion)))}
    return changed | {name for name, score in counted.scores.items() if _differ(score, judged.scores.get(name))}


def _differ(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) > _SAME


def _plans(workspace: Workspace, *, having: AssessmentState | None = None) -> Iterator[RunPlan]:
    """Plans of stored runs that had judges, newest first; only those with assessments in a state."""
    for summary in workspace.archive.newest_first():
        if summary.judges and (having is None or summary.assessments.get(having)):
            yield workspace.journal.plan_of(summary.id)


def _references(path: Path | None, *, with_built_in: bool) -> tuple[Sample, ...]:
    if path is None:
        return SAMPLES
    from assay.suites.samples import load_samples

    own = load_samples(path)
    if not with_built_in:
        return own
    taken = {sample.id for sample in SAMPLES}
    return (*SAMPLES, *(replace(s, id=f"own-{s.id}") if s.id in taken else s for s in own))


def _loaded(workspace: Workspace, suite: Path, model: str, ref: str) -> Suite:
    """The suite with this model's own entry among its judges, or with the model in place of its judge."""
    try:
        loaded = running.load(workspace, suite)
    except InputError:  # it may only lack a judge; if not, the next line says so
        loaded = None
    if loaded is not None and any(judge.model.ref == ref for judge in loaded.judges):
        return loaded
    return running.load(workspace, suite, judge=model)


def _reachable(stored: ModelSpec, asked: ModelSpec) -> ModelSpec:
    """The model as the run asked it, with today's price."""
    return replace(stored, price=stored.price or asked.price)


def _identity(identity: Any) -> dict[str, str]:
    return {
        "model": identity.model,
        "prompt": identity.prompt,
        "rubric": identity.rubric,
        "parameters": identity.parameters,
    }


def figures_document(found: Trust) -> dict[str, Any]:
    """The figures as scripts read them."""
    return {
        "tier": found.tier.value,
        "tier_at_face_value": found.tier_at_face_value.value,
        "n": found.n,
        "unread": found.unread,
        "pass_rate": figure(found.pass_rate),
        "pass_rate_with_bypassed": figure(found.pass_rate_with_bypassed),
        "mae": figure(found.mae),
        "max_error": found.max_error,
        "bias": figure(found.bias),
        "pearson": figure(found.pearson),
        "spearman": figure(found.spearman),
        "position_flips": figure(found.position_flips),
        "first_place_bonus": figure(found.first_place_bonus),
        "length_bias": figure(found.length_bias),
        "self_preference": figure(found.self_preference),
        "repeat_sd": figure(found.repeat_sd),
        "more_samples_advised": found.more_pairs,
    }


def figure(one: Figure) -> dict[str, Any]:
    """A figure: value, interval, how many it rests on, and why there is none."""
    return {"value": one.value, "ci95": None if one.ci95 is None else list(one.ci95), "n": one.n, "reason": one.reason}


def calibration_document(found: Calibrated) -> dict[str, Any]:
    """The document of `calibrate`."""
    return {
        **record_document(found.record),
        "taken_over": found.taken_over,
        "failures": [
            {"sample": name, "kind": f.kind, "fault": f.fault, "detail": f.detail} for name, f in found.failures
        ],
    }


def record_document(record: CalibrationRecord) -> dict[str, Any]:
    """A stored calibration as scripts read it."""
    return {
        **record.document,
        "model": record.identity.model,
        "tier": record.tier.value,
        "at": record.at,
        "version": record.version,
    }


def _sample_document(one: Judged, sample: Sample | None) -> dict[str, Any]:
    """A reference with its texts where it is a sample; a corrected grade's stand with its assessment."""
    texts: dict[str, Any] = {}
    if sample is not None:
        texts = {
            "prompt": sample.prompt[:MOST_OF_A_TEXT],
            "response": sample.response[:MOST_OF_A_TEXT],
            "reference_answer": None if sample.expected is None else sample.expected[:MOST_OF_A_TEXT],
        }
    return {
        **texts,
        "id": one.id,
        "kind": one.kind,
        "source": one.source,
        "expected": one.reference,
        "judged": None if one.bypassed else one.judged,
        "error": None if one.bypassed else one.error,
        "tolerance": one.tolerance,
        "passed": one.passed,
        "bypassed": one.bypassed,
        "repeats": list(one.repeats),
    }
