"""Read the scores that count as NumPy columns, without creating a record per row.

Reading the first column imports NumPy, so commands without statistics start faster.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Select,
    and_,
    case,
    cast,
    exists,
    func,
    select,
)

from assay.analysis.columns import (
    CriterionMoments,
    GradingSetting,
    ScoreColumns,
    TaskLabel,
    TrialScores,
)
from assay.domain.lifecycle import COUNTS, AssessmentState
from assay.domain.rounding import DECIMALS, ERROR, without_rounding_error
from assay.store.database import schema
from assay.store.database.codec import bytes_json
from assay.store.database.counters import ASSESSMENT
from assay.store.queries.exact_means import exact_mean, weighted
from assay.store.queries.filters import Scope, scope_of
from assay.store.queries.mixed_rules import mixed_rules
from assay.store.queries.task_copies import copies_of
from assay.store.queries.task_families import families_of
from assay.store.queries.variants import Variant, split_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from assay.domain.identifiers import TrialKey
    from assay.domain.selection import Selection

_ROWS_AT_ONCE: Final = 20_000

_JOINT: Final = 1
_UNSEEN: Final = 2
_BY_RULE: Final = 4
_UNPLACED: Final = 8

COUNTING: Final = tuple(sorted(state.value for state in COUNTS))


def score_columns(connection: Connection, selection: Selection, /) -> ScoreColumns:
    """Read all scores that count.

    If the selection has `criteria`, a score is the weighted mean over these only.
    """
    scope = scope_of(connection, selection)
    variants = scope.variants(connection)
    rows = scores_apart(
        connection, _scores(scope) if scope.criteria is None else _criteria_scores(scope), variants
    )
    return columns_of(connection, scope, rows, variants)


def columns_of(
    connection: Connection, scope: Scope, rows: NDArray[np.float64], variants: tuple[Variant, ...]
) -> ScoreColumns:
    """Return rows of task, candidate, grader, trial, score and marks as columns with codes and
    labels.
    """
    import numpy as np

    labels, task_keys = labels_of(connection, scope)
    candidates = candidates_of(connection, scope, variants)
    judges = judges_of(connection, scope)
    task = codes_of(rows[:, 0], task_keys)
    marks = rows[:, 5].astype(np.int64)
    judge = codes_of(rows[:, 2], tuple(judges))
    names = tuple(judges.values())
    graded = frozenset(names[code] for code in np.unique(judge))
    replaced = replaced_runs(connection, scope)
    return ScoreColumns(
        tasks=labels,
        candidates=tuple(candidates.values()),
        judges=names,
        task=task,
        candidate=codes_of(rows[:, 1], tuple(candidates)),
        judge=judge,
        trial=rows[:, 3].astype(np.int64),
        score=without_rounding_errors(rows[:, 4]),
        joint=(marks & _JOINT) != 0,
        unseen=(marks & _UNSEEN) != 0,
        by_rule=(marks & _BY_RULE) != 0,
        unplaced=(marks & _UNPLACED) != 0,
        runs=scope.ids,
        kept_apart=tuple(
            (variant.name, candidates[variant.key])
            for variant in variants
            if variant.key in candidates
        ),
        settings=_settings(connection, scope, graded, replaced),
        mixed_rules=mixed_rules(connection, scope, graded, replaced),
    )


def criterion_moments(
    connection: Connection, selection: Selection, /
) -> tuple[CriterionMoments, ...]:
    """Read the moments of counting grades per criterion, task and candidate, sorted by criterion
    key.
    """
    import numpy as np

    scope = scope_of(connection, selection)
    _, task_keys = labels_without_texts(connection, scope)
    variants = scope.variants(connection)
    candidates = tuple(candidates_of(connection, scope, variants))
    criterion = schema.criterion
    rows = matrix_of(connection, _by_criterion(scope, variants, len(judges_of(connection, scope))))
    moments = []
    for key in sorted({int(key) for key in rows[:, 0]}):
        name = connection.execute(
            select(criterion.c.name).where(criterion.c.key == key)
        ).scalar_one()
        mine = rows[rows[:, 0] == key]
        place = (codes_of(mine[:, 2], candidates), codes_of(mine[:, 1], task_keys))
        grid = np.zeros((5, len(candidates), len(task_keys)))
        n, mean, about_half, low, high = mine[:, 3:].T
        # If all grades are equal, rounding in the formula would leave a small variance.
        m2 = np.where(low == high, 0.0, np.maximum(about_half - n * (mean - 0.5) ** 2, 0.0))
        for moment, values in zip(
            grid, (n, np.where(low == high, low, mean), m2, low, high), strict=True
        ):
            moment[place] = values
        moments.append(
            CriterionMoments(
                criterion=name, n=grid[0], mean=grid[1], m2=grid[2], low=grid[3], high=grid[4]
            )
        )
    return tuple(moments)


def trial_scores(
    connection: Connection, selection: Selection, trials: Collection[TrialKey], /
) -> tuple[TrialScores, ...]:
    """Read the counting scores of those trials that are in the selection.

    The query uses an index, so its cost does not depend on the size of the store.
    """
    scope = scope_of(connection, selection)
    assessment, score, trial = schema.assessment, schema.score, schema.trial
    keys = select(trial.c.key).where(trial.c.key.in_(list(trials)), *scope.where(trial))
    scores = (_scores(scope) if scope.criteria is None else _criteria_scores(scope)).where(
        score.c.assessment_key.in_(
            select(assessment.c.key).where(assessment.c.trial_key.in_(keys))
        ),
        # The run as well: `score` is clustered by run, and has no other index that leads to these
        # rows.
        score.c.run_key.in_(select(trial.c.run_key).where(trial.c.key.in_(keys))),
    )
    return scores_by_trial(connection, scope, trials, connection.execute(scores))


def scores_by_trial(
    connection: Connection,
    scope: Scope,
    trials: Collection[TrialKey],
    scores: Iterable[Sequence[Any]],
) -> tuple[TrialScores, ...]:
    """Return those trials that are in the scope, with scores given as rows of task, candidate,
    grader, trial, score and marks.
    """
    trial, task, suite = schema.trial, schema.task, schema.suite
    rows = connection.execute(
        select(trial.c.key, suite.c.name, task.c.task_id, task.c.digest)
        .join(task, task.c.key == trial.c.task_key)
        .join(suite, suite.c.key == task.c.suite_key)
        .where(trial.c.key.in_(list(trials)), *scope.where(trial))
        .order_by(trial.c.key)
    ).all()
    names = {
        row.key: row.name
        for row in connection.execute(select(schema.candidate.c.key, schema.candidate.c.name))
    }
    given: dict[int, dict[str, list[float]]] = {}
    joint: dict[int, bool] = {}
    for _, candidate, _, key, value, marks in scores:
        given.setdefault(key, {}).setdefault(names[candidate], []).append(
            without_rounding_error(float(value))
        )
        joint[key] = joint.get(key, True) and bool(int(marks) & _JOINT)
    return tuple(
        TrialScores(
            trial=row.key,
            suite=row.name,
            task=row.task_id,
            digest=row.digest,
            joint=joint.get(row.key, False),
            scores={name: mean(values) for name, values in given.get(row.key, {}).items()},
        )
        for row in rows
    )


def _scores(scope: Scope) -> Select[Any]:
    table = schema.score
    return select(
        table.c.task_key,
        table.c.candidate_key,
        table.c.grader_key,
        table.c.trial_key,
        table.c.value,
        marks_of(),
    ).where(
        *scope.where(table),
        *scope.where_grader(table),
        *scope.families.hold(table),
        table.c.state.in_(COUNTING),
        table.c.value.is_not(None),
    )


def marks_of() -> ColumnElement[int]:
    """Return a score's flags as one number, because each additional column costs as much as the
    rest of the row.
    """
    table = schema.score
    joint = case(
        (table.c.joint, case((table.c.place.is_(None), _JOINT + _UNPLACED), else_=_JOINT)), else_=0
    )
    exempt, by_rule = AssessmentState.EXEMPT.value, AssessmentState.NOT_REQUIRED.value
    return joint + case(
        (table.c.state == exempt, _UNSEEN), (table.c.state == by_rule, _BY_RULE), else_=0
    )


def _criteria_scores(scope: Scope) -> Select[Any]:
    """Select scores over some criteria: the weighted mean, or the plain mean if all weights are
    0.
    """
    table, grade = schema.score, schema.grade
    own = (table.c.run_key, table.c.assessment_key, table.c.candidate_key)
    same = and_(*(column == grade.c[column.name] for column in own))
    shown = (table.c.task_key, table.c.candidate_key, table.c.grader_key, table.c.trial_key)
    score = cast(weighted(grade.c.value, grade.c.weight), Double)
    rows = (
        select(*shown, grade.c.value if one_criterion(scope) else score, marks_of())
        .join(grade, same)
        .where(
            *scope.where(table),
            *scope.where_grader(table),
            *scope.families.hold(table),
            table.c.state.in_(COUNTING),
            grade.c.criterion_key.in_(scope.criteria or ()),
        )
    )
    if one_criterion(scope):
        return rows.where(grade.c.value.is_not(None))
    place = (
        table.c.run_key,
        table.c.assessment_key,
        *shown,
        table.c.joint,
        table.c.state,
        table.c.place,
    )
    return rows.group_by(*place).having(score.is_not(None))


def one_criterion(scope: Scope) -> bool:
    """True if the scope has exactly one criterion, whose grades need no mean."""
    return scope.criteria is not None and len(scope.criteria) == 1


def _by_criterion(scope: Scope, variants: tuple[Variant, ...], n_graders: int) -> Select[Any]:
    """Select n, mean, sum of squares about one half, minimum and maximum per criterion, task and
    candidate.

    Squares about one half lose fewer digits than squares about zero.
    """
    table, grade = schema.score, schema.grade
    own = (table.c.run_key, table.c.assessment_key, table.c.candidate_key)
    same = and_(*(column == grade.c[column.name] for column in own))
    cell = (grade.c.criterion_key, table.c.task_key, table.c.candidate_key)
    only = [] if scope.criteria is None else [grade.c.criterion_key.in_(scope.criteria)]
    # SQL rounds a sum of two once, and division by 2 is exact.
    mean = func.avg(grade.c.value) if n_graders <= 2 else exact_mean(grade.c.value)
    value = cast(mean, Double).label("value")
    whose = [
        (
            and_(table.c.candidate_key == variant.candidate, table.c.run_key.in_(variant.runs)),
            variant.key,
        )
        for variant in variants
    ]
    # A maximum, because a trial belongs to one run and PostgreSQL cannot group by an expression
    # with parameters.
    whom = func.max(case(*whose, else_=table.c.candidate_key) if whose else table.c.candidate_key)
    trials = (
        select(cell[0], cell[1], whom.label("candidate_key"), value)
        .select_from(table)
        .join(grade, same)
        .where(
            *scope.where(table),
            *scope.where_grader(table),
            table.c.state.in_(COUNTING),
            table.c.value.is_not(None),
            grade.c.value.is_not(None),
            *scope.families.hold(table),
            *only,
        )
        .group_by(*cell, table.c.trial_key)
        .subquery()
    )
    off = trials.c.value - 0.5
    return select(
        trials.c.criterion_key,
        trials.c.task_key,
        trials.c.candidate_key,
        func.count(),
        exact_mean(trials.c.value),
        func.sum(off * off),
        func.min(trials.c.value),
        func.max(trials.c.value),
    ).group_by(trials.c.criterion_key, trials.c.task_key, trials.c.candidate_key)


def matrix_of(connection: Connection, statement: Select[Any]) -> NDArray[np.float64]:
    """Read all rows as float64, shape (rows, columns).

    Keys stay exact because they are far below 2**53.
    """
    import numpy as np

    width = len(statement.selected_columns)
    parts = [np.empty((0, width), dtype=np.float64)]
    result = connection.execute(statement)
    # the driver's rows: SQLAlchemy's cost three times as much, for unused column names
    cursor = result.cursor
    while cursor is not None and (portion := cursor.fetchmany(_ROWS_AT_ONCE)):
        flat = np.fromiter(
            chain.from_iterable(portion), dtype=np.float64, count=len(portion) * width
        )
        parts.append(flat.reshape(-1, width))
    result.close()
    return np.concatenate(parts)


def without_rounding_errors(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy of the scores, each as `domain.rounding` returns it; NaN stays NaN."""
    import numpy as np

    decimals = np.round(scores, DECIMALS)
    return np.where(np.abs(scores - decimals) <= ERROR, decimals, scores)


def codes_of(keys: NDArray[np.float64], known: tuple[int, ...]) -> NDArray[np.int64]:
    import numpy as np

    if not len(keys):
        return np.empty(0, dtype=np.int64)
    listed = np.asarray(known, dtype=np.int64)
    order = np.argsort(listed, kind="stable")
    return order[np.searchsorted(listed, keys.astype(np.int64), sorter=order)].astype(np.int64)


def labels_of(
    connection: Connection, scope: Scope, tasks: Collection[int] | None = None
) -> tuple[tuple[TaskLabel, ...], tuple[int, ...]]:
    """Return labels and keys of a scope's planned tasks, in plan order; `tasks` limits them to some
    tasks.
    """
    labels, keys = labels_without_texts(connection, scope, tasks)
    copies = copies_of(
        connection, {key: label.digest for key, label in zip(keys, labels, strict=True)}
    )
    if not copies:
        return labels, keys
    return tuple(
        replace(label, content=copies.get(key, "")) for key, label in zip(keys, labels, strict=True)
    ), keys


def labels_without_texts(
    connection: Connection, scope: Scope, tasks: Collection[int] | None = None
) -> tuple[tuple[TaskLabel, ...], tuple[int, ...]]:
    """Return the result of `labels_of` without `content`, for which it reads the texts of tasks."""
    planned, task, suite, run = schema.run_task, schema.task, schema.suite, schema.run
    rows = connection.execute(
        select(
            task.c.key,
            suite.c.name,
            task.c.task_id,
            task.c.digest,
            planned.c.thing,
            planned.c.weight,
            task.c.family,
        )
        .select_from(planned)
        .join(run, run.c.key == planned.c.run_key)
        .join(task, task.c.key == planned.c.task_key)
        .join(suite, suite.c.key == task.c.suite_key)
        .where(*scope.where(planned), *([] if tasks is None else [planned.c.task_key.in_(tasks)]))
        .order_by(run.c.started, run.c.key, planned.c.position)
    )
    # Later runs overwrite earlier ones, so that Thing and weight come from the newest plan.
    newest = {key: rest for key, *rest in rows}
    ruled = None if scope.family_rule is None else families_of(connection, scope, scope.family_rule)
    versions: dict[tuple[str, str], int] = {}
    for suite_name, task_id, *_ in newest.values():
        versions[suite_name, task_id] = versions.get((suite_name, task_id), 0) + 1
    labels = tuple(
        TaskLabel(
            suite=suite_name,
            task=task_id,
            digest=task_digest,
            thing=thing,
            weight=weight,
            changed=versions[suite_name, task_id] > 1,
            family=family if ruled is None else ruled.get(key, ""),
        )
        for key, (suite_name, task_id, task_digest, thing, weight, family) in newest.items()
    )
    return labels, tuple(newest)


def scores_apart(
    connection: Connection, statement: Select[Any], variants: tuple[Variant, ...]
) -> NDArray[np.float64]:
    """Read rows of `score`, whose second column is the candidate, and keep candidates that share a
    name apart.
    """
    if not variants:
        return matrix_of(connection, statement)
    rows = matrix_of(connection, statement.add_columns(schema.score.c.run_key))
    rows[:, 1] = split_keys(variants, rows[:, 1], rows[:, -1])
    return rows[:, :-1]


def candidate_names(connection: Connection, selection: Selection, /) -> dict[str, str]:
    """Map the selected candidates' names in results to the names in their runs."""
    scope = scope_of(connection, selection)
    variants = scope.variants(connection)
    shared = {variant.key: variant.name for variant in variants}
    return {
        label: shared.get(key, label)
        for key, label in candidates_of(connection, scope, variants).items()
    }


def candidates_of(
    connection: Connection, scope: Scope, variants: tuple[Variant, ...]
) -> dict[int, str]:
    """Return the selected runs' candidates by key, in the runs' order, with distinct labels for
    shared names.
    """
    table, own = schema.candidate, schema.run_candidate
    variant_in = {(variant.candidate, run): variant for variant in variants for run in variant.runs}
    rows = connection.execute(
        select(table.c.key, table.c.name, own.c.run_key)
        .join(own, own.c.candidate_key == table.c.key)
        .where(*scope.where_run(own))
        .order_by(own.c.run_key, own.c.position)
    )
    if not variants:
        return {key: name for key, name, _ in rows}
    apart = [(variant_in.get((key, run)), key, name) for key, name, run in rows]
    return {
        (variant.key if variant else key): (variant.label if variant else name)
        for variant, key, name in apart
    }


def judges_of(connection: Connection, scope: Scope) -> dict[int, str]:
    table, own = schema.grader, schema.run_grader
    rows = connection.execute(
        select(table.c.key, table.c.name)
        .join(own, own.c.grader_key == table.c.key)
        .where(*scope.where_run(own), *scope.where_grader(own))
        .order_by(own.c.run_key, own.c.grader_key)
    )
    return {row.key: row.name for row in rows}


def _settings(
    connection: Connection, scope: Scope, graded: Collection[str], replaced: Collection[int]
) -> tuple[GradingSetting, ...]:
    """Return the grading settings of judges and scorers in `graded`, the names whose grades
    count.
    """
    table, tally = schema.run, schema.run_tally
    counts = (tally.c.subject == ASSESSMENT, tally.c.state.in_(COUNTING), tally.c.n > 0)
    where = [*scope.where_key(table.c.key), exists().where(tally.c.run_key == table.c.key, *counts)]
    if replaced:
        where.append(table.c.key.not_in(replaced))
    first_judge: dict[str, str | None] = {}  # by digest of the settings, like the runs
    runs: defaultdict[str, list[str]] = defaultdict(list)
    of_runs = (
        select(table.c.id, table.c.settings).where(*where).order_by(table.c.started, table.c.key)
    )
    for run, text in connection.execute(of_runs):
        for judge, setting in bytes_json(text):
            if judge is None or judge in graded:
                first_judge.setdefault(setting, judge)
                runs[setting].append(run)
    return tuple(
        GradingSetting(judge=judge, digest=setting, runs=tuple(runs[setting]))
        for setting, judge in first_judge.items()
    )


def replaced_runs(connection: Connection, scope: Scope) -> tuple[int, ...]:
    """Return runs without any counting score, because other runs grade the same responses."""
    members = scope.families.members
    if not members:
        return ()
    table = schema.score
    still = connection.execute(
        select(table.c.run_key)
        .where(
            table.c.run_key.in_(members), *scope.families.hold(table), table.c.state.in_(COUNTING)
        )
        .distinct()
    ).scalars()
    return tuple(sorted(set(members).difference(still)))
