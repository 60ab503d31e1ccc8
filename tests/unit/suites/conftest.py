"""A folder to write suites into, and a loader that reads them from there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from assay.domain.suite import Suite
from assay.suites.loading import load_suite

Load: TypeAlias = Callable[..., Suite]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a text under a name (default `suite.yaml`) and load it."""

    def loaded(text: str, name: str = "suite.yaml", **given: object) -> Suite:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return load_suite(path, **given)  # type: ignore[arg-type] # whatever the test hands over

    return loaded
