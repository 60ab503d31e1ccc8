"""Hide names in review and arena texts that would reveal who wrote or graded a response.

Texts often spell a name differently from the plan: `gpt-4o-mini` calls itself GPT-4o mini, and a
person signs as WilhelminaJo or wilhelmina_jo. The search therefore treats a name as a sequence of
words and numbers. It ignores up to `_BETWEEN` characters between words, invisible characters, case,
and compatibility forms such as full-width letters. It cannot find a name that is translated,
described, or spelled with similar letters of another script.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from assay.scoring.authorship import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from assay.domain.model import ModelSpec
    from assay.domain.run import RunPlan

HIDDEN_NAME: Final = "▒▒▒"
"""Replaces a name that would reveal who wrote a text."""

# letters and digits; shorter names are not hidden in texts: they are often ordinary words
_SHORT: Final = 3
_BETWEEN: Final = 3
_INVISIBLE: Final = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]*"
)
_PARTS: Final = re.compile(r"\d+|[^\W\d_]+")
_HUMP: Final = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_MAKERS: Final = tomllib.loads((files(__package__) / "makers.toml").read_text("utf-8"))
_LABEL_WORDS: Final = frozenset({("candidate",), ("answer",), ("response",), ("option",)})
_EDITIONS: Final = frozenset({"latest", "preview", "instruct", "chat", "it", "hf", "exp"})


@dataclass(frozen=True, slots=True)
class Mask:
    """Pattern that finds a run's names in a text.

    `needed` contains one word of each name; an ASCII text without any of these words contains no
    name.
    """

    pattern: re.Pattern[str]
    needed: frozenset[str]


def mask_of(plan: RunPlan) -> Mask | None:
    """Return a mask for a run's names as whole words in any spelling; None if no name is long
    enough.
    """
    wanted = {
        tuple(part.casefold() for part in parts)
        for name in _identities(plan)
        if (parts := _parts(name))
    }
    # Every label begins with such a word: if a candidate were called `Candidate`, the label
    # `Candidate C` would be masked.
    rows = [
        parts for parts in wanted if sum(map(len, parts)) >= _SHORT and parts not in _LABEL_WORDS
    ]
    rows.sort(key=lambda parts: (-sum(map(len, parts)), parts))
    signed = sorted({word for candidate in plan.candidates for word in _signatures(candidate.name)})
    if not rows and not signed:
        return None
    either = "|".join([*map(_pattern, rows), *(f"(?-i:{re.escape(word)})" for word in signed)])
    needed = frozenset(
        [*(max(parts, key=len) for parts in rows), *(word.casefold() for word in signed)]
    )
    return Mask(re.compile(rf"(?<![^\W_])(?:{either})(?![^\W_])", re.IGNORECASE), needed)


def masked(text: str, mask: Mask | None) -> str:
    """Replace each name in a text with `HIDDEN_NAME`; a quick search skips most ASCII texts."""
    if mask is None:
        return text
    if text.isascii():
        small = text.lower()
        return (
            mask.pattern.sub(HIDDEN_NAME, text)
            if any(word in small for word in mask.needed)
            else text
        )
    plain = text.translate({ord(char): _plain(char) for char in set(text) if not char.isascii()})
    kept, rest = [], 0
    for match in mask.pattern.finditer(plain):
        kept += [text[rest : match.start()], HIDDEN_NAME]
        rest = match.end()
    return "".join([*kept, text[rest:]])


def _plain(char: str) -> str:
    """Return the plain character for a compatibility form; other characters stay unchanged."""
    form = unicodedata.normalize("NFKC", char)
    return form if len(form) == 1 else char


def _parts(name: str) -> list[str]:
    return _PARTS.findall(_HUMP.sub(" ", unicodedata.normalize("NFKC", name)))


def _pattern(parts: Sequence[str]) -> str:
    words = (_INVISIBLE.join(map(re.escape, part)) for part in parts)
    return rf"[\W_]{{0,{_BETWEEN}}}".join(words)


def _signatures(name: str) -> Iterable[str]:
    """Yield words of a person's full name that may occur without the rest: Wilhelmina for
    `Wilhelmina Jo`.
    """
    words = name.split()
    if len(words) > 1 and all(word.isalpha() and word.istitle() for word in words):
        yield from (
            word for word in words if len(word) > _SHORT and (word.casefold(),) not in _LABEL_WORDS
        )


def _identities(plan: RunPlan) -> Iterable[str]:
    """Yield every name that would reveal an author or grader, including names that a candidate's
    model calls itself.
    """
    for candidate in plan.candidates:
        yield candidate.name
        if candidate.model is not None:
            yield from _names_of(candidate.model)
            called = candidate.model.name.casefold()
            yield from (word for word in MODELS if word in called)
            yield from (
                maker for family, makers in _MAKERS.items() if family in called for maker in makers
            )
    for judge in plan.judges:
        yield judge.name
        yield from _names_of(judge.model)


def _names_of(model: ModelSpec) -> Iterable[str]:
    """Yield a model's names: as in requests, without the provider, and without a final date or
    edition.
    """
    called = model.name.rpartition("/")[2]
    yield from (model.ref, model.name, called)
    words = called.replace("_", "-").split("-")
    while len(words) > 2 and (
        words[-1].casefold() in _EDITIONS or re.fullmatch(r"\d{4,8}", words[-1])
    ):
        words.pop()
        yield "-".join(words)
