"""The functions that run in a child process, by name; the child imports only what it is asked for."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ISOLATED: Final[Mapping[str, str]] = MappingProxyType({})
"""`module:function` by name. A function takes JSON values by keyword and returns one; a module may have a `warm_up()`."""
