"""What is run in a process of its own because the text it reads is hostile or the code is a stranger's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from assay.domain.digest import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedRequest:
    """A named pure function to be called with JSON arguments; it has `time_limit_s` seconds of wall time."""

    function: str
    arguments: Mapping[str, JsonValue]
    time_limit_s: float = 1.5


class StopKind(StrEnum):
    """Why a function gave no value."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASHED = "crashed"
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Returned:
    """The function's value, as JSON has it."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Stopped:
    """The function gave no value; `detail` is a sentence for a person."""

    kind: StopKind
    detail: str


IsolatedAnswer: TypeAlias = Returned | Stopped
