"""Extracts fields from answers and inputs, as the user specified them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]  # it ships no types

from assay.domain.digest import JsonValue
from assay.domain.errors import did_you_mean
from assay.domain.extraction import ExtractionSpec, Field
from assay.scoring.extraction import extracted, way_problems

_KEYS: Final = ("path", "regex", "labels")
_DOCUMENT_KEYS: Final = ("fields", "title", "subtitle")
MAX_FIELDS: Final = 50
MAX_LABELS: Final = 200


def read_fields(text: str, fields: Sequence[Field]) -> dict[str, str | None]:
    return {field.name: read_field(text, field) for field in fields}


def read_field(text: str, field: Field) -> str | None:
    """Read one value by applying `path`, then `pattern`, then `labels`; None if any of them
    fails.
    """
    value: str | None = text
    if field.path:
        value = extracted(text, field.path)
    if value is not None and field.pattern:
        value = _searched(value, field.pattern)
    if value is None:
        return None
    value = value.strip()
    if field.labels:
        return _label(value, field)
    return value or None


def reading_of(value: JsonValue) -> ExtractionSpec:
    """Parse a description of fields; raises ValueError with all its problems, one per line.

    `{fields: {NAME: {path: $.a, regex: "…", labels: [Yes, No]}}, title: {regex: "…"}, subtitle:
    {…}}`
    """
    problems = list(reading_problems(value))
    if problems:
        raise ValueError("\n".join(problems))
    spec: Any = value
    described = spec.get("fields") or {}
    return ExtractionSpec(
        fields=tuple(_field(str(name), field_spec) for name, field_spec in described.items()),
        title=_field("title", spec["title"]) if spec.get("title") else None,
        subtitle=_field("subtitle", spec["subtitle"]) if spec.get("subtitle") else None,
    )


def reading_as_json(reading: ExtractionSpec) -> dict[str, JsonValue]:
    """Return the description in the form that `reading_of` accepts, for the run's provenance."""
    document: dict[str, JsonValue] = {
        "fields": {field.name: _as_json(field) for field in reading.fields}
    }
    for name, field in (("title", reading.title), ("subtitle", reading.subtitle)):
        if field is not None:
            document[name] = _as_json(field)
    return document


def reading_problems(value: JsonValue) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield "must be a mapping with `fields`, `title` or `subtitle`."
        return
    for key in value:
        if key not in _DOCUMENT_KEYS:
            yield f"{key} is an unknown key.{did_you_mean(str(key), _DOCUMENT_KEYS)}"
    fields = value.get("fields")
    if fields is not None and not isinstance(fields, Mapping):
        yield "fields: must be a mapping of names to {path, regex, labels}."
    elif fields:
        if len(fields) > MAX_FIELDS:
            yield f"fields: has {len(fields)} fields; the maximum is {MAX_FIELDS}."
        for name, field_spec in fields.items():
            yield from _field_problems(f"fields.{name}", field_spec)
    for key in ("title", "subtitle"):
        if value.get(key):
            yield from _field_problems(key, value[key])


def _field_problems(where: str, spec: Any) -> Iterator[str]:
    if not isinstance(spec, Mapping):
        yield f"{where}: must be a mapping with `path`, `regex` or `labels`."
        return
    for key in spec:
        if key not in _KEYS:
            yield f"{where}: {key} is an unknown key.{did_you_mean(str(key), _KEYS)}"
    if not any(spec.get(key) for key in _KEYS):
        yield f"{where}: is empty; give `path`, `regex` or `labels`."
    if spec.get("path"):
        yield from (
            f"{where}: {problem}".replace("`extract`", "`path`")
            for problem in way_problems(spec["path"])
        )
    pattern = spec.get("regex")
    if pattern:
        problem = "is not text." if not isinstance(pattern, str) else _pattern_problem(pattern)
        if problem:
            yield f"{where}: `regex` {problem}"
    labels = spec.get("labels")
    if labels is not None:
        good = isinstance(labels, list) and all(
            isinstance(label, str | int | float | bool) for label in labels
        )
        if not good or not 2 <= len(labels) <= MAX_LABELS:
            yield f"{where}: `labels` must be a list of 2 to {MAX_LABELS} values."
        elif len({_folded(_text(label)) for label in labels}) < len(labels):
            yield f"{where}: `labels` contains a value twice."


def _field(name: str, spec: Mapping[str, Any]) -> Field:
    labels = spec.get("labels") or ()
    return Field(
        name=name,
        path=str(spec.get("path") or ""),
        pattern=str(spec.get("regex") or ""),
        labels=tuple(_text(label) for label in labels),
    )


def _as_json(field: Field) -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = {}
    if field.path:
        document["path"] = field.path
    if field.pattern:
        document["regex"] = field.pattern
    if field.labels:
        document["labels"] = list(field.labels)
    return document


def _text(value: Any) -> str:
    """Return a label as text, because YAML reads `Yes` and `No` as booleans."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return str(value)


def _label(text: str, field: Field) -> str | None:
    """Return the label that a text equals, ignoring case, or the only label that it mentions."""
    folded = _folded(text)
    by_name = {_folded(label): label for label in field.labels}
    if folded in by_name:
        return by_name[folded]
    if folded in ("true", "false") and not {"true", "false"} & by_name.keys():
        return by_name.get("yes" if folded == "true" else "no")
    if field.path or field.pattern:
        return None  # the path or pattern selected this text, so it must equal a label
    spoken = {
        by_name[_folded(mention)]
        for mention in _mentions(field.labels).findall(text)
        if _folded(mention) in by_name
    }
    return spoken.pop() if len(spoken) == 1 else None


def _folded(text: str) -> str:
    return " ".join(text.casefold().strip(" \t\r\n.\"'*_`").split())


@lru_cache(maxsize=256)
def _mentions(labels: tuple[str, ...]) -> Any:
    """Compile a pattern that matches any label as a whole word; longer labels come before shorter
    ones that they contain.
    """
    words = "|".join(re2.escape(label) for label in sorted(labels, key=len, reverse=True))
    return re2.compile(rf"(?i)(?:\b|^)({words})(?:\b|$)")


@lru_cache(maxsize=256)
def _pattern(source: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(source, options)


def _pattern_problem(source: str) -> str | None:
    try:
        _pattern(source)
    except re2.error as error:
        problem = error.args[0] if error.args else "it cannot be used"
        problem = problem.decode("utf-8", "replace") if isinstance(problem, bytes) else str(problem)
        return f"{source!r} is not a regular expression without look-around: {problem}."
    return None


def _searched(text: str, source: str) -> str | None:
    try:
        match = _pattern(source).search(text)
    except (UnicodeError, re2.error):
        return None
    if match is None:
        return None
    value = match.group(1) if match.re.groups else match.group(0)
    return None if value is None else str(value)
