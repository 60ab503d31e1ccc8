"""Attacks use the command line, the model server and the project folder of the journeys, and count
their cases.
"""

from collections.abc import Generator
from typing import Any

import pytest
from tests.attack import figures
from tests.journey.conftest import assay, project, server

__all__ = ["assay", "project", "server"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    figures.note(item, report)
    return report
