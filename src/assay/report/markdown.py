"""Converts Markdown written by a model to a tree of harmless elements.

Pages build the tree node by node, so that no HTML is ever parsed. The tree contains only allowed
elements and attributes that Assay sets. HTML in the source is shown as text, because a reviewer
must see everything that the judge wrote. Images are replaced by their descriptions, because
fetching an image would reveal the reader to a server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Final, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from assay.report.syntax import marks_of

Node: TypeAlias = "str | Element"
Element: TypeAlias = "list[str | dict[str, str] | Element]"
"""`[tag, attributes, *children]`: JSON from which a page can build elements without ever parsing
HTML.
"""

TAGS: Final = frozenset(
    {
        "p",
        "br",
        "hr",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "blockquote",
        "pre",
        "code",
        "em",
        "strong",
        "del",
        "a",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
)
_OTHER_TAGS: Final = {"s": "del"}
_FORMULA: Final = re.compile(
    r"\$\$(?P<block>(?:\\.|[^$\\]){1,2000})\$\$|\\\[(?P<display>.{1,2000}?)\\\]|\\\((?P<inline>.{1,500}?)\\\)"
    r"|(?P<environment>\\begin\{(?P<name>align|equation|gather|multline|eqnarray)(?P<star>\*?)\}.{1,2000}?"
    r"\\end\{(?P=name)(?P=star)\})"
    # as in Pandoc: `$5 and $6` is money
    r"|\$(?P<short>(?:\\[^\n]|[^\s$\\])(?:(?:\\[^\n]|[^$\n\\]){0,300}(?:\\[^\n]|[^\s$\\]))?)\$(?!\d)",
    re.DOTALL,
)


def safe_tree(text: str) -> list[Node]:
    """Return Markdown as a tree of allowed elements; links use http or https only and send no
    referrer.
    """
    return _TreeBuilder().add(_renderer().parse(text))


def reading_tree(text: str, *, first_line: int = 1) -> list[Node]:
    """Return a response as a tree like that of `safe_tree`, formatted for reading a long text.

    A block's `data-at` contains its first and last source lines, counted from `first_line`, so that
    quotations can be located. Line breaks are kept, unless the text is hard-wrapped. Formulas are
    code elements with `data-tex`, and fenced code has `data-marks`.
    """
    return _TreeBuilder(first_line=first_line, breaks=not _is_wrapped(text)).add(
        _reader().parse(text)
    )


def _is_wrapped(text: str) -> bool:
    """True if most lines have about the same length, as in text that an editor hard-wrapped."""
    lines = text.splitlines()
    inner = [len(line) for line, after in pairwise(lines) if line.strip() and after[:1].isalpha()]
    return (
        len(inner) > 1
        and max(inner) <= 100
        and 2 * sum(length > 55 for length in inner) > len(inner)
    )


@cache
def _renderer() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(
        ["table", "strikethrough"]
    )
    return markdown.disable(["entity"])  # so that `&lt;` stays what the judge wrote


@cache
def _reader() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(
        ["table", "strikethrough"]
    )
    # else `\(` would lose its backslash
    markdown.inline.ruler.before("escape", "formula", _read_formula)
    return markdown.disable(["entity"])


def _read_formula(state: StateInline, silent: bool) -> bool:
    match = _FORMULA.match(state.src, state.pos) if state.src[state.pos] in "$\\" else None
    if match is None:
        return False
    if not silent:
        token = state.push("formula", "code", 0)
        token.content = match[match.lastgroup or 0].strip()
        token.info = "block" if match.lastgroup in ("block", "display", "environment") else "inline"
    state.pos = match.end()
    return True


class _TreeBuilder:
    """Turns tokens into nested lists; without `first_line`, blocks get no source lines and code
    gets no marks.
    """

    def __init__(self, *, first_line: int | None = None, breaks: bool = False) -> None:
        self._first_line = first_line
        self._breaks = breaks
        self.roots: list[Node] = []
        self._open: list[Element] = []

    def add(self, tokens: Sequence[Token]) -> list[Node]:
        for token in tokens:
            if token.hidden:
                continue
            if token.nesting > 0:
                element: Element = [
                    token.tag if token.tag in TAGS else _OTHER_TAGS[token.tag],
                    self._attributes(token),
                ]
                self._put(element)
                self._open.append(element)
            elif token.nesting < 0:
                self._open.pop()
            else:
                self._leaf(token)
        return self.roots

    def _leaf(self, token: Token) -> None:
        match token.type:
            case "inline":
                self.add(token.children or ())
            case "softbreak" if not self._breaks:
                self._put("\n")
            case "softbreak" | "hardbreak" | "hr":
                self._put(["hr" if token.type == "hr" else "br", self._attributes(token)])
            case "code_inline":
                self._put(["code", {}, token.content])
            case "formula":
                self._put(["code", {"data-tex": token.info}, token.content])
            case "fence" | "code_block":
                marks = (
                    ""
                    if self._first_line is None
                    else marks_of(token.content, token.info.split(" ")[0])
                )
                known = {"data-marks": marks} if marks else {}
                self._put(["pre", {}, ["code", self._attributes(token) | known, token.content]])
            case "image":
                self._put(f"[image: {token.content or 'no description'}]")
            case _ if token.content:
                self._put(token.content)

    def _attributes(self, token: Token) -> dict[str, str]:
        attributes: dict[str, str] = {}
        href = str(token.attrGet("href") or "")
        if token.tag == "a" and href.lower().startswith(("http://", "https://")):
            # `//host` and paths would depend on where the page is served from.
            attributes = {"href": href, "rel": "noopener noreferrer nofollow"}
        elif token.tag == "ol" and token.attrGet("start") is not None:
            attributes = {"start": str(token.attrGet("start"))}
        if token.map and self._first_line is not None:
            start, end = (line + self._first_line for line in token.map)
            attributes["data-at"] = f"{start}-{max(start, end - 1)}"
        return attributes

    def _put(self, node: Node) -> None:
        (self._open[-1] if self._open else self.roots).append(node)
