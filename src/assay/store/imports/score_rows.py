"""Store bare scores.

Each row becomes one assessment with one grade, and a table may have millions of rows.

The rows are first inserted into a temporary table, and one statement per target table copies them.
This takes a third of the time of inserting every row into each table, because Python passes each
value to the database only once. Bare scores have no text in `body`, because readers can rebuild the
assessment from its row in `score`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Double, MetaData, Table, cast, delete, insert, select
from sqlalchemy.schema import CreateTable

from assay.domain.import_records import FoundScores, GradedBy
from assay.domain.lifecycle import AssessmentState
from assay.store.database import schema
from assay.store.database.codec import WHOLE, plain
from assay.store.database.counters import ASSESSMENT
from assay.store.imports.portion import Portion, Row
from assay.store.imports.trial_rows import Trials

_STAGED: Final = Table(
    "bare_score",
    MetaData(),
    Column("key", schema.Key, primary_key=True, autoincrement=False),
    Column("task_key", schema.Key, nullable=False),
    Column("trial_key", schema.Key, nullable=False),
    Column("candidate_key", schema.Key, nullable=False),
    Column("value", Double),
    prefixes=["TEMPORARY"],
)


class ScoredTrial(NamedTuple):
    """A task and one of its trial numbers."""

    task: str
    trial: int


class Scores(NamedTuple):
    """A batch of bare scores, and the distinct trials of its rows."""

    batch: FoundScores
    trials: list[ScoredTrial]

    @classmethod
    def of(cls, batch: FoundScores) -> Scores:
        pairs = dict.fromkeys([(task, trial) for task, _, trial, _ in batch.rows])
        return cls(batch, [ScoredTrial(*pair) for pair in pairs])


def write_scores(portion: Portion, trials: Trials, scores: Sequence[Scores]) -> None:
    if not scores:
        return
    portion.connection.execute(CreateTable(_STAGED, if_not_exists=True))
    for batch, places in scores:
        state = _state(batch)
        grader = portion.grader(batch.judge, batch.by)
        portion.insert_many(_STAGED, _staged_rows(portion, trials, batch, places))
        for table, own in _columns(portion, grader, state, by_model=batch.by is GradedBy.MODEL):
            values: dict[str, ColumnElement[Any]] = {
                column.name: _STAGED.c[column.name]
                for column in table.c
                if column.name in _STAGED.c
            }
            values |= {name: cast(value, table.c[name].type) for name, value in own.items()}
            copied = select(*values.values()).order_by(_STAGED.c.key)
            portion.connection.execute(insert(table).from_select(list(values), copied))
        portion.connection.execute(delete(_STAGED))
        portion.counters.add(portion.run.run_key, ASSESSMENT, state.value, len(batch.rows))
        portion.run.assessments += len(batch.rows)


def note_states(trials: Trials, scores: Sequence[Scores]) -> None:
    """Record the states of each trial's bare scores, which determine the trial's state."""
    for batch, places in scores:
        state = _state(batch)
        for place in places:
            trial = trials[plain(place.task), place.trial]
            trial.states = [*(trial.states or ()), state]


def _state(batch: FoundScores) -> AssessmentState:
    """Return the assessments' state: a model's grades await review, unless the imported table
    states an earlier decision.
    """
    if batch.state is not None:
        return AssessmentState(batch.state)
    return AssessmentState.PENDING if batch.by is GradedBy.MODEL else AssessmentState.NOT_REQUIRED


def _staged_rows(
    portion: Portion, trials: Trials, batch: FoundScores, places: Sequence[ScoredTrial]
) -> list[Row]:
    candidates = {
        name: portion.candidate(name) for name in dict.fromkeys([row[1] for row in batch.rows])
    }
    # Looked up by k and then by task, because building a tuple for each row would take longer than
    # both lookups.
    keys_of: defaultdict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    for task, k in places:
        trial = trials[plain(task), k]
        keys_of[k][task] = (trial.place.task_key, trial.key)
    keys = islice(portion.assessment_keys, len(batch.rows))
    return [
        (key, *keys_of[k][task], candidates[name], score)
        for (task, name, k, score), key in zip(batch.rows, keys, strict=True)
    ]


def _columns(
    portion: Portion, grader: int, state: AssessmentState, *, by_model: bool
) -> list[tuple[Table, dict[str, Any]]]:
    run_key, staged = portion.run.run_key, _STAGED.c
    of_score: dict[str, Any] = {"run_key": run_key, "assessment_key": staged.key}
    both = {"judged_value": staged.value}
    assessment: dict[str, Any] = {
        "run_key": run_key,
        "grader_key": grader,
        "by_model": by_model,
        "attempt": 1,
        "state": state.value,
        "flag_count": 0,
        "response_limit": portion.response_limit,
        "created": portion.run.now,
    }
    score = {**of_score, **both, "grader_key": grader, "joint": False, "state": state.value}
    criterion = portion.criterion(WHOLE)
    grade = {
        **of_score,
        **both,
        "criterion_key": criterion,
        "weight": 1.0,
        "raw": staged.value,
        "low": 0.0,
        "high": 1.0,
    }
    return [(schema.assessment, assessment), (schema.score, score), (schema.grade, grade)]
