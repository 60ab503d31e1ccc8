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

from assay.plugins import (
    Failure,
    Fault,
    FileSample,
    Found,
    FoundAssessment,
    FoundAtEnd,
    FoundCandidate,
    FoundGrade,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    Noted,
    OffScale,
    ReadOptions,
    Shape,
    Skipped,
    as_count,
    as_id,
    as_list,
    as_messages,
    as_object,
    as_points,
    as_text,
    as_texts,
    explained_share,
    foreign_names,
    from_text,
    in_unit_range,
    objects_of,
    pick,
    read_rows,
    shorten,
    storable,
    to_text,
)

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
    if rows and {"eval_name", "base_eval"} & as_object(rows[0].get("spec")).keys():
        return explained_share(rows, _LINE)
    fitting = sum(_is_event(row) for row in rows)
    return explained_share(rows, _LINE) * fitting / len(rows) if fitting > 1 else None


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run.

    The answer is the last completion; if a model grades, the first, because the grader's calls
    follow it.
    """
    spec: JsonObject = {}
    known: dict[str, _SampleFacts] = {}
    scale = OffScale()
    graded_by_model = False
    for row, where in objects_of(source):
        spec = as_object(row.get("spec")) or spec
        graded_by_model = graded_by_model or "modelgraded_spec" in to_text(row.get("spec"))
        if _is_event(row):
            _learn(row, where, known, first=graded_by_model)
            if row["type"] == "metrics":
                for key, value in as_object(row["data"]).items():
                    scale.learn(key, as_points(value))
    functions = [
        name for item in as_list(spec.get("completion_fns")) if (name := as_text(item)) is not None
    ]
    candidate = (
        options.candidate or next(iter(functions), as_text(spec.get("model_name"))) or source.stem
    )
    yield FoundRun(
        suite=options.dataset
        or as_text(spec.get("eval_name"))
        or as_text(spec.get("base_eval"))
        or source.stem,
        format=NAME,
        candidates=(
            FoundCandidate(
                name=candidate,
                model=functions[0] if functions else None,
                metadata=options.model_info,
            ),
        ),
        started=from_text(spec.get("created_at")),
        # Set by the final report, which is missing if the run was stopped.
        complete=False,
        provenance=pick(spec, _SET_UP),
    )
    yield from _events(source, candidate, _judge(spec, functions), known, scale)
    yield from scale.remarks(source.name)


def _is_event(row: JsonObject) -> bool:
    return "sample_id" in row and isinstance(row.get("type"), str) and "data" in row


def _learn(row: JsonObject, where: str, known: dict[str, _SampleFacts], *, first: bool) -> None:
    """Add an event to the facts about its sample.

    With `first`, the first completion is the answer, otherwise the last one.
    """
    task = as_id(row["sample_id"])
    if task is None:
        return
    facts = known.setdefault(task, _SampleFacts())
    data = as_object(row["data"])
    if row["type"] == "sampling":
        if not facts.graded and (facts.answer_line is None or not first):
            facts.answer_line = where
        facts.sampled = True
    elif row["type"] in ("match", "metrics"):
        facts.graded = True
        facts.expected = facts.expected or as_texts(data.get("expected"))


def _judge(spec: JsonObject, functions: list[str]) -> str:
    arguments = as_object(as_object(as_object(spec.get("run_config")).get("eval_spec")).get("args"))
    name = as_text(arguments.get("modelgraded_spec")) or "modelgraded"
    return f"{name} ({functions[-1]})" if len(functions) > 1 else name


def _events(
    source: InputFile, candidate: str, judge: str, known: dict[str, _SampleFacts], scale: OffScale
) -> Iterator[Found]:
    replies: dict[str, str] = {}
    tasks: set[str] = set()
    unscored, unscored_at = 0, ""
    for row, where in read_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        if "spec" in row:
            continue
        if "final_report" in row:
            yield FoundAtEnd(
                complete=True, provenance={"final_report": storable(row["final_report"])}
            )
            continue
        task = as_id(row.get("sample_id")) if _is_event(row) else None
        if task is None:
            yield Skipped(
                where=where, why="is neither a spec, an event of a sample nor a final report."
            )
            continue
        data, facts = as_object(row["data"]), known[task]
        match row["type"]:
            case "sampling":
                replies[task] = _sampled(data)
                if facts.answer_line == where:
                    tasks.add(task)
                    yield FoundTask(
                        id=task, prompt=as_messages(data.get("prompt")), expected=facts.expected
                    )
                    yield _response(data, task, candidate, where, row)
            case "match":
                grade = FoundGrade(
                    candidate=candidate,
                    score=in_unit_range(as_points(data.get("correct"))),
                    reason=_picked(data),
                )
                yield FoundAssessment(
                    task=task,
                    trial=1,
                    judge="match",
                    by=GradedBy.RULE,
                    where=where,
                    grades=(grade,),
                )
            case "metrics":
                assessment = _metrics(data, task, candidate, judge, replies.get(task), where, scale)
                if assessment is None:
                    yield Skipped(
                        where=where,
                        why="holds no metric that is a number, true, false or a choice.",
                    )
                    continue
                if assessment.by is GradedBy.MODEL and any(
                    grade.score is None for grade in assessment.grades
                ):
                    unscored += 1
                    unscored_at = unscored_at or where
                yield assessment
            case "error" if not facts.sampled and task not in tasks:
                tasks.add(task)
                detail = f"{shorten(data.get('type') or 'error', 80)}: {shorten(data.get('message') or 'no message')}"
                failure = Failure(kind="error", fault=Fault.PROVIDER, detail=detail)
                yield FoundResponse(
                    task=task, candidate=candidate, trial=1, where=where, failure=failure
                )
            case "raw_sample" if not facts.sampled and task not in tasks:
                tasks.add(task)
                expected = facts.expected or as_texts(data.get("ideal"))
                yield FoundTask(id=task, prompt=as_messages(data.get("input")), expected=expected)
            case _:
                pass  # embeddings, extras: not answers and not grades
    if unscored:
        what = (
            f"{unscored:,} choices have no score, because what each is worth is in the eval's YAML and not in the log. "
            "Enter scores in the review, or describe the file with `--map`."
        )
        yield Noted(where=unscored_at, what=what)


def _sampled(data: JsonObject) -> str:
    sampled = data.get("sampled", data.get("completion"))
    return to_text(sampled[0]) if isinstance(sampled, list) and sampled else to_text(sampled)


def _response(
    data: JsonObject, task: str, candidate: str, where: str, row: JsonObject
) -> FoundResponse:
    usage = as_object(data.get("usage"))
    return FoundResponse(
        task=task,
        candidate=candidate,
        trial=1,
        where=where,
        content=_sampled(data),
        model_answered=as_text(data.get("model")),
        input_tokens=as_count(usage.get("prompt_tokens")),
        output_tokens=as_count(usage.get("completion_tokens")),
        started=from_text(row.get("created_at")),
    )


def _picked(data: JsonObject) -> str:
    picked, expected = data.get("picked"), data.get("expected")
    return (
        ""
        if picked is None and expected is None
        else f"picked {shorten(picked, 300)!r}, expected {shorten(expected, 300)!r}"
    )


def _metrics(
    data: JsonObject,
    task: str,
    candidate: str,
    judge: str,
    reply: str | None,
    where: str,
    scale: OffScale,
) -> FoundAssessment | None:
    """Convert metrics to grades: a model's choice or, without a choice, every number; None if there
    is neither.
    """
    chosen_by_model = {
        key: value for key, value in data.items() if isinstance(value, str) and key != "sampled"
    }
    if _CHOICES in data or (chosen_by_model and "score" in data):
        choice = to_text(data.get(_CHOICES, next(iter(chosen_by_model.values()), "")))
        raw = as_points(data.get("score"))
        score = None if choice == _UNREAD else scale.score("score", raw)
        grade = FoundGrade(
            candidate=candidate,
            score=score,
            raw_score=raw,
            reason=f"choice: {shorten(choice, 200)}",
        )
        return FoundAssessment(
            task=task,
            trial=1,
            judge=judge,
            by=GradedBy.MODEL,
            where=where,
            grades=(grade,),
            reply=reply or choice,
        )
    grades = tuple(
        FoundGrade(
            candidate=candidate, score=scale.score(key, value), criterion=key, raw_score=value
        )
        for key, metric in data.items()
        if (value := as_points(metric)) is not None
    )
    if not grades:
        return None
    return FoundAssessment(
        task=task, trial=1, judge="metrics", by=GradedBy.RULE, where=where, grades=grades
    )
