"""Syntax highlighting: the length and kind of each token, for colouring text that is already on a
page.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pygments.lexers import find_lexer_class_by_name
from pygments.token import Comment, Keyword, Name, Number, String
from pygments.util import ClassNotFound

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_CODE: Final = 100_000
"""Maximum characters of a text that is coloured."""
_LIMIT_S: Final = 0.5
_PROSE: Final = frozenset({"Text only", "Markdown", "Text output"})
_KINDS: Final = (
    (Comment, "c"),
    (String, "s"),
    (Number, "n"),
    (Keyword, "w"),
    (Name.Tag, "w"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "f"),
    (Name.Attribute, "f"),
    (Name.Builtin, "b"),
    (Name.Constant, "b"),
)
BREAKS: Final = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Line breaks that pages show as a plain line break; the same as `BREAKS` in `item.js`."""


def is_code_language(language: str) -> bool:
    """True for programming languages, but not for plain text, Markdown and natural languages."""
    return _lexer_of(language.strip().lower()) is not None


@lru_cache(512)
def marks_of(code: str, language: str) -> str:
    """Return each token's length and kind, such as `3w1_5f` for `def start`; empty for an unknown
    language or long text.

    Kinds are the letters used in the style sheet, and `_` means plain. Lengths count UTF-16 units,
    as scripts in browsers do.
    """
    lexer = _lexer_of(language.strip().lower())
    if lexer is None or len(code) > MAX_CODE:
        return ""
    pieces: list[tuple[int, str]] = []
    # CPU time: a busy machine must not cost a text its colours
    deadline = time.thread_time() + _LIMIT_S
    for _, token, text in lexer().get_tokens_unprocessed(BREAKS.sub("\n", code)):
        kind = next((kind for known, kind in _KINDS if token in known), "_")
        length = (
            len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
        )
        if pieces and pieces[-1][1] == kind:
            pieces[-1] = (pieces[-1][0] + length, kind)
        elif length:
            pieces.append((length, kind))
        # the rest stays plain: some patterns of some lexers are slow on hostile text
        if time.thread_time() > deadline:
            break
    return "".join(f"{length}{kind}" for length, kind in pieces)


@lru_cache(512)
def _lexer_of(language: str) -> type[Lexer] | None:
    if not language:
        return None
    try:
        lexer: type[Lexer] = find_lexer_class_by_name(language)
    except ClassNotFound:
        return None
    return None if lexer.name in _PROSE else lexer
