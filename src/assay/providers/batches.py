"""The batch APIs of OpenAI and Anthropic, and batch files that people transfer, such as those of
vLLM's `run-batch`.

Both APIs answer within a day at half the price. An OpenAI batch is created from an uploaded file.
Its metadata identifies it if the answer to its creation was lost. An Anthropic batch is one request
with all lines and has no metadata. After a lost answer, Assay searches the batches that are newer
than the previous newest one. It compares their sizes and, after they have ended, the ids in their
results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from time import time
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import orjson
from yarl import URL

from assay.domain.calls import ModelRequest, Reply, Usage
from assay.domain.failure import CallFailed, Failure, Fault
from assay.domain.jobs import FILE, BatchStatus, number_of
from assay.domain.model import ModelSpec
from assay.ports import BatchApi, NeverAnswered
from assay.providers.endpoint import allowed_endpoint
from assay.providers.error_mapping import clean, complaint, said_in, saying, status_of
from assay.providers.http_model import HttpModel
from assay.providers.json_body import UnreadableBody, dump, parse
from assay.providers.protocol import Habits, misshapen
from assay.providers.registry import ProviderContext
from assay.providers.session import Address
from assay.providers.vendors import VENDORS
from assay.providers.wires import WIRES

LONG_S: Final = 3600.0
"""Time limit of an upload or download of hundreds of megabytes."""
MAX_PAGES: Final = 50
_PAGE: Final = 100
_MB: Final = 1024 * 1024
_ID: Final = re.compile(r"[\w.:-]{1,200}")
_CHAT: Final = "/v1/chat/completions"
_NOT_CARRIED_OUT: Final = frozenset({"batch_expired", "batch_cancelled"})
# Refused only because too much of this model waits already.
_FULL: Final = frozenset({"token_limit_exceeded", "rate_limit_exceeded", "request_limit_exceeded"})
_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})


class _Batches:
    """The endpoint of a batch API, and the form of its files; `share` is a batch request's price
    relative to a call.
    """

    share: float

    def __init__(self, model: ModelSpec, context: ProviderContext) -> None:
        self._endpoint = allowed_endpoint(
            model, context.environment, context.rules, local_only=context.local_only
        )
        self._wire = WIRES[self._endpoint.vendor.protocol]()
        self._session = context.http()
        share, full = self.share, context.cost_of

        def cost_of(
            model: ModelSpec, usage: Usage, cached_tokens: int, stated_usd: float | None, /
        ) -> float | None:
            cost = full(model, usage, cached_tokens, stated_usd)
            return None if cost is None else cost * share

        self._model = HttpModel(self._endpoint, self._wire, session=self._session, cost_of=cost_of)
        self.place = self._endpoint.place

    def habits(self, model: ModelSpec, /) -> str:
        """Return the request parts that the model accepts, as JSON, in the form stored with a
        job.
        """
        habits = asdict(self._model.habits(model.name))
        return orjson.dumps({**habits, "unsent": sorted(habits["unsent"])}).decode()

    def _read(self, request: ModelRequest, status: int, payload: object, habits: str) -> Reply:
        reply = self._model.reply_in(request, status, payload, sent=_habits_in(habits))
        if reply is None:
            raise NeverAnswered
        return reply

    def _failed(self, request: ModelRequest, error: object) -> CallFailed:
        words = said_in(error)
        return complaint(
            status_of(words),
            {},
            words,
            endpoint=self._endpoint,
            model=request.model.ref,
            now_s=time(),
        )

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes | Callable[[], object] = b"",
        *,
        query: Mapping[str, str] | None = None,
        into: Path | None = None,
        typed: bool = True,
    ) -> Any:
        """Send a request to a path of the endpoint, and return the parsed JSON answer."""
        base = URL(self._endpoint.url)
        prefix = base.path.removesuffix("/chat/completions").removesuffix("/messages")
        url = base.with_path(prefix + path, encoded=True).with_query(query)
        headers = dict(self._wire.headers(self._endpoint.key))
        if not typed:  # aiohttp writes the type of a form
            headers.pop("Content-Type", None)
        endpoint = self._endpoint
        address = Address(url, headers, endpoint.proxy, endpoint.place, endpoint.pinned)
        limit_s = LONG_S if into is not None or callable(body) else None
        answer = await self._session.send(method, address, body, timeout_s=limit_s, into=into)
        if answer.status != 200:
            words = saying(answer.body)
            raise complaint(
                answer.status,
                answer.headers,
                words,
                endpoint=endpoint,
                model="the batch API",
                now_s=time(),
            )
        if into is not None:
            return None
        try:
            return parse(answer.body)
        except UnreadableBody as error:
            raise misshapen(f"the batch API at {endpoint.place}", "a JSON document") from error

    async def _created(self, path: str, body: bytes | Callable[[], object]) -> str:
        try:
            return self._id(await self._ask("POST", path, body))
        except CallFailed as failed:
            # A server that fails while it answers may have created the batch.
            failed.charged = (
                failed.charged or failed.kind.startswith("http_5") or failed.kind == "bad_response"
            )
            raise

    def _id(self, document: Any) -> str:
        value = document.get("id") if type(document) is dict else None
        if type(value) is not str or not _ID.fullmatch(value):
            raise misshapen(f"the batch API at {self._endpoint.place}", "an id")
        return value


class OpenAILines(_Batches):
    """Reads and writes batch lines in OpenAI's form, which vLLM and many others use."""

    def line(self, custom_id: str, request: ModelRequest, /) -> bytes:
        body = self._model.body(request)
        return dump({"custom_id": custom_id, "method": "POST", "url": _CHAT, "body": body})

    def reply(self, request: ModelRequest, line: Mapping[str, Any], habits: str, /) -> Reply:
        response, error = line.get("response"), line.get("error")
        if type(response) is dict and (body := response.get("body")):
            status = response.get("status_code")
            return self._read(request, status if type(status) is int else 200, body, habits)
        if type(error) is dict and error.get("code") in _NOT_CARRIED_OUT:
            raise NeverAnswered
        if error:
            raise self._failed(request, error)
        raise misshapen(
            f"{request.model.ref} at {self.place}", "a response or an error in its line"
        )


class FileBatches(OpenAILines):
    """Batch files that a person transfers to and from a program such as `vllm run-batch`."""

    share = 1.0
    most_requests = 1_000_000
    most_bytes = 2048 * _MB

    def __init__(self, model: ModelSpec, context: ProviderContext) -> None:
        super().__init__(model, context)
        self.place = FILE

    async def prepare(self, path: str, token: str, /) -> str:
        """Return the path, because nothing needs to be uploaded."""
        return path

    async def find(self, path: str, token: str, mark: str, requests: int, /) -> str | None:
        """Return the path, because the file itself is the batch."""
        return mark

    async def create(self, path: str, token: str, mark: str, /) -> str:
        """Return the path, because the file itself is the batch."""
        return mark

    async def look(self, remote_id: str, /) -> BatchStatus:
        """Return the status that a person may supply answer files."""
        return BatchStatus(status=FILE, ended=True)

    async def fetch(self, remote_id: str, status: BatchStatus, beside: str, /) -> tuple[str, ...]:
        """Return an empty tuple, because a person supplies the files."""
        return ()

    async def cancel(self, remote_id: str, /) -> None:
        """Do nothing, because a person runs the batch."""


class OpenAIBatches(OpenAILines):
    """OpenAI's Files and Batches API."""

    share = 0.5
    most_requests = 50_000
    most_bytes = 200 * _MB

    async def prepare(self, path: str, token: str, /) -> str:
        def form() -> aiohttp.FormData:
            fields = aiohttp.FormData()
            fields.add_field("purpose", "batch")
            file = Path(path).open("rb")  # noqa: SIM115 - aiohttp closes it
            fields.add_field(
                "file", file, filename=f"assay-{token}.jsonl", content_type="application/jsonl"
            )
            return fields

        return self._id(await self._ask("POST", "/files", form, typed=False))

    async def find(self, path: str, token: str, mark: str, requests: int, /) -> str | None:
        query = {"limit": str(_PAGE)}
        for _ in range(MAX_PAGES):
            page = await self._ask("GET", "/batches", query=query)
            for batch in page.get("data") or ():
                if (batch.get("metadata") or {}).get("assay_job") == token or batch.get(
                    "input_file_id"
                ) == mark:
                    return self._id(batch)
            if not page.get("has_more") or not page.get("last_id"):
                break
            query["after"] = str(page["last_id"])
        return None

    async def create(self, path: str, token: str, mark: str, /) -> str:
        metadata = {"assay_job": token}
        wanted = {
            "input_file_id": mark,
            "endpoint": _CHAT,
            "completion_window": "24h",
            "metadata": metadata,
        }
        return await self._created("/batches", dump(wanted))

    async def look(self, remote_id: str, /) -> BatchStatus:
        batch = await self._ask("GET", f"/batches/{quote(remote_id)}")
        status = _word(batch.get("status"))
        files = tuple(
            self._id({"id": batch[name]})
            for name in ("output_file_id", "error_file_id")
            if batch.get(name)
        )
        counts = batch.get("request_counts") or {}
        done = counts.get("completed")
        errors = [
            error for error in (batch.get("errors") or {}).get("data") or () if type(error) is dict
        ]
        failure = None
        if status == "failed":
            words = " ".join(str(error.get("message") or error.get("code")) for error in errors[:3])
            detail = f"{self.place} refused the batch: {clean(words, key=self._endpoint.key) or 'it stated no reason'}"
            failure = Failure(kind="batch_failed", fault=Fault.HARNESS, detail=detail)
        return BatchStatus(
            status=status,
            ended=status in _ENDED,
            failure=failure,
            again=any(error.get("code") in _FULL for error in errors),
            finished=status == "completed",
            done=done if type(done) is int else None,
            files=files,
        )

    async def fetch(self, remote_id: str, status: BatchStatus, beside: str, /) -> tuple[str, ...]:
        paths = [_beside(beside, f".answers-{number}") for number in range(len(status.files))]
        for path, name in zip(paths, status.files, strict=True):
            await self._ask("GET", f"/files/{quote(name)}/content", into=path)
        return tuple(map(str, paths))

    async def cancel(self, remote_id: str, /) -> None:
        await _unless_ended(self._ask("POST", f"/batches/{quote(remote_id)}/cancel", b"{}"))


class AnthropicBatches(_Batches):
    """Anthropic's Message Batches API."""

    share = 0.5
    most_requests = 100_000
    most_bytes = 256 * _MB - 1024

    def line(self, custom_id: str, request: ModelRequest, /) -> bytes:
        return dump({"custom_id": custom_id, "params": self._model.body(request)})

    def reply(self, request: ModelRequest, line: Mapping[str, Any], habits: str, /) -> Reply:
        match line.get("result"):
            case {"type": "succeeded", "message": message}:
                return self._read(request, 200, message, habits)
            case {"type": "errored", "error": error}:
                inner = (
                    error.get("error")
                    if type(error) is dict and type(error.get("error")) is dict
                    else error
                )
                return self._read(request, status_of(said_in(inner)), {"error": inner}, habits)
            case {"type": "expired" | "canceled"}:
                raise NeverAnswered
        raise misshapen(f"{request.model.ref} at {self.place}", "a known result in its line")

    async def prepare(self, path: str, token: str, /) -> str:
        """Return the id of the newest existing batch, before a new batch is created; empty if there
        is no batch.
        """
        page = await self._ask("GET", "/messages/batches", query={"limit": "1"})
        return self._id(page["data"][0]) if page.get("data") else ""

    async def find(self, path: str, token: str, mark: str, requests: int, /) -> str | None:
        query = {"limit": str(_PAGE), **({"before_id": mark} if mark else {})}
        page = await self._ask("GET", "/messages/batches", query=query)
        unsure = ""
        for batch in page.get("data") or ():
            if (
                sum(
                    count
                    for count in (batch.get("request_counts") or {}).values()
                    if type(count) is int
                )
                != requests
            ):
                continue
            remote_id = self._id(batch)
            if batch.get("processing_status") != "ended":
                unsure = remote_id
                continue
            results = _beside(path, ".lookup")
            await self._ask("GET", f"/messages/batches/{quote(remote_id)}/results", into=results)
            with results.open("rb") as lines:
                first = parse(lines.readline())
            results.unlink()
            if number_of(first.get("custom_id"), token) is not None:
                return remote_id
        if unsure:
            detail = (
                f"Assay cannot tell yet if batch {unsure} at {self.place} is this job. Collect again after that batch has "
                "ended."
            )
            raise CallFailed("unsure", detail, transient=False)
        return None

    async def create(self, path: str, token: str, mark: str, /) -> str:
        whole = _whole(path)
        remote_id = await self._created("/messages/batches", lambda: whole.open("rb"))
        whole.unlink(missing_ok=True)
        return remote_id

    async def look(self, remote_id: str, /) -> BatchStatus:
        batch = await self._ask("GET", f"/messages/batches/{quote(remote_id)}")
        status = _word(batch.get("processing_status"))
        counts = {
            name: n for name, n in (batch.get("request_counts") or {}).items() if type(n) is int
        }
        ended = status == "ended"
        done = sum(counts.get(name, 0) for name in ("succeeded", "errored", "canceled", "expired"))
        return BatchStatus(
            status=status,
            ended=ended,
            finished=ended,
            done=done,
            files=(remote_id,) if ended else (),
        )

    async def fetch(self, remote_id: str, status: BatchStatus, beside: str, /) -> tuple[str, ...]:
        """Download the results from this endpoint.

        The address in the batch's answer is not used.
        """
        path = _beside(beside, ".answers-0")
        await self._ask("GET", f"/messages/batches/{quote(remote_id)}/results", into=path)
        return (str(path),)

    async def cancel(self, remote_id: str, /) -> None:
        await _unless_ended(
            self._ask("POST", f"/messages/batches/{quote(remote_id)}/cancel", b"{}")
        )


@lru_cache(maxsize=64)
def _habits_in(text: str) -> Habits:
    sent = orjson.loads(text)
    return Habits(**{**sent, "unsent": frozenset(sent["unsent"])})


def _word(status: object) -> str:
    """Return the provider's name for a batch's status, as one short line."""
    return clean(str(status), key=None)[:40]


def _beside(path: str, suffix: str) -> Path:
    """Return the path of another file of the same job, with this suffix."""
    place = Path(path).with_suffix(suffix)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _whole(path: str) -> Path:
    whole = _beside(path, ".whole")
    with Path(path).open("rb") as lines, whole.open("wb") as body:
        body.write(b'{"requests":[')
        for number, line in enumerate(lines):
            body.write(b"," * (number > 0) + line.rstrip(b"\n"))
        body.write(b"]}")
    return whole


async def _unless_ended(cancelling: Any) -> None:
    """Cancel a batch, and ignore the provider's refusal if the batch has already ended."""
    try:
        await cancelling
    except CallFailed as failed:
        if failed.kind not in ("http_400", "http_404", "http_409"):
            raise


def open_batches(model: ModelSpec, context: ProviderContext, /) -> BatchApi:
    """Open a model's batch API; raises `SettingsError` if its endpoint cannot be used."""
    anthropic = VENDORS[model.provider].protocol == "anthropic"
    return AnthropicBatches(model, context) if anthropic else OpenAIBatches(model, context)
