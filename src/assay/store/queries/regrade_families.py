"""Groups of runs that grade the same responses, and the rule for the grading that counts.

A regrade keeps its original run's trial numbers: trials with the same position and k grade the same
responses. Runs with the same original run form a family. Within a family the newest grading of a
response counts, regardless of decisions. A run that has not graded the response changes nothing.
People's grades that were imported with the responses are references for comparing later gradings. A
run with such grades therefore counts as the newest of its family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, Table, and_, exists, not_, or_, select
from sqlalchemy.sql import FromClause

from assay.domain.lifecycle import AssessmentState
from assay.store.database import schema

_SUPERSEDED: Final = AssessmentState.SUPERSEDED.value


@dataclass(frozen=True, slots=True)
class Families:
    """Selected runs that grade the same responses; empty in nearly every store.

    `newer`, `older`: the newer or older runs of a run's family, by run; runs without any are
    omitted. `graders`: keys of the selected judges; None for all judges. `references`: keys of
    selected people whose grades were imported with the responses, by run.
    """

    newer: dict[int, tuple[int, ...]]
    older: dict[int, tuple[int, ...]]
    graders: tuple[int, ...] | None
    references: dict[int, list[int]]

    @property
    def contested(self) -> tuple[int, ...]:
        """Return the runs whose scores a newer run may replace."""
        return tuple(self.newer)

    @property
    def members(self) -> tuple[int, ...]:
        """Return all runs that share responses with another selected run."""
        return tuple({**self.newer, **self.older})

    def hold(self, table: Table) -> list[ColumnElement[bool]]:
        """Return SQL conditions that are true for a score that no newer grading of the response
        replaces.
        """
        if not self.newer:
            return []
        replaced = exists().where(*self._replacing(table))
        return [or_(table.c.run_key.not_in(self.contested), not_(replaced))]

    def give_way(self, table: Table) -> list[ColumnElement[bool]]:
        """Return SQL conditions that are true for a score that a newer grading replaces.

        Requires a contested run.
        """
        return [table.c.run_key.in_(self.contested), exists().where(*self._replacing(table))]

    def _replacing(self, table: Table) -> list[ColumnElement[bool]]:
        """Return SQL conditions: the paired trial in a newer run has a current grading of the same
        candidate.
        """
        mine, paired = schema.trial.alias("mine"), schema.trial.alias("paired")
        assessment, scored = schema.assessment.alias("its"), schema.score.alias("scored")
        return [
            mine.c.key == table.c.trial_key,
            *_paired(mine, paired, self.newer),
            *self._grading(assessment, paired),
            # A sub-select: joined with the rest, SQLite reads every score of the newer run for each
            # row.
            exists()
            .where(
                scored.c.run_key == assessment.c.run_key,
                scored.c.assessment_key == assessment.c.key,
                scored.c.candidate_key == table.c.candidate_key,
            )
            .correlate(assessment, table),
        ]

    def stand(self, trial: Table) -> list[ColumnElement[bool]]:
        """Return conditions on `trial`: it is the newest graded of its paired trials or, if all are
        ungraded, the oldest.
        """
        if not self.newer:
            return []
        paired, assessment, own = (
            schema.trial.alias("paired"),
            schema.assessment.alias("its"),
            schema.assessment.alias("own"),
        )
        replaced = exists().where(
            *_paired(trial, paired, self.newer), *self._grading(assessment, paired)
        )
        ungraded = not_(exists().where(*self._grading(own, trial)).correlate(trial))
        follows = exists().where(*_paired(trial, paired, self.older))
        return [
            or_(trial.c.run_key.not_in(self.contested), not_(replaced.correlate(trial))),
            or_(
                trial.c.run_key.not_in(tuple(self.older)),
                not_(and_(ungraded, follows.correlate(trial))),
            ),
        ]

    def _grading(self, assessment: FromClause, trial: FromClause) -> list[ColumnElement[bool]]:
        meant = [] if self.graders is None else [assessment.c.grader_key.in_(self.graders)]
        people = [
            or_(assessment.c.run_key != run, assessment.c.grader_key.in_(keys))
            for run, keys in self.references.items()
        ]
        return [
            assessment.c.trial_key == trial.c.key,
            assessment.c.state != _SUPERSEDED,
            *meant,
            *people,
        ]


def families(
    connection: Connection, runs: Callable[[], Sequence[int]], *, graders: tuple[int, ...] | None
) -> Families:
    """Return the families among the selected runs; `runs` is called only if the store has a
    regrade.

    Runs keep the order in which they were stored, because sorting by time ignored a regrade after
    the clock was set back.
    """
    table = schema.run
    # `> 0` rather than `IS NOT NULL`, because the index serves it; keys begin at 1
    rows = connection.execute(select(table.c.key, table.c.regrade_of).where(table.c.regrade_of > 0))
    origin: dict[int, int] = {row.key: row.regrade_of for row in rows}
    members: defaultdict[int, list[int]] = defaultdict(list)
    if origin:
        for key in sorted(runs()):
            root = key
            while root in origin:
                root = origin[root]
            members[root].append(key)
    newer: dict[int, tuple[int, ...]] = {}
    older: dict[int, tuple[int, ...]] = {}
    references: dict[int, list[int]] = {}
    own = schema.run_grader
    if regraded := [root for root, family in members.items() if len(family) > 1]:
        of_people = select(own.c.run_key, own.c.grader_key).where(
            own.c.run_key.in_(regraded), own.c.reference
        )
        for row in connection.execute(of_people):
            if graders is None or row.grader_key in graders:
                references.setdefault(row.run_key, []).append(row.grader_key)
    for family in members.values():
        family.sort(key=references.__contains__)
        for place, key in enumerate(family):
            if family[place + 1 :]:
                newer[key] = tuple(family[place + 1 :])
            if family[:place]:
                older[key] = tuple(family[:place])
    return Families(newer, older, graders, references)


def _paired(
    trial: FromClause, other: FromClause, related: dict[int, tuple[int, ...]]
) -> list[ColumnElement[bool]]:
    runs = or_(
        *(
            and_(trial.c.run_key == run, other.c.run_key.in_(others))
            for run, others in related.items()
        )
    )
    return [runs, other.c.position == trial.c.position, other.c.k == trial.c.k]
