"""Page of specialists: templates, their enrichment, and snapshots with their comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from assay.app.specialists.overview import comparison_chart, is_of, specialists
from assay.app.specialists.verify import verify
from assay.app.statistics import charts
from assay.app.statistics.results import wording
from assay.domain.errors import UnknownName
from assay.web.context import services_of
from assay.web.query_params import reads
from assay.web.responses import Answer
from assay.web.templating import page_of

if TYPE_CHECKING:
    from assay.app.wire import Json

router = APIRouter(include_in_schema=False)


@router.get("/specialists.json")
def specialists_twin(request: Request) -> Response:
    workspace = services_of(request).workspace
    return Answer(specialists(workspace.store, workspace.settings))


@router.get("/specialists")
@reads("verify")
def specialists_page(request: Request) -> Response:
    """Show templates and snapshots; with `verify`, the path of a listed snapshot, compare that one
    with the store too.
    """
    workspace, asked = services_of(request).workspace, request.query_params.get("verify")
    listed = specialists(workspace.store, workspace.settings)
    known = [each.path for each in listed.snapshots]
    if asked is not None and asked not in known:
        raise UnknownName("snapshot", asked, known)
    return page_of(
        request,
        "registry/specialists.html",
        twin="/specialists.json",
        listed=listed,
        is_of=is_of,
        wording=wording,
        drawing=_drawing,
        verified=None if asked is None else verify(workspace.store, workspace.folder / asked),
        asked=asked,
    )


def _drawing(comparison: Json) -> Markup | None:
    chart = comparison_chart(comparison)
    return Markup(charts.drawn(chart)) if chart.rows else None  # an escaped SVG
