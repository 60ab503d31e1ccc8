"""The page `/docs`: every endpoint of the HTTP interface, from the same description as
`/openapi.json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from assay.web.templating import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEndpoint:
    """One endpoint: its `parameters` (name, location, and True if required) and the fields of its
    JSON `body`.
    """

    id: str
    method: str
    path: str
    about: str
    parameters: tuple[tuple[str, str, bool], ...]
    body: tuple[str, ...]
    answers: tuple[str, ...]


@router.get("/docs")
def reference_page(request: Request) -> Response:
    """Show the HTTP reference; FastAPI's own page would load scripts from another host."""
    endpoints = tuple(_endpoints(request.app.openapi()))
    return page_of(request, "reference/reference.html", twin="/openapi.json", endpoints=endpoints)


def _endpoints(description: Mapping[str, Any]) -> Iterator[ListedEndpoint]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            parameters = operation.get("parameters", ())
            yield ListedEndpoint(
                id=str(operation["operationId"]),
                method=method.upper(),
                path=path,
                about=str(operation.get("description") or operation.get("summary", "")),
                parameters=tuple(
                    (each["name"], each["in"], bool(each.get("required"))) for each in parameters
                ),
                body=tuple(_fields(description, operation)),
                answers=tuple(operation["responses"]),
            )


def _fields(description: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of a body that is one record; only `/openapi.json` describes other
    bodies.
    """
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    schemas = description.get("components", {}).get("schemas", {})
    yield from schemas.get(reference.rpartition("/")[2], {}).get("properties", {})
