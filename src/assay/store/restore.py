"""Restore runs from their records, and rebuild the hash chain of decisions.

Each run is restored completely in one transaction. In a store without runs, all numbers (`t5`,
`a17`, event 3) and the hashes of decisions stay the same; a different hash means that somebody
changed the record. In any other store, trials, assessments and decisions get new numbers.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Table, func, insert, select, update

from assay.domain.candidate_identity import identity_of
from assay.domain.errors import InputError
from assay.domain.identifiers import folded
from assay.domain.lifecycle import TO_COME, AssessmentPurpose, RunState, TrialState
from assay.store.database import schema
from assay.store.database.codec import bytes_json, json_bytes, plain, plan_record
from assay.store.database.connections import Database, take_keys
from assay.store.database.counters import ASSESSMENT, STANDING, TRIAL, CounterChanges
from assay.store.database.name_keys import NameKeys, remember
from assay.store.event_chain import hash_of
from assay.store.execution.writer_thread import Writer
from assay.store.queries.run_record import FORMAT, Line, hidden
from assay.store.review.votes import vote_hash

_NUMBERED: Final = ("task", "trial", "call", "response", "assessment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore: the stored runs, and the decisions whose records were changed.

    `runs`: ids of the restored runs. `there`: ids of runs that the store already had and that stay
    unchanged. `renumbered`: True if trials and assessments got new numbers. `altered`,
    `altered_votes`: numbers of decisions and votes whose hash differs from the record.
    """

    runs: tuple[str, ...]
    there: tuple[str, ...]
    tasks: int
    trials: int
    responses: int
    assessments: int
    events: int
    votes: int
    renumbered: bool
    altered: tuple[int, ...]
    altered_votes: tuple[int, ...]


@dataclass(slots=True)
class _Keys:
    """Maps numbers in a record to the store's keys."""

    verbatim: bool
    task: dict[int, int] = field(default_factory=dict)  # keyed by position in the run
    trial: dict[int, int] = field(default_factory=dict)
    call: dict[int, int] = field(default_factory=dict)
    assessment: dict[int, int] = field(default_factory=dict)
    response_limit: int = 0


class Restoring:
    def __init__(self, database: Database, writer: Writer, names: NameKeys) -> None:
        self._database = database
        self._writer = writer
        self._names = names
        self._vote_hashes: dict[int, str] = {}
        self._verbatim = False

    def restore(self, records: Iterable[tuple[str, Callable[[], Iterator[Line]]]]) -> Restored:
        """Restore the missing runs in the given order, in which a run precedes its regrades.

        `records` has each run's id and a function that yields its lines: `run` first, then one line
        per trial, `mark` last. Raises InputError if this version of Assay cannot read a record;
        earlier runs are then already restored.
        """
        with self._database.reading() as connection:
            self._verbatim = connection.execute(select(schema.run.c.key).limit(1)).first() is None
            last = connection.execute(select(func.max(schema.review_event.c.id))).scalar_one() or 0
            last_vote = connection.execute(select(func.max(schema.vote.c.id))).scalar_one() or 0
        runs: list[str] = []
        present: list[str] = []
        self._vote_hashes = {}
        counts: Counter[str] = Counter()
        hashes: dict[int, str] = {}
        for run, lines_of in records:

            def store(
                connection: Connection, lines_of: Callable[[], Iterator[Line]] = lines_of
            ) -> Counter[str] | None:
                return self._run(connection, lines_of(), hashes)

            stored = self._writer.call(store, once=True)
            (present if stored is None else runs).append(run)
            counts.update(stored or {})
        altered = self._writer.call(
            lambda connection: _chained(
                connection, schema.review_event, hash_of, after=last, hashes=hashes
            )
        )
        altered_votes = self._writer.call(
            lambda connection: _chained(
                connection, schema.vote, vote_hash, after=last_vote, hashes=self._vote_hashes
            )
        )
        return Restored(
            runs=tuple(runs),
            there=tuple(present),
            tasks=counts["tasks"],
            trials=counts["trials"],
            responses=counts["responses"],
            assessments=counts["assessments"],
            events=counts["events"],
            votes=counts["votes"],
            renumbered=not self._verbatim and bool(runs),
            # New numbers are part of the hashes, which therefore differ from the record although
            # nobody changed it.
            altered=tuple(altered) if self._verbatim else (),
            altered_votes=tuple(altered_votes) if self._verbatim else (),
        )

    def _run(
        self, connection: Connection, lines: Iterator[Line], hashes: dict[int, str]
    ) -> Counter[str] | None:
        """Store one run and return its counts; None if the store already has the run."""
        head = next(lines)
        if (
            head.get("kind") != "run"
            or head.get("format") != FORMAT
            or head["store"] > schema.VERSION
        ):
            where = str(head.get("run", {}).get("id", "record"))
            raise InputError(
                where,
                "was written by a newer Assay, or is not a run record.",
                remedy="Update Assay.",
            )
        identifier = head["run"]["id"]
        if (
            connection.execute(
                select(schema.run.c.key).where(schema.run.c.id == identifier)
            ).first()
            is not None
        ):
            return None
        taken = select(schema.run.c.key).where(schema.run.c.key == head["run"]["key"])
        # the folder holds runs from several stores
        if connection.execute(taken).first() is not None:
            self._verbatim = False
        verbatim = self._verbatim
        keys = _Keys(verbatim=verbatim)
        changes = CounterChanges()
        counts: Counter[str] = Counter()
        suite_key = self._names.suite(connection, head["suite"])
        tasks: list[Line] = []
        waiting: list[Line] = []
        run_key = self._head(connection, head, suite_key, verbatim)
        for line in lines:
            match line["kind"]:
                case "task":
                    tasks.append(line)
                    counts["tasks"] += 1
                case "trial":
                    if tasks:
                        self._tasks(connection, run_key, suite_key, tasks, keys)
                        tasks.clear()
                    waiting.append(line)
                    if len(waiting) == 200:
                        self._trials(connection, run_key, waiting, keys, changes, counts, hashes)
                        waiting.clear()
                case "mark":
                    changed = {
                        name: value
                        for name, value in line["run"].items()
                        if name not in {"key", "id"}
                    }
                    connection.execute(
                        update(schema.run)
                        .where(schema.run.c.key == run_key)
                        .values(**_known(schema.run, changed))
                    )
        self._tasks(connection, run_key, suite_key, tasks, keys)
        self._trials(connection, run_key, waiting, keys, changes, counts, hashes)
        # Its jobs are those of another store, so that collecting must not ask for its trials again.
        submitted = (schema.run.c.key == run_key, schema.run.c.state == RunState.SUBMITTED.value)
        connection.execute(
            update(schema.run).where(*submitted).values(state=RunState.INTERRUPTED.value)
        )
        changes.write(connection)
        if verbatim:
            _go_on_after(connection)
        return counts

    def _head(self, connection: Connection, head: Line, suite_key: int, verbatim: bool) -> int:
        table, copies = schema.run, schema.suite_copy
        digest = head["run"]["suite_digest"]
        bodies = iter(take_keys(connection, body=2)["body"])
        if (
            connection.execute(select(copies.c.digest).where(copies.c.digest == digest)).first()
            is None
        ):
            body = next(bodies)
            self._database.insert(connection, schema.body, [(body, hidden(head["suite_text"]))])
            connection.execute(insert(copies).values(digest=digest, body_key=body))
        plan = next(bodies)
        content = hidden(head["plan"])
        self._database.insert(connection, schema.body, [(plan, _with_marked_programs(content))])
        origin = None
        if head["regrade_of"] is not None:
            of_origin = select(table.c.key).where(table.c.id == head["regrade_of"])
            origin = connection.execute(of_origin).scalar_one_or_none()
        values = _known(table, head["run"])
        if not verbatim:
            del values["key"]
        values |= {"suite_key": suite_key, "plan_key": plan, "regrade_of": origin}
        run_key = int(
            connection.execute(insert(table).values(**values).returning(table.c.key)).scalar_one()
        )
        own = schema.run_candidate
        record = plan_record(content, suite_text="")
        identities = {
            plain(candidate.name): identity_of(record, candidate) for candidate in record.candidates
        }
        for line in head["candidates"]:
            key = self._names.candidate(connection, line["candidate"])
            row = {
                "run_key": run_key,
                "candidate_key": key,
                "position": line["position"],
                "name": line["name"],
            }
            row["identity"] = plain(identities.get(line["name"], ""))
            connection.execute(insert(own).values(**row))
            # renamed since; the old name still refers to it
            if folded(line["name"]) != folded(line["candidate"]):
                remember(connection, line["name"], key)
        for line in head.get("imported", ()):
            row = {**_known(schema.imported, line), "suite_key": suite_key, "run_key": run_key}
            connection.execute(insert(schema.imported).values(**row))
        for name in head["graders"]:
            key = self._names.grader(connection, name)
            reference = name in head.get("references", ())
            connection.execute(
                insert(schema.run_grader).values(
                    run_key=run_key, grader_key=key, reference=reference
                )
            )
        for name in head["criteria"]:
            connection.execute(
                insert(schema.run_criterion).values(
                    run_key=run_key, criterion_key=self._names.criterion(connection, name)
                )
            )
        return run_key

    def _tasks(
        self, connection: Connection, run_key: int, suite_key: int, lines: list[Line], keys: _Keys
    ) -> None:
        table = schema.task
        for line in lines:
            content = hidden(line["body"])
            content_digest = hashlib.sha256(content).hexdigest()[:32]
            known = connection.execute(
                select(table).where(
                    table.c.suite_key == suite_key,
                    table.c.task_id == line["task_id"],
                    table.c.digest == line["digest"],
                )
            ).first()
            if known is not None and known.body_digest == content_digest:
                task_key, body_key = known.key, known.body_key
            else:
                (body_key,) = take_keys(connection, body=1)["body"]
                self._database.insert(connection, schema.body, [(body_key, content)])
                if known is not None:
                    task_key = known.key
                    newest = {"body_key": body_key, "body_digest": content_digest}
                    connection.execute(
                        update(table).where(table.c.key == task_key).values(**newest)
                    )
                else:
                    task_key = (
                        line["key"] if keys.verbatim else take_keys(connection, task=1)["task"][0]
                    )
                    row = (
                        task_key,
                        suite_key,
                        line["task_id"],
                        line["digest"],
                        line["language"],
                        line.get("family", ""),  # records before schema 0011 lack this
                        body_key,
                        content_digest,
                    )
                    self._database.insert(connection, table, [row])
            keys.task[line["position"]] = task_key
            planned = (
                run_key,
                line["position"],
                task_key,
                line["task_id"],
                line["thing"],
                line["weight"],
                line["trials"],
            )
            self._database.insert(connection, schema.run_task, [(*planned, body_key)])
            tags: list[tuple[object, ...]] = [(run_key, task_key, tag) for tag in line["tags"]]
            self._database.insert(connection, schema.run_tag, tags)

    def _trials(
        self,
        connection: Connection,
        run_key: int,
        lines: list[Line],
        keys: _Keys,
        changes: CounterChanges,
        counts: Counter[str],
        hashes: dict[int, str],
    ) -> None:
        """Store some trials.

        New keys keep the order of the old ones, because response keys are compared with a limit.
        """
        if not lines:
            return
        calls = [item for line in lines for item in line["calls"]]
        responses = [item for line in lines for item in line["responses"]]
        assessments = [item for line in lines for item in line["assessments"]]
        bodies = sum(item["body"] is not None for item in (*calls, *responses, *assessments))
        wanted = {"trial": lines, "call": calls, "response": responses, "assessment": assessments}
        taken = take_keys(
            connection, body=bodies, **{name: len(rows) for name, rows in wanted.items()}
        )
        new = {
            name: {
                item["key"]: item["key"] if keys.verbatim else key
                for item, key in zip(_by_key(rows), taken[name], strict=True)
            }
            for name, rows in wanted.items()
        }
        keys.trial |= new["trial"]
        keys.call |= new["call"]
        keys.assessment |= new["assessment"]
        body_keys = iter(taken["body"])
        stored: list[tuple[object, ...]] = []
        rows: dict[str, list[Line]] = {
            name: [] for name in ("trial", "call", "response", "assessment", "score", "grade")
        }
        events: list[Line] = []
        for line in lines:
            own = {
                "run_key": run_key,
                "trial_key": new["trial"][line["key"]],
                "task_key": keys.task[line["position"]],
            }
            # A claim ends with its process, and jobs at providers belong to the store that sent
            # them.
            state = TrialState.PENDING.value if line["state"] in TO_COME else line["state"]
            rows["trial"].append(
                {
                    **line,
                    **own,
                    "key": own["trial_key"],
                    "state": state,
                    "owner": None,
                    "rest": None,
                }
            )
            changes.add(run_key, TRIAL, state)
            changes.add(run_key, STANDING, line["standing"])
            counts["trials"] += 1
            for name in ("calls", "responses", "assessments"):
                kind = name.removesuffix("s")
                for item in line[name]:
                    body = None
                    if item["body"] is not None:
                        body = next(body_keys)
                        stored.append((body, hidden(item["body"])))
                    row = {
                        **self._keyed(connection, item),
                        **own,
                        "key": new[kind][item["key"]],
                        "body_key": body,
                    }
                    if item.get("call_key") is not None:
                        row["call_key"] = keys.call.get(item["call_key"])
                    if kind == "assessment":
                        row["response_limit"] = (
                            item["response_limit"] if keys.verbatim else _limit(item, line, new)
                        )
                        changes.add(run_key, ASSESSMENT, item["state"])
                        counts["assessments"] += 1
                    rows[kind].append(row)
            for name in ("scores", "grades"):
                for item in line[name]:
                    mine = {**own, "assessment_key": keys.assessment[item["assessment_key"]]}
                    rows[name.removesuffix("s")].append({**self._keyed(connection, item), **mine})
            events += [
                {
                    **item,
                    "run_key": run_key,
                    "assessment_key": keys.assessment[item["assessment_key"]],
                }
                for item in line["events"]
            ]
        self._database.insert(connection, schema.body, stored)
        for name, of_table in rows.items():
            table = schema.metadata.tables[name]
            self._database.insert(
                connection, table, [tuple(row.get(c.name) for c in table.c) for row in of_table]
            )
        counts["events"] += len(events)
        counts["responses"] += len(responses)
        for event in sorted(events, key=lambda item: item["id"]):
            _event(connection, event, keys, hashes)
        observations = [
            {**item, "run_key": run_key, "assessment_key": keys.assessment[item["assessment_key"]]}
            for line in lines
            for item in line.get("observations", ())  # records of older stores lack this
        ]
        for observation in sorted(observations, key=lambda item: item["id"]):
            _observation(connection, observation, verbatim=keys.verbatim)
        votes = [
            {**vote, "run_key": run_key, "trial_key": new["trial"][line["key"]]}
            for line in lines
            for vote in line.get("votes", ())  # records of older stores lack this
        ]
        counts["votes"] += len(votes)
        _restore_votes(connection, votes, keys, self._vote_hashes)

    def _keyed(self, connection: Connection, line: Line) -> Line:
        keyed = dict(line)
        for name in ("candidate", "grader", "criterion"):
            if name in keyed:
                text = keyed.pop(name)
                keyed[f"{name}_key"] = (
                    None if text is None else getattr(self._names, name)(connection, text)
                )
        return keyed


def _event(connection: Connection, event: Line, keys: _Keys, hashes: dict[int, str]) -> None:
    table = schema.review_event
    values = _known(table, event)
    if not keys.verbatim:
        values.pop("id")
        if (
            values["idempotency_key"] is not None
            and connection.execute(
                select(table.c.id).where(table.c.idempotency_key == values["idempotency_key"])
            ).first()
        ):
            # A decision in this store already has this unique key, so the restored event gets none.
            values["idempotency_key"] = None
    number = connection.execute(insert(table).values(**values).returning(table.c.id)).scalar_one()
    hashes[int(number)] = event["hash"]


def _observation(connection: Connection, observation: Line, *, verbatim: bool) -> None:
    """Store an observation under a key that no item of this store uses or will use."""
    table = schema.observation
    key = str(observation["idempotency_key"])
    is_used = (
        connection.execute(select(table.c.id).where(table.c.idempotency_key == key)).first()
        is not None
    )
    # Only keys that a page or a program chose name no assessment by its number, which is another
    # one in this store.
    is_chosen = key.startswith(("decision:", "opinion:")) and not key.startswith(
        ("opinion:script:", "opinion:withdrawn:")
    )
    if is_used or not (verbatim or is_chosen):
        key = f"{key}:restored:{observation['assessment_key']}"
    values = {
        **_known(table, observation),
        "idempotency_key": key,
        "purpose": AssessmentPurpose.WORK.value,
        "body": hidden(observation["body"]),
    }
    del values["id"]
    connection.execute(insert(table).values(**values))


def _restore_votes(
    connection: Connection, votes: list[Line], keys: _Keys, hashes: dict[int, str]
) -> None:
    """Store votes in their original order, so that a vote precedes the row that withdraws it."""
    table = schema.vote
    now: dict[int, int] = {}
    for vote in sorted(votes, key=lambda vote: vote["id"]):
        values = _known(table, vote)
        if vote["undoes"] is not None:
            values["undoes"] = now[vote["undoes"]]
        if not keys.verbatim:
            values.pop("id")
            if connection.execute(select(table.c.id).where(table.c.once == values["once"])).first():
                values["once"] = None
        number = int(
            connection.execute(insert(table).values(**values).returning(table.c.id)).scalar_one()
        )
        now[vote["id"]] = number
        hashes[number] = vote["hash"]


def _chained(
    connection: Connection,
    table: Table,
    hash_of_row: Callable[[dict[str, Any]], str],
    *,
    after: int,
    hashes: dict[int, str],
) -> list[int]:
    previous = ""
    if after:
        previous = connection.execute(select(table.c.hash).where(table.c.id == after)).scalar_one()
    altered = []
    for row in connection.execute(
        select(table).where(table.c.id > after).order_by(table.c.id)
    ).all():  # small rows
        values = {**row._mapping, "previous_hash": previous}
        now = hash_of_row(values)
        if now != hashes.get(row.id):
            altered.append(int(row.id))
        if (row.previous_hash, row.hash) != (previous, now):
            connection.execute(
                update(table).where(table.c.id == row.id).values(previous_hash=previous, hash=now)
            )
        previous = now
    return altered


def _limit(assessment: Line, line: Line, new: dict[str, dict[int, int]]) -> int:
    """Return the key limit among the trial's new keys: graded responses have lower keys, later ones
    do not.
    """
    graded = [
        new["response"][response["key"]]
        for response in line["responses"]
        if response["key"] < assessment["response_limit"]
    ]
    return max(graded, default=0) + 1


def _by_key(rows: list[Line]) -> list[Line]:
    return sorted(rows, key=lambda line: line["key"])


def _known(table: Any, values: Line) -> Line:
    """Return the values that the table has columns for; another version's record may have fewer or
    more.
    """
    return {name: value for name, value in values.items() if name in table.c}


def _go_on_after(connection: Connection) -> None:
    source = schema.key_source
    for name in _NUMBERED:
        table = schema.metadata.tables[name]
        highest = connection.execute(select(func.max(table.c.key))).scalar_one() or 0
        connection.execute(
            update(source)
            .where(source.c.name == name, source.c.next <= highest)
            .values(next=highest + 1)
        )
    if connection.dialect.name == "postgresql":  # SQLite continues after the highest key by itself
        for table, column in (
            (schema.run, "key"),
            (schema.review_event, "id"),
            (schema.vote, "id"),
        ):
            last = func.coalesce(func.max(table.c[column]), 1)
            connection.execute(
                select(func.setval(func.pg_get_serial_sequence(table.name, column), last))
            )


def _with_marked_programs(content: bytes) -> bytes:
    """Mark a stored plan's programs as read from a file, so that resuming the run does not start
    them.
    """
    if b'"program"' not in content and rb"\u" not in content:  # a key may be spelled with escapes
        return content
    data = bytes_json(content)
    for asked in (*data["candidates"], *data["judges"], data.get("user") or {}):
        program = (asked.get("model") or {}).get("program")
        if program:
            program["restored"] = True
    return json_bytes(data)
