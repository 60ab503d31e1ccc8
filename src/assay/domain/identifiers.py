"""Identifiers as distinct types, so that a type checker reports, for example, a trial's id passed as an assessment's id."""

from __future__ import annotations

import unicodedata
from typing import NewType

RunId = NewType("RunId", str)
"""`YYYYMMDD-HHMMSS-<suite>-<four letters>`."""

TrialKey = NewType("TrialKey", int)
"""The store's number for a trial; people see it as `t17`."""

AssessmentKey = NewType("AssessmentKey", int)
"""The store's number for an assessment; people see it as `a17`."""

TaskKey = NewType("TaskKey", int)
"""The store's number for a task with one particular content digest."""


def folded(name: str) -> str:
    """Return a name with its case folded, for comparison: `Alice` and `alice` are the same candidate."""
    return unicodedata.normalize("NFC", name).casefold()


def shown_trial(key: int) -> str:
    """Return a trial's id in the form that people type and read, such as `t17`."""
    return f"t{key}"


def shown_assessment(key: int) -> str:
    """Return an assessment's id in the form that people type and read, such as `a17`."""
    return f"a{key}"
