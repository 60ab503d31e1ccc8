"""Mask secrets in command lines before they are stored: by the name of an option or variable, and
by the shape of a key.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

MASK: Final = "***"

_NAME: Final = r"[\w.-]*(?:token|api[-_]?key|secret|passw(?:or)?d|passphrase|credentials?|authorization|cookie)"
# `--max-tokens` and `--tokenizer` name no secret. A plain `key` is one only as an option or
# variable, because `--map key:column` is none.
_OPTION: Final = re.compile(
    rf"-{{1,2}}(?:{_NAME}|(?:[\w.-]*[-_.])?(?:key|auth|pat|pwd|bearer))", re.IGNORECASE
)
_CERTAIN: Final = (
    r"(?:[\w.-]*(?:api[-_]?key|secret|passw(?:or)?d|passphrase)"
    r"|(?:[\w.-]*(?:api|auth|access|bearer|hf|github|gitlab|bot|user)[-_])?token)"
)
# `--stop-token END` and `--cookie jar.txt` hold none.
_CERTAIN_OPTION: Final = re.compile(rf"-{{1,2}}{_CERTAIN}", re.IGNORECASE)
_CERTAIN_VARIABLE: Final = re.compile(rf"({_CERTAIN})=(?P<held>.+)", re.IGNORECASE | re.DOTALL)
_CERTAIN_HEADER: Final = re.compile(
    r"authorization\s*[:=]\s*[\"']?(?:(?:bearer|basic|token)\s+)?(?P<held>[^\s\"']+)", re.IGNORECASE
)
_MIN_KEY: Final = 20  # characters of a text whose shape alone makes it a key
_VARIABLE: Final = re.compile(
    rf"((?:{_NAME}|\w*_(?:key|auth|pat|pwd|pass)|key|pwd)=).+", re.IGNORECASE | re.DOTALL
)
# A name begins where a word does. A search that tried each letter of a long word as its beginning
# would take quadratic time.
_BEGINNING: Final = r"(?<![\w.-])"
_FIELD: Final = re.compile(
    rf"({_BEGINNING}{_NAME}|x-auth|x-key)([\"']?\s*:\s*)(?:\"[^\"]*\"|'[^']*'|[^,}}\"']+)",
    re.IGNORECASE,
)
_PARAMETER: Final = re.compile(
    rf"({_BEGINNING}{_NAME}|(?<![\w-])(?:key|sig|signature))=[^\s&;,\"']+", re.IGNORECASE
)
_LOGIN: Final = re.compile(r"(\w://)(?:[^\s/?#]*|[^\s/:@]*:[^\s@]*)@")
_SHAPE: Final = re.compile(
    r"""
    (?<! [A-Za-z0-9] ) (?:
        (?: sk | pk | rk | key ) [-_] (?= [\w\-]* \d ) [\w\-]{8,}                # OpenAI, Anthropic, Stripe
        | (?: gsk | hf | r8 | npm | gh[opusr] | github_pat ) _ [\w]{8,}
        | (?: xai | nvapi | pplx | csk | glpat | xox[abeoprs] ) - [\w\-]{8,}
        | (?: AKIA | ASIA ) [A-Z0-9]{12,}
        | AIza [\w\-]{10,}
        | ya29\. [\w\-]{10,}
        | eyJ [\w\-]{8,} \. [\w\-]+ (?: \. [\w\-]* )?                          # a JSON Web Token
    )
    """,
    re.VERBOSE,
)
_BEARER: Final = re.compile(r"\b(bearer|basic)(\s+)[^\s\"',;]+", re.IGNORECASE)
_SCHEMES: Final = frozenset({"bearer", "basic", "token", "digest"})


def masked_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with `***` in place of secrets."""
    shown: list[str] = []
    secret_follows = login_follows = False
    for word in words:
        if secret_follows and not word.startswith("--"):
            # In `-H Authorization: Bearer KEY` without quotes, the key is the word after the next.
            secret_follows = word.casefold() in _SCHEMES
            shown.append(word if secret_follows else MASK)
            continue
        name, equals, _ = word.partition("=")
        is_secret = _OPTION.fullmatch(name) is not None
        if is_secret and equals:
            shown.append(f"{name}={MASK}")
        elif login_follows and ":" in word:
            shown.append(MASK)
        else:
            shown.append(word if is_secret else _masked_word(word))
        secret_follows = (
            (is_secret and not equals) or word.casefold() == "bearer" or _is_open_field(word)
        )
        login_follows = word in ("-u", "--user", "--proxy-user")
    return shown


def masked_command(words: Sequence[str]) -> str:
    """Return a command line as it could be typed, without its secrets."""
    return " ".join(
        word if MASK in word and " " not in word else shlex.quote(word)
        for word in masked_words(words)
    )


def masked_line(line: str) -> str:
    """Return a line that contains a command, without its secrets; a line without secrets stays as
    it is.
    """
    try:
        words = shlex.split(line)
    except ValueError:  # an open quote
        words = line.split()
    return line if masked_words(words) == words else masked_command(words)


def place_of_secret(words: Sequence[str]) -> int | None:
    """Return the index of the first word that certainly holds a secret: the value of an option such
    as `--token`, of a variable such as `PASSWORD=…` or of an `Authorization` header, or a text in
    the shape of a key.

    A placeholder such as `{{prompt}}`, a variable such as `$TOKEN` or a command in its place holds
    none. Masking is wider: it also hides what only may be one, such as the value of `--sort-key`.
    """
    follows = False
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        named = _CERTAIN_OPTION.fullmatch(name) is not None
        held = [word] if follows and not word.startswith("-") else [value] if named else []
        variable = _CERTAIN_VARIABLE.fullmatch(word)
        matches = (*_CERTAIN_HEADER.finditer(word), *([variable] if variable else []))
        held += [match["held"] for match in matches]
        held += [key[0] for key in _SHAPE.finditer(word) if _is_certain(key[0])]
        if any(map(_is_literal, held)):
            return place
        follows = named and not equals
    return None


def _is_certain(key: str) -> bool:
    """True if a text in the shape of a key is hardly anything else; `key_value_store_v2` may be."""
    return len(key) >= _MIN_KEY and not key.casefold().startswith("key")


def _is_literal(value: str) -> bool:
    return bool(value) and not value.startswith(("$", "`", "{{"))


def _is_open_field(word: str) -> bool:
    return (
        word.endswith(":")
        and re.fullmatch(_NAME, word.rstrip(":").lstrip("-"), re.IGNORECASE) is not None
    )


def _masked_word(word: str) -> str:
    if (variable := _VARIABLE.fullmatch(word)) is not None:
        return f"{variable[1]}{MASK}"
    word = _LOGIN.sub(rf"\1{MASK}@", word)
    word = _FIELD.sub(rf"\1\2{MASK}", word)
    word = _PARAMETER.sub(rf"\1={MASK}", word)
    word = _BEARER.sub(rf"\1\2{MASK}", word)
    return _SHAPE.sub(MASK, word)
