"""Token management service."""

import random
import string
import time

ALPHABET = string.ascii_letters + string.digits
TOKEN_LENGTH = 32


class TokenError(Exception):
    pass


class TokenStore:
    def __init__(self, clock=time.time, on_event=None):
        self._clock = clock
        self._on_event = on_event
        self._by_token = {}

    def _generate(self):
        while True:
            token = "".join(random.choice(ALPHABET) for _ in range(TOKEN_LENGTH))
            if token not in self._by_token:
                return token

    def _emit(self, kind, user):
        if self._on_event is not None:
            self._on_event({"kind": kind, "user": user, "at": self._clock()})

    def issue(self, user, ttl_s):
        if not user:
            raise TokenError("user must not be empty")
        if ttl_s <= 0:
            raise TokenError("ttl_s must be positive")
        token = self._generate()
        self._by_token[token] = {"user": user, "expires": self._clock() + ttl_s}
        self._emit("issued", user)
        return token

    def resolve(self, token):
        data = self._by_token.get(token)
        if data is None:
            return None
        if data["expires"] < self._clock():
            self._emit("expired", data["user"])
            return None
        return data["user"]

    def revoke(self, user):
        for token, data in self._by_token.items():
            if data["user"] == user:
                del self._by_token[token]
                self._emit("revoked", user)

    def cleanup(self):
        now = self._clock()
        self._by_token = {t: d for t, d in self._by_token.items() if d["expires"] > now}
