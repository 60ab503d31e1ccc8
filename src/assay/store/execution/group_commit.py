"""Execute one group commit: write entries as rows, supersede replaced assessments and settle
finished trials.

The usual entry is the first and only one of a held trial. It costs its inserts and a fraction of
one UPDATE, without a lookup. Entries that replace an assessment, or add to an earlier entry, are
handled per trial.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, insert, select, update

from assay.domain.errors import StoreError
from assay.domain.failure import Failure
from assay.domain.identifiers import AssessmentKey, shown_trial
from assay.domain.lifecycle import AssessmentState, TrialState, standing, trial_state
from assay.domain.run import Entry
from assay.ports import Clock
from assay.store.claims.claims import Claims
from assay.store.claims.held_trial import Slot
from assay.store.database import schema
from assay.store.database.codec import plain
from assay.store.database.connections import Database, among, portions
from assay.store.database.counters import ASSESSMENT, STANDING, TRIAL, current_states, settle
from assay.store.database.name_keys import NameKeys
from assay.store.event_chain import append_event
from assay.store.execution.commit_rows import CommitRows
from assay.store.execution.job_requests import note_answers

_MANY = 1000
"""Maximum keys in one condition."""


class AlreadyInCommit(StoreError):
    """Raised if one commit grades a slot twice. `Writer` then commits each entry separately."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Effects of a group commit on this process's caches, applied after the transaction is
    committed.
    """

    recorder: Recorder
    commit: CommitRows
    finished: Collection[int]
    standings: Mapping[int, str]
    pairs: Collection[tuple[str, int, int]]

    def committed(self) -> None:
        """Apply the effects after the commit has succeeded."""
        self.recorder.remember(self)


class Recorder:
    """Writes entries of trials that this process holds. Only the writing thread uses this class."""

    def __init__(self, database: Database, names: NameKeys, claims: Claims, clock: Clock) -> None:
        self._database = database
        self._names = names
        self._claims = claims
        self._clock = clock
        self._pairs: set[tuple[str, int, int]] = set()

    def record(self, connection: Connection, entries: Sequence[Entry]) -> Recorded:
        """Write entries in the caller's transaction.

        The caller calls `committed` on the result after the commit.

        Raises StoreError if this process does not hold an entry's trial.
        """
        self._claims.hold_lock()
        commit = CommitRows(connection, self._names, entries, now=self._clock.now())
        finished: dict[int, Failure | None] = {}
        added_to: set[int] = set()
        for entry in entries:
            holding = self._claims.holding(entry.trial)
            led = {index for _, index in (*entry.responses, *entry.assessments)}
            calls = [
                commit.add_call(call, trial=entry.trial, holding=holding, led=index in led)
                for index, call in enumerate(entry.calls)
            ]
            for response, index in entry.responses:
                call = None if index is None else calls[index]
                commit.add_response(response, trial=entry.trial, call=call, holding=holding)
            for new, index in entry.assessments:
                slot = commit.slot(new)
                if slot in commit.slots[entry.trial]:
                    raise AlreadyInCommit(
                        shown_trial(entry.trial), "is graded twice by the same grader."
                    )
                if slot in holding.slots:
                    replaced = _supersede(
                        connection, commit, trial=entry.trial, slot=slot, run_key=holding.run_key
                    )
                    self._note_rerun(connection, entry, replaced, run_key=holding.run_key)
                call = None if index is None else calls[index]
                commit.add_assessment(new, trial=entry.trial, call=call, holding=holding)
            if entry.finished:
                finished[entry.trial] = entry.failure
            else:
                added_to.add(entry.trial)
        self._insert(connection, commit)
        note_answers(
            connection, [call for entry in entries for call in entry.calls if call.job is not None]
        )
        self._settle_finished(connection, commit, finished)
        standings = self._settle_others(connection, commit, added_to.difference(finished))
        for run_key, sums in commit.sums.items():
            connection.execute(_ADD_SUMS, {"of_run": run_key, **sums})
        commit.counters.write(connection)
        return Recorded(self, commit, finished, standings, self._pair(connection, commit))

    def remember(self, recorded: Recorded) -> None:
        """Update the cached states of the trials that this process holds."""
        self._pairs.update(recorded.pairs)
        for trial, slots in recorded.commit.slots.items():
            self._claims.holding(trial).slots.update(slots)
        for trial, stands in recorded.standings.items():
            self._claims.holding(trial).standing = stands
        for trial, rounds in recorded.commit.rounds.items():
            self._claims.holding(trial).rounds.update(rounds)
        self._claims.let_go(recorded.finished)

    def _note_rerun(
        self,
        connection: Connection,
        entry: Entry,
        replaced: Mapping[int, AssessmentState],
        *,
        run_key: int,
    ) -> None:
        """Append a rerun's event; `replaced` maps the replaced assessments to their former
        states.
        """
        # In the same transaction: with a separate commit, the event was lost in 20 of 20 kills
        # between the two.
        if entry.rerun is None:
            return
        for key, before in replaced.items():
            append_event(
                connection,
                replace(entry.rerun, assessment=AssessmentKey(key)),
                run_key=run_key,
                before=before,
                after=AssessmentState.SUPERSEDED,
                at=self._clock.now(),
            )

    def _insert(self, connection: Connection, commit: CommitRows) -> None:
        for table, rows in (
            (schema.body, commit.bodies),
            (schema.call, commit.calls),
            (schema.response, commit.responses),
            (schema.assessment, commit.assessments),
            (schema.score, commit.scores),
            (schema.grade, commit.grades),
        ):
            self._database.insert(connection, table, rows)

    def _settle_finished(
        self, connection: Connection, commit: CommitRows, finished: Mapping[int, Failure | None]
    ) -> None:
        """Set the states of finished trials, and check that this process still holds them."""
        states, stood = self._assessed(connection, commit, finished)
        alike: defaultdict[tuple[TrialState, str], list[int]] = defaultdict(list)
        for key, failure in finished.items():
            run_key = self._claims.holding(key).run_key
            if failure is not None:
                state = TrialState.FAILED
            else:
                # Without any assessment, nothing can have been rejected, so the trial awaits
                # review.
                state = trial_state(states[key]) if states[key] else TrialState.NEEDS_REVIEW
            stands = standing(state, states[key]).value
            commit.counters.move(run_key, TRIAL, TrialState.RUNNING.value, state.value)
            commit.counters.move(run_key, STANDING, stood[key], stands)
            if failure is None:
                alike[state, stands].append(key)
            else:
                self._end(connection, [key], state, stands, failure)
        for (state, stands), keys in alike.items():
            for some in portions(keys, _MANY):
                self._end(connection, some, state, stands, None)

    def _assessed(
        self, connection: Connection, commit: CommitRows, trials: Iterable[int]
    ) -> tuple[dict[int, frozenset[AssessmentState]], dict[int, str]]:
        """Return the states of each trial's current assessments, and the trial's standing before
        this commit.

        Only trials whose assessments a reviewer may have decided need a query.
        """
        states: dict[int, frozenset[AssessmentState]] = {}
        stood: dict[int, str] = {}
        uncertain = []
        for key in trials:
            holding = self._claims.holding(key)
            if holding.certain:
                states[key] = frozenset((holding.slots | commit.slots.get(key, {})).values())
                stood[key] = holding.standing
            else:
                uncertain.append(key)
        for some in portions(uncertain, _MANY):
            states.update(current_states(connection, some))
            stood.update(_standings(connection, some))
        return states, stood

    def _end(
        self,
        connection: Connection,
        keys: Sequence[int],
        state: TrialState,
        stands: str,
        failure: Failure | None,
    ) -> None:
        table = schema.trial
        # The owner is part of the condition: a process that lost its lock must not store a trial
        # that another process took over.
        ours = update(table).where(among(table.c.key, keys), table.c.owner == self._claims.owner)
        changed = connection.execute(
            ours.values(
                state=state.value,
                standing=stands,
                rest=None,
                owner=None,
                tries=table.c.tries + 1,
                fail_kind=None if failure is None else plain(failure.kind),
                fail_fault=None if failure is None else failure.fault.value,
                fail_detail=None if failure is None else plain(failure.detail),
                fail_tries=None if failure is None else failure.tries,
            )
        )
        if changed.rowcount != len(keys):
            raise _lost(keys)

    def _settle_others(
        self, connection: Connection, commit: CommitRows, trials: set[int]
    ) -> dict[int, str]:
        """Check that this process still holds the unfinished trials, settle them, and return their
        new standings.
        """
        table = schema.trial
        for some in portions(sorted(trials), _MANY):
            ours = select(table.c.key).where(
                table.c.key.in_(some), table.c.owner == self._claims.owner
            )
            if len(connection.execute(ours).all()) != len(some):
                raise _lost(some)
        new: dict[int, str] = {}
        alike: defaultdict[str, list[int]] = defaultdict(list)
        looked_at = []
        for key in sorted(trials.intersection(commit.slots)):
            holding = self._claims.holding(key)
            if not holding.certain or holding.rest not in (
                TrialState.PENDING,
                TrialState.SUBMITTED,
            ):
                looked_at.append(key)
                continue
            states = frozenset((holding.slots | commit.slots[key]).values())
            stands = standing(TrialState.PENDING, states).value
            if stands != holding.standing:
                new[key] = stands
                alike[stands].append(key)
                commit.counters.move(holding.run_key, STANDING, holding.standing, stands)
        for stands, keys in alike.items():
            for some in portions(keys, _MANY):
                connection.execute(
                    update(table).where(table.c.key.in_(some)).values(standing=stands)
                )
        # A rerun of a panel commits its grades one by one. When the standing at the claim was used,
        # such a trial was moved twice, and `excluded.failed` fell to -1.
        for some in portions(looked_at, _MANY):
            settle(connection, some, commit.counters)
            # otherwise its end would be counted from its old standing
            new.update(_standings(connection, some))
        return new

    def _pair(self, connection: Connection, commit: CommitRows) -> set[tuple[str, int, int]]:
        """Store the graders and criteria of each run for use in filters; return the new pairs."""
        new: set[tuple[str, int, int]] = set()
        for table, pairs in (
            (schema.run_grader, commit.graders),
            (schema.run_criterion, commit.criteria),
        ):
            run_column, other_column, *_ = table.c
            for run_key, other in pairs:
                if (table.name, run_key, other) in self._pairs:
                    continue
                new.add((table.name, run_key, other))
                if not connection.execute(
                    select(run_column).where(run_column == run_key, other_column == other)
                ).first():
                    connection.execute(
                        insert(table), {run_column.name: run_key, other_column.name: other}
                    )
        return new


def _supersede(
    connection: Connection, commit: CommitRows, *, trial: int, slot: Slot, run_key: int
) -> dict[int, AssessmentState]:
    """Supersede the slot's current assessment, whose scores stop counting in this commit; return
    its previous state.
    """
    table, scores, superseded = schema.assessment, schema.score, AssessmentState.SUPERSEDED.value
    grader, candidate = slot
    current = connection.execute(
        select(table.c.key, table.c.state).where(
            table.c.trial_key == trial,
            table.c.grader_key == grader,
            table.c.candidate_key.is_(None)
            if candidate is None
            else table.c.candidate_key == candidate,
            table.c.state != superseded,
        )
    ).all()
    for key, state in current:
        connection.execute(
            update(table).where(table.c.key == key).values(state=superseded, state_before=state)
        )
        of_assessment = (scores.c.run_key == run_key, scores.c.assessment_key == key)
        connection.execute(update(scores).where(*of_assessment).values(state=superseded))
        commit.counters.move(run_key, ASSESSMENT, state, superseded)
    return {key: AssessmentState(state) for key, state in current}


def _standings(connection: Connection, keys: Sequence[int]) -> dict[int, str]:
    table = schema.trial
    rows = connection.execute(select(table.c.key, table.c.standing).where(table.c.key.in_(keys)))
    return {row.key: row.standing for row in rows}


def _lost(keys: Sequence[int]) -> StoreError:
    which = ", ".join(shown_trial(key) for key in keys[:5])
    return StoreError(
        which,
        "is no longer held by this process, because its lock was lost and another process took over.",
    )


_ADD_SUMS = (
    update(schema.run)
    .where(schema.run.c.key == bindparam("of_run"))
    .values(
        calls=schema.run.c.calls + bindparam("more_calls"),
        unpriced_calls=schema.run.c.unpriced_calls + bindparam("more_unpriced"),
        input_tokens=schema.run.c.input_tokens + bindparam("more_input"),
        output_tokens=schema.run.c.output_tokens + bindparam("more_output"),
        cost_usd=schema.run.c.cost_usd + bindparam("more_usd"),
    )
)
