"""Keys of `scenario.yaml` as other harnesses write them, and the commands and evaluators for which
they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from assay.domain.digest import JsonValue
from assay.suites import grammar
from assay.suites.located_yaml import Value, shown
from assay.suites.problems import Path


def _mapping(
    optional: Mapping[str, grammar.Kind[Any]], **required: grammar.Kind[Any]
) -> grammar.Kind[dict[str, Any]]:
    keys = {
        name: grammar.DeclaredKey(kind, required=f"Write `{name}`.")
        for name, kind in required.items()
    }
    return grammar.mapping_of(
        keys | {name: grammar.DeclaredKey(kind) for name, kind in optional.items()}, dict
    )


def _refused(problem: str, remedy: str) -> grammar.Kind[None]:
    return grammar.Kind(
        lambda _value, path, context: context.report(path, problem, remedy), {"type": "null"}
    )


def _read_major(value: Value, path: Path, context: grammar.ReadContext) -> str | None:
    match = re.fullmatch(r"\D{0,2}(\d{1,3})(?:\.[\dx.]*)?", str(value))
    if match is None:
        context.report(path, f"is {shown(value)}, expected a version such as 20.11.0.")
    return match and match[1]


def _read_weights(
    value: Value, path: Path, context: grammar.ReadContext
) -> dict[str, float] | None:
    if not isinstance(value, dict):
        context.report(path, f"is {shown(value)}, expected evaluators with their weights.")
        return None
    weights = {
        name.replace("-", "_"): grammar.number(0).read(weight, (*path, name), context)
        for name, weight in value.items()
    }
    return {name: weight for name, weight in weights.items() if weight is not None}


_NAMES: Final = grammar.list_of(grammar.NAME)
_MAJOR: Final = grammar.Kind(_read_major, {"type": ["string", "number"]})
_WEIGHTS: Final = grammar.Kind(
    _read_weights, {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}}
)
_COMPANION: Final = _mapping({"rule": grammar.choice(["major must match"])}, name=grammar.NAME)
_CONSTRAINTS: Final[Mapping[str, grammar.Kind[Any]]] = {
    "blocklist": _NAMES,
    "namespace_migrations": grammar.list_of(_mapping({"from": grammar.NAME, "to": grammar.NAME})),
    "companion_versions": grammar.list_of(
        _mapping({}, main=grammar.NAME, companions=grammar.list_of(_COMPANION))
    ),
    "managers_allowed": _NAMES,
}
_WARMUP: Final[Mapping[str, grammar.Kind[Any]]] = {
    "enabled": grammar.FLAG,
    "type": grammar.choice(["scripted"]),
    "commands": grammar.list_of(_mapping({"description": grammar.TEXT}, cmd=grammar.TEXT)),
    "agent": _refused(
        "asks an agent to prepare the fixture, which Assay does not support.",
        "Write commands instead.",
    ),
    "working_dir": _refused(
        "is not used: Assay prepares a copy of the fixture.",
        "Remove it; commands may begin with `cd`.",
    ),
}


class HarnessKeys(grammar.Keys):
    """Keys that stand for evaluators, commands or files of a scenario."""

    targets = grammar.key(
        _mapping(
            {
                "required": grammar.list_of(_mapping({}, name=grammar.NAME, to=grammar.TEXT)),
                "optional": grammar.FREE,
            }
        ),
        "Versions to reach.",
    )
    constraints = grammar.key(
        _mapping(_CONSTRAINTS), "Options of the evaluators that check dependencies and names."
    )
    workspace = grammar.key(
        _mapping(
            {
                "required": grammar.FREE,
                "node": _MAJOR,
                "manager": grammar.NAME,
                "managers_allowed": _NAMES,
            }
        ),
        "Package managers, and the version of Node.js that must be installed.",
    )
    warmup = grammar.key(_mapping(_WARMUP), "Another form of `baseline`.")
    oracle = grammar.key(
        _mapping({"answers_file": grammar.NAME}),
        "The file with answers, instead of `oracle-answers.json`.",
    )
    rubric_overrides = grammar.key(
        _mapping({"weights": _WEIGHTS}), "Weights of evaluators, by name."
    )
    artifact = grammar.key(
        _refused(
            "asks for a file outside the repository; Assay supports none.",
            "Put what the agent needs into the fixture.",
        )
    )
    reference_path = grammar.key(
        _refused(
            "names a reference folder, which Assay does not support.",
            "List its keys for the evaluator `config_accuracy`.",
        )
    )

    def warm_up(self) -> tuple[str, ...]:
        """Return the commands of the warm-up, after a check of the version of Node.js."""
        node = (self.workspace or {}).get("node")
        warmup = self.warmup or {}
        commands = [
            each.get("cmd", "")
            for _, each in warmup.get("commands", ())
            if warmup.get("enabled", True)
        ]
        return (*([f"node --version | grep -q '^v{node}[.]'"] if node else ()), *commands)

    def options(self) -> dict[str, dict[str, JsonValue]]:
        """Return the options of the evaluators that these keys stand for, by evaluator."""
        rules, place = self.constraints or {}, self.workspace or {}
        allowed = (
            _items(rules, "managers_allowed")
            or _items(place, "managers_allowed")
            or [place.get("manager")]
        )
        pairs = {
            each.get("main", ""): _items(each, "companions")
            for each in _items(rules, "companion_versions")
        }
        targets = [
            {"name": "", "to": "", **each} for each in _items(self.targets or {}, "required")
        ]
        options: dict[str, dict[str, Any]] = {
            "dependency_targets": {"required": targets, "forbidden": _items(rules, "blocklist")},
            "namespace_migration": {
                "from": [each.get("from") for each in _items(rules, "namespace_migrations")]
            },
            "companion_versions": {
                "companions": {
                    main: [each.get("name") for each in listed] for main, listed in pairs.items()
                }
            },
            "package_manager": {"allowed": [name for name in allowed if name]},
        }
        return {name: values for name, values in options.items() if any(values.values())}


def _items(mapping: Mapping[str, Any], name: str) -> list[Any]:
    return [item for _, item in mapping.get(name, ())]
