"""Retry queue."""

import random
import time


class RetryQueue:
    def __init__(self, clock=time.time, jitter=random.random, max_attempts=5, base_s=1.0):
        self.clock = clock
        self.jitter = jitter
        self.max_attempts = max_attempts
        self.base_s = base_s
        self.items = []
        self.dead = []

    def push(self, job):
        self.items.append({"job": job, "tries": 0, "when": self.clock()})

    def run_due(self):
        done = 0
        for item in list(self.items):
            if item["when"] > self.clock():
                continue
            self.items.remove(item)
            try:
                item["job"]()
                done += 1
            except:
                item["tries"] += 1
                if item["tries"] > self.max_attempts:
                    self.dead.append(item["job"])
                else:
                    wait = self.base_s * 2 ** item["tries"]
                    item["when"] = self.clock() + wait + self.jitter()
                    self.items.append(item)
        return done

    def __len__(self):
        return len(self.items)
