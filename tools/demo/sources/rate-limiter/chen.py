"""Pluggable rate limiting framework."""

import threading
import time
from abc import ABC, abstractmethod
from enum import Enum


class Decision(Enum):
    ALLOWED = "allowed"
    DENIED = "denied"


class ClockSource(ABC):
    @abstractmethod
    def now(self) -> float: ...


class MonotonicClock(ClockSource):
    def now(self) -> float:
        return time.monotonic()


class HistoryBackend(ABC):
    @abstractmethod
    def load(self, key: str) -> list[float]: ...

    @abstractmethod
    def save(self, key: str, stamps: list[float]) -> None: ...


class InMemoryBackend(HistoryBackend):
    def __init__(self) -> None:
        self._rows: dict[str, list[float]] = {}

    def load(self, key: str) -> list[float]:
        return list(self._rows.get(key, []))

    def save(self, key: str, stamps: list[float]) -> None:
        self._rows[key] = stamps


class LimitPolicy(ABC):
    @abstractmethod
    def decide(self, stamps: list[float], now: float) -> tuple[Decision, list[float]]: ...


class SlidingLogPolicy(LimitPolicy):
    def __init__(self, limit: int, window_s: float) -> None:
        self._limit = limit
        self._window_s = window_s

    def decide(self, stamps: list[float], now: float) -> tuple[Decision, list[float]]:
        live = [stamp for stamp in stamps if now - stamp < self._window_s]
        if len(live) < self._limit:
            return Decision.ALLOWED, [*live, now]
        return Decision.DENIED, live


class RateLimiter:
    def __init__(self, limit, window_s, clock=None, backend=None, policy_class=SlidingLogPolicy):
        self._policy = policy_class(limit, window_s)
        self._clock = clock or MonotonicClock()
        self._backend = backend or InMemoryBackend()
        self._mutex = threading.RLock()

    def allow(self, key: str) -> bool:
        with self._mutex:
            decision, stamps = self._policy.decide(self._backend.load(key), self._clock.now())
            self._backend.save(key, stamps)
            return decision is Decision.ALLOWED
