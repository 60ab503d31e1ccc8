"""PostgreSQL servers that restart or end connections while a store is open: nothing is lost and
nothing is doubled.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from tests.attack.figures import publish
from tests.contract.conftest import postgres as postgres
from tests.contract.stores import StandingClock, a_plan, a_task, judged, planned, wait
from tests.journey.conftest import Command, Said
from tests.support.model_server import Call, ModelServer
from tests.support.postgres import NoPostgres, control, new_database, postgres_server
from tests.support.sets import write_set

from assay.app.runs import execution
from assay.app.workspace import Workspace
from assay.domain.errors import ConnectionLost, StoreError
from assay.domain.identifiers import RunId
from assay.domain.selection import Selection
from assay.store.database import connections
from assay.store.opening import Store, open_store
from assay.web.server import create_app

JUDGE = "openai/judge"
HOME = "http://127.0.0.1"
LOCKS = """
SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE locktype = 'advisory' AND classid = 1095979865 AND datname = current_database()
"""
"""The sessions of this database that hold the lock of a process; the number is
`process_locks._ADVISORY_CLASS`.
"""


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A server that only this test uses: its folder and its address."""
    shared = tmp_path_factory.mktemp("server")
    server = postgres_server(shared)
    try:
        address = server.__enter__()
    except NoPostgres as reason:
        pytest.skip(f"PostgreSQL NOT TESTED: {reason}")
    yield shared, address
    server.__exit__(None, None, None)


@pytest.fixture
def database(own_server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, project: Path) -> str:
    """A durable database on that server, as the settings name it."""
    _, server = own_server
    address = new_database(server, "restarted")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER DATABASE restarted SET synchronous_commit = on")
    monkeypatch.setenv("ASSAY_STORE", address)
    return address


def end_connections(server: str, name: str) -> None:
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        assert connection.execute(others, [name]).fetchall()


def at_call(server: ModelServer, number: int, do: Any) -> None:
    """Do something when the server gets a call, once."""
    usual, done = server.answer, threading.Event()

    def answer(call: Call) -> Any:
        if server.served >= number and not done.is_set():
            done.set()
            do()
        return usual(call)

    server.answer = answer


MOMENTS = tuple((number, mode) for mode in ("fast", "immediate") for number in range(1, 13))
"""The number of the call at which the server restarts, and whether it ends its sessions properly.
"""


@pytest.mark.parametrize("moments", [MOMENTS[2:3], MOMENTS], ids=["one", "all"])
@pytest.mark.slow
def test_a_run_goes_on_after_its_server_was_restarted(
    assay: Command,
    server: ModelServer,
    project: Path,
    own_server: tuple[Path, str],
    database: str,
    moments: tuple[tuple[int, str], ...],
) -> None:
    suite, through = write_set(project, trials=4), 0
    for number, mode in moments:
        before = server.served
        at_call(
            server, before + number, lambda mode=mode: control(own_server[0], "restart", mode=mode)
        )
        ended = assay("run", suite, "--judge", "openai/judge", "--concurrency", "3", "--json")
        assert ended.code == 0, ended.err
        whole = ended.document["trials"]["done"] == 12 == server.served - before
        through += not whole
    assert assay("doctor", "--check-store").code == 0
    if moments == MOMENTS:
        publish("restart of PostgreSQL during a run", tried=len(moments), through=through)
    assert through == 0


@pytest.mark.slow
def test_a_run_without_its_server_stops_and_names_resume(
    assay: Command,
    server: ModelServer,
    project: Path,
    own_server: tuple[Path, str],
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "WAIT_S", 0.5)
    at_call(server, 5, lambda: control(own_server[0], "stop"))
    ended = assay(
        "run", write_set(project, trials=4), "--judge", "openai/judge", "--concurrency", "3"
    )
    assert ended.code == 130, ended.err
    assert "cannot be reached" in ended.err
    control(own_server[0], "start")
    (run,) = assay("runs", "--json").document["runs"]
    assert f"assay resume {run['run_id']}" in ended.err
    resumed = assay("resume", run["run_id"], "--json")
    assert (resumed.code, resumed.document["trials"]["done"]) == (0, 12)
    assert server.served <= 12 + 3
    assert assay("doctor", "--check-store").code == 0


@pytest.mark.parametrize("moment", [0, 1], ids=["before the first trial", "after the last"])
def test_a_server_lost_just_around_the_trials_names_resume(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    usual, reads = execution.result_of, itertools.count()

    def lost(store: Store, run: RunId, **more: Any) -> execution.RunResult:
        if next(reads) == moment:
            raise ConnectionLost("store", "the PostgreSQL server cannot be reached.")
        return usual(store, run, **more)

    monkeypatch.setattr(execution, "result_of", lost)
    ended = assay("run", write_set(project, things=1, trials=2), "--judge", "openai/judge")
    (run,) = assay("runs", "--json").document["runs"]
    assert ended.code == 130, ended.err
    assert f"assay resume {run['run_id']}" in ended.err
    resumed = assay("resume", run["run_id"], "--json")
    assert (resumed.code, resumed.document["trials"]["done"], server.served) == (0, 2, 2)


@pytest.mark.parametrize("every", [12, 2])
@pytest.mark.slow
def test_decisions_in_the_web_app_survive_a_restart(
    assay: Command,
    server: ModelServer,
    project: Path,
    own_server: tuple[Path, str],
    database: str,
    every: int,
) -> None:
    assert assay("run", write_set(project, trials=8), "--judge", "openai/judge").code == 0
    waiting = [row["id"] for row in assay("review", "list", "--json").document["assessments"]]
    restarts = {
        number: ("fast", "immediate")[number // every % 2]
        for number in range(1, len(waiting), every)
    }
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url=HOME) as client,
    ):
        for number, item in enumerate(waiting):
            restarting = None
            if number in restarts:
                restarting = threading.Thread(
                    target=control,
                    args=(own_server[0], "restart"),
                    kwargs={"mode": restarts[number]},
                )
                restarting.start()
            body = {"decisions": [{"id": item, "verb": "approve", "key": f"decision {number:04}"}]}
            while True:
                # As the page does: the same decision under the same key, until the server takes it.
                answered = client.post("/api/decisions", json=body, headers={"origin": HOME})
                if answered.status_code != 503:
                    break
                assert "cannot be reached" in answered.text or "the database" in answered.text
            assert answered.status_code == 200, answered.text
            if restarting is not None:
                restarting.join()
    with psycopg.connect(database) as connection:
        decided = [
            f"a{key}" for (key,) in connection.execute("SELECT assessment_key FROM review_event")
        ]
    listed = assay("review", "list", "--json").document["assessments"]
    assert {row["state"] for row in listed} == {"approved"}
    assert assay("doctor", "--check-store").code == 0
    through = len(set(waiting) ^ set(decided)) + len(decided) - len(set(decided))
    if every == 2:
        publish(
            "restart of PostgreSQL during review in the web app",
            tried=len(restarts),
            through=through,
        )
    assert through == 0


@pytest.fixture
def store(postgres: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    store = open_store(new_database(postgres, request.node.name), clock=StandingClock())
    store.journal.open_run(a_plan(), planned(a_task(), trials=3))
    yield store
    store.close()


def test_a_store_closes_after_its_server_was_restarted(postgres: str, store: Store) -> None:
    assert len(store.journal.claim(a_plan().id, limit=1)) == 1
    end_connections(postgres, "test_a_store_closes_after_its_server_was_restarted")
    store.close()


@pytest.mark.parametrize("properly", [True, False])
def test_a_store_whose_first_connection_is_ended_names_the_server(
    postgres: str, monkeypatch: pytest.MonkeyPatch, properly: bool
) -> None:
    address = new_database(postgres, f"ended_at_once_{properly}")
    usual: Any = PGDialect_psycopg.get_default_isolation_level

    def ended(dialect: Any, driver: Any) -> Any:
        if properly:
            with psycopg.connect(address, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [driver.info.backend_pid])
        else:
            with socket.socket(fileno=os.dup(driver.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        return usual(dialect, driver)

    monkeypatch.setattr(PGDialect_psycopg, "get_default_isolation_level", ended)
    with pytest.raises(ConnectionLost, match="cannot be reached"):
        open_store(address, clock=StandingClock())


def test_a_lost_lock_is_taken_again(
    postgres: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.store.claims.process_locks.REST_S", 0.0)
    address = f"{postgres}/test_a_lost_lock_is_taken_again"
    (first,) = store.journal.claim(a_plan().id, limit=1)
    with psycopg.connect(address, autocommit=True) as connection:
        ((pid,),) = connection.execute(LOCKS).fetchall()
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    store.journal.claim(a_plan().id, limit=1)
    other = open_store(address, clock=StandingClock())
    try:
        assert len(other.journal.claim(a_plan().id, limit=3)) == 1
        wait(store.journal.record(judged(first)))
    finally:
        other.close()


def test_a_claim_that_another_process_took_stores_nothing(postgres: str, store: Store) -> None:
    address = f"{postgres}/test_a_claim_that_another_process_took_stores_nothing"
    trials = store.journal.claim(a_plan().id, limit=3)
    with psycopg.connect(address, autocommit=True) as connection:
        ((pid,),) = connection.execute(LOCKS).fetchall()
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    other = open_store(address, clock=StandingClock())
    try:
        taken = other.journal.claim(a_plan().id, limit=3)
        assert {trial.key for trial in taken} == {trial.key for trial in trials}
        wait(other.journal.record(judged(taken[0])))
        for trial in trials:
            with pytest.raises(StoreError, match="another process took over"):
                wait(store.journal.record(judged(trial)))
        for trial in taken[1:]:
            wait(other.journal.record(judged(trial)))
        assert len(list(store.archive.assessments.matching(Selection()))) == 3
    finally:
        other.close()


def test_a_commit_without_an_answer_is_not_repeated(store: Store) -> None:
    lost: list[Any] = []

    @event.listens_for(store.database._engine, "commit")
    def lose(connection: Any) -> None:
        if not lost:
            lost.append(connection)
            driver = connection.connection.driver_connection
            driver.commit()
            driver.close()
            raise psycopg.OperationalError("the connection is lost")

    assert len(store.journal.claim(a_plan().id, limit=1)) == 1
    assert len(store.journal.claim(a_plan().id, limit=3)) == 2
    assert lost


TIMES = 40
"""Moments tried of each command: statements spread over the whole command."""


def ended_before_statement(number: int, server: str, do: Callable[[], Said]) -> tuple[Said, int]:
    """Run a command whose sessions all end before its statement of this number; return how many
    statements it sent.
    """
    sent = 0

    def look(*_: Any) -> None:
        nonlocal sent
        sent += 1
        if sent == number:
            with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
                others = "SELECT pg_terminate_backend(pid, 3000) FROM pg_stat_activity WHERE datname = 'restarted'"
                connection.execute(others)

    event.listen(Engine, "before_cursor_execute", look)
    try:
        return do(), sent
    finally:
        event.remove(Engine, "before_cursor_execute", look)


READING = (
    *(
        "runs",
        "show FIRST",
        "diff FIRST SECOND",
        "trend services",
        "review list",
        "candidates list",
        "stats",
        "rank",
    ),
    *("compare nora omar", "gate nora --against omar --margin 0.1", "plan --detect 0.1"),
)


@pytest.mark.parametrize("moments", [1, 8])
@pytest.mark.slow
def test_a_reading_command_whose_sessions_end_prints_its_document(
    assay: Command,
    server: ModelServer,
    project: Path,
    own_server: tuple[Path, str],
    database: str,
    moments: int,
) -> None:
    suite = write_set(project, things=1, candidates=2, trials=2)
    first, second = (
        assay("run", suite, "--judge", JUDGE, "--json").document["run_id"] for _ in range(2)
    )
    waiting = [row["id"] for row in assay("review", "list", "--json").document["assessments"]]
    assert assay("review", "approve", *waiting).code == 0
    through = 0
    for words in READING:
        command = (*words.replace("FIRST", first).replace("SECOND", second).split(), "--json")
        usual, statements = ended_before_statement(0, own_server[1], partial(assay, *command))
        assert "error" not in usual.document, usual.err
        for n in range(moments):
            number = statements - n * statements // moments
            ended, sent = ended_before_statement(number, own_server[1], partial(assay, *command))
            assert sent > number  # the sessions did end, and the command asked again
            through += ended != usual
    if moments > 1:
        kind = "end of all PostgreSQL sessions at a statement of a reading command"
        publish(kind, tried=moments * len(READING), through=through)
    assert through == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_whose_sessions_end_at_any_statement_can_be_resumed(
    assay: Command, server: ModelServer, project: Path, own_server: tuple[Path, str], database: str
) -> None:
    suite, through = write_set(project, things=1, trials=2), 0
    _, statements = ended_before_statement(
        0, own_server[1], lambda: assay("run", suite, "--judge", JUDGE)
    )
    known = 1
    for n in range(TIMES):
        number = 1 + n * statements // TIMES
        ended, _ = ended_before_statement(
            number, own_server[1], lambda: assay("run", suite, "--judge", JUDGE)
        )
        with psycopg.connect(database) as connection:
            runs = connection.execute("SELECT id FROM run ORDER BY key DESC").fetchall()
        new, known = len(runs) - known, len(runs)
        through += (ended.code, new, "assay resume" in ended.err) not in {
            (0, 1, False),
            (130, 1, True),
            (2, 0, False),
        }
        if new:
            resumed = assay("resume", runs[0][0], "--json")
            through += resumed.document["trials"]["done"] != 2
    assert assay("doctor", "--check-store").code == 0
    publish("end of all PostgreSQL sessions at a statement of a run", tried=TIMES, through=through)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_rerun_whose_sessions_end_at_any_statement_tells_the_truth(
    assay: Command, server: ModelServer, project: Path, own_server: tuple[Path, str], database: str
) -> None:
    assert assay("run", write_set(project, things=1, trials=1), "--judge", JUDGE).code == 0

    def current() -> str:
        (row,) = assay("review", "list", "--state", "pending", "--json").document["assessments"]
        return str(row["id"])

    def rerun() -> Said:
        return assay("review", "rerun", key, "--reason", "why", "--force")

    key, through = current(), 0
    _, statements = ended_before_statement(0, own_server[1], rerun)
    for n in range(TIMES):
        key = current()
        ended, _ = ended_before_statement(1 + n * statements // TIMES, own_server[1], rerun)
        told = ended.code == 0 or f"{current()}, the new attempt, is stored" in ended.err
        through += told != (current() != key)
    assert assay("doctor", "--check-store").code == 0
    publish(
        "end of all PostgreSQL sessions at a statement of a rerun", tried=TIMES, through=through
    )
