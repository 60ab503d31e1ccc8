"""Registries of commands and pages that installed packages add to the surfaces.

A command is a `click.Command`. It takes what it needs from `assay.plugins`, such as `Project`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.plugin_registry import Registry

if TYPE_CHECKING:
    from click import Command

COMMAND_PLUGINS: Final[Registry[Command]] = Registry(
    kind="command", group="assay.commands", own={}, members=("invoke", "make_context", "params")
)
