"""`assay reviewers`: invite people to the web app."""

from __future__ import annotations

import click

from assay.cli.options import common, workspace
from assay.cli.output import answer, print_json, say, say_table, tell
from assay.cli.parameters import argument, option


@click.group()
def reviewers() -> None:
    """Invite reviewers and viewers to the web app, list them, and revoke an invitation."""


@reviewers.command("invite")
@argument("name")
@option(
    "--role",
    type=click.Choice(["reviewer", "viewer"]),
    default="reviewer",
    help="reviewer: reviews and sees their own figures. viewer: reads results.",
)
@option(
    "--url",
    default="http://127.0.0.1:8000",
    metavar="URL",
    help="Address of the server, for the link.",
)
@common
def invite(name: str, role: str, url: str, store: str | None, as_json: bool) -> int:
    """Invite NAME and print the link that signs them in. A second invitation replaces the first."""
    from assay.app import people as verbs

    with workspace(store) as opened:
        invitation = verbs.invite(opened.store, name, role=role, base=url)
    if as_json:
        print_json(invitation)
    else:
        say(invitation.link)
        tell(
            f"Send this link to {invitation.name} ({invitation.role}). It is not stored and cannot be shown again."
        )
    return 0


@reviewers.command("list")
@common
def list_command(store: str | None, as_json: bool) -> int:
    """List all invitations."""
    from assay.app import people as verbs

    with workspace(store) as opened:
        document = verbs.people(opened.store)
    if as_json:
        print_json(document)
        return 0
    rows = [
        (person.name, person.role, person.invited[:10], (person.revoked or "")[:10])
        for person in document.reviewers
    ]
    if rows:
        say_table(("name", "role", "invited", "revoked"), rows)
    else:
        say("Nobody has been invited.")
    return 0


@reviewers.command("revoke")
@argument("name")
@common
def revoke(name: str, store: str | None, as_json: bool) -> int:
    """End NAME's invitation, which signs them out and disables their link. Their decisions stay."""
    from assay.app import people as verbs

    with workspace(store) as opened:
        verbs.revoke(opened.store, name)
    return answer(
        {"revoked": name}, f"The invitation for {name} has been revoked.", as_json=as_json
    )
