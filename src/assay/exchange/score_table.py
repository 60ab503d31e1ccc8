"""Tables of scores: `task, candidate, trial, score`, and perhaps weight, criterion, judge, state, joint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from assay.domain.lifecycle import AssessmentState
from assay.exchange.graded_rows import GradedRows, number_of, text_of
from assay.exchange.records import FoundGrade, FoundRun, FoundTask, GradedBy, Skipped
from assay.exchange.score_csv import unguarded
from assay.exchange.tables import PARQUET, header_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.exchange.recognising import ReadOptions
    from assay.exchange.records import Found
    from assay.exchange.sources import Sample, Source

NAME: Final = "scores"
RULE: Final = "score"
"""The grader of rows that name no judge."""

_NEEDED: Final = frozenset({"task", "candidate", "score"})
_YES: Final = frozenset({"true", "1", "yes"})


def recognise(sample: Sample) -> float | None:
    """By the columns task, candidate and score."""
    if sample.head.startswith(PARQUET):
        return 0.5
    if set(header_of(sample)) >= _NEEDED:
        return 0.9
    rows = sample.rows
    if not rows and isinstance(sample.document, list):
        rows = tuple(row for row in sample.document[:50] if isinstance(row, dict))
    return 0.9 if rows and all(row.keys() >= _NEEDED for row in rows) else None


def read(source: Source, options: ReadOptions) -> Iterator[Found]:
    """A run of the table: a task for each, an assessment for each judging."""
    yield FoundRun(suite=options.dataset or source.stem, format=NAME)
    weights: dict[str, float] = {}
    graded = GradedRows()
    for row, where in rows_of(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        row = {str(key).strip().lower(): _cell(value) for key, value in row.items() if key is not None}
        task, candidate = text_of(row.get("task")), options.candidate or text_of(row.get("candidate"))
        problem, score, trial = _checked(row, task, candidate)
        weight = number_of(row.get("weight")) if text_of(row.get("weight")) else 1.0
        if problem is None and (weight is None or weight < 0):
            problem = f"has weight {row.get('weight')!r}; a weight is a number that is not negative."
        if problem is None and weights.setdefault(task, weight or 0.0) != weight:
            problem = f"gives task {task!r} the weight {weight:g}, and a row above gave it {weights[task]:g}."
        state = text_of(row.get("state")) or None
        if problem is None and state is not None and state not in set(AssessmentState):
            problem = f"has state {state!r}; known: {', '.join(AssessmentState)}."
        if problem is not None:
            yield Skipped(where=where, why=problem)
            continue
        if weights[task] != 1.0:
            yield FoundTask(id=task, weight=weights[task])
        judge = text_of(row.get("judge"))
        criterion = text_of(row.get("criterion"))
        graded.add(
            FoundGrade(candidate=candidate, criterion=criterion, score=score),
            task=task,
            trial=trial,
            judge=judge or RULE,
            by=GradedBy.MODEL if judge else GradedBy.RULE,
            where=where,
            joint=text_of(row.get("joint")).lower() in _YES,
            state=state,
        )
        yield from graded.ready()
    yield from graded.rest()


def _cell(value: Any) -> Any:
    return unguarded(value) if isinstance(value, str) else value


def _checked(row: dict[str, Any], task: str, candidate: str) -> tuple[str | None, float | None, int]:
    """What is wrong with a row, its score, and its trial."""
    if not task or not candidate:
        return f"names no {'candidate' if task else 'task'}.", None, 1
    said = row.get("score")
    score = None
    if text_of(said):
        score = number_of(said)
        if score is None:
            return f"has score {said!r}, which is no finite number.", None, 1
        if not 0 <= score <= 1:
            return f"has score {score:g}; scores of a table lie between 0 and 1.", None, 1
    trial = number_of(row.get("trial")) if text_of(row.get("trial")) else 1.0
    if trial is None or trial < 1 or trial != int(trial):
        return f"has trial {row.get('trial')!r}; trials count from 1.", None, 1
    return None, score, int(trial)
