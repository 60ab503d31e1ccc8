"""Finished runs of an agent harness, one JSON object each: agent, scenario, each evaluator's score,
and telemetry.

Such harnesses use two spellings: `runId`, `batchId`, `totalScore`, `evaluations` as a list with
`evaluatorName`; or `run_id`, `batch_id`, `overall_score`, `evaluations` as a mapping by name. `run`
and `telemetry` may also be two nested objects, as in the responses of the harnesses' servers.

A candidate is an agent with its model, and with the specialist if one was enabled. A task is a
scenario at its tier. The evaluators are the weighted criteria of one grader, so the run's score is
Σ(score · weight) / Σ weight. An evaluator counts as a model if the file marks it as one or its name
contains "judge"; all grades of the run then await review. A total without evaluators has no known
judge, so it awaits review too. If there are evaluators, the total is not imported, because Assay
computes it. All other fields are kept as the run's provenance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from assay.domain import import_records as records
from assay.domain.digest import JsonValue, digest
from assay.domain.failure import Failure, Fault
from assay.domain.specialists import Specialist
from assay.domain.suite import Criterion
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing import json_values as js
from assay.exchange.parsing.foreign_names import foreign_names
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_rows import first_rows, read_rows
from assay.scoring.workspace_grader import EVALUATORS

NAME: Final = "agent_run"

IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
"""Ids that are kept unchanged, because they are safe in addresses and file names."""

FAILED: Final = frozenset(
    {"failed", "failure", "error", "errored", "timeout", "timed_out", "cancelled", "aborted"}
)
DONE: Final = frozenset(
    {"completed", "complete", "succeeded", "success", "finished", "passed", *FAILED}
)

_NAMES: Final = foreign_names(__name__)
_JUDGE: Final = re.compile(r"judge|(?:^|[^a-z])(?:llm|ai)(?:[^a-z]|$)", re.IGNORECASE)
_BY: Final = {
    "model": records.GradedBy.MODEL,
    "rule": records.GradedBy.RULE,
    "person": records.GradedBy.PERSON,
}


class BadField(ValueError):
    """Raised for an invalid value, with the field's path as `where` and the reason as the
    message.
    """

    def __init__(self, where: str, why: str) -> None:
        self.where = where
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """One validated run; `content` is the digest of its JSON object."""

    run: records.FoundRun
    task: records.FoundTask
    response: records.FoundResponse
    assessments: tuple[records.FoundAssessment, ...]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluation:
    """One evaluator's grade and weight; `reply` is the text of `details` if a model graded,
    otherwise None.
    """

    name: str
    by: records.GradedBy
    weight: float
    grade: records.FoundGrade
    reply: str | None


def recognise(sample: FileSample) -> float | None:
    """Recognise rows with a suite, a scenario, an agent, and scores or telemetry."""
    rows = first_rows(sample, 20) or [js.as_object(sample.document)]
    fitting = sum(1 for row in rows if _is_agent_run(_flat(row)))
    # The reader keeps every other key as provenance, so a matching row is fully explained.
    return fitting / len(rows) if fitting and fitting * 2 >= len(rows) else None


def read(source: InputFile, options: ReadOptions) -> Iterator[records.Found]:
    for row, where in read_rows(source):
        if isinstance(row, str):
            yield records.Skipped(where=where, why=row)
            continue
        try:
            parsed = agent_run(row, where=where, options=options)
        except BadField as error:
            yield records.Skipped(where=f"{where} {error.where}", why=str(error))
            continue
        yield parsed.run
        yield parsed.task
        yield parsed.response
        yield from parsed.assessments


def agent_run(
    row: js.JsonObject, *, where: str = "", options: ReadOptions | None = None
) -> AgentRun:
    """Convert one JSON object to a run; raises `BadField` for the first invalid field."""
    fields = _flat(row)
    suite = (options and options.dataset) or _named(fields, "suite")
    scenario, agent = _named(fields, "scenario"), _named(fields, "agent")
    tier, model = js.as_id(fields.get("tier")), js.as_id(fields.get("model"))
    task = scenario if tier is None else f"{scenario}/{tier}"
    specialist = _specialist(fields)
    name = agent if model is None or model == agent else f"{agent}/{model}"
    candidate = (options and options.candidate) or (
        name if specialist is None else specialist.label(name)
    )
    trial = _trial(fields)
    evaluators = _evaluators(fields.get("evaluations"))
    status = (js.as_id(fields.get("status")) or "completed").lower()
    response = _response(
        fields,
        status,
        graded=bool(evaluators),
        task=task,
        candidate=candidate,
        trial=trial,
        where=where,
    )
    graded = [
        _evaluation(name, evaluation, place, candidate) for name, evaluation, place in evaluators
    ]
    if graded and not any(each.weight for each in graded):
        raise BadField("evaluations", "all have weight 0, expected at least one weight above 0.")
    judged = any(each.by is records.GradedBy.MODEL for each in graded)
    kinds = {each.by for each in graded} - {records.GradedBy.RULE}
    assessments: tuple[records.FoundAssessment, ...] = ()
    if graded:
        assessments = (
            records.FoundAssessment(
                task=task,
                trial=trial,
                judge=EVALUATORS,
                by=records.GradedBy.MODEL
                if judged
                else records.GradedBy.PERSON
                if kinds
                else records.GradedBy.RULE,
                where=where,
                grades=tuple(each.grade for each in graded),
                reply="\n\n".join(each.reply for each in graded if each.reply) or None,
            ),
        )
    if not evaluators and (key := _first(fields, "total")) is not None and response.failure is None:
        score = _score(fields[key], 1.0, key)
        grade = records.FoundGrade(
            candidate=candidate, score=score, raw_score=score, min_score=0.0, max_score=1.0
        )
        by = _graded_by(fields, "gradedBy", records.GradedBy.MODEL)
        assessments = (
            records.FoundAssessment(
                task=task, trial=trial, judge="total", by=by, where=where, grades=(grade,)
            ),
        )
    identifier, batch = js.as_id(_value(fields, "run_id")), js.as_id(_value(fields, "batch_id"))
    content = digest(dict(row))
    return AgentRun(
        run=records.FoundRun(
            suite=suite,
            format=NAME,
            candidates=(
                records.FoundCandidate(
                    name=candidate,
                    model=model,
                    metadata=specialist.as_metadata() if specialist else {},
                ),
            ),
            rubric=tuple(
                Criterion(name=each.name, weight=each.weight, high=each.grade.max_score or 1.0)
                for each in graded
            ),
            id=identifier if identifier and IDENTIFIER.fullmatch(identifier) else None,
            identity=f"agent run {identifier or content}",
            batch_id=batch,
            started=_time(fields, "started"),
            finished=_time(fields, "finished"),
            complete=status in DONE - FAILED,
            provenance={
                "agent_run": _provenance(fields, evaluators, judged=judged),
                "content": content,
            },
        ),
        task=records.FoundTask(
            id=task,
            thing=scenario,
            tags=() if tier is None else (tier,),
            family=js.as_id(fields.get("family")) or "",
        ),
        response=response,
        assessments=assessments,
        content=content,
    )


def _provenance(
    fields: js.JsonObject, evaluators: Sequence[tuple[str, js.JsonObject, str]], *, judged: bool
) -> JsonValue:
    """Return the fields that did not become rows, except fields that would reveal a model's grade
    before its review.
    """
    taken = {"evaluations", "successMetric", "success_metric", *_NAMES["total"], *_NAMES["answer"]}
    taken |= {"isSuccessful", "is_successful"} if judged or not evaluators else set()
    in_rows = {
        "score",
        "details",
        "reason",
        "passed",
        "weight",
        *_NAMES["most"],
        *_NAMES["evaluator"],
    }
    rests = (
        (name, {key: value for key, value in evaluation.items() if key not in in_rows})
        for name, evaluation, _ in evaluators
    )
    kept: dict[str, JsonValue] = {key: value for key, value in fields.items() if key not in taken}
    if more := {name: rest for name, rest in rests if rest}:
        kept["evaluators"] = js.storable(more)
    return js.storable(kept)


def _flat(row: js.JsonObject) -> js.JsonObject:
    """Return a row with the fields of its `run` object moved up to the top level."""
    inner = row.get("run")
    rest = {key: value for key, value in row.items() if key != "run"}
    return {**inner, **rest} if isinstance(inner, dict) else dict(row)


def _is_agent_run(fields: js.JsonObject) -> bool:
    scores = "evaluations" in fields or "telemetry" in fields or _first(fields, "total") is not None
    return scores and all(key in fields for key in ("suite", "scenario", "agent"))


def _first(fields: js.JsonObject, name: str) -> str | None:
    """Return the first spelling of a field's name that has a value in this object."""
    return next((key for key in _NAMES[name] if fields.get(key) is not None), None)


def _value(fields: js.JsonObject, name: str) -> object:
    key = _first(fields, name)
    return None if key is None else fields[key]


def _named(fields: js.JsonObject, key: str) -> str:
    name = js.as_id(fields.get(key))
    if name is None:
        what = "is missing" if fields.get(key) is None else f"is {js.to_text(fields[key])[:40]!r}"
        raise BadField(key, f"{what}, expected a name.")
    return name


def _specialist(fields: js.JsonObject) -> Specialist | None:
    enabled, name = _value(fields, "specialist"), js.as_id(_value(fields, "specialist_name"))
    if not (name if enabled is None else enabled):
        return None
    version, content = (
        js.as_id(_value(fields, f"specialist_{part}")) for part in ("version", "digest")
    )
    return Specialist(name=name, version=version, digest=content)


def _trial(fields: js.JsonObject) -> int:
    key = _first(fields, "trial")
    if key is None:
        return 1
    trial = js.as_count(fields[key])
    if not trial:
        raise BadField(
            key, f"is {js.to_text(fields[key])[:40]!r}, expected a whole number of at least 1."
        )
    return trial


def _time(fields: js.JsonObject, name: str) -> str | None:
    value = _value(fields, name)
    number = js.as_number(value)
    if number is not None:
        # milliseconds: 1e11 s is the year 5138
        return js.from_unix(number / 1000 if number > 1e11 else number)
    return js.from_text(value)


def _evaluators(value: JsonValue) -> list[tuple[str, js.JsonObject, str]]:
    """Return (name, fields, path of the fields) for each evaluator."""
    if value is None:
        return []
    evaluators: list[tuple[str, js.JsonObject, str]] = []
    if isinstance(value, dict):
        for name, evaluation in value.items():
            fields = evaluation if isinstance(evaluation, dict) else {"score": evaluation}
            evaluators.append((name, fields, f"evaluations.{name}"))
    elif isinstance(value, list):
        for number, evaluation in enumerate(value):
            place, fields = f"evaluations[{number}]", js.as_object(evaluation)
            named = js.as_id(_value(fields, "evaluator"))
            if named is None:
                raise BadField(
                    f"{place}.evaluatorName", "is missing, expected the evaluator's name."
                )
            evaluators.append((named, fields, place))
    else:
        raise BadField(
            "evaluations",
            f"is {js.to_text(value)[:40]!r}, expected a list of {{evaluatorName, score, maxScore}}.",
        )
    names = [name for name, _, _ in evaluators]
    for number, (name, _, place) in enumerate(evaluators):
        if not name.strip():
            raise BadField(place, "has an empty name.")
        if name in names[:number]:
            raise BadField(
                place, f"has the name {name!r}, which another evaluator of this run already has."
            )
    return evaluators


def _evaluation(name: str, evaluation: js.JsonObject, place: str, candidate: str) -> _Evaluation:
    most_key = _first(evaluation, "most")
    most = 1.0 if most_key is None else js.as_number(evaluation[most_key])
    if most is None or most <= 0:
        raise BadField(
            f"{place}.{most_key}",
            f"is {js.to_text(evaluation.get(most_key or ''))[:40]!r}, expected a number above 0.",
        )
    weight = js.as_number(evaluation.get("weight", 1.0))
    if weight is None or weight < 0:
        raise BadField(
            f"{place}.weight",
            f"is {js.to_text(evaluation['weight'])[:40]!r}, expected a number of at least 0.",
        )
    raw = evaluation.get("score")
    score = None if raw is None else _score(raw, most, f"{place}.score")
    details = evaluation.get("details")
    by = _graded_by(evaluation, f"{place}.gradedBy", _usual_grader(name, evaluation))
    grade = records.FoundGrade(
        candidate=candidate,
        criterion=name,
        score=score,
        raw_score=None if score is None else score * most,
        min_score=0.0,
        max_score=most,
        reason=js.as_text(evaluation.get("reason")) or js.to_text(details),
    )
    reply = js.to_text(details) if by is records.GradedBy.MODEL and details is not None else None
    return _Evaluation(name=name, by=by, weight=weight, grade=grade, reply=reply)


def _score(raw: JsonValue, most: float, place: str) -> float:
    points = js.as_points(raw)
    if points is None or not 0 <= points <= most:
        raise BadField(place, f"is {js.to_text(raw)[:40]!r}, expected a number from 0 to {most:g}.")
    return points / most


def _usual_grader(name: str, evaluation: js.JsonObject) -> records.GradedBy:
    named = "judge" in evaluation or "judgeModel" in evaluation or "judge_model" in evaluation
    return records.GradedBy.MODEL if named or _JUDGE.search(name) else records.GradedBy.RULE


def _graded_by(fields: js.JsonObject, place: str, otherwise: records.GradedBy) -> records.GradedBy:
    grader = fields.get("gradedBy", fields.get("graded_by"))
    if grader is None:
        return otherwise
    if not isinstance(grader, str) or grader not in _BY:
        raise BadField(place, f"is {js.to_text(grader)[:40]!r}, expected one of {', '.join(_BY)}.")
    return _BY[grader]


def _response(
    fields: js.JsonObject,
    status: str,
    *,
    graded: bool,
    task: str,
    candidate: str,
    trial: int,
    where: str,
) -> records.FoundResponse:
    telemetry = fields.get("telemetry")
    if telemetry is not None and not isinstance(telemetry, dict):
        raise BadField("telemetry", f"is {js.to_text(telemetry)[:40]!r}, expected an object.")
    facts = {**js.as_object(telemetry), **js.as_object(js.as_object(telemetry).get("token_usage"))}
    milliseconds = _amount(facts, "milliseconds")
    failure = None
    if status in FAILED and not graded:
        detail = js.to_text(_value(fields, "error")) or f"The run ended as {status!r}."
        kind = "timeout" if "time" in status else "failed"
        failure = Failure(kind=kind, fault=Fault.HARNESS, detail=detail[:2000])
    answer = _value(fields, "answer")
    return records.FoundResponse(
        task=task,
        candidate=candidate,
        trial=trial,
        where=where,
        content=None if failure else js.to_text(answer),
        failure=failure,
        model_answered=js.as_id(fields.get("model")),
        input_tokens=js.as_count(_amount(facts, "input")),
        output_tokens=js.as_count(_amount(facts, "output")),
        latency_s=None if milliseconds is None else milliseconds / 1000,
        cost_usd=_amount(facts, "cost"),
        started=_time(fields, "started"),
    )


def _amount(facts: js.JsonObject, name: str) -> float | None:
    """Return a number of at least 0 from the telemetry; None if the telemetry lacks it."""
    key = _first(facts, name)
    if key is None:
        return None
    amount = js.as_duration(facts[key])
    if amount is None:
        raise BadField(
            f"telemetry.{key}",
            f"is {js.to_text(facts[key])[:40]!r}, expected a number of at least 0.",
        )
    return amount
