"""Pages of installed packages, at `/pages/NAME`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from assay.app.python_api.project import Project
from assay.app.surface_plugins import PAGE_PLUGINS, PluginPage
from assay.app.wire import plain
from assay.domain.errors import AssayError, SettingsError
from assay.web.context import services_of
from assay.web.responses import Answer
from assay.web.templating import page_of

if TYPE_CHECKING:
    from assay.app.workspace import Workspace

router = APIRouter(include_in_schema=False)


@router.get("/pages/{name}.json")
def plugin_page_twin(request: Request, name: str) -> Response:
    return Answer(plain(_page(services_of(request).workspace, name)))


@router.get("/pages/{name}")
def plugin_page(request: Request, name: str) -> Response:
    """Show a package's page; a name that no package offers raises `UnknownName`."""
    shown = _page(services_of(request).workspace, name)
    return page_of(
        request,
        "reference/plugin_page.html",
        twin=f"/pages/{quote(name)}.json",
        page=f"page-{name}",
        title=shown.title,
        sections=shown.sections,
    )


def _page(workspace: Workspace, name: str) -> PluginPage:
    """Call a plug-in; any failure of its code names the page and a remedy."""
    where, remedy = f"page {name!r}", "Update the package, or uninstall it."
    page = PAGE_PLUGINS.load(name)
    try:
        shown = page(Project(folder=workspace.folder, store=workspace.settings.store_url))
    except AssayError:
        raise
    except Exception as error:
        problem = f"failed: {type(error).__name__}: {error}."
        raise SettingsError(where, problem, remedy=remedy) from error
    if not isinstance(shown, PluginPage):
        problem = f"returned {type(shown).__name__}, not a `PluginPage`."
        raise SettingsError(where, problem, remedy=remedy)
    for section in shown.sections:
        if any(len(row) != len(section.columns) for row in section.rows):
            problem = f"has a row without one cell per column in {section.heading!r}."
            raise SettingsError(where, problem, remedy=remedy)
    return shown
