"""Extracts the web page from a response: fenced or bare, complete or partial, in one file or
several.
"""

from __future__ import annotations

import re
from typing import Final

MAX_LOOKED_AT: Final = 2_000_000
_FENCE: Final = re.compile(
    r"^[ \t]*(`{3,}+|~{3,}+)[ \t]*+([\w+#.-]*+)[^\n]*+\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_FILE: Final = re.compile(
    r"^=== (?P<path>[^\n=]{1,200}) ===\n(?P<content>.*?)(?=^=== [^\n=]{1,200} ===\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_DOCUMENT: Final = re.compile(r"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
_PART: Final = re.compile(
    r"<(?:head|body|main|header|section|article|nav|div|form|table|ul|svg|canvas|style|script|button|h[1-6]|p)[\s>/]",
    re.IGNORECASE,
)
_LINK: Final = re.compile(r"<link\b([^<>]{0,1000})>", re.IGNORECASE)
_SCRIPT: Final = re.compile(r"<script\b([^<>]{0,1000})>\s{0,100}</script\s{0,20}>", re.IGNORECASE)
_NAMED: Final = re.compile(r"\b(?:href|src)\s{0,20}=\s{0,20}[\"']?([^\"'\s<>]+)", re.IGNORECASE)


def page_of(response: str) -> str | None:
    """Return a response's page as one document that includes its styles and scripts; None if it has
    no page.

    Fenced blocks are preferred to bare text. A file (or a fence marked html, css or js) that the
    page refers to by `link` or `script` replaces that tag; the remaining files are added at the
    end. A partial page is wrapped in a document.
    """
    text = response[:MAX_LOOKED_AT]
    files = {match["path"].strip(): match["content"] for match in _FILE.finditer(text)} or _fenced(
        text
    )
    pages = [
        content
        for path, content in files.items()
        if _kind(path) == "html" and _PART.search(content)
    ]
    main = next(
        (content for content in pages if _DOCUMENT.search(content)), pages[0] if pages else None
    )
    if main is None:
        main = _bare(text)
        if main is None:
            return None
        files = {}
    styles = {path: content for path, content in files.items() if _kind(path) == "css"}
    scripts = {path: content for path, content in files.items() if _kind(path) == "js"}
    page = _LINK.sub(lambda tag: _put(tag, styles, "style"), main)
    page = _SCRIPT.sub(lambda tag: _put(tag, scripts, "script"), page)
    rest = "".join(f"<style>{content}</style>" for content in styles.values())
    rest += "".join(f"<script>{content}</script>" for content in scripts.values())
    return _whole(page, rest)


def _fenced(text: str) -> dict[str, str]:
    """Return the fenced blocks by kind (html, css, js); the kind of a block without a language is
    derived from its content.
    """
    files: dict[str, str] = {}
    for place, match in enumerate(_FENCE.finditer(text)):
        language, content = match[2].lower(), match[3]
        kind = _LANGUAGES.get(language, "html" if not language and _PART.search(content) else "")
        if kind:
            files[f"block{place}.{kind}"] = content
    return files


_LANGUAGES: Final = {
    **dict.fromkeys(("html", "htm", "xhtml", "svg"), "html"),
    "css": "css",
    "js": "js",
    "javascript": "js",
}


def _kind(path: str) -> str:
    return _LANGUAGES.get(path.rpartition(".")[2].lower(), "")


def _bare(text: str) -> str | None:
    """Return a page without fences: the whole text, or the page that is embedded in prose."""
    if document := _DOCUMENT.search(text):
        end = text.lower().rfind("</html>")
        return (
            text[document.start() : end + len("</html>")]
            if end > document.start()
            else text[document.start() :]
        )
    part = _PART.search(text)
    return None if part is None else text[part.start() :]


def _put(match: re.Match[str], files: dict[str, str], element: str) -> str:
    named = _NAMED.search(match[1])
    name = "" if named is None else named[1].rpartition("/")[2]
    path = next((path for path in files if path.rpartition("/")[2] == name), None)
    return match[0] if path is None else f"<{element}>{files.pop(path)}</{element}>"


def _whole(page: str, rest: str) -> str:
    if _DOCUMENT.search(page):
        end = page.lower().rfind("</body>")
        return f"{page[:end]}{rest}{page[end:]}" if end >= 0 else page + rest
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    if re.search(r"<body[\s>]", page, re.IGNORECASE):
        begun = (
            page if re.search(r"<head[\s>]", page, re.IGNORECASE) else f"<head>{head}</head>{page}"
        )
        return f"<!doctype html><html>{begun}{rest}</html>"
    return f"<!doctype html><html><head>{head}</head><body>{page}{rest}</body></html>"
