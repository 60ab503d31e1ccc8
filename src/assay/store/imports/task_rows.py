"""Convert imported tasks to their stored form, and assign positions in the run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import select, update

from assay.domain.digest import JsonValue
from assay.domain.import_records import FoundTask
from assay.domain.suite import Scoring, Task
from assay.store.database import schema
from assay.store.database.codec import json_bytes, plain
from assay.store.imports.portion import Portion, Row

_JUDGE: Final = Scoring(method="judge")

TASKS_OF_RUN: Final = (
    "SELECT task_id, position, task_key FROM run_task WHERE run_key = {} AND task_id"
)


class Place(NamedTuple):
    """A task's position and key in the run; `new` is True if this portion stored the task."""

    position: int
    task_key: int
    new: bool


class ReadyTask(NamedTuple):
    """An imported task, converted to the values of its columns."""

    digest: str
    content: bytes
    content_digest: str
    thing: str
    weight: float
    language: str
    family: str
    tags: tuple[str, ...]


def ready_task(imported: FoundTask) -> ReadyTask:
    expected = imported.expected[0] if imported.expected else None
    extra: dict[str, JsonValue] = dict(imported.metadata)
    if len(imported.expected) > 1:
        extra["expected_too"] = list(imported.expected[1:])
    task = Task(
        id=imported.id,
        thing=imported.thing or imported.id,
        context=imported.context,
        prompt=imported.prompt,
        expected=expected,
        ideal=imported.ideal,
        final_answer=imported.final_answer,
        scoring=_JUDGE,
        weight=imported.weight,
        tags=imported.tags,
        language=imported.language,
        family=imported.family,
        extra=extra,
    )
    content = json_bytes(task)
    identity: dict[str, JsonValue] = {"family": imported.family} if imported.family else {}
    identity |= {} if imported.ideal is None else {"ideal": imported.ideal}
    identity |= {} if imported.final_answer is None else {"final_answer": imported.final_answer}
    identity |= {
        "context": imported.context,
        "prompt": [[message.role, message.content] for message in imported.prompt],
        "expected": expected,
        "language": imported.language,
    }
    try:  # the same text that `Task.digest` hashes, but written many times faster
        digest = hashlib.sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)).hexdigest()[
            :32
        ]
    except TypeError:
        digest = task.digest
    return ReadyTask(
        digest,
        content,
        content_digest(content),
        plain(task.thing),
        task.weight,
        plain(task.language),
        plain(task.family),
        tuple(sorted({plain(tag) for tag in task.tags})),
    )


BARE_DIGEST: Final = Task(id="", thing="", scoring=_JUDGE).digest
"""Digest of a task of which only the id is known."""

# A template, because a file with only answers has such a task for every line.
_BARE: Final = json_bytes(Task(id="\x01", thing="\x01", scoring=_JUDGE)).split(b'"\\u0001"')


def content_digest(content: bytes) -> str:
    """Return the digest of a task's stored text, which `doctor --check-store` verifies."""
    return hashlib.sha256(content).hexdigest()[:32]


def bare_content(task_id: str) -> bytes:
    """Return the stored text of a task for which only the id is known."""
    name = orjson.dumps(task_id)
    return _BARE[0] + name + _BARE[1] + name + _BARE[2]


def _bare_task(task_id: str) -> ReadyTask:
    content = bare_content(task_id)
    return ReadyTask(BARE_DIGEST, content, content_digest(content), task_id, 1.0, "", "", ())


def declared_tasks(portion: Portion, tasks: Sequence[FoundTask]) -> dict[str, FoundTask]:
    """Return tasks by id; of several tasks with the same id, the first one."""
    declared: dict[str, FoundTask] = {}
    for task in tasks:
        if declared.setdefault(plain(task.id), task) != task:
            _skip_second(portion, task)
    return declared


def place_tasks(
    portion: Portion, declared: dict[str, FoundTask], names: list[str]
) -> dict[str, Place]:
    """Return the place in the run of each task in `names`; store new tasks, with their text if
    declared.
    """
    run = portion.run
    places: dict[str, Place] = {}
    if run.tasks:
        for task_id, position, task_key in portion.rows_among(TASKS_OF_RUN, (run.run_key,), names):
            places[task_id] = Place(position, task_key, new=False)
    new = [name for name in names if name not in places]
    stored: dict[str, list[Any]] = {}
    if run.shared and new:
        text = "SELECT task_id, digest, key, body_key, language FROM task WHERE suite_key = {} AND task_id"
        for row in portion.rows_among(text, (run.suite_key,), new):
            stored.setdefault(row[0], []).append(row)
    run.declared = run.declared or bool(declared)
    rows: list[Row] = []
    planned: list[Row] = []
    tags: list[Row] = []
    for name in new:
        imported = declared.get(name)
        task = _bare_task(name) if imported is None else ready_task(imported)
        same = None
        # an answer alone belongs to the newest stored version of its task
        if name in stored and imported is None:
            same = max(stored[name], key=lambda row: row[2])
        elif name in stored:
            same = next((row for row in stored[name] if row[1] == task.digest), None)
        if same is None:
            task_key, body_key = next(portion.task_keys), next(portion.body_keys)
            portion.bodies.append((body_key, task.content))
            words = (task.language, task.family)
            rows.append(
                (task_key, run.suite_key, name, task.digest, *words, body_key, task.content_digest)
            )
        else:
            task_key, body_key = same[2], same[3]
        places[name] = Place(run.tasks, task_key, new=True)
        planned.append(
            (run.run_key, run.tasks, task_key, name, task.thing, task.weight, 1, body_key)
        )
        tags.extend((run.run_key, task_key, tag) for tag in task.tags)
        run.tasks += 1
    portion.insert_bodies()
    portion.insert(schema.task, rows)
    portion.insert(schema.run_task, planned)
    portion.insert(schema.run_tag, tags)
    for name, imported in declared.items():
        if not places[name].new:
            places[name] = _declare_late(portion, name, imported, places[name])
    return places


def _declare_late(portion: Portion, name: str, imported: FoundTask, place: Place) -> Place:
    """Replace a task that was stored with only an id, because the file contains an answer to it
    before the task's text.
    """
    run, task = portion.run, ready_task(imported)
    table, planned = schema.task, schema.run_task
    digest = portion.connection.execute(
        select(table.c.digest).where(table.c.key == place.task_key)
    ).scalar_one()
    if digest == task.digest:
        return place
    if digest != BARE_DIGEST:
        _skip_second(portion, imported)
        return place
    same = (
        table.c.suite_key == run.suite_key,
        table.c.task_id == name,
        table.c.digest == task.digest,
    )
    row = portion.connection.execute(select(table.c.key, table.c.body_key).where(*same)).first()
    if row is None:
        key, body_key = next(portion.task_keys), next(portion.body_keys)
        portion.insert(schema.body, [(body_key, task.content)])
        words = (task.language, task.family)
        new_row = (key, run.suite_key, name, task.digest, *words, body_key, task.content_digest)
        portion.insert(table, [new_row])
    else:
        key, body_key = row
    of_place = (planned.c.run_key == run.run_key, planned.c.position == place.position)
    portion.connection.execute(
        update(planned)
        .where(*of_place)
        .values(task_key=key, thing=task.thing, weight=task.weight, body_key=body_key)
    )
    # These repeat the task's key, so that filters by task need no join.
    for other in (schema.trial, schema.assessment, schema.score):
        of_task = (other.c.run_key == run.run_key, other.c.task_key == place.task_key)
        portion.connection.execute(update(other).where(*of_task).values(task_key=key))
    return place._replace(task_key=key)


def _skip_second(portion: Portion, task: FoundTask) -> None:
    portion.skip(
        f"task {task.id}",
        f"task {task.id!r} appears twice with different content; Assay kept the first.",
    )
