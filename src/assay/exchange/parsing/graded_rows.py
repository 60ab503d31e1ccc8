"""Convert evaluation rows (question, answer, metrics) to tasks, responses and assessments.

Readers of harnesses with tabular results map each row to a `GradedRow`. `graded_records` then names
tasks, numbers trials and yields the records.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.failure import Failure
from assay.domain.import_records import (
    Found,
    FoundCandidate,
    FoundResponse,
    FoundRun,
    FoundTask,
    Noted,
    Skipped,
)
from assay.domain.suite import Message
from assay.exchange.parsing.input_files import InputFile
from assay.exchange.parsing.json_values import as_messages, as_object, shorten, storable, to_text
from assay.exchange.parsing.metric_grades import MetricGrades, MetricValue, outside_their_scale

# LangChain's and Ragas's messages have a type instead of a role.
_ROLE_OF_TYPE: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "user"}
_ANSWER_KEYS: Final = (
    "output",
    "answer",
    "response",
    "content",
    "text",
    "result",
    "output_text",
    "generation",
)


def run_without_model(
    form: str,
    source: InputFile,
    candidate: str | None,
    dataset: str | None,
    model_info: Mapping[str, JsonValue],
) -> Iterator[Found]:
    """Yield the run of a file without a model name, and a note if the candidate is named after the
    file.
    """
    provenance: dict[str, JsonValue] = {
        "candidate_from": "file name" if candidate is None else "option"
    }
    own = FoundCandidate(name=candidate or source.stem, metadata=model_info)
    yield FoundRun(suite=dataset or form, format=form, candidates=(own,), provenance=provenance)
    if candidate is None:
        yield named_after_file(source.name, own.name)


def named_after_file(
    where: str, candidate: str, lacks: str = "the file contains no model name"
) -> Noted:
    what = (
        f"{lacks}; the candidate {candidate!r} is named after the file; `--candidate` renames it."
    )
    return Noted(where=where, what=what)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRow:
    """One answer with its metrics.

    `task`: the harness's id of the example; None to name the task after its prompt's digest.
    `trial`: repetition number from 1; None to number repetitions in file order. `content`: the
    answer; None if it failed or the file lacks it.
    """

    where: str
    candidate: str
    prompt: tuple[Message, ...]
    task: str | None = None
    trial: int | None = None
    expected: tuple[str, ...] = ()
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    content: str | None = None
    failure: Failure | None = None
    values: tuple[MetricValue, ...] = ()
    model: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    started: str | None = None
    identity: str | None = None


def graded_records(
    rows: Callable[[], Iterable[GradedRow | Skipped]], where: str
) -> Iterator[Found]:
    """Yield the rows' tasks, responses and assessments, then notes about metrics, with `where` as
    the notes' location.

    `rows` is called twice, because even the last row can show that a metric's scale is different:
    if one value is outside the scale, none of the metric's values is a score.
    """
    grades = MetricGrades(
        outside_their_scale(
            value for row in rows() if isinstance(row, GradedRow) for value in row.values
        )
    )
    tasks: set[str] = set()
    trials: Counter[tuple[str, str]] = Counter()
    for row in rows():
        if isinstance(row, Skipped):
            yield row
            continue
        task = row.task or prompt_digest(row.prompt)
        if task not in tasks:
            tasks.add(task)
            yield FoundTask(
                id=task,
                thing=None
                if row.task
                else shorten(row.prompt[-1].content if row.prompt else task, 60),
                prompt=row.prompt,
                expected=row.expected,
                metadata=row.metadata,
            )
        trials[task, row.candidate] += 1
        trial = row.trial or trials[task, row.candidate]
        if row.content is not None or row.failure is not None:
            yield FoundResponse(
                task=task,
                candidate=row.candidate,
                trial=trial,
                where=row.where,
                content=row.content if row.failure is None else None,
                failure=row.failure,
                model_answered=row.model,
                finish_reason=row.finish_reason,
                input_tokens=row.input_tokens,
                output_tokens=row.output_tokens,
                latency_s=row.latency_s,
                cost_usd=row.cost_usd,
                started=row.started,
                identity=row.identity,
            )
        if row.failure is None:
            yield from grades.assessments(
                row.values, task=task, candidate=row.candidate, trial=trial, where=row.where
            )
    yield from grades.notes(where)


def prompt_digest(prompt: tuple[Message, ...]) -> str:
    """Return a digest of a prompt.

    It identifies the task, so equal questions in different files are the same task.
    """
    text = "\x1f".join(f"{message.role}\x1e{message.content}" for message in prompt)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def prompt_of(value: object) -> tuple[Message, ...]:
    """Convert an input of any form to messages: text, messages, or an object with variables."""
    if isinstance(value, list):
        turns = [_with_role(item) if isinstance(item, dict) else item for item in value]
        return as_messages(turns) or _as_user(value)
    fields = as_object(value)
    if isinstance(fields.get("messages"), list):
        return prompt_of(fields["messages"])
    if len(fields) == 1:
        return prompt_of(next(iter(fields.values())))
    return as_messages(value) if isinstance(value, str) else _as_user(value)


def answer_text(value: object) -> str | None:
    """Convert an answer of any form to text; None without an answer."""
    if value is None or isinstance(value, str):
        return value
    fields = as_object(value)
    texts = [key for key in _ANSWER_KEYS if isinstance(fields.get(key), str)]
    if len(fields) == 1 or len(texts) == 1:
        inner = fields[texts[0]] if texts else next(iter(fields.values()))
        return to_text(inner)
    return to_text(value)


def _with_role(message: dict[str, JsonValue]) -> dict[str, JsonValue]:
    kind = message.get("type")
    return (
        message
        if "role" in message or kind not in _ROLE_OF_TYPE
        else {**message, "role": _ROLE_OF_TYPE[str(kind)]}
    )


def _as_user(value: object) -> tuple[Message, ...]:
    return (
        () if value in (None, {}, []) else (Message(role="user", content=to_text(storable(value))),)
    )
