"""Users' own scorers: functions in a Python file next to the suite, or in an installed package.

They have the signature of `scorer_registry.PluginScorer`. They run in a child process, so that an
endless loop or a crash makes only one assessment fail and not the whole run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from assay.domain.digest import JsonValue
from assay.domain.failure import Fault
from assay.domain.isolation import IsolatedAnswer, IsolatedRequest, Returned
from assay.domain.suite import Scoring
from assay.scoring.scorer_registry import SCORER_REGISTRY
from assay.scoring.scorer_result import Outcome, Score, Unscored

TIME_LIMIT_S: Final = 10.0


def begin(scoring: Scoring, response: str, reference: str) -> IsolatedRequest:
    arguments: dict[str, JsonValue] = {
        "response": response,
        "reference": reference,
        "options": {key: value for key, value in scoring.options.items() if key != "extract"},
    }
    if scoring.source:
        arguments |= {"source": scoring.source, "name": scoring.method.rpartition(":")[2]}
        return IsolatedRequest(
            function="file_scorer", arguments=arguments, time_limit_s=TIME_LIMIT_S
        )
    arguments["name"] = scoring.method
    return IsolatedRequest(function="plugin_scorer", arguments=arguments, time_limit_s=TIME_LIMIT_S)


def finish(scoring: Scoring, answer: IsolatedAnswer) -> Outcome:
    """Return the score, or `Unscored` with fault `HARNESS` if the scorer failed."""
    if not isinstance(answer, Returned):
        return Unscored(
            f"scorer_{answer.kind}", f"The scorer {scoring.method}: {answer.detail}", Fault.HARNESS
        )
    value: Any = answer.value
    note, confidence = "", None
    if isinstance(value, Mapping):
        note, confidence = str(value.get("note") or ""), value.get("confidence")
        value = value.get("score")
    if value is None:
        return Unscored(
            "scorer_undecided", f"The scorer {scoring.method} could not decide. {note}".strip()
        )
    if not _on_scale(value) or not (confidence is None or _on_scale(confidence)):
        return Unscored(
            "scorer_bad_value",
            f"The scorer {scoring.method} returned {answer.value!r:.120}, which is not a score from 0 to 1.",
        )
    return Score(float(value), note, confidence)


def _on_scale(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1


# --- in the child ---------------------------------------------------------------------------------


def file_scorer(
    *, source: str, name: str, response: str, reference: str, options: Mapping[str, JsonValue]
) -> JsonValue:
    return plain_result(_function(source, name)(response, reference, options))


def plugin_scorer(
    *, name: str, response: str, reference: str, options: Mapping[str, JsonValue]
) -> JsonValue:
    return plain_result(SCORER_REGISTRY.load(name)(response, reference, options))


@lru_cache(maxsize=16)
def _function(source: str, name: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": "assay_suite_scorers"}
    exec(compile(source, "scorers of the suite", "exec"), names)
    function: Callable[..., Any] = names[name]
    return function


def plain_result(value: object) -> JsonValue:
    """Convert a scorer's result to JSON, so that it can cross the process boundary; raises
    `TypeError` for any other form.
    """
    match value:
        case Score(value=number, note=note, confidence=confidence):
            return {"score": number, "note": note, "confidence": confidence}
        case Unscored(detail=detail):
            return {"score": None, "note": detail}
        case bool():
            return float(value)
        case None | int() | float():
            return value
        case Mapping():
            return {str(key): inner for key, inner in value.items()}
        case _ if hasattr(value, "__float__"):
            return float(value)
        case _:
            raise TypeError(f"a scorer returns a number from 0 to 1, not a {type(value).__name__}")
