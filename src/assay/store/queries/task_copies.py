"""Recognise copies: tasks of the same content under several ids.

A task's digest covers its prompt, reference and the files of a scenario, but not its snippets, so
these are compared as well. Only tasks whose digest occurs several times are read: one per digest,
and the snippets of all if that one has a text.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Connection, not_, select

from assay.store.database import schema
from assay.store.database.codec import bytes_json, json_bytes
from assay.store.database.connections import among
from assay.store.queries.body_search import body_holds

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_TASKS_AT_ONCE: Final = 500

_LONG: Final = 60
"""Number of characters from which the candidates' fixed responses say what was asked, for tasks
that have only a context.
"""


def copies_of(connection: Connection, digests: Mapping[int, str], /) -> Mapping[int, str]:
    """Return the content that a task shares with others, by task key; tasks that are the only ones
    of their content are omitted.

    A task without any text is omitted too: a table of scores does not say what was asked.

    Args:
        digests: digest of each task, by task key.
    """
    by_digest: defaultdict[str, list[int]] = defaultdict(list)
    for key, digest in digests.items():
        by_digest[digest].append(key)
    alike = [keys for keys in by_digest.values() if len(keys) > 1]
    if not alike:
        return {}
    first = _bodies(connection, [keys[0] for keys in alike])
    told = [key for keys in alike if _has_text(first[keys[0]]) for key in keys]
    # Most tasks have no snippets; their texts need not leave the database.
    with_snippets = _bodies(connection, told, not_(body_holds(connection, b'"snippets":[]')))
    snippets = {key: json_bytes(body["snippets"]).decode() for key, body in with_snippets.items()}
    by_content: defaultdict[str, list[int]] = defaultdict(list)
    for key in told:
        by_content[f"{digests[key]} {snippets.get(key, '')}"].append(key)
    return {key: content for content, keys in by_content.items() if len(keys) > 1 for key in keys}


def _bodies(
    connection: Connection, tasks: Collection[int], *only: ColumnElement[bool]
) -> dict[int, dict[str, Any]]:
    task, body = schema.task, schema.body
    wanted = sorted(tasks)
    bodies: dict[int, dict[str, Any]] = {}
    for start in range(0, len(wanted), _TASKS_AT_ONCE):
        rows = connection.execute(
            select(task.c.key, body.c.content)
            .join(body, body.c.key == task.c.body_key)
            .where(among(task.c.key, wanted[start : start + _TASKS_AT_ONCE]), *only)
        )
        bodies |= {key: bytes_json(content) for key, content in rows}
    return bodies


def _has_text(body: Mapping[str, Any]) -> bool:
    """True if it is known what was asked.

    A context alone is shared by tasks of which an import knows no prompt, and so are short
    responses such as "A" and "yes". Tasks of code have only a context and long responses, which are
    compared too.
    """
    if any(body.get(part) for part in ("turns", "scenario", "columns")):
        return True
    responses = sum(
        len(file["content"]) for snippet in body["snippets"] for file in snippet["files"]
    )
    if responses >= _LONG:
        return True
    return any(message["content"].strip() or message.get("images") for message in body["prompt"])
