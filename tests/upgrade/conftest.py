"""Versions are counted like the cases of attacks, because the table of faults states them."""

from tests.attack.conftest import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]
