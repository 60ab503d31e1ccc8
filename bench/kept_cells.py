"""A statistics page after one more decision: reading the cells again and the whole report, against
the limits that the page must keep.

    python bench/kept_cells.py [--rounds 7]

Stores of jointly graded trials of 10 candidates on 200 tasks; 45 pairs with Holm. Each round
decides one assessment. Exits 1 if 20,000 scores take more than 0.2 s or 200,000 more than 1.5 s, or
if a report differs from that of all rows.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from assay.analysis.tables import score_table
from assay.app.statistics.cell_cache import KeptCells
from assay.domain.assessment import Assessment, Grade
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState, Policy, Verb
from assay.domain.model import ModelSpec, Parameters
from assay.domain.review import Decision, Via
from assay.domain.run import Entry, NewAssessment, PlannedTask, RunPlan, Slot
from assay.domain.selection import Selection
from assay.domain.suite import (
    CandidateSpec,
    Criterion,
    JudgeSpec,
    Message,
    Rubric,
    Scoring,
    SuiteCopy,
    Task,
)
from assay.statistics import report
from assay.statistics.reports import Report
from assay.store.opening import Store, open_store

N_TASKS = 200
NAMES = tuple(f"candidate-{number}" for number in range(10))
RUN = RunId("20250101-000000-kept-abcd")
WAITING = 200
LIMITS_S = {2_000: 0.2, 20_000: 1.5}
"""Limit for a number of trials, each with ten scores."""


class WallClock:
    def now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float, /) -> None:
        await asyncio.sleep(seconds)


def fill(
    store: Store,
    trials: int,
    *,
    n_tasks: int = N_TASKS,
    names: tuple[str, ...] = NAMES,
    waiting: int = WAITING,
) -> None:
    """All trials judged jointly; the last few wait, the others count."""
    draw = random.Random(1)
    echo = ModelSpec(provider="echo", name="")
    plan = RunPlan(
        id=RUN,
        suite="kept",
        copy=SuiteCopy(path="kept.yaml", text="name: kept", digest="kept"),
        candidates=tuple(CandidateSpec(name=name) for name in names),
        judges=(JudgeSpec(name="judge", model=echo),),
        rubric=Rubric(criteria=(Criterion(name="overall"),)),
        policy=Policy.EVERY,
        parameters=Parameters(),
        system_prompt="",
        seed=1,
        started="2025-01-01T00:00:00.000Z",
    )
    tasks = [
        PlannedTask(
            task=Task(
                id=f"t{i}",
                thing=f"t{i}",
                prompt=(Message(role="user", content=f"Question {i}?"),),
                scoring=Scoring(method="judge"),
            ),
            position=i,
            trials=range(1, trials // n_tasks + 1),
        )
        for i in range(n_tasks)
    ]
    store.journal.open_run(plan, tasks)
    done = 0

    async def record(claimed: list[Entry]) -> None:
        await asyncio.gather(*(store.journal.record(entry) for entry in claimed))

    while claimed := store.journal.claim(RUN, limit=500):
        entries = []
        for trial in claimed:
            done += 1
            scores = {
                name: min(1.0, max(0.0, draw.gauss(0.6 + 0.01 * place, 0.1)))
                for place, name in enumerate(names)
            }
            graded = Assessment(
                grades=tuple(
                    Grade(
                        candidate=name,
                        criterion="overall",
                        score=score,
                        raw_score=score,
                        min_score=0.0,
                        max_score=1.0,
                    )
                    for name, score in scores.items()
                ),
                scores=scores,
                weights={"overall": 1.0},
            )
            waits = done > trials - waiting
            new = NewAssessment(
                slot=Slot(grader="judge", candidate=None, by_model=True),
                attempt=1,
                assessment=graded,
                state=AssessmentState.PENDING if waits else AssessmentState.EXEMPT,
            )
            entries.append(Entry(trial=trial.key, assessments=((new, None),), finished=True))
        asyncio.run(record(entries))


def seconds(work: Callable[[], Report]) -> tuple[float, Report]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    return max(measure(trials, limit, options.rounds) for trials, limit in LIMITS_S.items())


def measure(trials: int, limit_s: float, rounds: int) -> int:
    """Print the median time of a round; return 1 if it exceeds the limit or an answer differs."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'kept.db'}", clock=WallClock())
        fill(store, trials)
        everything = Selection()
        kept = KeptCells(store.archive, everything)
        waiting = [
            row.key
            for row in store.archive.assessments.matching(
                everything, states=frozenset({AssessmentState.PENDING})
            )
        ]

        def refreshed() -> Report:
            kept.refresh()
            return kept.report()

        times, same = [], True
        for key in waiting[:rounds]:
            approve = Decision(
                assessment=key, verb=Verb.APPROVE, reviewer="bench", via=Via.SCRIPT, displayed=False
            )
            store.decisions.decide([approve])
            time_s, answer = seconds(refreshed)
            times.append(time_s)
            anew = report(score_table(store.archive.scores.columns(everything)))
            same &= all(
                a.n_trials == b.n_trials and abs((a.mean or 0) - (b.mean or 0)) < 1e-9
                for a, b in zip(answer.estimates, anew.estimates, strict=True)
            )
        store.close()
    print(
        f"{trials * len(NAMES)} scores: {median(times):.3f} s after one decision"
        f" ({min(times):.3f} to {max(times):.3f}), limit {limit_s} s; same answers: {same}"
    )
    return int(median(times) > limit_s or not same)


if __name__ == "__main__":
    sys.exit(main())
