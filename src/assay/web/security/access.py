"""Access control before any route runs: hosts, origins, sign-in and content policies.

House rules. Pages show text that models wrote, so the content policy allows only our own scripts,
forbids turning strings into markup, and loads nothing from other hosts. A request that changes
something must come from our own page or from a program; `Sec-Fetch-Site`, or `Origin` in older
browsers, tells them from other sites. Only known host names are answered, because another site
could point its name at this machine. Requests from other machines need the token.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import tomllib
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import RedirectResponse, Response

from assay.domain.errors import SettingsError
from assay.domain.people import SESSION_DAYS
from assay.web.errors import problem_response
from assay.web.security.roles import OWNER, Visitor
from assay.web.security.sessions import Ended
from assay.web.security.throttle import SHORTEST_TOKEN, WrongTokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from assay.web.security.sessions import SessionRight, Sessions


COOKIE: Final = "assay_session"
VISITOR: Final = "assay.visitor"
"""Key in the request's scope for the visitor who sent it."""

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN_PATHS: Final = frozenset({"/health", "/signin", "/api/signin", "/api/signout"})
"""Paths that need no token: the health check, sign-in and sign-out."""

DATA_PATHS: Final = ("/api/", "/get_evaluation_result/")
"""Path prefixes of data for programs, which refuse requests from other sites' pages."""


def headers_of(kind: str) -> dict[str, str]:
    """Return the response headers of `pages` or of `frames`, from `headers.toml`."""
    headers = tomllib.loads((files(__package__) / "headers.toml").read_text("utf-8"))[kind]
    return {
        name: value if isinstance(value, str) else "; ".join(value)
        for name, value in headers.items()
    }


HEADERS: Final = tuple(
    (name.encode(), value.encode()) for name, value in headers_of("pages").items()
)

OPEN_BEGINNINGS: Final = ("/static/", "/preview/")
"""Path prefixes that need no token: scripts and styles, and pages in frames, which send no cookie
but have random addresses that expire within minutes.
"""

TOO_OFTEN: Final = ("token", "was tried too often.")
"""Location and problem in the response to a wrong token if too many others are waiting."""

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


class Token:
    """The secret that a browser must present once, or the one-time code in the URL that is printed
    at start.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._codes = {secrets.token_urlsafe(24)}

    @property
    def code(self) -> str | None:
        """Return the one-time code until it is used; None afterwards."""
        return next(iter(self._codes), None)

    def opens(self, candidate: str) -> bool:
        """True if the value is the secret."""
        # Compared in constant time, so that the duration reveals nothing. A JSON string may contain
        # a lone surrogate.
        return hmac.compare_digest(candidate.encode("utf-8", "surrogatepass"), self._secret)

    def spend(self, code: str) -> bool:
        """True if the value is the secret or the one-time code, which is then used up."""
        known = next(
            (c for c in self._codes if hmac.compare_digest(c.encode(), code.encode())), None
        )
        if known is not None:
            self._codes.discard(known)
            return True
        return self.opens(code)


def is_loopback(host: str) -> bool:
    """True if a server that listens on the host is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, token: str | None) -> None:
    """Raise `SettingsError` if the token is too short, or if it is missing and other machines can
    connect.
    """
    if not is_loopback(host) and not token:
        problem = f"listening on {host} lets other machines in, but no token is set."
        raise SettingsError(
            "serve", problem, remedy="Give one with --token or ASSAY_TOKEN, or listen on 127.0.0.1."
        )
    if token and len(token) < SHORTEST_TOKEN:
        problem = f"the token has {len(token)} characters, and a token of fewer than {SHORTEST_TOKEN} can be guessed."
        remedy = 'Make one: python -c "import secrets; print(secrets.token_urlsafe())"'
        raise SettingsError("serve", problem, remedy=remedy)


def known_hosts(host: str, extra_hosts: str | None) -> frozenset[str]:
    """Return the host names that the server answers to, without ports.

    Args:
        host: address that the server listens on; 0.0.0.0 and :: mean every address of this machine.
        extra_hosts: other names, separated by commas (ASSAY_HOSTS), such as the name of a proxy.
    """
    names = {
        *LOOPBACK,
        *(name.strip().lower() for name in (extra_hosts or "").split(",") if name.strip()),
    }
    if is_loopback(host):
        return frozenset(names)
    plain = host.strip("[]")
    names.add(f"[{plain}]" if ":" in plain else plain.lower())
    if plain in {"0.0.0.0", "::", ""}:  # only compared here
        names.update(_own_names())
    return frozenset(names)


def _own_names() -> Iterable[str]:
    name = socket.gethostname().lower()
    yield name
    try:
        for *_, address in socket.getaddrinfo(name, None):
            plain = str(address[0]).split("%")[0]
            yield f"[{plain}]" if ":" in plain else plain
    except OSError:
        return


class Guard:
    """ASGI middleware that checks host (one of `hosts`, without ports), origin and sign-in, and
    adds security headers.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], entrance: Entrance) -> None:
        self._app = app
        self._hosts = hosts
        self._entrance = entrance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in HEADERS if pair[0] not in given),
                ]
            await send(message)

        answer: ASGIApp = (
            self._refusal(scope, headers)
            or await self._entrance.answer(scope, headers)
            or self._app
        )
        await answer(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> ASGIApp | None:
        host = headers.get("host", "")
        if _without_port(host) not in self._hosts:
            remedy = "Use the address printed at start, or name the host in ASSAY_HOSTS."
            return problem_response(
                scope,
                421,
                host or "this request",
                "is not a host name of this server.",
                remedy=remedy,
            )
        site = headers.get("sec-fetch-site")
        if site == "cross-site" and (
            scope["path"].startswith(DATA_PATHS) or scope["method"] not in SAFE_METHODS
        ):
            return problem_response(scope, 403, "request", "comes from another site.")
        if scope["method"] in SAFE_METHODS:
            return None
        if site is not None and site not in {"same-origin", "none"}:
            return problem_response(scope, 403, "request", "comes from another origin.")
        origin = headers.get("origin")
        if site is None and origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return problem_response(scope, 403, "request", "comes from another origin.")
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
        # A form on another site can send other content types without a preflight request, but JSON
        # needs one, which no route here answers.
        if kind != "application/json":
            return problem_response(
                scope, 415, "body", f"is {kind or 'of no type'}, but must be application/json."
            )
        return None


class Entrance:
    """Identifies visitors, and refuses addresses that their role may not open.

    `token`: the owner's token; None if only this machine can connect, so that everybody without a
    session is the owner.
    """

    def __init__(self, token: Token | None, sessions: Sessions) -> None:
        self._token = token
        self.sessions = sessions
        self.wrong = WrongTokens()

    async def grant(self, secret: str) -> SessionRight | None:
        """Return the right that a token gives; None for a wrong or revoked token."""
        if self._token is not None and self._token.opens(secret):
            return self.sessions.owner()
        return await self.sessions.invited(secret)

    async def answer(self, scope: Scope, headers: dict[str, str]) -> ASGIApp | None:
        """Return the response that refuses or redirects a request; None if the visitor may open the
        address.
        """
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        codes = (
            [value for name, value in query if name == "token"] if scope["method"] == "GET" else []
        )
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # Browsers read `//host` and `/\\host` as another site.
        asked = "/" + scope["path"].lstrip("/\\") + (f"?{rest}" if rest else "")
        visitor = await self._sender(headers)
        wrong = False
        if codes:
            opened = await self._opened(codes[0], asked, scope, headers, visitor)
            if opened is not None:
                return opened
            wrong = True
        open_to_all = scope["path"] in OPEN_PATHS or scope["path"].startswith(OPEN_BEGINNINGS)
        if visitor is not None and not (wrong and self._token is None):
            scope[VISITOR] = visitor
            if open_to_all or visitor.may_open(
                scope["method"], scope["path"], scope["query_string"].decode("latin-1")
            ):
                return None
            remedy = f"Open {visitor.home}, or ask the owner for access."
            return problem_response(
                scope, 403, "request", f"is not open to a {visitor.role}.", remedy=remedy
            )
        if wrong or (
            not open_to_all
            and (_bearer(headers) is not None or session_cookie(headers) is not None)
        ):
            address = scope["client"][0] if scope.get("client") else ""
            if not await self.wrong.delay(address):
                return problem_response(scope, 429, *TOO_OFTEN, remedy="Try again in a minute.")
        if open_to_all:
            return None
        if "text/html" in headers.get("accept", ""):
            wanted = (
                "" if asked == "/" or scope["method"] != "GET" else f"?{urlencode({'next': asked})}"
            )
            return RedirectResponse(f"/signin{wanted}", status_code=303)
        remedy = "Open the address that `assay serve` printed, or send the token as `Authorization: Bearer TOKEN`."
        return problem_response(scope, 401, "request", "has no valid token.", remedy=remedy)

    async def _opened(
        self, code: str, asked: str, scope: Scope, headers: dict[str, str], visitor: Visitor | None
    ) -> ASGIApp | None:
        """Return the redirect for an address with a token; None if the token is wrong or used up.

        Only an address that the person typed, or that a program opened, signs in at once. A link on
        another site leads to a question: it could sign a person in as somebody else, and a program
        that previews links would use the invitation up.
        """
        signed_in = session_cookie(headers) is not None and visitor is not None
        site = headers.get("sec-fetch-site")
        typed = site in {"none", "same-origin"} or (
            site is None and "text/html" not in headers.get("accept", "")
        )
        if not typed:
            return _question(asked, code)
        owners = self._token is not None and self._token.spend(code)
        grant = self.sessions.owner() if owners else await self.grant(code)
        if grant is None:
            return None
        if signed_in:
            # The same link again, as from a bookmark, changes nothing; another person's would
            # replace the session.
            return (
                RedirectResponse(asked, status_code=303)
                if visitor == grant.visitor
                else _question(asked, code)
            )
        session = await self.sessions.begin(grant)
        if session is None:
            return None
        response = RedirectResponse(asked, status_code=303)
        sign_in(response, session, secure=scope.get("scheme") == "https")
        return response

    async def _sender(self, headers: dict[str, str]) -> Visitor | None:
        """Return the visitor who sent a request; None if the token or session is missing or
        wrong.
        """
        bearer, session = _bearer(headers), session_cookie(headers)
        if bearer is not None and self._token is not None and self._token.opens(bearer):
            return OWNER
        if session is not None:
            visitor = await self.sessions.visitor(session)
            if visitor is not None:
                return None if isinstance(visitor, Ended) else visitor
        if bearer is not None and await self.sessions.invited(bearer) is not None:
            return None  # an invitation opens a browser's session and is no token for programs
        # A session of another server on this machine is ignored: it gives no access and delays
        # nothing.
        return OWNER if self._token is None else None


def _question(asked: str, code: str) -> Response:
    """Return a redirect to the sign-in page, which asks first.

    The token is behind `#`, which browsers never send.
    """
    return RedirectResponse(
        f"/signin?{urlencode({'next': asked})}#{urlencode({'token': code})}", status_code=303
    )


def sign_in(response: Response, session: str, *, secure: bool) -> None:
    days = SESSION_DAYS * 86400
    response.set_cookie(
        COOKIE, session, httponly=True, samesite="strict", path="/", secure=secure, max_age=days
    )


def visitor_of(request: Request) -> Visitor:
    """Return the visitor who sent a request; `Entrance` has identified them."""
    visitor: Visitor = request.scope[VISITOR]
    return visitor


def from_browser(request: Request) -> bool:
    """True if one of our pages sent the request; False for a program, with or without a token.

    Browsers set these headers themselves, and a page's script cannot.
    """
    if "authorization" in request.headers:
        return False
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site == "same-origin"
    return (
        origin is not None
        and urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
    )


def _bearer(headers: dict[str, str]) -> str | None:
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else None


def session_cookie(headers: Mapping[str, str]) -> str | None:
    """Return the session cookie of a request, given its headers in lower case."""
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
