"""Logs of the open-source `openai/evals` (`oaieval`): JSON Lines of a spec, events and a final
report.

Based on `evals/record.py`, `evals/base.py` and `evals/elsuite/` (match, includes,
modelgraded/classify) from the first release (2023) to the last commits (2025). The first line
contains `spec`, the last one `final_report`. In between are events of `type` `sampling`, `match`,
`metrics`, `error` and others, each with `sample_id` and `data`; threads write them interleaved.

The first of `completion_fns` is the candidate. `match` is a rule-based judge. `metrics` with a
`choice` are a model's grade, read from the completion before them, and await review; a choice
without a score in the log gets no score. Other `metrics` are rule-based criteria. An `error` of a
task without a sample is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from assay.domain import import_records as records
from assay.domain.failure import Failure, Fault
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing import json_values as js
from assay.exchange.parsing.explained import Shape, explained_share
from assay.exchange.parsing.foreign_names import foreign_names
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_rows import objects_of, read_rows
from assay.exchange.parsing.off_scale import OffScale

NAME: Final = "openai_evals_log"

_NAMES: Final = foreign_names(__name__)
_SET_UP: Final = _NAMES["set_up"]
_LINE: Final[Shape] = dict.fromkeys(_NAMES["line"])
_CHOICES: Final = "choice"
_UNREAD: Final = "__invalid__"


@dataclass(slots=True)
class _SampleFacts:
    """Facts about one sample from the first pass: the line of its answer, expected answers, and
    whether it was graded.
    """

    answer_line: str | None = None
    expected: tuple[str, ...] = ()
    sampled: bool = False
    graded: bool = False


def recognise(sample: FileSample) -> float | None:
    """Recognise a first line with `spec`, or lines of events."""
    if b'"sample_id"' not in sample.head and b'"spec"' not in sample.head:
        return None
    rows = sample.rows[:50]
    if rows and {"eval_name", "base_eval"} & js.as_object(rows[0].get("spec")).keys():
        return explained_share(rows, _LINE)
    fitting = sum(_is_event(row) for row in rows)
    return explained_share(rows, _LINE) * fitting / len(rows) if fitting > 1 else None


def read(source: InputFile, options: ReadOptions) -> Iterator[records.Found]:
    """Yield one run.

    The answer is the last completion; if a model grades, the first, because the grader's calls
    follow it.
    """
    spec: js.JsonObject = {}
    known: dict[str, _SampleFacts] = {}
    scale = OffScale()
    graded_by_model = False
    for row, where in objects_of(source):
        spec = js.as_object(row.get("spec")) or spec
        graded_by_model = graded_by_model or "modelgraded_spec" in js.to_text(row.get("spec"))
        if _is_event(row):
            _learn(row, where, known, first=graded_by_model)
            if row["type"] == "metrics":
                for key, value in js.as_object(row["data"]).items():
                    scale.learn(key, js.as_points(value))
    functions = [
        name
        for item in js.as_list(spec.get("completion_fns"))
        if (name := js.as_text(item)) is not None
    ]
    candidate = (
        options.candidate
        or next(iter(functions), js.as_text(spec.get("model_name")))
        or source.stem
    )
    yield records.FoundRun(
        suite=options.dataset
        or js.as_text(spec.get("eval_name"))
        or js.as_text(spec.get("base_eval"))
        or source.stem,
        format=NAME,
        candidates=(
            records.FoundCandidate(
                name=candidate,
                model=functions[0] if functions else None,
                metadata=options.model_info,
            ),
        ),
        started=js.from_text(spec.get("created_at")),
        # Set by the final report, which is missing if the run was stopped.
        complete=False,
        provenance=js.pick(spec, _SET_UP),
    )
    yield from _events(source, candidate, _judge(spec, functions), known, scale)
    yield from scale.remarks(source.name)


def _is_event(row: js.JsonObject) -> bool:
    return "sample_id" in row and isinstance(row.get("type"), str) and "data" in row


def _learn(row: js.JsonObject, where: str, known: dict[str, _SampleFacts], *, first: bool) -> None:
    """Add an event to the facts about its sample.

    With `first`, the first completion is the answer, otherwise the last one.
    """
    task = js.as_id(row["sample_id"])
    if task is None:
        return
    facts = known.setdefault(task, _SampleFacts())
    data = js.as_object(row["data"])
    if row["type"] == "sampling":
        if not facts.graded and (facts.answer_line is None or not first):
            facts.answer_line = where
        facts.sampled = True
    elif row["type"] in ("match", "metrics"):
        facts.graded = True
        facts.expected = facts.expected or js.as_texts(data.get("expected"))


def _judge(spec: js.JsonObject, functions: list[str]) -> str:
    arguments = js.as_object(
        js.as_object(js.as_object(spec.get("run_config")).get("eval_spec")).get("args")
    )
    name = js.as_text(arguments.get("modelgraded_spec")) or "modelgraded"
    return f"{name} ({functions[-1]})" if len(functions) > 1 else name


def _events(
    source: InputFile, candidate: str, judge: str, known: dict[str, _SampleFacts], scale: OffScale
) -> Iterator[records.Found]:
    replies: dict[str, str] = {}
    tasks: set[str] = set()
    unscored, unscored_at = 0, ""
    for row, where in read_rows(source):
        if isinstance(row, str):
            yield records.Skipped(where=where, why=row)
            continue
        if "spec" in row:
            continue
        if "final_report" in row:
            yield records.FoundAtEnd(
                complete=True, provenance={"final_report": js.storable(row["final_report"])}
            )
            continue
        task = js.as_id(row.get("sample_id")) if _is_event(row) else None
        if task is None:
            yield records.Skipped(
                where=where, why="is neither a spec, an event of a sample nor a final report."
            )
            continue
        data, facts = js.as_object(row["data"]), known[task]
        match row["type"]:
            case "sampling":
                replies[task] = _sampled(data)
                if facts.answer_line == where:
                    tasks.add(task)
                    yield records.FoundTask(
                        id=task, prompt=js.as_messages(data.get("prompt")), expected=facts.expected
                    )
                    yield _response(data, task, candidate, where, row)
            case "match":
                grade = records.FoundGrade(
                    candidate=candidate,
                    score=js.in_unit_range(js.as_points(data.get("correct"))),
                    reason=_picked(data),
                )
                yield records.FoundAssessment(
                    task=task,
                    trial=1,
                    judge="match",
                    by=records.GradedBy.RULE,
                    where=where,
                    grades=(grade,),
                )
            case "metrics":
                assessment = _metrics(data, task, candidate, judge, replies.get(task), where, scale)
                if assessment is None:
                    yield records.Skipped(
                        where=where,
                        why="holds no metric that is a number, true, false or a choice.",
                    )
                    continue
                if assessment.by is records.GradedBy.MODEL and any(
                    grade.score is None for grade in assessment.grades
                ):
                    unscored += 1
                    unscored_at = unscored_at or where
                yield assessment
            case "error" if not facts.sampled and task not in tasks:
                tasks.add(task)
                detail = f"{js.shorten(data.get('type') or 'error', 80)}: {js.shorten(data.get('message') or 'no message')}"
                failure = Failure(kind="error", fault=Fault.PROVIDER, detail=detail)
                yield records.FoundResponse(
                    task=task, candidate=candidate, trial=1, where=where, failure=failure
                )
            case "raw_sample" if not facts.sampled and task not in tasks:
                tasks.add(task)
                expected = facts.expected or js.as_texts(data.get("ideal"))
                yield records.FoundTask(
                    id=task, prompt=js.as_messages(data.get("input")), expected=expected
                )
            case _:
                pass  # embeddings, extras: not answers and not grades
    if unscored:
        what = (
            f"{unscored:,} choices have no score, because what each is worth is in the eval's YAML and not in the log. "
            "Enter scores in the review, or describe the file with `--map`."
        )
        yield records.Noted(where=unscored_at, what=what)


def _sampled(data: js.JsonObject) -> str:
    sampled = data.get("sampled", data.get("completion"))
    return js.to_text(sampled[0]) if isinstance(sampled, list) and sampled else js.to_text(sampled)


def _response(
    data: js.JsonObject, task: str, candidate: str, where: str, row: js.JsonObject
) -> records.FoundResponse:
    usage = js.as_object(data.get("usage"))
    return records.FoundResponse(
        task=task,
        candidate=candidate,
        trial=1,
        where=where,
        content=_sampled(data),
        model_answered=js.as_text(data.get("model")),
        input_tokens=js.as_count(usage.get("prompt_tokens")),
        output_tokens=js.as_count(usage.get("completion_tokens")),
        started=js.from_text(row.get("created_at")),
    )


def _picked(data: js.JsonObject) -> str:
    picked, expected = data.get("picked"), data.get("expected")
    return (
        ""
        if picked is None and expected is None
        else f"picked {js.shorten(picked, 300)!r}, expected {js.shorten(expected, 300)!r}"
    )


def _metrics(
    data: js.JsonObject,
    task: str,
    candidate: str,
    judge: str,
    reply: str | None,
    where: str,
    scale: OffScale,
) -> records.FoundAssessment | None:
    """Convert metrics to grades: a model's choice or, without a choice, every number; None if there
    is neither.
    """
    chosen_by_model = {
        key: value for key, value in data.items() if isinstance(value, str) and key != "sampled"
    }
    if _CHOICES in data or (chosen_by_model and "score" in data):
        choice = js.to_text(data.get(_CHOICES, next(iter(chosen_by_model.values()), "")))
        raw = js.as_points(data.get("score"))
        score = None if choice == _UNREAD else scale.score("score", raw)
        grade = records.FoundGrade(
            candidate=candidate,
            score=score,
            raw_score=raw,
            reason=f"choice: {js.shorten(choice, 200)}",
        )
        return records.FoundAssessment(
            task=task,
            trial=1,
            judge=judge,
            by=records.GradedBy.MODEL,
            where=where,
            grades=(grade,),
            reply=reply or choice,
        )
    grades = tuple(
        records.FoundGrade(
            candidate=candidate, score=scale.score(key, value), criterion=key, raw_score=value
        )
        for key, metric in data.items()
        if (value := js.as_points(metric)) is not None
    )
    if not grades:
        return None
    return records.FoundAssessment(
        task=task, trial=1, judge="metrics", by=records.GradedBy.RULE, where=where, grades=grades
    )
