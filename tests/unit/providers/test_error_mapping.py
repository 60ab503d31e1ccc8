"""From error answers to failures."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from assay.domain.failure import CallFailed, Fault
from assay.providers.endpoint import Endpoint
from assay.providers.error_mapping import (
    LONGEST_SAYING,
    clean,
    complaint,
    retry_after_s,
    said_in,
    saying,
    status_of,
)
from assay.providers.vendors import VENDORS

KEY = "sk-proj-Zq81mVtR44nB0x7LwPpSd2"
NOW_S = 1_792_567_680.0  # 2026-10-21 07:28:00 UTC
ENDPOINT = Endpoint(
    vendor=VENDORS["openai"],
    url="https://api.openai.com/v1/chat/completions",
    key_variable="OPENAI_API_KEY",
    key=KEY,
)


def complained(status: int, error: object, **headers: str) -> CallFailed:
    result = saying(json.dumps(error).encode())
    return complaint(
        status, headers, result, endpoint=ENDPOINT, model="openai/gpt-4o-mini", now_s=NOW_S
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no", "type": "t", "code": "c", "param": "p"}}, "no"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, "no"),
        ({"error": "no"}, "no"),
        ({"message": "no"}, "no"),
        ({"object": "error", "message": "no", "code": 400}, "no"),
        ({"detail": "no"}, "no"),
        ({"detail": [{"loc": ["body", "stop"], "msg": "no"}]}, "no (['body', 'stop'])"),
        ([{"error": {"message": "no"}}], "no"),
        ("no", "no"),
        ({}, ""),
        (None, ""),
        ({"error": {"message": None}}, ""),
    ],
)
def test_the_servers_words_are_found_in_every_shape(body: object, message: str) -> None:
    assert saying(json.dumps(body).encode()).message == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"upstream connect error", "upstream connect error"),
        (
            b"<html><head><title>502 Bad &amp; gone</title></head><body>x</body></html>",
            "502 Bad & gone",
        ),
        (b"<p>down for <b>maintenance</b></p>", "down for maintenance"),
        (b"", ""),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_error_body_that_is_not_json_is_read_as_text(body: bytes, message: str) -> None:
    assert clean(saying(body).message, key=None) == message


@given(st.binary(max_size=300))
def test_no_body_whatever_stops_a_complaint(body: bytes) -> None:
    failed = complaint(400, {}, saying(body), endpoint=ENDPOINT, model="openai/m", now_s=NOW_S)
    assert failed.detail.isprintable()


@given(st.text(max_size=2000), st.text(max_size=50))
def test_a_key_never_survives_cleaning(before: str, after: str) -> None:
    cleaned = clean(f"{before}{KEY}{after}", key=KEY)
    assert KEY not in cleaned
    assert len(cleaned) <= LONGEST_SAYING


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-abcdefghijklmnop",
        "gsk_abcdefgh12345678",
        "AIzaSyA-abcdefghijklmno",
        "hf_abcdefgh12345678",
        "Bearer eyJhbGciOi.abc.def",
        "sk-ab***************xyz",
    ],
)
def test_error_text_is_stripped_of_api_keys(secret: str) -> None:
    assert secret.rsplit(" ", 1)[-1] not in clean(f"Incorrect key: {secret}, sorry", key=None)


def test_plain_words_are_left_alone() -> None:
    result = "Rate limit reached for gpt-4o-mini in organization org-x on tokens per min (TPM): Limit 200000."
    assert clean(result, key=KEY) == result


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
        ({"Retry-After": "-3"}, 0.0),
        (
            {
                "Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT",
                "Date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            30.0,
        ),
        (
            {
                "Retry-After": "Wed, 21 Oct 2026 07:27:30 GMT",
                "Date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            0.0,
        ),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:10 GMT"}, 10.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_s(headers, now_s=NOW_S) == seconds


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_passing_errors_are_transient(status: int) -> None:
    failed = complained(status, {"error": {"message": "busy"}})
    assert (failed.kind, failed.transient, failed.fault) == (f"http_{status}", True, Fault.PROVIDER)


@pytest.mark.parametrize("status", [302, 400, 401, 402, 403, 404, 405, 413, 422])
def test_lasting_errors_are_not_transient(status: int) -> None:
    failed = complained(status, {"error": {"message": "no"}})
    assert (failed.kind, failed.transient, failed.fault) == (f"http_{status}", False, Fault.HARNESS)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "x", "code": "context_length_exceeded"},
        {
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"
        },
        {"message": "prompt is too long: 215000 tokens > 200000 maximum"},
        {
            "message": "input length and `max_tokens` exceed context limit",
            "code": "context_length_exceeded",
        },
        {"message": "the request exceeds the available context size"},
    ],
)
def test_a_full_context_has_a_kind_of_its_own(error: dict[str, str]) -> None:
    failed = complained(400, {"error": error})
    assert (failed.kind, failed.transient, failed.fault) == ("context_length", False, None)


@pytest.mark.parametrize(
    "error",
    [
        {
            "message": "The response was filtered due to the prompt triggering content management policy.",
            "code": "content_filter",
        },
        {"message": "x", "code": "content_policy_violation"},
    ],
)
def test_a_filtered_prompt_is_a_refusal(error: dict[str, str]) -> None:
    failed = complained(400, {"error": error})
    assert (failed.kind, failed.fault) == ("refused", Fault.REFUSAL)


def test_a_used_up_quota_does_not_pass_by_waiting() -> None:
    failed = complained(
        429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    )
    assert (failed.kind, failed.transient, failed.retry_after_s) == ("http_429", False, None)


def test_a_refused_key_names_its_variable_and_a_missing_one_too() -> None:
    assert "OPENAI_API_KEY" in complained(401, {"error": {"message": "no"}}).detail
    bare = Endpoint(
        vendor=VENDORS["openai"], url="https://h/v1/chat/completions", key_variable="ASSAY_KEY_H"
    )
    failed = complaint(401, {}, saying(b""), endpoint=bare, model="openai/m", now_s=NOW_S)
    assert "asks for a key, and ASSAY_KEY_H is not set" in failed.detail


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 429, "message": "x"}, 429),
        ({"code": "502", "message": "x"}, 502),
        ({"type": "overloaded_error", "message": "x"}, 529),
        ({"type": "rate_limit_error", "message": "x"}, 429),
        ({"type": "invalid_request_error", "message": "x"}, 400),
        ({"message": "x"}, 502),
        ("x", 502),
        ({"code": 7}, 502),
    ],
)
def test_an_error_inside_an_answer_has_a_status(error: object, status: int) -> None:
    assert status_of(said_in(error)) == status


@pytest.mark.parametrize(
    ("status", "charged"),
    [
        (400, False),
        (401, False),
        (429, False),
        (500, False),
        (503, False),
        (408, True),
        (504, True),
    ],
)
def test_only_a_proxy_that_gave_up_waiting_leaves_a_charge(status: int, charged: bool) -> None:
    assert complained(status, {"message": "no"}).charged is charged
