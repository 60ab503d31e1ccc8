"""LRU cache with statistics and an eviction callback."""

from dataclasses import dataclass


@dataclass
class CacheStats:
    hits: int = 0
    misses: int = 0
    evictions: int = 0

    @property
    def hit_rate(self):
        total = self.hits + self.misses
        return self.hits / total if total else 0.0


class LRUCache:
    def __init__(self, capacity, on_evict=None):
        if capacity < 1:
            raise ValueError("capacity must be >= 1")
        self.capacity = capacity
        self.on_evict = on_evict
        self.stats = CacheStats()
        self._values = {}
        self._order = []

    @property
    def hits(self):
        return self.stats.hits

    @property
    def misses(self):
        return self.stats.misses

    def get(self, key, default=None):
        value = self._values.get(key)
        if value is None:
            self.stats.misses += 1
            return default
        self.stats.hits += 1
        self._order.remove(key)
        self._order.append(key)
        return value

    def put(self, key, value):
        if len(self._values) >= self.capacity:
            self._evict()
        if key in self._values:
            self._order.remove(key)
        self._values[key] = value
        self._order.append(key)

    def _evict(self):
        oldest = self._order.pop(0)
        value = self._values.pop(oldest)
        self.stats.evictions += 1
        if self.on_evict is not None:
            self.on_evict(oldest, value)

    def __len__(self):
        return len(self._values)
