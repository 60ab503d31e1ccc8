"""A store in which many assessments wait for a person, filled by plain SQL as fast as the database
takes it.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, make_url, text

from assay.domain.assessment import Assessment, Grade
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import Policy
from assay.domain.model import ModelSpec, Parameters
from assay.domain.run import PlannedTask, RunPlan
from assay.domain.suite import (
    CandidateSpec,
    Criterion,
    JudgeSpec,
    Rubric,
    Scoring,
    Snippet,
    SourceFile,
    SuiteCopy,
    Task,
)
from assay.store.database.codec import assessment_bytes
from assay.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

CANDIDATES = ("ada", "bruno", "clara", "dora")
CRITERIA = ("integrity", "data_flow", "maintainability", "fitness")
TRIALS = 5
_LINE = "    total = total + weights[{n}] * readings[{n} % 7]  # step {n}"
_MIDDLE = "Dust in the air scatters all colours alike."
_BODY = 1_000_000_000  # keys of bodies far above those that the journal hands out

_FILL = """
INSERT INTO body SELECT {body} + key, :body FROM trial;
INSERT INTO assessment (key, run_key, task_key, trial_key, grader_key, candidate_key, by_model, attempt, state,
    state_before, flag_count, response_limit, call_key, body_key, created)
  SELECT key, run_key, task_key, key, 1, NULL, :yes, 1, 'pending', NULL, 0, 1, NULL, {body} + key, '2025-01-01T00:00:00.000Z'
  FROM trial;
INSERT INTO score (run_key, assessment_key, candidate_key, task_key, trial_key, grader_key, value, judged_value, joint, state)
  SELECT t.run_key, t.key, c.candidate_key, t.task_key, t.key, 1, 0.7, 0.7, :yes, 'pending'
  FROM trial t JOIN run_candidate c ON c.run_key = t.run_key;
INSERT INTO grade (run_key, assessment_key, candidate_key, criterion_key, weight, value, judged_value, raw, low, high)
  SELECT t.run_key, t.key, c.candidate_key, k.criterion_key, 1, 0.7, 0.7, 7, 0, 10
  FROM trial t JOIN run_candidate c ON c.run_key = t.run_key JOIN run_criterion k ON k.run_key = t.run_key;
UPDATE trial SET state = 'needs_review', owner = NULL, rest = NULL;
DELETE FROM run_tally WHERE subject IN ('trial', 'assessment');
INSERT INTO run_tally SELECT run_key, 'trial', 'needs_review', count(*) FROM trial GROUP BY run_key;
INSERT INTO run_tally SELECT run_key, 'assessment', 'pending', count(*) FROM trial GROUP BY run_key;
UPDATE run SET state = 'finished', finished = '2025-01-01T01:00:00.000Z';
DELETE FROM execution;
"""


class WallClock:
    """The time of this machine."""

    def now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float, /) -> None:
        await asyncio.sleep(seconds)


def fill(
    url: str,
    assessments: int,
    *,
    runs: int = 1,
    candidates: int = 3,
    lines: int = 30,
    width: int = 60,
    words: int = 0,
) -> list[RunId]:
    """Make a store at `url` where `assessments` wait, the same number in each run; the runs' ids,
    oldest first.

    Args:
        assessments: at least five a run, since each task has five trials; what is left over falls
            away.
        candidates: responses of each item, at most four.
        lines: lines of each response.
        width: characters of a line, at least 60.
        words: of Markdown in each response, about; 0 for code.
    """
    names = CANDIDATES[:candidates]
    store = open_store(url, clock=WallClock())
    plans = [_plan(number, names) for number in range(runs)]
    try:
        for number, plan in enumerate(plans):
            store.journal.open_run(
                plan,
                _tasks(number, max(1, assessments // runs // TRIALS), names, lines, width, words),
            )
    finally:
        store.close()
    body = assessment_bytes(_assessment(names, _MIDDLE if words else "    return total"))
    address = make_url(url)
    if address.get_backend_name() == "postgresql":
        address = address.set(drivername="postgresql+psycopg")
    engine = create_engine(address)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM run_grader"))
        if not connection.execute(text("SELECT key FROM grader WHERE key = 1")).first():
            connection.execute(text("INSERT INTO grader (key, name) VALUES (1, 'strict')"))
        for criterion in CRITERIA:
            if not connection.execute(
                text("SELECT 1 FROM criterion WHERE name = :n"), {"n": criterion}
            ).first():
                connection.execute(
                    text("INSERT INTO criterion (name) VALUES (:n)"), {"n": criterion}
                )
        connection.execute(text("DELETE FROM run_criterion"))
        connection.execute(text("INSERT INTO run_grader SELECT key, 1, false FROM run"))
        connection.execute(
            text("INSERT INTO run_criterion SELECT run.key, criterion.key FROM run, criterion")
        )
        for statement in _FILL.format(body=_BODY).split(";\n"):
            if statement.strip():
                given = (
                    {"body": body}
                    if ":body" in statement
                    else {"yes": True}
                    if ":yes" in statement
                    else {}
                )
                connection.execute(text(statement), given)
    if address.get_backend_name() == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))
    engine.dispose()
    return [plan.id for plan in plans]


def stored_runs(url: str) -> list[RunId]:
    """The ids of the runs in a store that is a file, oldest first; none if there is no such
    file.
    """
    address = make_url(url)
    if address.host or not Path(address.database or "").exists():
        return []
    engine = create_engine(address)
    with engine.connect() as connection:
        ids = list(connection.execute(text("SELECT id FROM run ORDER BY key")).scalars())
    engine.dispose()
    return ids


def _plan(number: int, names: tuple[str, ...]) -> RunPlan:
    return RunPlan(
        id=RunId(f"20250101-{number:06d}-waiting-abcd"),
        suite=f"waiting-{number % 7}",
        copy=SuiteCopy(path="waiting.yaml", text="name: waiting", digest=f"waiting-{number % 7}"),
        candidates=tuple(CandidateSpec(name=name) for name in names),
        judges=(JudgeSpec(name="strict", model=ModelSpec(provider="echo", name="")),),
        rubric=Rubric(criteria=tuple(Criterion(name=name) for name in CRITERIA)),
        policy=Policy.EVERY,
        parameters=Parameters(),
        system_prompt="",
        seed=1,
        started=f"2025-01-01T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
    )


def _markdown(number: int, place: int, words: int) -> str:
    """Return Markdown of about this many words: headings, prose, lists, tables, formulas and
    code.
    """
    part = (
        f"## Part {number}.{place}\n\nIt is *scattering*, **nine times** stronger for `blue` light, and "
        "[more](https://example.org/) is known about it than a page can hold.\n\n"
        "1. As $1/x^4$ says, short waves scatter\n2. Violet scatters even more\n\n"
        "| colour | nm |\n| --- | --- |\n| blue | 450 |\n| red | 650 |\n\n```python\ntotal = blue + red\n```\n\n"
    )
    half = max(1, words // len(part.split()) // 2)
    return f"{part * half}{_MIDDLE}\n\n{part * half}"


def _tasks(
    run: int, tasks: int, names: tuple[str, ...], lines: int, width: int, words: int
) -> Iterator[PlannedTask]:
    body = "\n".join(_LINE.format(n=n).ljust(width, "-") for n in range(lines - 3))
    for number in range(tasks):
        snippets = tuple(
            Snippet(
                candidate=name,
                files=(
                    SourceFile(
                        path="",
                        content=_markdown(number, place, words)
                        if words
                        else f"def sum_{number}(weights, readings):\n    total = {place}\n{body}\n    return total\n",
                    ),
                ),
            )
            for place, name in enumerate(names)
        )
        task = Task(
            id=f"task-{run}-{number}",
            thing=f"Sum {run}.{number}",
            context="Adds readings by their weights.",
            language="" if words else "python",
            scoring=Scoring(method="judge"),
            snippets=snippets,
        )
        yield PlannedTask(task=task, position=number, trials=range(1, TRIALS + 1))


def _assessment(names: tuple[str, ...], quoted: str) -> Assessment:
    grades = tuple(
        Grade(
            candidate=name,
            criterion=criterion,
            score=0.7,
            raw_score=7.0,
            min_score=0.0,
            max_score=10.0,
            reason=f"`{quoted}` ends it; {criterion} is sound, though step 3 could be said more plainly.",
            evidence=(quoted,),
        )
        for name in names
        for criterion in CRITERIA
    )
    return Assessment(
        grades=grades,
        scores=dict.fromkeys(names, 0.7),
        weights=dict.fromkeys(CRITERIA, 1.0),
        labels={name: f"Candidate {'ABCD'[place]}" for place, name in enumerate(names)},
        report="**Candidate A** adds in one pass; `total` begins at a different number in each.",
        ranking=names,
    )
