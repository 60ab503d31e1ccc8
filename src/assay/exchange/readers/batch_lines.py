"""Read the id, the body and the failure of one line of a provider's batch output.

Known lines: OpenAI's, Mistral's and vLLM's `response.status_code` and `response.body`; vLLM of
2024, whose `response` is the body itself; error lines whose `response` is null; Anthropic's
`result`; Gemini's `key` with a `response` or an `error`, or the same under `result`; Vertex AI's
`request`, `response` and `status`, with an id only if the user added one; Bedrock's `recordId` with
`modelOutput` or `error`. `batch_answers` reads the bodies.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from assay.domain.failure import Failure, Fault
from assay.exchange.parsing.input_files import FileSample
from assay.exchange.parsing.json_values import JsonObject, as_id, as_object, as_text, objects_in

_OK: Final = 200
_SHOWN: Final = 2000
_IDS: Final = ("custom_id", "key", "recordId")
_GEMINI: Final = ("candidates", "promptFeedback", "usageMetadata", "embedding")
_STATUS_OF: Final = tomllib.loads((files(__package__) / "error_statuses.toml").read_text("utf-8"))
# The codes of google.rpc.Code as HTTP statuses, mapped as in its own comments.
_STATUS_OF_RPC: Final = dict(
    enumerate(
        (499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401), start=1
    )
)
_CODE: Final = re.compile(r"\"code\":\s*(\d{3})\b")
_TOO_LONG: Final = re.compile(
    r"context[ _]length|context[ _]window|prompt is too long|input is too long|"
    r"exceeds? the maximum (?:number of tokens|context)|input token count",
    re.IGNORECASE,
)
_FILTERED: Final = re.compile(
    r"content[ _](?:filter|policy|management)|responsible_ai_policy|safety system", re.IGNORECASE
)


def looks_like_output(row: JsonObject) -> bool:
    response = row.get("response")
    if "custom_id" in row:
        if "response" in row:
            return response is None or isinstance(response, dict)
        return isinstance(row.get("result"), dict) or (
            "error" in row and isinstance(row["error"], dict | str) and "body" not in row
        )
    if "recordId" in row:
        return isinstance(row.get("modelOutput"), dict) or isinstance(row.get("error"), dict)
    if "processed_time" in row:
        return request_of(row) is not None
    if "key" in row or "metadata" in row:
        error = as_object(row.get("error"))
        return any(name in as_object(response) for name in _GEMINI) or (
            "message" in error and ("code" in error or "key" in row)
        )
    return False


def first_lines(sample: FileSample) -> Sequence[JsonObject]:
    return sample.rows or inlined_lines(sample)


def inlined_lines(sample: FileSample) -> list[JsonObject]:
    """Return the answers inside a Gemini batch object as lines, like those of a results file.

    Answers are in the order of the requests, so an answer without a key gets its number as the id.
    """
    if b'"inlinedResponses"' not in sample.head:
        return []
    batch = as_object(sample.document)
    held = as_object(batch.get("response")) or as_object(batch.get("dest"))
    inner = held.get("inlinedResponses")
    answers = objects_in(as_object(inner).get("inlinedResponses") or inner)
    return [
        {**answer, "key": as_id(as_object(answer.get("metadata")).get("key")) or str(number)}
        for number, answer in enumerate(answers, 1)
    ]


def id_of(row: JsonObject) -> str | None:
    for name in _IDS:
        if name in row:
            return as_id(row[name])
    if (key := as_id(as_object(row.get("metadata")).get("key"))) is not None:
        return key
    # LiteLLM sends the ids of its requests to Vertex AI as labels.
    return as_text(as_object(as_object(row.get("request")).get("labels")).get("litellm_custom_id"))


def request_of(row: JsonObject) -> JsonObject | None:
    """Return the request that Vertex AI and Bedrock repeat on the line of an answer; BigQuery
    exports it as text.
    """
    request = row.get("request", row.get("modelInput"))
    if isinstance(request, str) and "processed_time" in row:
        return _parsed(request)
    return request if isinstance(request, dict) else None


def prompt_digest(texts: list[str]) -> str:
    """Return the digest of a prompt, which serves as the id of a request without an id: equal
    prompts are the same task.
    """
    return hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def body_of(row: JsonObject) -> JsonObject | None:
    """Return the response body of an answer or an error; None if the line has no body."""
    response = row.get("response")
    if isinstance(response, str) and "processed_time" in row:
        return _parsed(response) or None
    if isinstance(response, dict):
        body = response.get("body")
        if isinstance(body, dict):
            return body
        if isinstance(body, str):  # some gateways pass the body through as text
            return _parsed(body)
        # Vertex AI leaves an empty object beside the status of a request that failed.
        return response if response and "body" not in response else None
    if isinstance(output := row.get("modelOutput"), dict):
        return output
    result = row.get("result")
    if isinstance(result, dict):
        message = result.get("message", result.get("response"))
        return message if isinstance(message, dict) else None
    return None


def failure_of(row: JsonObject, body: JsonObject | None) -> Failure | None:
    """Return the failure on a line without an answer; None if the line holds an answer."""
    error = row.get("error")
    response = row.get("response")
    status = response.get("status_code") if isinstance(response, dict) else None
    if isinstance(status, int) and status != _OK and not 200 <= status < 300:
        return failed(None, status, _message(body) or _message(error) or f"HTTP {status}.")
    if error:
        return _from_error(error)
    result = row.get("result")
    if isinstance(result, dict) and result.get("type") not in ("succeeded", None):
        if result["type"] == "errored":
            return _from_error(result.get("error"))
        kind = str(result["type"])
        # Only its owner can cancel a batch, but it expires because the provider was too slow.
        fault = Fault.HARNESS if kind in ("canceled", "cancelled") else Fault.PROVIDER
        return Failure(
            kind=kind[:80],
            fault=fault,
            detail=_message(result.get("error")) or f"the request {kind}.",
        )
    if body is None:
        stated = as_text(row.get("status"))
        if stated is not None:  # Vertex AI: a sentence, often with the error as JSON in it
            code = _CODE.search(stated)
            return failed(None if code else "error", int(code[1]) if code else None, stated)
        return failed("no_response", None, "the line holds neither a response nor an error.")
    if body.get("object") == "error" or (
        "error" in body and body["error"] and "choices" not in body
    ):
        inner = body.get("error")
        return _from_error(inner if isinstance(inner, dict) else body)
    return None


def failed(kind: str | None, status: int | None, detail: str) -> Failure:
    """Return a failure; its status, and a full context or a filter in its message, determine the
    party at fault.
    """
    if status is None and kind is not None:
        status = _STATUS_OF.get(kind)
    # A refused request is not the model's fault; a broken or busy server is the provider's fault.
    bad_request = status is not None and 400 <= status < 500 and status not in (408, 409, 425, 429)
    fault = Fault.HARNESS if bad_request else Fault.PROVIDER
    if bad_request and _TOO_LONG.search(detail):
        kind, fault = "context_length", Fault.CANDIDATE
    elif bad_request and _FILTERED.search(detail):
        kind, fault = "refused", Fault.REFUSAL
    return Failure(kind=(kind or f"http_{status}")[:80], fault=fault, detail=detail[:_SHOWN])


def _from_error(error: object) -> Failure:
    fields = as_object(error)
    inner = as_object(fields.get("error"))
    if inner and "code" not in fields:  # Anthropic wraps the error in an object of the type `error`
        fields = inner
    code = fields.get("code", fields.get("errorCode"))
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    words = _message(error) or "an error without a message."
    if isinstance(code, int) and not isinstance(code, bool):
        status = _STATUS_OF_RPC.get(code, code)
        return failed(None, status, _message(error) or f"error {code}.")
    if code:
        return failed(str(code), None, words)
    kind = as_text(fields.get("type"))
    return failed("error" if kind in (None, "error") else kind, None, words)


def _message(value: object) -> str:
    """Return the message in an error object; searches up to four levels, because gateways nest
    errors.
    """
    for _ in range(4):
        if isinstance(value, str):
            return value
        if not isinstance(value, dict):
            return ""
        value = next(
            (
                value[key]
                for key in ("message", "error", "detail", "msg", "errorMessage")
                if value.get(key)
            ),
            "",
        )
    return ""


def _parsed(text: str) -> JsonObject | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
