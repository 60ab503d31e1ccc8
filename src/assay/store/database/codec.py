"""Convert records to the bytes in the column `body`, and back.

Models write lone surrogates and NUL characters, which no database accepts as text. Bodies are
therefore bytes: texts are UTF-8 that may contain surrogates, and records are JSON. Short texts in
other columns are cleaned with `plain` instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import orjson

from assay.domain.assessment import Assessment, Flag, FlagKind, Grade, Verification
from assay.domain.conversation import SimulatedUser, Turn
from assay.domain.errors import DamagedValue
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import Policy
from assay.domain.model import ModelSpec, Parameters, Price
from assay.domain.programs import program_from_json
from assay.domain.rounding import without_rounding_error
from assay.domain.run import RunPlan
from assay.domain.scenarios import Scenario
from assay.domain.structure import Structuring
from assay.domain.suite import (
    CandidateSpec,
    Criterion,
    Image,
    JudgeMode,
    JudgeSpec,
    Message,
    Rubric,
    Scoring,
    Snippet,
    SourceFile,
    SuiteCopy,
    Task,
)
from assay.domain.tools import CannedAnswer, CannedTool, Tool, ToolCall
from assay.domain.verdicts import VerdictRules

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from assay.domain.calls import ModelRequest

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound="DataclassInstance")

_RESTORE: Final = "Restore the store from a backup; `assay doctor --check-store` lists the damage."


def text_bytes(text: str) -> bytes:
    """Encode a text as stored bytes; every `str` survives the round trip."""
    return text.encode("utf-8", "surrogatepass")


def bytes_text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")


def plain(text: str) -> str:
    """Replace lone surrogates and NUL with U+FFFD, so that a text column can store the text."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def json_bytes(value: object) -> bytes:
    """Serialise plain values and dataclasses as JSON, with one key per dataclass field."""
    try:
        return orjson.dumps(value, default=_as_plain)
    except TypeError:  # there is a lone surrogate: the standard library escapes it
        return json.dumps(value, separators=(",", ":"), default=_as_plain).encode()


def bytes_json(content: bytes) -> Any:
    """Parse the output of `json_bytes`. Raises `DamagedValue` if the bytes are not JSON."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(content)
    except ValueError as error:
        raise DamagedValue(
            "the store", f"is damaged: a value is not JSON ({error}).", remedy=_RESTORE
        ) from None


def json_text(value: object) -> str:
    return json_bytes(value).decode()


def _as_plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if callable(value):
        return None  # a candidate given as a Python object: no other process could use it
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def _readable(decode: Callable[P, T]) -> Callable[P, T]:
    """Make a decoder raise `DamagedValue` for JSON whose keys or values are not those of the
    record.
    """

    @wraps(decode)
    def decoded(*args: P.args, **options: P.kwargs) -> T:
        try:
            return decode(*args, **options)
        except DamagedValue:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            kind = decode.__name__.removesuffix("_record").replace("_", " ")
            problem = (
                f"is damaged: a stored {kind} cannot be read ({type(error).__name__}: {error})."
            )
            raise DamagedValue("the store", problem, remedy=_RESTORE) from error

    return decoded


def task_bytes(task: Task) -> bytes:
    return json_bytes(task)


@_readable
def task_record(content: bytes) -> Task:
    data = bytes_json(content)
    return _record(
        Task,
        data,
        prompt=tuple(_message(message) for message in data["prompt"]),
        parameters=_shared(_parameters, json_bytes(data.get("parameters", {}))),
        scoring=_shared(_scoring, json_bytes(data["scoring"])),
        tags=tuple(data["tags"]),
        turns=tuple(Turn(**turn) for turn in data.get("turns", ())),
        tools=tuple(
            CannedTool(
                tool=Tool(**canned["tool"]),
                answers=tuple(CannedAnswer(**answer) for answer in canned["answers"]),
            )
            for canned in data.get("tools", ())
        ),
        scenario=None if data.get("scenario") is None else Scenario.from_json(data["scenario"]),
        snippets=tuple(
            Snippet(
                candidate=snippet["candidate"],
                files=tuple(SourceFile(**file) for file in snippet["files"]),
            )
            for snippet in data["snippets"]
        ),
    )


@_readable
def tool_calls_record(content: str | None) -> tuple[ToolCall, ...]:
    return (
        () if content is None else tuple(ToolCall(**call) for call in bytes_json(content.encode()))
    )


def plan_bytes(plan: RunPlan) -> bytes:
    """Serialise a plan without the suite's text, which all runs of the suite share."""
    data = {field.name: getattr(plan, field.name) for field in fields(plan)}
    data["copy"] = {"path": plan.copy.path, "digest": plan.copy.digest}
    return json_bytes(data)


@_readable
def plan_record(content: bytes, *, suite_text: str) -> RunPlan:
    data = bytes_json(content)
    return _record(
        RunPlan,
        data,
        id=RunId(data["id"]),
        copy=SuiteCopy(path=data["copy"]["path"], text=suite_text, digest=data["copy"]["digest"]),
        candidates=tuple(_candidate(candidate) for candidate in data["candidates"]),
        judges=tuple(_judge(judge) for judge in data["judges"]),
        rubric=rubric_record(data["rubric"]),
        policy=Policy(data["policy"]),
        user=None
        if data.get("user") is None
        else _record(SimulatedUser, data["user"], model=_model(data["user"]["model"])),
        parameters=_parameters(data["parameters"]),
    )


def assessment_bytes(assessment: Assessment) -> bytes:
    """Serialise an assessment: a bare score as a short list, because stores contain millions of
    them, otherwise the record.
    """
    if len(assessment.grades) == 1:
        (grade,) = assessment.grades
        if assessment == bare_score(grade.candidate, grade.criterion, grade.score):
            return bare_score_bytes(grade.candidate, grade.criterion, grade.score)
    return json_bytes(assessment)


WHOLE: Final = "score"
"""Criterion name for a score of an answer as a whole."""


def bare_score(candidate: str, criterion: str, score: float | None) -> Assessment:
    grade = Grade(
        candidate=candidate,
        criterion=criterion,
        score=score,
        raw_score=score,
        min_score=0.0,
        max_score=1.0,
    )
    return Assessment(grades=(grade,), scores={candidate: score}, weights={criterion: 1.0})


def bare_score_bytes(candidate: str, criterion: str, score: float | None) -> bytes:
    """Serialise a `bare_score` in one seventh of the space of a whole record."""
    return json_bytes((candidate, criterion, score))


@_readable
def assessment_record(content: bytes) -> Assessment:
    data = bytes_json(content)
    if isinstance(data, list):
        return bare_score(*data)
    return _record(
        Assessment,
        data,
        scores={
            candidate: None if score is None else without_rounding_error(score)
            for candidate, score in data["scores"].items()
        },
        grades=tuple(
            _record(Grade, grade, evidence=tuple(grade["evidence"])) for grade in data["grades"]
        ),
        ranking=tuple(data["ranking"]),
        shown=tuple(data.get("shown", ())),
        flags=tuple(_record(Flag, flag, kind=FlagKind(flag["kind"])) for flag in data["flags"]),
        rules=None if data.get("rules") is None else _record(VerdictRules, data["rules"]),
        verifications=tuple(_record(Verification, each) for each in data.get("verifications", ())),
    )


def request_digest(request: ModelRequest) -> str:
    """Return a digest of a request's model, messages, parameters, schema and tools; the purpose
    does not affect it.
    """
    schema = request.answer_schema
    asked = [
        request.model.ref,
        request.messages,
        request.parameters,
        None if schema is None else [schema.name, schema.schema],
        *([request.tools] if request.tools else ()),
    ]
    return hashlib.sha256(json_bytes(asked)).hexdigest()[:32]


def _record(kind: type[R], data: Mapping[str, Any], /, **decoded: object) -> R:
    """Build a record from JSON, with `decoded` in place of the fields that need conversion.

    Older versions may have stored fewer fields, so missing fields keep their defaults. Unknown keys
    are ignored.
    """
    known = kind.__dataclass_fields__
    values = (
        data
        if data.keys() <= known.keys()
        else {name: data[name] for name in data.keys() & known.keys()}
    )
    return kind(**{**values, **decoded})


@lru_cache(256)
def _shared(decode: Callable[[Mapping[str, Any]], Any], content: bytes) -> Any:
    """Decode a record that most tasks of a suite have in common."""
    return decode(bytes_json(content))


def _scoring(data: Mapping[str, Any]) -> Scoring:
    # Runs stored before `exact` or `numeric` meant 0 or 1 lack these keys. They are resumed and
    # extended under their rule.
    verify = data.get("verify")
    decoded = {} if verify is None else {"verify": _scoring(verify)}
    before = {"partial_credit": data["method"] == "exact", "strict": data["method"] != "numeric"}
    return _record(Scoring, {**before, **data}, **decoded)


def _message(data: Mapping[str, Any]) -> Message:
    return _record(Message, data, images=tuple(Image(**image) for image in data.get("images", ())))


def _parameters(data: Mapping[str, Any]) -> Parameters:
    stop = data.get("stop")
    return _record(Parameters, data, stop=None if stop is None else tuple(stop))


def _model(data: Mapping[str, Any]) -> ModelSpec:
    price, program = data.get("price"), data.get("program")
    return _record(
        ModelSpec,
        data,
        program=None if program is None else program_from_json(program),
        parameters=_parameters(data["parameters"]),
        price=None if price is None else Price(**price),
    )


def _candidate(data: Mapping[str, Any]) -> CandidateSpec:
    model = data.get("model")
    return _record(
        CandidateSpec,
        data,
        model=None if model is None else _model(model),
        messages=tuple(_message(message) for message in data.get("messages", ())),
    )


def _judge(data: Mapping[str, Any]) -> JudgeSpec:
    return _record(
        JudgeSpec,
        {"persona": "code", **data},  # runs stored before there was a choice were judged as code
        model=_model(data["model"]),
        mode=JudgeMode(data["mode"]),
        turn=tuple(data["turn"]) if data.get("turn") else None,
        parameters=_parameters(data["parameters"]),
    )


@_readable
def rubric_record(data: Mapping[str, Any]) -> Rubric:
    rules, verify, structuring = (data.get(name) for name in ("rules", "verify", "structuring"))
    return Rubric(
        rules=None if rules is None else _record(VerdictRules, rules),
        verify=None if verify is None else _scoring(verify),
        structuring=None
        if structuring is None
        else _record(Structuring, structuring, model=_model(structuring["model"])),
        criteria=tuple(
            _record(Criterion, row, labels=tuple((label, value) for label, value in row["labels"]))
            for row in data["criteria"]
        ),
    )
