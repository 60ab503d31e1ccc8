"""Reads set files: an array of Things with the code of each candidate, a single Thing, or `{name,
things}`.
"""

from __future__ import annotations

from typing import Final

from assay.domain.suite import Scoring, Task
from assay.suites.grammar import NAME, TEXT, WORD, Keys, Kind, ReadContext, Schema, key, list_of
from assay.suites.located_yaml import Value
from assay.suites.problems import Path, dotted
from assay.suites.snippets import LISTED_SNIPPETS
from assay.suites.tasks import TRIALS, TaskRules, add_snippets, slug


class ThingKeys(Keys):
    """The keys of a Thing (a task of a set file), with the code of each candidate."""

    thing_name = key(NAME, name="thingName", required="Name the Thing that the snippets implement.")
    context = key(TEXT)
    language = key(Kind(WORD.read, {"type": "string"}))
    family = key(WORD)
    trials_needed = key(TRIALS, name="trialsNeeded")
    snippets = key(
        LISTED_SNIPPETS, required="Add a list of {name, content}, one for each candidate."
    )


_THING: Final = Kind(ThingKeys.read, ThingKeys.schema())
_THINGS: Final = list_of(
    _THING,
    empty="is an empty list, expected at least one Thing: {thingName, context, language, snippets}.",
)


class SetKeys(Keys):
    """The keys of a set file that has a name."""

    name = key(NAME)
    things = key(_THINGS, required="Add a list of Things.")


SET_SCHEMA: Final[Schema] = {"anyOf": [_THING.schema, _THINGS.schema, SetKeys.schema()]}


def is_set(value: Value) -> bool:
    """True if the content of a file is a set, whatever the file is called."""
    if isinstance(value, list):
        return True
    # A single Thing needs no list around it; `tasks` shows that the file is a suite, even if it
    # also has such a key.
    set_keys = ("thingName", "trialsNeeded", "snippets", "things")
    return (
        isinstance(value, dict) and "tasks" not in value and not value.keys().isdisjoint(set_keys)
    )


def read_set(
    value: Value, context: ReadContext, rules: TaskRules
) -> tuple[str | None, tuple[Task, ...]]:
    """Return the name of a set (None without a name) and a task for each Thing."""
    name: str | None = None
    if isinstance(value, list):
        things = _THINGS.read(value, (), context) or []
    elif isinstance(value, dict) and "things" in value:
        keys = SetKeys.read(value, (), context)
        name, things = (None, []) if keys is None else (keys.name, keys.things or [])
    else:
        thing = ThingKeys.read(value, (), context)
        things = [] if thing is None else [((), thing)]
    first: dict[str, Path] = {}
    tasks = []
    for path, thing in things:
        task = _task_of(thing, rules)
        if task is None:
            continue
        if task.id in first:
            where = (*first[task.id], "thingName")
            same = f"{dotted(where)} on line {context.locate(where, False).line}"
            problem = f"gives the task id {task.id!r}, as does {same}."
            context.report((*path, "thingName"), problem, "Rename one of the Things.")
        first.setdefault(task.id, path)
        tasks.append(task)
    return name, tuple(tasks)


def _task_of(thing: ThingKeys, rules: TaskRules) -> Task | None:
    node = thing.node
    snippets = add_snippets(thing.snippets or (), node.context, rules)
    given = node.values.get("snippets")
    if isinstance(given, list) and len(snippets) == len(given) == 1 and rules.joint:
        problem = (
            f"has one candidate ({snippets[0].candidate}), but a joint judge compares at least two."
        )
        node.report(
            "snippets",
            problem,
            "Add a snippet of another candidate, or give a judge with `mode: each`.",
        )
    if thing.thing_name is None:
        return None
    if not slug(thing.thing_name):
        node.report(
            "thingName",
            f"is {thing.thing_name!r}, expected a name with at least one letter or digit.",
        )
        return None
    return Task(
        id=slug(thing.thing_name),
        thing=thing.thing_name,
        context=thing.context or "",
        scoring=Scoring(method="judge"),
        language=thing.language or "",
        family=thing.family or "",
        trials=thing.trials_needed,
        snippets=snippets,
    )
