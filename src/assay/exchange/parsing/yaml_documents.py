"""Parse YAML documents that harnesses write instead of JSON."""

from __future__ import annotations

from typing import Any, Final

import yaml

from assay.domain.digest import JsonValue
from assay.exchange.parsing.json_values import NotJson

DEEPEST: Final = 200
"""Maximum nesting depth.

The C loader recurses at each level, and 200 kB of `[` once crashed the process.
"""

MAX_ALIASED: Final = 100_000
"""Maximum values that the aliases of a document may expand to; ten lines of nested aliases expand
to billions.
"""

MAX_VALUES: Final = 500_000
"""Maximum values in a document: PyYAML uses 700 bytes for each while loading."""

# The loader in C is ten times as fast, and a wheel without it is rare.
_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _JsonLoader(_Safe):  # type: ignore[misc] # one of two classes
    """Loads only JSON values: dates and keys stay text, as in the same harness's JSON files."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        return {
            str(key): value for key, value in super().construct_mapping(node, deep=deep).items()
        }

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int | str:
        number: int = super().construct_yaml_int(node)
        # JSON's reader has 64 bits too, and Python cannot even print an integer of 4,300 digits.
        return number if number.bit_length() <= 64 else str(node.value)


_NAMES: Final = ("null", "bool", "float", "str", "seq", "map")
_JsonLoader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in ("timestamp", "value")
    ]
    for first, resolvers in _Safe.yaml_implicit_resolvers.items()
}
_JsonLoader.yaml_constructors = {
    tag: construct
    for tag, construct in _Safe.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in _NAMES
} | {"tag:yaml.org,2002:int": _JsonLoader.construct_yaml_int}


def parse_yaml(content: bytes) -> JsonValue:
    """Parse one YAML document; raises `NotJson` with the reason and the line."""
    try:
        _check_size(content)
        document: JsonValue = yaml.load(content, _JsonLoader)
    except NotJson:
        raise
    except (
        yaml.YAMLError,
        ValueError,
        KeyError,
    ) as error:  # the last two are for a value that its tag does not permit
        mark = getattr(error, "problem_mark", None)
        at = "" if mark is None else f" at line {mark.line + 1}"
        why = (
            getattr(error, "problem", None)
            or getattr(error, "reason", None)
            or "a value does not fit its tag"
        )
        raise NotJson(f"is not valid YAML: {why}{at}.") from error
    return document


def _check_size(content: bytes) -> None:
    """Raise `NotJson` if a document is nested too deeply or its aliases expand to too many
    values.
    """
    sizes: dict[str | None, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    values = aliased = 0
    for event in yaml.parse(content, _JsonLoader):
        if values > MAX_VALUES:
            raise NotJson(
                f"is not read: it holds more than {MAX_VALUES:,} values. Save it as JSON."
            )
        match event:
            case yaml.CollectionStartEvent():
                open_nodes.append((event.anchor, values))
                values += 1
                if len(open_nodes) > DEEPEST:
                    raise NotJson(f"is not read: it is nested more than {DEEPEST} levels deep.")
            case yaml.CollectionEndEvent():
                anchor, before = open_nodes.pop()
                if anchor is not None:
                    sizes[anchor] = values - before
            case yaml.AliasEvent():
                # An alias inside its own node would never end.
                size = sizes.get(
                    event.anchor, MAX_ALIASED + 1 if _is_open(event.anchor, open_nodes) else 1
                )
                values += size
                aliased += size
                if aliased > MAX_ALIASED:
                    raise NotJson(
                        f"is not read: its aliases expand to more than {MAX_ALIASED:,} values."
                    )
            case yaml.ScalarEvent():
                values += 1


def _is_open(anchor: str | None, open_nodes: list[tuple[str | None, int]]) -> bool:
    return any(name == anchor for name, _ in open_nodes)
