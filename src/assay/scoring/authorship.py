"""Detects names in a response that reveal its author: names of models, model makers and candidates.

Responses are shown unchanged; a vote on such a response is marked, and the result shows the share
of marked votes. Names that are also common words in pages and code (`meta`, `phi`, `command`) are
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Final

MODELS: Final = tuple((files(__package__) / "model_names.txt").read_text("utf-8").splitlines())
"""Names of models and model makers, which can reveal a response's author."""

SHORTEST: Final = 3
"""Minimum letters of a candidate's name to search for; shorter names occur in any text."""

LOOKED_AT: Final = 500_000
"""Maximum characters of a response that are searched."""


def telling_words(text: str, names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the distinct words in `text` that name a model, a model maker or one of `names`, in
    the order of these lists.

    `names`: names of the candidates; for `provider/name`, the text after the slash is searched for
    too.
    """
    own = dict.fromkeys(part for name in names for part in (name, name.rpartition("/")[2]))
    wanted = [*(word for word in own if len(word) >= SHORTEST), *MODELS]
    low = text[:LOOKED_AT].casefold()
    return tuple(dict.fromkeys(word for word in wanted if _stands_in(word.casefold(), low)))


def _stands_in(word: str, text: str) -> bool:
    """True if `word` occurs as a separate word; a version may follow a model's name directly."""
    return (
        word in text and re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W\d_])", text) is not None
    )
