"""Invite reviewers and viewers to the web app, list them, and revoke an invitation."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import category
from urllib.parse import urlencode

from assay.domain.errors import InputError, UnknownName
from assay.domain.people import INVITED_ROLES, Person, VisitorRole, token_digest

if TYPE_CHECKING:
    from assay.store.opening import Store

LONGEST_NAME = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A new invitation.

    The token and link can be shown only now, because the store keeps only the token's hash.
    """

    name: str
    role: str
    token: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonDocument:
    """JSON of one invitation; `revoked` is null while the invitation is valid."""

    name: str
    role: str
    invited: str
    revoked: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleDocument:
    """JSON of `assay reviewers list`."""

    reviewers: tuple[PersonDocument, ...]


def checked_name(name: str) -> str:
    """Return a name with single spaces; raises `InputError` for an empty or long name, a slash or
    invisible characters.
    """
    plain = " ".join(name.split())
    if not plain:
        raise InputError("name", "is empty.")
    # Names that differ only in an invisible character would look identical.
    if any(category(letter).startswith("C") for letter in plain):
        raise InputError(
            "name", "has invisible characters.", remedy="Type it instead of pasting it."
        )
    if len(plain) > LONGEST_NAME:
        raise InputError("name", f"has {len(plain):,} characters, more than {LONGEST_NAME}.")
    if "/" in plain:
        raise InputError(
            "name",
            "has a slash, which a person's web address cannot contain.",
            remedy="Leave it out.",
        )
    return plain


def invite(store: Store, name: str, *, role: str, base: str) -> Invitation:
    """Invite a person and return the invitation.

    Earlier invitations with the same name become invalid.

    Args:
        role: `reviewer` or `viewer`; raises `UnknownName` for any other role.
        base: address of the server, used as the start of the link.
    """
    if role not in INVITED_ROLES:
        raise UnknownName("role", role, INVITED_ROLES, remedy="Roles are reviewer and viewer.")
    token = secrets.token_urlsafe(24)
    person = Person(name=checked_name(name), role=VisitorRole(role), invited=store.clock.now())
    store.people.invite(person, digest=token_digest(token))
    link = f"{base.rstrip('/')}{'/review' if person.role is VisitorRole.REVIEWER else '/'}?{urlencode({'token': token})}"
    return Invitation(name=person.name, role=person.role, token=token, link=link)


def revoke(store: Store, name: str) -> None:
    """Revoke a person's invitation at once, but keep the person's decisions; raises
    `UnknownName`.
    """
    store.people.revoke(" ".join(name.split()), at=store.clock.now())


def people(store: Store) -> PeopleDocument:
    """Return all invitations, oldest first, revoked ones included."""
    return PeopleDocument(
        reviewers=tuple(
            PersonDocument(
                name=person.name, role=person.role, invited=person.invited, revoked=person.revoked
            )
            for person in store.people.read().values()
        )
    )
