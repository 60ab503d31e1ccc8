"""Identifiers as distinct types, so that a type checker reports, for example, a trial's id passed
as an assessment's id.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NewType

RunId = NewType("RunId", str)
"""`YYYYMMDD-HHMMSS-<suite>-<four letters>`."""

TrialKey = NewType("TrialKey", int)
"""The store's number for a trial; people see it as `t17`."""

AssessmentKey = NewType("AssessmentKey", int)
"""The store's number for an assessment; people see it as `a17`."""

TaskKey = NewType("TaskKey", int)
"""The store's number for a task with one particular content digest."""


_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that a screen does not show: Default_Ignorable_Code_Point of the Unicode Character
Database.
"""


def folded(name: str) -> str:
    """Return a name for comparison: names that differ only in how they are typed are the same
    person or candidate.

    Case, width, compatibility forms such as ligatures, composed or decomposed accents, invisible
    characters and spaces at either end are ignored. Names are stored and shown as they were typed.

    Source: Unicode Standard, section 3.13, definition R5 (toNFKC_Casefold), with an additional
        removal of spaces at either end.
    """
    if name.isascii():
        return name.casefold().strip()
    seen = _UNSEEN.sub("", unicodedata.normalize("NFD", name))
    # Compatibility forms may have case of their own, and a composed letter may have another fold
    # than its parts.
    for _ in range(2):
        seen = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", seen).casefold())
    return _UNSEEN.sub("", seen).strip()


def folded_before(name: str) -> str:
    """Return a name as stores of earlier versions folded it, with width and invisible characters
    unchanged.
    """
    return unicodedata.normalize("NFC", name).casefold()


def shown_trial(key: int) -> str:
    """Return a trial's id in the form that people type and read, such as `t17`."""
    return f"t{key}"


def shown_assessment(key: int) -> str:
    """Return an assessment's id in the form that people type and read, such as `a17`."""
    return f"a{key}"
