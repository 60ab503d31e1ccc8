"""A JSON Schema of suite files, for editors that complete and check while one types.

It says what one value may be. What only the whole suite shows (ids that stand twice, a judge without candidates to
compare) is said by `assay validate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.domain.calibration import DEMANDABLE
from assay.domain.lifecycle import Policy
from assay.domain.protocol import MOST, NUMBERS
from assay.domain.run import MOST_TRIALS
from assay.domain.suite import MOST_LOOKS, JudgeMode, ReviewOrder
from assay.suites.checks import METHODS
from assay.suites.models import LARGEST_SEED
from assay.suites.tasks import ROLES, TASK_KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.digest import JsonValue

_NAME: Final[dict[str, JsonValue]] = {"type": ["string", "number"], "minLength": 1, "maxLength": 200}
_TEXT: Final[dict[str, JsonValue]] = {"type": ["string", "number"]}
_FREE: Final[dict[str, JsonValue]] = {"type": "object"}
_WEIGHT: Final[dict[str, JsonValue]] = {"type": "number", "minimum": 0}
_TRIALS: Final[dict[str, JsonValue]] = {"type": "integer", "minimum": 1, "maximum": MOST_TRIALS}


def suite_json_schema() -> dict[str, JsonValue]:
    """JSON Schema (2020-12) of a suite file; set files are described by `set_json_schema`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Assay suite",
        **_mapping(
            {
                "$schema": {"type": "string"},
                "name": _NAME,
                "description": _TEXT,
                "system_prompt": _TEXT,
                "prompt_version": _said(_TEXT, "What you call this state of the prompts; kept with each run."),
                "trials": _said(_TRIALS, "How often each task is repeated, unless the task or --trials says otherwise."),
                "review": _said(_choice([policy.value for policy in Policy]), "Which LLM grades wait for a person."),
                "order": _said(
                    _choice([order.value for order in ReviewOrder]), "In which order what waits comes to a reviewer."
                ),
                "protocol": _said(_protocol(), "Which shares of its items are reviewed with more care."),
                "looks": _said({"type": "integer", "minimum": 1, "maximum": MOST_LOOKS}, "Planned looks at the result."),
                "parameters": _parameters(),
                "candidates": {"type": "array", "items": _candidate()},
                "judge": {"anyOf": [*_judges(), {"type": "array", "minItems": 1, "items": {"anyOf": [*_judges()]}}]},
                "margin": _margin(),
                "rubric": {"type": "array", "minItems": 1, "items": {"anyOf": [_NAME, _criterion()]}},
                "score": _said(_score(), "How tasks are scored that do not say it themselves."),
                "tasks": {"anyOf": [{"type": "array", "minItems": 1, "items": _task()}, _task_file()]},
            },
            required=("tasks",),
        ),
    }  # fmt: skip


def _protocol() -> dict[str, JsonValue]:
    return _mapping({name: {"type": "number", "minimum": 0, "maximum": MOST[name]} for name in NUMBERS})


def set_json_schema() -> dict[str, JsonValue]:
    """JSON Schema (2020-12) of a set file: one Thing, a list of them, or such a list with the set's name."""
    snippet = _mapping({"name": _NAME, "content": {**_TEXT, "minLength": 1}}, required=("name", "content"))
    thing = _mapping(
        {
            "thingName": _NAME,
            "context": _TEXT,
            "language": {"type": "string"},
            "trialsNeeded": _TRIALS,
            "snippets": {"type": "array", "minItems": 1, "items": snippet},
        },
        required=("thingName", "snippets"),
    )
    some: dict[str, JsonValue] = {"type": "array", "minItems": 1, "items": thing}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Assay set file",
        "anyOf": [thing, some, _mapping({"name": _NAME, "things": some}, required=("things",))],
    }


def _mapping(properties: dict[str, JsonValue], *, required: Sequence[str] = ()) -> dict[str, JsonValue]:
    """A mapping of known keys, each of which may also be left without a value."""
    optional: dict[str, JsonValue] = {
        key: value if key in required else {"anyOf": [value, {"type": "null"}]} for key, value in properties.items()
    }
    return {"type": "object", "additionalProperties": False, "properties": optional, "required": list(required)}


def _said(schema: dict[str, JsonValue], description: str) -> dict[str, JsonValue]:
    return {"description": description, **schema}


def _choice(names: Sequence[str]) -> dict[str, JsonValue]:
    return {"enum": list(names)}


def _parameters() -> dict[str, JsonValue]:
    penalty: dict[str, JsonValue] = {"type": "number", "minimum": -2, "maximum": 2}
    stop: dict[str, JsonValue] = {"type": "string", "minLength": 1}
    return _mapping(
        {
            "temperature": {"type": "number", "minimum": 0, "maximum": 2},
            "top_p": {"type": "number", "minimum": 0, "maximum": 1},
            "max_tokens": {"type": "integer", "minimum": 1},
            "frequency_penalty": penalty,
            "presence_penalty": penalty,
            "seed": {"type": "integer", "minimum": 0, "maximum": LARGEST_SEED},
            "stop": {"anyOf": [stop, {"type": "array", "minItems": 1, "items": stop}]},
        }
    )


def _described() -> dict[str, JsonValue]:
    """Keys that describe any model."""
    dollars: dict[str, JsonValue] = {"type": "number", "minimum": 0, "description": "US dollars per million tokens."}
    return {
        "base_url": {"type": "string", "pattern": "^https?://"},
        "parameters": _parameters(),
        "price": _mapping(dict.fromkeys(("input", "output", "input_usd", "output_usd"), dollars)),
        "context_tokens": {"type": "integer", "minimum": 1},
        "metadata": _FREE,
    }


def _candidate() -> dict[str, JsonValue]:
    described = _mapping({"name": _NAME, "model": _NAME, **_described()})
    return {"anyOf": [_NAME, {**described, "anyOf": [{"required": ["name"]}, {"required": ["model"]}]}]}


def _judges() -> list[JsonValue]:
    """A judge by its reference, described, or several that take turns."""
    turns: dict[str, JsonValue] = {"type": "array", "minItems": 2, "items": {"anyOf": [_NAME, _judge()]}}
    return [
        _NAME,
        _judge(),
        _mapping(
            {"rotate": _said(turns, "Judges that take turns: the k-th trial is graded by one of them.")},
            required=("rotate",),
        ),
    ]


def _judge() -> dict[str, JsonValue]:
    return _mapping(
        {
            "name": _NAME,
            "model": _NAME,
            "mode": _choice([mode.value for mode in JudgeMode]),
            "temperature": {"type": "number", "minimum": 0, "maximum": 2},
            "prompt": _said(
                {"type": "string", "minLength": 1}, "A file that replaces our prompt, relative to the suite."
            ),
            "max_code_chars": _said(
                {"type": "integer", "minimum": 1}, "Longer responses are cut for this judge, and the grades flagged."
            ),
            "require_calibration": _said(
                _choice([tier.value for tier in DEMANDABLE]), "The tier `assay calibrate` must have shown before a run."
            ),
            **_described(),
        },
        required=("model",),
    )


def _margin() -> dict[str, JsonValue]:
    points = r"^\s*(\d+(\.\d+)?|\.\d+)\s*([pP][tT][sS]?|[pP][oO][iI][nN][tT][sS]?)\s*$"
    return {
        "description": "The smallest difference that matters: 0.03, or 3pts.",
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            {"type": "string", "pattern": points},
        ],
    }


def _criterion() -> dict[str, JsonValue]:
    bounds: dict[str, JsonValue] = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
    words: dict[str, JsonValue] = {"type": "array", "minItems": 2, "items": {"type": "string", "minLength": 1}}
    valued: dict[str, JsonValue] = {"type": "object", "minProperties": 2, "additionalProperties": {"type": "number"}}
    scale: dict[str, JsonValue] = {"anyOf": [bounds, words, valued]}
    return _mapping({"name": _NAME, "weight": _WEIGHT, "scale": scale, "guidance": _TEXT}, required=("name",))


_FILE_SCORER: Final = r"^[^:]+\.py:[A-Za-z_]\w*$"
"""A function of a Python file beside the suite."""


def _score() -> dict[str, JsonValue]:
    options: dict[str, JsonValue] = {method: {"type": ["object", "null"]} for method in METHODS}
    with_options: dict[str, JsonValue] = {
        "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False, "properties": options,
    }  # fmt: skip
    named: dict[str, JsonValue] = {"type": "string", "pattern": _FILE_SCORER}
    options_named: dict[str, JsonValue] = {
        "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False,
        "patternProperties": {_FILE_SCORER: {"type": ["object", "null"]}},
    }  # fmt: skip
    return {"anyOf": [_choice(METHODS), with_options, named, options_named]}


def _task() -> dict[str, JsonValue]:
    plain: dict[str, JsonValue] = {"type": ["string", "number", "boolean"]}
    part: dict[str, JsonValue] = {
        "type": "object",
        "properties": {
            "type": {"enum": ["text", "image", "image_url"]},
            "text": {"type": "string"},
            "file": {"type": "string", "minLength": 1},
        },
    }
    content: dict[str, JsonValue] = {"anyOf": [_TEXT, {"type": "array", "items": part}]}
    message = _mapping({"role": _choice(ROLES), "content": content}, required=("role", "content"))
    return _mapping(
        {
            "id": _NAME,
            "thing": _said(_NAME, "The display name; the id when absent."),
            "context": _said(_TEXT, "The rules the task is held to."),
            "prompt": {"anyOf": [_TEXT, {"type": "array", "minItems": 1, "items": message}]},
            "expected": {"anyOf": [plain, {"type": "array", "items": plain}]},
            "score": _score(),
            "weight": _said(_WEIGHT, "0 leaves the task out."),
            "tags": {"anyOf": [_NAME, {"type": "array", "items": _NAME}]},
            "language": _NAME,
            "trials": _TRIALS,
            "snippets": {"type": "object", "minProperties": 1, "additionalProperties": _snippet()},
            "category": {},
            "difficulty": {},
            "parameters": _said(_parameters(), "For this task in place of the candidates' and the suite's."),
            "system_prompt": _said(_TEXT, "For this task in place of the suite's."),
        },
        required=("id",),
    )


def _snippet() -> dict[str, JsonValue]:
    path: dict[str, JsonValue] = {"type": "string", "minLength": 1}
    named: dict[str, JsonValue] = {
        "file": path,
        "files": {"type": "array", "minItems": 1, "items": path},
        "folder": path,
    }
    one: dict[str, JsonValue] = {"minProperties": 1, "maxProperties": 1, **_mapping(named)}
    return {"anyOf": [{**_TEXT, "minLength": 1}, one]}


def _task_file() -> dict[str, JsonValue]:
    path: dict[str, JsonValue] = {"type": "string", "minLength": 1}
    by_candidate: dict[str, JsonValue] = {"anyOf": [path, {"type": "object", "additionalProperties": path}]}
    keys: dict[str, JsonValue] = {key: by_candidate if key == "snippets" else path for key in TASK_KEYS}
    return _mapping(
        {
            "file": _said(path, "JSONL, JSON, CSV, TSV or Parquet, relative to the suite."),
            "map": _said(_mapping(keys), "Dotted paths of the file's rows, by key of a task."),
            "score": _said(_score(), "How tasks of the file are scored that do not say it themselves."),
        },
        required=("file",),
    )
