"""Token store with expiry."""

import secrets
import threading
import time


class TokenStore:
    def __init__(self, clock=time.time):
        self.clock = clock
        self.lock = threading.Lock()
        self.tokens = {}

    def issue(self, user, ttl_s):
        token = secrets.token_hex(16)
        with self.lock:
            self.tokens[token] = (user, self.clock() + ttl_s)
        return token

    def resolve(self, token):
        with self.lock:
            entry = self.tokens.get(token)
            if entry is None:
                return None
            user, expires = entry
            if self.clock() >= expires:
                del self.tokens[token]
                return None
            return user

    def revoke(self, user):
        with self.lock:
            for token in list(self.tokens):
                if self.tokens[token][0] == user:
                    del self.tokens[token]

    def __len__(self):
        return len(self.tokens)
