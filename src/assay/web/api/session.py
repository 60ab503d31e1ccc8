"""Endpoints for health, sign-in and the reviewer's name."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from pydantic import Field

from assay.app.people import LONGEST_NAME, checked_name
from assay.web.context import REVIEWER_COOKIE, rooms_of
from assay.web.errors import problem_response
from assay.web.responses import Answer, Body
from assay.web.security.access import COOKIE, TOO_OFTEN, sign_in

router = APIRouter()


class NameBody(Body):
    """The name under which this browser's decisions are recorded."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME)


class TokenBody(Body):
    """The server's access token, or the token of an invitation."""

    token: str = Field(max_length=1_000)


@router.get("/health", tags=["server"])
def health(request: Request) -> dict[str, str]:
    """Answer 200 while the server runs."""
    return {"status": "ok", "timestamp": rooms_of(request).workspace.clock.now()}


@router.post("/api/reviewer", tags=["server"])
def reviewer(request: Request, body: NameBody) -> Response:
    """Set the name under which this browser's decisions are recorded."""
    name = checked_name(body.name)
    answer = Answer({"reviewer": name})
    # Quoted, because cookies hold ASCII only.
    answer.set_cookie(REVIEWER_COOKIE, quote(name), max_age=365 * 86400, httponly=True, samesite="strict", path="/")
    return answer


@router.post("/api/signin", tags=["server"])
async def sign_in_with_token(request: Request, body: TokenBody) -> Response:
    """Exchange a token for a session cookie, and return the page to start on. Wrong tokens are delayed."""
    entrance = rooms_of(request).entrance
    known = await entrance.visitor(body.token)
    if known is None:
        if not await entrance.wrong.delay(request.client.host if request.client else ""):
            return problem_response(request.scope, 429, *TOO_OFTEN, remedy="Try again in a minute.")
        remedy = "Enter the server's token, or the token of an invitation that has not been revoked."
        return Answer({"error": {"where": "token", "problem": "is wrong.", "remedy": remedy}}, status_code=401)
    visitor, session = known
    answer = Answer({"ok": True, "home": visitor.home})
    if session:
        sign_in(answer, session, secure=request.url.scheme == "https")
    return answer


@router.post("/api/signout", tags=["server"])
def sign_out(request: Request) -> Response:
    """Delete the session cookie of this browser."""
    answer = Answer({"ok": True})
    answer.delete_cookie(COOKIE, path="/")
    return answer
