"""Facts that the review rules of `domain` need about a run and an item, read in the transaction
that writes the decision.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, exists, select

from assay.domain.blind_first import ItemSeen, is_blind, needs_verdict, verdict_first
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.observations import (
    AuthorsDisclosed,
    Observation,
    ObservationKind,
    ProtocolSwitched,
    with_body,
)
from assay.domain.opinions import StandingOpinion, requests_second, standing_opinions, takes_two
from assay.domain.protocol import Protocol, protocol_of
from assay.domain.suite import PERSON
from assay.store.database import schema
from assay.store.database.codec import bytes_json, plain
from assay.store.database.name_keys import candidates_called
from assay.store.queries.own_work import own_work_among
from assay.store.review.observations import read_in

_PAIRS = (ObservationKind.OPINION, ObservationKind.SECOND)
_SEEN = (ObservationKind.SHOWN, ObservationKind.VERDICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOpinions:
    """Opinions on one item.

    `two` is True if it needs two; `stored` contains all its opinions, withdrawn ones included.
    """

    two: bool
    standing: dict[str, StandingOpinion]
    stored: tuple[Observation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedProtocol:
    """Seed and protocol with which a run was planned; both never change."""

    run_id: RunId
    seed: int
    protocol: Protocol


def planned_protocol(connection: Connection, run_key: int) -> PlannedProtocol:
    run, body = schema.run, schema.body
    plan = connection.execute(
        select(run.c.id, body.c.content)
        .join(body, body.c.key == run.c.plan_key)
        .where(run.c.key == run_key)
    ).one()
    content = bytes_json(plan.content)
    protocol = protocol_of(content.get("protocol") or {})
    return PlannedProtocol(run_id=RunId(plan.id), seed=int(content["seed"]), protocol=protocol)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """Trial `k` of a task as one assessment grades it.

    `attempts`: keys of all attempts, its own included.
    """

    task: str
    k: int
    grader: str
    attempts: tuple[AssessmentKey, ...]


def _slot(connection: Connection, key: AssessmentKey) -> _Slot:
    table, trial, planned, grader = schema.assessment, schema.trial, schema.run_task, schema.grader
    row = connection.execute(
        select(
            table.c.trial_key,
            table.c.grader_key,
            table.c.candidate_key,
            planned.c.task_id,
            trial.c.k,
            grader.c.name,
        )
        .join(trial, trial.c.key == table.c.trial_key)
        .join(
            planned,
            (planned.c.run_key == table.c.run_key) & (planned.c.task_key == table.c.task_key),
        )
        .join(grader, grader.c.key == table.c.grader_key)
        .where(table.c.key == int(key))
    ).one()
    same = (
        table.c.trial_key == row.trial_key,
        table.c.grader_key == row.grader_key,
        table.c.candidate_key.is_not_distinct_from(row.candidate_key),
    )
    attempts = connection.execute(select(table.c.key).where(*same)).scalars()
    return _Slot(
        task=row.task_id, k=row.k, grader=row.name, attempts=tuple(map(AssessmentKey, attempts))
    )


class RunRules:
    """Current protocol of a run and the facts about its items.

    It is made anew for each transaction.
    """

    def __init__(self, connection: Connection, run_key: int, planned: PlannedProtocol) -> None:
        self.run_id = planned.run_id
        self._connection = connection
        self._run_key = run_key
        self._seed = planned.seed
        self.protocol = self._current_protocol(planned.protocol)
        self._has_opinions: bool | None = None
        self._own: dict[str, frozenset[int]] = {}

    def opinions(self, key: AssessmentKey) -> ItemOpinions:
        """Return the opinions on an item, and whether it needs two."""
        if self._has_opinions is None:
            table = schema.observation
            pairs = table.c.kind.in_([kind.value for kind in _PAIRS])
            statement = select(exists().where(table.c.run_key == self._run_key, pairs))
            # Most runs have neither, so that a thousand approvals in one command ask once instead
            # of a thousand times.
            self._has_opinions = bool(self._connection.execute(statement).scalar_one())
        stored = self._of_item(key, *_PAIRS) if self._has_opinions else ()
        given = tuple(
            observation for observation in stored if observation.kind is ObservationKind.OPINION
        )
        requested = key in requests_second(stored)
        return ItemOpinions(
            two=takes_two(key, protocol=self.protocol, seed=self._seed, requested=requested),
            standing=standing_opinions(given),
            stored=given,
        )

    def note_opinion(self) -> None:
        """Take into account that this transaction stored an opinion."""
        self._has_opinions = True

    def grades_work_of(self, reviewer: str, key: AssessmentKey) -> bool:
        """True if an assessment grades a candidate with the reviewer's name, as it is called now or
        was called before.
        """
        if reviewer not in self._own:
            self._own[reviewer] = candidates_called(self._connection, reviewer)
        if not self._own[reviewer]:
            return False
        return bool(own_work_among(self._connection, [key], self._own[reviewer]))

    def check_verdict_first(
        self,
        reviewer: str,
        key: AssessmentKey,
        *,
        graded: AssessmentKey,
        attempts: Collection[AssessmentKey] | None = None,
    ) -> None:
        """Raise `Refused` if this reviewer must give their own verdict before they decide on a
        pending item.

        `graded`: the real assessment that grades the same responses. `attempts`: all attempts at
        the item; None for those of the real assessment.
        """
        if not is_blind(key, protocol=self.protocol, seed=self._seed, saw=False):
            return
        seen = self._seen(reviewer, key, _slot(self._connection, graded), attempts)
        if needs_verdict(key, protocol=self.protocol, seed=self._seed, seen=seen):
            raise verdict_first(key)

    def _seen(
        self,
        reviewer: str,
        key: AssessmentKey,
        slot: _Slot,
        attempts: Collection[AssessmentKey] | None,
    ) -> ItemSeen:
        table = schema.observation
        by_reviewer = table.c.reviewer == plain(reviewer)
        keys = [int(attempt) for attempt in (slot.attempts if attempts is None else attempts)]
        of_item = (
            table.c.assessment_key.in_(keys),
            table.c.kind.in_([kind.value for kind in _SEEN]),
        )
        stored = read_in(self._connection, *of_item, by_reviewer)
        of_run = (table.c.run_key == self._run_key, table.c.kind == ObservationKind.DISCLOSED.value)
        disclosed = with_body(read_in(self._connection, *of_run, by_reviewer), AuthorsDisclosed)
        return ItemSeen(
            saw=any(observation.kind is ObservationKind.SHOWN for observation in stored)
            or any(body.task == slot.task and body.k in (None, slot.k) for _, body in disclosed),
            has_verdict=any(
                observation.kind is ObservationKind.VERDICT and observation.assessment == key
                for observation in stored
            ),
            model_grades=slot.grader != PERSON,
        )

    def _current_protocol(self, planned: Protocol) -> Protocol:
        table = schema.observation
        of_run = (table.c.run_key == self._run_key, table.c.kind == ObservationKind.PROTOCOL.value)
        switches = with_body(read_in(self._connection, *of_run), ProtocolSwitched)
        return switches[-1][1].protocol if switches else planned

    def _of_item(self, key: AssessmentKey, *kinds: ObservationKind) -> tuple[Observation, ...]:
        table = schema.observation
        of_kinds = table.c.kind.in_([kind.value for kind in kinds])
        return read_in(self._connection, table.c.assessment_key == int(key), of_kinds)
