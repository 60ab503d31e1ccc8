"""Registries of commands and pages that installed packages add to the surfaces.

A command is a `click.Command`. It takes what it needs from `assay.plugins`, such as `Project`. A
page is a function of a `Project` that returns a `PluginPage`; Assay draws it at `/pages/NAME`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from assay.plugin_registry import Registry

if TYPE_CHECKING:
    from click import Command

    from assay.app.python_api.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A part of a plug-in's page: a heading, a paragraph and a table, each of which may be empty.

    Each row has one cell per column. Assay shows texts as they are, so HTML in them is not
    interpreted.
    """

    heading: str = ""
    text: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | float | None, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginPage:
    """A page that a plug-in returns, for people and as JSON (`/pages/NAME.json`)."""

    title: str
    sections: tuple[PageSection, ...]


class PagePlugin(Protocol):
    """A page: reads what it needs from the project and returns what to show."""

    def __call__(self, project: Project, /) -> PluginPage:
        """Return the page; an `AssayError` becomes the page's message."""
        ...


COMMAND_PLUGINS: Final[Registry[Command]] = Registry(
    kind="command", group="assay.commands", own={}, members=("invoke", "make_context", "params")
)

PAGE_PLUGINS: Final[Registry[PagePlugin]] = Registry(
    kind="page", group="assay.pages", own={}, members=("__call__",)
)
