"""Arena votes, which are appended and never edited, and the trials that people vote on.

To withdraw a vote, a row that refers to it is appended. Each row's hash covers the row and the
previous hash, which reveals later edits. Rows identify candidates by their position in the run,
which a rename does not change.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, case, exists, func, insert, select

from assay.domain.arena import Choice, Contest, Judged, Pairing, Vote
from assay.domain.assessment import Response
from assay.domain.errors import Refused, UnknownName
from assay.domain.identifiers import RunId, TrialKey
from assay.domain.lifecycle import AssessmentState, RunState
from assay.domain.run_removal import check_in_use
from assay.domain.suite import Task
from assay.ports import Clock
from assay.store.database import schema
from assay.store.database.codec import bytes_text, json_bytes, plain, task_record
from assay.store.database.connections import Database, portions
from assay.store.execution.writer_thread import Writer
from assay.store.queries.filters import find_run

UNDO: Final = "undo"
"""Value of `choice` in a row that undoes a vote."""

_AT_ONCE: Final = 400


class StoreArena:
    """Stores arena votes; may be used from any thread and by several processes at once."""

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._clock = clock

    def cast(self, vote: Vote, /) -> Vote:
        """Store a vote; a repetition with the same idempotency key returns the stored vote.

        Raises UnknownName if the run, trial or candidate does not exist. Raises Refused if this
        person's earlier vote on this pair still counts, or if another row used the idempotency key.
        """
        return self._writer.call(lambda connection: self._cast(connection, vote))

    def take_back(
        self, run: RunId, /, *, reviewer: str, idempotency_key: str, vote: int | None = None
    ) -> Vote:
        """Withdraw a person's vote, by default the newest one, and return it.

        Raises UnknownName if the run does not exist. Raises Refused if the vote does not exist, is
        somebody else's or was already withdrawn, or if another row used the idempotency key.
        """

        def take(connection: Connection) -> Vote:
            table = schema.vote
            run_key = _run_key(connection, run)
            seen = _said(connection, idempotency_key)
            if seen is not None:
                same = seen.choice == UNDO and (seen.run_key, seen.reviewer) == (
                    run_key,
                    plain(reviewer),
                )
                if not same or vote not in (None, seen.undoes):
                    raise _taken()
                return _votes(connection, [_voted().where(table.c.id == seen.undoes)])[0]
            own = [table.c.run_key == run_key, table.c.reviewer == plain(reviewer), *_standing()]
            if vote is not None:
                own.append(table.c.id == vote)
            row = connection.execute(
                select(table).where(*own).order_by(table.c.id.desc()).limit(1)
            ).first()
            if row is None:
                raise Refused("vote", "you have no vote to undo.")
            keep = ("run_key", "trial_key", "left_place", "right_place", "telling")
            _append(
                connection,
                {
                    **{name: row._mapping[name] for name in keep},
                    "once": plain(idempotency_key),
                    "choice": UNDO,
                    "undoes": row.id,
                    "reviewer": plain(reviewer),
                    "active_ms": None,
                    "at": self._clock.now(),
                },
            )
            return _votes(connection, [_voted().where(table.c.id == row.id)])[0]

        return self._writer.call(take)

    def votes(self, run: RunId, /, *, reviewer: str | None = None) -> tuple[Vote, ...]:
        """Return a run's valid votes, oldest first; `reviewer` limits them to one person."""
        table = schema.vote
        with self._database.reading() as connection:
            where = [table.c.run_key == _run_key(connection, run), *_standing()]
            if reviewer is not None:
                where.append(table.c.reviewer == plain(reviewer))
            return tuple(_votes(connection, [_voted().where(*where).order_by(table.c.id)]))

    def vote_on(self, run: RunId, pairing: Pairing, /, *, reviewer: str) -> Vote | None:
        """Return this person's valid vote on these two responses, whichever was on the left, or
        None.
        """
        table, trial = schema.vote, schema.trial
        with self._database.reading() as connection:
            run_key = _run_key(connection, run)
            statement = _voted().where(
                table.c.run_key == run_key,
                table.c.reviewer == plain(reviewer),
                trial.c.position == pairing.position,
                trial.c.k == pairing.k,
                table.c.left_place.in_(pairing.pair),
                table.c.right_place.in_(pairing.pair),
                *_standing(),
            )
            return next(iter(_votes(connection, [statement])), None)

    def counts(self, runs: Collection[RunId], /) -> dict[RunId, int]:
        """Count valid votes by run; runs without valid votes are omitted."""
        table, run = schema.vote, schema.run
        # An undo has the run and the sides of the vote it takes back, so a signed sum counts
        # standing votes without a join.
        signed = func.sum(case((table.c.choice == UNDO, -1), else_=1))
        with self._database.reading() as connection:
            rows = connection.execute(
                select(run.c.id, signed)
                .join(run, run.c.key == table.c.run_key)
                .where(run.c.id.in_([plain(run_id) for run_id in runs]))
                .group_by(run.c.id)
            )
            return {RunId(run_id): int(n) for run_id, n in rows if n}

    def by_pair(self, run: RunId, /) -> dict[tuple[int, int], int]:
        """Count valid votes on each pair of a run's candidates, by their positions (lower
        first).
        """
        table = schema.vote
        signed = func.sum(case((table.c.choice == UNDO, -1), else_=1))
        votes: defaultdict[tuple[int, int], int] = defaultdict(int)
        with self._database.reading() as connection:
            rows = connection.execute(
                select(table.c.left_place, table.c.right_place, signed)
                .where(table.c.run_key == _run_key(connection, run))
                .group_by(table.c.left_place, table.c.right_place)
            )
            for left, right, n in rows:
                votes[min(left, right), max(left, right)] += int(n)
        return dict(votes)

    def voted(self, run: RunId, /, *, reviewer: str) -> frozenset[tuple[int, int, int, int]]:
        """Return the items this person has voted on, as (task position, k, lower and higher
        candidate position).
        """
        table, trial = schema.vote, schema.trial
        with self._database.reading() as connection:
            rows = connection.execute(
                select(trial.c.position, trial.c.k, table.c.left_place, table.c.right_place)
                .join(trial, trial.c.key == table.c.trial_key)
                .where(
                    table.c.run_key == _run_key(connection, run),
                    table.c.reviewer == plain(reviewer),
                    *_standing(),
                )
            )
            return frozenset((position, k, min(a, b), max(a, b)) for position, k, a, b in rows)

    def extent(self, run: RunId, /) -> tuple[int, int]:
        """Return a run's number of tasks and the highest number of trials of a task; raises
        `UnknownName`.
        """
        table = schema.run_task
        with self._database.reading() as connection:
            run_key = _run_key(connection, run)
            last = connection.execute(
                select(table.c.position)
                .where(table.c.run_key == run_key)
                .order_by(table.c.position.desc())
                .limit(1)
            ).scalar_one_or_none()
            most = connection.execute(
                select(func.max(schema.trial.c.k)).where(schema.trial.c.run_key == run_key)
            ).scalar_one_or_none()
        return (0 if last is None else last + 1, most or 0)

    def position_of(self, run: RunId, task: str, /) -> int | None:
        table = schema.run_task
        with self._database.reading() as connection:
            place = connection.execute(
                select(table.c.position).where(
                    table.c.run_key == _run_key(connection, run), table.c.task_id == plain(task)
                )
            ).scalar_one_or_none()
        return None if place is None else int(place)

    def contest(self, run: RunId, position: int, k: int, /) -> Contest | None:
        """Return a trial's responses and grades; None if the trial does not exist."""
        table, planned, body = schema.trial, schema.run_task, schema.body
        with self._database.reading() as connection:
            run_key = _run_key(connection, run)
            row = connection.execute(
                select(table.c.key, planned.c.trials, body.c.content)
                .join(
                    planned,
                    (planned.c.run_key == table.c.run_key)
                    & (planned.c.position == table.c.position),
                )
                .join(body, body.c.key == planned.c.body_key)
                .where(table.c.run_key == run_key, table.c.position == position, table.c.k == k)
            ).first()
            if row is None:
                return None
            task = task_record(row.content)
            return Contest(
                trial=TrialKey(row.key),
                position=position,
                k=k,
                of=row.trials,
                task=task,
                responses=_responses(connection, run_key, row.key, task),
                judged=_judged(connection, run_key, [row.key]).get(row.key, {}),
            )

    def judged(
        self, run: RunId, votes: Sequence[Vote], /
    ) -> dict[tuple[int, int], Mapping[str, Mapping[int, Judged]]]:
        """Return judges' original scores of the trials with votes, by (position, k)."""
        table = schema.trial
        with self._database.reading() as connection:
            run_key = _run_key(connection, run)
            places = {(vote.pairing.position, vote.pairing.k) for vote in votes}
            keys: dict[int, tuple[int, int]] = {}
            for some in portions({position for position, _ in places}, _AT_ONCE):
                rows = connection.execute(
                    select(table.c.key, table.c.position, table.c.k).where(
                        table.c.run_key == run_key, table.c.position.in_(some)
                    )
                )
                keys.update(
                    {key: (position, k) for key, position, k in rows if (position, k) in places}
                )
            return {
                keys[key]: scores
                for key, scores in _judged(connection, run_key, sorted(keys)).items()
            }

    def first_broken(self) -> int | None:
        with self._database.reading() as connection:
            return first_broken_vote(connection)

    def _cast(self, connection: Connection, vote: Vote) -> Vote:
        table, trial = schema.vote, schema.trial
        run_key = _run_key(connection, vote.run_id)
        state = connection.execute(
            select(schema.run.c.state).where(schema.run.c.key == run_key)
        ).scalar_one()
        check_in_use(vote.run_id, RunState(state))
        pairing = vote.pairing
        trial_key = connection.execute(
            select(trial.c.key).where(
                trial.c.run_key == run_key,
                trial.c.position == pairing.position,
                trial.c.k == pairing.k,
            )
        ).scalar_one_or_none()
        if trial_key is None:
            raise UnknownName("trial", f"{pairing.k}")
        seen = _said(connection, vote.idempotency_key)
        if seen is not None:
            own = (run_key, trial_key, *pairing.pair, plain(vote.reviewer))
            sides = sorted((seen.left_place, seen.right_place))
            # Such a key was once mistaken for the old vote's key, which undid somebody else's vote
            # or caused a server error.
            if seen.choice == UNDO or (seen.run_key, seen.trial_key, *sides, seen.reviewer) != own:
                raise _taken()
            if _preferred(seen.choice, seen.left_place, seen.right_place) != _preferred(
                vote.choice.value, pairing.left, pairing.right
            ):
                raise _taken()
            return _votes(connection, [_voted().where(table.c.id == seen.id)])[0]
        standing = connection.execute(
            select(table.c.id).where(
                table.c.run_key == run_key,
                table.c.trial_key == trial_key,
                table.c.reviewer == plain(vote.reviewer),
                table.c.left_place.in_(pairing.pair),
                table.c.right_place.in_(pairing.pair),
                *_standing(),
            )
        ).first()
        if standing is not None:
            raise Refused(
                "vote", "you have already voted on this pair.", remedy="Undo that vote first."
            )
        number = _append(
            connection,
            {
                "once": plain(vote.idempotency_key),
                "run_key": run_key,
                "trial_key": trial_key,
                "left_place": pairing.left,
                "right_place": pairing.right,
                "choice": vote.choice.value,
                "undoes": None,
                "reviewer": plain(vote.reviewer),
                "active_ms": vote.active_ms,
                "telling": vote.telling,
                "at": self._clock.now(),
            },
        )
        return _votes(connection, [_voted().where(table.c.id == number)])[0]


def first_broken_vote(connection: Connection) -> int | None:
    """Return the id of the first vote that was changed after it was stored, or None."""
    previous = ""
    for row in connection.execute(select(schema.vote).order_by(schema.vote.c.id)):
        values = dict(row._mapping)
        if values["previous_hash"] != previous or values["hash"] != vote_hash(values):
            return int(row.id)
        previous = row.hash
    return None


def vote_hash(values: Mapping[str, Any]) -> str:
    """Return a row's hash over all columns except its number, including the previous row's hash."""
    hashed = [values[column.name] for column in schema.vote.c if column.name not in ("id", "hash")]
    return hashlib.sha256(json_bytes(hashed)).hexdigest()


def _said(connection: Connection, idempotency_key: str) -> Row[Any] | None:
    """Return the vote or undo with this idempotency key; None if the key is new."""
    return connection.execute(
        select(schema.vote).where(schema.vote.c.once == plain(idempotency_key))
    ).first()


def _preferred(choice: str, left: int, right: int) -> str | int:
    """Return the preferred candidate's position, or the choice itself for a tie."""
    return {Choice.LEFT.value: left, Choice.RIGHT.value: right}.get(choice, choice)


def _taken() -> Refused:
    return Refused(
        "key", "was used for another vote.", remedy="Use a different key for every vote and undo."
    )


def _append(connection: Connection, values: dict[str, Any]) -> int:
    table = schema.vote
    last = connection.execute(
        select(table.c.hash).order_by(table.c.id.desc()).limit(1)
    ).scalar_one_or_none()
    row = {**values, "previous_hash": last or ""}
    row["hash"] = vote_hash(row)
    return int(connection.execute(insert(table).values(**row).returning(table.c.id)).scalar_one())


def _standing() -> list[Any]:
    table = schema.vote
    later = table.alias("later")
    return [table.c.choice != UNDO, ~exists().where(later.c.undoes == table.c.id)]


def _voted() -> Select[Any]:
    table, trial, planned, run = schema.vote, schema.trial, schema.run_task, schema.run
    earlier = table.alias("earlier")
    again = exists().where(
        earlier.c.run_key == table.c.run_key,
        earlier.c.trial_key == table.c.trial_key,
        earlier.c.reviewer == table.c.reviewer,
        earlier.c.id < table.c.id,
        earlier.c.choice != UNDO,
        earlier.c.left_place.in_([table.c.left_place, table.c.right_place]),
        earlier.c.right_place.in_([table.c.left_place, table.c.right_place]),
    )
    task = schema.task
    place = (trial.c.position, trial.c.k, planned.c.task_id, task.c.family)
    columns = (*place, run.c.id.label("run_id"), again.label("again"))
    return (
        select(table, *columns)
        .join(trial, trial.c.key == table.c.trial_key)
        .join(
            planned,
            (planned.c.run_key == trial.c.run_key) & (planned.c.position == trial.c.position),
        )
        .join(task, task.c.key == planned.c.task_key)
        .join(run, run.c.key == table.c.run_key)
    )


def _votes(connection: Connection, statements: Iterable[Select[Any]]) -> list[Vote]:
    return [_vote(row) for statement in statements for row in connection.execute(statement)]


def _vote(row: Row[Any]) -> Vote:
    return Vote(
        run_id=RunId(row.run_id),
        pairing=Pairing(position=row.position, k=row.k, left=row.left_place, right=row.right_place),
        choice=Choice(row.choice),
        reviewer=row.reviewer,
        idempotency_key=row.once or "",
        active_ms=row.active_ms,
        telling=row.telling,
        again=bool(row.again),
        task=row.task_id,
        family=row.family,
        at=row.at,
        id=int(row.id),
    )


def _run_key(connection: Connection, run: str) -> int:
    known = find_run(connection, run)
    return int(
        connection.execute(select(schema.run.c.key).where(schema.run.c.id == known)).scalar_one()
    )


def _places(connection: Connection, run_key: int) -> dict[int, tuple[int, str]]:
    table = schema.run_candidate
    rows = connection.execute(
        select(table.c.candidate_key, table.c.position, table.c.name).where(
            table.c.run_key == run_key
        )
    )
    return {row.candidate_key: (row.position, row.name) for row in rows}


def _responses(
    connection: Connection, run_key: int, trial_key: int, task: Task
) -> dict[int, Response]:
    """Return each candidate's last response or, without one, its snippet, by position."""
    table, body = schema.response, schema.body
    places = _places(connection, run_key)
    responses: dict[int, Response] = {}
    for place, name in places.values():
        snippet = task.snippet_of(name)
        if snippet is not None:
            responses[place] = Response(candidate=name, text=snippet.text)
    rows = connection.execute(
        select(table.c.candidate_key, table.c.truncated, body.c.content)
        .join(body, body.c.key == table.c.body_key)
        .where(table.c.trial_key == trial_key)
        .order_by(table.c.round)
    )
    for row in rows:
        place, name = places[row.candidate_key]
        responses[place] = Response(
            candidate=name, text=bytes_text(row.content), truncated=row.truncated
        )
    return dict(sorted(responses.items()))


def _judged(
    connection: Connection, run_key: int, trials: Sequence[int]
) -> dict[int, dict[str, dict[int, Judged]]]:
    """Return models' original scores in current assessments, by trial, judge and position."""
    table, score, grader = schema.assessment, schema.score, schema.grader
    places = _places(connection, run_key)
    by_trial: dict[int, dict[str, dict[int, Judged]]] = {}
    for some in portions(trials, _AT_ONCE):
        rows = connection.execute(
            select(
                table.c.trial_key,
                table.c.state,
                grader.c.name,
                score.c.candidate_key,
                score.c.judged_value,
            )
            .join(
                score,
                (score.c.run_key == table.c.run_key) & (score.c.assessment_key == table.c.key),
            )
            .join(grader, grader.c.key == table.c.grader_key)
            .where(
                table.c.trial_key.in_(some),
                table.c.by_model,
                table.c.state != AssessmentState.SUPERSEDED.value,
                score.c.judged_value.is_not(None),
            )
            .order_by(grader.c.key)
        )
        for trial_key, state, name, candidate, value in rows:
            scores = by_trial.setdefault(trial_key, {}).setdefault(name, {})
            scores[places[candidate][0]] = Judged(score=value, state=state)
    return by_trial
