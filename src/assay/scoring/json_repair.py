r"""A tolerant reader for the JSON in a model's reply, which repairs common errors.

How it works. At each position where a JSON object or array could begin, the strict reader of the
standard library is tried first. If it fails, the tolerant reader below reads the text once, from
left to right, and repairs errors: comments, missing commas, bare words, raw newlines, LaTeX
backslashes, quotation marks inside strings, a missing end. All text outside JSON documents counts
as prose, so fences and several documents in a row need no special rules.

House rules:
- Nothing here raises an error for any text, and nothing is invented: a missing value stays missing.
  A bare word or number that is cut off by the end of the text (`"score": 1` may be the start of 10)
  is dropped. A string that is cut off becomes a `CutText`, so that no number is read from it.
- Work is limited: `MAX_DEPTH` limits nesting, and a budget proportional to the length of the text
  limits failed starts.
- A model's thoughts (`<think>`) are not part of its answer and are skipped.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Final

from assay.domain.digest import JsonValue

MAX_DEPTH: Final = 60
"""Maximum levels of nesting that the tolerant reader follows; a judge's answer needs five."""

MAX_DEEP_STARTS: Final = 20
"""Number of too deeply nested documents after which the rest of the text is not read."""

START_COST: Final = 200
"""Cost of a failed start in addition to the characters it read; the budget is twelve times the
length of the text.
"""

MAX_STRICT_TRIES: Final = 50
"""Failures after which the strict reader is no longer tried first, because each failure counts the
lines of the text so far.
"""


class CutText(str):
    """A string whose end is missing, because the reply was cut off."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One JSON document found in a text.

    `start` (inclusive) and `end` (exclusive): character positions. `truncated`: True if the
    document's end is missing. `repairs`: names of the repairs, in alphabetical order.
    """

    value: JsonValue
    start: int
    end: int
    truncated: bool = False
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseText:
    """A reply split into JSON documents and prose.

    `documents`: in the order of the text. `prose`: the text around the documents. `answer`: the
    reply without the model's thoughts. `thoughts_only`: True if the reply contains nothing else.
    """

    documents: tuple[Document, ...]
    prose: str
    answer: str
    thoughts_only: bool = False

    @property
    def truncated(self) -> bool:
        """True if the end of the last document is missing."""
        return bool(self.documents) and self.documents[-1].truncated


def read_loosely(text: str) -> LooseText:
    """Return the JSON documents in a text, repaired if necessary, and the prose around them."""
    whole = _strict(text.strip().lstrip("\ufeff").strip())
    if isinstance(whole, str):
        inner = read_loosely(whole) if whole.lstrip()[:1] in ("{", "[") else None
        if inner and inner.documents:
            return inner
    elif isinstance(whole, dict | list):
        return LooseText(
            documents=(Document(value=whole, start=0, end=len(text)),), prose="", answer=text
        )
    scanned = _scan(text)
    if not scanned.documents and '\\"' in text:
        unescaped = _scan(text.replace('\\"', '"'))
        if unescaped.documents:
            return unescaped
    return scanned


# --- finding documents ----------------------------------------------------------------------------

_START: Final = re.compile(
    r"<(?P<close>/?)(?P<tag>think|thinking|thought|thoughts|reasoning|reflection|scratchpad)\b[^<>]{0,100}>"
    r"|\{(?=\s*(?:[\"'“‘`}\w$/#]|\\\"))"
    r"|\[(?=\s*[{\[])",
    re.IGNORECASE,
)
_OPENING_FENCE: Final = re.compile(r"(?:```|~~~)[^\n`~]*\s*\Z")
_CLOSING_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_DECODER: Final = json.JSONDecoder(
    parse_float=lambda digits: _finite(float(digits)), parse_constant=lambda _: None
)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


# Strict JSON accepts these, but no writer means them: control characters from LaTeX commands, and
# characters that no database accepts.
_ODD_ESCAPES: Final = re.compile(
    r"\\u(?:0000|[dD][89a-fA-F])|\\[bf](?=[A-Za-z])|\\t(?=imes|heta|au\b|ext\{|frac)|\\n(?=abla|eq\b)|\\r(?=ho\b|angle|ight)"
    r"|[\x00\ud800-\udfff]"
)


def _strict(text: str) -> JsonValue:
    """Return the value of a text that consists only of JSON; None for any other text."""
    if not text or text[0] not in '{["' or _ODD_ESCAPES.search(text):
        return None
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) else None


def _scan(text: str) -> LooseText:
    documents: list[Document] = []
    prose: list[str] = []
    answer: list[str] = []
    position = prose_from = answer_from = 0
    budget = 12 * len(text) + 10_000
    deep = 0
    strict_tries = MAX_STRICT_TRIES
    thoughts = False
    while budget > 0 and deep < MAX_DEEP_STARTS and (start := _START.search(text, position)):
        if tag := start["tag"]:
            thoughts = True
            prose.append(text[prose_from : start.start()])
            answer.append(text[answer_from : start.start()])
            # its opening tag was in the prompt, so all text before this tag is thinking
            if start["close"]:
                documents.clear()
                prose.clear()
                answer.clear()
                position = start.end()
            else:
                end = re.compile(rf"</{tag}\s*>", re.IGNORECASE).search(text, start.end())
                position = end.end() if end else len(text)
            prose_from = answer_from = position
            continue
        try:
            document = _document_at(text, start.start(), strict=strict_tries > 0)
        except _TooDeep as stopped:
            deep += 1
            position = max(stopped.position, start.start() + 1)
            continue
        except _NoDocument as stopped:
            budget -= stopped.position - start.start() + START_COST
            strict_tries -= 1
            position = start.start() + 1
            continue
        budget -= document.end - document.start + (START_COST if document.repairs else 0)
        strict_tries -= bool(document.repairs)
        documents.append(document)
        prose.append(_OPENING_FENCE.sub("", text[prose_from : document.start]))
        closing = _CLOSING_FENCE.match(text, document.end)
        prose_from = closing.end() if closing else document.end
        position = max(document.end, start.start() + 1)
    prose.append(text[prose_from:])
    answer.append(text[answer_from:])
    around = "\n".join(part.strip() for part in prose if part.strip()).lstrip("\ufeff").strip()
    return LooseText(
        documents=tuple(documents),
        prose=_clean(around),
        answer=_clean("".join(answer).strip()),
        thoughts_only=thoughts and not documents and not around,
    )


def _document_at(text: str, start: int, *, strict: bool) -> Document:
    if strict:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            pass
        else:
            if not _ODD_ESCAPES.search(text, start, end):
                return Document(value=value, start=start, end=end)
    reader = _Reader(text, start)
    value = reader.document()
    return Document(
        value=value,
        start=start,
        end=reader.at,
        truncated=reader.truncated,
        repairs=tuple(sorted(reader.repairs)),
    )


# --- the tolerant reader --------------------------------------------------------------------------


class _NoDocument(Exception):
    """Raised if a text begins like an object but is not one; `position` is where reading
    stopped.
    """

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class _TooDeep(_NoDocument):
    """Raised if a document is nested deeper than `MAX_DEPTH`."""


class _Nothing:
    """A marker for a missing value."""


_NOTHING: Final = _Nothing()

_BLANK: Final = re.compile(
    r"(?:[\s\ufeff\u200b\u2060]+|//[^\n]*|#[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|$))+"
)
_FENCE: Final = re.compile(r"```|~~~")
_NUMBER: Final = re.compile(
    r"[-+−]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
    r"(?=[ \t]*(?:[,;}\]\n\r\"'“”#]|//|/\*|```|$))"
)
_BARE: Final = re.compile(r"[^,;{}\[\]\n\r\"“”`]+")
_BARE_COMMENT: Final = re.compile(r"(?:(?<=\s)//|(?<=\s)#|/\*).*", re.DOTALL)
_BARE_KEY: Final = re.compile(r"([\w$][\w$.\-]{0,80}(?: [\w$.\-]{1,40}){0,6})\s*:(?!//)")
_UNFINISHED_KEY: Final = re.compile(r"[^\n]{1,200}\Z")
_UNFINISHED_BARE_KEY: Final = re.compile(r"[\w$.\- ]{1,120}\Z")
_JUNK: Final = re.compile(r"[^,}\]\n\"'“{\[]+")
_STRICT_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_KEY_STRING: Final = {
    '"': re.compile(r'"((?:[^"\\\n]|\\.)*)"'),
    "'": re.compile(r"'((?:[^'\\\n]|\\.)*)'"),
    "`": re.compile(r"`((?:[^`\\\n]|\\.)*)`"),
    "“": re.compile(r'[“”„]((?:[^"“”\\\n]|\\.)*)["“”]'),
    "‘": re.compile(r"[‘’]((?:[^'‘’\\\n]|\\.)*)['‘’]"),
}
_QUOTES: Final = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": '“”"',
    "”": '“”"',
    "„": '“”"',
    "‘": "‘’'",
    "’": "‘’'",
}
_CHUNK: Final = {
    '"': re.compile(r'[^"\\]*'),
    "'": re.compile(r"[^'\\]*"),
    "`": re.compile(r"[^`\\]*"),
    '“”"': re.compile(r'[^"“”\\]*'),
    "‘’'": re.compile(r"[^'‘’\\]*"),
}
_WORDS: Final[dict[str, bool | None]] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "nil": None,
    "undefined": None,
    "nan": None,
    "infinity": None,
    "-infinity": None,
    "+infinity": None,
    "inf": None,
    "-inf": None,
}
_ESCAPES: Final = {
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}

_NEXT_KEY: Final = (
    r"""(?:"(?:[^"\\\n]|\\.){0,120}"\s*:|'[^'\n]{0,120}'\s*:|“[^”\n]{0,120}[”"]\s*:)"""
)
_AFTER_BRACKET: Final = r"(?=\s*(?:$|[,;}\])]|```|~~~)|[ \t]*(?:\n|//|\#))"


def _ends_value(next_key: str) -> re.Pattern[str]:
    return re.compile(
        rf"""\s*(?:$|\}}{_AFTER_BRACKET}|\]\s*(?=$|[,}}\]])|[,;]\s*(?=$|\}}|{next_key}|//|\#|/\*)|{next_key}
        |(?://|\#)[^\n]*\n\s*(?=\}}|{next_key})|/\*|```|~~~|\+\s*["'])""",
        re.VERBOSE,
    )


_ENDS: Final = {
    "member": _ends_value(_NEXT_KEY),
    "bare member": _ends_value(rf"(?:{_NEXT_KEY}|[A-Za-z_$][\w$\-]{{0,60}}\s*:)"),
    "item": re.compile(
        rf"""\s*+(?:$|\]{_AFTER_BRACKET}|[,;]\s*(?=$|["'“‘\[{{\]]|-?\d|true|false|null|None|//|\#|/\*)
        |\}}\s*(?=$|[,}}\]])|(?://|\#)[^\n]*\n|/\*|```|~~~|\+\s*["'])|[^\S\n]*+\n\s*+["'“]""",
        re.VERBOSE,
    ),
}
_MAY_END: Final = re.compile(r"\s*(?:$|[,}\]\n])")
_CONCATENATED: Final = re.compile(r"\s*\+\s*(?=[\"'])")


class _Reader:
    """Reads one document that begins at `at`, and keeps all members and items that can be read."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.truncated = False
        self.repairs: set[str] = set()
        self._open_lists = 0

    def document(self) -> JsonValue:
        return self._object(1) if self.text[self.at] == "{" else self._list(1)

    def _blank(self) -> None:
        if blank := _BLANK.match(self.text, self.at):
            if "/" in blank[0] or "#" in blank[0]:
                self.repairs.add("comment")
            self.at = blank.end()

    def _cut_here(self) -> bool:
        """True if the document ends here unfinished, at the end of the text or of the code fence
        around it.
        """
        if self.at < len(self.text) and not _FENCE.match(self.text, self.at):
            return False
        self.truncated = True
        self.repairs.add("unclosed")
        return True

    def _object(self, depth: int) -> dict[str, JsonValue]:
        if depth > MAX_DEPTH:
            raise _TooDeep(self.at)
        members: dict[str, JsonValue] = {}
        self.at += 1
        comma = True
        while True:
            self._blank()
            if self._cut_here():
                return members
            mark = self.text[self.at]
            if mark == "}":
                if comma and members:
                    self.repairs.add("trailing comma")
                self.at += 1
                return members
            if mark in ",;":
                comma = True
                self.at += 1
                continue
            if mark == "]" and self._open_lists:
                self.repairs.add("wrong bracket")
                return members
            key = self._key()
            if key is None:
                if self.at >= len(self.text):
                    self._cut_here()
                    return members
                if depth == 1 and not members:
                    raise _NoDocument(self.at)
                self._pass_over(depth)
                continue
            if not comma:
                self.repairs.add("missing comma")
            value = self._value(depth, "member")
            if not isinstance(value, _Nothing):
                members[key] = value
            comma = False

    def _list(self, depth: int) -> list[JsonValue]:
        if depth > MAX_DEPTH:
            raise _TooDeep(self.at)
        items: list[JsonValue] = []
        self.at += 1
        self._open_lists += 1
        comma = True
        try:
            while True:
                self._blank()
                if self._cut_here():
                    return items
                mark = self.text[self.at]
                if mark == "]":
                    if comma and items:
                        self.repairs.add("trailing comma")
                    self.at += 1
                    return items
                if mark in ",;":
                    comma = True
                    self.at += 1
                    continue
                if mark == "}":
                    self.repairs.add("wrong bracket")
                    return items
                before = self.at
                if not comma:
                    self.repairs.add("missing comma")
                comma = False
                value = self._value(depth, "item")
                if not isinstance(value, _Nothing):
                    items.append(value)
                if self.at == before:
                    self._pass_over(depth)
        finally:
            self._open_lists -= 1

    def _key(self) -> str | None:
        """Read the next member's key and colon; None if the text ended, or if there is no key
        (nothing is then consumed).
        """
        mark = self.text[self.at]
        if mark == "\\" and self.text.startswith('\\"', self.at):
            return None
        if mark in _QUOTES:
            quoted = _KEY_STRING[{"”": "“", "„": "“", "’": "‘"}.get(mark, mark)].match(
                self.text, self.at
            )
            if quoted is None:
                if _UNFINISHED_KEY.match(self.text, self.at):
                    self.at = len(self.text)
                return None
            after = quoted.end()
            if blank := _BLANK.match(self.text, after):
                after = blank.end()
            if after >= len(self.text):
                self.at = after
                return None
            if self.text[after] not in ":=":
                return None
            if mark != '"':
                self.repairs.add("quotes")
            self.at = after + (2 if self.text.startswith("=>", after) else 1)
            return self._decoded(quoted[1])
        if bare := _BARE_KEY.match(self.text, self.at):
            self.repairs.add("bare key")
            self.at = bare.end()
            return bare[1]
        if _UNFINISHED_BARE_KEY.match(self.text, self.at):
            self.at = len(self.text)
        return None

    def _value(self, depth: int, place: str) -> JsonValue | _Nothing:
        self._blank()
        if self._cut_here():
            return _NOTHING
        mark = self.text[self.at]
        if mark == "{":
            return self._object(depth + 1)
        if mark == "[":
            return self._list(depth + 1)
        if mark in _QUOTES:
            return self._string(place)
        if mark in ",;}]":
            if place == "member":
                self.repairs.add("missing value")
            return _NOTHING
        return self._bare()

    def _bare(self) -> JsonValue | _Nothing:
        if (number := _NUMBER.match(self.text, self.at)) and len(number[0]) < 400:
            self.at = number.end()
            if self._ends_at(self.at):
                self.truncated = True
                self.repairs.add("unclosed")
                return _NOTHING
            return _number(number[0])
        bare = _BARE.match(self.text, self.at)
        if bare is None:
            return _NOTHING
        start, self.at = self.at, bare.end()
        word = bare[0]
        if comment := _BARE_COMMENT.search(word):
            self.repairs.add("comment")
            if "/*" in comment[0]:
                self.at = start + comment.start()
                self._blank()
            word = word[: comment.start()]
        word = word.strip()
        if self._ends_at(self.at):
            self.truncated = True
            self.repairs.add("unclosed")
            return _NOTHING
        if word.lower() in _WORDS:
            if word not in ("true", "false", "null"):
                self.repairs.add("literal")
            return _WORDS[word.lower()]
        if word in ("", "...", "…"):
            self.repairs.add("ellipsis")
            return _NOTHING
        self.repairs.add("bare word")
        return _clean(word)

    def _ends_at(self, position: int) -> bool:
        return not self.text[position : position + 1] and position >= len(self.text)

    def _string(self, place: str) -> str:
        if place == "member" and "bare key" in self.repairs:
            place = "bare member"
        joined = ""
        while True:
            part = self._one_string(place)
            joined = type(part)(joined + part)
            plus = None if isinstance(part, CutText) else _CONCATENATED.match(self.text, self.at)
            if plus is None:
                return joined
            self.repairs.add("concatenation")
            self.at = plus.end()

    def _one_string(self, place: str) -> str:
        text, opening = self.text, self.at
        ends = _ENDS[place]
        strict = _STRICT_STRING.match(text, opening)
        if strict and ends.match(text, strict.end()):
            self.at = strict.end()
            return self._decoded(strict[0][1:-1])
        if text.startswith('"""', opening) and (close := text.find('"""', opening + 3)) >= 0:
            self.at = close + 3
            self.repairs.add("quotes")
            return self._decoded(text[opening + 3 : close])
        closing = _QUOTES[text[opening]]
        if closing != '"':
            self.repairs.add("quotes")
        chunk = _CHUNK[closing]
        position = opening + 1
        likely_end = None
        while True:
            position = chunk.match(text, position).end()  # type: ignore[union-attr]
            if position >= len(text):
                break
            if text[position] == "\\":
                position += 2
                continue
            if ends.match(text, position + 1):
                self.at = position + 1
                return self._decoded(text[opening + 1 : position])
            if likely_end is None and _MAY_END.match(text, position + 1):
                likely_end = position
            self.repairs.add("inner quotes")
            position += 1
        if likely_end is not None:
            self.at = likely_end + 1
            return self._decoded(text[opening + 1 : likely_end])
        self.at = len(text)
        self.truncated = True
        self.repairs.add("unclosed")
        return CutText(self._decoded(_without_half_escape(text[opening + 1 :])))

    def _decoded(self, inner: str) -> str:
        """Decode the escapes in a string's source; a backslash that does not start an escape stays
        unchanged.
        """
        if "\\" not in inner:
            if _CONTROL.search(inner):
                self.repairs.add("control characters")
            return _clean(inner)

        def meant(escape: re.Match[str]) -> str:
            if escape["hex"]:
                return chr(int(escape["hex"], 16))
            if escape["latex"]:
                self.repairs.add("backslashes")
                return escape[0]
            mark = escape["mark"]
            if mark in _ESCAPES:
                return _ESCAPES[mark]
            self.repairs.add("backslashes")
            return escape[0]

        return _clean(_ESCAPE.sub(meant, inner))

    def _pass_over(self, depth: int) -> None:
        """Skip text outside all values, by at least one character."""
        self.repairs.add("skipped text")
        mark = self.text[self.at]
        if mark in "{[":
            self._object(depth + 1) if mark == "{" else self._list(depth + 1)
        elif mark in _KEY_STRING and (quoted := _KEY_STRING[mark].match(self.text, self.at)):
            self.at = quoted.end()
        elif junk := _JUNK.match(self.text, self.at):
            self.at = junk.end()
        else:
            self.at += 1


_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_ESCAPE: Final = re.compile(
    r"\\(?:u(?P<hex>[0-9a-fA-F]{4})"
    r"|(?P<latex>[bf](?=[A-Za-z])|t(?=imes|heta|au\b|ext\{|frac)|n(?=abla|eq\b)|r(?=ho\b|angle|ight))"
    r"|(?P<mark>.))",
    re.DOTALL,
)
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")


def _clean(text: str) -> str:
    """Return the text with surrogate pairs joined; characters that databases reject (NUL, lone
    surrogates) become U+FFFD.
    """
    if not _UNSTORABLE.search(text):
        return text
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\x00", "\ufffd")


def _without_half_escape(source: str) -> str:
    return re.sub(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$", r"\1", source)


def _number(digits: str) -> JsonValue:
    plain = digits.replace("−", "-").lstrip("+")
    return int(plain) if re.fullmatch(r"-?\d+", plain) else _finite(float(plain))
