"""A record of a run is enough to store it again, on either database, number for number."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.contract.rows import all_rows, assert_derived_agrees
from tests.contract.stores import (
    StandingClock,
    a_call,
    a_decision,
    a_plan,
    a_task,
    judged,
    plain_grades,
    planned,
    wait,
)
from tests.support.postgres import new_database

from assay.domain.arena import Choice, Pairing, Vote
from assay.domain.assessment import Response
from assay.domain.errors import InputError
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import RunState, Verb
from assay.domain.selection import Selection
from assay.store.database import schema
from assay.store.opening import Store, open_store

RUNS = ("20250101-000000-alpha-aaaa", "20250102-000000-alpha-bbbb")
WITHOUT = ("body", "key_source", "reservation", "execution", "stretch")


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Addresses of databases without tables, one a call."""

    def url() -> str:
        name = f"t{secrets.token_hex(6)}"
        if request.param == "sqlite":
            return f"sqlite:///{tmp_path / name}.db"
        return new_database(request.getfixturevalue("postgres"), name)

    return url


@pytest.fixture
def opened_at() -> Iterator[Callable[[str], Store]]:
    stores: list[Store] = []

    def open_it(url: str) -> Store:
        stores.append(open_store(url, clock=StandingClock()))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


def lived(store: Store) -> None:
    """Two runs of shared tasks: decided, corrected, judged again, with odd text; the second still
    going on.
    """
    for number, run in enumerate(RUNS):
        plan = a_plan(run, suite="alpha", started=f"2025-01-0{number + 1}T00:00:00.000Z")
        tasks = [
            a_task("auth", tags=["b", "a"], snippets={"bob": "x\udc80"}),
            a_task("pay", weight=2.0),
        ]
        store.journal.open_run(plan, planned(*tasks, trials=2))
        store.journal.begin(RunId(run), retry_failed=False)
        for trial in store.journal.claim(RunId(run), limit=3):
            result = Response(candidate="alice", text=f"answer \ud800 {trial.k}")
            entry = judged(
                trial, plain_grades(0.1 * trial.k), responses=[result], calls=[a_call(trial)]
            )
            wait(store.journal.record(entry))
    keys = [row.key for row in store.archive.assessments.matching(Selection())]
    store.decisions.decide([a_decision(Verb.APPROVE, keys[4], idempotency="once")])
    store.decisions.decide(
        [a_decision(Verb.CORRECT, keys[0], corrections={("alice", "integrity"): 0.9}, reason="ß")]
    )
    store.decisions.decide([a_decision(Verb.REJECT, keys[1], reason="no")])
    store.decisions.decide([a_decision(Verb.UNDO, keys[4])])
    trial = store.journal.claim_trial(
        next(iter(store.archive.trials.matching(Selection(runs=(RUNS[0],))))).key
    )
    wait(
        store.journal.record(
            judged(
                trial, plain_grades(0.7), attempt=2, rerun=a_decision(Verb.RERUN, 0, reason="again")
            )
        )
    )
    store.journal.set_state(RunId(RUNS[0]), RunState.FINISHED)
    for number, (run, reviewer) in enumerate(
        [(RUNS[0], "ann"), (RUNS[1], "ann"), (RUNS[0], "bob")]
    ):
        one = Pairing(position=0, k=1, left=number % 2, right=1 - number % 2)
        store.arena.cast(
            Vote(
                run_id=RunId(run),
                pairing=one,
                choice=Choice.RIGHT,
                reviewer=reviewer,
                idempotency_key=f"vote {number}",
                active_ms=5,
            )
        )
    store.arena.take_back(RunId(RUNS[0]), reviewer="ann", idempotency_key="undo")


def records(
    store: Store, runs: tuple[str, ...] = RUNS
) -> list[tuple[str, Callable[[], Iterator[dict[str, Any]]]]]:
    """Records as they lie in files: through JSON."""
    by_name = {
        run: [json.dumps(line) for line in store.archive.records.whole(RunId(run))] for run in runs
    }
    return [(run, partial(map, json.loads, lines)) for run, lines in by_name.items()]


def test_a_store_without_runs_gets_every_row_back(
    opened_at: Callable[[str], Store], fresh_url: Callable[[], str]
) -> None:
    first = fresh_url()
    before = opened_at(first)
    lived(before)
    kept = records(before)
    rows = all_rows(first, without=WITHOUT)
    second = fresh_url()
    after = opened_at(second)
    result = after.restoring.restore(kept)
    assert (result.runs, result.renumbered, result.altered, result.events) == (RUNS, False, (), 5)
    assert (result.votes, result.altered_votes) == (4, ())
    again = all_rows(second, without=WITHOUT)
    for name, table in rows.items():
        assert without_bodies(name, again[name]) == without_bodies(name, table), name
    assert after.event_log.first_broken() is None
    assert_derived_agrees(second)
    for one, other in zip(
        before.archive.exports.assessments(Selection()),
        after.archive.exports.assessments(Selection()),
        strict=True,
    ):
        assert one == other
    after.journal.open_run(
        a_plan("20250201-000000-alpha-cccc", suite="alpha"), planned(a_task("auth"), trials=1)
    )
    (trial,) = after.journal.claim(RunId("20250201-000000-alpha-cccc"), limit=1)
    wait(after.journal.record(judged(trial)))
    newest = max(row.key for row in after.archive.assessments.matching(Selection()))
    after.decisions.decide([a_decision(Verb.APPROVE, newest)])
    assert after.event_log.first_broken() is None


def test_a_store_with_runs_gets_new_numbers_and_the_same_numbers_out(
    opened_at: Callable[[str], Store], fresh_url: Callable[[], str]
) -> None:
    before = opened_at(fresh_url())
    lived(before)
    kept = records(before)
    url = fresh_url()
    after = opened_at(url)
    after.journal.open_run(
        a_plan("20240101-000000-other-zzzz", suite="other"), planned(a_task("z"), trials=3)
    )
    for trial in after.journal.claim(RunId("20240101-000000-other-zzzz"), limit=3):
        wait(after.journal.record(judged(trial)))
    after.decisions.decide([a_decision(Verb.APPROVE, 1, idempotency="once")])
    result = after.restoring.restore(kept)
    assert result.renumbered
    assert after.event_log.first_broken() is None
    assert after.arena.first_broken() is None
    for run in RUNS:
        mine, yours = before.arena.votes(RunId(run)), after.arena.votes(RunId(run))
        assert [(one.pairing, one.choice, one.reviewer, one.at) for one in mine] == [
            (one.pairing, one.choice, one.reviewer, one.at) for one in yours
        ]
        assert len(mine) == 1
    assert_derived_agrees(url)
    theirs = Selection(suites=("alpha",))
    one, other = before.archive.scores.columns(theirs), after.archive.scores.columns(theirs)
    assert one.score.tolist() == other.score.tolist()
    assert one.tasks == other.tasks
    responses = [
        [d.responses for d, _ in store.archive.exports.assessments(theirs, everything=True)]
        for store in (before, after)
    ]
    assert responses[0] == responses[1]
    assert after.restoring.restore(kept).there == RUNS


def test_a_run_that_cannot_be_read_to_its_end_leaves_nothing(
    opened_at: Callable[[str], Store], fresh_url: Callable[[], str]
) -> None:
    before = opened_at(fresh_url())
    lived(before)
    (run, lines), _ = records(before)
    after = opened_at(fresh_url())

    def broken() -> Iterator[dict[str, Any]]:
        for number, line in enumerate(lines()):
            if number == 4:
                raise InputError("record", "is damaged.")
            yield line

    with pytest.raises(InputError):
        after.restoring.restore([(run, broken)])
    assert after.archive.runs.matching() == ()


def without_bodies(name: str, rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Rows without the numbers of bodies, owners and states of a process that is gone."""
    table = schema.metadata.tables[name]
    own = {"body_key", "plan_key", "owner", "rest"}
    if name in ("run", "trial", "run_tally"):
        own |= {"state", "n"}  # what was being carried out is not any more
    kept = [place for place, column in enumerate(table.c) if column.name not in own]
    return [tuple(row[place] for place in kept) for row in rows]
