"""Thread-safe LRU cache on a hand-linked list: every operation takes constant time."""

import threading
from collections.abc import Hashable
from typing import Any


class _Node:
    __slots__ = ("key", "newer", "older", "value")

    def __init__(self, key: Hashable = None, value: Any = None) -> None:
        self.key = key
        self.value = value
        self.newer: _Node = self
        self.older: _Node = self


class LRUCache:
    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self._capacity = capacity
        self._lock = threading.Lock()
        self._nodes: dict[Hashable, _Node] = {}
        # One sentinel closes the ring: sentinel.older is the newest entry, sentinel.newer the oldest.
        self._sentinel = _Node()
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable, default: Any = None) -> Any:
        with self._lock:
            node = self._nodes.get(key)
            if node is None:
                self.misses += 1
                return default
            self.hits += 1
            self._unlink(node)
            self._link_as_newest(node)
            return node.value

    def put(self, key: Hashable, value: Any) -> None:
        with self._lock:
            node = self._nodes.get(key)
            if node is not None:
                node.value = value
                self._unlink(node)
            else:
                if len(self._nodes) >= self._capacity:
                    self._evict_oldest()
                node = self._nodes[key] = _Node(key, value)
            self._link_as_newest(node)

    def __len__(self) -> int:
        return len(self._nodes)

    def _evict_oldest(self) -> None:
        oldest = self._sentinel.newer
        self._unlink(oldest)
        del self._nodes[oldest.key]

    def _unlink(self, node: _Node) -> None:
        node.newer.older = node.older
        node.older.newer = node.newer

    def _link_as_newest(self, node: _Node) -> None:
        newest = self._sentinel.older
        node.older, node.newer = newest, self._sentinel
        newest.newer = node
        self._sentinel.older = node
