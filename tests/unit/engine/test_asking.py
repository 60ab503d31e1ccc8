"""How often, and after what waits, a model is asked for one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest
from tests.support.fakes import FakeClock, FakeDirectory, FakeJournal, FakeProvider

from assay.domain.calls import ModelRequest, Purpose, Reply, Role, Usage
from assay.domain.events import nobody
from assay.domain.failure import CallFailed, Fault
from assay.domain.identifiers import RunId, TrialKey
from assay.domain.model import ModelSpec, Parameters
from assay.domain.suite import Message
from assay.domain.tools import Tool
from assay.engine.asking import MAX_CALLS, MAX_FIRST_CALLS, Asker, GaveUp, NotYet, ReadAnswer
from assay.engine.breaker import Breaker
from assay.engine.spending import Spending
from assay.ports import Journal
from assay.scoring.evaluator import UnreadableReply

GOOD = Reply(text="good", usage=Usage(input_tokens=3, output_tokens=2), cost_usd=0.01)
BUSY = CallFailed("http_503", "the server is busy.", transient=True)
EMPTY = CallFailed("empty", "the answer is empty.", transient=True)


class Table:
    """One asker with everything around it faked."""

    def __init__(
        self,
        outcomes: Sequence[Reply | CallFailed],
        *,
        budget: bool = False,
        price: float | None = None,
    ):
        self.clock = FakeClock()
        self.journal = FakeJournal()
        self.provider = FakeProvider(outcomes)
        directory = FakeDirectory(self.provider, price)
        self.asker = Asker(
            spending=Spending(RunId("r"), cast(Journal, self.journal), directory)
            if budget
            else None,
            journal=cast(Journal, self.journal),
            directory=directory,
            clock=self.clock,
            listener=nobody,
        )

    def ask(self, role: Role = Role.JUDGE, tools: tuple[Tool, ...] = ()) -> ReadAnswer[str]:
        request = ModelRequest(
            model=ModelSpec(provider="openai", name="m"),
            messages=(Message(role="user", content="hello"),),
            parameters=Parameters(max_tokens=10),
            purpose=Purpose(role=role, task="t", trial=1),
            tools=tools,
        )
        return asyncio.run(self.asker.answer(request, self.read, trial=TrialKey(1)))

    @staticmethod
    def read(reply: Reply) -> str:
        if reply.text == "garbled":
            raise UnreadableReply("prose without grades.")
        return reply.text


def test_good_first_answer_returns_at_once_uncommitted() -> None:
    table = Table([GOOD])
    assert table.ask().read == "good"
    assert table.clock.slept == []
    assert table.journal.entries == []


def test_busy_server_is_asked_five_times_within_twenty_seconds() -> None:
    table = Table([BUSY])
    with pytest.raises(GaveUp) as gave_up:
        table.ask()
    assert len(table.provider.asked) == 5
    assert gave_up.value.failure.tries == 5
    assert gave_up.value.failure.fault is Fault.PROVIDER
    assert 0 < sum(table.clock.slept) <= 20
    assert table.clock.slept == sorted(table.clock.slept)


def test_a_server_that_was_never_reached_is_called_twice() -> None:
    unreached = CallFailed(
        "connection", "the server cannot be reached.", transient=True, charged=False
    )
    table = Table([unreached] * 9)
    table.asker = replace(table.asker, breaker=Breaker())
    with pytest.raises(NotYet):
        table.ask()
    assert len(table.provider.asked) == MAX_FIRST_CALLS
    assert sum(table.clock.slept) <= 1.0

    table = Table([GOOD, *[unreached] * 9])
    table.asker = replace(table.asker, breaker=Breaker())
    table.ask()
    with pytest.raises(GaveUp):
        table.ask()
    assert len(table.provider.asked) == 1 + MAX_CALLS


def test_every_failed_try_is_on_disk_before_the_next_one_is_made() -> None:
    table = Table([BUSY, EMPTY, GOOD])
    answer = table.ask()
    assert [
        entry.calls[0].failure.kind for entry in table.journal.entries if entry.calls[0].failure
    ] == ["http_503", "empty"]
    assert [entry.calls[0].number for entry in table.journal.entries] == [1, 2]
    assert answer.calls[0].number == 3


def test_an_empty_answer_is_asked_for_twice_more_after_growing_waits() -> None:
    table = Table([EMPTY])
    with pytest.raises(GaveUp) as gave_up:
        table.ask(Role.CANDIDATE)
    assert table.clock.slept == pytest.approx([0.4, 0.8])
    assert gave_up.value.failure.kind == "empty"
    assert gave_up.value.failure.fault is Fault.CANDIDATE


def test_a_reply_that_cannot_be_read_is_the_judge_s_failure_and_is_kept() -> None:
    garbled = Reply(text="garbled", cost_usd=0.02)
    table = Table([garbled])
    with pytest.raises(GaveUp) as gave_up:
        table.ask()
    assert gave_up.value.failure.kind == "unparsable"
    assert gave_up.value.failure.fault is Fault.JUDGE
    assert gave_up.value.failure.detail == "prose without grades."
    assert [entry.calls[0].reply for entry in table.journal.entries] == [garbled] * 3


def test_retry_after_is_obeyed_even_beyond_the_usual_patience() -> None:
    asked_to_wait = CallFailed("http_429", "slow down.", transient=True, retry_after_s=45)
    table = Table([asked_to_wait, GOOD])
    assert table.ask().read == "good"
    assert table.clock.slept == [45]


def test_an_error_that_asking_again_cannot_mend_is_not_asked_again() -> None:
    table = Table(
        [CallFailed("http_401", "the key is refused.", transient=False, fault=Fault.HARNESS)]
    )
    with pytest.raises(GaveUp) as gave_up:
        table.ask()
    assert len(table.provider.asked) == 1
    assert gave_up.value.failure.fault is Fault.HARNESS


def test_a_call_that_does_not_fit_into_the_budget_is_not_made() -> None:
    table = Table([GOOD], budget=True, price=0.001)
    table.journal.allow = lambda usd: False
    with pytest.raises(GaveUp) as gave_up:
        table.ask()
    assert table.provider.asked == []
    assert gave_up.value.failure.fault is Fault.BUDGET


def test_reservation_covers_the_worst_case_and_settles_the_real_cost() -> None:
    table = Table([GOOD], budget=True, price=0.001)
    reserved: list[float] = []

    def note(usd: float) -> bool:
        reserved.append(usd)
        return True

    table.journal.allow = note
    table.ask()
    assert reserved[0] >= 0.001 * (len("hello") + 10)
    assert table.journal.settled == [(reserved[0], 0.01)]


def test_cost_of_an_empty_answer_is_taken_from_the_budget() -> None:
    paid = CallFailed(
        "empty",
        "nothing.",
        transient=True,
        usage=Usage(input_tokens=5, output_tokens=0),
        cost_usd=0.5,
    )
    table = Table([paid, GOOD], budget=True, price=0.001)
    table.ask()
    assert [spent for _, spent in table.journal.settled] == [0.5, 0.01]


def test_a_provider_that_knows_no_tools_is_not_offered_any() -> None:
    table = Table([GOOD])
    with pytest.raises(GaveUp) as gave_up:
        table.ask(tools=(Tool(name="look", description="", parameters={}),))
    assert (gave_up.value.failure.kind, gave_up.value.failure.fault) == ("no_tools", Fault.HARNESS)
    assert table.provider.asked == []
