"""`assay candidates`: list, rename and merge candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from assay.cli.options import common, event_options, workspace
from assay.cli.output import answer, counted, print_json, say, say_table
from assay.cli.parameters import argument

if TYPE_CHECKING:
    from assay.domain.renaming import NameEvent


@click.group()
def candidates() -> None:
    """List candidates, and rename or merge them; every change can be undone."""


@candidates.command("list")
@common
def list_command(store: str | None, as_json: bool) -> int:
    """List candidates with their runs, and all renames and merges."""
    from assay.app.registry import candidates as verbs

    with workspace(store) as opened:
        known, changes = verbs.candidates(opened.store), verbs.events(opened.store)
    if as_json:
        print_json(verbs.list_document(known, changes))
        return 0
    rows = [
        (candidate.name, str(candidate.runs), candidate.last[:10], ", ".join(candidate.written))
        for candidate in known
    ]
    say_table(("candidate", "runs", "last", "also written"), rows, numbers=frozenset({1}))
    for event in changes:
        undone = "" if event.undone_by is None else f" (undone by n{event.undone_by})"
        say(f"n{event.id}  {event.at[:16].replace('T', ' ')}  {_sentence(event)}{undone}")
    return 0


def _name_change(name: str, about: str) -> click.Command:
    @argument("source", metavar="A")
    @argument("target", metavar="B")
    @event_options
    @common
    def command(
        source: str,
        target: str,
        reason: str,
        reviewer: str | None,
        store: str | None,
        as_json: bool,
    ) -> int:
        from assay.app.registry import candidates as verbs

        verb = verbs.rename if name == "rename" else verbs.merge
        with workspace(store) as opened:
            return _print_event(
                verb(opened, source, target, reason=reason, reviewer=reviewer), as_json=as_json
            )

    return click.command(name, help=about)(command)


candidates.add_command(_name_change("rename", "Rename candidate A to B."))
candidates.add_command(_name_change("merge", "Merge A into B: A's results count as B's."))


@candidates.command("undo")
@argument("event", metavar="ID")
@event_options
@common
def undo(event: str, reason: str, reviewer: str | None, store: str | None, as_json: bool) -> int:
    """Undo a rename or a merge."""
    from assay.app.registry import candidates as verbs

    with workspace(store) as opened:
        return _print_event(
            verbs.undo(opened, event, reason=reason, reviewer=reviewer), as_json=as_json
        )


def _print_event(event: NameEvent, *, as_json: bool) -> int:
    from assay.app.registry import candidates as verbs

    back = "" if event.undoes is not None else f"; `assay candidates undo n{event.id}` undoes this"
    text = f"n{event.id}: {_sentence(event)}, in {counted(len(event.runs), 'run')}{back}"
    return answer(verbs.event_document(event), text, as_json=as_json)


def _sentence(event: NameEvent) -> str:
    match event.verb.value:
        case "rename":
            return f"{event.source} renamed to {event.target}"
        case "merge":
            return f"{event.source} merged into {event.target}"
        case _:
            return f"n{event.undoes} undone: {event.target} is separate again"
