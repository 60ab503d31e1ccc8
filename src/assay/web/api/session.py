"""Endpoints for health, sign-in and the reviewer's name."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from pydantic import Field

from assay.app.people import LONGEST_NAME, checked_name
from assay.web.context import REVIEWER_COOKIE, services_of
from assay.web.errors import problem_response
from assay.web.responses import Answer, Body
from assay.web.security.access import COOKIE, TOO_OFTEN, session_cookie, sign_in

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
    return {"status": "ok", "timestamp": services_of(request).workspace.clock.now()}


@router.post("/api/reviewer", tags=["server"])
def reviewer(request: Request, body: NameBody) -> Response:
    """Set the name under which this browser's decisions are recorded."""
    name = checked_name(body.name)
    answer = Answer({"reviewer": name})
    # Quoted, because cookies hold ASCII only.
    answer.set_cookie(
        REVIEWER_COOKIE,
        quote(name),
        max_age=365 * 86400,
        httponly=True,
        samesite="strict",
        path="/",
    )
    return answer


@router.post("/api/signin", tags=["server"])
async def sign_in_with_token(request: Request, body: TokenBody) -> Response:
    """Exchange a token for a session cookie, and return the page to start on.

    Wrong tokens are delayed.
    """
    entrance = services_of(request).entrance
    grant = await entrance.grant(body.token)
    session = None if grant is None else await entrance.sessions.begin(grant)
    if grant is None or session is None:
        if not await entrance.wrong.delay(request.client.host if request.client else ""):
            return problem_response(request.scope, 429, *TOO_OFTEN, remedy="Try again in a minute.")
        problem = (
            "is wrong."
            if grant is None
            else "was used before; the link of an invitation works once."
        )
        remedy = "Enter the server's token, or the token of a new invitation."
        return Answer(
            {"error": {"where": "token", "problem": problem, "remedy": remedy}}, status_code=401
        )
    before = session_cookie(request.headers)
    if before is not None:
        await entrance.sessions.end(before)
    answer = Answer({"ok": True, "home": grant.visitor.home})
    sign_in(answer, session, secure=request.url.scheme == "https")
    return answer


@router.post("/api/signout", tags=["server"])
async def sign_out(request: Request) -> Response:
    """End the session of this browser, on the server too, and delete its cookie."""
    session = session_cookie(request.headers)
    if session is not None:
        await services_of(request).entrance.sessions.end(session)
    answer = Answer({"ok": True})
    answer.delete_cookie(COOKIE, path="/")
    return answer
