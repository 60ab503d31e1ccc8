"""Numbers of Hypothesis examples for tests whose examples are expensive."""

from __future__ import annotations

from hypothesis import settings


def examples(full: int) -> int:
    """Return `full` in `make test-slow` and an eighth of it, at least two, in `make test`."""
    return full if settings().max_examples >= 100 else max(2, full // 8)
