"""Batch objects of an API: the times of a batch, its final status, and its request counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from assay.domain.digest import JsonValue
from assay.domain.import_records import Found, Noted, Skipped
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_values import (
    JsonObject,
    as_number,
    as_object,
    from_text,
    from_unix,
    pick,
)
from assay.exchange.readers.batch_lines import inlined_lines

NAME: Final = "openai_batch_object"
ROLE: Final = "about"


def recognise(sample: FileSample) -> float | None:
    """Recognise batch objects of OpenAI, Mistral, Anthropic and Gemini, alone or in a list of
    polled states.
    """
    return 1.0 if _batches(sample) and not inlined_lines(sample) else None


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield a note: a batch object contains no results and only adds facts to results in other
    files.
    """
    batches = _batches(source.sample)
    if not batches:
        yield Skipped(where=source.name, why="does not describe a batch.")
        return
    last = batches[-1]
    what = f"describes a batch that is {last.status!r} ({last.counts or {}}); the file with the batch's output was not found."
    yield Noted(where=source.name, what=what)


def facts(sources: Sequence[InputFile]) -> dict[str, JsonValue]:
    """Return the batch's times, status and counts; empty if the files describe more than one
    batch.
    """
    # If a batch was polled several times, the last state counts.
    batches = {batch.id: batch for source in sources for batch in _batches(source.sample)}
    if len(batches) != 1:
        return {}
    (last,) = batches.values()
    known: dict[str, JsonValue] = {"batch": last.id, "status": last.status}
    if last.counts:
        known["request_counts"] = dict(last.counts)
    if last.started:
        known |= {"started": last.started, "times_from": "batch object"}
    if last.finished:
        known["finished"] = last.finished
    return known


class _Batch(NamedTuple):
    """A batch with OpenAI's status names: completed, cancelled, expired, failed, or the status of a
    batch in progress.
    """

    id: str
    status: str
    counts: JsonObject
    started: str | None
    finished: str | None


def _batches(sample: FileSample) -> list[_Batch]:
    document = sample.document
    items = document if isinstance(document, list) else [document]
    batches = [batch for item in items if (batch := _batch(as_object(item))) is not None]
    return batches if len(batches) == len(items) else []


def _batch(item: JsonObject) -> _Batch | None:
    name = str(item.get("id"))
    counts = as_object(item.get("request_counts"))
    # OpenAI; Mistral uses capitals and different words
    if item.get("object") == "batch" and "status" in item:
        status = str(item["status"]).lower()
        return _Batch(
            name,
            {"success": "completed", "timeout_exceeded": "expired"}.get(status, status),
            counts or pick(item, ("total_requests", "succeeded_requests", "failed_requests")),
            _time(item, "in_progress_at", "started_at", "created_at"),
            _time(item, "completed_at", "cancelled_at", "failed_at"),
        )
    if item.get("type") == "message_batch":  # Anthropic
        ended = item.get("processing_status") == "ended"
        status = "completed" if ended else str(item.get("processing_status"))
        if ended and as_object(counts).get("canceled"):
            status = "cancelled"
        return _Batch(
            name, status, counts, from_text(item.get("created_at")), from_text(item.get("ended_at"))
        )
    state = as_object(item.get("metadata"))
    status = str(state.get("state"))
    if str(item.get("name")).startswith("batches/") and status.startswith("BATCH_STATE_"):  # Gemini
        status = status.removeprefix("BATCH_STATE_").lower()
        return _Batch(
            str(item["name"]),
            "completed" if status == "succeeded" else status,
            as_object(state.get("batchStats")),
            from_text(state.get("createTime")),
            from_text(state.get("endTime")),
        )
    return None


def _time(batch: JsonObject, *keys: str) -> str | None:
    return from_unix(next((number for key in keys if (number := as_number(batch.get(key)))), None))
