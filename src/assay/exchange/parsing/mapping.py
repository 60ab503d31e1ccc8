"""The grammar of `--map` files: the location of each value in a row, the rules for its metrics, and
the rows to skip.

A location is a column or dotted path, `=text` for a constant, a list of locations joined by `/`, or
`{sum: [locations]}`. A path may lead into a table cell that contains JSON text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, TypeAlias

import orjson

from assay.domain.digest import JsonValue
from assay.domain.errors import did_you_mean
from assay.domain.import_records import GradedBy
from assay.exchange.parsing.json_values import JsonObject, as_list, as_object
from assay.exchange.parsing.score_rows import cell_number, cell_text
from assay.exchange.parsing.tables import TableRow
from assay.formats.dotted_paths import value_at

Place: TypeAlias = "Callable[[TableRow], object]"
"""Reads one value from a row; None if the row lacks it."""

AMOUNTS: Final = ("input_tokens", "output_tokens", "cost_usd", "latency_s")
"""Keys for the numbers of a response, such as tokens."""

PLACES: Final = (
    "task",
    "thing",
    "context",
    "prompt",
    "expected",
    "ideal",
    "final_answer",
    "weight",
    "language",
    "family",
    "candidate",
    "answer",
    "error",
    "model",
    "finish_reason",
    *AMOUNTS,
    "trial",
    "criterion",
)
_OF_A_METRIC: Final = ("score", "scale", "labels", "clip", "missing", "judge", "by", "reason")
KEYS: Final = (
    "suite",
    "rows",
    "delimiter",
    "columns",
    "quoted",
    "skip",
    "where",
    "unless",
    "candidates",
    "draws",
    "first_trial",
    "scores",
    "sum",
    "joint",
    *PLACES,
    *_OF_A_METRIC,
)
_TRUE: Final = {"true": 1.0, "false": 0.0}
_OF_A_RESPONSE: Final = ("error", "model", "finish_reason", *AMOUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """The locations and rules for reading one score from a row.

    `criterion`: location of the criterion's name; None for an overall score. `scale`: worst and
    best value, each a number or a location. `labels`: score of each exact label; `patterns` are
    labels with `*`, in order. `missing`: texts that mean that the score is missing. `clip`: True to
    set a score outside the scale to the scale's nearest end.
    """

    score: Place
    criterion: Place | None
    scale: tuple[float | Place, float | Place]
    labels: dict[str, float | None]
    patterns: tuple[tuple[str, float | None], ...]
    missing: frozenset[str]
    clip: bool
    judge: Place | None
    by: GradedBy
    reason: Place | None

    @property
    def default_judge(self) -> str:
        """Return the grader's name for rows without a grader; it differs for models and rules."""
        return "score" if self.by is GradedBy.RULE else str(self.by)

    def raw_score(self, cell: object, worst: float, best: float) -> float | None:
        """Return a cell's number on the metric's scale, or the number of its label; None if it is
        neither.
        """
        word = cell_text(cell).casefold()
        if word in self.labels:
            return self.labels[word]
        for pattern, value in self.patterns:
            if fnmatchcase(word, pattern):
                return value
        if word in _TRUE:
            # `is_wrong: true` on [1, 0] is the worst
            return max(worst, best) if _TRUE[word] else min(worst, best)
        return cell_number(cell)

    def scale_in(self, row: TableRow) -> tuple[float, float] | None:
        """Return the worst and best value for a row; None if they are equal or not numbers."""
        worst, best = self.scale
        low = worst if isinstance(worst, float) else cell_number(worst(row))
        high = best if isinstance(best, float) else cell_number(best(row))
        return None if low is None or high is None or low == high else (low, high)


def problem_of(mapping: object) -> str | None:
    """Return a message about the first problem of a mapping, or None if the mapping is valid."""
    if not isinstance(mapping, Mapping):
        return "must be a mapping of names to columns or keys."
    for key in mapping:
        if key not in KEYS:
            return f"{key} is an unknown key.{did_you_mean(str(key), KEYS)}"
    if not mapping.get("task"):
        return "has no `task`: give the column or key that contains the task's id."
    if not mapping.get("candidate") and not mapping.get("candidates"):
        return "has neither `candidate` (a column) nor `candidates` (keys of one row)."
    if not any(mapping.get(key) for key in ("answer", "error", "score", "scores")):
        return "has neither `answer` nor `score`."
    if mapping.get("score") and mapping.get("scores"):
        return "has both `score` and `scores`; several metrics belong under `scores`."
    if mapping.get("scores") and mapping.get("criterion"):
        return (
            "has both `criterion` and `scores`, but the names in `scores` are already the criteria."
        )
    for key in _OF_A_RESPONSE:
        if mapping.get(key) is not None and not mapping.get("answer") and not mapping.get("error"):
            return f"has `{key}`, which describes a response, but no `answer`."
    for key in ("skip", "first_trial"):
        if mapping.get(key) is not None and (
            not isinstance(mapping[key], int) or not 0 <= mapping[key] < 1_000_000
        ):
            return f"`{key}` is {mapping[key]!r}; it must be a whole number from 0."
    kinds = (
        ("columns", list, "list"),
        ("scores", Mapping, "mapping"),
        ("where", Mapping, "mapping"),
    )
    for key, kind, name in (*kinds, ("unless", Mapping, "mapping")):
        if mapping.get(key) is not None and not isinstance(mapping[key], kind):
            return f"`{key}` must be a {name}."
    for name, given in _metrics_given(mapping):
        if (problem := _metric_problem(name, given)) is not None:
            return problem
    return next(
        (
            problem
            for key in (*PLACES, "draws")
            if (problem := _place_problem(key, mapping.get(key)))
        ),
        None,
    )


def _metrics_given(mapping: JsonObject) -> list[tuple[str, JsonObject]]:
    """Return the metrics in the mapping, each with the mapping's general settings as defaults."""
    shared = {key: mapping[key] for key in _OF_A_METRIC if key in mapping}
    if not mapping.get("scores"):
        return [("", shared)]
    return [
        (
            str(name),
            {
                **shared,
                **(
                    given if isinstance(given, Mapping) and "sum" not in given else {"score": given}
                ),
            },
        )
        for name, given in as_object(mapping["scores"]).items()
    ]


def _metric_problem(name: str, given: JsonObject) -> str | None:
    at = f"`scores` of {name}: " if name else ""
    for key in given:
        if key not in _OF_A_METRIC:
            return f"{at}{key} is an unknown key.{did_you_mean(key, _OF_A_METRIC)}"
    if name and not given.get("score"):
        return f"{at}has no `score`."
    if (by := given.get("by")) is not None and by not in set(GradedBy):
        return f"{at}`by` is {by!r}; known: {', '.join(GradedBy)}."
    scale = given.get("scale")
    if scale is not None and _scale_of(scale) is None:
        return f"{at}`scale` is {scale!r}; it must be [WORST, BEST]: two different numbers, or the columns that contain them."
    for key, kind in (("labels", Mapping), ("missing", list)):
        if given.get(key) is not None and not isinstance(given[key], kind):
            return f"{at}`{key}` must be a {'list' if kind is list else 'mapping'}."
    problems = (_place_problem(key, given.get(key)) for key in ("score", "judge", "reason"))
    problem = next((problem for problem in problems if problem), None)
    return None if problem is None else f"{at}{problem}"


def _place_problem(key: str, value: JsonValue) -> str | None:
    """Return a message if a value is not a location, because it is a mapping other than `{sum:
    [columns]}`.
    """
    if isinstance(value, Mapping) and (
        list(value) != ["sum"] or not isinstance(value["sum"], list)
    ):
        return f"`{key}` is {dict(value)!r}; it must be a column, a list of columns, or {{sum: [COLUMNS]}}."
    return None


def metrics_of(mapping: JsonObject) -> tuple[Metric, ...]:
    """Return the metrics of a valid mapping; empty if it has no score."""
    return tuple(
        _metric(name, given, mapping)
        for name, given in _metrics_given(mapping)
        if given.get("score")
    )


def _metric(name: str, given: JsonObject, mapping: JsonObject) -> Metric:
    labels = [
        (word, cell_number(value))
        for key, value in as_object(given.get("labels")).items()
        for word in _words(key)
    ]
    by = given.get("by")
    return Metric(
        score=place_of(given["score"]),
        criterion=place_of(f"={name}") if name else _optional(mapping.get("criterion")),
        scale=_scale_of(given.get("scale")) or (0.0, 1.0),
        labels={word: value for word, value in labels if "*" not in word},
        patterns=tuple((word, value) for word, value in labels if "*" in word),
        missing=frozenset(cell_text(item) for item in as_list(given.get("missing"))),
        clip=bool(given.get("clip")),
        judge=_optional(given.get("judge")),
        by=GradedBy(str(by)) if by else GradedBy.MODEL if given.get("judge") else GradedBy.RULE,
        reason=_optional(given.get("reason")),
    )


def _scale_of(value: JsonValue) -> tuple[float | Place, float | Place] | None:
    """Return the ends of a scale, worst first; None if the value is not a scale."""
    ends = [
        float(end) if isinstance(end, int | float) and not isinstance(end, bool) else place_of(end)
        for end in as_list(value)
        if isinstance(end, int | float | str) and not isinstance(end, bool)
    ]
    return (
        (ends[0], ends[1])
        if len(ends) == 2 and len(as_list(value)) == 2 and ends[0] != ends[1]
        else None
    )


def _words(key: object) -> tuple[str, ...]:
    """Return the cell texts that match a label; two each for `Yes` and `No`, because YAML reads
    these as booleans.
    """
    if isinstance(key, bool):
        return ("yes", "true") if key else ("no", "false")
    return (cell_text(key).casefold(),)


def _optional(value: JsonValue) -> Place | None:
    return None if value is None else place_of(value)


def place_of(value: JsonValue) -> Place:
    if isinstance(value, list):
        parts = [place_of(part) for part in value]
        return lambda row: "/".join(cell_text(part(row)) for part in parts)
    if isinstance(value, Mapping):
        terms = [place_of(term) for term in as_list(value.get("sum"))]
        return lambda row: _sum_of([cell_number(term(row)) for term in terms])
    path = str(value)
    if path.startswith("="):
        text = path[1:]
        return lambda row: text
    if "." not in path:
        return lambda row: row.get(path)
    return lambda row: _value_inside(row, path)


def _sum_of(numbers: list[float | None]) -> float | None:
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None


def _value_inside(row: TableRow, path: str) -> object:
    value: object = value_at(row, path)
    if value is not None or path.startswith("$."):
        return value
    value = row
    for step in path.split("."):
        if isinstance(value, str):
            value = json_in(value)
        value = value_at(value, step)
        if value is None:
            return None
    return value


@lru_cache(maxsize=16)  # several places of a mapping lead into the same cell
def json_in(text: str) -> object:
    """Return the list or object in a cell with JSON text; None for any other cell."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Filter for rows: keeps those that meet every condition in `where` and no condition in
    `unless`.
    """

    where: tuple[tuple[Place, frozenset[str]], ...]
    unless: tuple[tuple[Place, frozenset[str]], ...]

    @classmethod
    def of(cls, mapping: JsonObject) -> RowFilter:
        return cls(_conditions(mapping.get("where")), _conditions(mapping.get("unless")))

    def keeps(self, row: TableRow) -> bool:
        return all(_word(place(row)) in values for place, values in self.where) and not any(
            _word(place(row)) in values for place, values in self.unless
        )


def _conditions(given: JsonValue) -> tuple[tuple[Place, frozenset[str]], ...]:
    return tuple(
        (
            place_of(place),
            frozenset(_word(value) for value in (values if isinstance(values, list) else [values])),
        )
        for place, values in as_object(given).items()
    )


def _word(value: object) -> str:
    return cell_text(value).casefold()


def places_in(mapping: JsonObject) -> dict[str, Place]:
    """Return the locations that at least one row should have, keyed by their names in messages;
    constants are omitted.
    """
    named: dict[str, JsonValue] = {f"`{key}`": mapping.get(key) for key in PLACES}
    for name, given in _metrics_given(mapping):
        at = f"`scores` of {name}: " if name else ""
        named |= {f"{at}`{key}`": given.get(key) for key in ("score", "judge", "reason")}
    named |= {
        f"`where` {key}": key
        for key in (*as_object(mapping.get("where")), *as_object(mapping.get("unless")))
    }
    return {
        f"{key} names {value!r}": place_of(value)
        for key, value in named.items()
        if isinstance(value, str | int)
        and not isinstance(value, bool)
        and not str(value).startswith("=")
    }
