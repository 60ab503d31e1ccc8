"""Retry queue: failed jobs come back after growing waits, and hopeless ones are kept as dead letters."""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

Job = Callable[[], object]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    job: Job
    attempts: int
    error: Exception


class RetryQueue:
    def __init__(
        self,
        clock: Callable[[], float],
        jitter: Callable[[], float],
        *,
        max_attempts: int = 5,
        base_s: float = 1.0,
        cap_s: float = 60.0,
    ) -> None:
        self._clock = clock
        self._jitter = jitter  # gives a number in [0, 1)
        self._max_attempts = max_attempts
        self._base_s = base_s
        self._cap_s = cap_s
        self._ticket = itertools.count()  # breaks ties, so that jobs themselves are never compared
        self._heap: list[tuple[float, int, int, Job]] = []
        self.dead: list[DeadLetter] = []

    def push(self, job: Job) -> None:
        self._schedule(self._clock(), 0, job)

    def run_due(self) -> int:
        """Run every job that is due now; returns how many succeeded."""
        now = self._clock()
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap))
        return sum(self._try_once(attempts + 1, job) for _, _, attempts, job in due)

    def __len__(self) -> int:
        return len(self._heap)

    def _try_once(self, attempt: int, job: Job) -> bool:
        try:
            job()
        except Exception as error:
            if attempt >= self._max_attempts:
                self.dead.append(DeadLetter(job, attempt, error))
            else:
                self._schedule(self._clock() + self._wait_s(attempt), attempt, job)
            return False
        return True

    def _wait_s(self, attempt: int) -> float:
        ceiling = min(self._cap_s, self._base_s * 2 ** (attempt - 1))
        return ceiling * (0.5 + 0.5 * self._jitter())

    def _schedule(self, due_at: float, attempts: int, job: Job) -> None:
        heapq.heappush(self._heap, (due_at, next(self._ticket), attempts, job))
