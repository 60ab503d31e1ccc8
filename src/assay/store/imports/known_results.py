"""Compare an imported run with stored runs, and carry their decisions over to the imported run."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import ColumnElement, Connection, func, or_, select

from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.import_identity import Overlap, Relation, is_poorer, relation
from assay.domain.lifecycle import DECIDED, AssessmentState, Verb
from assay.domain.review import Decision, ReviewEvent, Via
from assay.store.database import schema
from assay.store.database.codec import bytes_json
from assay.store.database.connections import portions
from assay.store.event_chain import events_of
from assay.store.imports.portion import OpenRun
from assay.store.queries.filters import HIDDEN_STATES
from assay.store.queries.own_work import own_work

_AT_ONCE: Final = 500
_VERBS: Final = {state: verb for verb, state in DECIDED.items()}

CellKey = int | tuple[str, int]
"""A response's identity or, failing that, its task and candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFacts:
    """The harness's id and version of an imported run, and digests of its content and answers."""

    identity: str | None
    version: str | None
    form: str
    content: str
    answers: str | None
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRun:
    run_key: int
    id: RunId
    form: str
    relation: Relation
    overlap: Overlap


@dataclass(slots=True)
class _Cell:
    """One candidate's answer to a task, with its grades.

    `assessments` maps graders to assessment states.
    """

    trial_key: int
    candidate_key: int
    answer: bytes = b""
    grades: list[str] = field(default_factory=list)
    assessments: dict[tuple[int, bool], tuple[int, str]] = field(default_factory=dict)

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b(
            self.answer + "\x1e".join(sorted(self.grades)).encode(), digest_size=16
        ).digest()


_Cells = dict[CellKey, list[_Cell]]


def known_runs(connection: Connection, run: OpenRun, facts: ImportFacts) -> list[KnownRun]:
    table, imported = schema.run, schema.imported
    alike = [imported.c.run_key.in_(run.overlapping), _same_results(facts)]
    rows = connection.execute(
        select(
            table.c.key,
            table.c.id,
            table.c.plan_key,
            imported.c.identity,
            imported.c.version,
            imported.c.content,
            imported.c.format,
        )
        .join(imported, imported.c.run_key == table.c.key)
        .where(table.c.state.not_in(HIDDEN_STATES), table.c.key != run.run_key, or_(*alike))
        .order_by(table.c.key)
    ).all()
    known: list[KnownRun] = []
    for row in rows:
        same_evaluation = facts.identity is not None and row.identity == facts.identity
        related = None
        overlap = Overlap(same_evaluation=same_evaluation, same=1, changed=0, added=0, lacking=0)
        if row.content == facts.content:
            pass
        elif not same_evaluation and row.key not in run.overlapping:
            if not (is_poorer(row.format, facts.form) or is_poorer(facts.form, row.format)):
                continue
            related = Relation.RETOLD
        else:
            counted = _compared(connection, run.run_key, row.key, by_identity=not same_evaluation)
            overlap = Overlap(
                same_evaluation=same_evaluation,
                **counted,
                new_version=facts.version,
                stored_version=row.version,
                new_complete=facts.complete,
                stored_complete=_complete(connection, row.plan_key),
            )
        related = related or relation(overlap)
        known.append(
            KnownRun(
                run_key=row.key,
                id=RunId(row.id),
                form=row.format,
                relation=related,
                overlap=overlap,
            )
        )
    return known


def _same_results(facts: ImportFacts) -> ColumnElement[bool]:
    imported = schema.imported
    same = (imported.c.content == facts.content) | (
        (imported.c.answers == facts.answers) & (imported.c.format != facts.form)
    )
    if facts.identity is None:
        return same
    # A model without randomness gives the same answers in two evaluations; the ids of the
    # evaluations tell them apart.
    return or_(imported.c.identity == facts.identity, same & imported.c.identity.is_(None))


def begun_imports(connection: Connection) -> tuple[int, tuple[int, ...]]:
    """Return the state of imports at the start of an import: the newest import's key, and the runs
    of unfinished imports.
    """
    table = schema.imported
    newest = connection.execute(select(func.coalesce(func.max(table.c.key), 0))).scalar_one()
    return newest, tuple(
        connection.execute(select(table.c.run_key).where(table.c.owner.is_not(None))).scalars()
    )


def shown_since(
    connection: Connection, began: tuple[int, tuple[int, ...]], own: Mapping[int, ImportFacts]
) -> bool:
    """True if runs that became visible after `began` (returned by `begun_imports`) contain results
    of the runs in `own`.
    """
    newest, under_way = began
    table, run, response = schema.imported, schema.run, schema.imported_response
    since = [
        or_(table.c.key > newest, table.c.run_key.in_(under_way)),
        table.c.owner.is_(None),
        table.c.run_key.not_in(list(own)),
    ]
    others = (
        connection.execute(
            select(table.c.run_key)
            .join(run, run.c.key == table.c.run_key)
            .where(*since, run.c.state.not_in(HIDDEN_STATES))
        )
        .scalars()
        .all()
    )
    if not others:
        return False
    for key, facts in own.items():
        if connection.execute(
            select(table.c.key).where(table.c.run_key.in_(others), _same_results(facts))
        ).first():
            return True
        mine, theirs = response.alias("mine"), response.alias("theirs")
        shared = (
            select(mine.c.identity)
            .join(theirs, theirs.c.identity == mine.c.identity)
            .where(mine.c.run_key == key, theirs.c.run_key.in_(others))
        )
        if connection.execute(shared.limit(1)).first():
            return True
    return False


def decisions_to_carry(
    connection: Connection, old_key: int, new_key: int, new_id: RunId
) -> tuple[list[Decision], int]:
    """Return a run's decisions that also apply to a newer import of the run, and the number of
    those that do not.

    A decision applies if the answer, the grades and the grader are unchanged.
    """
    old_id = connection.execute(
        select(schema.run.c.id).where(schema.run.c.key == old_key)
    ).scalar_one()
    before, after = _cells(connection, old_key), _cells(connection, new_key)
    decided = {
        key: AssessmentState(state)
        for cells in before.values()
        for cell in cells
        for key, state in cell.assessments.values()
        if AssessmentState(state) in _VERBS
    }
    events: dict[int, list[ReviewEvent]] = {}
    for some in portions(decided, _AT_ONCE):
        events |= events_of(connection, some)
    pairs: dict[int, int] = {}
    differing: set[int] = set()
    for name, cells in before.items():
        waiting = defaultdict(list)
        for cell in after.get(name, ()):
            waiting[cell.digest].append(cell)
        for cell in cells:
            matched = waiting[cell.digest].pop(0) if waiting[cell.digest] else None
            for grader, (key, _) in cell.assessments.items():
                new = None if matched is None else matched.assessments.get(grader)
                if new is None or new[1] != AssessmentState.PENDING.value:
                    # a joint assessment is in several cells, which must all be the same
                    differing.add(key)
                else:
                    pairs[key] = new[0]
    carried: dict[int, Decision] = {}
    for key, state in decided.items():
        verb = _VERBS[state]
        event = next(
            (each for each in reversed(events.get(key, ())) if each.decision.verb is verb), None
        )
        if event is None or key not in pairs or key in differing:
            continue
        past = event.decision
        reason = f": {past.reason}" if past.reason else ""
        carried[pairs[key]] = Decision(
            assessment=AssessmentKey(pairs[key]),
            verb=verb,
            reviewer=past.reviewer,
            via=Via.SCRIPT,
            displayed=False,
            reason=f"unchanged in the later import of {old_id}",
            note=f"decided {event.at} on a{key}{reason}",
            corrections=past.corrections if verb is Verb.CORRECT else {},
            stated_by=past.stated_by,
            key=f"kept:{new_id}:{pairs[key]}",
        )
    people = {
        name
        for decision in carried.values()
        for name in (decision.reviewer, decision.stated_by)
        if name
    }
    for person in people:
        for key in own_work(connection, [AssessmentKey(key) for key in carried], person):
            # An older version of Assay let people decide their own work.
            if person in (carried[key].reviewer, carried[key].stated_by):
                del carried[key]
    by_event = sum(
        any(each.decision.verb in DECIDED for each in events.get(key, ())) for key in decided
    )
    return list(carried.values()), by_event - len(carried)


def _compared(
    connection: Connection, new_key: int, old_key: int, *, by_identity: bool
) -> dict[str, int]:
    numbers = (
        ({}, {})
        if not by_identity
        else (_numbers(connection, new_key), _numbers(connection, old_key))
    )
    new, old = _cells(connection, new_key, numbers[0]), _cells(connection, old_key, numbers[1])
    counts = Counter(same=0, changed=0, added=0, lacking=0)
    for name in new.keys() | old.keys():
        mine, theirs = new.get(name, []), old.get(name, [])
        same = (
            Counter(cell.digest for cell in mine) & Counter(cell.digest for cell in theirs)
        ).total()
        counts["same"] += same
        counts["changed"] += min(len(mine), len(theirs)) - same
        counts["added"] += max(0, len(mine) - len(theirs))
        counts["lacking"] += max(0, len(theirs) - len(mine))
    return dict(counts)


def _numbers(connection: Connection, run_key: int) -> dict[tuple[int, int], int]:
    """Return the numeric identities of a run's responses by trial and candidate."""
    table = schema.imported_response
    rows = connection.execute(
        select(table.c.trial_key, table.c.candidate_key, table.c.identity).where(
            table.c.run_key == run_key
        )
    )
    return {(trial, candidate): number for trial, candidate, number in rows}


def _cells(
    connection: Connection, run_key: int, numbers: Mapping[tuple[int, int], int] | None = None
) -> _Cells:
    """Return a run's cells, keyed by response identity if `numbers` contains it, otherwise by task
    and candidate.
    """
    trial, planned, response, body = schema.trial, schema.run_task, schema.response, schema.body
    call, score, grade, assessment = schema.call, schema.score, schema.grade, schema.assessment
    cells: dict[tuple[int, int], _Cell] = {}
    of_trials = connection.execute(
        select(trial.c.key, planned.c.task_id)
        .join(
            planned,
            (planned.c.run_key == trial.c.run_key) & (planned.c.position == trial.c.position),
        )
        .where(trial.c.run_key == run_key)
    )
    tasks: dict[int, str] = {row.key: row.task_id for row in of_trials}

    def cell_of(trial_key: int, candidate_key: int) -> _Cell:
        place = (trial_key, candidate_key)
        if place not in cells:
            cells[place] = _Cell(trial_key, candidate_key)
        return cells[place]

    for trial_key, candidate_key, kind in connection.execute(
        select(call.c.trial_key, call.c.candidate_key, call.c.fail_kind)
        .join(trial, trial.c.key == call.c.trial_key)
        .where(
            trial.c.run_key == run_key,
            call.c.fail_kind.is_not(None),
            call.c.candidate_key.is_not(None),
        )
    ):
        cell_of(trial_key, candidate_key).answer = b"\x1e" + kind.encode()
    for trial_key, candidate_key, content in connection.execute(
        select(response.c.trial_key, response.c.candidate_key, body.c.content)
        .join(trial, trial.c.key == response.c.trial_key)
        .join(body, body.c.key == response.c.body_key)
        .where(trial.c.run_key == run_key)
        .order_by(response.c.key)
    ):
        cell_of(trial_key, candidate_key).answer = hashlib.blake2b(
            bytes(content), digest_size=16
        ).digest()
    current = (score.c.run_key == run_key, score.c.state != AssessmentState.SUPERSEDED.value)
    trial_of: dict[int, int] = {}
    for key, trial_key, candidate_key, grader_key, value, joint, state in connection.execute(
        select(
            score.c.assessment_key,
            score.c.trial_key,
            score.c.candidate_key,
            score.c.grader_key,
            score.c.judged_value,
            score.c.joint,
            score.c.state,
        ).where(*current)
    ):
        cell = cell_of(trial_key, candidate_key)
        cell.grades.append(f"{grader_key} {value}")
        cell.assessments[grader_key, bool(joint)] = (key, state)
        trial_of[key] = trial_key
    for key, candidate_key, criterion_key, value, raw, by_model, grader_key in connection.execute(
        select(
            grade.c.assessment_key,
            grade.c.candidate_key,
            grade.c.criterion_key,
            grade.c.judged_value,
            grade.c.raw,
            assessment.c.by_model,
            assessment.c.grader_key,
        )
        .join(assessment, assessment.c.key == grade.c.assessment_key)
        .where(grade.c.run_key == run_key)
    ):
        if key in trial_of:
            cell_of(trial_of[key], candidate_key).grades.append(
                f"{grader_key} {criterion_key} {value} {raw} {bool(by_model)}"
            )
    named: defaultdict[CellKey, list[_Cell]] = defaultdict(list)
    for place, cell in cells.items():
        number = None if numbers is None else numbers.get(place)
        named[(tasks[place[0]], place[1]) if number is None else number].append(cell)
    return dict(named)


def _complete(connection: Connection, plan_key: int) -> bool:
    """True unless the imported plan records that the harness left the run unfinished."""
    body = schema.body
    content = connection.execute(select(body.c.content).where(body.c.key == plan_key)).scalar_one()
    imported = (bytes_json(content).get("environment") or {}).get("imported") or {}
    return imported.get("complete") is not False
