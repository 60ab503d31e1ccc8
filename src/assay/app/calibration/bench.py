"""Send reference answers to a judge and collect its replies."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.analysis.calibration import JudgedReference, Swap
from assay.app.calibration.answer_cache import PaidAnswers, question_of
from assay.app.calibration.setup import MOST_OF_A_REPLY, JudgeSetting, _evaluator
from assay.domain.assessment import Assessment
from assay.domain.budget import Grant, Reservation, decide
from assay.domain.events import nobody
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import RunId, TrialKey
from assay.engine.asking import Asker, GaveUp
from assay.engine.spending import Spending
from assay.scoring.calibration import FIRST, SECOND, ReferenceSample, alone, pairs, side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assay.app.workspace import Workspace
    from assay.domain.calls import Reply
    from assay.domain.run import Entry
    from assay.scoring.evaluator import Sitting


@dataclass(slots=True)
class _Bench:
    """Makes the calls to the judge, and records failed attempts for the calibration record as a `ports.Ledger`."""

    workspace: Workspace
    setting: JudgeSetting
    paid: PaidAnswers
    cap_usd: float | None = None
    expected: int = 0
    answered: Callable[[int, int], None] | None = None
    held_usd: float = 0.0
    in_flight: list[Reservation] = field(default_factory=list)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    versions: set[str] = field(default_factory=set)
    failures: list[tuple[str, Failure]] = field(default_factory=list)
    taken_over: int = 0
    done: int = 0
    grades: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)

    async def judge(self, samples: Sequence[ReferenceSample], *, repeat: int) -> tuple[list[JudgedReference], list[Swap]]:
        """Judge each sample on its own, then judge pairs of samples with the same prompt in both orders."""
        self._take_over()
        slots = asyncio.Semaphore(int(str(self.workspace.settings.values["concurrency"])))
        asker = Asker(
            spending=None if self.cap_usd is None else Spending(RunId("calibration"), self, self.workspace.directory),
            journal=self,
            directory=self.workspace.directory,
            clock=self.workspace.clock,
            listener=nobody,
        )

        async def score(sitting: Sitting) -> Assessment | Failure:
            async with slots:
                return await self._ask(asker, sitting)

        async def alone_many(sample: ReferenceSample) -> JudgedReference:
            if sample.bypassed:
                return _judged(sample, [0.0])
            outcomes = [await score(alone(sample, repeat=k)) for k in range(1, repeat + 1)]
            scored = [outcome for outcome in outcomes if isinstance(outcome, Assessment)]
            self.grades[sample.id] = [_grades(assessment) for assessment in scored]
            return _judged(sample, [assessment.scores.get(FIRST) for assessment in scored])

        async def both_orders(first: ReferenceSample, second: ReferenceSample) -> Swap:
            leads = [_lead(await score(side_by_side(first, second, swapped=swapped))) for swapped in (False, True)]
            return Swap(id=f"{first.id} / {second.id}", lead=leads[0], lead_swapped=leads[1])

        try:
            async with asyncio.TaskGroup() as group:
                judged = [group.create_task(alone_many(sample)) for sample in samples]
                swaps = [group.create_task(both_orders(first, second)) for first, second in pairs(samples)]
            lost = {name for name, failure in self.failures if failure.fault is not Fault.JUDGE}
            # Transport failures say nothing about the judge, so they are left out; unreadable answers count.
            kept = [first for task in judged if (first := task.result()).judged is not None or first.id not in lost]
            return kept, [task.result() for task in swaps]
        finally:
            await self.workspace.directory.close()

    def by_criterion(self, samples: Sequence[ReferenceSample]) -> dict[str, list[float]]:
        biases: dict[str, list[float]] = {}
        for sample in samples:
            given: dict[str, list[float]] = {}
            for grades in self.grades.get(sample.id, ()):
                for name, value in grades.items():
                    given.setdefault(name, []).append(value)
            for name, values in given.items():
                biases.setdefault(name, []).append(sum(values) / len(values) - sample.score)
        return biases

    def _take_over(self) -> None:
        """Add the cost of an interrupted attempt, so that the budget and the record cover the whole calibration."""
        for reply in self.paid.unusable:
            self._count(reply)
        # Usable answers are counted when `_ask` reads them again; only their cost is added here. An attempt without a
        # budget reserved nothing, so that only the costs of its replies are known.
        replies = (*self.paid.unusable, *self.paid.replies.values())
        self.held_usd = max(self.paid.held_usd, sum(reply.cost_usd or 0.0 for reply in replies))

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
            # A reference has no trial in the store; the key only satisfies the signature.
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
        """Record a failed attempt. `_ask` records the last failure itself."""
        for call in entry.calls:
            if call.failure is None:
                continue
            if call.reply is not None and not call.reply.text:  # this reply was paid for but never parsed
                self._count(call.reply)
            self.paid.keep_try(
                {
                    "id": call.request.purpose.task.removeprefix("calibration/"),
                    "try": call.number,
                    "at": call.started,
                    "kind": call.failure.kind,
                    "fault": str(call.failure.fault),
                    "detail": call.failure.detail,
                    "reply": "" if call.reply is None else call.reply.text[:MOST_OF_A_REPLY],
                    "cost_usd": None if call.reply is None else call.reply.cost_usd,
                },
                call.reply,
            )

    async def reserve(self, run: RunId, reservation: Reservation, /) -> Grant:
        if self.cap_usd is not None:
            spent_usd = self.held_usd - sum(waiting.usd for waiting in self.in_flight)
            most_usd = sum(waiting.most_usd for waiting in self.in_flight)
            grant = decide(reservation, budget_usd=self.cap_usd, spent_usd=spent_usd, in_flight_usd=most_usd)
            if grant is not Grant.GRANTED:
                return grant
        self.in_flight.append(reservation)
        self._hold(reservation.usd)
        return Grant.GRANTED

    async def settle(self, run: RunId, reservation: Reservation, spent_usd: float, /) -> None:
        self.in_flight.remove(reservation)
        self._hold(spent_usd - reservation.usd)

    def _hold(self, usd: float) -> None:
        self.held_usd += usd
        if usd:
            self.paid.hold(usd)


def _judged(sample: ReferenceSample, scores: Sequence[float | None]) -> JudgedReference:
    read = tuple(score for score in scores if score is not None)
    return JudgedReference(
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


def _grades(assessment: Assessment) -> dict[str, float]:
    """Return the judge's grades of a single candidate, from 0 to 1, by criterion."""
    return {grade.criterion: grade.score for grade in assessment.grades if grade.candidate == FIRST and grade.score is not None}


def _lead(assessment: Assessment | Failure) -> float | None:
    if isinstance(assessment, Failure):
        return None
    first, second = assessment.scores.get(FIRST), assessment.scores.get(SECOND)
    return None if first is None or second is None else first - second
