"""Serve pages that models wrote to sandboxed frames without network access, at random addresses
that expire.

Theory. The frame's element and the response's own policy allow scripts only, so the frame is
another origin: it has no cookie, no storage, and no view of the surrounding page. The response's
policy lets it load nothing, and the surrounding page allows only frames of our origin, so the frame
cannot navigate elsewhere. As measured in Chromium, two connections bypass these policies: a peer
connection, and the connection that the browser opens in advance while a navigation of the frame is
still being refused. Newer browsers block both with `Connection-Allowlist`; for the others,
`frame_guard.js` runs before the page and removes them.

House rules. An address is random, expires after `LIFE_S`, and works once and only for a frame,
because a page in its own tab would have no surrounding policy. All current browsers send
`Sec-Fetch-Dest`, but not over plain http to another machine. In that case the page is sent without
the check, and its guard stops it unless it runs in a frame.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from functools import cache
from importlib import resources
from threading import Lock
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from assay.domain.errors import Refused, UnknownName
from assay.web.security.access import headers_of, is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

LIFE_S: Final = 120.0
"""Seconds until an unused address expires; a page that is already displayed stays."""
MOST: Final = 64
"""Maximum number of pages; the oldest is dropped."""
LARGEST: Final = 3_000_000
"""Maximum characters of a page to run; a longer one is shown as source only."""

_DOCTYPE: Final = re.compile(r"<!doctype\s+html", re.IGNORECASE)
_SHADOW: Final = re.compile(r"shadowrootmode", re.IGNORECASE)

HEADERS: Final = headers_of("frames")

SANDBOX: Final = HEADERS["content-security-policy"].partition(";")[0].removeprefix("sandbox ")
"""What the frame's element allows: the same as the response."""


class Previews:
    """Pages that wait for their frame, in memory; each is served once. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()  # protects _pages
        self._pages: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def put(self, page: str) -> str:
        """Return an address for the page, valid for `LIFE_S` seconds."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._pages[token] = (self._clock() + LIFE_S, page)
            while len(self._pages) > MOST:
                self._pages.popitem(last=False)
        # Not `srcdoc`: such a frame inherits the policy of the page around it, which forbids its
        # scripts.
        return f"/preview/{token}"

    def answer(self, token: str) -> Response:
        """Return the page of an address, which works once; raises `UnknownName` for an unknown,
        used or expired one.
        """
        with self._lock:
            until, page = self._pages.pop(token, (0.0, ""))
            if until < self._clock():
                raise UnknownName(
                    "preview", "under this address", remedy="Start it again on its page."
                )
        return Response(
            guarded(page).encode("utf-8", "replace"), media_type="text/html", headers=HEADERS
        )


def check_framed(request: Request) -> None:
    """Raise `Refused` for a request outside a frame, except over plain http, where browsers do not
    send the header.
    """
    wanted = request.headers.get("sec-fetch-dest")
    if (
        wanted is None
        and request.url.scheme == "http"
        and not is_loopback(request.url.hostname or "")
    ):
        return
    if wanted != "iframe":
        raise Refused("preview", "can only be shown in its frame.", remedy="Start it on its page.")


def guarded(page: str) -> str:
    """Insert the guard script before a page, and keep its rendering mode.

    The guard precedes everything, even comments, so that no script of the page runs before it.
    Declarative shadow trees stay templates, because the guard could not see into them.
    """
    doctype = "<!doctype html>" if _DOCTYPE.search(page[:2000]) else ""
    return f"{doctype}<script>{_guard()}</script>{_SHADOW.sub('data-shadow', page)}"


@cache
def _guard() -> str:
    return (resources.files("assay") / "web" / "static" / "arena" / "frame_guard.js").read_text(
        "utf-8"
    )
