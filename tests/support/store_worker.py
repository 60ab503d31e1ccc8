"""A process that works on a run until nothing is left: `python -m tests.support.store_worker URL
RUN [--endless-claims]`.

Prints `claimed KEY` before and `recorded KEY` after each trial, so that a test that kills it knows
what it had been told.
"""

from __future__ import annotations

import asyncio
import sys

from tests.contract.stores import StandingClock, judged

from assay.domain.assessment import Response
from assay.domain.identifiers import RunId
from assay.store.opening import Store, open_store


async def work(store: Store, run: RunId, *, at_once: int) -> None:
    while claimed := store.journal.claim(run, limit=at_once):
        for trial in claimed:
            print("claimed", trial.key, flush=True)

        async def one(place: int) -> None:
            trial = claimed[place]  # awaited before the next claim
            await store.journal.record(
                judged(trial, responses=[Response(candidate="alice", text="x" * 2000)])
            )
            print("recorded", trial.key, flush=True)

        await asyncio.gather(*(one(place) for place in range(len(claimed))))


def main() -> None:
    url, run = sys.argv[1:3]
    store = open_store(url, clock=StandingClock())
    print("ready", flush=True)
    if sys.stdin.readline():  # waits to be told, so that several start together
        asyncio.run(work(store, RunId(run), at_once=4))
    store.close()


if __name__ == "__main__":
    main()
