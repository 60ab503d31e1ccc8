"""Sessions of signed-in browsers: begun with a token, stored with a hashed cookie, ended by
sign-out, revocation or age.

House rules. A cookie is a random value that only the store knows as a hash. An invitation's token
opens one session; the owner's token opens any number. A session ends with the token that began it.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final

from assay.domain.people import SESSION_DAYS, Session, VisitorRole, session_digest, token_digest
from assay.web.security.roles import Visitor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.app.workspace import Workspace
    from assay.domain.people import Person

LOOK_S: Final = 1.0
"""Seconds until a sign-out or a revoked invitation takes effect, even if it happened in another
process.
"""

_LOOK_FOR_UNKNOWN_S: Final = 0.1
"""Seconds between looks for a session that is not known yet, such as one that another process has
just begun.
"""


@dataclass(frozen=True, slots=True)
class SessionRight:
    """Right to begin a session. `token`: hash of the token that gives it."""

    visitor: Visitor
    token: str


class Ended(Enum):
    """A session that was open once.

    It gives no access, not even where people without a session are the owner.
    """

    ENDED = "ended"


class Sessions:
    """The sessions of one store; changes by another process take effect after `LOOK_S` seconds."""

    def __init__(self, workspace: Workspace, *, owner_token: str | None) -> None:
        self._workspace = workspace
        self._owner = None if owner_token is None else token_digest(owner_token)
        self._people: Mapping[str, Person] = {}
        self._sessions: Mapping[str, Session] = {}
        self._looked = float("-inf")
        self._changes = 0

    async def invited(self, token: str) -> SessionRight | None:
        """Return the grant of an invitation's token; None for a wrong or revoked one."""
        await self._look(LOOK_S)
        # Looked up by hash, so that the duration reveals nothing about the tokens.
        person = self._people.get(token_digest(token))
        if person is None:
            await self._look(_LOOK_FOR_UNKNOWN_S)
            person = self._people.get(token_digest(token))
        if person is None or person.revoked:
            return None
        return SessionRight(Visitor(person.role, person.name), token_digest(token))

    def owner(self) -> SessionRight:
        """Return the owner's grant; only for servers with a token."""
        assert self._owner is not None  # callers have compared the token
        return SessionRight(Visitor(VisitorRole.OWNER), self._owner)

    async def begin(self, grant: SessionRight) -> str | None:
        """Begin a session and return the value of its cookie; None if the invitation was used
        before.
        """
        cookie = secrets.token_urlsafe(32)
        begun = self._workspace.clock.now()
        until = datetime.fromisoformat(begun) + timedelta(days=SESSION_DAYS)
        session = Session(
            role=grant.visitor.role,
            name=grant.visitor.name,
            granted_by=grant.token,
            begun=begun,
            until=until.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        )
        store = self._workspace.store.sessions
        if not await asyncio.to_thread(lambda: store.begin(session, digest=session_digest(cookie))):
            return None
        self._changed({**self._sessions, session_digest(cookie): session})
        return cookie

    async def end(self, cookie: str) -> None:
        """End a session on the server, so that its cookie opens nothing any more."""
        at = self._workspace.clock.now()
        store = self._workspace.store.sessions
        await asyncio.to_thread(lambda: store.end(session_digest(cookie), at=at))
        known = self._sessions.get(session_digest(cookie))
        if known is not None:
            self._changed({**self._sessions, session_digest(cookie): replace(known, ended=at)})

    async def visitor(self, cookie: str) -> Visitor | Ended | None:
        """Return the visitor of a session, `ENDED` if the session or its token has ended, and None
        for an unknown session.
        """
        await self._look(LOOK_S)
        digest = session_digest(cookie)
        if digest not in self._sessions:
            await self._look(_LOOK_FOR_UNKNOWN_S)
        session = self._sessions.get(digest)
        if session is None:
            return None
        if not session.is_open(self._workspace.clock.now()):
            return Ended.ENDED
        if session.name is None:
            return Visitor(session.role) if session.granted_by == self._owner else Ended.ENDED
        person = self._people.get(session.granted_by)
        return (
            Ended.ENDED if person is None or person.revoked else Visitor(person.role, person.name)
        )

    def _changed(self, sessions: Mapping[str, Session]) -> None:
        self._sessions = sessions
        self._changes += 1

    async def _look(self, age_s: float) -> None:
        now = self._workspace.clock.monotonic()
        if now - self._looked < age_s:
            return
        changes = self._changes
        people, sessions = await asyncio.to_thread(self._read)
        # otherwise this may be older than a sign-in or sign-out that came in between
        if changes == self._changes:
            self._people, self._sessions, self._looked = people, sessions, now

    def _read(self) -> tuple[Mapping[str, Person], Mapping[str, Session]]:
        store = self._workspace.store
        return store.people.read(), store.sessions.read()
