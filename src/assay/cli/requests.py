"""Pass the options of a command as one typed request of `app`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Request = TypeVar("Request", bound="DataclassInstance")
Others = ParamSpec("Others")


def takes(
    request: type[Request], *, without: Collection[str] = ()
) -> Callable[[Callable[Concatenate[Request, Others], int]], Callable[Others, int]]:
    """Return a decorator that calls a command with a request, built from the options that have the
    names of its fields. Write it above these options.

    `without`: fields that the command line does not set. Raises TypeError, when the command is
    imported, for another field without an option.
    """
    names = {field.name for field in fields(request)} - {*without}

    def decorate(command: Callable[Concatenate[Request, Others], int]) -> Callable[Others, int]:
        options = {option.name for option in vars(command)["__click_params__"]}
        if lacking := sorted(names - options):
            raise TypeError(f"{command.__name__}: no option sets {lacking} of {request.__name__}.")

        @wraps(command)
        def with_request(*requests: Others.args, **values: Others.kwargs) -> int:
            built = request(**{name: values.pop(name) for name in names})
            return command(built, *requests, **values)

        vars(with_request)["request_fields"] = names
        return with_request

    return decorate
