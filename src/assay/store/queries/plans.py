"""Read stored plans of runs and their tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, select

from assay.domain.digest import JsonValue, digest
from assay.domain.errors import UnknownName
from assay.domain.identifiers import RunId, folded
from assay.domain.run import PlannedTask, RunPlan
from assay.store.database import schema
from assay.store.database.codec import bytes_text, plan_record, task_record
from assay.store.database.connections import Database

_TASKS_AT_ONCE: Final = 500


def run_key_of(connection: Connection, run: RunId) -> int:
    table = schema.run
    key = connection.execute(select(table.c.key).where(table.c.id == run)).scalar_one_or_none()
    if key is None:
        raise UnknownName("run", run, connection.execute(select(table.c.id)).scalars())
    return int(key)


def plan_of(connection: Connection, run: RunId) -> RunPlan:
    """Return a run's current plan, including extensions; raises `UnknownName`."""
    run_key = run_key_of(connection, run)
    table, body, copies = schema.run, schema.body, schema.suite_copy
    text_body = body.alias()
    content, text = connection.execute(
        select(body.c.content, text_body.c.content)
        .select_from(table)
        .join(body, body.c.key == table.c.plan_key)
        .join(copies, copies.c.digest == table.c.suite_digest)
        .join(text_body, text_body.c.key == copies.c.body_key)
        .where(table.c.key == run_key)
    ).one()
    return plan_record(content, suite_text=bytes_text(text))


def tasks_of(database: Database, run: RunId) -> Iterator[tuple[PlannedTask, int]]:
    """Yield (task, number of trials) of a run in plan order, with a short query per batch."""
    with database.reading() as connection:
        run_key = run_key_of(connection, run)
    table, body = schema.run_task, schema.body
    last = -1
    while True:
        with database.reading() as connection:
            rows = connection.execute(
                select(table.c.position, table.c.trials, body.c.content)
                .join(body, body.c.key == table.c.body_key)
                .where(table.c.run_key == run_key, table.c.position > last)
                .order_by(table.c.position)
                .limit(_TASKS_AT_ONCE)
            ).all()
        for position, trials, content in rows:
            yield (
                PlannedTask(
                    task=task_record(content), position=position, trials=range(1, trials + 1)
                ),
                trials,
            )
        if len(rows) < _TASKS_AT_ONCE:
            return
        last = rows[-1].position


def settings_of(plan: RunPlan) -> list[tuple[str | None, str]]:
    """Return each judge with a digest of its settings.

    Runs with equal digests can be pooled without a warning.

    The digest excludes seeds, which differ between runs on purpose.
    """
    own = {name: value for name, value in plan.parameters.as_json().items() if name != "seed"}
    asked: dict[str, JsonValue] = {"parameters": own, "system_prompt": plan.system_prompt}
    if plan.user is not None:
        asked["user"] = [plan.user.model.ref, plan.user.turns]
    if not plan.judges:
        return [(None, digest(asked))]
    return [
        (
            judge.name,
            digest(
                {
                    **asked,
                    "judge": folded(judge.name),
                    "model": judge.model.ref,
                    "mode": judge.mode.value,
                    "rubric": plan.rubric.digest,
                    "judge_parameters": {
                        name: value
                        for name, value in judge.parameters.as_json().items()
                        if name != "seed"
                    },
                    "prompt": judge.prompt,
                    **({"pages": True} if judge.pages else {}),
                    **({} if judge.persona in (None, "code") else {"persona": judge.persona}),
                }
            ),
        )
        for judge in plan.judges
    ]
