"""Documents for failed requests and submissions, and the failures that routes list in OpenAPI."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

from assay.app.wire import Absent, document, optional


@document
class ProblemDocument:
    """A problem: where it is, what is wrong, and how to fix it."""

    where: str
    problem: str
    remedy: str


@document
class RefusalDocument:
    """The body of every failed request; `problems` lists all of them when a request can have
    several.
    """

    error: ProblemDocument
    problems: tuple[ProblemDocument, ...] | Absent = optional()


@document
class SubmittedDocument:
    """An evaluation that was stored and will be judged."""

    status: str
    message: str
    evaluation_id: str


_MEANINGS: Final = {
    400: "The request is not JSON.",
    401: "The token is missing or wrong.",
    404: "Nothing has this name.",
    409: "This is not possible in the current state; nothing was changed.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "Something in the request is wrong; nothing was changed.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI descriptions of a route's failure statuses."""
    return {
        status: {"model": RefusalDocument, "description": _MEANINGS[status]} for status in statuses
    }


def examples_of(endpoint: str) -> Any:
    """Return an endpoint's example bodies in OpenAPI's form, from `examples.json`."""
    return json.loads((files(__package__) / "examples.json").read_text("utf-8"))[endpoint]
