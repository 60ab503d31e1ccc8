"""Session tokens that expire. Only digests are kept, so a memory dump gives away no usable token."""

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Session:
    user: str
    expires_at: float


class TokenStore:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # protects _sessions
        self._sessions: dict[str, Session] = {}

    def issue(self, user: str, ttl_s: float) -> str:
        if ttl_s <= 0:
            raise ValueError(f"ttl_s must be positive, got {ttl_s}")
        token = secrets.token_urlsafe(32)
        with self._lock:
            now = self._clock()
            self._purge(now)
            self._sessions[_digest(token)] = Session(user, now + ttl_s)
        return token

    def resolve(self, token: str) -> str | None:
        """The user behind `token`, or None when it is unknown, revoked or expired."""
        with self._lock:
            session = self._sessions.get(_digest(token))
            if session is None or self._clock() >= session.expires_at:
                return None
            return session.user

    def revoke(self, user: str) -> int:
        """End every session of `user`; returns how many there were."""
        with self._lock:
            doomed = [key for key, session in self._sessions.items() if session.user == user]
            for key in doomed:
                del self._sessions[key]
        return len(doomed)

    def _purge(self, now: float) -> None:
        self._sessions = {key: session for key, session in self._sessions.items() if now < session.expires_at}


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
