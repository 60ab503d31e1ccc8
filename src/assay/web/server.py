"""Create the web app and serve it."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
import threading
import webbrowser
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse, Response

from assay.app.arena.voting import ArenaVoting
from assay.app.comparison.grades import GradeComparison
from assay.app.exports.shared_exports import SharedExports
from assay.app.integrations import evaluations
from assay.app.random_order import order_seeds
from assay.app.registry.run_verdicts import RunVerdicts
from assay.app.review.concealment import Concealment
from assay.app.review.control_item_placement import ControlItemPlacement
from assay.app.review.item_view import Showcase
from assay.app.review.queue import ReviewQueue
from assay.app.review.service import ReviewService
from assay.app.statistics.live_report import LiveReports
from assay.app.webhooks import check_webhook
from assay.domain.errors import AssayError, SettingsError, UnknownName
from assay.domain.people import VisitorRole
from assay.web import api, context, error_pages, pages, templating
from assay.web.errors import problem, problem_of, problem_response, status_of
from assay.web.jobs.judge_services import judging
from assay.web.jobs.reruns import Reruns
from assay.web.jobs.runs import Runner, Starts
from assay.web.live import Live
from assay.web.memory import bound_allocator, return_freed_memory
from assay.web.pages import arena
from assay.web.query_params import known_names
from assay.web.security.access import (
    HEADERS,
    Entrance,
    Guard,
    Token,
    check_exposure,
    is_loopback,
    known_hosts,
    visitor_of,
)
from assay.web.security.body_limit import BodyLimit
from assay.web.security.connection_limit import TimedConnection
from assay.web.security.sandboxed_frames import Previews
from assay.web.security.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from types import ModuleType

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from assay.app.workspace import Workspace

FOREVER: Final = "public, max-age=31536000, immutable"
RESULTS_IDLE_S: Final = 2.0
"""Seconds from a decision to the update of the results folder, which includes all decisions made by
then.
"""

SWITCH_S: Final = 0.0005
"""Seconds after which a busy thread lets another one run.

SQLite's driver releases the interpreter for each row that it reads. Beside two busy threads, a
report of 25,000 trials took 6 s alone, 23 s with Python's 5 ms, and 11 s with this.
"""

_TICKS_BETWEEN_TRIMS: Final = 50  # Uvicorn's ticks of 0.1 s
MAX_PROBLEMS: Final = 100  # problems of one request that its response lists
KINDS: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}

DEPENDENCIES: Final = (Depends(known_names), Depends(context.same_store))
"""Checks of every request to a page, an endpoint or a file."""


def routers(*packages: ModuleType) -> Iterator[APIRouter]:
    """Yield the `router` of every module in the packages, so that a new page or endpoint needs only
    a new file.
    """
    for package in packages:
        for module in iter_modules(package.__path__):
            router = getattr(import_module(f"{package.__name__}.{module.name}"), "router", None)
            if isinstance(router, APIRouter):
                yield router


@cache
def shared_routes() -> tuple[BaseRoute, ...]:
    """Return the routes of all pages and endpoints, which every app of this process shares.

    FastAPI analyses each endpoint when a request is first matched with it, which takes 0.1 s for
    all.
    """
    router = APIRouter()
    for part in routers(api, pages):
        router.include_router(part, dependencies=DEPENDENCIES)
    return tuple(router.routes)


def create_app(
    workspace: Workspace,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    code: Token | None = None,
) -> FastAPI:
    """Return the web app of a workspace.

    Args:
        workspace: must stay open while the app is served; the caller closes it.
        host: host where the app is served, which decides the host names it answers to.
        token: access token for browsers; None for no sign-in.
        code: the token with its one-time code, if the caller has printed one.

    Raises SettingsError for a host other than loopback without a token.
    """
    check_exposure(host, token)
    check_webhook(workspace.settings)
    known = code or (Token(token) if token else None)
    queue = ReviewQueue(
        workspace.archive.assessments,
        workspace.leases,
        workspace.clock,
        order_seeds(workspace.store),
    )
    workspace.results.idle_s = RESULTS_IDLE_S

    runner = Runner(workspace)
    entrance = Entrance(known, Sessions(workspace, owner_token=token))

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        # Clients were told that their evaluations are accepted, so a new server finishes those that
        # a stopped one left.
        await asyncio.to_thread(_resume_evaluations, workspace, runner)
        yield
        await asyncio.to_thread(runner.stop)
        await asyncio.to_thread(app.state.services.grades.close)
        await asyncio.to_thread(app.state.judging.measuring.close)
        await app.state.services.reruns.stop()
        await app.state.services.live.stop()
        # Last, so that decisions and trials written while stopping are included.
        await asyncio.to_thread(workspace.results.flush)

    app = FastAPI(
        title="Assay",
        version=_version(),
        # FastAPI's own pages load scripts from another host, which the content policy forbids.
        docs_url=None,
        redoc_url=None,
        lifespan=living,
        routes=[*shared_routes()],
    )
    workspace.start_web()
    showcase = Showcase(workspace.archive, workspace.journal)
    concealment = Concealment(workspace.store)
    review = ReviewService(workspace, showcase, concealment)
    verdicts = RunVerdicts(workspace.store)
    app.state.services = context.Services(
        workspace=workspace,
        queue=queue,
        showcase=showcase,
        concealment=concealment,
        review=review,
        placement=ControlItemPlacement(),
        verdicts=verdicts,
        live=Live(workspace, verdicts, runner),
        runner=runner,
        starts=Starts(),
        reruns=Reruns(workspace, queue, review, concealment),
        overviews=LiveReports(workspace.store, workspace.settings),
        exports=SharedExports(workspace),
        grades=GradeComparison(workspace.store),
        entrance=entrance,
    )
    app.state.judging = judging(workspace)
    app.state.arena = arena.ArenaServices(
        voting=ArenaVoting(workspace.store, workspace.results), previews=Previews()
    )
    app.state.problem_page = error_pages.problem_page
    app.add_api_route(
        "/static/{digest}/{name:path}",
        static_file,
        include_in_schema=False,
        dependencies=DEPENDENCIES,
    )
    app.exception_handler(AssayError)(_expected)
    app.exception_handler(RequestValidationError)(_malformed)
    app.exception_handler(HTTPException)(_plain)
    app.exception_handler(Exception)(_unexpected)
    app.add_middleware(BodyLimit)
    # leaves event streams uncompressed
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=4)
    # Added last, so it runs first and reads nothing of a request that it refuses.
    hosts = known_hosts(host, workspace.settings.environment.get("ASSAY_HOSTS"))
    app.add_middleware(Guard, hosts=hosts, entrance=entrance)
    return app


def serve(
    workspace: Workspace,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    path: str = "/",
    token: str | None = None,
    announce: Callable[[str], None] = print,
    open_browser: bool = False,
) -> None:
    """Serve the web app until it is stopped.

    Args:
        host: address to listen on; anything other than loopback needs a token.
        port: 0 picks a free port.
        path: the page whose address is announced.
        token: access token for browsers; None to use `ASSAY_TOKEN`.
        announce: called with the address, which contains a one-time code if a token is set.

    Raises SettingsError if a token is required and missing, or the port is in use.
    """
    secret = token or workspace.settings.environment.get("ASSAY_TOKEN") or None
    check_exposure(host, secret)
    known = Token(secret) if secret else None
    app = create_app(workspace, host=host, token=secret, code=known)
    threading.Thread(target=_prepare_results_page, daemon=True).start()
    bound_allocator()
    sys.setswitchinterval(SWITCH_S)
    listening = _listening(host, port)
    shown = host if is_loopback(host) or host not in {"0.0.0.0", "::"} else socket.gethostname()
    workspace.notices.base = (
        f"http://{f'[{shown}]' if ':' in shown else shown}:{listening.getsockname()[1]}"
    )
    address = workspace.notices.base + path
    if known is not None and known.code:
        address += ("&" if "?" in path else "?") + urlencode({"token": known.code})
    announce(f"Assay is at {address}  (Ctrl-C stops it)")
    if open_browser:
        # `run` below blocks, so a thread opens the browser once the server has had time to start.
        threading.Timer(0.5, webbrowser.open, [address]).start()
    config = uvicorn.Config(
        app,
        http=TimedConnection,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        lifespan="on",
    )
    logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)
    try:
        _Server(config).run(sockets=[listening])
    finally:
        listening.close()


def _prepare_results_page() -> None:
    """Load parts of the results page before its first visit, and exempt all that is loaded from
    garbage collection.
    """
    import_module("scipy.special")
    for name in ("frame/base.html", "statistics/results.html", "statistics/statistics_parts.html"):
        templating.templates().get_template(name)
    for route in shared_routes():
        route.matches({"type": "http", "method": "GET", "path": ""})  # analyses its endpoints
    gc.collect()
    gc.freeze()


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """True unless the error comes from a request that was cut off at shutdown, which is
    harmless.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError) and not str(record.msg).startswith(
        "Cancel %s running task"
    )


class _Server(uvicorn.Server):
    """A server that returns freed memory now and then, and ends live streams before it stops,
    because they would delay it.
    """

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_BETWEEN_TRIMS == 0:
            await asyncio.to_thread(return_freed_memory)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = self.config.app
        if isinstance(app, FastAPI):
            await app.state.services.live.stop()
        await super().shutdown(sockets)


def static_file(request: Request, digest: str, name: str) -> Response:
    """Return a script, a style sheet or a picture; its address changes with its content."""
    kind = KINDS.get(PurePosixPath(name).suffix)
    if (
        digest != templating.static_digest()
        or name not in templating.static_files()
        or kind is None
    ):
        raise UnknownName("file", name)
    headers = {"cache-control": FOREVER, "vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(
            templating.compressed_content(name),
            media_type=kind,
            headers=headers | {"content-encoding": "gzip"},
        )
    return Response(templating.static_content(name), media_type=kind, headers=headers)


def _version() -> str:
    try:
        return version("assay-bench")
    except PackageNotFoundError:
        return "0"  # running from a checkout


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Nagle's algorithm delayed each response on a kept-alive connection by 40 ms. asyncio
        # disables it only for a socket created with IPPROTO_TCP.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host.strip("[]"), port))
        listening.listen(256)
    except OSError as error:
        raise SettingsError(
            f"port {port}",
            f"cannot be opened on {host}: {error.strerror or error}.",
            remedy="Choose another with --port; 0 picks a free one.",
        ) from error
    return listening


def _resume_evaluations(workspace: Workspace, runner: Runner) -> None:
    if workspace.read_only:
        return
    try:
        for plan in evaluations.left_over(workspace.store):
            runner.queue(plan)
    except AssayError as error:  # one damaged run must not keep the server from starting
        logging.getLogger("assay").warning("accepted evaluations are not continued: %s", error)


def _expected(request: Request, error: AssayError) -> Response:
    if isinstance(error, UnknownName) and visitor_of(request).role is VisitorRole.REVIEWER:
        # Without similar names, which would reveal the names of judges, tasks and candidates.
        error = UnknownName(error.kind, error.name)
    if _wants_page(request):
        return error_pages.problem_page(request.scope, status_of(error), error)
    return JSONResponse(problem_of(error), status_code=status_of(error))


def _malformed(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem_response(
            request.scope, 400, "body", f"is not valid JSON: {first['ctx']['error']}."
        )
    if first["loc"][0] == "body":
        each = [_body_problem(fault) for fault in error.errors()[:MAX_PROBLEMS]]
        return JSONResponse(
            {**each[0], "problems": [body["error"] for body in each]}, status_code=422
        )
    if _wants_page(request):
        return error_pages.malformed_page(request.scope, first)
    if first["loc"][0] == "query":
        name = str(first["loc"][1])
        remedy = f"Write {name}=…." if first["type"] == "missing" else f"Remove or correct {name}."
        return problem_response(
            request.scope, 422, name, error_pages.in_words(first), remedy=remedy
        )
    return problem_response(request.scope, 422, _named(first), error_pages.in_words(first))


def _body_problem(error: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    if error["type"] == "extra_forbidden":
        return problem(_named(error), "is not a field of this request.", "See /openapi.json.")
    return problem(_named(error), error_pages.in_words(error))


def _named(error: Mapping[str, Any]) -> str:
    """Return the location of an invalid part of a request, without the tag of the body's type."""
    return ".".join(str(part) for part in error["loc"] if not str(part).startswith("as "))


def _plain(request: Request, error: HTTPException) -> Response:
    message = f"{error.detail}."
    if _wants_page(request):
        return error_pages.problem_page(
            request.scope, error.status_code, AssayError(request.url.path, message)
        )
    remedy = "/openapi.json lists the addresses for programs." if error.status_code == 404 else ""
    return JSONResponse(problem(request.url.path, message, remedy), status_code=error.status_code)


def _unexpected(request: Request, error: Exception) -> Response:
    """Return the response for an unexpected error, with the security headers, because middleware
    does not run for it.
    """
    message = "an internal error occurred; the server's log has the details."
    answer: Response = JSONResponse(problem(request.url.path, message), status_code=500)
    if _wants_page(request):
        with suppress(Exception):  # rendering a page may itself fail
            answer = error_pages.problem_page(
                request.scope, 500, AssayError(request.url.path, message)
            )
    answer.headers.update({name.decode(): value.decode() for name, value in HEADERS})
    return answer


def _wants_page(request: Request) -> bool:
    path, accepted = request.url.path, request.headers.get("accept", "")
    return "text/html" in accepted and not path.startswith("/api/") and not path.endswith(".json")
