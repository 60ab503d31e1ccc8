"""Logs of batch runs: number of requests, duration, rate, model and server version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.import_records import Found, Noted
from assay.domain.secret_masking import masked_line
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.input_files import FileSample, InputFile, UnreadableFile

NAME: Final = "log"
ROLE: Final = "log"

_TAIL: Final = 4 << 20
_PROGRESS: Final = re.compile(
    # Without the look-behind, each digit of a long number would start a separate search: 51 s for
    # 100 kB.
    r"(?<![\d,])(\d[\d,]*)/(\d[\d,]*) \[((?:\d+:)?\d+:\d\d)<[^\],]*,\s*([\d.]+)\s*(s/(?:req|it)|(?:req|it)/s)",
    re.IGNORECASE,
)
_PER_S: Final = re.compile(
    r"(?:throughput|requests? per second)\D{0,20}([\d.]+)\s*(?:req(?:uests)?/s)?", re.IGNORECASE
)
_MODEL: Final = re.compile(
    r"(?:\bmodel(?:_tag)?['\"]?\s*[=:]\s*|--model[ =])['\"]?([\w.-]+/[\w.-]+)"
)
_VERSION: Final = re.compile(
    r"vLLM (?:API server )?version:? v?(\d[\w.+]*)|\(v(\d[\w.+]*)\) with config"
)
_COMMAND: Final = re.compile(r"^.*?(python3? -m vllm\S* .*|vllm run-batch .*)$", re.MULTILINE)


def recognise(sample: FileSample) -> float | None:
    """Recognise a log by a progress line with a rate, or by a line with the server's version; JSON
    and tables are excluded.
    """
    if sample.rows or b"\0" in sample.head:
        return None
    text = sample.text
    if text.lstrip()[:1] in ("{", "["):
        return None
    if _PROGRESS.search(text.replace("\r", "\n")):
        return 0.9
    return 0.6 if _VERSION.search(text) or _PER_S.search(text) else None


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield a note: a log contains no results and only adds facts to results in other files."""
    what = "is a server log without results. Import the file with the results, and give the log with --log."
    yield Noted(where=source.name, what=what)


def facts(sources: Sequence[InputFile]) -> dict[str, JsonValue]:
    """Return facts about a run from all of its readable logs, keyed by their names in the run's
    provenance.
    """
    known: dict[str, JsonValue] = {}
    for source in sources:
        try:
            known |= facts_of_text(_text(source))
        except UnreadableFile:
            continue
    return known


def facts_of_text(text: str) -> dict[str, JsonValue]:
    """Return requests, requests_done, duration_s, requests_per_s, model, server_version and
    command; omits unknown ones.

    If there are several progress lines, the last complete one counts.
    """
    # tqdm redraws its line with a carriage return.
    text = text.replace("\r", "\n")
    known: dict[str, JsonValue] = {}
    lines = _PROGRESS.findall(text)
    if lines:
        complete = [line for line in lines if line[0] == line[1]]
        done, total, clock, rate, unit = (complete or lines)[-1]
        # The pattern also matches dots without a digit.
        per_s = float(rate) if rate.strip(".") else 0.0
        if unit.lower().startswith("s/") and per_s:
            per_s = 1 / per_s
        known |= {
            "requests": _whole(total),
            "requests_done": _whole(done),
            "duration_s": _seconds(clock),
        }
        if per_s:
            known["requests_per_s"] = round(per_s, 4)
    else:
        rates = _PER_S.findall(text)
        if rates and rates[-1].strip("."):
            known["requests_per_s"] = float(rates[-1])
    if (model := _MODEL.search(text)) is not None:
        known["model"] = model[1]
    if (version := _VERSION.search(text)) is not None:
        known["server_version"] = version[1] or version[2]
    if (command := _COMMAND.search(text)) is not None:
        known["command"] = masked_line(command[1].strip()[:2000])
    return known


def _text(source: InputFile) -> str:
    """Return the beginning of a log (which names the model) and its end (which shows the request
    rate).
    """
    with source.open() as stream:
        head = stream.read(_TAIL)
        tail = b""
        while chunk := stream.read(1 << 20):
            tail = (tail + chunk)[-_TAIL:]
    return (head + tail).decode("utf-8", "replace")


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _seconds(clock: str) -> int:
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds
