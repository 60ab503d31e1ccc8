"""Count the trials excluded from results, by reason, and each candidate's counting trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, Select, and_, case, func, or_, select, union

from assay.domain.lifecycle import TO_COME, AssessmentState, Standing, TrialState
from assay.domain.selection import Excluded, Selection
from assay.store.database import schema
from assay.store.database.counters import ASSESSMENT, STANDING, TRIAL
from assay.store.queries.filters import Scope, scope_of
from assay.store.queries.score_columns import COUNTING

_SUPERSEDED: Final = AssessmentState.SUPERSEDED.value

_TO_COME: Final = tuple(state.value for state in TO_COME)
_OPEN: Final = (*_TO_COME, TrialState.NEEDS_REVIEW.value)

_TrialCounts = Mapping[tuple[bool, str, str], int]
"""Number of trials by (True if the run awaits review, `trial` or `standing`, state)."""


def excluded(connection: Connection, selection: Selection, /) -> Excluded:
    """Count excluded trials by reason, and superseded attempts.

    With `judges` in the selection, the counts are as if only these judges had graded.
    """
    scope = scope_of(connection, selection)
    if scope.graders is not None:
        trials, begun, not_graded, partly = _standings_by_grader(connection, scope)
    elif scope.narrows_tasks or scope.families.contested:
        trials, begun, not_graded, partly = _standings(_counted_by_run(connection, scope))
    else:
        # From the stored counters, a few rows per run; counting a million trials takes a tenth of a
        # second.
        trials, begun, not_graded, partly = _standings(_tallied_by_wait(connection, scope))
    if scope.graders is None and not scope.narrows_tasks:
        tally = schema.run_tally
        which = [*scope.where_run(tally), tally.c.subject == ASSESSMENT]
        total = select(func.coalesce(func.sum(tally.c.n), 0)).where(
            *which, tally.c.state == _SUPERSEDED
        )
    else:
        assessment = schema.assessment
        which = [*scope.where(assessment), *scope.where_grader(assessment)]
        total = (
            select(func.count())
            .select_from(assessment)
            .where(*which, assessment.c.state == _SUPERSEDED)
        )
    superseded = int(connection.execute(total).scalar_one())
    pending = trials.get(Standing.PENDING, 0) - not_graded
    # The counters do not say which unfinished trials have a grade that counts already, as after an
    # extension.
    not_started = min(pending, begun.get(TrialState.PENDING, 0))
    under_way = min(
        pending - not_started, begun.get(TrialState.RUNNING, 0) + begun.get(TrialState.SUBMITTED, 0)
    )
    return Excluded(
        pending=pending,
        rejected=trials.get(Standing.REJECTED, 0),
        failed=trials.get(Standing.FAILED, 0),
        superseded=superseded,
        not_graded=not_graded,
        partly=partly,
        left_out=trials.get(Standing.LEFT_OUT, 0),
        not_started=not_started,
        under_way=under_way,
    )


def took_part(connection: Connection, selection: Selection, /) -> dict[str, int]:
    """Count, by candidate, the counting trials with an answer or a score of the candidate.

    Reads every score.
    """
    scope = scope_of(connection, selection)
    score, response, candidate = schema.score, schema.response, schema.candidate
    counts = (
        select(score.c.trial_key)
        .where(
            *scope.where(score),
            *scope.where_grader(score),
            *scope.families.hold(score),
            score.c.state.in_(COUNTING),
            score.c.value.is_not(None),
        )
        .distinct()
        .correlate(None)
    )
    parts = union(
        select(response.c.candidate_key, response.c.trial_key).where(
            response.c.trial_key.in_(counts)
        ),
        select(score.c.candidate_key, score.c.trial_key).where(
            *scope.where(score), score.c.trial_key.in_(counts)
        ),
    ).subquery()
    rows = connection.execute(
        select(candidate.c.name, func.count())
        .join(parts, parts.c.candidate_key == candidate.c.key)
        .group_by(candidate.c.key, candidate.c.name)
    )
    return {name: int(n) for name, n in rows}


def _standings(counts: _TrialCounts) -> tuple[dict[str, int], dict[str, int], int, int]:
    """Return (trials by standing, unfinished trials by state, trials without grades, counting
    trials with a pending assessment).

    Trials of a run without pending assessments need no decision. An unfinished trial is pending
    unless one of its scores counts.
    """

    def n(waits: bool, subject: str, *states: str) -> int:
        return sum(counts.get((waits, subject, state), 0) for state in states)

    standings = {
        state.value: n(False, STANDING, state) + n(True, STANDING, state) for state in Standing
    }
    not_graded = n(False, STANDING, Standing.PENDING) - n(False, TRIAL, *_TO_COME)
    partly = n(True, TRIAL, *_OPEN) - n(True, STANDING, Standing.PENDING)
    begun = {state: n(False, TRIAL, state) + n(True, TRIAL, state) for state in _TO_COME}
    return standings, begun, max(0, not_graded), max(0, partly)


def _tallied_by_wait(connection: Connection, scope: Scope) -> _TrialCounts:
    table = schema.run_tally
    each = (
        select(
            table.c.subject,
            table.c.state,
            table.c.n,
            table.c.run_key.in_(_waiting_runs()).label("waits"),
        )
        .where(*scope.where_run(table), table.c.subject.in_((TRIAL, STANDING)))
        .subquery()
    )
    sums = select(each.c.waits, each.c.subject, each.c.state, func.sum(each.c.n))
    rows = connection.execute(sums.group_by(each.c.waits, each.c.subject, each.c.state))
    return {(bool(waits), subject, state): int(n) for waits, subject, state, n in rows}


def _counted_by_run(connection: Connection, scope: Scope) -> _TrialCounts:
    """Count trials one by one for a partial selection; stored counters exist only for whole
    runs.
    """
    table = schema.trial
    waiting = set(connection.execute(_waiting_runs()).scalars())
    rows = connection.execute(
        select(table.c.run_key, table.c.standing, table.c.state, func.count())
        .where(*scope.where(table), *scope.families.stand(table))
        .group_by(table.c.run_key, table.c.standing, table.c.state)
    )
    counts: Counter[tuple[bool, str, str]] = Counter()
    for run_key, standing, state, n in rows:
        counts[run_key in waiting, STANDING, standing] += n
        counts[run_key in waiting, TRIAL, state] += n
    return counts


def _waiting_runs() -> Select[tuple[int]]:
    waits = schema.run_tally.alias("waits")
    return select(waits.c.run_key).where(
        waits.c.subject == ASSESSMENT, waits.c.state == AssessmentState.PENDING.value, waits.c.n > 0
    )


def _standings_by_grader(
    connection: Connection, scope: Scope
) -> tuple[dict[str, int], dict[str, int], int, int]:
    """Return the same counts as `_standings`, as if only the selected judges had graded."""
    trial, assessment = schema.trial, schema.assessment
    counts = func.max(case((assessment.c.state.in_(COUNTING), 1), else_=0))
    waits = func.max(case((assessment.c.state == AssessmentState.PENDING.value, 1), else_=0))
    left_out = func.max(case((assessment.c.state == AssessmentState.LEFT_OUT.value, 1), else_=0))
    current = and_(
        assessment.c.trial_key == trial.c.key,
        assessment.c.state != _SUPERSEDED,
        *scope.where_grader(assessment),
    )
    standing = case(
        (counts == 1, Standing.COUNTED.value),
        (or_(waits == 1, trial.c.state.in_(_TO_COME)), Standing.PENDING.value),
        (trial.c.state == TrialState.FAILED.value, Standing.FAILED.value),
        (left_out == 1, Standing.LEFT_OUT.value),
        else_=Standing.REJECTED.value,
    ).label("standing")
    partly = case((and_(counts == 1, waits == 1), 1), else_=0).label("partly")
    each = (
        select(standing, partly, trial.c.state)
        .select_from(trial)
        .join(assessment, current, isouter=True)
        .where(*scope.where(trial), *scope.families.stand(trial))
        .group_by(trial.c.key, trial.c.state)
        # A finished trial that none of these judges ever graded is neither counted nor rejected by
        # them.
        .having(
            or_(
                func.count(assessment.c.key) > 0,
                trial.c.state.in_((*_TO_COME, TrialState.FAILED.value)),
            )
        )
        .subquery()
    )
    rows = connection.execute(
        select(each.c.standing, each.c.state, func.count(), func.sum(each.c.partly)).group_by(
            each.c.standing, each.c.state
        )
    ).all()
    standings: Counter[str] = Counter()
    begun: Counter[str] = Counter()
    for standing_of, state, n, _ in rows:
        standings[standing_of] += int(n)
        if standing_of == Standing.PENDING.value and state in _TO_COME:
            begun[state] += int(n)
    return standings, begun, 0, sum(int(n) for *_, n in rows)
