r"""The `regex` scorer: searches the response for a regular expression.

There are two engines. RE2 takes linear time for every pattern, so no pattern can hang it; it
supports neither look-around nor back-references. Patterns that need these run on the `regex`
library, which backtracks. Such a pattern has a time limit of half a second, and its repetitions are
checked first, because nested counted repetitions are unrolled in memory. In both engines, `\d`,
`\w`, `\s` and `\b` mean ASCII, and `$` matches at the end of the text and before a line break that
ends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

import re2  # type: ignore[import-untyped]  # it ships no types
import regex  # type: ignore[import-untyped]  # it ships no types

from assay.domain.digest import JsonValue
from assay.scoring.scorer_result import Outcome, Score, Unscored

TIME_LIMIT_S: Final = 0.5
MAX_PATTERN: Final = 10_000
MAX_UNROLLED: Final = 20_000
"""Maximum atoms of a backtracking pattern after its counted repetitions are written out."""

_MEANT_FLAGS: Final = {"i", "m", "s"}
_IGNORED_FLAGS: Final = {"g", "u", "y"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern: its source, and its flags among `i`, `m` and `s`."""

    source: str
    flags: str


class _Searches(Protocol):
    def search(self, text: str, /) -> object | None: ...


class _SearchesInTime(Protocol):
    def search(self, text: str, /, *, timeout: float) -> object | None:
        """Return the first match or None; raises TimeoutError after `timeout` seconds."""
        ...


class BadPattern(ValueError):
    """A pattern that cannot be used; the message is a sentence."""


def pattern_of(text: str) -> Pattern:
    """Parse a pattern, either plain or as `/pattern/flags`; raises `BadPattern` for an unknown
    flag.
    """
    slashed = re.fullmatch(r"/(.+)/([A-Za-z]*)", text, re.DOTALL)
    if not slashed:
        return Pattern(text, "")
    source, flags = slashed[1], set(slashed[2])
    if unknown := flags - _MEANT_FLAGS - _IGNORED_FLAGS:
        raise BadPattern(
            f"has no flag {''.join(sorted(unknown))!r}; flags are i, m and s (g, u and y change nothing here)."
        )
    return Pattern(source, "".join(sorted(flags & _MEANT_FLAGS)))


def pattern_problem(text: str) -> str | None:
    """Return why a pattern cannot be used, or None.

    The reason completes a sentence whose subject is the pattern.
    """
    try:
        search_for(text)
    except BadPattern as problem:
        return str(problem)
    return None


def regex_scorer(response: str, reference: str, options: Mapping[str, JsonValue], /) -> Outcome:
    """Score 1 if the response contains a match of the pattern, else 0; unscored if the search
    exceeds its time limit.
    """
    if not reference.strip():
        return Unscored(
            "no_reference", "The reference is empty, so there is no pattern to search for."
        )
    try:
        match = search_for(reference.strip())(response)
    except BadPattern as problem:
        return Unscored("bad_pattern", f"The pattern {reference.strip()[:80]!r} {problem}")
    except TimeoutError:
        return Unscored(
            "pattern_timeout",
            f"The pattern {reference.strip()[:80]!r} took longer than {TIME_LIMIT_S:g} s on this response.",
        )
    return Score(1.0, "the pattern matches") if match else Score(0.0, "the pattern does not match")


@lru_cache(maxsize=256)
def search_for(reference: str) -> Callable[[str], bool]:
    """Return a predicate that searches a text for the pattern; cached, because a suite uses few
    patterns on many responses.
    """
    pattern = pattern_of(reference)
    linear = _linear(pattern)
    if linear is None:
        backtracking = _backtracking(pattern)
        return lambda text: bool(backtracking.search(_encodable(text), timeout=TIME_LIMIT_S))

    def found(text: str) -> bool:
        text = _encodable(text)
        return bool(linear.search(text)) or (text.endswith("\n") and bool(linear.search(text[:-1])))

    return found


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _linear(pattern: Pattern) -> _Searches | None:
    """Compile the pattern on RE2; None if RE2 does not support it."""
    if len(pattern.source) > MAX_PATTERN:
        raise BadPattern(f"is longer than {MAX_PATTERN} characters.")
    settings = re2.Options()
    settings.log_errors = False
    prefix = f"(?{pattern.flags})" if pattern.flags else ""
    try:
        compiled: _Searches = re2.compile(prefix + pattern.source, settings)
    except re2.error:
        return None
    return compiled


def _backtracking(pattern: Pattern) -> _SearchesInTime:
    source = _literal_braces(pattern.source)
    if _unrolled(source) > MAX_UNROLLED:
        raise BadPattern(
            "has counted repetitions that are too long to search for; use smaller counts."
        )
    flags = regex.VERSION0 | regex.ASCII
    for flag in pattern.flags:
        flags |= {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL}[flag]
    try:
        compiled: _SearchesInTime = regex.compile(source, flags)
    except (regex.error, ValueError, OverflowError, RecursionError) as problem:
        raise BadPattern(f"is not a regular expression: {problem}.") from problem
    return compiled


_TOKEN: Final = re.compile(
    r"\\[pPNxug]\{[^{}]*\}|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*+(?:\]|\Z)|\{(?P<count>\d*(?:,\d*)?)\}|.",
    re.DOTALL,
)


def _literal_braces(source: str) -> str:
    """Escape braces that are not a repetition; the library would read `x_{i}` as fuzzy matching."""
    return "".join(
        f"\\{token[0]}" if token[0] in "{}" and len(token[0]) == 1 else token[0]
        for token in _TOKEN.finditer(source)
    )


def _unrolled(source: str) -> int:
    """Count the atoms that a pattern has after every counted repetition is written out."""
    sizes = [0]
    last = 0
    for token in _TOKEN.finditer(source):
        text = token[0]
        count = token["count"]
        if count is not None and re.search(r"\d", count):
            most = max(int(digits[:9]) for digits in re.findall(r"\d+", count))
            sizes[-1] += last * max(0, most - 1)
            last *= max(1, most)
        elif text == "(":
            sizes.append(0)
            last = 0
        elif text == ")" and len(sizes) > 1:
            last = sizes.pop() + 1
            sizes[-1] += last
        elif text not in "*+?|":
            last = 1
            sizes[-1] += 1
    return sum(sizes)
