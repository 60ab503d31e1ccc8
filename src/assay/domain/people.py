"""People who are invited to a server, their roles, and the sessions of signed-in browsers."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final


class VisitorRole(StrEnum):
    """Role of a visitor to the web app; `web.security.roles` lists the addresses that each role may
    use.
    """

    OWNER = "owner"
    REVIEWER = "reviewer"
    VIEWER = "viewer"


INVITED_ROLES = (VisitorRole.REVIEWER, VisitorRole.VIEWER)
"""Roles that an invitation can give; the owner uses the server's own token instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person with an invitation; `revoked` is the time at which the invitation ended, None while
    it is valid.
    """

    name: str
    role: VisitorRole
    invited: str
    revoked: str | None = None


SESSION_DAYS: Final = 30
"""Days until a browser must sign in again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A signed-in browser.

    Attributes:
        name: the invited person; None for the owner.
        granted_by: `token_digest` of the token that the browser presented. The session ends with
            that token.
        begun, until: times of the sign-in and of the latest end.
        ended: time of the sign-out; None while the session is open.
    """

    role: VisitorRole
    name: str | None
    granted_by: str
    begun: str
    until: str
    ended: str | None = None

    def is_open(self, now: str) -> bool:
        """True if nobody has signed out and the time has not passed."""
        return self.ended is None and now < self.until


def token_digest(token: str) -> str:
    """Return the hash of a token for the store, so that a copy of the store does not allow signing
    in.
    """
    # A JSON string may contain a lone surrogate. The inner hash is how stores have kept invitations
    # since schema 0011.
    inner = hmac.new(token.encode("utf-8", "surrogatepass"), b"assay session 1", sha256).hexdigest()
    return sha256(inner.encode()).hexdigest()


def session_digest(session: str) -> str:
    """Return the hash of a session cookie for the store, so that a copy of the store does not allow
    signing in.
    """
    return sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
