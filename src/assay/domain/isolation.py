"""Records for calls of functions that run in a child process, because their code or input is
untrusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from assay.domain.digest import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedRequest:
    """A call to a named pure function, with JSON arguments and a limit on wall time."""

    function: str
    arguments: Mapping[str, JsonValue]
    time_limit_s: float = 1.5


class StopKind(StrEnum):
    """Reasons why a function returned no value."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASHED = "crashed"
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Returned:
    """The function's return value, as JSON."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Stopped:
    """The function returned no value; `detail` is a sentence for a person."""

    kind: StopKind
    detail: str


IsolatedAnswer: TypeAlias = Returned | Stopped
