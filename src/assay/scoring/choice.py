"""The `choice` scorer: finds which option of a closed question a response chooses, such as a
letter, or yes or no.

The first of these rules that names a single option decides:

1. the part that the response marks as its answer (`final_answer.marked_answer`), or a line such as
`Answer: B`;
2. the whole response, if it mentions one option only;
3. for letters, `the option is B`;
4. the beginning, if the response begins with an option: `B, because …`, `No. A yes would …`;
5. the last sentence that mentions an option.

A response that names no option, or several in the sentence that decides, scores 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from assay.domain.digest import JsonValue
from assay.scoring.contains import plain_words
from assay.scoring.final_answer import marked_answer
from assay.scoring.scorer_result import Outcome, Score, Unscored

_PAIRS: Final = (("yes", "no"), ("true", "false"))
"""Options that need not be listed."""

_LETTER_REFERENCE: Final = re.compile(r"\W*([A-Za-z])(?:[).:\]]?|[).:\]]\s.*)\W*", re.DOTALL)
_LETTER: Final = re.compile(
    r"(?<![A-Za-z0-9'’])(?:"
    r"[(\[{]\s*([A-Za-z])\s*[)\]}]"  # (b), [B]
    r"|([A-Z])(?![A-Za-z0-9'’]|\s*[-+=*/]\s*\w|\.[A-Za-z]))"
)
_ARTICLE: Final = re.compile(r"\s+(?!(?:is|was|because|since|as|would|seems|fits|and|or)\b)[a-z]")
"""Follows an `A` that begins a sentence as its article: `A good example is …`, but not `A is
right`.
"""
_SENTENCE_STARTS: Final = re.compile(r"(?:\A|[.!?:\n])\W*\Z")
_MARKED_LINE: Final = re.compile(
    r"^[^\w\n]*(?:(?:the\s+)?(?:final|correct|best)\s+)?(?:answer|choice|option|verdict|label)\W{0,4}(?:is\b)?\W*[:=]\W*(\S[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_ANNOUNCED: Final = re.compile(
    r"\b(?:answer|option|choice|one)\s+(?:is|must be|would be|has to be)\W*([A-Z])(?![\w'’])"
)
_SENTENCES: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_DENYING: Final = re.compile(r"\b(?:not|rather than|instead of)\b|n['’]t\b", re.IGNORECASE)
_DENYING_A_LETTER: Final = re.compile(
    rf"{_DENYING.pattern}|\b(?:wrong|incorrect|false|eliminat\w+|rul\w+ out)\b", re.IGNORECASE
)
_MAX_TEXT: Final = 20_000


def choice(response: str, reference: str, options: Mapping[str, JsonValue], /) -> Outcome:
    """Score 1 if the response chooses the option that the reference names, else 0.

    `options` lists the options; it can be left out for single letters, yes and no, and true and
    false.
    """
    wanted = _wanted(reference, _listed(options))
    if wanted is None:
        return Unscored(
            "bad_reference",
            f"{reference.strip()[:60]!r} is not an option. List them: score: {{choice: {{options: […]}}}}",
        )
    option, others = wanted
    chosen = _chosen(response.strip()[-_MAX_TEXT:], others)
    if chosen is None:
        return Score(0.0, "chooses no option, or several", 0.8)
    return Score(float(chosen == option), f"chooses {chosen}", 0.9)


def option_problems(options: Mapping[str, JsonValue]) -> Sequence[str]:
    listed = options.get("options", ["yes", "no"])
    texts = (
        [str(option) for option in listed if isinstance(option, str | int | float)]
        if isinstance(listed, list)
        else []
    )
    if (
        not isinstance(listed, list)
        or len(texts) < len(listed)
        or len({plain_words(text) for text in texts}) < 2
    ):
        return (
            f"`options` is {listed!r}; it must be a list of at least two different options, such as [yes, no].",
        )
    return ()


def _listed(options: Mapping[str, JsonValue]) -> tuple[str, ...]:
    listed = options.get("options")
    return tuple(_word(option) for option in listed) if isinstance(listed, list) else ()


def _word(option: JsonValue) -> str:
    return str(option).lower() if isinstance(option, bool) else str(option)


@lru_cache(maxsize=256)
def _wanted(reference: str, listed: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """Return the option that the reference names and all options; no options stand for any
    letter.
    """
    letters = not listed or all(
        len(option.strip()) == 1 and option.strip().isalpha() for option in listed
    )
    if letters and (letter := _LETTER_REFERENCE.fullmatch(reference.strip())):
        return letter[1].upper(), ()
    word = plain_words(reference).rstrip(".")
    options = tuple(plain_words(option) for option in listed) or next(
        (pair for pair in _PAIRS if word in pair), ()
    )
    if not options:
        return None
    return word, options if word in options else (*options, word)


def _chosen(text: str, options: tuple[str, ...]) -> str | None:
    """Return the option that a response chooses, or None if it names none or does not decide
    between several.
    """
    if (marked := marked_answer(text)) is None and (lines := _MARKED_LINE.findall(text)):
        marked = lines[-1]
    if marked is not None and (
        named := _mentioned(_without_denials(marked, options), options, marked=True)
    ):
        return named[0]
    everywhere = _mentioned(text, options)
    if len(set(everywhere)) <= 1:
        return everywhere[0] if everywhere else None
    if not options and (announced := _ANNOUNCED.findall(text)):
        return str(announced[-1])
    sentences = [sentence for sentence in _SENTENCES.split(text) if sentence.strip()]
    opening = sentences[0] if sentences else ""
    if (begins := _begins_with(opening, options)) is not None:
        return begins
    for sentence in reversed(sentences):
        named = _mentioned(sentence, options)
        if len(set(named)) == 1:
            return named[0]
        if named:
            kept = _mentioned(_without_denials(sentence, options), options)
            return kept[0] if len(set(kept)) == 1 else None
    return None


def _mentioned(text: str, options: tuple[str, ...], *, marked: bool = False) -> list[str]:
    """Return the options that a text mentions, in order.

    In a marked answer, a small letter counts too.
    """
    if options:
        return [match[0] for match in _words(options).finditer(plain_words(text))]
    if re.fullmatch(r"\W*[A-Za-z]\W*", text) or (
        marked and re.match(r"\W*[A-Za-z](?![\w'’])(?!\s+[a-z])", text)
    ):
        return [next(letter for letter in text if letter.isalpha()).upper()]
    return [
        (match[1] or match[2]).upper()
        for match in _LETTER.finditer(text)
        if match[2] not in ("A", "I") or not _is_word(text, match)
    ]


def _is_word(text: str, match: re.Match[str]) -> bool:
    """True if a single `A` or `I` is the article or the pronoun."""
    if match[2] == "I":
        return True
    before = text[max(0, match.start() - 20) : match.start()]
    return (
        _ARTICLE.match(text, match.end()) is not None
        and _SENTENCE_STARTS.search(before) is not None
    )


def _begins_with(sentence: str, options: tuple[str, ...]) -> str | None:
    named = _mentioned(sentence, options)
    if not named or (not options and _DENYING_A_LETTER.search(sentence)):
        return None
    start = plain_words(sentence).lstrip("\"'([ ")
    first = plain_words(named[0])
    if not start.startswith(first):
        return None
    # `Yes, …` decides although the sentence may go on to name another option; `Yes and no` does
    # not.
    alone = (
        set(named) == {named[0]}
        or re.match(r"[\"')\]]?(?:[,.;:!(—–]|\s-|\Z)", start[len(first) :]) is not None
    )
    return named[0] if alone else None


def _without_denials(sentence: str, options: tuple[str, ...]) -> str:
    """Return a sentence without its parts, between commas, `but` and `and`, that deny something;
    `false` may be an option.
    """
    denying = _DENYING if options else _DENYING_A_LETTER
    if not denying.search(sentence):
        return sentence
    return ", ".join(
        part.strip()
        for part in re.split(r",|\bbut\b|\band\b", sentence)
        if not denying.search(part)
    )


@lru_cache(maxsize=256)
def _words(options: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(options, key=len, reverse=True)
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")
