"""Declare options and arguments of commands with keywords that the type checker knows; click's own
decorators take any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, Unpack

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class ParameterSettings(TypedDict, total=False):
    """Settings of every parameter, as click describes them."""

    type: object
    default: object
    required: bool
    callback: Callable[..., object]
    nargs: int
    metavar: str
    multiple: bool
    expose_value: bool
    is_eager: bool
    envvar: str


class OptionSettings(ParameterSettings, total=False):
    """Settings of an option, as click describes them."""

    help: str
    is_flag: bool
    flag_value: object
    show_default: bool | str


def option(*names: str, **settings: Unpack[OptionSettings]) -> Callable[[Command], Command]:
    """Return a decorator that adds an option to a command."""
    return click.option(*names, **settings)


def argument(name: str, **settings: Unpack[ParameterSettings]) -> Callable[[Command], Command]:
    """Return a decorator that adds an argument to a command."""
    return click.argument(name, **settings)
