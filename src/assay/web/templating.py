"""Templates, static files, and formatted numbers."""

from __future__ import annotations

import gzip
import json
import tomllib
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import rcssmin
import rjsmin
from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from assay.app.surface_plugins import PAGE_PLUGINS
from assay.app.wire import to_json
from assay.domain.amounts import duration, money
from assay.web import keyboard
from assay.web.context import reviewer_of, services_of
from assay.web.formatting import ago, time_element
from assay.web.safe_text import visible
from assay.web.security.access import VISITOR, session_cookie
from assay.web.texts import GLYPHS, REJECT_REASONS, RERUN_REASONS, WORDS, for_script, t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.web.security.roles import Visitor


THEMES: Final = ("auto", "light", "dark")


NAV: Final = (
    ("runs", "/runs", "Runs"),
    ("review", "/review", "Review"),
    ("statistics", "/results", "Results"),
    ("compare", "/compare", "Compare"),
    ("arena", "/arena", "Arena"),
)
"""Entries of the main navigation: page, address, label."""

SETTINGS: Final = (
    ("criteria", "/criteria", "Rubrics"),
    ("calibration", "/calibration", "Judges"),
    ("models", "/models", "Models"),
    ("candidates", "/candidates", "Candidates"),
    ("specialists", "/specialists", "Specialists"),
    ("reviewers", "/reviewers", "Reviewers"),
    ("audit", "/audit", "Audit log"),
)
"""Pages of the settings, in the same form."""

BELONGS: Final = WORDS["belongs"]
"""Pages without their own entry in the navigation, and the entry that is highlighted for each."""

_PAGES: Final[dict[str, dict[str, str]]] = tomllib.loads(
    (resources.files("assay.web") / "pages.toml").read_text("utf-8")
)


VENDOR: Final = "vendor/"
"""Folder of static files that others wrote."""


def folder(name: str) -> Path:
    return Path(str(resources.files("assay") / "web" / name))


@cache
def static_files() -> dict[str, Path]:
    """Return every static file by its path below `static/`, sorted by path."""
    root = folder("static")
    return {
        file.relative_to(root).as_posix(): file
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


@cache
def static_content(name: str) -> bytes:
    """Return a static file as it is sent: scripts and styles are minified.

    Args:
        name: path below `static/`, such as `review/item.js`.

    Raises KeyError for an unknown file. The path is only looked up, so it cannot lead outside the
    folder.
    """
    file = static_files()[name]
    minify = {".js": rjsmin.jsmin, ".css": rcssmin.cssmin}.get(file.suffix)
    if name.startswith(VENDOR):  # minified by its authors
        minify = None
    return file.read_bytes() if minify is None else minify(file.read_text("utf-8")).encode()


@cache
def compressed_content(name: str) -> bytes:
    """Return `static_content` compressed with gzip, once and as small as possible."""
    return gzip.compress(static_content(name), mtime=0)


@cache
def static_digest() -> str:
    """Return a digest of all static files.

    Their addresses contain it, so browsers may cache them forever.
    """
    whole = sha256()
    for name, file in static_files().items():
        whole.update(name.encode() + b"\0" + file.read_bytes())
    return whole.hexdigest()[:12]


@cache
def templates() -> Environment:
    """Return the template environment, which escapes every value and treats an undefined name as an
    error.
    """
    environment = Environment(
        loader=FileSystemLoader(folder("templates")),
        autoescape=True,
        extensions=["jinja2.ext.i18n"],
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Only the new style escapes inserted values.
    environment.install_null_translations(newstyle=True)  # type: ignore[attr-defined]
    environment.globals.update(
        t=t,
        glyphs=GLYPHS,
        badge=keyboard.badge,
        belongs=BELONGS,
        static=f"/static/{static_digest()}",
        key_groups=keyboard.groups,
        reject_reasons=REJECT_REASONS,
        rerun_reasons=RERUN_REASONS,
    )
    environment.filters.update(
        visible=visible,
        data=_data,
        usd=money,
        count=count,
        duration=duration,
        at=time_element,
        ago=ago,
    )
    return environment


def count(number: int) -> str:
    """Format a whole number with thousands separators."""
    return f"{number:,}"


def frame_of(visitor: Visitor | None, headers: Mapping[str, str]) -> dict[str, object]:
    """Return the visitor's part of the page frame, with links only to pages that they may open."""

    def can(address: str) -> bool:
        return visitor is not None and visitor.may_open("GET", address)

    nav = [entry for entry in NAV if can(entry[1])]
    if (
        visitor is not None
        and visitor.name is not None
        and can(own := f"/reviewers/{visitor.name}")
    ):
        nav += [
            ("decisions", quote(f"{own}/decisions"), "My decisions"),
            ("reviewer", quote(own), "My figures"),
        ]
    return {
        "can": can,
        "home": "/" if visitor is None else visitor.home,
        "invited": visitor is not None and visitor.name is not None,
        "nav": nav,
        "signed_in": visitor is not None and session_cookie(headers) is not None,
        "settings": [entry for entry in (*SETTINGS, *_plugin_pages()) if can(entry[1])],
    }


def _plugin_pages() -> list[tuple[str, str, str]]:
    return [
        (f"page-{name}", f"/pages/{quote(name)}", name.replace("_", " ").capitalize())
        for name in PAGE_PLUGINS.plugin_names()
    ]


def page_of(
    request: Request,
    template: str,
    *,
    twin: str | None,
    boot: Mapping[str, object] | None = None,
    **values: Any,
) -> Response:
    """Render a page with the theme and reviewer name of this browser.

    Args:
        twin: address of the page as JSON.
        boot: other data for the page's script.
        values: values for the template; `page`, `title` and `texts` replace those in `pages.toml`.
    """
    theme = request.cookies.get("assay_theme", "auto")
    # nobody has signed in yet on the sign-in page
    visitor: Visitor | None = request.scope.get(VISITOR)
    reviewer = None if visitor is None else reviewer_of(request)
    workspace = services_of(request).workspace
    values = {"texts": "", **_PAGES[template], **values}
    script: dict[str, object] = {
        "texts": for_script(values["texts"]),
        "page": values["page"],
        **(boot or {}),
    }
    # Scripts send the store's id with each request, because another project may later use this
    # address with the same ids.
    script |= {"store": workspace.store_id, "reviewer": reviewer, "glyphs": GLYPHS}
    values = {
        **frame_of(visitor, request.headers),
        "twin": twin,
        "theme": theme if theme in THEMES else "auto",
        "reviewer": reviewer,
        "now": workspace.clock.now(),
        "boot": script,
        **values,
    }
    html = templates().get_template(template).render(values)
    return HTMLResponse(html, headers={"cache-control": "no-store"})


def _data(value: object) -> Markup:
    """Return JSON for use inside a script element; no value can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=to_json)
    # escaped
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
