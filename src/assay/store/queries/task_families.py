"""Group tasks into families by their tags or metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, select

from assay.domain.errors import InputError
from assay.domain.family_rule import OPTION, FamilyRule
from assay.formats.dotted_paths import value_at
from assay.store.database import schema
from assay.store.database.codec import bytes_json
from assay.store.queries.filters import Scope

_TAGS_NAMED: Final = 8


def families_of(connection: Connection, scope: Scope, rule: FamilyRule) -> Mapping[int, str]:
    """Return each task's family by task key; tasks without the rule's tag or metadata are omitted.

    Raises InputError if no task has a family, or if a task has several.
    """
    return (
        _by_tag(connection, scope, rule) if rule.by_tag else _by_metadata(connection, scope, rule)
    )


def _by_tag(connection: Connection, scope: Scope, rule: FamilyRule) -> Mapping[int, str]:
    table, task = schema.run_tag, schema.task
    tags: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
    rows = connection.execute(
        select(table.c.task_key, task.c.task_id, table.c.tag)
        .join(task, task.c.key == table.c.task_key)
        .where(*scope.where(table))
    )
    known = set()
    for key, task_id, tag in rows:
        known.add(tag)
        if (family := rule.family_in(tag)) is not None:
            tags[key, task_id].add(family)
    for (_, task_id), names in tags.items():
        if len(names) > 1:
            listed = ", ".join(sorted(names)[:_TAGS_NAMED])
            problem = f"gives task {task_id!r} several families: {listed}."
            raise InputError(
                OPTION,
                problem,
                remedy="Choose a prefix that occurs in only one tag of each task: tag:PREFIX.",
            )
    if not tags and scope.ids:
        named = ", ".join(sorted(known)[:_TAGS_NAMED])
        problem = (
            f"no selected task has a tag that begins with '{rule.key}:'."
            if rule.key
            else "no selected task has a tag."
        )
        raise InputError(
            OPTION, problem, remedy=f"Their tags: {named}." if named else "They have no tags."
        )
    return {key: names.pop() for (key, _), names in tags.items()}


def _by_metadata(connection: Connection, scope: Scope, rule: FamilyRule) -> Mapping[int, str]:
    planned, body = schema.run_task, schema.body
    families: dict[int, str] = {}
    known: set[str] = set()
    rows = connection.execute(
        select(planned.c.task_key, body.c.content)
        .join(body, body.c.key == planned.c.body_key)
        .where(*scope.where(planned))
        .order_by(planned.c.run_key)
    )
    for key, content in rows:
        extra = bytes_json(content).get("extra") or {}
        known.update(extra)
        value = value_at(extra, rule.key)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value):
            families[key] = str(value)
    if not families and scope.ids:
        named = ", ".join(sorted(known)[:_TAGS_NAMED])
        problem = f"no selected task has metadata {rule.key!r}."
        raise InputError(
            OPTION,
            problem,
            remedy=f"Their metadata: {named}." if named else "They have no metadata.",
        )
    return families
