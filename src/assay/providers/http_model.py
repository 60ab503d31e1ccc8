"""Call models at one HTTP endpoint, using the endpoint's wire protocol.

If the endpoint refuses a part of a request for a model, Assay repeats the call at once without this
part, and omits it from later requests.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from time import time
from typing import Any, ClassVar, Final

from yarl import URL

from assay.domain.calls import ModelRequest, Reply
from assay.domain.failure import NO_TOOLS, CallFailed
from assay.domain.model import ModelSpec
from assay.providers.endpoint import Endpoint, allowed_endpoint
from assay.providers.error_mapping import Saying, complaint, said_in, saying, status_of
from assay.providers.json_body import UnreadableBody, dump, parse
from assay.providers.prices import CostOf
from assay.providers.protocol import (
    USUAL,
    Habits,
    Wire,
    has_images,
    learned,
    refuses_tools,
    shows,
    unreadable,
)
from assay.providers.registry import ProviderContext
from assay.providers.session import Address, HttpAnswer, HttpSession
from assay.providers.wires import WIRES

_log = logging.getLogger(__name__)

MAX_FALLBACKS: Final = 4
# This includes 404, which OpenRouter returns if no host of the model accepts all parts of a
# request.
_REFUSING: Final = frozenset({400, 404, 405, 415, 422, 501})


class HttpModel:
    """A `ports.Provider` for all models at one endpoint."""

    calls_tools: ClassVar[bool] = True

    def __init__(
        self, endpoint: Endpoint, wire: Wire, *, session: HttpSession, cost_of: CostOf
    ) -> None:
        self._endpoint = endpoint
        self._wire = wire
        self._session = session
        self._cost_of = cost_of
        self._habits: dict[str, Habits] = {}
        self._formed: set[str] = set()
        self._address = Address(
            URL(endpoint.url),
            wire.headers(endpoint.key),
            endpoint.proxy,
            endpoint.place,
            endpoint.pinned,
        )

    async def complete(self, request: ModelRequest, /) -> Reply:
        name = request.model.name
        for fallbacks in range(MAX_FALLBACKS + 1):
            habits = self._habits.get(name, USUAL)
            answer = await self._session.post(self._address, dump(self._wire.body(request, habits)))
            if answer.status == 200:
                return _seen(self._reply(request, answer), request, habits)
            words = saying(answer.body)
            # Another call may have learned the same thing while this one was in flight; then this
            # call is repeated too.
            if (
                answer.status in _REFUSING
                and fallbacks < MAX_FALLBACKS
                and self._learn(request, words) != habits
            ):
                continue
            raise self._complaint(request, answer.status, answer.headers, words)
        raise AssertionError("the last round returns or raises")

    def body(self, request: ModelRequest) -> dict[str, object]:
        return self._wire.body(request, self.habits(request.model.name))

    def habits(self, name: str) -> Habits:
        return self._habits.get(name, USUAL)

    def reply_in(
        self, request: ModelRequest, status: int, payload: object, *, sent: Habits
    ) -> Reply | None:
        """Return the reply in a batch's answer to a request that was written with the habits
        `sent`.

        Returns None if the endpoint refused a part of the request, which later requests omit.
        Raises CallFailed if the answer is an error or has no text.
        """
        name = request.model.name
        now = self._habits.setdefault(name, sent)
        if status == 200:
            return _seen(self._read(request, payload, {}, None), request, sent)
        words = said_in(payload.get("error", payload) if type(payload) is dict else payload)
        if status in _REFUSING and learned(sent, words, request) != sent:
            self._habits[name] = learned(now, words, request)
            return None
        raise self._complaint(request, status, {}, words)

    def habits_of(self, name: str) -> Habits | None:
        """Return the request parts that a model accepts; None until it has answered a request with
        a schema.
        """
        return self._habits.get(name, USUAL) if name in self._formed else None

    async def close(self) -> None:
        """Do nothing, because the owner of the shared session closes it."""

    def _learn(self, request: ModelRequest, words: Saying) -> Habits:
        name = request.model.name
        before = self._habits.get(name, USUAL)
        after = self._habits[name] = learned(before, words, request)
        for parameter in sorted(after.unsent - before.unsent):
            _log.warning(
                "%s does not accept %s; Assay omits it from further calls",
                self._asked(request),
                parameter,
            )
        return after

    def _reply(self, request: ModelRequest, answer: HttpAnswer) -> Reply:
        try:
            payload = parse(answer.body)
        except UnreadableBody as error:
            raise unreadable(
                self._asked(request), answer.headers, answer.body, key=self._endpoint.key
            ) from error
        return self._read(request, payload, answer.headers, answer.elapsed_s)

    def _read(
        self,
        request: ModelRequest,
        payload: Any,
        headers: Mapping[str, str],
        elapsed_s: float | None,
    ) -> Reply:
        if (reported := _error_in(payload)) is not None:
            words = said_in(reported)
            failed = self._complaint(request, status_of(words), headers, words)
            # it failed while the model was writing
            failed.charged = failed.charged or "choices" in payload
            raise failed
        if request.answer_schema is not None:
            self._formed.add(request.model.name)
        try:
            completion = self._wire.read(
                payload,
                asked=self._asked(request),
                key=self._endpoint.key,
                schema=request.answer_schema,
                tools=bool(request.tools),
            )
        except CallFailed as failure:
            # An answer without usable text still has token counts, and the provider charges for
            # them.
            if failure.usage is not None:
                failure.cost_usd = self._cost_of(request.model, failure.usage, 0, None)
            raise
        return Reply(
            text=completion.text,
            finish_reason=completion.finish_reason,
            usage=completion.usage,
            tool_calls=completion.tool_calls,
            model_version=completion.model_version,
            latency_s=elapsed_s,
            cost_usd=self._cost_of(
                request.model, completion.usage, completion.cached_tokens, completion.cost_usd
            ),
        )

    def _complaint(
        self, request: ModelRequest, status: int, headers: Mapping[str, str], words: Saying
    ) -> CallFailed:
        failed = complaint(
            status, headers, words, endpoint=self._endpoint, model=request.model.ref, now_s=time()
        )
        if request.tools and status in _REFUSING and refuses_tools(words):
            failed.kind = NO_TOOLS
        return failed

    def _asked(self, request: ModelRequest) -> str:
        return f"{request.model.ref} at {self._endpoint.place}"


"""Wire protocols, by their names in `vendors`."""


def open_endpoint(model: ModelSpec, context: ProviderContext, /) -> HttpModel:
    """Open a model's endpoint; raises `SettingsError` if the endpoint cannot be used."""
    endpoint = allowed_endpoint(
        model, context.environment, context.rules, local_only=context.local_only
    )
    wire = WIRES[endpoint.vendor.protocol]()
    return HttpModel(endpoint, wire, session=context.http(), cost_of=context.cost_of)


def _seen(reply: Reply, request: ModelRequest, habits: Habits) -> Reply:
    return (
        reply if shows(request, habits) or not has_images(request) else replace(reply, blind=True)
    )


def _error_in(payload: Any) -> object:
    if type(payload) is not dict:
        return None
    error: object = payload.get("error")
    if (
        not error
        and type(choices := payload.get("choices")) is list
        and choices
        and type(choices[0]) is dict
    ):
        error = choices[0].get("error")  # OpenRouter puts the upstream error there
    return error or None
