"""Sliding-window rate limiter: at most `limit` calls per key in any `window_s` seconds."""

import threading
import time
from collections import deque
from collections.abc import Callable


class RateLimiter:
    def __init__(self, limit: int, window_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        if limit < 1 or window_s <= 0:
            raise ValueError(f"limit and window_s must be positive, got {limit} and {window_s}")
        self._limit = limit
        self._window_s = window_s
        self._clock = clock
        self._lock = threading.Lock()  # protects _calls and _next_sweep
        self._calls: dict[str, deque[float]] = {}
        self._next_sweep = clock() + window_s

    def allow(self, key: str) -> bool:
        """True, and the call is counted, while `key` has room in the window."""
        with self._lock:
            now = self._clock()
            self._sweep_if_due(now)
            calls = self._calls.setdefault(key, deque())
            self._drop_expired(calls, now)
            if len(calls) >= self._limit:
                return False
            calls.append(now)
            return True

    def tracked_keys(self) -> int:
        with self._lock:
            return len(self._calls)

    def _drop_expired(self, calls: deque[float], now: float) -> None:
        while calls and now - calls[0] >= self._window_s:
            calls.popleft()

    def _sweep_if_due(self, now: float) -> None:
        # Once a window is enough: a key that was idle for one window has nothing left to remember.
        if now < self._next_sweep:
            return
        self._next_sweep = now + self._window_s
        for key in list(self._calls):
            self._drop_expired(self._calls[key], now)
            if not self._calls[key]:
                del self._calls[key]
