"""Find tasks whose pooled scores come from different scoring rules, such as `exact` and
`similarity`.

A task's digest does not cover its scoring, so that a regrade keeps the task. Two runs may therefore
score a task differently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, Final

from sqlalchemy import Connection, func, select

from assay.analysis.columns import MixedRules
from assay.domain.digest import text_digest
from assay.domain.suite import Scoring
from assay.store.database import schema
from assay.store.database.codec import json_bytes, json_text, task_record
from assay.store.queries.filters import Scope

_MAX_TEXTS: Final = 2_000
"""Maximum task texts that one query compares.

Suites change a rule for all tasks, so the first tasks show any difference.
"""


def mixed_rules(
    connection: Connection, scope: Scope, graded: Collection[str] | None, replaced: Collection[int]
) -> tuple[MixedRules, ...]:
    """Return the tasks that several rules scored, grouped by these rules.

    `graded`: graders whose scores count; None for all. `replaced`: keys of runs without any
    counting score.
    """
    if len(scope.runs) < 2:
        return ()
    planned, body = schema.run_task, schema.body
    where = [*scope.where(planned), *([planned.c.run_key.not_in(replaced)] if replaced else [])]
    several = (
        select(planned.c.task_key)
        .where(*where)
        .group_by(planned.c.task_key)
        .having(func.min(planned.c.body_key) != func.max(planned.c.body_key))
    )
    texts: Any = connection.execute(
        select(planned.c.task_key, planned.c.body_key, body.c.content)
        .distinct()
        .join(body, body.c.key == planned.c.body_key)
        .where(*where, planned.c.task_key.in_(several))
        .order_by(planned.c.task_key)
        .limit(_MAX_TEXTS)
    )
    scorings: defaultdict[int, dict[int, Scoring]] = defaultdict(dict)
    for task_key, body_key, content in texts:
        scoring = task_record(content).scoring
        if not scoring.judged and (graded is None or scoring.method in graded):
            scorings[task_key][body_key] = scoring
    mixed = {
        task_key: of_task
        for task_key, of_task in scorings.items()
        if len(set(map(_rule, of_task.values()))) > 1
    }
    if not mixed:
        return ()
    ids = dict(zip(scope.runs, scope.ids, strict=True))
    names: dict[int, str] = {}
    runs: defaultdict[int, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in connection.execute(
        select(planned.c.run_key, planned.c.task_key, planned.c.body_key, planned.c.task_id)
        .where(*where, planned.c.task_key.in_(mixed))
        .order_by(planned.c.run_key)
    ):
        rule = mixed[row.task_key].get(row.body_key)
        if rule is not None:
            names[row.task_key] = row.task_id
            runs[row.task_key][_in_words(rule, mixed[row.task_key].values())].append(
                ids[row.run_key]
            )
    tasks: defaultdict[tuple[tuple[str, tuple[str, ...]], ...], list[str]] = defaultdict(list)
    for task_key, of_task_runs in runs.items():
        tasks[tuple((name, tuple(of_rule)) for name, of_rule in of_task_runs.items())].append(
            names[task_key]
        )
    return tuple(
        MixedRules(tasks=tuple(of_rules), rules=rules) for rules, of_rules in tasks.items()
    )


def _rule(scoring: Scoring) -> tuple[str, bytes, str, bool]:
    return scoring.method, json_bytes(scoring.options), scoring.source, scoring.near_misses


def _in_words(scoring: Scoring, others: Iterable[Scoring]) -> str:
    """Describe a rule briefly; options or code are included only if the other rules differ in
    them.
    """
    if scoring.near_misses:
        return f"{scoring.method} with credit for near misses, as it was then"
    alike = [other for other in others if other.method == scoring.method and not other.near_misses]
    if len({json_bytes(other.options) for other in alike}) > 1:
        return f"{scoring.method} {json_text(scoring.options)}"
    if len({other.source for other in alike}) > 1:
        return f"{scoring.method}, code {text_digest(scoring.source)[:6]}"
    return scoring.method
