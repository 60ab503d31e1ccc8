"""People who are invited to a server, and their roles."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256


class VisitorRole(StrEnum):
    """Role of a visitor to the web app; `web.security.roles` lists the addresses that each role may use."""

    OWNER = "owner"
    REVIEWER = "reviewer"
    VIEWER = "viewer"


INVITED_ROLES = (VisitorRole.REVIEWER, VisitorRole.VIEWER)
"""Roles that an invitation can give; the owner uses the server's own token instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person with an invitation; `revoked` is the time at which the invitation ended, None while it is valid."""

    name: str
    role: VisitorRole
    invited: str
    revoked: str | None = None


def session_of(token: str) -> str:
    """Return the session cookie for a token; it does not reveal the token and stays valid after a restart."""
    # A JSON string may contain a lone surrogate.
    return hmac.new(token.encode("utf-8", "surrogatepass"), b"assay session 1", sha256).hexdigest()


def session_digest(session: str) -> str:
    """Return the hash of a session cookie for the store, so that a copy of the store does not allow signing in."""
    return sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
