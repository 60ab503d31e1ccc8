"""Settings for all tests."""

import asyncio
import gc
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from sqlalchemy import URL, Engine, create_engine

from assay.store.database import connections

# The machines are shared, so a slow example is no failure. The examples are the same each time, so
# that what was green stays green. `make test` tries few of them, `make test-slow` all, and `make
# bench` new ones.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10)
settings.register_profile("full", deadline=None, derandomize=True, max_examples=200)
settings.register_profile("anew", deadline=None, max_examples=200)
settings.load_profile("quick")
IN_BROWSER = frozenset({"chromium", "shared_page", "page"})
"""Fixtures of tests that drive a browser."""
pytest.register_assert_rewrite("assay.testing")
# With this package, importing jsonschema builds 38 grammars for 3 s, in every worker; no schema
# here names an IRI's format.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment] # which is how an import is made to fail


@pytest.fixture(scope="session", autouse=True)
def shared_statements() -> Iterator[None]:
    """Let all SQLite stores of this worker share one cache of compiled statements.

    A process of `assay` opens one store, a worker of these tests thousands. Compiling statements
    anew for each took a third of the CPU time of tests on stores. The dialect is shared too,
    because it is part of the cache's keys.
    """
    first: list[Engine] = []

    def sharing(url: URL, **options: Any) -> Engine:
        engine = create_engine(url, query_cache_size=4000, **options)
        if engine.dialect.name == "sqlite":
            first[:] = first or [engine]
            engine.dialect, engine._compiled_cache = first[0].dialect, first[0]._compiled_cache
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "create_engine", sharing)
        yield


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import another part of the test files first in each worker, and look for no garbage before
    all are imported.

    pytest rewrites the assertions of a file that is new and keeps the result. Workers that import
    all files in the same order each rewrite all of them, which takes a worker in a fresh clone half
    of its time until the first test.
    """
    gc.disable()
    worker, count = (
        os.environ.get("PYTEST_XDIST_WORKER", "gw0"),
        int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
    )
    if count > 1 and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        files = sorted(Path(__file__).parent.rglob("test_*.py"))
        for path in files[int(worker.removeprefix("gw")) :: count]:
            with suppress(Exception, pytest.skip.Exception):  # collection reports it
                import_module(
                    ".".join(path.relative_to(session.config.rootpath).with_suffix("").parts)
                )


def pytest_collection_finish() -> None:
    """Exempt the half a million objects of the collected tests from garbage collection, which took
    a tenth of the time.
    """
    gc.freeze()
    gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test on PostgreSQL or in a browser as slow, unless it is one of the few that `make
    test` runs there too.

    A test takes several times as long on PostgreSQL as on SQLite, and 1.4 s of CPU on average in a
    browser. A browser test that fails is run once more, and the summary names it: on a busy
    machine, the browser may stall for longer than a test foresees.
    """
    callspec = getattr(item, "callspec", None)
    if (
        callspec
        and "postgresql" in callspec.params.values()
        and not item.get_closest_marker("quick_postgresql")
    ):
        item.add_marker(pytest.mark.slow)
    named = set(getattr(item, "fixturenames", ())) - set(callspec.params if callspec else ())
    if IN_BROWSER & named:
        item.add_marker(pytest.mark.flaky(reruns=1))
        if not item.get_closest_marker("quick_browser"):
            item.add_marker(pytest.mark.slow)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the files with the most browser tests begin first among those of `tests/web`, so that all
    workers end together.
    """
    in_browser = Counter(item.path for item in items if "page" in getattr(item, "fixturenames", ()))
    start = next(
        (n for n, item in enumerate(items) if item.nodeid.startswith("tests/web/")), len(items)
    )
    items[start:] = sorted(items[start:], key=lambda item: -in_browser[item.path])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    with _no_loop_of_the_browser(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    with _no_loop_of_the_browser(item):
        return (yield)


@contextmanager
def _no_loop_of_the_browser(item: pytest.Item) -> Iterator[None]:
    """Hide the event loop that Playwright leaves running in this thread from a test that drives no
    browser.

    The browser lives as long as the worker, and `asyncio.run` refuses to begin beside a running
    loop. Which tests follow a browser test in a worker is chance, so that without this a test would
    fail on some machines only.
    """
    if {"chromium", "page"} & set(getattr(item, "fixturenames", ())):
        yield
        return
    running_loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(running_loop)
