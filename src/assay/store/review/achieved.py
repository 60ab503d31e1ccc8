"""Count the decisions that followed their run's review protocol, from stored opinions, verdicts and
events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import ColumnElement, Connection, exists, func, select

from assay.domain.achieved_review import AchievedReview
from assay.domain.identifiers import AssessmentKey, RunId, folded
from assay.domain.lifecycle import DECIDED, AssessmentPurpose, AssessmentState, Verb
from assay.domain.observations import Arm, DecisionTaken, Observation, ObservationKind, with_body
from assay.domain.opinions import by_two_people, standing_opinions
from assay.domain.review import Road, Via, road_of
from assay.store.database import schema
from assay.store.database.connections import portions
from assay.store.database.counters import ASSESSMENT
from assay.store.review.observations import read_in

_AT_ONCE: Final = 5_000  # maximum keys in one statement
_SHOWN: Final = tuple(via.value for via in Via if road_of(via, displayed=True) is Road.SHOWN)
_DECIDED: Final = frozenset(DECIDED.values())
_DECIDED_VALUES: Final = tuple(state.value for state in DECIDED.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """How people judged one item.

    Names are folded: `opinions` are those that stand, `blind` lists who judged blind.

    `by_two`: True if two different people gave opinions.
    """

    run_id: RunId
    state: AssessmentState
    opinions: frozenset[str]
    by_two: bool
    blind: frozenset[str] = field(default_factory=frozenset)


def achieved_review(
    connection: Connection, runs: Collection[RunId], ordered: Collection[RunId]
) -> dict[RunId, AchievedReview]:
    """Return what the review of each run achieved so far.

    `ordered` contains the runs that plan a random order.
    """
    table = schema.run
    achieved: dict[RunId, AchievedReview] = {}
    for some in portions([str(run) for run in runs], _AT_ONCE):
        rows = connection.execute(select(table.c.key, table.c.id).where(table.c.id.in_(some)))
        achieved |= _of_runs(
            connection, {int(key): RunId(run_id) for key, run_id in rows}, frozenset(ordered)
        )
    return achieved


def _of_runs(
    connection: Connection, runs: Mapping[int, RunId], ordered: frozenset[RunId]
) -> dict[RunId, AchievedReview]:
    decisions = _decisions(connection, runs)
    items = _items(connection, runs)
    decided = {key: item for key, item in items.items() if item.state in _DECIDED}
    alone = _last_reviewers(
        connection, [key for key, item in decided.items() if item.blind and not item.opinions]
    )
    blind: Counter[RunId] = Counter()
    by_two: Counter[RunId] = Counter()
    waiting: Counter[RunId] = Counter()
    for key, item in items.items():
        if item.state is AssessmentState.PENDING:
            waiting[item.run_id] += bool(item.opinions)
        elif item.state in _DECIDED:
            deciders = item.opinions or frozenset({alone[key]} if key in alone else ())
            blind[item.run_id] += bool(deciders) and deciders <= item.blind
            by_two[item.run_id] += item.by_two
    in_order = _in_order(connection, [key for key, run in runs.items() if run in ordered])
    return {
        run: AchievedReview(
            decisions=decisions.get(key, 0),
            blind=blind[run],
            by_two=by_two[run],
            in_order=in_order.get(key, 0) if run in ordered else None,
            waiting_for_second=waiting[run],
        )
        for key, run in runs.items()
    }


def _decisions(connection: Connection, runs: Collection[int]) -> dict[int, int]:
    tally = schema.run_tally
    of_runs = (
        tally.c.run_key.in_(runs),
        tally.c.subject == ASSESSMENT,
        tally.c.state.in_(_DECIDED_VALUES),
    )
    counts = select(tally.c.run_key, func.sum(tally.c.n)).where(*of_runs).group_by(tally.c.run_key)
    return {int(key): int(n) for key, n in connection.execute(counts)}


def _items(connection: Connection, runs: Collection[int]) -> dict[AssessmentKey, _Item]:
    """Return the items of the runs on which people gave opinions or judged blind."""
    table, item = schema.observation, schema.assessment
    opinions = _by_item(_read(connection, runs, ObservationKind.OPINION))
    verdicts = _by_item(_read(connection, runs, ObservationKind.VERDICT))
    # A rejection may come without a verdict, so that only its own record tells if the grades were
    # unseen. Other decisions are not read: a run may have a hundred thousand.
    is_rejected = exists().where(
        item.c.key == table.c.assessment_key, item.c.state == AssessmentState.REJECTED.value
    )
    rejections = _by_item(_read(connection, runs, ObservationKind.DECISION, is_rejected))
    keys = opinions.keys() | verdicts.keys() | rejections.keys()
    states = _states(connection, keys)
    items: dict[AssessmentKey, _Item] = {}
    for key in keys & states.keys():
        observations = [*opinions.get(key, ()), *verdicts.get(key, ()), *rejections.get(key, ())]
        standing = standing_opinions(opinions.get(key, ()))
        scripted = {folded(name) for name, opinion in standing.items() if opinion.given.scripted}
        items[key] = _Item(
            run_id=observations[0].run_id,
            state=states[key],
            opinions=frozenset(map(folded, standing)),
            by_two=by_two_people(standing),
            blind=_blind(verdicts.get(key, ()), rejections.get(key, ())) - scripted,
        )
    return items


def _blind(verdicts: Iterable[Observation], rejections: Iterable[Observation]) -> frozenset[str]:
    """Return the folded names of the people who judged an item before they saw its grades."""
    # The last rejection of a person holds: an undo may have shown them the grades.
    arms = {
        folded(observation.reviewer): taken.arm
        for observation, taken in with_body(rejections, DecisionTaken)
        if taken.verb is Verb.REJECT
    }
    return frozenset(
        {folded(observation.reviewer) for observation in verdicts}
        | {name for name, arm in arms.items() if arm is Arm.BLIND}
    )


def _read(
    connection: Connection,
    runs: Collection[int],
    kind: ObservationKind,
    *where: ColumnElement[bool],
) -> tuple[Observation, ...]:
    table = schema.observation
    of_runs = (
        table.c.run_key.in_(runs),
        table.c.kind == kind.value,
        table.c.purpose == AssessmentPurpose.WORK.value,
    )
    return read_in(connection, *of_runs, *where)


def _by_item(observations: Iterable[Observation]) -> dict[AssessmentKey, list[Observation]]:
    by_item: dict[AssessmentKey, list[Observation]] = {}
    for observation in observations:
        by_item.setdefault(observation.assessment, []).append(observation)
    return by_item


def _states(
    connection: Connection, keys: Collection[AssessmentKey]
) -> dict[AssessmentKey, AssessmentState]:
    table = schema.assessment
    states: dict[AssessmentKey, AssessmentState] = {}
    for some in portions([int(key) for key in keys], _AT_ONCE):
        rows = connection.execute(select(table.c.key, table.c.state).where(table.c.key.in_(some)))
        states |= {AssessmentKey(key): AssessmentState(state) for key, state in rows}
    return states


def _last_reviewers(
    connection: Connection, keys: Collection[AssessmentKey]
) -> dict[AssessmentKey, str]:
    """Return the folded name of the person who made the last decision on each assessment, unless a
    script made it.
    """
    table = schema.review_event
    columns = (table.c.assessment_key, table.c.reviewer, table.c.via, table.c.displayed)
    reviewers: dict[AssessmentKey, str | None] = {}
    for some in portions([int(key) for key in keys], _AT_ONCE):
        events = select(*columns).where(table.c.assessment_key.in_(some)).order_by(table.c.id)
        for key, reviewer, via, displayed in connection.execute(events):
            shown = road_of(Via(via), displayed=displayed) is Road.SHOWN
            reviewers[AssessmentKey(key)] = folded(reviewer) if shown else None
    return {key: name for key, name in reviewers.items() if name is not None}


def _in_order(connection: Connection, runs: Collection[int]) -> dict[int, int]:
    """Count the decided assessments of each run whose last decision was made on an item from the
    review queue.
    """
    if not runs:
        return {}
    item, event, later = schema.assessment, schema.review_event, schema.review_event.alias("later")
    last = (
        select(func.max(later.c.id)).where(later.c.assessment_key == item.c.key).scalar_subquery()
    )
    counts = (
        select(item.c.run_key, func.count())
        .select_from(item)
        .join(event, event.c.id == last)
        .where(item.c.run_key.in_(runs), item.c.state.in_(_DECIDED_VALUES))
        .where(event.c.displayed, event.c.via.in_(_SHOWN))
        .group_by(item.c.run_key)
    )
    return {int(key): int(n) for key, n in connection.execute(counts)}
