"""Web services as candidates: templates build the request, and a path locates the answer in the
reply.
"""

from __future__ import annotations

from time import time
from typing import Final
from urllib.parse import quote, urlsplit

from yarl import URL

from assay.domain.calls import ModelRequest, Reply
from assay.domain.errors import SettingsError
from assay.domain.failure import Fault
from assay.domain.programs import WebService
from assay.domain.prompts import filled_in
from assay.providers.address_rules import own_key
from assay.providers.endpoint import proxy_for
from assay.providers.error_mapping import clean, retry_after_s, saying
from assay.providers.json_body import UnreadableBody, dump, parse
from assay.providers.origin import Origin, origin_of
from assay.providers.programs.call import (
    LONGEST_ANSWER,
    bad_answer,
    failed,
    filled,
    input_of,
    reply_in,
    reply_of,
    text_values,
)
from assay.providers.registry import ProviderContext
from assay.providers.session import Address, HttpAnswer

KEY: Final = "key"
"""Template name for the address's key, in headers and body."""

_PASSING: Final = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses of a service that was not reached or is busy; the request may be sent again."""


class WebServices:
    """A `ports.Provider` for one web service."""

    def __init__(self, program: WebService, context: ProviderContext) -> None:
        self._program = program
        self._http = context.http
        self._origin = _allowed_origin(program, context)
        choice = own_key(self._origin, context.environment, context.rules)
        self._key = choice.key
        if self._key is None and _names_key(program):
            raise SettingsError(
                f"http of {program.label}",
                f"uses {{{{{KEY}}}}}, but {choice.missing}.",
                remedy=f"Set {choice.variable}.",
            )
        project = context.rules.project
        proxies = {
            name: value for name, value in context.environment.items() if name not in project
        }
        self._proxy = (
            None if self._origin.local else proxy_for(urlsplit(str(self._origin)), proxies)
        )
        pinned = (
            self._origin.scheme != "https"
            and self._key is not None
            and not context.rules.allow_http_keys
        )
        self._pinned = pinned or context.local_only

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Send the request and return the reply; raises `CallFailed` for an error status or a reply
        without an answer.
        """
        program = self._program
        given = input_of(request)
        values = text_values(given)
        url = filled_in(
            program.url, {name: quote(value, safe="") for name, value in values.items()}
        )
        if not _same_origin(url, self._origin):
            raise failed("bad_input", f"The task's values would change the address to {url[:100]}.")
        if self._key is not None:
            values[KEY] = self._key
        headers = {name: filled_in(value, values) for name, value in program.headers.items()}
        body = filled(program.body, given, values)
        content = (
            b""
            if body is None
            else body.encode("utf-8", "replace")
            if isinstance(body, str)
            else dump(body)
        )
        if body is not None and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = (
                "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
            )
        if self._key is not None and not _names_key(program):
            headers["Authorization"] = f"Bearer {self._key}"
        # A client may convert the host to a different one than the key was chosen for: IDNA 2003
        # turns "faß.de" into fass.de.
        url = (
            urlsplit(url)._replace(scheme=self._origin.scheme, netloc=self._origin.netloc).geturl()
        )
        address = Address(
            URL(url, encoded=True), headers, self._proxy, self._origin.netloc, self._pinned
        )
        answer = await self._http().send(
            program.method, address, content, timeout_s=program.timeout_s
        )
        return self._reply(request, answer)

    async def close(self) -> None:
        """Do nothing, because the owner of the shared session closes it."""

    def _reply(self, request: ModelRequest, answer: HttpAnswer) -> Reply:
        if not 200 <= answer.status < 300:
            self._complain(answer)
        if len(answer.body) > LONGEST_ANSWER:
            raise failed(
                "too_long",
                f"{self._origin.netloc} answered more than {LONGEST_ANSWER // 2**20} MB.",
            )
        if not (self._program.response or self._program.usage):
            text = answer.body.decode("utf-8", "replace")
            return reply_of(text, {}, request, elapsed_s=answer.elapsed_s)
        try:
            document = parse(answer.body)
        except UnreadableBody:
            shown = clean(answer.body.decode("utf-8", "replace"), key=self._key)[:80]
            raise bad_answer(
                f"{self._origin.netloc} answered with something that is not JSON: {shown!r}."
            ) from None
        return reply_in(document, self._program, request, elapsed_s=answer.elapsed_s)

    def _complain(self, answer: HttpAnswer) -> None:
        status, place = answer.status, self._origin.netloc
        words = clean(saying(answer.body).message, key=self._key)
        detail = f"{place} answered with status {status}{f': {words}' if words else ''}."
        if 300 <= status < 400:
            to = clean(answer.headers.get("Location", ""), key=self._key)
            detail = f"{place} redirects to {to or 'another address'}, which Assay does not follow; write that address in `url`."
        failure = failed(f"http_{status}", detail)
        if status in _PASSING:
            failure.transient, failure.fault = True, Fault.PROVIDER
            failure.retry_after_s = retry_after_s(answer.headers, now_s=time())
        elif status < 500:
            # the suite's description of the request is wrong, or a key is missing
            failure.fault = Fault.HARNESS
        raise failure


def _allowed_origin(program: WebService, context: ProviderContext) -> Origin:
    where = f"http of {program.label}"
    try:
        origin = origin_of(program.url.partition("{{")[0])
    except ValueError as error:
        raise SettingsError(
            where,
            f"has no usable address: {error}.",
            remedy="Write for example https://app.example.com/answer.",
        ) from error
    web = context.rules.web
    if web is not None and origin not in {*web, *context.rules.bound}:
        raise SettingsError(
            where,
            f"has the origin {origin}, which the settings do not allow for runs started from the browser or over HTTP.",
            remedy=f"Add it to assay.yaml as `web_allow_origins: [{origin}]`, or run the suite in a terminal.",
        )
    if context.local_only and not origin.local:
        raise SettingsError(
            where,
            f"is answered by {origin.netloc}, and local_only allows only this machine and network.",
            remedy="Use a local address, or set local_only: false.",
        )
    return origin


def _same_origin(url: str, origin: Origin) -> bool:
    try:
        return origin_of(url) == origin
    except ValueError:
        return False


def _names_key(program: WebService) -> bool:
    return f"{{{{{KEY}}}}}" in dump([program.url, dict(program.headers), program.body]).decode()
