"""Parts of store tests: a clock that stands still, plans, tasks, entries, and direct reads of the
tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from assay.domain.assessment import Assessment, Flag, Grade, Response, weighted_score
from assay.domain.calls import ModelRequest, Purpose, Reply, Role, Usage
from assay.domain.identifiers import AssessmentKey, RunId, TrialKey
from assay.domain.lifecycle import AssessmentState, Policy, Verb
from assay.domain.model import ModelSpec, Parameters
from assay.domain.review import Decision, Via
from assay.domain.run import (
    CallRecord,
    ClaimedTrial,
    Entry,
    NewAssessment,
    PlannedTask,
    RunPlan,
    Slot,
)
from assay.domain.suite import (
    CandidateSpec,
    Criterion,
    JudgeSpec,
    Message,
    Rubric,
    Scoring,
    Snippet,
    SourceFile,
    SuiteCopy,
    Task,
)

T = TypeVar("T")

WEIGHTS: Mapping[str, float] = {"integrity": 2.0, "fitness": 1.0}

ECHO = ModelSpec(provider="echo", name="")


class StandingClock:
    """A clock that says the same until it is told otherwise."""

    def __init__(self, now: str = "2025-01-02T03:04:05.678Z") -> None:
        self.said = now

    def now(self) -> str:
        return self.said

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float, /) -> None:
        await asyncio.sleep(0)


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """Its answer, from a thread of its own: a browser's loop may run in this one."""
    with ThreadPoolExecutor(max_workers=1) as aside:
        return aside.submit(asyncio.run, coroutine).result()


def a_task(
    identifier: str = "auth",
    *,
    prompt: str | None = None,
    snippets: Mapping[str, str] | None = None,
    tags: Sequence[str] = (),
    language: str = "python",
    weight: float = 1.0,
    thing: str | None = None,
    family: str = "",
) -> Task:
    return Task(
        id=identifier,
        thing=thing or identifier.title(),
        context="The rules.",
        # Tasks of equal text would be copies, which count as one family.
        prompt=(Message(role="user", content=prompt or f"Review {identifier}."),),
        scoring=Scoring(method="judge"),
        tags=tuple(tags),
        language=language,
        family=family,
        weight=weight,
        snippets=tuple(
            Snippet(candidate=name, files=(SourceFile(path="", content=text),))
            for name, text in (snippets or {}).items()
        ),
    )


def a_plan(
    identifier: str = "20250102-030405-arithmetic-abcd",
    *,
    suite: str = "arithmetic",
    candidates: Sequence[str] = ("alice", "bob"),
    judges: Sequence[str] = ("judge",),
    started: str = "2025-01-02T03:04:05.678Z",
    batch_id: str | None = None,
    budget_usd: float | None = None,
    judge_temperature: float = 0.1,
) -> RunPlan:
    return RunPlan(
        id=RunId(identifier),
        suite=suite,
        copy=SuiteCopy(path="suite.yaml", text=f"name: {suite}\n", digest=f"digest-of-{suite}"),
        candidates=tuple(CandidateSpec(name=name) for name in candidates),
        judges=tuple(
            JudgeSpec(name=name, model=ECHO, parameters=Parameters(temperature=judge_temperature))
            for name in judges
        ),
        rubric=Rubric(
            criteria=tuple(Criterion(name=name, weight=weight) for name, weight in WEIGHTS.items())
        ),
        policy=Policy.EVERY,
        parameters=Parameters(temperature=0.7),
        system_prompt="Be brief.",
        seed=7,
        started=started,
        batch_id=batch_id,
        budget_usd=budget_usd,
    )


def planned(*tasks: Task, trials: int = 1) -> list[PlannedTask]:
    return [
        PlannedTask(task=task, position=position, trials=range(1, trials + 1))
        for position, task in enumerate(tasks)
    ]


def a_call(
    trial: ClaimedTrial,
    *,
    role: Role = Role.CANDIDATE,
    candidate: str | None = "alice",
    text: str = "An answer.",
) -> CallRecord:
    request = ModelRequest(
        model=ECHO,
        messages=trial.task.prompt,
        parameters=Parameters(temperature=0.0),
        purpose=Purpose(
            role=role,
            task=trial.task.id,
            trial=trial.k,
            candidate=candidate if role is Role.CANDIDATE else None,
            judge="judge" if role is Role.JUDGE else None,
        ),
    )
    reply = Reply(
        text=text, usage=Usage(input_tokens=10, output_tokens=5), latency_s=0.25, cost_usd=0.001
    )
    return CallRecord(
        request=request, reply=reply, failure=None, number=1, started="2025-01-02T03:04:05.678Z"
    )


def grades(
    scores: Mapping[str, Mapping[str, float | None]], *, flags: Sequence[Flag] = (), raw: str = ""
) -> Assessment:
    """An assessment from the score on 0 to 1 of each candidate on each criterion."""
    return Assessment(
        grades=tuple(
            Grade(
                candidate=candidate,
                criterion=criterion,
                score=score,
                raw_score=None if score is None else score * 10,
                min_score=0.0,
                max_score=10.0,
                reason=f"{candidate} on {criterion}",
            )
            for candidate, result in scores.items()
            for criterion, score in result.items()
        ),
        scores={candidate: weighted_score(result, WEIGHTS) for candidate, result in scores.items()},
        weights=WEIGHTS,
        report="# Report\nAll in all.",
        ranking=tuple(scores),
        flags=tuple(flags),
        raw=raw,
    )


def plain_grades(value: float = 0.5, candidates: Iterable[str] = ("alice", "bob")) -> Assessment:
    return grades({name: dict.fromkeys(WEIGHTS, value) for name in candidates})


def judged(
    trial: ClaimedTrial,
    assessment: Assessment | None = None,
    *,
    grader: str = "judge",
    state: AssessmentState = AssessmentState.PENDING,
    candidate: str | None = None,
    attempt: int = 1,
    finished: bool = True,
    responses: Sequence[Response] = (),
    calls: Sequence[CallRecord] = (),
    by_model: bool = True,
    rerun: Decision | None = None,
) -> Entry:
    """The entry of one grading of a trial; it ends the trial unless told otherwise."""
    new = NewAssessment(
        slot=Slot(grader=grader, candidate=candidate, by_model=by_model),
        attempt=attempt,
        assessment=assessment or plain_grades(),
        state=state,
    )
    return Entry(
        trial=trial.key,
        calls=tuple(calls),
        responses=tuple((response, 0 if calls else None) for response in responses),
        assessments=((new, None),),
        finished=finished,
        rerun=rerun,
    )


def a_decision(
    verb: Verb, key: int, *, reviewer: str = "rita", idempotency: str | None = None, **more: Any
) -> Decision:
    return Decision(
        assessment=AssessmentKey(key),
        verb=verb,
        reviewer=reviewer,
        via=Via.SCRIPT,
        displayed=False,
        key=idempotency,
        **more,
    )


def a_trial_key(number: int) -> TrialKey:
    return TrialKey(number)
