"""Attacks on the budget: servers that hide or inflate their counts, time-outs, cancelled calls, and
kill -9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.attack.figures import publish, publish_cases
from tests.contract.stores import StandingClock, a_plan, a_task, planned, wait
from tests.support.fakes import FakeClock

from assay.domain.budget import Grant, Reservation
from assay.domain.calls import ModelRequest, Purpose, Reply, Role
from assay.domain.events import nobody
from assay.domain.failure import CallFailed, Fault
from assay.domain.identifiers import TrialKey
from assay.domain.model import ModelSpec, Parameters
from assay.domain.programs import Command
from assay.domain.run import Entry
from assay.domain.suite import Message
from assay.engine.asking import Asker, GaveUp
from assay.engine.spending import Spending
from assay.store.opening import Store, open_store

RUN = a_plan().id
WORST = 0.01
"""The reserved cost of one call: 100 tokens at most, at $0.0001 each."""
REQUEST = ModelRequest(
    model=ModelSpec(provider="openai", name="m"),
    messages=(Message(role="user", content="x" * 12),),
    parameters=Parameters(max_tokens=80),
    purpose=Purpose(role=Role.CANDIDATE, task="t", trial=1),
)


@dataclass
class Server:
    """A model that answers, fails or hangs as `outcome` decides for its n-th call; counts calls and
    those in flight.
    """

    outcome: Callable[[int], Reply | CallFailed | None]
    calls: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    charged_usd: float = 0.0
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(self, _request: ModelRequest, /) -> Reply:
        number = self.calls = self.calls + 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            outcome = self.outcome(number)
            if outcome is None:
                await asyncio.Event().wait()
            if isinstance(outcome, CallFailed):
                raise outcome
            assert outcome is not None
            self.charged_usd += outcome.cost_usd or 0.0
            return outcome
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        """Nothing is held."""


@dataclass
class Priced:
    """A directory with one server, at $0.0001 a token."""

    server: Server

    def provider(self, _model: ModelSpec, /) -> Server:
        return self.server

    def batches(self, _model: ModelSpec, /) -> None:
        return None

    def cost_usd(self, _model: ModelSpec, /, *, input_tokens: int, output_tokens: int) -> float:
        return 0.0001 * (input_tokens + output_tokens)

    def context_tokens(self, _model: ModelSpec, /) -> None:
        return None


@dataclass
class StoredLedger:
    """The store's budget; entries are left out, because these calls belong to no trial."""

    store: Store
    entries: list[Entry] = field(default_factory=list)

    async def record(self, entry: Entry, /) -> None:
        self.entries.append(entry)

    async def reserve(self, run: object, reservation: Reservation, /) -> Grant:
        return await self.store.journal.reserve(RUN, reservation)

    async def settle(self, run: object, reservation: Reservation, spent_usd: float, /) -> None:
        await self.store.journal.settle(RUN, reservation, spent_usd)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[], Store]]:
    stores: list[Store] = []

    def open_it() -> Store:
        stores.append(open_store(f"sqlite:///{tmp_path}/store.db", clock=StandingClock()))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    return budgeted(opened(), 0.1)


def budgeted(store: Store, usd: float) -> Store:
    store.journal.open_run(a_plan(budget_usd=usd), planned(a_task()))
    return store


async def reserve(store: Store, usd: float) -> Grant:
    return await store.journal.reserve(RUN, Reservation(usd, usd))


def booked(store: Store) -> float:
    return store.archive.runs.matching()[0].booked_usd


def asker(store: Store, server: Server) -> Asker:
    ledger = StoredLedger(store)
    directory = Priced(server)
    spending = Spending(RUN, ledger, directory)
    return Asker(
        spending=spending, journal=ledger, directory=directory, clock=FakeClock(), listener=nobody
    )


async def ask_many(
    asking: Asker, times: int, *, at_once: int = 5, request: ModelRequest = REQUEST
) -> list[GaveUp | None]:
    slots = asyncio.Semaphore(at_once)

    async def ask() -> GaveUp | None:
        async with slots:
            try:
                await asking.answer(request, lambda reply: reply.text, trial=TrialKey(1))
            except GaveUp as gave_up:
                return gave_up
            return None

    return await asyncio.gather(*(ask() for _ in range(times)))


def test_replies_without_a_token_count_are_booked_at_the_worst_case(store: Store) -> None:
    server = Server(lambda _: Reply(text="yes"))
    outcomes = wait(ask_many(asker(store, server), 600))
    assert server.calls == 10
    assert booked(store) == pytest.approx(0.1)
    refused = [outcome.failure for outcome in outcomes if outcome is not None]
    assert len(refused) == 590
    assert {failure.fault for failure in refused} == {Fault.BUDGET}
    assert "The cost of 10 calls is unknown and booked at the worst case." in refused[-1].detail
    publish(
        "call under a budget, answered without a token count", tried=600, through=server.calls - 10
    )


def test_time_outs_and_lost_connections_are_booked_at_the_worst_case(store: Store) -> None:
    kinds = ("timeout", "connection", "bad_response")
    server = Server(
        lambda n: CallFailed(kinds[n % 3], "it is lost.", transient=True, fault=Fault.PROVIDER)
    )
    wait(ask_many(asker(store, server), 100))
    assert server.calls == 10
    assert booked(store) == pytest.approx(0.1)
    publish("call under a budget, lost or timed out", tried=100, through=server.calls - 10)


def test_a_call_that_the_provider_refused_costs_nothing(store: Store) -> None:
    server = Server(lambda _: CallFailed("http_429", "too many.", transient=False, charged=False))
    wait(ask_many(asker(store, server), 30))
    assert server.calls == 30
    assert booked(store) == pytest.approx(0.0)


def test_a_cancelled_call_in_flight_is_booked_at_the_worst_case(store: Store) -> None:
    server = Server(lambda _: server.asked.set())
    asking = asker(store, server)

    async def cancel() -> None:
        call = asyncio.create_task(
            asking.answer(REQUEST, lambda reply: reply.text, trial=TrialKey(1))
        )
        await server.asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    wait(cancel())
    assert booked(store) == pytest.approx(WORST)
    assert wait(reserve(store, 0.09)) is Grant.GRANTED  # nothing else is reserved


def test_a_call_cancelled_while_it_reserves_leaves_no_reservation(store: Store) -> None:
    server = Server(lambda _: Reply(text="yes", cost_usd=0.0))
    asking = asker(store, server)

    async def cancel() -> None:
        call = asyncio.create_task(
            asking.answer(REQUEST, lambda reply: reply.text, trial=TrialKey(1))
        )
        await asyncio.sleep(0)  # it has sent its reservation to the writing thread
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    wait(cancel())
    assert server.calls == 0
    assert booked(store) == pytest.approx(0.0)
    assert wait(reserve(store, 0.1)) is Grant.GRANTED


@pytest.mark.parametrize("factor", [1.5, 3.0, 40.0])
@pytest.mark.parametrize("at_once", [1, 5, 20])
def test_a_server_that_counts_more_passes_the_budget_by_one_call(
    store: Store, factor: float, at_once: int
) -> None:
    server = Server(lambda _: Reply(text="yes", cost_usd=factor * WORST))
    wait(ask_many(asker(store, server), 100, at_once=at_once))
    assert server.charged_usd == pytest.approx(booked(store))
    assert server.charged_usd <= 0.1 + (factor - 1) * WORST + 1e-9


@pytest.mark.parametrize("at_once", [1, 5, 20])
def test_programs_that_state_their_cost_pass_the_budget_by_one_call(
    store: Store, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Priced, "cost_usd", lambda *_, **__: 0.0)
    program = Command(words=("agent",), usage={"cost_usd": "$.cost"})
    server = Server(lambda _: Reply(text="yes", cost_usd=0.03))
    request = replace(REQUEST, model=ModelSpec(provider="command", name="agent", program=program))
    wait(ask_many(asker(store, server), 100, at_once=at_once, request=request))
    assert server.charged_usd == pytest.approx(booked(store))
    assert server.charged_usd <= 0.1 + 0.03


def test_calls_run_in_parallel_while_ten_times_their_cost_is_left(
    opened: Callable[[], Store],
) -> None:
    in_flight: list[int] = []

    def answer(_: int) -> Reply:
        in_flight.append(server.in_flight)
        return Reply(text="yes", cost_usd=WORST / 10)

    store, server = budgeted(opened(), 0.5), Server(answer)
    wait(ask_many(asker(store, server), 100, at_once=9))
    assert in_flight[0] == 1
    assert server.most_in_flight > 1
    assert server.calls == 100
    for number, together in enumerate(in_flight):
        assert together == 1 or (number - together) * WORST / 10 + together * 10 * WORST <= 0.5


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize(
    ("steady", "factor", "budget"),
    [(1, 3, 0.1), (1, 40, 0.1), (1, 10, 1), (9, 10, 0.3), (25, 10, 1), (25, 40, 0.4)],
)
def test_a_server_that_begins_to_count_more_passes_the_budget_by_one_call(
    opened: Callable[[], Store], steady: int, factor: int, budget: float, processes: int
) -> None:
    server = Server(lambda n: Reply(text="yes", cost_usd=WORST * (factor if n > steady else 1)))
    stores = [budgeted(opened(), budget), *(opened() for _ in range(processes - 1))]

    async def all_of_them() -> None:
        await asyncio.gather(*(ask_many(asker(store, server), 40, at_once=20) for store in stores))

    wait(all_of_them())
    assert server.calls > steady
    assert booked(stores[0]) == pytest.approx(server.charged_usd)
    assert server.charged_usd < budget + factor * WORST


def test_processes_make_the_first_calls_of_a_program_one_at_a_time(
    opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Priced, "cost_usd", lambda *_, **__: 0.0)
    program = Command(words=("agent",), usage={"cost_usd": "$.cost"})
    request = replace(REQUEST, model=ModelSpec(provider="command", name="agent", program=program))
    server = Server(lambda _: Reply(text="yes", cost_usd=0.07))
    askers = [asker(store, server) for store in (budgeted(opened(), 0.1), opened(), opened())]

    async def all_of_them() -> None:
        await asyncio.gather(*(ask_many(asking, 5, request=request) for asking in askers))

    wait(all_of_them())
    assert server.most_in_flight == 1
    assert server.charged_usd <= 0.1 + 0.07


def test_a_reservation_survives_its_process_and_is_booked_on_resume(
    opened: Callable[[], Store],
) -> None:
    store = budgeted(opened(), 1.0)
    for _ in range(5):  # five processes that die with a call in flight
        process = opened()
        process.journal.begin(RUN, retry_failed=False)
        assert wait(reserve(process, 0.2)) is Grant.GRANTED
        process.close()
    store.journal.begin(RUN, retry_failed=False)
    assert booked(store) == pytest.approx(1.0)
    assert wait(reserve(store, 0.01)) is Grant.REFUSED


def test_the_documentation_states_the_servers_that_count_more() -> None:
    publish_cases(
        "run under a budget, whose server counts more or begins to",
        test_a_server_that_counts_more_passes_the_budget_by_one_call,
        test_a_server_that_begins_to_count_more_passes_the_budget_by_one_call,
    )
