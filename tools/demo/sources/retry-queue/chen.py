"""Retry queue with exponential back-off."""

import heapq
import logging

log = logging.getLogger(__name__)


class RetryPolicy:
    def __init__(self, max_attempts=5, base_s=1.0, factor=2.0, jitter_share=0.1):
        self.max_attempts = max_attempts
        self.base_s = base_s
        self.factor = factor
        self.jitter_share = jitter_share

    def delay(self, attempt, jitter):
        pure = self.base_s * self.factor ** (attempt - 1)
        return pure * (1 + self.jitter_share * jitter())

    def exhausted(self, attempt):
        return attempt >= self.max_attempts


class RetryQueue:
    def __init__(self, clock, jitter, policy=None):
        self._clock = clock
        self._jitter = jitter
        self._policy = policy or RetryPolicy()
        self._heap = []
        self._attempts = {}
        self.dead = []

    def push(self, job):
        self._attempts[id(job)] = 0
        heapq.heappush(self._heap, (self._clock(), job))

    def run_due(self):
        succeeded = 0
        while self._heap and self._heap[0][0] <= self._clock():
            _, job = heapq.heappop(self._heap)
            self._attempts[id(job)] += 1
            attempt = self._attempts[id(job)]
            try:
                job()
            except Exception as error:
                log.warning("attempt %d failed: %s", attempt, error)
                if self._policy.exhausted(attempt):
                    self.dead.append((job, str(error)))
                else:
                    due = self._clock() + self._policy.delay(attempt, self._jitter)
                    heapq.heappush(self._heap, (due, job))
            else:
                succeeded += 1
                del self._attempts[id(job)]
        return succeeded

    def __len__(self):
        return len(self._heap)
