"""A scripted server of batch APIs on loopback: OpenAI's Files and Batches, and Anthropic's Message
Batches.

Each batch meets the next `Fate` that was scripted; without one it completes, with its lines in
another order. Lines are answered as `ModelServer` answers calls. `seen` counts each request that
was carried out, called or in a batch, by model and content, so that a test can show that nothing
was asked twice. `broken` answers the next requests to a path with a status instead.

    with BatchServer() as server:
        server.fates.append(Fate(unanswered=2, status="expired"))
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from tests.support.model_server import (
    Call,
    Mishap,
    ModelServer,
    Said,
    _anthropic_payload,
    _error,
    _json,
    _openai_payload,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The fate of a batch at the provider.

    Attributes:
        status: how it ends, in OpenAI's words.
        looks: looks at it before it ends.
        unanswered: requests, from the last, that are never carried out.
        failed: requests, from the first, that end with status 500 in the error file.
        lost: answered requests, from the first, whose lines the files lack.
        repeated, unknown: lines that repeat an id, or have one of nobody.
        errors: reasons of a batch that fails validation, as (code, message).
        silent: True if the answer to its creation never arrives.
    """

    status: str = "completed"
    looks: int = 0
    unanswered: int = 0
    failed: int = 0
    lost: int = 0
    repeated: int = 0
    unknown: int = 0
    errors: tuple[tuple[str, str], ...] = ()
    silent: bool = False


@dataclass(slots=True, kw_only=True)
class Batch:
    """A batch at the server."""

    id: str
    anthropic: bool
    fate: Fate
    lines: list[dict[str, Any]]
    metadata: dict[str, str] = field(default_factory=dict)
    input_file: str = ""
    looks: int = 0
    status: str = "in_progress"
    output: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    completed: int = 0

    @property
    def ended(self) -> bool:
        return self.status not in ("in_progress", "cancelling")


class BatchServer(ModelServer):
    """The server; see the module.

    Attributes:
        fates: of the next batches. `broken`: path suffix, status and number of requests that it
            answers so.
        held: with it, batches stay in progress as well.
        refused: makes the complaint about a line that is answered with status 400; None for a good
            one.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.fates: deque[Fate] = deque()
        self.broken: list[tuple[str, int, int]] = []
        self.refused: Callable[[Call], str | None] = lambda _: None
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, list[dict[str, Any]]] = {}
        self.seen: Counter[str] = Counter()
        self.paths: Counter[str] = Counter()
        self.keys: set[str] = set()
        self._batch_lock = threading.RLock()

    @property
    def repeats(self) -> dict[str, int]:
        """Requests that were carried out more than once."""
        return {body: n for body, n in self.seen.items() if n > 1}

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.removeprefix("/v1")
        with self._batch_lock:
            self.paths[f"{request.method} {path}"] += 1
            self.keys.update(
                request.headers[name]
                for name in ("Authorization", "x-api-key")
                if name in request.headers
            )
            for place, (suffix, status, times) in enumerate(self.broken):
                if times and f"{request.method} {path}".endswith(suffix):
                    self.broken[place] = (suffix, status, times - 1)
                    return _error(path, status, "the server had an error", "api_error")
        if path == "/files" and request.method == "POST":
            return await self._upload(request)
        if path.startswith("/files/") and path.endswith("/content"):
            return web.Response(body=_json_lines(self.files[path.split("/")[2]]))
        if path.startswith(("/batches", "/messages/batches")):
            return await self._of_batches(request, path, anthropic=path.startswith("/messages"))
        if request.method == "POST":
            body = orjson.loads(await request.content.read())
            with self._batch_lock:
                self.seen[_content(body)] += 1
            request._read_bytes = orjson.dumps(body)
            return await self._respond(
                request, Call(path=request.path, headers=request.headers, body=body), Mishap.OK
            )
        return self._read_only(request)

    async def _upload(self, request: web.BaseRequest) -> web.Response:
        fields: dict[str, bytes] = {}
        names: dict[str, str | None] = {}
        reader = await web.Request.multipart(request)
        while (part := await reader.next()) is not None:
            fields[part.name], names[part.name] = bytes(await part.read()), part.filename  # type: ignore[union-attr,index]
        assert fields["purpose"] == b"batch"
        with self._batch_lock:
            name = f"file-{len(self.files) + 1}"
            self.files[name] = [orjson.loads(line) for line in fields["file"].splitlines() if line]
        return _json({"id": name, "object": "file", "purpose": "batch", "filename": names["file"]})

    async def _of_batches(
        self, request: web.BaseRequest, path: str, *, anthropic: bool
    ) -> web.StreamResponse:
        parts = path.removeprefix("/messages").split("/")[2:]
        if request.method == "POST" and not parts:
            return await self._create(
                request, orjson.loads(await request.content.read()), anthropic=anthropic
            )
        with self._batch_lock:
            if not parts:
                return self._list(request, anthropic=anthropic)
            batch = self.batches.get(parts[0])
            if batch is None:
                return _error(path, 404, "no such batch", "not_found_error")
            if parts[1:] == ["cancel"]:
                if batch.ended:
                    return _error(path, 400, "the batch has ended", "invalid_request_error")
                self._carry_out(batch, status="cancelled")
            elif parts[1:] == ["results"]:
                return web.Response(body=_json_lines([*batch.output, *batch.errors]))
            else:
                self._look(batch)
            return _json(_document(batch))

    async def _create(
        self, request: web.BaseRequest, wanted: dict[str, Any], *, anthropic: bool
    ) -> web.StreamResponse:
        with self._batch_lock:
            fate = self.fates.popleft() if self.fates else Fate()
            name = f"{'msgbatch' if anthropic else 'batch'}_{len(self.batches) + 1:03}"
            lines = wanted["requests"] if anthropic else self.files[wanted["input_file_id"]]
            ids = [line["custom_id"] for line in lines]
            assert len(set(ids)) == len(ids), "ids in a batch are unique"
            if not anthropic:
                assert len({line["body"]["model"] for line in lines}) == 1, "one model a batch"
                assert wanted["endpoint"] == "/v1/chat/completions"
                assert wanted["completion_window"] == "24h"
            batch = self.batches[name] = Batch(
                id=name,
                anthropic=anthropic,
                fate=fate,
                lines=lines,
                metadata=wanted.get("metadata") or {},
                input_file=wanted.get("input_file_id", ""),
            )
        if fate.silent:
            assert request.transport is not None
            request.transport.abort()
        return _json(_document(batch))

    def _list(self, request: web.BaseRequest, *, anthropic: bool) -> web.Response:
        newest = [
            batch for batch in reversed(self.batches.values()) if batch.anthropic is anthropic
        ]
        limit = int(request.query.get("limit", "20"))
        names = [batch.id for batch in newest]
        if before := request.query.get("before_id"):
            newest = newest[: names.index(before)]
        if after := request.query.get("after"):
            newest = newest[names.index(after) + 1 :]
        page = newest[:limit]
        for batch in page if anthropic else ():
            self._look(batch)
        last = page[-1].id if page else None
        return _json(
            {
                "data": [_document(batch) for batch in page],
                "has_more": len(newest) > limit,
                "last_id": last,
            }
        )

    def _look(self, batch: Batch) -> None:
        batch.looks += 1
        if not batch.ended and not self.held and batch.looks > batch.fate.looks:
            self._carry_out(batch, status=batch.fate.status)

    def _carry_out(self, batch: Batch, *, status: str) -> None:
        fate = batch.fate
        batch.status = status
        if status == "failed":
            return
        carried = len(batch.lines) - (
            len(batch.lines) if status == "cancelled" and not fate.unanswered else fate.unanswered
        )
        rest = "canceled" if status == "cancelled" else "expired"
        for number, line in enumerate(batch.lines):
            body = line["params"] if batch.anthropic else line["body"]
            if number >= carried:
                code = "batch_cancelled" if status == "cancelled" else "batch_expired"
                error = {
                    "code": code,
                    "message": "This request could not be executed before the completion window expired.",
                }
                row: dict[str, Any] = (
                    {"result": {"type": rest}}
                    if batch.anthropic
                    else {"response": None, "error": error}
                )
                batch.errors.append({"custom_id": line["custom_id"], **row})
                continue
            self.seen[_content(body)] += 1
            if number < fate.failed:
                batch.errors.append(
                    {
                        "custom_id": line["custom_id"],
                        **_failed(batch.anthropic, 500, "api_error", "oops"),
                    }
                )
                self.seen[_content(body)] -= 1
                continue
            call = Call(
                path="/v1/messages" if batch.anthropic else "/v1/chat/completions",
                headers={},
                body=body,
            )
            if complaint := self.refused(call):
                self.seen[_content(body)] -= 1
                row = _failed(batch.anthropic, 400, "invalid_request_error", complaint)
                batch.errors.append({"custom_id": line["custom_id"], **row})
                continue
            given = self.answer(call)
            reply = Said(text=given) if isinstance(given, str) else given
            payload = (_anthropic_payload if batch.anthropic else _openai_payload)(
                call, reply, reply.text, reply.finish
            )
            row = (
                {"result": {"type": "succeeded", "message": payload}}
                if batch.anthropic
                else {
                    "id": f"batch_req_{number}",
                    "response": {
                        "status_code": 200,
                        "request_id": f"req_{number}",
                        "body": payload,
                    },
                    "error": None,
                }
            )
            batch.completed += 1
            if number >= fate.failed + fate.lost:
                batch.output.append({"custom_id": line["custom_id"], **row})
        random.Random(len(batch.lines)).shuffle(batch.output)
        batch.output += [json.loads(json.dumps(row)) for row in batch.output[: fate.repeated]]
        batch.output += [
            {**batch.output[0], "custom_id": f"of-nobody-{n}"} for n in range(fate.unknown)
        ]
        if not batch.anthropic:
            for rows, kind in ((batch.output, "output"), (batch.errors, "error")):
                if rows:
                    self.files[f"{batch.id}-{kind}"] = rows


def _content(body: dict[str, Any]) -> str:
    """The content of a request; the token limit and format may be repeated in another form."""
    kept = {
        name: value
        for name, value in body.items()
        if name in ("model", "messages", "system", "seed")
    }
    return json.dumps(kept, sort_keys=True)


def _failed(anthropic: bool, status: int, kind: str, message: str) -> dict[str, Any]:
    error = {"type": kind, "message": message}
    if anthropic:
        return {"result": {"type": "errored", "error": {"type": "error", "error": error}}}
    return {
        "response": {"status_code": status, "request_id": "req_x", "body": {"error": error}},
        "error": None,
    }


def _document(batch: Batch) -> dict[str, Any]:
    total = len(batch.lines)
    if batch.anthropic:
        kinds = Counter(row["result"]["type"] for row in (*batch.output, *batch.errors))
        counts = {name: kinds[name] for name in ("succeeded", "errored", "canceled", "expired")}
        ended = batch.ended
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {
                **(counts if ended else dict.fromkeys(counts, 0)),
                "processing": 0 if ended else total,
            },
            "results_url": "http://198.51.100.7/elsewhere" if ended else None,
        }
    files = {
        f"{kind}_file_id": f"{batch.id}-{kind}" if rows and batch.ended else None
        for rows, kind in ((batch.output, "output"), (batch.errors, "error"))
    }
    data = [
        {"code": code, "message": message, "line": None, "param": None}
        for code, message in batch.fate.errors
    ]
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "status": batch.status,
        "input_file_id": batch.input_file,
        "metadata": batch.metadata,
        "errors": {"object": "list", "data": data} if batch.status == "failed" else None,
        "request_counts": {
            "total": total,
            "completed": batch.completed,
            "failed": batch.fate.failed,
        },
        **files,
    }


def _json_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)
