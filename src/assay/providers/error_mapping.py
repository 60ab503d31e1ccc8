"""Convert a server's error response to `CallFailed`: its message, if a retry may help, and who is
at fault.

There is no I/O: the input is status, headers and body. Keys and control characters are removed from
a server's message, because servers quote the keys that they refuse.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import isfinite
from typing import Final, NamedTuple

from assay.domain.failure import CallFailed, Fault
from assay.providers.endpoint import Endpoint
from assay.providers.json_body import UnreadableBody, parse

LONGEST_SAYING: Final = 300
_READ: Final = 20_000

_KEYS: Final = re.compile(
    r"""
    \b bearer \s+ [^\s"',;]+                                                      # a header quoted back
    | \b (?: sk | pk | rk | gsk | xai | hf | nvapi | pplx | csk | key ) [-_] [\w*.\-]{8,}
    | \b AIza [\w\-]{10,}
    | (?<! [\w\-] ) [\w\-]+ \*{3,} [\w\-]*                                              # a key the server half masked
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TAG: Final = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<[^<>]*>", re.IGNORECASE | re.DOTALL)
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TOO_LONG: Final = re.compile(
    r"context[ _]length|context[ _]window|context size|prompt is too long|input is too long|"
    r"exceeds? the (?:model'?s )?(?:maximum|available) context|maximum (?:input|prompt) length",
    re.IGNORECASE,
)
_FILTERED: Final = re.compile(
    r"content[ _](?:filter|policy|management)|responsible_ai_policy|safety system", re.IGNORECASE
)
_NO_MONEY: Final = re.compile(
    r"insufficient_quota|billing_hard_limit|exceeded your current quota|credit balance",
    re.IGNORECASE,
)
_STATUS_BY_NAME: Final = {
    "overloaded": 529,
    "rate_limit": 429,
    "insufficient_quota": 429,
    "authentication": 401,
    "permission": 403,
    "not_found": 404,
    "billing": 402,
    "request_too_large": 413,
    "invalid_request": 400,
    "context_length": 400,
    "content_filter": 400,
    "timeout": 504,
}
_PASSING: Final = frozenset({408, 409, 425, 429})
# The model may have answered and its provider may have charged for it, although the proxy in
# between gave up.
GAVE_UP_WAITING: Final = frozenset({408, 499, 502, 504, 520, 522, 524})
# Not implemented, and HTTP version not supported: the same request would fail again.
_LASTING: Final = frozenset({501, 505})


class Saying(NamedTuple):
    """A server's error message with its code, type and parameter name; missing values are empty."""

    message: str = ""
    code: str = ""
    kind: str = ""
    param: str = ""

    def mentions(self, *words: str) -> bool:
        """True if the message, parameter name or code contains one of the words, ignoring case."""
        text = f"{self.message}\n{self.param}\n{self.code}".lower()
        return any(word in text for word in words)


def saying(body: bytes) -> Saying:
    """Parse the server's error message in any common format: OpenAI, Anthropic, FastAPI, plain
    text, HTML.
    """
    try:
        payload = parse(body)
    except UnreadableBody:
        return Saying(message=_plain(body))
    return _said(payload)


def said_in(error: object) -> Saying:
    return _said({"error": error})


def complaint(
    status: int,
    headers: Mapping[str, str],
    saying: Saying,
    *,
    endpoint: Endpoint,
    model: str,
    now_s: float,
) -> CallFailed:
    """Return the failure for an error status; `now_s` is the time in seconds since 1970.

    429, 529 and 5xx are transient, unless the quota is used up. Other 4xx errors would recur. The
    failure is `context_length` if the prompt exceeds the context, and `refused` by a content
    filter. The call is free, unless a proxy timed out.
    """
    failed = _complaint(status, headers, saying, endpoint=endpoint, model=model, now_s=now_s)
    failed.charged = status in GAVE_UP_WAITING
    return failed


def _complaint(
    status: int,
    headers: Mapping[str, str],
    saying: Saying,
    *,
    endpoint: Endpoint,
    model: str,
    now_s: float,
) -> CallFailed:
    words = clean(saying.message, key=endpoint.key)
    tail = f": {words}" if words else ""
    asked = f"{model} at {endpoint.place}"
    everything = f"{saying.message} {saying.code} {saying.kind}"
    if status in (400, 413, 422) and (
        saying.code == "context_length_exceeded" or _TOO_LONG.search(everything)
    ):
        return CallFailed(
            "context_length",
            _sentence(f"the prompt and its answer do not fit the context of {asked}{tail}"),
            transient=False,
        )
    if status in (400, 403, 422) and _FILTERED.search(everything):
        return CallFailed(
            "refused",
            _sentence(f"{asked} refused the prompt{tail}"),
            transient=False,
            fault=Fault.REFUSAL,
        )
    kind = f"http_{status}"
    if status in (402, 429) and (status == 402 or _NO_MONEY.search(everything)):
        detail = f"the account of {asked} has no quota or credit left ({_title(status)}){tail}"
        return CallFailed(kind, _sentence(detail), transient=False, fault=Fault.HARNESS)
    if status >= 500 or status in _PASSING:
        transient = status not in _LASTING
        detail = f"{asked} answered {_title(status)}{tail}"
        wait_s = retry_after_s(headers, now_s=now_s) if transient else None
        return CallFailed(
            kind, _sentence(detail), transient=transient, retry_after_s=wait_s, fault=Fault.PROVIDER
        )
    if status in (401, 403):
        detail = f"{asked} {_key_trouble(endpoint, status)} ({_title(status)}){tail}"
    elif status == 404:
        detail = f"{asked} was not found ({_title(status)}); check the model's name and {endpoint.vendor.address_variable}{tail}"
    elif 300 <= status < 400:
        place = clean(headers.get("Location", ""), key=endpoint.key)
        detail = (
            f"{asked} redirects to {place or 'another address'} ({_title(status)}), which Assay does not follow; set base_url "
            "to it"
        )
    else:
        detail = f"{asked} refused the request ({_title(status)}){tail}"
    return CallFailed(kind, _sentence(detail), transient=False, fault=Fault.HARNESS)


def status_of(saying: Saying) -> int:
    """Return the HTTP status for an error inside an answer with status 200, from the error's code
    or else its type.
    """
    if saying.code.isdigit() and 400 <= int(saying.code) < 600:
        return int(saying.code)
    name = f"{saying.code} {saying.kind}"
    return next((status for word, status in _STATUS_BY_NAME.items() if word in name), 502)


def retry_after_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """Return the seconds to wait, from `retry-after-ms` or `Retry-After` (seconds or a date); None
    without either header.

    A date is compared with the server's `Date` header, if present, so that differing clocks do not
    matter.
    """
    if (wait_ms := _number(headers.get("retry-after-ms"))) is not None:
        return wait_ms / 1000
    written = headers.get("Retry-After")
    if (wait_s := _number(written)) is not None:
        return wait_s
    then, now = _date(written), _date(headers.get("Date"))
    return None if then is None else max(0.0, then - (now_s if now is None else now))


def clean(text: str, *, key: str | None) -> str:
    """Return a server's error text as one printable line without keys, with at most
    `LONGEST_SAYING` characters.
    """
    # The text is cut before the patterns are applied, because an error page may be as long as the
    # largest answer, 20 MB.
    text = text[:_READ]
    if key:
        text = text.replace(key, "***")
    text = _KEYS.sub("***", "".join(letter if letter.isprintable() else " " for letter in text))
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SAYING else f"{text[: LONGEST_SAYING - 1]}…"


def _said(payload: object) -> Saying:
    match payload:
        case {"error": {"message": message, **rest}}:
            return Saying(
                _text(message),
                _text(rest.get("code")),
                _text(rest.get("type")),
                _text(rest.get("param")),
            )
        case {"error": str(message)}:
            return Saying(message=message)
        case {"message": message, **rest}:
            return Saying(
                _text(message),
                _text(rest.get("code")),
                _text(rest.get("type")),
                _text(rest.get("param")),
            )
        case {"detail": [{"msg": message, **rest}, *_]}:
            return Saying(
                message=f"{_text(message)} ({_text(rest.get('loc'))})"
                if "loc" in rest
                else _text(message)
            )
        case {"detail": detail}:
            return Saying(message=_text(detail))
        case [first, *_]:
            return _said(first)
        case str():
            return Saying(message=payload)
        case None | {}:
            return Saying()
        case _:
            return Saying(message=_text(payload))


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _plain(body: bytes) -> str:
    """Return the title of an HTML page or, without a title, the beginning of its text; return other
    text unchanged.
    """
    text = body[:_READ].decode("utf-8", "replace")
    if title := _TITLE.search(text):
        return html.unescape(title[1])
    return html.unescape(_TAG.sub(" ", text)) if "<" in text else text


def _key_trouble(endpoint: Endpoint, status: int) -> str:
    variable = endpoint.key_variable
    if endpoint.key is None:
        return f"asks for a key, and {endpoint.key_missing or f'{variable} is not set'}"
    return (
        f"does not accept the key in {variable}"
        if status == 401
        else f"does not allow this with the key in {variable}"
    )


def _title(status: int) -> str:
    # Anthropic's own status, which HTTPStatus does not know.
    if status == 529:
        return "529 Overloaded"
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if isfinite(number) else None


def _date(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
