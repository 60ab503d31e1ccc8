"""HTTP statuses of errors, and the responses to failed requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, Response

from assay.app.spellings import in_http
from assay.domain.errors import (
    AssayError,
    InputError,
    Interrupted,
    Refused,
    StoreError,
    UnknownName,
)

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

STATUSES: Final[tuple[tuple[type[AssayError], int], ...]] = (
    (UnknownName, 404),
    (Refused, 409),
    (InputError, 422),
    (StoreError, 503),
    (Interrupted, 503),
    (AssayError, 500),
)
"""Error classes and their HTTP statuses; the first class that matches decides."""


def status_of(error: AssayError) -> int:
    """Return the HTTP status of an error: 4xx if the caller can fix it, 5xx if the operator can."""
    return next(status for kind, status in STATUSES if isinstance(error, kind))


def problem(where: str, message: str, remedy: str = "") -> dict[str, dict[str, str]]:
    """Return an error as JSON, with fields and query parameters in place of the command's
    options.
    """
    return {
        "error": {"where": in_http(where), "problem": in_http(message), "remedy": in_http(remedy)}
    }


def problem_of(error: AssayError) -> dict[str, dict[str, str]]:
    return problem(error.where, error.problem, error.remedy)


def problem_response(
    scope: MutableMapping[str, Any], status: int, where: str, message: str, *, remedy: str = ""
) -> Response:
    """Return the response to a request that is refused before its route runs: a page for browsers,
    JSON for programs.
    """
    accepts = dict(scope["headers"]).get(b"accept", b"").decode("latin-1")
    page: Callable[..., Response] | None = getattr(
        getattr(scope.get("app"), "state", None), "problem_page", None
    )
    if page is not None and "text/html" in accepts and not scope["path"].startswith("/api/"):
        return page(scope, status, AssayError(where, message, remedy=remedy))
    return JSONResponse(problem(where, message, remedy), status_code=status)
