"""Structure a trial's responses and its task's model solution before judging.

Each text is structured only once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from assay.domain.assessment import Assessment
from assay.domain.calls import ModelRequest, Reply
from assay.domain.run import ClaimedTrial, Entry
from assay.domain.structure import StructuredAnswer
from assay.engine.asking import NotYet
from assay.engine.run_context import RunContext
from assay.scoring.evaluator import Evaluator, GradingAttempt, Unscorable
from assay.scoring.scorers import ScorerEvaluator
from assay.scoring.structuring import read_structure, structure_text, structuring_request
from assay.scoring.verification import with_verification


async def structured(
    context: RunContext, claimed: ClaimedTrial, grading: GradingAttempt
) -> tuple[GradingAttempt, dict[str, str]]:
    """Return the grading attempt with structured answers for the judge, and each
    candidate's final answer.

    Raises `GaveUp` if the structuring model returned no usable reply, and `NotYet` if an answer
    waits at a provider.
    """
    structuring = context.plan.rubric.structuring
    if structuring is None:
        return grading, {response.candidate: response.text for response in grading.responses}
    task = grading.task
    texts: dict[str | None, str] = {
        response.candidate: response.text for response in grading.responses
    }
    if task.ideal is not None and task.ideal.strip():
        texts[None] = task.ideal
    structures: dict[str | None, StructuredAnswer] = {}
    for name, text in texts.items():
        with suppress(NotYet):  # the others are asked for in the same job
            request = structuring_request(structuring, grading, text, candidate=name)
            structures[name] = await _structure(context, claimed, request)
    if len(structures) < len(texts):
        raise NotYet
    if None in structures:
        task = replace(task, ideal=structure_text(structures[None]))
    responses = tuple(
        replace(response, text=structure_text(structures[response.candidate]))
        for response in grading.responses
    )
    finals = {
        name: structure.final_answer for name, structure in structures.items() if name is not None
    }
    return replace(grading, task=task, responses=responses), finals


async def _structure(
    context: RunContext, claimed: ClaimedTrial, request: ModelRequest
) -> StructuredAnswer:
    # Trials of one task run at the same time, and only the first should pay for structuring its
    # model solution.
    async with context.structuring.setdefault(request.messages[0].content, asyncio.Lock()):
        kept = await asyncio.to_thread(context.journal.structured, request)
        if kept is not None:
            return read_structure(Reply(text=kept))
        answer = await context.asker.answer(request, read_structure, trial=claimed.key)
        await context.journal.record(Entry(trial=claimed.key, calls=answer.calls))
        return answer.read


async def verified(
    context: RunContext,
    grading: GradingAttempt,
    finals: dict[str, str],
    assessment: Assessment,
    assess: Callable[[Evaluator, GradingAttempt], Awaitable[Assessment]],
) -> Assessment:
    """Add a check of each candidate's final answer to the judge's assessment, if the task has a
    final answer.
    """
    rubric, task = context.plan.rubric, grading.task
    verify = task.scoring.verify or rubric.verify
    if verify is None or (task.scoring.verify is None and task.reference is None):
        return assessment
    scorer = ScorerEvaluator(verify)
    for response in grading.responses:
        name, text, score, problem = response.candidate, finals[response.candidate], None, ""
        if not text.strip():
            problem = "Extracted answer was None or empty."
        else:
            alone = replace(grading, responses=(replace(response, text=text),))
            try:
                score = (await assess(scorer, alone)).scores[name]
            except Unscorable as error:
                problem = error.detail
        flags = rubric.rules is None or rubric.rules.failed_verification
        assessment = with_verification(
            assessment, name, score, scorer=verify.rule, problem=problem, flags=flags
        )
    return assessment
