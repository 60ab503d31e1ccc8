"""Recordings: files of model answers that are selected by the purpose of a call.

A recording is JSONL. A line `{"match": {...}, "reply": {...}}` answers every call whose purpose has
the values in `match`. A reply has `text`, `tool_calls` (`[{"name": "search", "arguments": {...}}]`)
or both. With `"error"` instead of `reply`, the call fails. If several lines match a call, those
with the most values in `match` apply. Lines with equal `match` answer successive calls with the
same purpose, and the last line answers all further calls. A line of a provider's batch output
answers the task in its `custom_id`; the k-th line for a task is the answer in trial k.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Final

from assay.domain.calls import Purpose, Reply, Usage
from assay.domain.digest import JsonValue
from assay.domain.errors import SettingsError, did_you_mean
from assay.domain.failure import CallFailed
from assay.domain.tools import ToolCall
from assay.providers.json_body import UnreadableBody, count, dump, parse, whole
from assay.providers.openai_chat import OpenAIChat
from assay.providers.protocol import tool_call

MATCHED: Final = ("role", "task", "trial", "attempt", "candidate", "judge")
# Together these limits keep memory below 600 MB, even if every line has a character that makes
# Python use four bytes for each.
MAX_CHARACTERS: Final = 64 << 20
MAX_LINE: Final = 16 << 20
MAX_ANSWERS: Final = 300_000

_NUMBERED: Final = frozenset({"trial", "attempt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    kind: str
    detail: str
    transient: bool


@dataclass(slots=True)
class _Sequence:
    """Recorded answers with equal `match`, in the order of the file."""

    by_trial: bool
    answers: list[Reply | Mishap] = field(default_factory=list)


class Recording:
    """The answers in one file, selected by the purpose of a call."""

    def __init__(self, lines: Iterable[str], *, name: str) -> None:
        """Read a recording; raises `SettingsError` with the line number if a line is invalid."""
        self.name = name
        self._groups: dict[tuple[str, ...], dict[tuple[object, ...], _Sequence]] = {}
        for number, line in enumerate(lines, start=1):
            if line.strip():
                self._add(line, where=f"{name}:{number}")
        if not self._groups:
            raise SettingsError(
                name, "contains no recorded answer.", remedy="Write one JSON object per line."
            )
        self._order = sorted(self._groups, key=len, reverse=True)
        self._served: dict[tuple[object, ...], int] = {}

    def answer(self, purpose: Purpose) -> Reply | Mishap | None:
        """Return the next answer for this purpose, or None if no line matches."""
        for names in self._order:
            sequence = self._groups[names].get(tuple(getattr(purpose, name) for name in names))
            if sequence is not None:
                return self._next(sequence, names, purpose)
        return None

    def _next(
        self, sequence: _Sequence, names: tuple[str, ...], purpose: Purpose
    ) -> Reply | Mishap:
        last = len(sequence.answers) - 1
        if last == 0:
            return sequence.answers[0]
        exact = (names, *(getattr(purpose, name) for name in MATCHED))
        served = self._served.get(exact, 0)
        self._served[exact] = served + 1
        first = purpose.trial - 1 if sequence.by_trial else 0
        return sequence.answers[min(first + served, last)]

    def _add(self, line: str, *, where: str) -> None:
        try:
            document = parse(line.encode())
        except UnreadableBody as error:
            raise SettingsError(
                where, f"is not a JSON document: {error}.", remedy="Write one JSON object per line."
            ) from error
        if type(document) is not dict:
            raise SettingsError(
                where, "is not a JSON object.", remedy='Write {"match": {...}, "reply": {...}}.'
            )
        if "custom_id" in document:
            match, answer, by_trial = (
                {"task": document["custom_id"]},
                _batch_answer(document, where),
                True,
            )
        else:
            _check_keys(document, ("match", "reply", "error"), where)
            match, answer, by_trial = document.get("match", {}), _answer(document, where), False
        names, values = _match(match, where)
        sequence = self._groups.setdefault(names, {}).setdefault(values, _Sequence(by_trial))
        sequence.answers.append(answer)


def bounded_lines(lines: IO[str], *, where: str) -> Iterator[str]:
    """Yield a recording's lines; raises `SettingsError` if the file exceeds the maximum size."""
    left = MAX_CHARACTERS
    for number in range(1, MAX_ANSWERS + 2):
        line = lines.readline(MAX_LINE + 1)
        left -= len(line)
        if left < 0 or len(line) > MAX_LINE or (line and number > MAX_ANSWERS):
            raise SettingsError(
                where,
                f"has more than {MAX_CHARACTERS >> 20} MB, {MAX_ANSWERS:,} lines, or {MAX_LINE >> 20} MB on a line.",
                remedy="Keep only the lines that this run needs.",
            )
        if not line:
            return
        yield line


def _match(match: JsonValue, where: str) -> tuple[tuple[str, ...], tuple[object, ...]]:
    if type(match) is not dict:
        raise SettingsError(
            where, '"match" is not an object.', remedy=f"Its keys may be: {', '.join(MATCHED)}."
        )
    _check_keys(match, MATCHED, where)
    for name, value in match.items():
        wanted: type = int if name in _NUMBERED else str
        if type(value) is not wanted:
            what = "a whole number" if wanted is int else "a text"
            raise SettingsError(where, f'"match" has {name} = {value!r}, which is not {what}.')
    names = tuple(name for name in MATCHED if name in match)
    return names, tuple(match[name] for name in names)


def _answer(document: Mapping[str, JsonValue], where: str) -> Reply | Mishap:
    reply, error = document.get("reply"), document.get("error")
    if (reply is None) == (error is None):
        raise SettingsError(where, 'must have either "reply" or "error".')
    if error is not None:
        kind = error.get("kind") if type(error) is dict else None
        if type(error) is not dict or type(kind) is not str:
            raise SettingsError(where, '"error" must be an object with a "kind".')
        _check_keys(error, ("kind", "detail", "transient"), where)
        return Mishap(
            kind=kind,
            detail=str(error.get("detail") or f"the recording contains this failure: {kind}."),
            transient=bool(error.get("transient")),
        )
    if type(reply) is str:
        return Reply(text=reply)
    if type(reply) is not dict or not reply.keys() & {"text", "tool_calls"}:
        raise SettingsError(where, '"reply" must be an object with a "text" or "tool_calls".')
    _check_keys(reply, ("text", "tool_calls", "finish_reason", "usage", "model"), where)
    text, calls = reply.get("text", ""), _tool_calls(reply.get("tool_calls"), where)
    usage = reply.get("usage")
    if usage is None:
        usage = {}
    if type(usage) is not dict:
        raise SettingsError(where, '"usage" must be an object with input_tokens and output_tokens.')
    _check_keys(usage, ("input_tokens", "output_tokens"), where)
    return Reply(
        text=whole(text) if type(text) is str else dump(text).decode(),
        finish_reason=str(reply.get("finish_reason") or ("tool" if calls else "stop")),
        tool_calls=calls,
        usage=Usage(
            input_tokens=count(usage.get("input_tokens")),
            output_tokens=count(usage.get("output_tokens")),
        ),
        model_version=str(reply["model"]) if reply.get("model") else None,
    )


def _tool_calls(calls: JsonValue, where: str) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if type(calls) is not list or not all(
        type(call) is dict and type(call.get("name")) is str for call in calls
    ):
        raise SettingsError(where, '"tool_calls" must be a list of objects with a "name".')
    recorded = [call for call in calls if type(call) is dict]
    for call in recorded:
        _check_keys(call, ("id", "name", "arguments"), where)
    return tuple(
        tool_call(call.get("id"), call["name"], call.get("arguments"), place)
        for place, call in enumerate(recorded, 1)
    )


def _batch_answer(document: Mapping[str, JsonValue], where: str) -> Reply | Mishap:
    response, error = document.get("response"), document.get("error")
    if type(response) is not dict:
        return Mishap(
            kind="bad_response", detail=f"{where} records an error: {error}.", transient=False
        )
    status = response.get("status_code", 200)
    if status != 200:
        return Mishap(
            kind=f"http_{status}", detail=f"{where} records status {status}.", transient=False
        )
    try:
        completion = OpenAIChat().read(response.get("body"), asked=where, tools=True)
    except CallFailed as failure:
        return Mishap(kind=failure.kind, detail=failure.detail, transient=False)
    return Reply(
        text=completion.text,
        finish_reason=completion.finish_reason,
        tool_calls=completion.tool_calls,
        usage=completion.usage,
        model_version=completion.model_version,
    )


def _check_keys(fields: Mapping[str, JsonValue], names: tuple[str, ...], where: str) -> None:
    for name in fields:
        if name not in names:
            raise SettingsError(where, f"has the unknown key {name!r}.{did_you_mean(name, names)}")


def describe(purpose: Purpose) -> str:
    """Describe, for messages, the values of a purpose that `match` can contain."""
    values = ((name, getattr(purpose, name)) for name in MATCHED)
    return ", ".join(
        f"{name} {value if isinstance(value, int) else str(value)!r}"
        for name, value in values
        if value is not None
    )
