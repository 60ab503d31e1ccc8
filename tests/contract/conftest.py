"""Stores for contract tests: each test runs on SQLite and on a real PostgreSQL.

`make test` takes only the tests marked `quick_postgresql` there, `make test-slow` all others.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contract.rows import emptied
from tests.contract.stores import StandingClock
from tests.support.postgres import NoPostgres, new_database, postgres_server

from assay.store.opening import Store, open_store


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server, one for all workers; skips loudly, and fails in CI, where
    none can be had.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    server = postgres_server(shared / "postgres")
    try:
        address = server.__enter__()
    except NoPostgres as reason:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"PostgreSQL is needed in CI: {reason}")
        pytest.skip(f"PostgreSQL NOT TESTED: {reason}")
    yield address
    server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def reused(postgres: str) -> str:
    """One database of this worker for many tests: making one takes longer than most tests."""
    return new_database(postgres, f"w{secrets.token_hex(6)}")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a store without content."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'assay.db'}"
        return
    address: str = request.getfixturevalue("reused")
    yield address
    emptied(address)


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'assay.db'}"
    return new_database(request.getfixturevalue("postgres"), f"t{secrets.token_hex(6)}")


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], Store]]:
    """Opens the store as one more process would; all are closed at the end."""
    stores: list[Store] = []

    def open_it() -> Store:
        stores.append(open_store(url, clock=StandingClock()))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    return opened()
