"""In-process event bus: handlers run in the order in which they subscribed."""

from collections.abc import Callable

Handler = Callable[[object], None]


class EventBus:
    def __init__(self) -> None:
        self._handlers: dict[str, tuple[Handler, ...]] = {}

    def subscribe(self, topic: str, handler: Handler) -> Callable[[], None]:
        """Start calling `handler`; the returned function stops it again."""
        self._handlers[topic] = (*self._handlers.get(topic, ()), handler)
        active = True

        def unsubscribe() -> None:
            nonlocal active
            if active:
                active = False
                self._remove(topic, handler)

        return unsubscribe

    def publish(self, topic: str, event: object) -> list[Exception]:
        """Call every handler of `topic`; returns what the failing ones raised."""
        failures: list[Exception] = []
        # The tuple is never changed in place, so handlers may come and go while this loop runs.
        for handler in self._handlers.get(topic, ()):
            try:
                handler(event)
            except Exception as error:
                failures.append(error)
        return failures

    def _remove(self, topic: str, handler: Handler) -> None:
        remaining = list(self._handlers[topic])
        remaining.remove(handler)
        if remaining:
            self._handlers[topic] = tuple(remaining)
        else:
            del self._handlers[topic]
