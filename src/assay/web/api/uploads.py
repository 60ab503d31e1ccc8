"""Endpoints that inspect files from a browser, and import or save them."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import Base64Bytes, Field

from assay.app.imports import uploads
from assay.web.context import services_of
from assay.web.responses import Answer, Body

router = APIRouter()


class FileOfUpload(Body):
    """A file; `name` may have folders, and `content` is base64."""

    name: str = Field(min_length=1, max_length=1_000)
    content: Base64Bytes


class UploadBody(Body):
    """Files that belong together, such as the requests and the answers of a batch."""

    files: list[FileOfUpload] = Field(min_length=1, max_length=500)

    def pairs(self) -> list[tuple[str, bytes]]:
        return [(file.name, file.content) for file in self.files]


@router.post("/api/uploads/look", tags=["start"])
def look(request: Request, body: UploadBody) -> Response:
    """Describe the contents of files (results of any harness, suites, sets, tables), and store
    nothing.
    """
    return Answer(uploads.look(services_of(request).workspace, body.pairs()))


@router.post("/api/uploads", tags=["start"], status_code=201)
def keep(request: Request, body: UploadBody) -> Response:
    """Import the results and save the suites from these files; results that are already stored are
    not imported again.
    """
    return Answer(uploads.keep(services_of(request).workspace, body.pairs()), status_code=201)
