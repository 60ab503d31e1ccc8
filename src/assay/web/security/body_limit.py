"""Limit the size of request bodies and the time that they take to arrive."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

from assay.web.errors import problem_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST: Final = 32 * 2**20
"""Maximum bytes of a request body."""

BODY_LIMIT_S: Final = 60.0
"""Seconds that a body may take to arrive."""

_TOO_LARGE: Final = f"has more than {LARGEST // 2**20} MB"


class BodyLimit:
    """ASGI middleware that refuses request bodies that are too large or arrive too slowly."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > LARGEST:
            refusal = problem_response(
                scope, 413, "body", f"{_TOO_LARGE}.", remedy="Send it in parts."
            )
            await refusal(scope, receive, send)
            return
        got = 0
        complete = length == b"0" and b"transfer-encoding" not in headers
        deadline = asyncio.get_running_loop().time() + BODY_LIMIT_S

        async def counted() -> Message:
            nonlocal got, complete
            # only the disconnect follows, for which an event stream may wait for hours
            if complete:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    408, f"The body did not arrive within {BODY_LIMIT_S:g} s"
                ) from None
            complete = not message.get("more_body", False)
            # Counted here too, because a chunked request declares no length, and a declared length
            # may be wrong.
            got += len(message.get("body", b""))
            if got > LARGEST:
                raise HTTPException(413, _TOO_LARGE)
            return message

        await self._app(scope, counted, send)
