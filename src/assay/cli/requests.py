"""Pass options of a command on as one typed record instead of as separate keywords."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., Any])


def record_of(
    kind: type, *options: Callable[[Command], Command], into: str
) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, and passes their values to it as one
    dataclass of `kind`, in the keyword `into`.

    The command's other options remain keywords of their own. Raises TypeError, when the module of
    the command is imported, if an option is no field of the dataclass.
    """
    names = [_parameter(option) for option in options]
    unknown = set(names) - {field.name for field in fields(kind)}
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}.")

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(**given: Any) -> Any:
            record = kind(**{name: given.pop(name) for name in names})
            return command(**given, **{into: record})

        decorated: Command = call  # type: ignore[assignment] # click calls it by keywords alone
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def _parameter(option: Callable[[Any], Any]) -> str:
    """Return the keyword under which click passes an option on."""

    def bare() -> None: ...

    (parameter,) = option(bare).__click_params__
    return str(parameter.name)
