"""Simple rate limiter based on time buckets."""

import time

DEFAULT_WINDOW = 60

counters = {}


class RateLimiter:
    def __init__(self, limit, window_s=DEFAULT_WINDOW):
        self.limit = limit
        self.window_s = window_s

    def allow(self, key):
        bucket = int(time.time() / self.window_s)
        entry = counters.get(key)
        if entry is None or entry[0] != bucket:
            entry = [bucket, 0]
            counters[key] = entry
        if entry[1] < self.limit:
            entry[1] = entry[1] + 1
            return True
        return False

    def remaining(self, key):
        entry = counters.get(key)
        if entry is None:
            return self.limit
        return self.limit - entry[1]


def reset():
    counters.clear()
