"""Convert query functions to methods of the store's query classes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from assay.store.database.connections import Database

P = ParamSpec("P")
R = TypeVar("R")


class Queries:
    """Base class for queries about a subject.

    Each method reads one snapshot and may be called from any thread.
    """

    def __init__(self, database: Database) -> None:
        self._database = database


def snapshot(
    query: Callable[Concatenate[Connection, P], R],
) -> Callable[Concatenate[Queries, P], R]:
    """Return a method that calls a query function with a connection as its first argument."""

    @wraps(query)
    def method(self: Queries, /, *args: P.args, **options: P.kwargs) -> R:
        with self._database.reading() as connection:
            return query(connection, *args, **options)

    return method


def streamed(
    query: Callable[Concatenate[Connection, P], Iterator[R]],
) -> Callable[Concatenate[Queries, P], Generator[R, None, None]]:
    """Return a method for a generator function; its snapshot stays open until the last row is
    read.
    """

    @wraps(query)
    def method(self: Queries, /, *args: P.args, **options: P.kwargs) -> Generator[R, None, None]:
        with self._database.reading() as connection:
            yield from query(connection, *args, **options)

    return method
