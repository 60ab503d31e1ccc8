"""`replay/FILE`: a model that answers from a recording and needs no network.

`{{label:NAME}}` in a recorded text becomes the label that the judge saw for candidate NAME. NAME
may be plain, or escaped as in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, Final

from assay.domain.calls import ModelRequest, Reply
from assay.domain.errors import did_you_mean
from assay.domain.failure import CallFailed, Fault
from assay.domain.model import ModelSpec
from assay.providers.json_body import UnreadableBody, parse
from assay.providers.prices import CostOf
from assay.providers.recordings import Mishap, Recording, describe
from assay.providers.registry import ProviderContext

_LABEL: Final = re.compile(r"\{\{\s*label:\s*(.*?)\s*\}\}")


class Replay:
    """A provider that answers from a recording."""

    calls_tools: ClassVar[bool] = True

    def __init__(self, load: Callable[[], Recording], *, cost_of: CostOf) -> None:
        self._load = load
        self._cost_of = cost_of
        self._recording: Recording | None = None

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Return the recorded answer for the request's purpose; fails with `no_recording` if no
        line matches.
        """
        if self._recording is None:
            self._recording = self._load()
        purpose = request.purpose
        match self._recording.answer(purpose):
            case None:
                raise CallFailed(
                    "no_recording",
                    f"{self._recording.name} has no answer for {describe(purpose)}.",
                    transient=False,
                    fault=Fault.HARNESS,
                    charged=False,
                )
            case Mishap() as mishap:
                raise CallFailed(mishap.kind, mishap.detail, transient=mishap.transient)
            case Reply() as reply:
                text = self._labelled(reply.text, purpose.labels)
        if not text.strip() and not (reply.tool_calls and request.tools):
            raise CallFailed(
                "empty", f"{self._recording.name} contains an empty answer.", transient=True
            )
        return replace(
            reply, text=text, cost_usd=self._cost_of(request.model, reply.usage, 0, None)
        )

    async def close(self) -> None:
        """Do nothing, because the provider has no connection."""

    def _labelled(self, text: str, labels: Mapping[str, str]) -> str:
        if "{{" not in text:
            return text
        folded = {name.casefold(): label for name, label in labels.items()}

        def label(match: re.Match[str]) -> str:
            name = match[1]
            # In a recorded JSON document, quotes and backslashes in a name are escaped.
            for spelled in (name, _unescaped(name)):
                if (known := labels.get(spelled) or folded.get(spelled.casefold())) is not None:
                    return known
            name = _unescaped(name)
            source = self._recording.name if self._recording else "the recording"
            raise CallFailed(
                "no_recording",
                f"{source} writes {match[0]}, but the call has no candidate {name!r}.{did_you_mean(name, labels)}",
                transient=False,
                fault=Fault.HARNESS,
                charged=False,
            )

        return _LABEL.sub(label, text)


def open_replay(model: ModelSpec, context: ProviderContext, /) -> Replay:
    """Open the model's recording, whose file is read at the first call."""
    return Replay(lambda: context.recording(model.name), cost_of=context.cost_of)


def _unescaped(name: str) -> str:
    """Remove JSON escapes, such as those for quotes and backslashes, from a name."""
    try:
        read = parse(f'"{name}"'.encode())
    except UnreadableBody:
        return name
    return read if type(read) is str else name
