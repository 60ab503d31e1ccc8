"""Identifiers as distinct types, so that one is never passed for another."""

from __future__ import annotations

import unicodedata
from typing import NewType

RunId = NewType("RunId", str)
"""`YYYYMMDD-HHMMSS-<suite>-<four letters>`."""

TrialKey = NewType("TrialKey", int)
"""The store's number of a trial; people see `t17`."""

AssessmentKey = NewType("AssessmentKey", int)
"""The store's number of an assessment; people see `a17`."""

TaskKey = NewType("TaskKey", int)
"""The store's number of a task with one content digest."""


def folded(name: str) -> str:
    """Return a name with case folded, for comparison: `Alice` and `alice` are one candidate."""
    return unicodedata.normalize("NFC", name).casefold()


def shown_trial(key: int) -> str:
    """Return a trial's id as people type and read it: `t17`."""
    return f"t{key}"


def shown_assessment(key: int) -> str:
    """Return an assessment's id as people type and read it: `a17`."""
    return f"a{key}"
