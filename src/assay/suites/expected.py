"""Read the expected answer of a task, or of one turn of a conversation."""

from __future__ import annotations

from typing import Final

from assay.domain.unescaped_json import unescaped_json
from assay.suites.grammar import Kind, ReadContext, Schema, read_free, read_text
from assay.suites.located_yaml import Value
from assay.suites.problems import Path


def _read_expected(value: Value, path: Path, context: ReadContext) -> str | None:
    """Read the expected answer as text; a list becomes its items separated by commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, list):
        return read_text(value, path, context)
    flat = [(position, item) for position, item in enumerate(value) if not isinstance(item, list)]
    if len(flat) < len(value):
        context.report(path, "is a list of lists, expected text, a number or a flat list of them.")
    items = [_read_expected(item, (*path, position), context) for position, item in flat]
    return ", ".join(item for item in items if item is not None)


def _read_expected_or_calls(value: Value, path: Path, context: ReadContext) -> str | None:
    """Read the expected answer; a mapping, or a list with mappings such as tool calls `{name,
    arguments}`, becomes JSON.
    """
    if isinstance(value, dict):
        return unescaped_json(read_free(value, path, context))
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return unescaped_json(read_free(value, path, context))
    return _read_expected(value, path, context)


_PLAIN: Final[Schema] = {"type": ["string", "number", "boolean"]}
EXPECTED: Final = Kind(_read_expected, {"anyOf": [_PLAIN, {"type": "array", "items": _PLAIN}]})
_CALL: Final[Schema] = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}},
}
EXPECTED_OR_CALLS: Final = Kind(
    _read_expected_or_calls,
    {"anyOf": [_PLAIN, {"type": "object"}, {"type": "array", "items": {"anyOf": [_PLAIN, _CALL]}}]},
)
