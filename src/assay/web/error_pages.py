"""Pages for failed requests, with the invalid value, valid values, and a helpful link.

Programs get the same facts as JSON; see `errors`. Where a message for a terminal names a command, a
page shows a link.
"""

from __future__ import annotations

import re
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response

from assay.app.spellings import in_http
from assay.domain.errors import AssayError, DifferentRuns, Refused, StoreError, UnknownName, nearest
from assay.web.security.access import VISITOR
from assay.web.templating import NAV, SETTINGS, THEMES, frame_of, templates
from assay.web.texts import WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping, Sequence


LISTS: Final = WORDS["lists"]
"""Addresses of the pages that list all items of one kind, by the first word of the kind's name."""

_LIST_NAMES: Final = WORDS["list_names"]

_STATUS_TITLES: Final = {int(status): title for status, title in WORDS["status_titles"].items()}

_RUN: Final = re.compile(r"run (\S+)")
# Most problems continue a sentence that begins with the location; the others are complete
# sentences.
_GOES_ON: Final = re.compile(
    r"(is|are|has|was|were|cannot|comes|carries|holds|would|does|must|broke)\b"
)
_MAX_CHARS: Final = 300
_CHOICE_OF_RUNS: Final = frozenset({"run", "suite", "batch_id", "all_runs", "pool_anyway"})

Link = tuple[str, str]
"""A link: its label and its address."""


def problem_page(scope: MutableMapping[str, Any], status: int, error: AssayError) -> Response:
    """Return the page for an expected error.

    The path and query in the ASGI scope may hold anything.
    """
    if isinstance(error, UnknownName):
        return _unknown(scope, status, error)
    if status == 404:
        return _no_page(scope)
    if status == 405:
        lead = "The address accepts data from pages and programs, but has no page to show."
        return _page(scope, status, title=_STATUS_TITLES[405], lead=lead)
    if status == 500 and error.where == scope["path"]:
        where = "The server's log, in the terminal where it was started, has the details."
        lead = f"The server failed to build this page. Nothing was changed. {where}"
        return _page(scope, status, title="Something went wrong", lead=lead, links=[_again(scope)])
    if isinstance(error, DifferentRuns):
        title = "These runs cannot be pooled"
        return _page(
            scope,
            status,
            title=title,
            lead=_sentence(error),
            links=_other_runs(scope, error.newest),
        )
    links: list[Link] = []
    named = _RUN.fullmatch(error.where)
    if isinstance(error, Refused) and named:
        run = quote(named[1], safe="")
        links = [("Review this run", f"/review?run={run}"), ("Open the run", f"/runs/{run}")]
    elif isinstance(error, StoreError) or status == 503:
        links = [_again(scope)]
    elif status == 422 and scope.get("query_string"):
        links = [("Open the page without filters", _path(scope))]
    title = _STATUS_TITLES.get(status, "The request failed")
    return _page(
        scope,
        status,
        title=title,
        lead=_sentence(error),
        more=_for_pages(error.remedy),
        links=links,
    )


def malformed_page(scope: MutableMapping[str, Any], error: Mapping[str, Any]) -> Response:
    """Return the page for an address with an invalid part; `error` is pydantic's error."""
    name = ".".join(str(part) for part in error["loc"][1:])
    query = _query(scope)
    without = urlencode([(key, value) for key, value in query if key != name])
    links = []
    if any(key == name for key, _ in query):
        links = [("Open the page without this", _path(scope) + (f"?{without}" if without else ""))]
    facts = [
        ("Value", f"{name} = {_shown(error.get('input'))}"),
        ("Expected", right(error) or str(error["msg"])),
    ]
    return _page(scope, 422, title="The address is not valid", facts=facts, links=links)


def in_words(error: Mapping[str, Any]) -> str:
    """Describe a pydantic error as a sentence without the name of the invalid part."""
    wanted = right(error)
    if not wanted:
        return f"{error['msg']}."
    return (
        "is missing."
        if error["type"] == "missing"
        else f"is {_shown(error.get('input'))}, and must be {wanted}."
    )


def right(error: Mapping[str, Any]) -> str:
    """Describe the valid input for a pydantic error; empty if no page can cause this kind of
    error.
    """
    bounds = error.get("ctx", {})
    match error["type"]:
        case "int_parsing" | "int_type" | "int_from_float" | "int_parsing_size":
            return "a whole number"
        case "float_parsing" | "float_type" | "finite_number":
            return "a number"
        case "greater_than_equal":
            return f"{bounds['ge']} or more"
        case "less_than_equal":
            return f"{bounds['le']} or less"
        case "string_too_long":
            return f"at most {bounds['max_length']} characters"
        case "string_too_short":
            return f"at least {bounds['min_length']} characters"
        case "too_long":
            return f"at most {bounds['max_length']} of them"
        case "bool_parsing" | "bool_type":
            return "yes or no, written as 1 or 0"
        case "literal_error":
            return f"one of {bounds['expected']}"
        case "missing":
            return "a value; it is missing"
    return ""


def _unknown(scope: MutableMapping[str, Any], status: int, error: UnknownName) -> Response:
    near = [(name, _instead(scope, error.name, name)) for name in error.near]
    kind = error.kind.partition(" ")[0]
    everything = LISTS.get(kind)
    lead = "It may have been removed, or it may belong to another store or be spelled differently."
    return _page(
        scope,
        status,
        title=f"No {error.kind} named “{_cut(error.name)}”",
        lead=lead if everything else "",
        more=_for_pages(error.remedy),
        near=near,
        links=[(_LIST_NAMES[everything], everything)] if everything else [],
    )


def _other_runs(scope: MutableMapping[str, Any], newest: str) -> list[Link]:
    """Return links that read the newest run alone, and that pool the runs nevertheless."""
    rest = [(key, value) for key, value in _query(scope) if key not in _CHOICE_OF_RUNS]
    links = [("Read the newest run", f"{_path(scope)}?{urlencode([*rest, ('run', newest)])}")]
    pooled = [
        *((key, value) for key, value in _query(scope) if key != "pool_anyway"),
        ("pool_anyway", "1"),
    ]
    return [*links, ("Pool them anyway, labelled as mixed", f"{_path(scope)}?{urlencode(pooled)}")]


def _no_page(scope: MutableMapping[str, Any]) -> Response:
    names = {address[1:]: name for _, address, name in (*NAV, *SETTINGS) if address != "/"}
    first = str(scope["path"]).strip("/").partition("/")[0]
    near = [(names[page], f"/{page}") for page in nearest(first, names, most=2)]
    lead = "No page has this address. Check the spelling; the page may also have moved."
    return _page(scope, 404, title="Page not found", lead=lead, near=near)


def _instead(scope: MutableMapping[str, Any], name: str, near: str) -> str | None:
    """Return the request's address with the unknown name replaced; None if the address does not
    contain it.
    """
    parts = str(scope["path"]).split("/")
    query = _query(scope)
    if name not in (*parts, *(value for _, value in query)):
        return None
    path = "/".join(quote(near if part == name else part, safe="~@") for part in parts)
    rest = urlencode([(key, near if value == name else value) for key, value in query])
    # Never two slashes in front: browsers read `//host/` as another site.
    return "/" + path.lstrip("/") + (f"?{rest}" if rest else "")


def _sentence(error: AssayError) -> str:
    where, problem = in_http(error.where), in_http(error.problem)
    joined = f"{where} {problem}" if where and _GOES_ON.match(problem) else problem
    return joined[:1].upper() + joined[1:]


def _for_pages(remedy: str) -> str:
    """Return a remedy without its sentences about commands and addresses, which pages show as
    links.
    """
    sentences = re.split(r"(?<=[.:])\s+|;\s+", remedy)
    text = in_http(
        " ".join(
            part for part in sentences if part and "`assay" not in part and not part.startswith("/")
        )
    )
    return text if not text or text.endswith((".", ":", "…", "?", "!")) else f"{text}."


def _query(scope: MutableMapping[str, Any]) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)


def _path(scope: MutableMapping[str, Any]) -> str:
    return "/" + quote(str(scope["path"]).lstrip("/"), safe="/~@")


def _again(scope: MutableMapping[str, Any]) -> Link:
    query = scope.get("query_string", b"").decode("latin-1")
    return "Try again", _path(scope) + (f"?{query}" if query else "")


def _shown(value: object) -> str:
    return "nothing" if value is None or value == "" else _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "…"


def _theme(headers: Iterable[tuple[bytes, bytes]]) -> str:
    try:
        cookies = SimpleCookie(dict(headers).get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return "auto"
    theme = cookies["assay_theme"].value if "assay_theme" in cookies else "auto"
    return theme if theme in THEMES else "auto"


def _page(
    scope: MutableMapping[str, Any],
    status: int,
    *,
    title: str,
    lead: str = "",
    more: str = "",
    near: Sequence[tuple[str, str | None]] = (),
    links: Sequence[Link] = (),
    facts: Sequence[tuple[str, str]] = (),
) -> Response:
    template = templates().get_template("frame/problem.html")
    html = template.render(
        page="problem",
        status=status,
        address=_cut(unquote(_again(scope)[1])),
        theme=_theme(scope["headers"]),
        reviewer=None,
        boot={"texts": {}, "page": "problem"},
        title=title,
        lead=lead,
        more=more,
        near=near,
        links=links,
        facts=facts,
        **frame_of(scope.get(VISITOR), Headers(raw=scope["headers"])),
    )
    return HTMLResponse(html, status_code=status, headers={"cache-control": "no-store"})
