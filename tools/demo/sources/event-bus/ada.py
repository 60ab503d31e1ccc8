"""Event bus with priorities, middleware and topic patterns."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

Handler = Callable[[object], None]
Middleware = Callable[[str, object], object]


@dataclass(frozen=True, slots=True, order=True)
class _Subscription:
    rank: tuple[int, int]
    pattern: str = field(compare=False)
    handler: Handler = field(compare=False)


class EventBus:
    def __init__(self) -> None:
        self._lock = threading.RLock()  # protects _subscriptions and _middleware
        self._subscriptions: list[_Subscription] = []
        self._middleware: list[Middleware] = []
        self._ticket = itertools.count()

    def use(self, middleware: Middleware) -> None:
        """Let `middleware` see, and replace, every event before the handlers do."""
        with self._lock:
            self._middleware.append(middleware)

    def subscribe(self, topic: str, handler: Handler, *, priority: int = 0) -> Callable[[], None]:
        """Call `handler` for topics that match; the returned function unsubscribes, once or many times."""
        with self._lock:
            entry = _Subscription((-priority, next(self._ticket)), topic, handler)
            self._subscriptions.append(entry)
            self._subscriptions.sort()

        def unsubscribe() -> None:
            with self._lock:
                self._subscriptions = [other for other in self._subscriptions if other is not entry]

        return unsubscribe

    def publish(self, topic: str, event: object) -> list[Exception]:
        """Call every matching handler; returns what the failing ones raised."""
        with self._lock:
            targets = [entry for entry in self._subscriptions if fnmatchcase(topic, entry.pattern)]
            middleware = list(self._middleware)
        for step in middleware:
            event = step(topic, event)
        failures: list[Exception] = []
        for entry in targets:
            try:
                entry.handler(event)
            except Exception as error:
                failures.append(error)
        return failures
