"""Build the rows of imported responses and their calls."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from assay.domain.import_identity import response_number
from assay.domain.import_records import FoundResponse
from assay.store.database import schema
from assay.store.database.codec import plain, text_bytes
from assay.store.imports.portion import Portion, Row, TableRows
from assay.store.imports.trial_rows import ImportedTrial, Trials

Stored = FoundResponse | bytes | None
"""An answer of this portion, or the digest of an earlier portion's answer; None if the answer
failed.
"""


def rows_of_responses(
    portion: Portion, trials: Trials, responses: Sequence[FoundResponse]
) -> TableRows:
    """Return a row for each candidate's first answer in each trial; skip further answers with a
    message.
    """
    calls: list[Row] = []
    rows: list[Row] = []
    seen = _stored_before(
        portion, [trials[plain(response.task), response.trial] for response in responses]
    )
    failed = 0
    for response in responses:
        trial = trials[plain(response.task), response.trial]
        candidate = portion.candidate(response.candidate)
        if (trial.key, candidate) in seen:
            _skip_repeated(portion, response, seen[trial.key, candidate])
            continue
        # The record itself is kept, so that comparing it with a repeated record mostly compares
        # references.
        seen[trial.key, candidate] = response
        if response.identity is not None:
            number = response_number(response.identity)
            portion.identified.append((number, trial.key, candidate, portion.run.run_key))
        call_key = None
        if has_call(response):
            call_key = next(portion.call_keys)
            calls.append(call_row(portion, call_key, trial.key, candidate, response, plain))
            failed += response.failure is not None
        if response.content is None:
            trial.failure = response.failure
            continue
        trial.usable = True
        body_key = next(portion.body_keys)
        portion.bodies.append((body_key, content_bytes(response.content)))
        truncated = response.finish_reason == "length"
        rows.append(
            (next(portion.response_keys), trial.key, candidate, 1, truncated, call_key, body_key)
        )
    portion.run.responses += len(rows) + failed
    return [(schema.call, calls), (schema.response, rows)]


def has_call(response: FoundResponse) -> bool:
    """True if the file has enough data about a response's call to store the call."""
    return (
        response.failure is not None
        or response.model_answered is not None
        or response.input_tokens is not None
        or response.latency_s is not None
        or response.cost_usd is not None
        or response.started is not None
    )


def call_row(
    portion: Portion,
    key: int,
    trial_key: int,
    candidate_key: int,
    response: FoundResponse,
    stored: Callable[[str], str],
) -> Row:
    """Return the row of a call, and add its amounts to the run's sums.

    `stored` cleans a short text for a column.
    """
    failed: Row = (None, None, None)
    if response.failure is not None:
        failure = response.failure
        failed = (plain(failure.kind), failure.fault.value, plain(failure.detail))
    model = None if response.model_answered is None else stored(response.model_answered)
    finish = None if response.finish_reason is None else stored(response.finish_reason)
    portion.sums.add(response)
    return (
        key,
        portion.run.run_key,
        trial_key,
        "candidate",
        candidate_key,
        None,
        1,
        1,
        stored(response.candidate) if model is None else model,
        model,
        finish,
        response.input_tokens,
        response.output_tokens,
        response.latency_s,
        None,
        response.cost_usd,
        response.started or "",
        *failed,
        "",
        None,
        None,
    )


def content_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return text_bytes(text)


def _stored_before(
    portion: Portion, trials: Sequence[ImportedTrial]
) -> dict[tuple[int, int], Stored]:
    old = sorted({trial.key for trial in trials if not trial.fresh})
    stored: dict[tuple[int, int], Stored] = {}
    if old:
        text = "SELECT r.trial_key, r.candidate_key, b.content FROM response r JOIN body b ON b.key = r.body_key WHERE r.trial_key"
        for trial, candidate, content in portion.rows_among(text, (), old):
            stored[trial, candidate] = _digest(bytes(content))
        text = "SELECT trial_key, candidate_key, fail_kind FROM call WHERE fail_kind IS NOT NULL AND trial_key"
        for trial, candidate, _ in portion.rows_among(text, (), old):
            stored.setdefault((trial, candidate), None)
    return stored


def _digest(content: bytes) -> bytes:
    # Digests are kept, because the texts of a portion's trials took 500 MB.
    return hashlib.blake2b(content, digest_size=16).digest()


def _skip_repeated(portion: Portion, response: FoundResponse, first: Stored) -> None:
    if first is None or isinstance(first, bytes):
        same = (
            None if response.content is None else _digest(text_bytes(response.content))
        ) == first
        place = ""
    else:
        same = (response.content, response.failure) == (first.content, first.failure)
        place = f" at {first.where}"
    if same:
        why = f"repeats an earlier answer to {response.task!r}{place}, word for word, so Assay skipped it."
    else:
        why = f"has a different answer to {response.task!r} than an earlier record{place}; Assay kept the earlier answer."
    portion.skip(response.where, why)
