"""Convert a selection to SQL conditions.

An unknown name raises an error that suggests the nearest known name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, exists, func, or_, select, true

from assay.domain.errors import InputError, UnknownName
from assay.domain.family_rule import FamilyRule, family_rule
from assay.domain.identifiers import RunId, folded
from assay.domain.lifecycle import HIDDEN, UNREADABLE
from assay.domain.selection import Selection
from assay.domain.verdict_scales import VERDICT
from assay.store.database import schema
from assay.store.database.connections import portions
from assay.store.database.name_keys import is_named
from assay.store.queries.regrade_families import Families, families
from assay.store.queries.variants import Variant, variants_of

V = TypeVar("V")

HIDDEN_STATES = tuple(sorted(state.value for state in HIDDEN))
_UNREADABLE_STATES = tuple(sorted(state.value for state in UNREADABLE))
"""Stored states of runs that no query reads."""

_NAMED = 200
"""Maximum run keys listed in a statement; databases accept a few thousand, and compile each one."""

_AT_ONCE = 500
"""Maximum run ids listed in a query."""

_LISTED = 8
"""Maximum known names listed in an error message."""


class SelectedRuns:
    """Keys and ids of the selected runs, oldest first; read on first use, while the connection is
    open.

    Most queries over all runs need no list of keys, and so avoid reading twenty thousand of them.
    """

    def __init__(self, connection: Connection, where: Sequence[ColumnElement[bool]]) -> None:
        self._connection = connection
        self._where = tuple(where)

    @property
    def question(self) -> Select[tuple[int]]:
        """Return a subquery for the run keys, for selections with too many runs to list."""
        return select(schema.run.c.key).where(*self._where).correlate(None)

    @cached_property
    def rows(self) -> tuple[tuple[int, RunId], ...]:
        run = schema.run
        rows = self._connection.execute(
            select(run.c.key, run.c.id)
            .where(true(), *self._where)
            .order_by(run.c.started, run.c.key)
        )
        return tuple((key, RunId(identifier)) for key, identifier in rows)


@dataclass(frozen=True, slots=True)
class Scope:
    """A selection, resolved to the store's keys. A filter that excludes nothing is None.

    Attributes:
        listed: selected runs, read only if needed.
        every_run: True if no filter excludes a run.
        hidden: keys of half-written, deleted or replaced runs, which are never read.
        graders, criteria: keys of the selected judges and criteria.
        verdict: True if the criterion is the verdict, which is derived from all criteria.
        families: selected runs that grade the same responses.
        family_rule: rule that groups tasks into families; None for the stored families.
        named_in: runs used to detect candidates that share a name, if `compared` excludes some of
            these runs.
    """

    listed: SelectedRuns
    every_run: bool
    hidden: tuple[int, ...]
    tasks: tuple[int, ...] | None
    tags: tuple[str, ...] | None
    languages: tuple[str, ...] | None
    graders: tuple[int, ...] | None
    criteria: tuple[int, ...] | None
    verdict: bool
    families: Families
    family_rule: FamilyRule | None
    named_in: SelectedRuns | None

    def variants(self, connection: Connection) -> tuple[Variant, ...]:
        """Return candidates that share a name with another candidate, regardless of `compared`."""
        own = schema.run_candidate
        return variants_of(
            connection, self.where_run(own) if self.named_in is None else _among(self.named_in)
        )

    @property
    def runs(self) -> tuple[int, ...]:
        """Return the selected runs' keys, oldest first.

        First call this while the scope's connection is open.
        """
        return tuple(key for key, _ in self.listed.rows)

    @property
    def ids(self) -> tuple[RunId, ...]:
        """Return the selected runs' ids, oldest first."""
        return tuple(identifier for _, identifier in self.listed.rows)

    @property
    def narrows_tasks(self) -> bool:
        """True if the selection excludes some of the selected runs' tasks."""
        return self.tasks is not None or self.tags is not None or self.languages is not None

    def where(self, table: Table) -> list[ColumnElement[bool]]:
        """Return conditions on a table with `run_key` and `task_key` that select rows of the
        selected runs and tasks.
        """
        return [*self.where_run(table), *self._where_task(table)]

    def where_run(self, table: Table) -> list[ColumnElement[bool]]:
        return self.where_key(table.c.run_key)

    def where_key(self, column: ColumnElement[int]) -> list[ColumnElement[bool]]:
        if not self.every_run:
            # Beyond that number, a sub-select is used: a parameter for each of 20,000 runs exceeded
            # SQLite's limit of variables.
            return [column.in_(self.runs if len(self.runs) <= _NAMED else self.listed.question)]
        if len(self.hidden) <= _NAMED:
            return [column.not_in(self.hidden)] if self.hidden else []
        return [
            column.not_in(
                select(schema.run.c.key)
                .where(schema.run.c.state.in_(HIDDEN_STATES))
                .correlate(None)
            )
        ]

    def of_tasks(self, connection: Connection, table: Table) -> list[ColumnElement[bool]]:
        """Return conditions on the selected tasks' runs, which enable an index; empty without a
        task filter.
        """
        if self.tasks is None:
            return []
        planned = schema.run_task
        having = (
            select(planned.c.run_key)
            .where(*self.where_run(planned), planned.c.task_key.in_(self.tasks))
            .distinct()
        )
        return [table.c.run_key.in_(connection.execute(having).scalars().all())]

    def where_grader(self, table: Table) -> list[ColumnElement[bool]]:
        return [] if self.graders is None else [table.c.grader_key.in_(self.graders)]

    def _where_task(self, table: Table) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = []
        if self.tasks is not None:
            conditions.append(table.c.task_key.in_(self.tasks))
        if self.languages is not None:
            task = schema.task
            conditions.append(
                table.c.task_key.in_(select(task.c.key).where(task.c.language.in_(self.languages)))
            )
        if self.tags is not None:
            tag = schema.run_tag
            same = (tag.c.run_key == table.c.run_key, tag.c.task_key == table.c.task_key)
            conditions.append(exists().where(*same, tag.c.tag.in_(self.tags)))
        return conditions


def scope_of(connection: Connection, selection: Selection) -> Scope:
    """Resolve a selection's names to the store's keys.

    Raises UnknownName if one of the names does not exist, and InputError if several run ids begin
    with the given text.
    """
    run, suite = schema.run, schema.suite
    hidden = tuple(
        connection.execute(select(run.c.key).where(run.c.state.in_(HIDDEN_STATES))).scalars()
    )
    # A run that is named explicitly may be archived.
    shown = run.c.state.not_in(_UNREADABLE_STATES if selection.runs else HIDDEN_STATES)
    conditions: list[ColumnElement[bool]] = []
    if selection.runs:
        conditions.append(run.c.key.in_(_run_keys(connection, selection.runs)))
    if selection.suites:
        known = _pairs(connection, suite.c.name, suite.c.key)
        conditions.append(run.c.suite_key.in_(_matching("suite", selection.suites, known)))
    if selection.batch_ids:
        rows = connection.execute(
            select(run.c.batch_id).where(run.c.batch_id.is_not(None)).distinct()
        ).scalars()
        names = [(name, name) for name in rows]
        conditions.append(run.c.batch_id.in_(_matching("batch", selection.batch_ids, names)))
    graders = criteria = None
    if selection.judges:
        graders = tuple(
            _matching("judge", selection.judges, _pairs(connection, *_named(schema.grader)))
        )
        own = schema.run_grader
        conditions.append(run.c.key.in_(select(own.c.run_key).where(own.c.grader_key.in_(graders))))
    verdict = False
    if selection.criteria:
        verdict = _chooses_verdict(connection, selection.criteria)
    if selection.criteria and not verdict:
        criteria = tuple(
            _matching(
                "criterion", selection.criteria, _pairs(connection, *_named(schema.criterion))
            )
        )
        own = schema.run_criterion
        conditions.append(
            run.c.key.in_(select(own.c.run_key).where(own.c.criterion_key.in_(criteria)))
        )
    named_in = None
    if selection.compared:
        named_in = SelectedRuns(connection, [*conditions, shown])
        conditions += _compared(selection.compared, variants_of(connection, _among(named_in)))
    every_run = not conditions
    listed = SelectedRuns(connection, [*conditions, shown] if hidden else conditions)
    of_runs: list[ColumnElement[bool]] = (
        [] if every_run else [schema.run_task.c.run_key.in_([key for key, _ in listed.rows])]
    )
    return Scope(
        listed=listed,
        every_run=every_run,
        hidden=hidden,
        tasks=_tasks(connection, selection.tasks, of_runs),
        tags=_values(connection, "tag", selection.tags, schema.run_tag.c.tag),
        languages=_values(connection, "language", selection.languages, schema.task.c.language),
        graders=graders,
        criteria=criteria,
        verdict=verdict,
        named_in=named_in,
        families=families(connection, lambda: [key for key, _ in listed.rows], graders=graders),
        family_rule=family_rule(selection.family_by),
    )


def _chooses_verdict(connection: Connection, names: Sequence[str]) -> bool:
    """True if the only criterion is `verdict` and no rubric has a criterion of that name."""
    if VERDICT not in {folded(name) for name in names}:
        return False
    if connection.execute(
        select(schema.criterion.c.key).where(func.lower(schema.criterion.c.name) == VERDICT)
    ).first():
        return False
    if len({folded(name) for name in names}) > 1:
        problem = (
            "verdict is derived from all criteria, so it cannot be combined with other criteria."
        )
        raise InputError("--criterion", problem, remedy="Use --criterion verdict alone.")
    return True


def _among(runs: SelectedRuns) -> list[ColumnElement[bool]]:
    return [schema.run_candidate.c.run_key.in_(runs.question)]


def _compared(names: Sequence[str], variants: tuple[Variant, ...]) -> list[ColumnElement[bool]]:
    labelled = {folded(variant.label): variant for variant in variants}
    run, own, candidate, beside = (
        schema.run,
        schema.run_candidate,
        schema.candidate,
        schema.run.alias("beside"),
    )
    runs_of = [
        select(own.c.run_key)
        .join(candidate, candidate.c.key == own.c.candidate_key)
        .where(is_named(candidate.c.folded, name))
        if (variant := labelled.get(folded(name))) is None
        else select(own.c.run_key).where(
            own.c.candidate_key == variant.candidate, own.c.run_key.in_(variant.runs)
        )
        for name in names
    ]
    return [
        or_(*(run.c.key.in_(of_one) for of_one in runs_of)),
        *(
            run.c.suite_key.in_(select(beside.c.suite_key).where(beside.c.key.in_(of_one)))
            for of_one in runs_of
        ),
    ]


def unsorted(column: ColumnElement[V]) -> ColumnElement[V]:
    """Return a column as an expression that SQLite cannot sort with an index.

    If few rows match, SQLite would otherwise scan an index over all rows to return them in the
    requested order.
    """
    return column.op("||")("") if column.type.python_type is str else column.op("+")(0)


def find_run(connection: Connection, text: str) -> RunId:
    """Return the run with this id, or the only run whose id begins with it; raises `UnknownName` or
    `InputError`.
    """
    table = schema.run
    is_shown = table.c.state.not_in(_UNREADABLE_STATES)
    exact = connection.execute(
        select(table.c.id).where(table.c.id == text, is_shown)
    ).scalar_one_or_none()
    if exact is not None:
        return RunId(exact)
    beginning = table.c.id.startswith(text, autoescape=True)
    matches = (
        connection.execute(
            select(table.c.id).where(beginning, is_shown).order_by(table.c.id).limit(4)
        )
        .scalars()
        .all()
    )
    if not matches or not text:
        newest = select(table.c.id).where(is_shown).order_by(table.c.started.desc()).limit(1000)
        known = connection.execute(newest).scalars()
        raise UnknownName("run", text, known, remedy="`assay runs` lists them.")
    if len(matches) > 1:
        listed = ", ".join(matches[:3])
        raise InputError(
            "", f"several runs begin with {text!r}: {listed}{', …' if len(matches) > 3 else ''}."
        )
    return RunId(matches[0])


def _run_keys(connection: Connection, texts: Sequence[str]) -> list[int]:
    """Return run keys by id or by the beginning of an id.

    Complete ids share a query, because pages pass many.
    """
    table, known = schema.run, dict[str, int]()
    for some in portions(texts, _AT_ONCE):
        query = select(table.c.id, table.c.key).where(table.c.id.in_(some))
        known |= {
            str(row.id): row.key
            for row in connection.execute(query.where(table.c.state.not_in(_UNREADABLE_STATES)))
        }
    for text in texts:
        if text not in known:
            run_id = find_run(connection, text)
            known[text] = connection.execute(
                select(table.c.key).where(table.c.id == run_id)
            ).scalar_one()
    return [known[text] for text in texts]


def _tasks(
    connection: Connection, wanted: Sequence[str], of_runs: list[ColumnElement[bool]]
) -> tuple[int, ...] | None:
    if not wanted:
        return None
    table = schema.run_task
    statement = select(table.c.task_key, table.c.task_id, table.c.thing).where(*of_runs).distinct()
    named: list[ColumnElement[bool]] = []
    # a large store has too many tasks to read all of their names
    if all(name.isascii() for name in wanted):
        small = {name.lower() for name in wanted}
        named = [or_(func.lower(table.c.task_id).in_(small), func.lower(table.c.thing).in_(small))]
    for only in (named, []):
        rows = connection.execute(statement.where(*only)).all()
        known = [(name, key) for key, task_id, thing in rows for name in (task_id, thing)]
        if not only or {folded(name) for name in wanted} <= {folded(name) for name, _ in known}:
            break
    return tuple(
        dict.fromkeys(_matching("task", wanted, known, listed=[task_id for _, task_id, _ in rows]))
    )


def _values(
    connection: Connection, kind: str, wanted: Sequence[str], column: ColumnElement[str]
) -> tuple[str, ...] | None:
    if not wanted:
        return None
    names = connection.execute(select(column).distinct()).scalars()
    return tuple(_matching(kind, wanted, [(name, name) for name in names if name]))


def _named(table: Table) -> tuple[ColumnElement[str], ColumnElement[int]]:
    return table.c.name, table.c.key


def _pairs(
    connection: Connection, name: ColumnElement[str], key: ColumnElement[int]
) -> list[tuple[str, int]]:
    return [(text, number) for text, number in connection.execute(select(name, key))]


_MAKING: Final = {
    "batch": " `assay run --batch-id NAME` puts a run into a batch, and so does `pytest --assay-batch NAME`."
}
"""Ways to get the first of a kind, for its error message."""


def _matching(
    kind: str,
    wanted: Iterable[str],
    known: Sequence[tuple[str, V]],
    *,
    listed: Sequence[str] | None = None,
) -> list[V]:
    """Return the values with the requested names, ignoring case.

    Error messages list `listed` instead of all known names.
    """
    by_name: dict[str, list[V]] = {}
    for name, value in known:
        by_name.setdefault(folded(name), []).append(value)
    values: list[V] = []
    for name in wanted:
        if folded(name) not in by_name:
            names = tuple(dict.fromkeys(given for given, _ in known))
            shown = names if listed is None else tuple(dict.fromkeys(listed))
            shown_names = ", ".join(shown[:_LISTED]) + (", …" if len(shown) > _LISTED else "")
            none = f"The store has none yet.{_MAKING.get(kind, '')}"
            raise UnknownName(kind, name, names, remedy=f"Known: {shown_names}." if names else none)
        values.extend(by_name[folded(name)])
    return values
