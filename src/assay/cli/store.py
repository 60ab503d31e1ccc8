"""`assay store backup`, `restore` and `copy`: copy the whole store."""

from __future__ import annotations

import click

from assay.cli.options import common, store_url, workspace
from assay.cli.output import answer, counted
from assay.cli.parameters import argument


@click.group()
def store() -> None:
    """Back up, restore or copy the store. Every copy is verified row by row."""


@store.command()
@argument("file", metavar="FILE")
@common
def backup(file: str, store: str | None, as_json: bool) -> int:
    """Copy the store into FILE, a new SQLite file, even while a run or a server uses it."""
    return _to(file, store, as_json=as_json)


@store.command()
@argument("target", metavar="URL")
@common
def copy(target: str, store: str | None, as_json: bool) -> int:
    """Copy the store into an empty one: a file, or postgresql://…"""
    return _to(target, store, as_json=as_json)


@store.command()
@argument("file", metavar="FILE")
@common
def restore(file: str, store: str | None, as_json: bool) -> int:
    """Copy a backup into the store, which must be new or empty."""
    from assay.app import store_copies

    with workspace(store) as opened:
        copied = store_copies.copy_from(opened, store_url(file) or file)
    return answer(copied, f"{counted(copied.rows, 'row')} restored and verified", as_json=as_json)


def _to(target: str, source: str | None, *, as_json: bool) -> int:
    from assay.app import store_copies

    with workspace(source) as opened:
        copied = store_copies.copy_to(opened, store_url(target) or target)
    return answer(copied, f"{counted(copied.rows, 'row')} copied and verified", as_json=as_json)
