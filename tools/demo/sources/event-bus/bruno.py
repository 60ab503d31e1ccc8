"""Simple publish/subscribe."""

from collections import defaultdict


class EventBus:
    handlers = defaultdict(list)

    def subscribe(self, topic, handler):
        self.handlers[topic].append(handler)

        def unsubscribe():
            if handler in self.handlers[topic]:
                self.handlers[topic].remove(handler)

        return unsubscribe

    def publish(self, topic, event):
        errors = []
        for handler in self.handlers[topic]:
            try:
                handler(event)
            except Exception as e:
                print("handler failed:", e)
                errors.append(e)
        return errors

    def clear(self, topic):
        self.handlers[topic] = []
