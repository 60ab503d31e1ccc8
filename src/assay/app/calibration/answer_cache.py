"""File cache of paid judge answers, used until a calibration is complete.

A calibration is stored only when it is complete. Until then, each answer is appended to a file next
to the store's folder before the next call, so that an interrupted calibration continues without
paying twice. A line that a crash cut off is ignored. A cached answer is reused only if model,
messages, parameters, schema and repeat number are the same, and only for `GOOD_FOR_S` seconds,
because the model behind a name may change.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from assay.domain.calls import ModelRequest, Reply, Usage
from assay.domain.digest import JsonValue, digest
from assay.domain.tools import ToolCall

if TYPE_CHECKING:
    from pathlib import Path

    from assay.ports import Clock

GOOD_FOR_S: Final = 24 * 3600.0
"""Seconds for which cached answers can be reused."""

FOLDER: Final = "calibrating"


@dataclass(slots=True)
class PaidAnswers:
    """The cached answers of one calibration.

    Attributes:
        path: the cache file; the file name contains a digest of the calibration's settings and
            references.
        replies: cached replies, by the digest of the question.
        tries: failed attempts, as the calibration record stores them.
        unusable: replies in failed attempts, which count towards the cost.
        held_usd: US dollars spent or reserved by earlier attempts, including the worst case for
            calls that a crash cut off.
    """

    path: Path
    clock: Clock
    since: str = ""
    replies: dict[str, Reply] = field(default_factory=dict)
    tries: list[dict[str, JsonValue]] = field(default_factory=list)
    unusable: list[Reply] = field(default_factory=list)
    held_usd: float = 0.0

    def read(self) -> None:
        """Read the answers of an earlier attempt that are not older than `since`."""
        try:
            lines = self.path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return
        now = _seconds(self.clock.now())
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                # After a crash between storing the record and deleting this file, the record
                # already holds its answers.
                if entry["at"] <= self.since or now - _seconds(entry["at"]) > GOOD_FOR_S:
                    continue
                if "held_usd" in entry:
                    self.held_usd += float(entry["held_usd"])
                elif "try" in entry:
                    if entry["reply"] is not None:
                        self.unusable.append(_reply(entry["reply"]))
                    self.tries.append(entry["try"])
                else:
                    self.replies.setdefault(entry["question"], _reply(entry["reply"]))

    def keep(self, question: str, reply: Reply) -> None:
        self.replies[question] = reply
        self._write({"at": self.clock.now(), "question": question, "reply": asdict(reply)})

    def keep_try(self, attempt: dict[str, JsonValue], reply: Reply | None) -> None:
        """Append a failed attempt, and its unusable reply if there was one, to the file."""
        self.tries.append(attempt)
        # `attempt` holds the shortened text; only the cost and tokens of the reply are needed.
        fields = None if reply is None else asdict(replace(reply, text=""))
        self._write({"at": self.clock.now(), "try": attempt, "reply": fields})

    def hold(self, usd: float) -> None:
        """Append a change in the reserved and spent amounts to the file, so that a restart can read
        it.
        """
        self._write({"at": self.clock.now(), "held_usd": usd})

    def done(self) -> None:
        """Delete the file after the calibration is stored."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _write(self, line: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            # One write per line, starting with a line end, so that a line cut off by a crash does
            # not damage the others.
            os.write(handle, f"\n{json.dumps(line)}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)


def question_of(request: ModelRequest) -> str:
    """Return the cache key of a request: a digest of its model, messages, parameters and repeat
    number.
    """
    schema = request.answer_schema
    return digest(
        [
            request.model.ref,
            request.model.base_url,
            [[message.role, message.content] for message in request.messages],
            request.parameters.as_json(),
            None if schema is None else [schema.name, dict(schema.schema)],
            [request.purpose.task, request.purpose.trial],
            *([str(request.tools), str(request.messages)] if request.tools else ()),
        ]
    )


def _reply(fields: dict[str, Any]) -> Reply:
    calls = tuple(ToolCall(**call) for call in fields.get("tool_calls", ()))
    return Reply(**{**fields, "usage": Usage(**fields["usage"]), "tool_calls": calls})


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
