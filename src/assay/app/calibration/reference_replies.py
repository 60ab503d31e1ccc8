"""Send reference answers to a judge and collect its replies."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.analysis.judge_errors import JudgedReference, Swap
from assay.app.calibration.paid_calls import PaidCalls
from assay.app.calibration.setup import JudgeSetting, _evaluator
from assay.domain.assessment import Assessment
from assay.domain.failure import Failure, Fault
from assay.engine.asking import Asker, GaveUp
from assay.scoring.reference_samples import (
    FIRST,
    SECOND,
    ReferenceSample,
    alone,
    pairs,
    side_by_side,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assay.scoring.evaluator import GradingAttempt


@dataclass(slots=True, kw_only=True)
class ReferenceReplies(PaidCalls):
    """Makes the calls to the judge."""

    setting: JudgeSetting
    expected: int = 0
    answered: Callable[[int, int], None] | None = None
    failures: list[tuple[str, Failure]] = field(default_factory=list)
    done: int = 0
    grades: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)

    async def judge(
        self, samples: Sequence[ReferenceSample], *, repeat: int
    ) -> tuple[list[JudgedReference], list[Swap]]:
        """Judge each sample on its own, then judge pairs of samples with the same prompt in both
        orders.
        """
        asker = self.open()
        slots = asyncio.Semaphore(int(str(self.workspace.settings.values["concurrency"])))

        async def score(grading: GradingAttempt) -> Assessment | Failure:
            async with slots:
                return await self._ask(asker, grading)

        async def alone_many(sample: ReferenceSample) -> JudgedReference:
            if sample.bypassed:
                return _judged(sample, [0.0])
            outcomes = [await score(alone(sample, repeat=k)) for k in range(1, repeat + 1)]
            scored = [outcome for outcome in outcomes if isinstance(outcome, Assessment)]
            self.grades[sample.id] = [_grades(assessment) for assessment in scored]
            return _judged(sample, [assessment.scores.get(FIRST) for assessment in scored])

        async def both_orders(first: ReferenceSample, second: ReferenceSample) -> Swap:
            leads = [
                _lead(await score(side_by_side(first, second, swapped=swapped)))
                for swapped in (False, True)
            ]
            return Swap(id=f"{first.id} / {second.id}", lead=leads[0], lead_swapped=leads[1])

        try:
            async with asyncio.TaskGroup() as group:
                judged = [group.create_task(alone_many(sample)) for sample in samples]
                swaps = [
                    group.create_task(both_orders(first, second))
                    for first, second in pairs(samples)
                ]
            lost = {name for name, failure in self.failures if failure.fault is not Fault.JUDGE}
            # Transport failures say nothing about the judge, so they are left out; unreadable
            # answers count.
            kept = [
                first
                for task in judged
                if (first := task.result()).judged is not None or first.id not in lost
            ]
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

    async def _ask(self, asker: Asker, grading: GradingAttempt) -> Assessment | Failure:
        judge = _evaluator(self.setting, grading)
        (request,) = judge.ask(grading)
        try:
            return await self.answer(asker, request, lambda reply: judge.read(grading, (reply,)))
        except GaveUp as gave_up:
            self.failures.append((grading.task.id.removeprefix("calibration/"), gave_up.failure))
            return gave_up.failure
        finally:
            self.done += 1
            if self.answered is not None:
                self.answered(self.done, self.expected)


def _judged(sample: ReferenceSample, scores: Sequence[float | None]) -> JudgedReference:
    read = tuple(score for score in scores if score is not None)
    return JudgedReference(
        id=sample.id,
        kind=sample.kind,
        tolerance=sample.tolerance,
        bypassed=sample.bypassed,
        twin_of=sample.twin_of,
        source="sample",
        reference=sample.score,
        judged=sum(read) / len(read) if read else None,
        repeats=() if sample.bypassed else read,
    )


def _grades(assessment: Assessment) -> dict[str, float]:
    """Return the judge's grades for a single candidate, from 0 to 1, by criterion."""
    return {
        grade.criterion: grade.score
        for grade in assessment.grades
        if grade.candidate == FIRST and grade.score is not None
    }


def _lead(assessment: Assessment | Failure) -> float | None:
    if isinstance(assessment, Failure):
        return None
    first, second = assessment.scores.get(FIRST), assessment.scores.get(SECOND)
    return None if first is None or second is None else first - second
